/* SPDX-License-Identifier: Apache-2.0 */
/* Writing an ONNX model.  The two outer message levels are framed by hand, so that weights are
 * written from the graph without a copy in memory. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "format/onnx_export.h"

/* Tags of length-delimited fields: number << 3 | 2. */
#define TAG_MODEL_GRAPH (7 << 3 | 2)
#define TAG_GRAPH_INIT  (5 << 3 | 2)
#define TAG_TENSOR_RAW  (9 << 3 | 2)

#define EXTERNAL_MIN   ((size_t)1 << 10) /* bytes below which tensors stay in the model */
#define EXTERNAL_ALIGN 64

static size_t varint(uint64_t v, uint8_t *buf)
{
    size_t n = 0;
    for (; v >= 128; v >>= 7)
        buf[n++] = (uint8_t)(v | 128);
    buf[n++] = (uint8_t)v;
    return n;
}

/* Size of a one-byte tag and a length. */
static size_t frame_size(uint64_t length)
{
    uint8_t buf[10];
    return 1 + varint(length, buf);
}

static ew_err put(FILE *f, const void *bytes, size_t n)
{
    EW_CHECK(n == 0 || fwrite(bytes, 1, n, f) == n, EW_ERR_IO, "%s", strerror(errno));
    return EW_OK;
}

static ew_err put_frame(FILE *f, int tag, uint64_t length)
{
    uint8_t buf[11] = {(uint8_t)tag};
    return put(f, buf, 1 + varint(length, buf + 1));
}

static ew_err put_message(FILE *f, const ProtobufCMessage *m)
{
    const size_t size = protobuf_c_message_get_packed_size(m);
    EW_CLEANUP(ew_free_ptr) uint8_t *bytes = malloc(size + 1);
    EW_CHECK(bytes, EW_ERR_MEMORY, "no memory for %zu bytes", size);
    protobuf_c_message_pack(m, bytes);
    return put(f, bytes, size);
}

/* ---- Tensors ---- */

/* An initializer: its message without elements, and the elements to be written inline. */
struct item {
    Ew__OnnxTensor head;
    const struct ew_tensor *raw; /* NULL: in the external file */
    int64_t offset;              /* in the external file */
};

static uint64_t item_size(const struct item *it)
{
    const uint64_t head = ew__onnx_tensor__get_packed_size(&it->head);
    const uint64_t raw = it->raw ? ew_tensor_bytes(it->raw) : 0;
    return head + (it->raw ? frame_size(raw) + raw : 0);
}

static uint64_t items_size(const struct item *items, int n)
{
    uint64_t total = 0;
    for (int i = 0; i < n; i++)
        total += frame_size(item_size(&items[i])) + item_size(&items[i]);
    return total;
}

static ew_err make_item(struct ew_onnx_out *o, int i, struct item *out)
{
    EW_TRY(ew_onnx_put_tensor(&o->arena, &o->inits[i].t, o->inits[i].name, &out->head));
    out->head.has_raw_data = false;
    out->raw = &o->inits[i].t;
    return EW_OK;
}

static Ew__OnnxEntry *entry(struct ew_arena *a, const char *key, const char *value)
{
    Ew__OnnxEntry *e = ew_arena_alloc(a, sizeof(*e));
    if (!e)
        return NULL;
    ew__onnx_entry__init(e);
    e->key = ew_arena_strdup(a, key);
    e->value = ew_arena_strdup(a, value);
    return e;
}

/* Moves the item's elements to the external file at *end. */
static ew_err make_external(struct ew_onnx_out *o, const char *location, struct item *it,
                            int64_t *end)
{
    const size_t bytes = ew_tensor_bytes(it->raw);
    char offset[24], length[24];
    it->offset = (*end + EXTERNAL_ALIGN - 1) / EXTERNAL_ALIGN * EXTERNAL_ALIGN;
    *end = it->offset + (int64_t)bytes;
    snprintf(offset, sizeof(offset), "%lld", (long long)it->offset);
    snprintf(length, sizeof(length), "%zu", bytes);
    Ew__OnnxEntry **list = ew_arena_array(&o->arena, 3, sizeof(*list));
    EW_CHECK(list, EW_ERR_MEMORY, "no memory");
    list[0] = entry(&o->arena, "location", location);
    list[1] = entry(&o->arena, "offset", offset);
    list[2] = entry(&o->arena, "length", length);
    EW_CHECK(!o->arena.failed, EW_ERR_MEMORY, "no memory");
    it->head.external_data = list;
    it->head.n_external_data = 3;
    it->head.has_data_location = true;
    it->head.data_location = 1;
    it->raw = NULL;
    return EW_OK;
}

/* ---- Files ---- */

static ew_err put_model(FILE *f, const struct ew_onnx_out *o, const struct item *items)
{
    const uint64_t graph = ew__onnx_graph__get_packed_size(&o->graph);
    EW_TRY(put_message(f, &o->model.base));
    EW_TRY(put_frame(f, TAG_MODEL_GRAPH, graph + items_size(items, o->n_inits)));
    EW_TRY(put_message(f, &o->graph.base));
    for (int i = 0; i < o->n_inits; i++) {
        EW_TRY(put_frame(f, TAG_GRAPH_INIT, item_size(&items[i])));
        EW_TRY(put_message(f, &items[i].head.base));
        if (!items[i].raw)
            continue;
        EW_TRY(put_frame(f, TAG_TENSOR_RAW, ew_tensor_bytes(items[i].raw)));
        EW_TRY(put(f, items[i].raw->data, ew_tensor_bytes(items[i].raw)));
    }
    return EW_OK;
}

static ew_err put_externals(FILE *f, const struct ew_onnx_out *o, const struct item *items)
{
    static const char zeros[EXTERNAL_ALIGN];
    int64_t at = 0;
    for (int i = 0; i < o->n_inits; i++) {
        if (items[i].raw)
            continue;
        EW_TRY(put(f, zeros, (size_t)(items[i].offset - at)));
        EW_TRY(put(f, o->inits[i].t.data, ew_tensor_bytes(&o->inits[i].t)));
        at = items[i].offset + (int64_t)ew_tensor_bytes(&o->inits[i].t);
    }
    return EW_OK;
}

/* Opens and fills a file; on failure it is aborted. */
static ew_err fill_file(const char *path, const struct ew_onnx_out *o, const struct item *items,
                        ew_err (*fill)(FILE *, const struct ew_onnx_out *, const struct item *),
                        struct ew_file_out *out)
{
    EW_TRY(o->replace ? ew_file_out_replace(path, out) : ew_file_out_open(path, out));
    const ew_err e = fill(out->f, o, items);
    if (e == EW_OK)
        return EW_OK;
    ew_file_out_abort(out);
    return ew_fail_in(e, "%s", path);
}

/* `data`: path of the external file; NULL: none. */
static ew_err write_files(const char *path, const char *data, const struct ew_onnx_out *o,
                          const struct item *items)
{
    struct ew_file_out model, beside;
    EW_TRY(fill_file(path, o, items, put_model, &model));
    if (!data)
        return ew_file_out_commit(&model);
    const ew_err e = fill_file(data, o, items, put_externals, &beside);
    if (e == EW_OK)
        return ew_file_out_commit_both(&beside, &model);
    ew_file_out_abort(&model);
    return e;
}

ew_err ew_onnx_write(struct ew_onnx_out *o, const char *path, int64_t limit)
{
    struct item *items = ew_arena_array(&o->arena, (size_t)o->n_inits, sizeof(*items));
    EW_CHECK(items, EW_ERR_MEMORY, "no memory for %d tensors", o->n_inits);
    for (int i = 0; i < o->n_inits; i++)
        EW_TRY(make_item(o, i, &items[i]));
    const uint64_t rest = ew__onnx_model__get_packed_size(&o->model) +
                          ew__onnx_graph__get_packed_size(&o->graph) + 16;
    const char *data = NULL;
    if (rest + items_size(items, o->n_inits) > (uint64_t)limit) {
        const char *slash = strrchr(path, '/');
        data = ew_arena_printf(&o->arena, "%s.data", path);
        EW_CHECK(data, EW_ERR_MEMORY, "no memory");
        const char *location = slash ? data + (slash - path) + 1 : data;
        int64_t end = 0;
        for (int i = 0; i < o->n_inits; i++)
            if (ew_tensor_bytes(&o->inits[i].t) >= EXTERNAL_MIN)
                EW_TRY(make_external(o, location, &items[i], &end));
        EW_CHECK(rest + items_size(items, o->n_inits) <= INT32_MAX, EW_ERR_LIMIT,
                 "%s: has more than 2 GiB besides large tensors", path);
    }
    return write_files(path, data, o, items);
}
