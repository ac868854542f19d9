/* SPDX-License-Identifier: Apache-2.0 */
/* Conversion of a graph to ONNX messages: layout, nodes through their operators' hooks,
 * initializers.  The file is written by onnx_write.c. */
#include "format/onnx_export.h"

#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/sized.h"
#include "format/onnx_replace.h"
#include "graph/onnx.h"
#include "graph/ops.h"

#define OPSET 13 /* supported by all current readers */
/* Iterations of find_opset: raising the opset for one node may make another raise it again. */
#define OPSET_PASSES 4

/* AttributeProto.AttributeType */
enum { FLOAT = 1, INT, STRING, TENSOR, GRAPH, FLOATS, INTS };

struct export
{
    struct ew_onnx_out out;
    struct ew_graph *g; /* a copy, in ONNX's layout */
    int64_t batch;      /* 0: symbolic */
    bool *batched;      /* [output][EW_MAX_RANK]: the dimension varies with the batch */
    int opset;
    bool *written; /* by value: its initializer is written */
};

static char *text(struct export *x, const char *s)
{
    return ew_arena_strdup(&x->out.arena, s ? s : "");
}

static ew_err add_init(struct export *x, const char *name, const struct ew_tensor *t)
{
    struct ew_onnx_out *o = &x->out;
    EW_TRY(ew_grow((void **)&o->inits, &o->cap_inits, o->n_inits + 1, sizeof(*o->inits)));
    o->inits[o->n_inits++] = (struct ew_onnx_init){.name = name, .t = *t};
    return EW_OK;
}

/* Writes a value that is no node's output as an initializer, once. */
static ew_err need_value(struct export *x, int value)
{
    const struct ew_value *v = &x->g->values[value];
    if (!ew_value_is_weight(v) || x->written[value])
        return EW_OK;
    EW_CHECK(v->t.data, EW_ERR_ARG, "%s: its weights have not been loaded or initialised", v->name);
    x->written[value] = true;
    return add_init(x, v->name, &v->t);
}

/* ---- Nodes ---- */

static ew_err put_attr(struct export *x, const struct ew_onnx_attr *a, Ew__OnnxAttr *m)
{
    static const int types[] = {INT, FLOAT, STRING, INTS, FLOATS, TENSOR, 0};
    struct ew_arena *arena = &x->out.arena;
    ew__onnx_attr__init(m);
    m->name = text(x, a->name);
    m->has_type = true;
    m->type = types[a->type];
    switch (a->type) {
    case EW_ONNX_INT:
        m->has_i = true;
        m->i = a->i;
        break;
    case EW_ONNX_FLOAT:
        m->has_f = true;
        m->f = a->f;
        break;
    case EW_ONNX_STRING:
        m->has_s = true;
        m->s = (ProtobufCBinaryData){strlen(a->s), (uint8_t *)text(x, a->s)};
        break;
    case EW_ONNX_INTS:
        m->n_ints = (size_t)a->n;
        m->ints = ew_arena_array(arena, m->n_ints, sizeof(*m->ints));
        for (size_t i = 0; m->ints && i < m->n_ints; i++)
            m->ints[i] = a->ints[i];
        break;
    case EW_ONNX_FLOATS:
        m->n_floats = (size_t)a->n;
        m->floats = ew_arena_array(arena, m->n_floats, sizeof(*m->floats));
        for (size_t i = 0; m->floats && i < m->n_floats; i++)
            m->floats[i] = a->floats[i];
        break;
    case EW_ONNX_TENSOR:
        m->t = ew_arena_alloc(arena, sizeof(*m->t));
        EW_CHECK(m->t, EW_ERR_MEMORY, "no memory");
        EW_TRY(ew_onnx_put_tensor(arena, &a->tensor, a->name, m->t));
        break;
    case EW_ONNX_OTHER:
        return ew_fail(EW_ERR_INTERNAL, "attribute %s cannot be written", a->name);
    }
    EW_CHECK(!arena->failed, EW_ERR_MEMORY, "no memory for attribute %s", a->name);
    return EW_OK;
}

static ew_err put_attrs(struct export *x, const struct ew_onnx_node *n, Ew__OnnxNode *m)
{
    m->attribute = ew_arena_array(&x->out.arena, (size_t)n->n_attrs, sizeof(*m->attribute));
    Ew__OnnxAttr *attrs = ew_arena_array(&x->out.arena, (size_t)n->n_attrs, sizeof(*attrs));
    EW_CHECK(m->attribute && attrs, EW_ERR_MEMORY, "no memory");
    m->n_attribute = (size_t)n->n_attrs;
    for (int i = 0; i < n->n_attrs; i++) {
        EW_TRY(put_attr(x, &n->attrs[i], &attrs[i]));
        m->attribute[i] = &attrs[i];
    }
    return EW_OK;
}

/* A unique name for a constant or output that exists only in the file. */
static char *own_name(struct export *x, const struct ew_onnx_node *n, int node, const char *kind,
                      int slot)
{
    char *name = ew_arena_printf(&x->out.arena, "%s_%d_%s%d", n->name, node, kind, slot);
    while (name && ew_graph_find(x->g, name) >= 0)
        name = ew_arena_printf(&x->out.arena, "%s_", name);
    return name;
}

static ew_err put_ports(struct export *x, const struct ew_onnx_node *n, int node, Ew__OnnxNode *m)
{
    const struct ew_node *from = &x->g->nodes[node];
    m->input = ew_arena_array(&x->out.arena, (size_t)n->n_in, sizeof(*m->input));
    m->output = ew_arena_array(&x->out.arena, (size_t)n->n_out, sizeof(*m->output));
    EW_CHECK(m->input && m->output, EW_ERR_MEMORY, "no memory");
    m->n_input = (size_t)n->n_in;
    m->n_output = (size_t)n->n_out;
    for (int i = 0; i < n->n_in; i++) {
        if (n->in[i] >= 0)
            EW_TRY(need_value(x, n->in[i]));
        m->input[i] = text(x, n->in[i] < 0 ? "" : x->g->values[n->in[i]].name);
    }
    for (int i = 0; i < n->n_consts; i++) {
        char *name = own_name(x, n, node, "in", n->consts[i].slot);
        EW_CHECK(name, EW_ERR_MEMORY, "no memory");
        m->input[n->consts[i].slot] = name;
        EW_TRY(add_init(x, name, &n->consts[i].t));
    }
    /* trailing absent inputs are errors in opsets that lack them */
    while (m->n_input > 0 && !*ew_onnx_text(m->input[m->n_input - 1]))
        m->n_input--;
    for (int i = 0; i < n->n_out; i++) {
        if (i >= from->n_out)
            m->output[i] = own_name(x, n, node, "out", i);
        else
            m->output[i] = text(x, from->out[i] < 0 ? "" : x->g->values[from->out[i]].name);
    }
    return EW_OK;
}

static ew_err put_node(struct export *x, int node, Ew__OnnxNode *m)
{
    struct ew_onnx_node n = {.opset = x->opset, .arena = &x->out.arena};
    EW_TRY(ew_onnx_export(x->g, node, &n));
    ew__onnx_node__init(m);
    m->op_type = text(x, n.type);
    m->name = text(x, n.name);
    m->domain = n.domain && *n.domain ? text(x, n.domain) : NULL;
    EW_TRY(put_ports(x, &n, node, m));
    return put_attrs(x, &n, m);
}

/* Finds the lowest opset in which all nodes can be written. */
static ew_err find_opset(struct export *x)
{
    x->opset = OPSET;
    for (int pass = 0; pass < OPSET_PASSES; pass++) {
        const int before = x->opset;
        struct ew_arena scratch;
        ew_arena_init(&scratch);
        ew_err e = EW_OK;
        for (int k = 0; k < x->g->n_nodes && e == EW_OK; k++) {
            struct ew_onnx_node n = {.opset = before, .arena = &scratch};
            e = ew_onnx_export(x->g, k, &n);
            const bool ours = !n.domain || !*n.domain;
            x->opset = ours && n.opset > x->opset ? n.opset : x->opset;
            if (e != EW_OK && strncmp(ew_error_message(), "operator ", 9) != 0)
                ew_fail_in(e, "node %s (%s)", x->g->nodes[k].name, x->g->nodes[k].op->name);
        }
        ew_arena_fini(&scratch);
        EW_TRY(e);
        if (x->opset == before)
            return EW_OK;
    }
    return ew_fail(EW_ERR_INTERNAL, "the nodes agree on no opset");
}

static int by_name(const void *a, const void *b)
{
    const Ew__OnnxNode *const *x = a, *const *y = b;
    const int order = strcmp((*x)->name, (*y)->name);
    return order ? order : (*x > *y) - (*x < *y); /* stable */
}

/* Makes node names unique, as ONNX Runtime requires: duplicates get the name of their output
 * appended. */
static ew_err tell_apart(struct export *x)
{
    const size_t n = x->out.graph.n_node;
    Ew__OnnxNode **sorted = ew_arena_array(&x->out.arena, n + 1, sizeof(*sorted));
    EW_CHECK(sorted, EW_ERR_MEMORY, "no memory for %zu nodes", n);
    for (size_t i = 0; i < n; i++)
        sorted[i] = x->out.graph.node[i];
    qsort(sorted, n, sizeof(*sorted), by_name);
    const char *last = NULL;
    for (size_t i = 0; i < n; i++) {
        const bool again = last && *last && strcmp(last, sorted[i]->name) == 0;
        last = sorted[i]->name;
        if (!again || sorted[i]->n_output == 0)
            continue;
        sorted[i]->name =
            ew_arena_printf(&x->out.arena, "%s/%s", last, ew_onnx_text(sorted[i]->output[0]));
        EW_CHECK(sorted[i]->name, EW_ERR_MEMORY, "no memory for the name of a node");
    }
    return EW_OK;
}

static ew_err put_nodes(struct export *x)
{
    Ew__OnnxGraph *m = &x->out.graph;
    const size_t n = (size_t)x->g->n_nodes;
    /* one more for each output that needs an Identity */
    const size_t room = n + (size_t)x->g->n_outputs;
    m->node = ew_arena_array(&x->out.arena, room, sizeof(*m->node));
    Ew__OnnxNode *nodes = ew_arena_array(&x->out.arena, n, sizeof(*nodes));
    EW_CHECK(m->node && nodes, EW_ERR_MEMORY, "no memory for %zu nodes", n);
    for (size_t k = 0; k < n; k++) {
        EW_TRY(put_node(x, (int)k, &nodes[k]));
        m->node[k] = &nodes[k];
    }
    m->n_node = n;
    return tell_apart(x);
}

/* ---- Inputs and outputs ---- */

/* `open`: dimensions that vary with the batch; NULL: none. */
static ew_err put_value(struct export *x, const char *name, const struct ew_tensor *t,
                        const bool *open, Ew__OnnxValue **out)
{
    struct {
        Ew__OnnxValue value;
        Ew__OnnxType type;
        Ew__OnnxTensorType tensor;
        Ew__OnnxShape shape;
        Ew__OnnxDim dims[EW_MAX_RANK];
        Ew__OnnxDim *list[EW_MAX_RANK];
    } *m = ew_arena_alloc(&x->out.arena, sizeof(*m));
    EW_CHECK(m, EW_ERR_MEMORY, "no memory for value %s", name);
    ew__onnx_value__init(&m->value);
    ew__onnx_type__init(&m->type);
    ew__onnx_tensor_type__init(&m->tensor);
    ew__onnx_shape__init(&m->shape);
    m->value.name = text(x, name);
    m->value.type = &m->type;
    m->type.tensor_type = &m->tensor;
    m->tensor.has_elem_type = true;
    m->tensor.elem_type = ew_dtype_onnx(t->dtype);
    m->tensor.shape = &m->shape;
    m->shape.n_dim = (size_t)t->shape.rank;
    m->shape.dim = m->list;
    for (int i = 0; i < t->shape.rank; i++) {
        ew__onnx_dim__init(&m->dims[i]);
        m->list[i] = &m->dims[i];
        if (open && open[i]) {
            m->dims[i].dim_param = text(x, "N");
        } else {
            m->dims[i].has_dim_value = true;
            m->dims[i].dim_value = t->shape.dim[i];
        }
    }
    *out = &m->value;
    return EW_OK;
}

static ew_err put_inputs(struct export *x)
{
    Ew__OnnxGraph *m = &x->out.graph;
    m->n_input = (size_t)x->g->n_inputs;
    m->input = ew_arena_array(&x->out.arena, m->n_input, sizeof(*m->input));
    EW_CHECK(m->input, EW_ERR_MEMORY, "no memory for inputs");
    for (int i = 0; i < x->g->n_inputs; i++) {
        const struct ew_value *v = &x->g->values[x->g->inputs[i]];
        const bool open[EW_MAX_RANK] = {x->batch == 0 && (v->dynamic & 1)};
        EW_TRY(put_value(x, v->name, &v->t, open, &m->input[i]));
    }
    return EW_OK;
}

/* True if a value, or an Identity that pass_on added, has the name. */
static bool is_taken(const struct export *x, const char *name)
{
    const Ew__OnnxGraph *m = &x->out.graph;
    for (size_t k = (size_t)x->g->n_nodes; k < m->n_node; k++)
        if (strcmp(m->node[k]->output[0], name) == 0)
            return true;
    return ew_graph_find(x->g, name) >= 0;
}

/* Adds an Identity for a graph output that is also an input, a constant or another output. */
static ew_err pass_on(struct export *x, int value, char **name)
{
    Ew__OnnxNode *n = ew_arena_alloc(&x->out.arena, sizeof(*n));
    char **ports = ew_arena_array(&x->out.arena, 2, sizeof(*ports));
    *name = ew_arena_printf(&x->out.arena, "%s_output", *name);
    while (*name && is_taken(x, *name))
        *name = ew_arena_printf(&x->out.arena, "%s_", *name);
    EW_CHECK(n && ports && *name, EW_ERR_MEMORY, "no memory for outputs");
    EW_TRY(need_value(x, value));
    ew__onnx_node__init(n);
    ports[0] = text(x, x->g->values[value].name);
    ports[1] = *name;
    n->op_type = text(x, "Identity");
    n->name = text(x, *name);
    n->input = &ports[0];
    n->output = &ports[1];
    n->n_input = n->n_output = 1;
    x->out.graph.node[x->out.graph.n_node++] = n;
    return EW_OK;
}

static ew_err put_outputs(struct export *x)
{
    Ew__OnnxGraph *m = &x->out.graph;
    m->output = ew_arena_array(&x->out.arena, (size_t)x->g->n_outputs, sizeof(*m->output));
    EW_CHECK(m->output, EW_ERR_MEMORY, "no memory for outputs");
    for (int i = 0; i < x->g->n_outputs; i++) {
        const struct ew_value *v = &x->g->values[x->g->outputs[i]];
        bool plain = v->kind == EW_VALUE_ACT;
        for (int k = 0; k < i; k++)
            plain &= x->g->outputs[k] != x->g->outputs[i];
        char *name = text(x, v->name);
        if (!plain)
            EW_TRY(pass_on(x, x->g->outputs[i], &name));
        EW_TRY(put_value(x, name, &v->t, x->batch ? NULL : x->batched + (size_t)i * EW_MAX_RANK,
                         &m->output[i]));
    }
    m->n_output = (size_t)x->g->n_outputs;
    return EW_OK;
}

/* Writes value_info of dequantised integer constants, where QONNX's tools look for it. */
static ew_err put_types(struct export *x)
{
    Ew__OnnxGraph *m = &x->out.graph;
    const struct ew_graph *g = x->g;
    m->value_info = ew_arena_array(&x->out.arena, (size_t)g->n_nodes, sizeof(*m->value_info));
    bool *there = ew_arena_array(&x->out.arena, (size_t)g->n_values, sizeof(*there));
    EW_CHECK(m->value_info && there, EW_ERR_MEMORY, "no memory for types");
    for (int k = 0; k < g->n_nodes; k++) {
        const struct ew_node *n = &g->nodes[k];
        if (n->op != &ew_op_dequantize_linear || !x->written[n->in[0]] || there[n->in[0]])
            continue;
        const struct ew_value *v = &g->values[n->in[0]];
        there[n->in[0]] = true;
        EW_TRY(put_value(x, v->name, &v->t, NULL, &m->value_info[m->n_value_info++]));
    }
    return EW_OK;
}

/* ---- The model ---- */

/* IR versions go with opsets: 14 has 7, 18 has 8, 20 has 9. */
static int ir_version(int opset)
{
    return opset <= 14 ? 7 : opset <= 18 ? 8 : opset <= 20 ? 9 : 10;
}

static ew_err put_opsets(struct export *x)
{
    Ew__OnnxModel *m = &x->out.model;
    const int most = x->g->n_nodes + 1;
    m->opset_import = ew_arena_array(&x->out.arena, (size_t)most, sizeof(*m->opset_import));
    EW_CHECK(m->opset_import, EW_ERR_MEMORY, "no memory");
    for (int k = -1; k < x->g->n_nodes; k++) { /* -1: the default domain */
        const char *domain = k < 0 ? "" : ew_onnx_text(x->out.graph.node[k]->domain);
        bool known = k >= 0 && !*domain;
        for (size_t i = 0; i < m->n_opset_import; i++)
            known |= strcmp(ew_onnx_text(m->opset_import[i]->domain), domain) == 0;
        if (known)
            continue;
        Ew__OnnxOpset *o = ew_arena_alloc(&x->out.arena, sizeof(*o));
        EW_CHECK(o, EW_ERR_MEMORY, "no memory");
        ew__onnx_opset__init(o);
        o->domain = text(x, domain);
        o->has_version = true;
        o->version = k < 0 ? x->opset : 1;
        m->opset_import[m->n_opset_import++] = o;
    }
    return EW_OK;
}

/* Writes the notes as metadata. */
static ew_err put_notes(struct export *x)
{
    Ew__OnnxModel *m = &x->out.model;
    size_t n = 0;
    for (const struct ew_note *at = x->g->notes; at; at = at->next)
        n++;
    m->metadata_props = ew_arena_array(&x->out.arena, n, sizeof(*m->metadata_props));
    for (const struct ew_note *at = x->g->notes; at && m->metadata_props; at = at->next) {
        Ew__OnnxEntry *e = ew_arena_alloc(&x->out.arena, sizeof(*e));
        EW_CHECK(e, EW_ERR_MEMORY, "no memory");
        ew__onnx_entry__init(e);
        e->key = text(x, at->key);
        e->value = text(x, at->value);
        m->metadata_props[m->n_metadata_props++] = e;
    }
    return EW_OK; /* put_model checks the arena */
}

static ew_err put_model(struct export *x)
{
    ew__onnx_model__init(&x->out.model);
    ew__onnx_graph__init(&x->out.graph);
    EW_TRY(find_opset(x));
    EW_TRY(put_nodes(x));
    EW_TRY(put_inputs(x));
    EW_TRY(put_outputs(x));
    EW_TRY(put_types(x));
    EW_TRY(put_opsets(x));
    EW_TRY(put_notes(x));
    x->out.graph.name = text(x, x->g->name);
    x->out.model.has_ir_version = true;
    x->out.model.ir_version = ir_version(x->opset);
    x->out.model.producer_name = text(x, "edgewise");
    x->out.model.producer_version = text(x, EW_VERSION);
    EW_CHECK(!x->out.arena.failed, EW_ERR_MEMORY, "no memory for the file's messages");
    return EW_OK;
}

/* Finds the output dimensions that vary with the batch, by inferring at another one.  A graph that
 * cannot change its batch is written with a fixed one. */
static ew_err find_batched(struct export *x)
{
    struct ew_graph *g = x->g;
    const size_t n = (size_t)g->n_outputs * EW_MAX_RANK;
    x->batched = ew_arena_array(&x->out.arena, n, sizeof(*x->batched));
    int64_t *before = ew_arena_array(&x->out.arena, n, sizeof(*before));
    EW_CHECK(x->batched && before, EW_ERR_MEMORY, "no memory");
    int64_t batch = 0;
    for (int i = 0; i < g->n_inputs; i++)
        if (g->values[g->inputs[i]].dynamic & 1 && g->values[g->inputs[i]].t.shape.rank)
            batch = g->values[g->inputs[i]].t.shape.dim[0];
    for (int i = 0; i < g->n_outputs; i++)
        for (int k = 0; k < EW_MAX_RANK; k++)
            before[i * EW_MAX_RANK + k] = g->values[g->outputs[i]].t.shape.dim[k];
    if (batch < 1 || ew_graph_set_batch(g, batch + 1) != EW_OK) {
        x->batch = batch < 1 ? 1 : batch;
        return batch < 1 ? EW_OK : ew_graph_set_batch(g, batch);
    }
    for (int i = 0; i < g->n_outputs; i++)
        for (int k = 0; k < g->values[g->outputs[i]].t.shape.rank; k++)
            x->batched[i * EW_MAX_RANK + k] =
                before[i * EW_MAX_RANK + k] != g->values[g->outputs[i]].t.shape.dim[k];
    return ew_graph_set_batch(g, batch);
}

static ew_err export_graph(struct export *x, const struct ew_graph *g)
{
    EW_TRY(ew_graph_clone(g, &x->g));
    if (x->batch)
        EW_TRY(ew_graph_set_batch(x->g, x->batch));
    EW_TRY(ew_graph_channels_first(x->g));
    EW_TRY(ew_graph_expand(x->g));
    EW_TRY(ew_graph_infer(x->g));
    if (!x->batch)
        EW_TRY(find_batched(x));
    x->written = ew_arena_array(&x->out.arena, (size_t)x->g->n_values, sizeof(*x->written));
    EW_CHECK(x->written, EW_ERR_MEMORY, "no memory");
    return put_model(x);
}

static ew_err save(const struct ew_graph *g, const char *path, const struct ew_onnx_save_opts *opts,
                   bool replace)
{
    struct export x = {.batch = opts->batch, .out.replace = replace};
    ew_arena_init(&x.out.arena);
    const int64_t limit = opts->max_bytes > 0 ? opts->max_bytes : INT32_MAX;
    ew_err e = export_graph(&x, g);
    if (e == EW_OK)
        e = ew_onnx_write(&x.out, path, limit < INT32_MAX ? limit : INT32_MAX);
    else
        e = ew_fail_in(e, "%s", path);
    free(x.out.inits);
    ew_graph_free(x.g);
    ew_arena_fini(&x.out.arena);
    return e;
}

EW_API ew_err ew_onnx_save(const struct ew_graph *g, const char *path,
                           const struct ew_onnx_save_opts *opts)
{
    EW_C_LOCALE;
    EW_NEED(g);
    EW_NEED(path);
    struct ew_onnx_save_opts o;
    EW_TRY(ew_sized_import(opts, &o, sizeof(o)));
    EW_CHECK(o.batch >= 0 && o.max_bytes >= 0, EW_ERR_ARG, "%s: batch %lld, %lld bytes: negative",
             path, (long long)o.batch, (long long)o.max_bytes);
    return save(g, path, &o, false);
}

ew_err ew_onnx_replace(const struct ew_graph *g, const char *path)
{
    return save(g, path, &(struct ew_onnx_save_opts){0}, true);
}
