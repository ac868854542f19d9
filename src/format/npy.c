/* SPDX-License-Identifier: Apache-2.0 */
/* NumPy's .npy: a magic word, a Python dictionary with type, order and shape, then the elements.
 * https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "format/tensor_file.h"
#include "graph/layout.h"

#define MAGIC "\x93NUMPY"

static const struct {
    const char *descr;
    enum ew_dtype dtype;
} types[] = {{"<f4", EW_F32}, {"<f8", EW_F64}, {"<f2", EW_F16}, {"|i1", EW_S8},
             {"|u1", EW_U8},  {"<i2", EW_S16}, {"<u2", EW_U16}, {"<i4", EW_S32},
             {"<u4", EW_U32}, {"<i8", EW_S64}, {"<u8", EW_U64}, {"|b1", EW_BOOL}};

/* ---- Reading ---- */

/* The text after "'key':" in the header, past blanks; NULL if there is no such key. */
static const char *find_key(const char *header, const char *key)
{
    char quoted[32];
    snprintf(quoted, sizeof(quoted), "'%s'", key);
    const char *p = strstr(header, quoted);
    if (!p)
        return NULL;
    p += strlen(quoted);
    p += strspn(p, " ");
    return *p == ':' ? p + 1 + strspn(p + 1, " ") : NULL;
}

static ew_err parse_descr(const char *header, enum ew_dtype *out)
{
    const char *p = find_key(header, "descr");
    EW_CHECK(p, EW_ERR_FORMAT, "the header has no 'descr'");
    for (size_t i = 0; i < EW_COUNT(types); i++) {
        if (p[0] == '\'' && strncmp(p + 1, types[i].descr, 3) == 0 && p[4] == '\'') {
            *out = types[i].dtype;
            return EW_OK;
        }
    }
    return ew_fail(EW_ERR_UNSUPPORTED, "elements of type %.20s are not supported", p);
}

static ew_err parse_shape(const char *header, struct ew_shape *out)
{
    const char *p = find_key(header, "shape");
    EW_CHECK(p && *p == '(', EW_ERR_FORMAT, "the header has no 'shape'");
    *out = (struct ew_shape){0};
    p++;
    for (;;) {
        p += strspn(p, " ,");
        if (*p == ')')
            return EW_OK;
        EW_CHECK(out->rank < EW_MAX_RANK, EW_ERR_LIMIT, "has more than %d dimensions", EW_MAX_RANK);
        EW_CHECK(*p >= '0' && *p <= '9', EW_ERR_FORMAT, "the shape is damaged");
        int64_t v = 0;
        for (; *p >= '0' && *p <= '9'; p++)
            EW_CHECK(!__builtin_mul_overflow(v, 10, &v) && !__builtin_add_overflow(v, *p - '0', &v),
                     EW_ERR_FORMAT, "a dimension does not fit 64 bits");
        out->dim[out->rank++] = v;
    }
}

/* Copies the header, NUL-terminated, and finds the start of the elements. */
static ew_err read_header(const unsigned char *b, size_t size, char *buf, size_t buf_size,
                          size_t *start)
{
    EW_CHECK(size >= 12 && memcmp(b, MAGIC, 6) == 0, EW_ERR_FORMAT, "is not an .npy file");
    EW_CHECK(b[6] >= 1 && b[6] <= 3, EW_ERR_UNSUPPORTED, "version %d of .npy is not supported",
             b[6]);
    const size_t at = b[6] == 1 ? 10 : 12;
    const size_t length = b[6] == 1
                              ? (size_t)(b[8] | b[9] << 8)
                              : (size_t)(b[8] | b[9] << 8 | b[10] << 16) | (size_t)b[11] << 24;
    EW_CHECK(length <= size - at && length < buf_size, EW_ERR_FORMAT,
             "a header of %zu bytes in a file of %zu", length, size);
    memcpy(buf, b + at, length);
    buf[length] = '\0';
    *start = at + length;
    return EW_OK;
}

/* Converts from column-major order, which is row-major of the reversed shape. */
static ew_err from_fortran(struct ew_arena *a, struct ew_tensor *t)
{
    struct ew_tensor reversed = *t;
    int perm[EW_MAX_RANK];
    for (int i = 0; i < t->shape.rank; i++) {
        perm[i] = t->shape.rank - 1 - i;
        reversed.shape.dim[i] = t->shape.dim[perm[i]];
    }
    t->data = ew_arena_alloc(a, ew_tensor_bytes(t));
    EW_CHECK(t->data, EW_ERR_MEMORY, "no memory for %zu bytes", ew_tensor_bytes(t));
    ew_tensor_permute(&reversed, perm, t);
    return EW_OK;
}

static ew_err read_npy(const void *bytes, size_t size, struct ew_arena *a, struct ew_tensor *out)
{
    char header[4096];
    size_t start = 0;
    EW_TRY(read_header(bytes, size, header, sizeof(header), &start));
    EW_TRY(parse_descr(header, &out->dtype));
    EW_TRY(parse_shape(header, &out->shape));
    EW_TRY(ew_shape_check(&out->shape, "the array"));
    const char *order = find_key(header, "fortran_order");
    EW_CHECK(order && (strncmp(order, "False", 5) == 0 || strncmp(order, "True", 4) == 0),
             EW_ERR_FORMAT, "the header has no 'fortran_order'");
    const size_t need = ew_tensor_bytes(out);
    char shape[EW_SHAPE_TEXT];
    EW_CHECK(size - start >= need, EW_ERR_FORMAT, "is %s of %s, but has only %zu bytes",
             ew_shape_text(&out->shape, shape), ew_dtype_name(out->dtype), size - start);
    out->data = ew_arena_alloc(a, need);
    EW_CHECK(out->data, EW_ERR_MEMORY, "no memory for %zu bytes", need);
    memcpy(out->data, (const char *)bytes + start, need);
    return *order == 'T' ? from_fortran(a, out) : EW_OK;
}

ew_err ew_npy_read(const void *bytes, size_t size, const char *what, struct ew_arena *a,
                   struct ew_tensor *out)
{
    return ew_fail_in(read_npy(bytes, size, a, out), "%s", what);
}

/* ---- Writing ---- */

ew_err ew_npy_header(const struct ew_tensor *t, const char *what, char *buf, size_t *size)
{
    const char *descr = NULL;
    for (size_t i = 0; i < EW_COUNT(types); i++)
        if (types[i].dtype == t->dtype)
            descr = types[i].descr;
    EW_CHECK(descr, EW_ERR_UNSUPPORTED, "%s: .npy has no elements of type %s", what,
             ew_dtype_name(t->dtype));
    char dims[EW_SHAPE_TEXT + 16] = "";
    size_t n = 0;
    for (int i = 0; i < t->shape.rank; i++)
        n += (size_t)snprintf(dims + n, sizeof(dims) - n, "%" PRId64 "%s", t->shape.dim[i],
                              t->shape.rank == 1      ? ","
                              : i + 1 < t->shape.rank ? ", "
                                                      : "");
    int length = snprintf(buf + 10, EW_NPY_HEADER - 10,
                          "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", descr, dims);
    while ((10 + length + 1) % 64) /* the elements start on a multiple of 64 */
        buf[10 + length++] = ' ';
    buf[10 + length++] = '\n';
    memcpy(buf, MAGIC "\x01\x00", 8);
    buf[8] = (char)(length & 255);
    buf[9] = (char)(length >> 8);
    *size = (size_t)(10 + length);
    return EW_OK;
}
