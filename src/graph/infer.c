/* SPDX-License-Identifier: Apache-2.0 */
/* Shape inference, evaluation of known values, and cost. */
#include "graph/graph.h"

#include <stdlib.h>
#include <string.h>

/* Limits of evaluation during inference, which is for shapes, axes and the like: larger results are
 * left to the run.  Limits on the bytes read per node, and on all results together, keep a file
 * with many small nodes from costing more than its size. */
#define KNOWN_BYTES       ((size_t)16 << 10)
#define KNOWN_INPUT_BYTES ((size_t)64 << 10)
#define KNOWN_ALL_BYTES   ((size_t)32 << 20)

#define INLINE_SLOTS 24

void ew_graph_call(const struct ew_graph *g, const struct ew_node *n, struct ew_tensor **slots,
                   struct ew_call *out)
{
    *out = (struct ew_call){.name = n->name,
                            .op = n->op,
                            .attr = n->attr,
                            .n_in = n->n_in,
                            .n_out = n->n_out,
                            .in = slots,
                            .out = slots + n->n_in};
    for (int i = 0; i < n->n_in; i++)
        slots[i] = n->in[i] < 0 ? NULL : &g->values[n->in[i]].t;
    for (int i = 0; i < n->n_out; i++)
        slots[n->n_in + i] = n->out[i] < 0 ? NULL : &g->values[n->out[i]].t;
}

bool ew_call_is_empty(const struct ew_call *c)
{
    for (int i = 0; i < c->n_out; i++)
        if (c->out[i] && ew_tensor_count(c->out[i]) > 0)
            return false;
    return true;
}

/* [N, C, d...] to [N, d..., C], or back. */
static struct ew_shape move_channels(const struct ew_shape *s, bool to_last)
{
    struct ew_shape r = *s;
    if (s->rank < 3)
        return r;
    for (int i = 1; i < s->rank - 1; i++) {
        if (to_last)
            r.dim[i] = s->dim[i + 1];
        else
            r.dim[i + 1] = s->dim[i];
    }
    if (to_last)
        r.dim[s->rank - 1] = s->dim[1];
    else
        r.dim[1] = s->dim[s->rank - 1];
    return r;
}

/* Runs op->infer, which expects channels-last shapes, for a channels_first node: permutes the
 * shapes before and after. */
static ew_err infer_channels_first(const struct ew_node *n, const struct ew_call *c)
{
    struct ew_tensor moved[INLINE_SLOTS];
    struct ew_tensor *slots[INLINE_SLOTS];
    EW_CHECK(c->n_in + c->n_out <= INLINE_SLOTS, EW_ERR_LIMIT, "%s: has %d inputs and outputs",
             n->name, c->n_in + c->n_out);
    for (int i = 0; i < c->n_in + c->n_out; i++) {
        struct ew_tensor *t = i < c->n_in ? c->in[i] : c->out[i - c->n_in];
        slots[i] = t ? &moved[i] : NULL;
        if (t)
            moved[i] = *t;
        const unsigned bit = i < 32 ? 1u << i : 0;
        if (t && i < c->n_in && (i == 0 || ((n->op->spatial_in | n->op->filter_in) & bit)))
            moved[i].shape = move_channels(&t->shape, true);
    }
    struct ew_call inner = *c;
    inner.in = slots;
    inner.out = slots + c->n_in;
    if (n->op->infer) {
        EW_TRY(n->op->infer(&inner));
    } else {
        EW_ASSERT(inner.in[0] && inner.out[0]);
        *inner.out[0] = (struct ew_tensor){inner.in[0]->dtype, inner.in[0]->shape, NULL};
    }
    for (int i = 0; i < c->n_out; i++) {
        if (!c->out[i])
            continue;
        *c->out[i] = *inner.out[i];
        if (inner.out[i]->shape.rank == inner.in[0]->shape.rank)
            c->out[i]->shape = move_channels(&inner.out[i]->shape, false);
    }
    return EW_OK;
}

static bool can_evaluate(const struct ew_graph *g, const struct ew_node *n)
{
    if (!n->op->forward || (n->op->flags & (EW_OP_STOCHASTIC | EW_OP_NO_FOLD)) || n->channels_first)
        return false;
    if (n->op->flags & EW_OP_SHAPE_ONLY)
        return true;
    for (int i = 0; i < n->n_in; i++) {
        if (n->in[i] < 0)
            continue;
        const struct ew_value *v = &g->values[n->in[i]];
        if (!v->t.data || v->kind == EW_VALUE_PARAM || v->kind == EW_VALUE_STATE)
            return false;
    }
    return true;
}

static size_t input_bytes(const struct ew_call *c)
{
    size_t total = 0;
    for (int i = 0; i < c->n_in; i++)
        if (c->in[i])
            total += ew_tensor_bytes(c->in[i]);
    return total;
}

static size_t output_bytes(const struct ew_call *c)
{
    size_t total = 0;
    for (int i = 0; i < c->n_out; i++)
        if (c->out[i])
            total += ew_tensor_bytes(c->out[i]);
    return total;
}

/* Evaluates a node whose inputs are all known; results go to the graph's `known` arena. */
static ew_err evaluate(struct ew_graph *g, const struct ew_node *n, struct ew_call *c)
{
    for (int i = 0; i < c->n_out; i++) {
        if (!c->out[i])
            continue;
        c->out[i]->data = ew_arena_alloc(&g->known, ew_tensor_bytes(c->out[i]));
        EW_CHECK(c->out[i]->data, EW_ERR_MEMORY, "no memory for a known value");
    }
    if (ew_call_is_empty(c))
        return EW_OK;
    EW_CLEANUP(ew_free_ptr) void *scratch = NULL;
    if (n->op->scratch)
        EW_TRY(ew_fail_in(ew_aligned_new(n->op->scratch(c), &scratch), "node %s", n->name));
    c->scratch = scratch;
    return n->op->forward(c);
}

/* Fails if an input of known_in is not known; the message names it. */
static ew_err check_known(const struct ew_graph *g, const struct ew_node *n)
{
    for (int i = 0; i < n->n_in && i < 32; i++)
        EW_CHECK(n->in[i] < 0 || !(n->op->known_in >> i & 1) || g->values[n->in[i]].t.data,
                 EW_ERR_UNSUPPORTED, "input %s must be known before the run, it depends on data",
                 g->values[n->in[i]].name);
    return EW_OK;
}

static ew_err infer_call(struct ew_graph *g, const struct ew_node *n, struct ew_call *c)
{
    EW_CHECK(n->n_in >= n->op->min_in, EW_ERR_INTERNAL, "a pass has left it without inputs");
    for (int i = 0; i < c->n_out; i++)
        if (c->out[i])
            *c->out[i] =
                (struct ew_tensor){.dtype = c->n_in && c->in[0] ? c->in[0]->dtype : EW_F32};
    EW_TRY(check_known(g, n));
    if (n->channels_first) {
        EW_TRY(infer_channels_first(n, c));
    } else if (n->op->infer) {
        EW_TRY(n->op->infer(c));
    } else {
        EW_ASSERT(c->in[0] && c->out[0]);
        c->out[0]->shape = c->in[0]->shape;
    }
    for (int i = 0; i < c->n_out; i++)
        if (c->out[i])
            EW_TRY(ew_shape_check(&c->out[i]->shape, g->values[n->out[i]].name));
    const size_t bytes = output_bytes(c);
    const bool small = bytes <= KNOWN_BYTES && g->known.used + bytes <= KNOWN_ALL_BYTES &&
                       (n->op->flags & EW_OP_SHAPE_ONLY || input_bytes(c) <= KNOWN_INPUT_BYTES);
    return small && can_evaluate(g, n) ? evaluate(g, n, c) : EW_OK;
}

ew_err ew_graph_infer_node(struct ew_graph *g, int node)
{
    const struct ew_node *n = &g->nodes[node];
    struct ew_tensor *inline_slots[INLINE_SLOTS];
    struct ew_tensor **slots = inline_slots;
    EW_CLEANUP(ew_free_ptr) struct ew_tensor **heap_slots = NULL;
    if (n->n_in + n->n_out > INLINE_SLOTS) {
        slots = heap_slots = calloc((size_t)(n->n_in + n->n_out), sizeof(*heap_slots));
        EW_CHECK(heap_slots, EW_ERR_MEMORY, "%s: no memory", n->name);
    }
    struct ew_call c;
    ew_graph_call(g, n, slots, &c);
    return ew_fail_in(infer_call(g, n, &c), "node %s (%s)", n->name, n->op->name);
}

ew_err ew_graph_infer(struct ew_graph *g)
{
    ew_arena_reset(&g->known);
    for (int k = 0; k < g->n_nodes; k++)
        EW_TRY(ew_graph_infer_node(g, k));
    g->inferred = true;
    return EW_OK;
}

/* True if all inputs of the node are computed from constants, not from shapes of inputs. */
static bool is_pure(const struct ew_node *n, const bool *pure)
{
    for (int i = 0; i < n->n_in; i++)
        if (n->in[i] >= 0 && !pure[n->in[i]])
            return false;
    return true;
}

static bool is_literal(const struct ew_graph *g, const struct ew_node *n)
{
    for (int i = 0; i < n->n_in; i++)
        if (n->in[i] >= 0 && !g->values[n->in[i]].literal)
            return false;
    return true;
}

static ew_err make_constant(struct ew_graph *g, int value, bool literal)
{
    struct ew_value *v = &g->values[value];
    void *copy = ew_arena_alloc(&g->arena, ew_tensor_bytes(&v->t));
    EW_CHECK(copy, EW_ERR_MEMORY, "%s: no memory for its value", v->name);
    memcpy(copy, v->t.data, ew_tensor_bytes(&v->t));
    v->t.data = copy;
    v->kind = EW_VALUE_CONST;
    v->literal = literal;
    v->producer = -1;
    return EW_OK;
}

/* Floats made from the same constants by equal nodes, so that a weight that a file transposes or
 * reshapes for each of its readers stays one weight, not one for each. */
struct made {
    int node, value;
    int next; /* of those with the same first input; -1: none */
};

struct known_values {
    bool *pure;
    bool *output;    /* by value: an output of the graph */
    bool *matched;   /* by value: what passes match reads it, so that it is evaluated at any size */
    int *same;       /* by value: the value in its place */
    int *first;      /* by value: the last of `made` that reads it first; -1: none */
    struct made *at; /* by node */
};

#define MOST_COMPARED 64 /* per node, so that no file costs more than its size */

/* True for the same value, or two short lists of the same numbers, such as axes. */
static bool is_same(const struct ew_graph *g, int a, int b)
{
    if (a == b || a < 0 || b < 0)
        return a == b;
    const struct ew_tensor *x = &g->values[a].t, *y = &g->values[b].t;
    const size_t bytes = ew_tensor_bytes(x);
    return g->values[a].kind == EW_VALUE_CONST && g->values[b].kind == EW_VALUE_CONST &&
           x->dtype == y->dtype && ew_shape_equal(&x->shape, &y->shape) && x->data && y->data &&
           bytes <= sizeof(int64_t) * EW_MAX_RANK && memcmp(x->data, y->data, bytes) == 0;
}

static bool is_twin(const struct ew_graph *g, const struct ew_node *a, const struct ew_node *b)
{
    bool same = a->op == b->op && a->n_in == b->n_in && a->channels_first == b->channels_first &&
                (a->op->attr_size == 0 || memcmp(a->attr, b->attr, a->op->attr_size) == 0);
    for (int i = 1; same && i < a->n_in; i++)
        same = is_same(g, a->in[i], b->in[i]);
    return same;
}

/* The value that an equal node has made; -1: none, and node `k` is noted. */
static int find_twin(const struct ew_graph *g, struct known_values *s, int k)
{
    const struct ew_node *n = &g->nodes[k];
    if (n->n_out != 1 || n->n_in < 1 || n->in[0] < 0 || s->output[n->out[0]] ||
        !ew_dtype_is_float(g->values[n->out[0]].t.dtype))
        return -1;
    int left = MOST_COMPARED;
    for (int m = s->first[n->in[0]]; m >= 0 && left > 0; m = s->at[m].next, left--)
        if (is_twin(g, n, &g->nodes[s->at[m].node]))
            return s->at[m].value;
    s->at[k] = (struct made){k, n->out[0], s->first[n->in[0]]};
    s->first[n->in[0]] = k;
    return -1;
}

/* Marks what dequantize_linear reads, and what that is made of: weights which a file quantises as
 * it runs, as after quantisation-aware training. */
static void mark_matched(const struct ew_graph *g, struct known_values *s)
{
    for (int k = g->n_nodes - 1; k >= 0; k--) {
        const struct ew_node *n = &g->nodes[k];
        bool reads = n->op->flags & EW_OP_NO_FOLD;
        for (int i = 0; i < n->n_out; i++)
            reads = reads || (n->out[i] >= 0 && s->matched[n->out[i]]);
        if (reads && n->n_in > 0 && n->in[0] >= 0)
            s->matched[n->in[0]] = true;
    }
}

/* Evaluates a matched node of constants that is too large to be known already, unless its result is
 * larger than what it is made of. */
static ew_err evaluate_matched(struct ew_graph *g, const struct known_values *s, int node)
{
    const struct ew_node *n = &g->nodes[node];
    struct ew_tensor *slots[INLINE_SLOTS];
    if (n->n_out != 1 || n->out[0] < 0 || !s->matched[n->out[0]] || g->values[n->out[0]].t.data ||
        n->n_in + 1 > INLINE_SLOTS || !can_evaluate(g, n))
        return EW_OK;
    struct ew_call c;
    ew_graph_call(g, n, slots, &c);
    return output_bytes(&c) <= input_bytes(&c) ? evaluate(g, n, &c) : EW_OK;
}

static ew_err keep_known(struct ew_graph *g, struct known_values *s)
{
    for (int v = 0; v < g->n_values; v++) {
        s->pure[v] = g->values[v].kind == EW_VALUE_CONST;
        s->same[v] = v;
        s->first[v] = -1;
    }
    for (int i = 0; i < g->n_outputs; i++)
        s->output[g->outputs[i]] = true;
    mark_matched(g, s);
    for (int k = 0; k < g->n_nodes; k++) {
        const struct ew_node *n = &g->nodes[k];
        for (int i = 0; i < n->n_in; i++)
            n->in[i] = n->in[i] < 0 ? n->in[i] : s->same[n->in[i]];
        const bool fold = is_pure(n, s->pure);
        if (fold)
            EW_TRY(evaluate_matched(g, s, k));
        for (int i = 0; fold && i < n->n_out; i++) {
            if (n->out[i] < 0 || !g->values[n->out[i]].t.data)
                continue;
            const int twin = find_twin(g, s, k);
            s->pure[n->out[i]] = true;
            if (twin >= 0)
                s->same[n->out[i]] = twin;
            else
                EW_TRY(make_constant(g, n->out[i], is_literal(g, n)));
            n->out[i] = -1;
        }
    }
    return EW_OK;
}

ew_err ew_graph_keep_known(struct ew_graph *g)
{
    const size_t values = (size_t)g->n_values + 1, nodes = (size_t)g->n_nodes + 1;
    struct known_values s = {.pure = calloc(values, sizeof(*s.pure)),
                             .output = calloc(values, sizeof(*s.output)),
                             .matched = calloc(values, sizeof(*s.matched)),
                             .same = calloc(values, sizeof(*s.same)),
                             .first = calloc(values, sizeof(*s.first)),
                             .at = calloc(nodes, sizeof(*s.at))};
    ew_err e = EW_OK;
    if (s.pure && s.output && s.matched && s.same && s.first && s.at)
        e = keep_known(g, &s);
    else
        e = ew_fail(EW_ERR_MEMORY, "no memory for graph %s", g->name);
    free(s.pure);
    free(s.output);
    free(s.matched);
    free(s.same);
    free(s.first);
    free(s.at);
    return e;
}

/* ---- Cost ---- */

/* Bytes, which are counted alike for every operator. */
static void common_cost(const struct ew_graph *g, int node, struct ew_cost *out)
{
    const struct ew_node *n = &g->nodes[node];
    for (int i = 0; i < n->n_in; i++)
        if (n->in[i] >= 0)
            out->bytes += (int64_t)ew_tensor_bytes(&g->values[n->in[i]].t);
    for (int i = 0; i < n->n_out; i++)
        if (n->out[i] >= 0)
            out->bytes += (int64_t)ew_tensor_bytes(&g->values[n->out[i]].t);
}

void ew_graph_node_cost(const struct ew_graph *g, int node, struct ew_cost *out)
{
    *out = (struct ew_cost){0};
    const struct ew_node *n = &g->nodes[node];
    struct ew_tensor *inline_slots[INLINE_SLOTS];
    struct ew_tensor **slots = inline_slots;
    EW_CLEANUP(ew_free_ptr) struct ew_tensor **heap_slots = NULL;
    if (n->n_in + n->n_out > INLINE_SLOTS) {
        heap_slots = calloc((size_t)(n->n_in + n->n_out), sizeof(*heap_slots));
        slots = heap_slots;
    }
    common_cost(g, node, out);
    if (!slots)
        return;
    struct ew_call c;
    ew_graph_call(g, n, slots, &c);
    if (n->op->cost)
        n->op->cost(&c, out);
    else if (c.out[0])
        out->flops += ew_tensor_count(c.out[0]);
}

/* Parameters that no earlier node reads; `seen` is by value. */
static int64_t new_params(const struct ew_graph *g, int node, bool *seen)
{
    const struct ew_node *n = &g->nodes[node];
    int64_t sum = 0;
    for (int i = 0; i < n->n_in; i++) {
        const int v = n->in[i];
        if (v < 0 || seen[v] || g->values[v].kind != EW_VALUE_PARAM)
            continue;
        seen[v] = true;
        sum += ew_tensor_count(&g->values[v].t);
    }
    return sum;
}

ew_err ew_graph_cost(const struct ew_graph *g, struct ew_cost *total, struct ew_cost *each)
{
    *total = (struct ew_cost){0};
    EW_CLEANUP(ew_free_ptr) bool *seen = calloc((size_t)g->n_values + 1, sizeof(*seen));
    EW_CHECK(seen, EW_ERR_MEMORY, "no memory to count graph %s", g->name);
    for (int k = 0; k < g->n_nodes; k++) {
        struct ew_cost c;
        ew_graph_node_cost(g, k, &c);
        c.params = new_params(g, k, seen);
        total->macs += c.macs;
        total->flops += c.flops;
        total->thop_macs += c.thop_macs;
        total->bytes += c.bytes;
        total->params += c.params;
        if (each)
            each[k] = c;
    }
    return EW_OK;
}
