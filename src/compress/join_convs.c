/* SPDX-License-Identifier: Apache-2.0 */
/* Merges convolutions of one input whose outputs are concatenated; smaller filters are padded with
 * zero taps (SqueezeNet's 1x1 beside 3x3).  For devices on which a kernel launch costs more than
 * those multiplications.  Caveat: an infinite or NaN input then makes neighbouring outputs of the
 * smaller filters NaN. */
#include <string.h>

#include "compress/pass.h"
#include "graph/ops.h"
#include "graph/readers.h"
#include "op/conv.h"
#include "op/shape_attr.h"

#define MOST 8 /* convolutions */

/* The convolutions of one concatenation. */
struct joined {
    int n, node[MOST];
    struct ew_conv_sizes size[MOST];
    int widest;      /* the one whose window contains all others */
    int64_t filters; /* in total */
};

static const struct ew_conv_attr *attr_of(const struct ew_graph *g, int node)
{
    return g->nodes[node].attr;
}

static bool is_weight(const struct ew_graph *g, int value)
{
    return ew_pass_is_floats(g, value) && g->values[value].kind != EW_VALUE_ACT;
}

/* Matches a 2-D convolution with constant filters and a bias, without a residual. */
static bool read_one(const struct ew_graph *g, int node, struct ew_conv_sizes *s)
{
    struct ew_node *n = &g->nodes[node];
    struct ew_tensor *slots[8];
    struct ew_call c;
    if (n->op != &ew_op_conv || n->n_in != 3 || !is_weight(g, n->in[1]) ||
        !is_weight(g, n->in[2]) || g->values[n->in[1]].t.shape.rank != 4)
        return false;
    ew_graph_call(g, n, slots, &c);
    return ew_conv_resolve(&c, s) == EW_OK && s->groups == 1;
}

static bool same_end(const struct ew_epilogue_attr *a, const struct ew_epilogue_attr *b)
{
    return a->act == b->act && !(a->lo < b->lo) && !(a->lo > b->lo) && !(a->hi < b->hi) &&
           !(a->hi > b->hi);
}

/* True if window `in` lies inside window `around` at the same strides; the last two dimensions
 * count. */
static bool is_within(const struct ew_window *in, const struct ew_window *around)
{
    for (int d = EW_WINDOW_DIMS - 2; d < EW_WINDOW_DIMS; d++) {
        const int64_t before = around->pad[d] - in->pad[d];
        if (in->stride[d] != around->stride[d] || in->dilation[d] != 1 ||
            around->dilation[d] != 1 || in->out[d] != around->out[d] || before < 0 ||
            before + in->kernel[d] > around->kernel[d])
            return false;
    }
    return true;
}

static bool read_all(const struct ew_graph *g, const struct ew_readers *r, const struct ew_node *n,
                     struct joined *j)
{
    const struct ew_concat_attr *a = n->attr;
    const int rank = g->values[n->out[0]].t.shape.rank;
    *j = (struct joined){.n = n->n_in};
    if (n->n_in < 2 || n->n_in > MOST || rank != 4 || (a->axis != -1 && a->axis != rank - 1))
        return false;
    for (int i = 0; i < j->n; i++) {
        j->node[i] = ew_readers_sole_producer(r, n->in[i]);
        if (j->node[i] < 0 || !read_one(g, j->node[i], &j->size[i]) ||
            g->nodes[j->node[i]].in[0] != g->nodes[j->node[0]].in[0] ||
            !same_end(&attr_of(g, j->node[i])->end, &attr_of(g, j->node[0])->end))
            return false;
        if (is_within(&j->size[j->widest].w, &j->size[i].w))
            j->widest = i;
        j->filters += j->size[i].filters;
    }
    for (int i = 0; i < j->n; i++)
        if (!is_within(&j->size[i].w, &j->size[j->widest].w))
            return false;
    return true;
}

/* Multiplications by padded zeros. */
static int64_t cost_of(const struct joined *j)
{
    const struct ew_window *w = &j->size[j->widest].w;
    int64_t filled = 0;
    for (int i = 0; i < j->n; i++)
        filled += j->size[i].filters * (ew_window_taps(w) - ew_window_taps(&j->size[i].w));
    return ew_cost_mul(ew_cost_mul(w->batch * w->channels, ew_window_outs(w)), filled);
}

/* Copies the filters of convolution i into the centre of the wider ones. */
static void spread(const struct joined *j, int i, const float *from, float *to)
{
    const struct ew_window *in = &j->size[i].w, *out = &j->size[j->widest].w;
    const int64_t c = in->channels, y0 = out->pad[1] - in->pad[1], x0 = out->pad[2] - in->pad[2];
    memset(to, 0, (size_t)(j->size[i].filters * ew_window_taps(out) * c) * sizeof(*to));
    for (int64_t o = 0; o < j->size[i].filters; o++)
        for (int64_t y = 0; y < in->kernel[1]; y++) {
            const int64_t row = (o * out->kernel[1] + y0 + y) * out->kernel[2] + x0;
            memcpy(to + row * c, from, (size_t)(in->kernel[2] * c) * sizeof(*to));
            from += in->kernel[2] * c;
        }
}

/* Replaces the concatenation by the merged convolution, if that multiplies at most *most zeros. */
static ew_err join(struct ew_graph *g, struct ew_readers *r, int at, void *most)
{
    struct joined joined, *j = &joined;
    if (g->nodes[at].op != &ew_op_concat || !read_all(g, r, &g->nodes[at], j) ||
        cost_of(j) > *(const int64_t *)most)
        return EW_OK;
    const struct ew_node *widest = &g->nodes[j->node[j->widest]];
    const struct ew_tensor w = g->values[widest->in[1]].t;
    struct ew_shape filters = w.shape, list = {1, {j->filters}};
    filters.dim[0] = j->filters;
    int in[3] = {widest->in[0]};
    EW_TRY(ew_pass_new_param(g, g->values[widest->in[1]].name, &filters, &in[1]));
    EW_TRY(ew_pass_new_param(g, g->values[widest->in[2]].name, &list, &in[2]));
    float *to = g->values[in[1]].t.data, *bias = g->values[in[2]].t.data;
    for (int i = 0; i < j->n; i++) {
        const struct ew_node *n = &g->nodes[j->node[i]];
        spread(j, i, g->values[n->in[1]].t.data, to);
        memcpy(bias, g->values[n->in[2]].t.data, (size_t)j->size[i].filters * sizeof(*bias));
        to += ew_shape_count(&filters) / j->filters * j->size[i].filters;
        bias += j->size[i].filters;
    }
    struct ew_node *n = &g->nodes[at];
    n->op = widest->op;
    n->name = widest->name;
    n->attr = widest->attr;
    n->channels_first = widest->channels_first;
    EW_TRY(ew_readers_set_all(r, at, in, 3));
    for (int i = 0; i < j->n; i++)
        ew_readers_detach(r, j->node[i]);
    return EW_OK;
}

ew_err ew_pass_join_convs(struct ew_graph *g, int64_t most)
{
    return ew_pass_each_node(g, join, &most);
}
