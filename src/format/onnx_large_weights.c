/* SPDX-License-Identifier: Apache-2.0 */
/* Walks the wire format (protobuf's "Encoding") down to model.graph.initializer[].raw_data. */
#include "format/onnx_large_weights.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define LARGE ((size_t)4 << 20) /* bytes from which a weight is cut out */
#define PIECE ((size_t)4 << 20) /* bytes copied between two releases of pages */

enum { MODEL_GRAPH = 7, GRAPH_INITIALIZER = 5, TENSOR_RAW_DATA = 9 };
enum { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

#define TAG(field) ((uint8_t)((field) << 3 | WIRE_BYTES))

struct reader {
    const uint8_t *at, *end;
};

struct field {
    uint64_t number;
    int wire;
    const uint8_t *start, *body, *end; /* start with the tag; body without */
};

static bool read_varint(struct reader *r, uint64_t *out)
{
    *out = 0;
    for (int shift = 0; shift < 64 && r->at < r->end; shift += 7) {
        const uint8_t byte = *r->at++;
        *out |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return true;
    }
    return false;
}

/* False at the end, or with *broken where the wire format is violated. */
static bool next_field(struct reader *r, struct field *f, bool *broken)
{
    uint64_t tag, size = 0;
    if (r->at == r->end)
        return false;
    *broken = true;
    f->start = r->at;
    if (!read_varint(r, &tag))
        return false;
    f->number = tag >> 3;
    f->wire = (int)(tag & 7);
    f->body = r->at;
    if (f->wire == WIRE_VARINT && !read_varint(r, &size))
        return false;
    if (f->wire == WIRE_BYTES && !read_varint(r, &size))
        return false;
    if (f->wire == WIRE_BYTES)
        f->body = r->at;
    else if (f->wire == WIRE_VARINT)
        size = 0;
    else if (f->wire == WIRE_64 || f->wire == WIRE_32)
        size = f->wire == WIRE_64 ? 8 : 4;
    else
        return false; /* groups, which ONNX does not use */
    if (size > (uint64_t)(r->end - r->at))
        return false;
    r->at += size;
    f->end = r->at;
    *broken = false;
    return true;
}

/* ---- Finding ---- */

static ew_err look_at_tensor(struct ew_onnx_large_weights *l, const struct field *tensor,
                             size_t index, bool *broken)
{
    struct reader r = {tensor->body, tensor->end};
    struct field f, raw = {0};
    int found = 0;
    while (next_field(&r, &f, broken))
        if (f.number == TENSOR_RAW_DATA && f.wire == WIRE_BYTES) {
            raw = f;
            found++;
        }
    const size_t bytes = found == 1 ? (size_t)(raw.end - raw.body) : 0;
    if (*broken || bytes < LARGE)
        return EW_OK;
    EW_TRY(ew_grow((void **)&l->list, &l->cap, l->n + 1, sizeof(*l->list)));
    l->list[l->n++] = (struct ew_onnx_large_weight){.initializer = index,
                                                    .data = raw.body,
                                                    .bytes = bytes,
                                                    .field = tensor->start,
                                                    .body = tensor->body,
                                                    .field_end = tensor->end,
                                                    .raw = raw.start,
                                                    .raw_end = raw.end};
    return EW_OK;
}

static ew_err look_at_graph(struct ew_onnx_large_weights *l, const struct field *graph,
                            bool *broken)
{
    struct reader r = {graph->body, graph->end};
    struct field f;
    size_t index = 0;
    while (next_field(&r, &f, broken))
        if (f.number == GRAPH_INITIALIZER && f.wire == WIRE_BYTES) {
            EW_TRY(look_at_tensor(l, &f, index++, broken));
            if (*broken)
                break;
        }
    return EW_OK;
}

/* Finds the model's graph; false: not exactly one. */
static bool find_graph(const void *file, size_t bytes, struct field *graph)
{
    struct reader r = {file, (const uint8_t *)file + bytes};
    struct field f;
    bool broken = false;
    int graphs = 0;
    while (next_field(&r, &f, &broken))
        if (f.number == MODEL_GRAPH && f.wire == WIRE_BYTES) {
            *graph = f;
            graphs++;
        }
    return !broken && graphs == 1;
}

/* ---- The rest of the file ---- */

static size_t varint_size(uint64_t v)
{
    size_t n = 1;
    for (; v >= 0x80; v >>= 7)
        n++;
    return n;
}

static uint8_t *put_head(uint8_t *to, int field, uint64_t size)
{
    *to++ = TAG(field);
    for (; size >= 0x80; size >>= 7)
        *to++ = (uint8_t)(size | 0x80);
    *to++ = (uint8_t)size;
    return to;
}

static uint8_t *put_bytes(uint8_t *to, const uint8_t *from, const uint8_t *end)
{
    memcpy(to, from, (size_t)(end - from));
    return to + (end - from);
}

/* Size of the initializer with an empty raw_data. */
static size_t tensor_rest(const struct ew_onnx_large_weight *t)
{
    return (size_t)(t->field_end - t->body) - (size_t)(t->raw_end - t->raw) + 2;
}

static size_t graph_rest(const struct ew_onnx_large_weights *l, const struct field *graph)
{
    size_t size = (size_t)(graph->end - graph->body);
    for (int i = 0; i < l->n; i++) {
        const size_t rest = tensor_rest(&l->list[i]);
        size -= (size_t)(l->list[i].field_end - l->list[i].field);
        size += 1 + varint_size(rest) + rest;
    }
    return size;
}

static ew_err write_rest(struct ew_onnx_large_weights *l, const struct field *graph,
                         const uint8_t *file, size_t bytes)
{
    const size_t inner = graph_rest(l, graph);
    const size_t outer = bytes - (size_t)(graph->end - graph->start);
    l->rest_bytes = outer + 1 + varint_size(inner) + inner;
    l->rest = malloc(l->rest_bytes);
    EW_CHECK(l->rest, EW_ERR_MEMORY, "no memory for %zu bytes", l->rest_bytes);
    uint8_t *to = put_head(put_bytes(l->rest, file, graph->start), MODEL_GRAPH, inner);
    const uint8_t *at = graph->body;
    for (int i = 0; i < l->n; i++) {
        const struct ew_onnx_large_weight *t = &l->list[i];
        to = put_head(put_bytes(to, at, t->field), GRAPH_INITIALIZER, tensor_rest(t));
        to = put_head(put_bytes(to, t->body, t->raw), TENSOR_RAW_DATA, 0);
        to = put_bytes(to, t->raw_end, t->field_end);
        at = t->field_end;
    }
    to = put_bytes(to, at, graph->end);
    to = put_bytes(to, graph->end, file + bytes);
    EW_ASSERT((size_t)(to - l->rest) == l->rest_bytes);
    return EW_OK;
}

ew_err ew_onnx_large_weights_find(struct ew_onnx_large_weights *l, const void *file, size_t bytes)
{
    struct field graph = {0};
    bool broken = false;
    *l = (struct ew_onnx_large_weights){0};
    if (bytes < LARGE || !find_graph(file, bytes, &graph))
        return EW_OK;
    EW_TRY(look_at_graph(l, &graph, &broken));
    if (broken)
        l->n = 0;
    return l->n ? write_rest(l, &graph, file, bytes) : EW_OK;
}

void ew_onnx_large_weights_fini(struct ew_onnx_large_weights *l)
{
    free(l->list);
    free(l->rest);
    *l = (struct ew_onnx_large_weights){0};
}

/* ---- Putting the data back ---- */

/* Copies, releasing whole pages behind. */
static void copy_out(uint8_t *to, const uint8_t *from, size_t bytes)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    for (size_t done = 0; done < bytes;) {
        const size_t n = bytes - done < PIECE ? bytes - done : PIECE;
        memcpy(to + done, from + done, n);
        const uintptr_t begin = ((uintptr_t)(from + done) + page - 1) / page * page;
        const uintptr_t end = (uintptr_t)(from + done + n) / page * page;
        if (begin < end)
            (void)madvise((void *)begin, end - begin, MADV_DONTNEED);
        done += n;
    }
}

ew_err ew_onnx_large_weights_copy(const struct ew_onnx_large_weights *l, struct ew_onnx_file *f,
                                  Ew__OnnxModel *model)
{
    for (int i = 0; i < l->n; i++) {
        const struct ew_onnx_large_weight *t = &l->list[i];
        EW_CHECK(model->graph && t->initializer < model->graph->n_initializer, EW_ERR_FORMAT,
                 "is damaged: it has no initializer %zu", t->initializer);
        uint8_t *data = ew_arena_alloc(&f->arena, t->bytes);
        EW_CHECK(data, EW_ERR_MEMORY, "no memory for %zu bytes of weights", t->bytes);
        copy_out(data, t->data, t->bytes);
        model->graph->initializer[t->initializer]->raw_data = (ProtobufCBinaryData){t->bytes, data};
    }
    return EW_OK;
}
