/* SPDX-License-Identifier: Apache-2.0 */
/* Import of XIR files: sources, order, outputs.  Operators are in xir_nodes.c. */
#include <string.h>

#include "base/file.h"
#include "format/xir.h"
#include "format/xir_in.h"
#include "graph/ops.h"

#define MAX_FILE  ((size_t)INT32_MAX) /* what protobuf allows */
#define MAX_NOTES 1000

enum { FLOAT = 4 };

/* ---- Attributes and arguments ---- */

static const Ew__XirAttr *find(Ew__XirEntry *const *list, size_t n, const char *key)
{
    for (size_t i = 0; i < n; i++)
        if (list[i]->key && list[i]->value && strcmp(list[i]->key, key) == 0)
            return list[i]->value;
    return NULL;
}

const Ew__XirAttr *ew_xir_attr(const struct ew_xir_in *in, const char *key)
{
    return find(in->op->op_attr, in->op->n_op_attr, key);
}

int64_t ew_xir_get_int(const struct ew_xir_in *in, const char *key, int64_t def)
{
    const Ew__XirAttr *a = ew_xir_attr(in, key);
    return !a                    ? def
           : a->has_int32_value  ? a->int32_value
           : a->has_bool_value   ? a->bool_value
           : a->has_int64_value  ? a->int64_value
           : a->has_uint32_value ? a->uint32_value
                                 : def;
}

const char *ew_xir_get_text(const struct ew_xir_in *in, const char *key, const char *def)
{
    const Ew__XirAttr *a = ew_xir_attr(in, key);
    return a && a->string_value ? a->string_value : def;
}

ew_err ew_xir_get_ints(const struct ew_xir_in *in, const char *key, int n, int64_t least,
                       struct ew_ints *out)
{
    const Ew__XirAttr *a = ew_xir_attr(in, key);
    const Ew__XirInts *list = a ? a->int32_vec_value : NULL;
    EW_CHECK(list && list->n_value <= EW_MAX_RANK && (n < 0 || list->n_value == (size_t)n),
             EW_ERR_FORMAT, "attribute %s has %zu numbers", key, list ? list->n_value : 0);
    *out = (struct ew_ints){.n = (int)list->n_value};
    for (int i = 0; i < out->n; i++) {
        out->v[i] = list->value[i];
        EW_CHECK(out->v[i] >= least, EW_ERR_FORMAT, "attribute %s has a %lld", key,
                 (long long)out->v[i]);
    }
    return EW_OK;
}

ew_err ew_xir_args(struct ew_xir_in *in, const char *key, int most, int *values, int *n)
{
    *n = 0;
    for (size_t i = 0; i < in->op->n_args; i++) {
        const Ew__XirArg *a = in->op->args[i];
        if (strcmp(ew_onnx_text(a->arg_name), key) != 0)
            continue;
        EW_CHECK(a->n_arg_ops <= (size_t)(most - *n), EW_ERR_FORMAT, "argument %s has %zu entries",
                 key, a->n_arg_ops);
        for (size_t k = 0; k < a->n_arg_ops; k++) {
            const int from = ew_names_find(&in->names, ew_onnx_text(a->arg_ops[k]));
            EW_CHECK(from >= 0, EW_ERR_FORMAT, "it reads %.150s, which nothing before it makes",
                     ew_onnx_text(a->arg_ops[k]));
            in->read[from] = true;
            values[(*n)++] = in->value[from];
        }
    }
    return EW_OK;
}

ew_err ew_xir_one(struct ew_xir_in *in, const char *key, int *value)
{
    int n;
    EW_TRY(ew_xir_args(in, key, 1, value, &n));
    EW_CHECK(n == 1, EW_ERR_FORMAT, "argument %s is missing", key);
    return EW_OK;
}

/* ---- Sources ---- */

static ew_err get_shape(const struct ew_xir_in *in, struct ew_shape *out)
{
    const Ew__XirTensor *t = in->op->output_tensor;
    EW_CHECK(t && t->n_tensor_dim <= EW_MAX_RANK, EW_ERR_FORMAT, "its output has no shape");
    EW_CHECK(t->data_type == FLOAT && t->tensor_bit_width == 32, EW_ERR_UNSUPPORTED,
             "its output has type %d of %d bits: only float32 is read (a compiled file has others)",
             t->data_type, t->tensor_bit_width);
    *out = (struct ew_shape){.rank = (int32_t)t->n_tensor_dim};
    for (size_t i = 0; i < t->n_tensor_dim; i++)
        out->dim[i] = t->tensor_dim[i];
    return ew_shape_check(out, in->op->op_name);
}

static ew_err get_data(struct ew_xir_in *in, int *value)
{
    struct ew_shape s;
    EW_TRY(get_shape(in, &s));
    EW_TRY(ew_graph_input(in->g, in->op->op_name, EW_F32, &s, value));
    in->g->values[*value].dynamic = s.rank > 0;
    in->g->values[*value].channels_last = s.rank == 4;
    return EW_OK;
}

static ew_err get_const(struct ew_xir_in *in, int *value)
{
    struct ew_tensor t = {.dtype = EW_F32};
    const Ew__XirAttr *a = ew_xir_attr(in, "data");
    EW_TRY(get_shape(in, &t.shape));
    EW_CHECK(a && a->bytes_value && a->bytes_value->value.len == ew_tensor_bytes(&t), EW_ERR_FORMAT,
             "it has %zu bytes of data, its shape says %zu",
             a && a->bytes_value ? a->bytes_value->value.len : 0, ew_tensor_bytes(&t));
    t.data = a->bytes_value->value.data;
    return ew_graph_const(in->g, in->op->op_name, EW_VALUE_CONST, &t, true, value);
}

/* ---- Import ---- */

/* Checks an operator's shape in the file against the inferred one. */
static ew_err check_shape(const struct ew_xir_in *in, int value)
{
    const Ew__XirTensor *t = in->op->output_tensor;
    const struct ew_shape *s = &in->g->values[value].t.shape;
    bool same = !t || t->n_tensor_dim == (size_t)s->rank || s->rank == 0;
    for (int i = 0; t && same && i < s->rank; i++)
        same = t->tensor_dim[i] == (uint64_t)s->dim[i];
    EW_CHECK(same, EW_ERR_FORMAT, "its shape is not what its inputs give");
    return EW_OK;
}

static ew_err get_op(struct ew_xir_in *in, int k)
{
    const char *type = ew_onnx_text(in->op->op_type);
    EW_CHECK(in->op->op_name && ew_names_find(&in->names, in->op->op_name) < 0, EW_ERR_FORMAT,
             "there are two operators of that name");
    if (strcmp(type, "data") == 0) {
        EW_TRY(get_data(in, &in->value[k]));
    } else if (strcmp(type, "const") == 0) {
        EW_TRY(get_const(in, &in->value[k]));
    } else {
        EW_TRY(ew_xir_get_node(in, &in->value[k]));
        EW_TRY(check_shape(in, in->value[k]));
    }
    return ew_names_add(&in->names, in->op->op_name, k);
}

static ew_err get_ops(struct ew_xir_in *in)
{
    const size_t n = in->graph->n_op_node;
    in->value = ew_arena_array(&in->file.arena, n + 1, sizeof(*in->value));
    in->read = ew_arena_array(&in->file.arena, n + 1, sizeof(*in->read));
    EW_CHECK(in->value && in->read, EW_ERR_MEMORY, "no memory for %zu operators", n);
    for (size_t k = 0; k < n; k++) {
        in->op = in->graph->op_node[k];
        EW_TRY(ew_fail_in(get_op(in, (int)k), "operator %.150s (%.50s)",
                          ew_onnx_text(in->op->op_name), ew_onnx_text(in->op->op_type)));
    }
    return EW_OK;
}

/* XIR has no list of outputs: they are the operators without readers. */
static ew_err get_outputs(struct ew_xir_in *in)
{
    for (size_t k = 0; k < in->graph->n_op_node; k++) {
        int value = in->value[k];
        const char *name = in->graph->op_node[k]->op_name;
        if (in->read[k] || in->g->values[value].kind == EW_VALUE_CONST)
            continue;
        bool plain = in->g->values[value].kind == EW_VALUE_ACT;
        for (int i = 0; i < in->g->n_outputs; i++)
            plain &= in->g->outputs[i] != value;
        if (!plain)
            EW_TRY(ew_graph_add(in->g, &ew_op_identity, NULL, NULL, EW_INPUTS(value), &value));
        EW_TRY(ew_graph_claim_name(in->g, value, name));
        EW_TRY(ew_graph_output(in->g, value));
    }
    EW_CHECK(in->g->n_outputs > 0, EW_ERR_FORMAT, "the graph has no operators");
    return EW_OK;
}

static ew_err get_notes(struct ew_xir_in *in)
{
    for (size_t i = 0; i < in->graph->n_graph_attr && i < MAX_NOTES; i++) {
        const Ew__XirEntry *e = in->graph->graph_attr[i];
        if (e->key && e->value && e->value->string_value)
            EW_TRY(ew_graph_note_set(in->g, e->key, e->value->string_value));
    }
    return EW_OK;
}

static ew_err get_graph(struct ew_xir_in *in, const void *bytes, size_t size)
{
    ProtobufCMessage *m;
    EW_TRY(ew_onnx_unpack(&in->file, bytes, size, &ew__xir_graph__descriptor, &m));
    in->graph = (const Ew__XirGraph *)(const void *)m;
    const char *name = ew_onnx_text(in->graph->graph_name);
    EW_TRY(ew_graph_new(*name ? name : "xir", &in->g));
    EW_TRY(get_ops(in));
    EW_TRY(get_outputs(in));
    EW_TRY(get_notes(in));
    EW_TRY(ew_graph_sweep(in->g));
    EW_TRY(ew_graph_mark_params(in->g));
    EW_TRY(ew_graph_infer(in->g));
    return ew_graph_check(in->g);
}

ew_err ew_xir_parse(const void *bytes, size_t size, const char *name, struct ew_graph **out)
{
    struct ew_xir_in in = {0};
    ew_onnx_file_init(&in.file, name, true);
    const ew_err e = get_graph(&in, bytes, size);
    if (e == EW_OK)
        *out = in.g;
    else
        ew_graph_free(in.g);
    ew_names_fini(&in.names);
    ew_onnx_file_fini(&in.file);
    return ew_fail_in(e, "%s", name);
}

ew_err ew_xir_load(const char *path, struct ew_graph **out)
{
    EW_CLEANUP(ew_free_ptr) char *bytes = NULL;
    size_t size;
    EW_TRY(ew_file_read(path, MAX_FILE, &bytes, &size));
    return ew_xir_parse(bytes, size, path, out);
}
