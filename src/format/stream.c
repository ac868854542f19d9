/* SPDX-License-Identifier: Apache-2.0 */
/* Serialisation of numbers, strings and tensors. */
#include "format/stream.h"

#include <string.h>

#define MAX_TEXT ((int64_t)1 << 24) /* bytes: far more than any name or table of options */

/* ---- Writing ---- */

void ew_write_bytes(struct ew_byte_writer *p, const void *bytes, size_t n)
{
    if (n == 0)
        return;
    ew_hash_add(&p->hash, bytes, n);
    if (p->wide)
        ew_hash_wide_add(p->wide, bytes, n);
    if (p->f)
        fwrite(bytes, 1, n, p->f);
}

void ew_write_int(struct ew_byte_writer *p, int64_t v)
{
    unsigned char bytes[8];
    for (int i = 0; i < 8; i++)
        bytes[i] = (unsigned char)((uint64_t)v >> (8 * i));
    ew_write_bytes(p, bytes, sizeof(bytes));
}

void ew_write_text(struct ew_byte_writer *p, const char *s)
{
    ew_write_int(p, (int64_t)strlen(s));
    ew_write_bytes(p, s, strlen(s));
}

void ew_write_tensor(struct ew_byte_writer *p, const struct ew_tensor *t)
{
    static const char zeros[EW_ALIGN];
    ew_write_int(p, t->dtype);
    ew_write_int(p, t->shape.rank);
    for (int i = 0; i < t->shape.rank; i++)
        ew_write_int(p, t->shape.dim[i]);
    ew_write_int(p, t->data != NULL);
    if (!t->data)
        return;
    ew_write_bytes(p, zeros, ew_align_up(p->hash.total) - p->hash.total);
    ew_write_bytes(p, t->data, ew_tensor_bytes(t));
}

/* ---- Reading ---- */

ew_err ew_read_bytes(struct ew_byte_reader *g, size_t n, const void **out)
{
    EW_CHECK(n <= g->size - g->at, EW_ERR_FORMAT,
             "%s: ends at %zu bytes, in the middle of something", g->what, g->size);
    *out = g->bytes + g->at;
    g->at += n;
    return EW_OK;
}

ew_err ew_read_int(struct ew_byte_reader *g, int64_t min, int64_t max, int64_t *out)
{
    const void *from = NULL;
    EW_TRY(ew_read_bytes(g, 8, &from));
    uint64_t v = 0;
    for (int i = 0; i < 8; i++)
        v |= (uint64_t)((const unsigned char *)from)[i] << (8 * i);
    *out = (int64_t)v;
    EW_CHECK(*out >= min && *out <= max, EW_ERR_FORMAT, "%s: a number at byte %zu is out of range",
             g->what, g->at - 8);
    return EW_OK;
}

ew_err ew_read_text(struct ew_byte_reader *g, const char **out)
{
    int64_t n;
    const void *from = NULL;
    EW_TRY(ew_read_int(g, 0, MAX_TEXT, &n));
    EW_TRY(ew_read_bytes(g, (size_t)n, &from));
    EW_CHECK(!memchr(from, 0, (size_t)n), EW_ERR_FORMAT, "%s: a text at byte %zu has a zero in it",
             g->what, g->at - (size_t)n);
    char *copy = ew_arena_alloc(g->arena, (size_t)n + 1);
    EW_CHECK(copy, EW_ERR_MEMORY, "%s: no memory", g->what);
    memcpy(copy, from, (size_t)n);
    *out = copy;
    return EW_OK;
}

ew_err ew_read_tensor(struct ew_byte_reader *g, struct ew_tensor *out)
{
    int64_t dtype, rank, has;
    const void *from = NULL;
    *out = (struct ew_tensor){0};
    EW_TRY(ew_read_int(g, 0, EW_DTYPE_COUNT - 1, &dtype));
    EW_TRY(ew_read_int(g, 0, EW_MAX_RANK, &rank));
    out->dtype = (enum ew_dtype)dtype;
    out->shape.rank = (int32_t)rank;
    for (int i = 0; i < out->shape.rank; i++)
        EW_TRY(ew_read_int(g, 0, INT64_MAX, &out->shape.dim[i]));
    EW_TRY(ew_shape_check(&out->shape, g->what));
    EW_TRY(ew_read_int(g, 0, 1, &has));
    if (!has)
        return EW_OK;
    EW_TRY(ew_read_bytes(g, ew_align_up(g->at) - g->at, &from));
    EW_TRY(ew_read_bytes(g, ew_tensor_bytes(out), &from));
    memcpy(&out->data, &from,
           sizeof(from)); /* a cast from const: this tensor's data must not be written */
    return EW_OK;
}
