/* SPDX-License-Identifier: Apache-2.0 */
/* Unpacking ONNX messages within memory bounds.  Their meaning is onnx_import.c's. */
#include "format/onnx_file.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/arena_move.h"

/* Bytes of memory allowed per byte of file.  A one-byte varint becomes eight bytes, and a short
 * node with its attributes about ten times its size; only a crafted file needs more. */
#define COST_PER_BYTE 32
#define COST_BASE     ((size_t)1 << 20)
#define GIVE_BACK     ((size_t)8 << 20) /* bytes unpacked between two releases of pages */

void ew_onnx_file_init(struct ew_onnx_file *f, const char *path, bool in_memory)
{
    *f = (struct ew_onnx_file){.path = path, .in_memory = in_memory};
    ew_arena_init(&f->arena);
}

void ew_onnx_file_fini(struct ew_onnx_file *f)
{
    ew_arena_fini(&f->arena);
    ew_names_fini(&f->externs);
    free(f->spans);
    free(f->extern_list);
    ew_onnx_file_init(f, NULL, false);
}

/* Messages copy what they unpack, so pages of the mapping are released progressively: the file is
 * in memory about once.  A page that is read again comes from the page cache. */
static void give_back(struct ew_onnx_file *f, size_t bytes)
{
    f->copied += bytes;
    if (!f->mapped || f->copied < GIVE_BACK)
        return;
    f->copied = 0;
    madvise(f->mapped, f->mapped_size, MADV_DONTNEED);
}

static void *take(void *file, size_t bytes)
{
    struct ew_onnx_file *f = file;
    if (bytes > f->limit - f->spent)
        return NULL;
    f->spent += bytes;
    give_back(f, bytes);
    return ew_arena_alloc(&f->arena, bytes);
}

/* protobuf-c's free: a no-op, since the arena is freed as a whole.  A file that makes protobuf-c
 * copy the same list again and again (a graph in a thousand pieces) therefore hits the limit. */
static void leave(void *file, void *p)
{
}

ew_err ew_onnx_unpack(struct ew_onnx_file *f, const void *bytes, size_t size,
                      const ProtobufCMessageDescriptor *type, ProtobufCMessage **out)
{
    EW_CHECK(size > 0, EW_ERR_FORMAT, "the file is empty");
    EW_CHECK(size <= INT32_MAX, EW_ERR_LIMIT, "the file has %zu bytes, protobuf allows 2 GiB",
             size);
    f->limit = f->spent + COST_BASE + COST_PER_BYTE * size;
    ProtobufCAllocator allocator = {.alloc = take, .free = leave, .allocator_data = f};
    const size_t before = f->spent;
    *out = protobuf_c_message_unpack(type, &allocator, size, bytes);
    EW_CHECK(!f->arena.failed, EW_ERR_MEMORY, "no memory for a file of %zu bytes", size);
    EW_CHECK(*out || f->spent - before < COST_BASE, EW_ERR_FORMAT,
             "is damaged, or asks for far more memory than its %zu bytes need", size);
    EW_CHECK(*out, EW_ERR_FORMAT, "is damaged, or not %s file",
             type == &ew__onnx_model__descriptor ? "an ONNX" : "such a");
    return EW_OK;
}

bool ew_onnx_has_unknown(const ProtobufCMessage *m, uint32_t tag)
{
    for (unsigned i = 0; i < m->n_unknown_fields; i++)
        if (m->unknown_fields[i].tag == tag)
            return true;
    return false;
}

/* ---- Moving large data to the graph ---- */

static int by_start(const void *a, const void *b)
{
    const struct ew_onnx_span *x = a, *y = b;
    return (x->start > y->start) - (x->start < y->start);
}

/* The span that p points into, or NULL. */
static struct ew_onnx_span *find_span(struct ew_onnx_file *f, const char *p)
{
    int lo = 0, hi = f->n_spans;
    while (lo < hi) {
        const int mid = lo + (hi - lo) / 2;
        if (p < f->spans[mid].start)
            hi = mid;
        else
            lo = mid + 1;
    }
    struct ew_onnx_span *s = lo ? &f->spans[lo - 1] : NULL;
    return s && p < s->start + s->bytes ? s : NULL;
}

void ew_onnx_file_hand_over(struct ew_onnx_file *f, struct ew_graph *g)
{
    if (f->n_spans)
        qsort(f->spans, (size_t)f->n_spans, sizeof(*f->spans), by_start);
    for (int i = 0; i < g->n_values; i++) {
        const void *data = g->values[i].t.data;
        struct ew_onnx_span *s = data ? find_span(f, data) : NULL;
        if (s && !s->copy && ew_arena_move(&g->arena, &f->arena, s->start, s->bytes))
            s->copy = s->start;
    }
}

ew_err ew_onnx_file_keep(struct ew_onnx_file *f, struct ew_graph *g)
{
    if (f->n_spans)
        qsort(f->spans, (size_t)f->n_spans, sizeof(*f->spans), by_start);
    for (int i = 0; i < g->n_values; i++) {
        struct ew_tensor *t = &g->values[i].t;
        struct ew_onnx_span *s = t->data ? find_span(f, t->data) : NULL;
        if (!s)
            continue;
        if (!s->copy && ew_arena_move(&g->arena, &f->arena, s->start, s->bytes))
            s->copy = s->start;
        if (!s->copy) {
            s->copy = ew_arena_alloc(&g->arena, s->bytes);
            EW_CHECK(s->copy, EW_ERR_MEMORY, "no memory for %zu bytes of %s", s->bytes,
                     g->values[i].name);
            memcpy(s->copy, s->start, s->bytes);
        }
        t->data = s->copy + ((const char *)t->data - s->start);
    }
    return EW_OK;
}
