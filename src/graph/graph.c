/* SPDX-License-Identifier: Apache-2.0 */
/* Building and changing graphs.  Inference is in infer.c, layout conversion in layout.c. */
#include "graph/rewrite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/ops.h"

ew_err ew_graph_new(const char *name, struct ew_graph **out)
{
    struct ew_graph *g = calloc(1, sizeof(*g));
    EW_CHECK(g, EW_ERR_MEMORY, "no memory for graph %s", name);
    ew_arena_init(&g->arena);
    ew_arena_init(&g->known);
    g->name = ew_arena_strdup(&g->arena, name);
    if (!g->name) {
        ew_graph_free(g);
        return ew_fail(EW_ERR_MEMORY, "no memory for graph %s", name);
    }
    *out = g;
    return EW_OK;
}

EW_API void ew_graph_free(struct ew_graph *g)
{
    if (!g)
        return;
    ew_rewrite_free(g->rewrite);
    ew_arena_fini(&g->arena);
    ew_arena_fini(&g->known);
    free(g->values);
    free(g->nodes);
    free(g->inputs);
    free(g->outputs);
    free(g->names.slot);
    free(g);
}

/* ---- Names: open addressing over value numbers, so that a file with 100,000 names stays fast ----
 */

static uint64_t hash_name(const char *s)
{
    uint64_t h = 1469598103934665603u; /* FNV-1a */
    for (; *s; s++)
        h = (h ^ (unsigned char)*s) * 1099511628211u;
    return h;
}

/* The slot that holds `name`, or the free one where it belongs.  The old slot of a renamed value
 * compares unequal and is skipped. */
static int *name_slot(const struct ew_graph *g, const char *name)
{
    const uint64_t mask = (uint64_t)g->names.size - 1;
    uint64_t i = hash_name(name) & mask;
    while (g->names.slot[i] && strcmp(g->values[g->names.slot[i] - 1].name, name) != 0)
        i = (i + 1) & mask;
    return &g->names.slot[i];
}

/* Rehashes, with room for `n` values. */
static ew_err rebuild_names(struct ew_graph *g, int n)
{
    int size = 64;
    while (size < 2 * (n + 1))
        size *= 2;
    int *slot = calloc((size_t)size, sizeof(*slot));
    EW_CHECK(slot, EW_ERR_MEMORY, "no memory for the names of graph %s", g->name);
    free(g->names.slot);
    g->names.slot = slot;
    g->names.size = size;
    g->names.used = g->n_values;
    for (int i = 0; i < g->n_values; i++)
        *name_slot(g, g->values[i].name) = i + 1;
    return EW_OK;
}

/* Inserts a value under its name, keeping the load factor below 1/2. */
static ew_err enter_name(struct ew_graph *g, int value)
{
    if (2 * (g->names.used + 1) > g->names.size)
        EW_TRY(rebuild_names(g, 2 * g->n_values));
    *name_slot(g, g->values[value].name) = value + 1;
    g->names.used++;
    return EW_OK;
}

int ew_graph_find(const struct ew_graph *g, const char *name)
{
    return g->names.size ? *name_slot(g, name) - 1 : -1;
}

int ew_graph_producer(const struct ew_graph *g, int value, const struct ew_op *op)
{
    const int node = value < 0 ? -1 : g->values[value].producer;
    return node >= 0 && g->nodes[node].op == op ? node : -1;
}

void ew_graph_count_uses(const struct ew_graph *g, int *uses)
{
    for (int k = 0; k < g->n_nodes; k++)
        for (int i = 0; i < g->nodes[k].n_in; i++)
            if (g->nodes[k].in[i] >= 0)
                uses[g->nodes[k].in[i]]++;
    for (int i = 0; i < g->n_outputs; i++)
        uses[g->outputs[i]]++;
}

/* A copy of `name` made unique: "name", "name_1", "name_2", ...; without a name "v1", ... */
static const char *unique_name(struct ew_graph *g, const char *name)
{
    const bool named = name && *name;
    if (named && ew_graph_find(g, name) < 0)
        return ew_arena_strdup(&g->arena, name);
    char buf[256];
    int suffix = g->n_values; /* not 1, which would be quadratic for many equal names */
    do
        snprintf(buf, sizeof(buf), "%.230s%s%d", named ? name : "v", named ? "_" : "", suffix++);
    while (ew_graph_find(g, buf) >= 0);
    return ew_arena_strdup(&g->arena, buf);
}

static ew_err add_value(struct ew_graph *g, const char *name, const struct ew_value *v, int *out)
{
    EW_TRY(ew_grow((void **)&g->values, &g->cap_values, g->n_values + 1, sizeof(*g->values)));
    const char *unique = unique_name(g, name);
    EW_CHECK(unique, EW_ERR_MEMORY, "no memory for graph %s", g->name);
    const int id = g->n_values++;
    g->values[id] = *v;
    g->values[id].name = unique;
    *out = id;
    return enter_name(g, id);
}

ew_err ew_graph_rename(struct ew_graph *g, int value, const char *name)
{
    if (strcmp(g->values[value].name, name) == 0)
        return EW_OK;
    const char *unique = unique_name(g, name);
    EW_CHECK(unique, EW_ERR_MEMORY, "no memory for graph %s", g->name);
    g->values[value].name = unique;
    return enter_name(g, value);
}

ew_err ew_graph_claim_name(struct ew_graph *g, int value, const char *name)
{
    const int other = ew_graph_find(g, name);
    if (other >= 0 && other != value && g->values[other].kind != EW_VALUE_INPUT)
        EW_TRY(ew_graph_rename(g, other, ""));
    return ew_graph_rename(g, value, name);
}

ew_err ew_graph_input(struct ew_graph *g, const char *name, enum ew_dtype dtype,
                      const struct ew_shape *shape, int *out)
{
    EW_TRY(ew_shape_check(shape, name ? name : "input"));
    const struct ew_value v = {.kind = EW_VALUE_INPUT,
                               .t = {.dtype = dtype, .shape = *shape},
                               .producer = -1,
                               .dynamic = 1};
    EW_TRY(ew_grow((void **)&g->inputs, &g->cap_inputs, g->n_inputs + 1, sizeof(*g->inputs)));
    EW_TRY(add_value(g, name, &v, out));
    g->inputs[g->n_inputs++] = *out;
    return EW_OK;
}

ew_err ew_graph_const(struct ew_graph *g, const char *name, enum ew_value_kind kind,
                      const struct ew_tensor *t, bool copy, int *out)
{
    EW_TRY(ew_shape_check(&t->shape, name ? name : "constant"));
    struct ew_value v = {.kind = kind, .t = *t, .producer = -1};
    if (copy && t->data) {
        v.t.data = ew_arena_alloc(&g->arena, ew_tensor_bytes(t));
        EW_CHECK(v.t.data, EW_ERR_MEMORY, "no memory for constant %s", name ? name : "");
        memcpy(v.t.data, t->data, ew_tensor_bytes(t));
    }
    return add_value(g, name, &v, out);
}

ew_err ew_graph_const_ints(struct ew_graph *g, const char *name, const int64_t *v, int n, int *out)
{
    int64_t *copy = ew_arena_array(&g->arena, (size_t)n, sizeof(*copy));
    EW_CHECK(copy, EW_ERR_MEMORY, "no memory for constant %s", name ? name : "");
    if (n)
        memcpy(copy, v, (size_t)n * sizeof(*copy));
    const struct ew_tensor t = {.dtype = EW_S64, .shape = {1, {n}}, .data = copy};
    return ew_graph_const(g, name, EW_VALUE_CONST, &t, false, out);
}

ew_err ew_graph_const_float(struct ew_graph *g, const char *name, float v, int *out)
{
    const struct ew_tensor t = {.dtype = EW_F32, .data = &v};
    return ew_graph_const(g, name, EW_VALUE_CONST, &t, true, out);
}

/* ---- Nodes ---- */

static ew_err check_inputs(const struct ew_graph *g, const struct ew_op *op, const char *name,
                           const int *in, int n_in)
{
    EW_CHECK(n_in >= op->min_in && (op->max_in < 0 || n_in <= op->max_in), EW_ERR_ARG,
             "%s: operator %s takes %d to %d inputs, got %d", name, op->name, op->min_in,
             op->max_in, n_in);
    for (int i = 0; i < n_in; i++) {
        EW_CHECK(in[i] >= -1 && in[i] < g->n_values, EW_ERR_ARG, "%s: input %d is not a value",
                 name, i);
        /* Variadic operators (max_in < 0) have no optional inputs. */
        EW_CHECK(in[i] >= 0 || (i >= op->min_in && op->max_in >= 0), EW_ERR_ARG,
                 "%s: operator %s needs its input %d", name, op->name, i);
    }
    return EW_OK;
}

static ew_err fill_node(struct ew_graph *g, struct ew_node *n, const void *attr, const int *in)
{
    n->attr = ew_arena_alloc(&g->arena, n->op->attr_size);
    n->in = ew_arena_array(&g->arena, (size_t)n->n_in, sizeof(int));
    n->out = ew_arena_array(&g->arena, (size_t)n->n_out, sizeof(int));
    EW_CHECK(n->name && n->attr && n->in && n->out, EW_ERR_MEMORY,
             "no memory for a node of graph %s", g->name);
    if (attr && n->op->attr_size)
        memcpy(n->attr, attr, n->op->attr_size);
    else if (n->op->attrs)
        ew_fields_default(n->op->attrs, n->attr, n->op->attr_size);
    if (n->n_in)
        memcpy(n->in, in, (size_t)n->n_in * sizeof(int));
    return EW_OK;
}

ew_err ew_graph_add_node(struct ew_graph *g, const struct ew_node *proto, int *out)
{
    const struct ew_op *op = proto->op;
    const int most = op->max_out ? op->max_out : 1;
    const char *label = proto->name && *proto->name ? proto->name : op->name;
    EW_TRY(check_inputs(g, op, label, proto->in, proto->n_in));
    EW_CHECK(proto->n_out >= 1 && (most < 0 || proto->n_out <= most), EW_ERR_ARG,
             "%s: operator %s gives at most %d outputs, %d asked", label, op->name, most,
             proto->n_out);
    EW_TRY(ew_grow((void **)&g->nodes, &g->cap_nodes, g->n_nodes + 1, sizeof(*g->nodes)));
    struct ew_node n = *proto;
    n.name = label == op->name ? ew_arena_printf(&g->arena, "%s_%d", op->name, g->n_nodes)
                               : ew_arena_strdup(&g->arena, label);
    EW_TRY(fill_node(g, &n, proto->attr, proto->in));
    const struct ew_value v = {.kind = EW_VALUE_ACT, .producer = g->n_nodes};
    for (int i = 0; i < n.n_out; i++) {
        char buf[256];
        snprintf(buf, sizeof(buf), i ? "%.240s_out%d" : "%.240s", n.name, i);
        EW_TRY(add_value(g, buf, &v, &n.out[i]));
        out[i] = n.out[i];
    }
    g->nodes[g->n_nodes++] = n;
    g->inferred = false;
    if (g->rewrite)
        EW_TRY(ew_readers_adopt(ew_graph_readers(g)));
    return ew_graph_infer_node(g, g->n_nodes - 1);
}

ew_err ew_graph_add(struct ew_graph *g, const struct ew_op *op, const char *name, const void *attr,
                    struct ew_inputs in, int *out)
{
    struct ew_node n = {.op = op, .name = name, .n_in = in.n, .n_out = 1};
    EW_CLEANUP(ew_free_ptr) int *inputs = calloc((size_t)in.n + 1, sizeof(*inputs));
    EW_CLEANUP(ew_free_ptr) void *own = attr ? malloc(op->attr_size + 1) : NULL;
    EW_CHECK(inputs && (own || !attr), EW_ERR_MEMORY, "no memory for a node of graph %s", g->name);
    if (in.n)
        memcpy(inputs, in.in, (size_t)in.n * sizeof(*inputs));
    if (attr)
        memcpy(own, attr, op->attr_size);
    n.in = inputs;
    n.attr = own;
    return ew_graph_add_node(g, &n, out);
}

ew_err ew_graph_output(struct ew_graph *g, int value)
{
    EW_CHECK(value >= 0 && value < g->n_values, EW_ERR_ARG, "graph %s: output is not a value",
             g->name);
    EW_TRY(ew_grow((void **)&g->outputs, &g->cap_outputs, g->n_outputs + 1, sizeof(*g->outputs)));
    g->outputs[g->n_outputs++] = value;
    return EW_OK;
}

/* ---- Inputs ---- */

static ew_err set_shape(struct ew_graph *g, int value, const struct ew_shape *shape)
{
    struct ew_value *v = &g->values[value];
    EW_CHECK(v->kind == EW_VALUE_INPUT, EW_ERR_ARG, "%s: is not an input", v->name);
    EW_TRY(ew_shape_check(shape, v->name));
    v->t.shape = *shape;
    g->inferred = false;
    return EW_OK;
}

ew_err ew_graph_bind(struct ew_graph *g, int value, const struct ew_tensor *t)
{
    struct ew_value *v = &g->values[value];
    EW_CHECK(v->kind == EW_VALUE_INPUT, EW_ERR_ARG, "%s: is not an input", v->name);
    EW_CHECK(t->dtype == v->t.dtype, EW_ERR_TYPE, "%s: is %s, got %s", v->name,
             ew_dtype_name(v->t.dtype), ew_dtype_name(t->dtype));
    void *copy = ew_arena_alloc(&g->arena, ew_tensor_bytes(t));
    EW_CHECK(copy, EW_ERR_MEMORY, "%s: no memory for its value", v->name);
    memcpy(copy, t->data, ew_tensor_bytes(t));
    v->t = *t;
    v->t.data = copy;
    v->kind = EW_VALUE_CONST;
    int n = 0;
    for (int i = 0; i < g->n_inputs; i++)
        if (g->inputs[i] != value)
            g->inputs[n++] = g->inputs[i];
    g->n_inputs = n;
    g->inferred = false;
    return EW_OK;
}

ew_err ew_graph_set_batch(struct ew_graph *g, int64_t batch)
{
    EW_CHECK(batch >= 1, EW_ERR_ARG, "batch is %lld, must be at least 1", (long long)batch);
    for (int i = 0; i < g->n_inputs; i++) {
        struct ew_value *v = &g->values[g->inputs[i]];
        if (!(v->dynamic & 1) || v->t.shape.rank == 0)
            continue;
        struct ew_shape s = v->t.shape;
        s.dim[0] = batch;
        EW_TRY(set_shape(g, g->inputs[i], &s));
    }
    return ew_graph_infer(g);
}

ew_err ew_graph_batch(const struct ew_graph *g, int64_t *out)
{
    *out = 0;
    for (int i = 0; i < g->n_inputs; i++) {
        const struct ew_value *v = &g->values[g->inputs[i]];
        if (!(v->dynamic & 1) || v->t.shape.rank == 0)
            continue;
        EW_CHECK(*out == 0 || *out == v->t.shape.dim[0], EW_ERR_SHAPE,
                 "input %s has a batch of %lld, another input %lld", v->name,
                 (long long)v->t.shape.dim[0], (long long)*out);
        *out = v->t.shape.dim[0];
    }
    *out = ew_max_i64(*out, 1);
    return EW_OK;
}

int64_t ew_graph_images(const struct ew_graph *g)
{
    int64_t first = 1;
    for (int i = g->n_inputs - 1; i >= 0; i--) {
        const struct ew_value *v = &g->values[g->inputs[i]];
        if (v->t.shape.rank == 0)
            continue;
        first = v->t.shape.dim[0];
        if (v->dynamic & 1)
            break;
    }
    return ew_max_i64(first, 1);
}

ew_err ew_graph_need_batch(struct ew_graph *g, int64_t batch)
{
    EW_TRY(ew_graph_set_batch(g, batch));
    const int64_t images = ew_graph_images(g);
    EW_CHECK(images == batch, EW_ERR_SHAPE, "%s: its batch is fixed at %lld, not %lld", g->name,
             (long long)images, (long long)batch);
    return EW_OK;
}

/* ---- Weights ---- */

/* Marks, backwards, all values from which known_in inputs are computed: the `size * 2.0` of a
 * Resize, for example. */
static void mark_known(const struct ew_graph *g, bool *known)
{
    for (int k = g->n_nodes - 1; k >= 0; k--) {
        const struct ew_node *n = &g->nodes[k];
        bool out = false;
        for (int i = 0; i < n->n_out; i++)
            out |= n->out[i] >= 0 && known[n->out[i]];
        out = out && !(n->op->flags & EW_OP_SHAPE_ONLY);
        for (int i = 0; i < n->n_in; i++)
            if (n->in[i] >= 0 && (out || (i < 32 && (n->op->known_in >> i & 1))))
                known[n->in[i]] = true;
    }
}

/* True if the operator hands on its first input in another shape or order. */
static bool only_moves(const struct ew_op *op)
{
    return op == &ew_op_transpose || op == &ew_op_reshape || op == &ew_op_unsqueeze ||
           op == &ew_op_squeeze;
}

/* The constant in a slot of weights, also behind transposes and reshapes too large to be
 * evaluated; -1: none. */
static int weight_in(const struct ew_graph *g, const struct ew_node *n, int i, unsigned slots)
{
    int v = i < 32 && (slots >> i & 1) ? n->in[i] : -1;
    while (v >= 0 && g->values[v].producer >= 0 && only_moves(g->nodes[g->values[v].producer].op))
        v = g->nodes[g->values[v].producer].in[0];
    const bool weight =
        v >= 0 && g->values[v].kind == EW_VALUE_CONST && ew_dtype_is_float(g->values[v].t.dtype);
    return weight ? v : -1;
}

/* Marks the values that are computed from constants alone. */
static void mark_pure(const struct ew_graph *g, bool *pure)
{
    for (int v = 0; v < g->n_values; v++)
        pure[v] = ew_value_is_weight(&g->values[v]);
    for (int k = 0; k < g->n_nodes; k++) {
        const struct ew_node *n = &g->nodes[k];
        bool all = n->n_in > 0;
        for (int i = 0; i < n->n_in; i++)
            all = all && (n->in[i] < 0 || pure[n->in[i]]);
        for (int i = 0; i < n->n_out; i++)
            if (n->out[i] >= 0)
                pure[n->out[i]] = all;
    }
}

/* Some exporters write all weights as literals. */
static bool has_named_weights(const struct ew_graph *g)
{
    for (int k = 0; k < g->n_nodes; k++) {
        const struct ew_node *n = &g->nodes[k];
        for (int i = 0; i < n->n_in; i++) {
            const int v = weight_in(g, n, i, n->op->param_in);
            if (v >= 0 && g->values[v].t.shape.rank > 1 && !g->values[v].literal)
                return true;
        }
    }
    return false;
}

ew_err ew_graph_mark_params(struct ew_graph *g)
{
    EW_CLEANUP(ew_free_ptr) bool *known = calloc((size_t)g->n_values + 1, sizeof(*known));
    EW_CLEANUP(ew_free_ptr) bool *pure = calloc((size_t)g->n_values + 1, sizeof(*pure));
    EW_CHECK(known && pure, EW_ERR_MEMORY, "no memory for graph %s", g->name);
    mark_known(g, known);
    mark_pure(g, pure);
    const bool named = has_named_weights(g);
    for (int k = 0; k < g->n_nodes; k++) {
        const struct ew_node *n = &g->nodes[k];
        if (n->n_out > 0 && n->out[0] >= 0 && pure[n->out[0]])
            continue; /* a formula from which a weight is computed */
        for (int i = 0; i < n->n_in; i++) {
            const int w = weight_in(g, n, i, n->op->param_in | n->op->state_in);
            if (w < 0 || known[w])
                continue;
            struct ew_value *v = &g->values[w];
            if (n->op->state_in >> i & 1)
                v->kind = EW_VALUE_STATE;
            else if (!(v->literal && named) && v->t.shape.rank > 0)
                v->kind = EW_VALUE_PARAM;
        }
    }
    return EW_OK;
}

ew_err ew_graph_alloc_weights(struct ew_graph *g)
{
    for (int i = 0; i < g->n_values; i++) {
        struct ew_value *v = &g->values[i];
        if ((v->kind != EW_VALUE_PARAM && v->kind != EW_VALUE_STATE) || v->t.data)
            continue;
        v->t.data = ew_arena_alloc(&g->arena, ew_tensor_bytes(&v->t));
        EW_CHECK(v->t.data, EW_ERR_MEMORY, "%s: no memory for %zu bytes of weights", v->name,
                 ew_tensor_bytes(&v->t));
    }
    return EW_OK;
}

/* ---- Sweep, clone, check ---- */

/* Marks values that outputs depend on; reverse topological order makes one sweep enough. */
static void mark_live(const struct ew_graph *g, bool *live)
{
    for (int i = 0; i < g->n_inputs; i++)
        live[g->inputs[i]] = true; /* inputs stay, as part of the graph's signature */
    for (int i = 0; i < g->n_outputs; i++)
        live[g->outputs[i]] = true;
    for (int k = g->n_nodes - 1; k >= 0; k--) {
        const struct ew_node *n = &g->nodes[k];
        bool any = false;
        for (int i = 0; i < n->n_out; i++)
            any |= n->out[i] >= 0 && live[n->out[i]];
        for (int i = 0; any && i < n->n_in; i++)
            if (n->in[i] >= 0)
                live[n->in[i]] = true;
    }
}

static void renumber(int *list, int n, const int *to)
{
    for (int i = 0; i < n; i++)
        if (list[i] >= 0)
            list[i] = to[list[i]];
}

/* Removes nodes without a live output, then dead values; `to` maps old value numbers to new ones.
 */
static void compact(struct ew_graph *g, bool *live, int *to)
{
    int n_nodes = 0;
    for (int k = 0; k < g->n_nodes; k++) {
        const struct ew_node n = g->nodes[k];
        bool any = false;
        for (int i = 0; i < n.n_out; i++)
            any |= n.out[i] >= 0 && live[n.out[i]];
        for (int i = 0; any && i < n.n_out; i++)
            if (n.out[i] >= 0)
                live[n.out[i]] = true; /* a kept node keeps all its outputs */
        if (any)
            g->nodes[n_nodes++] = n;
    }
    g->n_nodes = n_nodes;
    int n_values = 0;
    for (int i = 0; i < g->n_values; i++) {
        to[i] = live[i] ? n_values : -1;
        if (live[i])
            g->values[n_values++] = g->values[i];
    }
    g->n_values = n_values;
    for (int i = 0; i < n_values; i++)
        g->values[i].producer = -1;
    for (int k = 0; k < n_nodes; k++) {
        renumber(g->nodes[k].in, g->nodes[k].n_in, to);
        renumber(g->nodes[k].out, g->nodes[k].n_out, to);
        for (int i = 0; i < g->nodes[k].n_out; i++)
            if (g->nodes[k].out[i] >= 0)
                g->values[g->nodes[k].out[i]].producer = k;
    }
    renumber(g->inputs, g->n_inputs, to);
    renumber(g->outputs, g->n_outputs, to);
}

ew_err ew_graph_sweep(struct ew_graph *g)
{
    EW_CLEANUP(ew_free_ptr) bool *live = calloc((size_t)g->n_values + 1, sizeof(*live));
    EW_CLEANUP(ew_free_ptr) int *to = calloc((size_t)g->n_values + 1, sizeof(*to));
    EW_CHECK(live && to, EW_ERR_MEMORY, "no memory to sweep graph %s", g->name);
    mark_live(g, live);
    compact(g, live, to);
    return rebuild_names(g, g->n_values);
}

static ew_err clone_into(const struct ew_graph *g, struct ew_graph *c)
{
    int id;
    for (int i = 0; i < g->n_values; i++) {
        struct ew_value v = g->values[i];
        if (v.kind == EW_VALUE_ACT)
            v.t.data = NULL;
        EW_TRY(add_value(c, g->values[i].name, &v, &id));
    }
    EW_TRY(ew_grow((void **)&c->nodes, &c->cap_nodes, g->n_nodes, sizeof(*c->nodes)));
    for (int k = 0; k < g->n_nodes; k++) {
        struct ew_node n = g->nodes[k];
        n.name = ew_arena_strdup(&c->arena, n.name);
        EW_TRY(fill_node(c, &n, g->nodes[k].attr, g->nodes[k].in));
        memcpy(n.out, g->nodes[k].out, (size_t)n.n_out * sizeof(int));
        c->nodes[c->n_nodes++] = n;
    }
    EW_TRY(ew_grow((void **)&c->inputs, &c->cap_inputs, g->n_inputs, sizeof(int)));
    for (int i = 0; i < g->n_inputs; i++)
        c->inputs[c->n_inputs++] = g->inputs[i];
    for (int i = 0; i < g->n_outputs; i++)
        EW_TRY(ew_graph_output(c, g->outputs[i]));
    EW_TRY(ew_graph_notes_copy(g, c));
    return ew_graph_infer(c);
}

ew_err ew_graph_clone(const struct ew_graph *g, struct ew_graph **out)
{
    struct ew_graph *c;
    EW_TRY(ew_graph_new(g->name, &c));
    const ew_err e = clone_into(g, c);
    if (e != EW_OK)
        ew_graph_free(c);
    else
        *out = c;
    return e;
}

ew_err ew_graph_check(const struct ew_graph *g)
{
    for (int k = 0; k < g->n_nodes; k++) {
        const struct ew_node *n = &g->nodes[k];
        EW_TRY(check_inputs(g, n->op, n->name, n->in, n->n_in));
        for (int i = 0; i < n->n_in; i++)
            EW_CHECK(n->in[i] < 0 || g->values[n->in[i]].producer < k, EW_ERR_INTERNAL,
                     "%s: its input %s is made later", n->name, g->values[n->in[i]].name);
        for (int i = 0; i < n->n_out; i++)
            EW_CHECK(n->out[i] < 0 || g->values[n->out[i]].producer == k, EW_ERR_INTERNAL,
                     "%s: does not produce its output %d", n->name, i);
    }
    return EW_OK;
}
