/* SPDX-License-Identifier: Apache-2.0 */
/* Builds ONNX models field by field. */
#include "onnx_build.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ew_test.h"
#include "graph/tensor.h"

static void *take(struct ew_build *b, size_t n, size_t item)
{
    void *p = ew_arena_array(&b->arena, n, item);
    if (!p)
        abort();
    return p;
}

char *ew_build_text(struct ew_build *b, const char *s)
{
    return strcpy(take(b, strlen(s) + 1, 1), s);
}

/* list[n++] = item, for protobuf-c's arrays of pointers. */
static void append(struct ew_build *b, void *list, size_t *n, void *item)
{
    void **old;
    memcpy(&old, list, sizeof(old));
    void **grown = take(b, *n + 1, sizeof(*grown));
    if (*n)
        memcpy(grown, old, *n * sizeof(*grown));
    grown[(*n)++] = item;
    memcpy(list, &grown, sizeof(grown));
}

/* Parses "1,-2,3". */
static size_t numbers(const char *text, int64_t *out)
{
    size_t n = 0;
    for (const char *p = text; *p;) {
        char *end;
        out[n++] = strtoll(p, &end, 10);
        p = *end ? end + 1 : end;
    }
    return n;
}

void ew_build_init(struct ew_build *b)
{
    ew_arena_init(&b->arena);
    ew__onnx_model__init(&b->model);
    ew__onnx_graph__init(&b->graph);
    b->graph.name = ew_build_text(b, "g");
    b->model.graph = &b->graph;
    b->model.has_ir_version = true;
    b->model.ir_version = 8;
    ew_build_opset(b, NULL, 13);
}

void ew_build_opset(struct ew_build *b, const char *domain, int64_t version)
{
    Ew__OnnxOpset *o = take(b, 1, sizeof(*o));
    ew__onnx_opset__init(o);
    o->domain = domain ? ew_build_text(b, domain) : NULL;
    o->has_version = true;
    o->version = version;
    append(b, &b->model.opset_import, &b->model.n_opset_import, o);
}

void ew_build_fini(struct ew_build *b)
{
    ew_arena_fini(&b->arena);
}

static Ew__OnnxValue *new_value(struct ew_build *b, const char *name, int type, const char *dims)
{
    Ew__OnnxValue *v = take(b, 1, sizeof(*v));
    Ew__OnnxType *t = take(b, 1, sizeof(*t));
    Ew__OnnxTensorType *tt = take(b, 1, sizeof(*tt));
    Ew__OnnxShape *s = take(b, 1, sizeof(*s));
    ew__onnx_value__init(v);
    ew__onnx_type__init(t);
    ew__onnx_tensor_type__init(tt);
    ew__onnx_shape__init(s);
    v->name = ew_build_text(b, name);
    v->type = t;
    t->tensor_type = tt;
    tt->has_elem_type = true;
    tt->elem_type = type;
    tt->shape = s;
    int64_t list[32];
    const size_t n = numbers(dims, list);
    for (size_t i = 0; i < n; i++) {
        Ew__OnnxDim *d = take(b, 1, sizeof(*d));
        ew__onnx_dim__init(d);
        d->has_dim_value = list[i] != -1;
        d->dim_value = list[i];
        if (list[i] == -1)
            d->dim_param = ew_build_text(b, i ? "D" : "N");
        append(b, &s->dim, &s->n_dim, d);
    }
    return v;
}

Ew__OnnxValue *ew_build_input(struct ew_build *b, const char *name, int type, const char *dims)
{
    Ew__OnnxValue *v = new_value(b, name, type, dims);
    append(b, &b->graph.input, &b->graph.n_input, v);
    return v;
}

Ew__OnnxValue *ew_build_output(struct ew_build *b, const char *name)
{
    Ew__OnnxValue *v = new_value(b, name, EW_PB_FLOAT, "1");
    append(b, &b->graph.output, &b->graph.n_output, v);
    return v;
}

static void add_names(struct ew_build *b, char ***list, size_t *n, const char *names)
{
    while (names && *names) {
        const size_t length = strcspn(names, ",");
        char *name = take(b, length + 1, 1);
        memcpy(name, names, length);
        append(b, list, n, name);
        names += length + (names[length] == ',');
    }
}

Ew__OnnxNode *ew_build_node(struct ew_build *b, const char *type, const char *in, const char *out)
{
    Ew__OnnxNode *n = take(b, 1, sizeof(*n));
    ew__onnx_node__init(n);
    n->op_type = ew_build_text(b, type);
    add_names(b, &n->input, &n->n_input, in);
    add_names(b, &n->output, &n->n_output, out);
    append(b, &b->graph.node, &b->graph.n_node, n);
    return n;
}

Ew__OnnxAttr *ew_build_attr(struct ew_build *b, Ew__OnnxNode *n, const char *name, int type)
{
    Ew__OnnxAttr *a = take(b, 1, sizeof(*a));
    ew__onnx_attr__init(a);
    a->name = ew_build_text(b, name);
    a->has_type = true;
    a->type = type;
    append(b, &n->attribute, &n->n_attribute, a);
    return a;
}

void ew_build_ints(struct ew_build *b, Ew__OnnxNode *n, const char *name, const char *values)
{
    Ew__OnnxAttr *a = ew_build_attr(b, n, name, EW_PB_ATTR_INTS);
    a->ints = take(b, 32, sizeof(*a->ints));
    a->n_ints = numbers(values, a->ints);
}

Ew__OnnxTensor *ew_build_init_tensor(struct ew_build *b, const char *name, int type,
                                     const char *dims)
{
    Ew__OnnxTensor *t = take(b, 1, sizeof(*t));
    ew__onnx_tensor__init(t);
    t->name = ew_build_text(b, name);
    t->has_data_type = true;
    t->data_type = type;
    t->dims = take(b, 32, sizeof(*t->dims));
    t->n_dims = numbers(dims, t->dims);
    struct ew_tensor data = {.dtype = EW_F32, .shape = {1, {1}}};
    ew_dtype_from_onnx(type, &data.dtype);
    for (size_t i = 0; i < t->n_dims; i++)
        data.shape.dim[0] *= t->dims[i] > 0 && t->dims[i] < 1000 ? t->dims[i] : 1;
    t->raw_data.len = ew_tensor_bytes(&data);
    t->raw_data.data = take(b, t->raw_data.len, 1);
    data.data = t->raw_data.data;
    for (int64_t i = 0; i < data.shape.dim[0]; i++)
        ew_tensor_store(&data, i, 1, &(double){(double)i});
    t->has_raw_data = true;
    append(b, &b->graph.initializer, &b->graph.n_initializer, t);
    return t;
}

static void add_entry(struct ew_build *b, Ew__OnnxTensor *t, const char *key, const char *value)
{
    if (!value)
        return;
    Ew__OnnxEntry *e = take(b, 1, sizeof(*e));
    ew__onnx_entry__init(e);
    e->key = ew_build_text(b, key);
    e->value = ew_build_text(b, value);
    append(b, &t->external_data, &t->n_external_data, e);
}

void ew_build_external(struct ew_build *b, Ew__OnnxTensor *t, const char *location,
                       const char *offset, const char *length)
{
    t->has_raw_data = false;
    t->has_data_location = true;
    t->data_location = 1;
    add_entry(b, t, "location", location);
    add_entry(b, t, "offset", offset);
    add_entry(b, t, "length", length);
}

void ew_build_unknown(struct ew_build *b, ProtobufCMessage *m, uint32_t tag, const char *bytes)
{
    m->unknown_fields = take(b, 1, sizeof(*m->unknown_fields));
    m->n_unknown_fields = 1;
    ProtobufCMessageUnknownField *f = m->unknown_fields;
    f->tag = tag;
    f->wire_type = PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED;
    f->len = strlen(bytes) + 1;
    f->data = take(b, f->len, 1);
    f->data[0] = (uint8_t)strlen(bytes);
    memcpy(f->data + 1, bytes, strlen(bytes));
}

const uint8_t *ew_build_pack(struct ew_build *b, size_t *size)
{
    *size = ew__onnx_model__get_packed_size(&b->model);
    uint8_t *bytes = take(b, *size + 1, 1);
    ew__onnx_model__pack(&b->model, bytes);
    return bytes;
}

const char *ew_build_file(struct ew_build *b, const char *name)
{
    size_t size;
    const uint8_t *bytes = ew_build_pack(b, &size);
    return ew_test_file(name, bytes, size);
}

void ew_build_small(struct ew_build *b)
{
    ew_build_init(b);
    ew_build_input(b, "x", EW_PB_FLOAT, "1,2,5,5");
    ew_build_init_tensor(b, "w", EW_PB_FLOAT, "3,2,3,3");
    ew_build_init_tensor(b, "b", EW_PB_FLOAT, "3");
    Ew__OnnxNode *conv = ew_build_node(b, "Conv", "x,w,b", "c");
    conv->name = ew_build_text(b, "conv1");
    ew_build_ints(b, conv, "pads", "1,1,1,1");
    ew_build_node(b, "Relu", "c", "y")->name = ew_build_text(b, "act1");
    ew_build_output(b, "y");
}
