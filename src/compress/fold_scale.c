/* SPDX-License-Identifier: Apache-2.0 */
/* Products and sums with constants, one for each channel or one for all, after a convolution:
 * y = (w x + b) s is a convolution with filters w s and bias b s, y = w x + b + t one with bias
 * b + t.  Exporters leave them where networks scale the branch of a residual.  The same after a
 * group or instance norm, whose scale and bias exporters write so. */
#include "compress/pass.h"
#include "graph/ops.h"
#include "graph/readers.h"
#include "op/conv.h"

/* True for a float32 constant with one element, or one for each of the last axis of `y`. */
static bool is_row(const struct ew_graph *g, int value, const struct ew_shape *y)
{
    if (!ew_pass_is_floats(g, value))
        return false;
    const struct ew_shape *s = &g->values[value].t.shape;
    const int64_t count = ew_shape_count(s), channels = y->dim[y->rank - 1];
    return s->rank <= y->rank &&
           (count == 1 || (count == channels && s->dim[s->rank - 1] == channels));
}

/* The convolution that the node follows and can be folded into, as a node, and the constant; -1:
 * none. */
static int find_conv(const struct ew_graph *g, const struct ew_readers *r, const struct ew_node *n,
                     int *row)
{
    for (int i = 0; i < 2; i++) {
        const int from = ew_readers_sole_producer(r, n->in[i]);
        if (from < 0 || g->nodes[from].op != &ew_op_conv)
            continue;
        const struct ew_node *conv = &g->nodes[from];
        const struct ew_conv_attr *a = conv->attr;
        const bool bias = conv->n_in > 2 && conv->in[2] >= 0;
        *row = n->in[1 - i];
        if (a->end.act == EW_ACT_NONE && conv->n_in <= 3 && ew_pass_is_floats(g, conv->in[1]) &&
            (!bias || ew_pass_is_constant(g, conv->in[2])) &&
            is_row(g, *row, &g->values[n->in[i]].t.shape))
            return from;
    }
    return -1;
}

/* Filters times `row`, in place if the graph owns them exclusively. */
static ew_err scale_filters(struct ew_graph *g, const struct ew_readers *r, int *filters, int row)
{
    const struct ew_shape s = g->values[*filters].t.shape;
    const float *from = g->values[*filters].t.data, *factor = g->values[row].t.data;
    const int64_t each = ew_shape_span(&s, 1, s.rank),
                  step = ew_tensor_count(&g->values[row].t) > 1;
    if (!ew_pass_owns(g, r, *filters))
        EW_TRY(ew_pass_new_weights(g, *filters, filters));
    float *to = g->values[*filters].t.data;
    for (int64_t i = 0; i < s.dim[0] * each; i++)
        to[i] = from[i] * factor[i / each * step];
    return EW_OK;
}

/* Bias (or zeros) times `row`, or plus it. */
static ew_err new_bias(struct ew_graph *g, const struct ew_node *conv, int row, bool sum, int *bias)
{
    const struct ew_shape s = {1, {g->values[conv->in[1]].t.shape.dim[0]}};
    const int old = conv->n_in > 2 ? conv->in[2] : -1;
    const float *value = g->values[row].t.data;
    const int64_t step = ew_tensor_count(&g->values[row].t) > 1;
    EW_TRY(ew_pass_new_param(g, g->values[old >= 0 ? old : row].name, &s, bias));
    const float *from = old >= 0 ? g->values[old].t.data : NULL;
    float *to = g->values[*bias].t.data;
    for (int64_t i = 0; i < s.dim[0]; i++) {
        const float b = from ? from[i] : 0;
        to[i] = sum ? b + value[i * step] : b * value[i * step];
    }
    return EW_OK;
}

static ew_err fold_conv(struct ew_graph *g, struct ew_readers *r, int node, int at, int row)
{
    const struct ew_node *conv = &g->nodes[at];
    const bool sum = g->nodes[node].op == &ew_op_add;
    int in[] = {conv->in[0], conv->in[1], conv->n_in > 2 ? conv->in[2] : -1};
    if (sum || in[2] >= 0)
        EW_TRY(new_bias(g, conv, row, sum, &in[2]));
    if (!sum)
        EW_TRY(scale_filters(g, r, &in[1], row));
    EW_TRY(ew_readers_set_all(r, at, in, in[2] >= 0 ? 3 : 2));
    const int out = g->nodes[node].out[0];
    ew_readers_detach(r, node);
    return ew_readers_replace(r, out, g->nodes[at].out[0]);
}

/* The norm that the node follows and can be folded into, as a node, and the constant; -1: none. */
static int find_norm(const struct ew_graph *g, const struct ew_readers *r, const struct ew_node *n,
                     int *row)
{
    for (int i = 0; i < 2; i++) {
        const int from = ew_readers_sole_producer(r, n->in[i]);
        const struct ew_node *norm = from >= 0 ? &g->nodes[from] : NULL;
        if (!norm || (norm->op != &ew_op_group_norm && norm->op != &ew_op_instance_norm))
            continue;
        bool plain = true;
        for (int k = 1; k < 3; k++)
            plain &= ew_pass_is_floats(g, norm->in[k]);
        *row = n->in[1 - i];
        if (plain && is_row(g, *row, &g->values[n->in[i]].t.shape))
            return from;
    }
    return -1;
}

/* A norm's scale or bias, of each channel or each group of channels, for each channel: times `row`
 * (-1: 1), or plus it. */
static ew_err new_entries(struct ew_graph *g, int64_t channels, int row, bool sum, int *entries)
{
    const struct ew_shape s = {1, {channels}};
    const int old = *entries;
    const int64_t n = ew_tensor_count(&g->values[old].t),
                  step = row >= 0 && ew_tensor_count(&g->values[row].t) > 1;
    EW_TRY(ew_pass_new_param(g, g->values[old].name, &s, entries));
    const float one = 1, *value = row >= 0 ? g->values[row].t.data : &one;
    const float *from = g->values[old].t.data;
    float *to = g->values[*entries].t.data;
    for (int64_t i = 0; i < channels; i++) {
        const float v = from[i * n / channels];
        to[i] = sum ? v + value[i * step] : v * value[i * step];
    }
    return EW_OK;
}

static ew_err fold_norm(struct ew_graph *g, struct ew_readers *r, int node, int at, int row)
{
    const bool sum = g->nodes[node].op == &ew_op_add;
    const int out = g->nodes[node].out[0];
    const struct ew_shape *y = &g->values[out].t.shape;
    const int64_t channels = y->dim[y->rank - 1];
    int in[] = {g->nodes[at].in[0], g->nodes[at].in[1], g->nodes[at].in[2]};
    EW_TRY(new_entries(g, channels, sum ? -1 : row, false, &in[1])); /* both get as long */
    EW_TRY(new_entries(g, channels, row, sum, &in[2]));
    EW_TRY(ew_readers_set_all(r, at, in, 3));
    ew_readers_detach(r, node);
    return ew_readers_replace(r, out, g->nodes[at].out[0]);
}

static ew_err fold(struct ew_graph *g, struct ew_readers *r, int node, void *ctx)
{
    const struct ew_node *n = &g->nodes[node];
    int row;
    if ((n->op != &ew_op_mul && n->op != &ew_op_add) || n->n_in != 2)
        return EW_OK;
    const int conv = find_conv(g, r, n, &row), norm = conv < 0 ? find_norm(g, r, n, &row) : -1;
    if (conv >= 0)
        return fold_conv(g, r, node, conv, row);
    return norm >= 0 ? fold_norm(g, r, node, norm, row) : EW_OK;
}

ew_err ew_pass_fold_scale(struct ew_graph *g)
{
    return ew_pass_each_node(g, fold, NULL);
}
