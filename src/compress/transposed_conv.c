/* SPDX-License-Identifier: Apache-2.0 */
/* Turns transposed convolutions of few outputs into a convolution and a transpose.
 *
 * Output o = s m + a of phase a reads input m + d through tap t = a + pad - s d.  A convolution
 * over all d of all phases, with s x s filters for each output channel, computes the phases side by
 * side: it multiplies some zeros, but s x s C outputs fill vectors better than C. */
#include "compress/pass.h"
#include "graph/layout.h"
#include "graph/ops.h"
#include "op/conv.h"

#define LANES 8 /* outputs that are computed as fast as one */

/* The inputs m + d, d = first .. first + taps - 1, that the outputs of an axis read. */
struct input_span {
    int64_t first, taps, pad_end;
    int64_t kernel, stride, pad; /* of the transposed convolution */
};

/* The tap of phase a for offset d; -1: none. */
static int64_t tap_of(const struct input_span *r, int64_t a, int64_t d)
{
    const int64_t t = a + r->pad - d * r->stride;
    return t >= 0 && t < r->kernel ? t : -1;
}

static bool find_span(const struct ew_window *w, int axis, struct input_span *r)
{
    const int64_t in = w->out[axis], out = w->in[axis];
    *r = (struct input_span){
        .kernel = w->kernel[axis], .stride = w->stride[axis], .pad = w->pad[axis]};
    if (w->dilation[axis] != 1 || out % r->stride != 0 || r->kernel < r->stride)
        return false;
    /* From the last tap of phase 0 to the first of the last phase, each rounded to what has one. */
    int64_t first = (r->pad - r->kernel) / r->stride - 1, last;
    while (tap_of(r, 0, first) < 0 && tap_of(r, r->stride - 1, first) < 0)
        first++;
    last = first;
    while (tap_of(r, 0, last + 1) >= 0 || tap_of(r, r->stride - 1, last + 1) >= 0)
        last++;
    r->first = first;
    r->taps = last - first + 1;
    r->pad_end = out / r->stride - in + first + r->taps - 1;
    return first <= 0 && r->pad_end >= 0;
}

static int64_t vectors(int64_t channels)
{
    return (channels + LANES - 1) / LANES;
}

static bool pays(const struct ew_graph *g, const struct ew_node *n, struct input_span r[2])
{
    struct ew_tensor *slots[8];
    struct ew_call c;
    struct ew_conv_sizes s;
    if (n->op != &ew_op_conv_transpose || n->n_in > 3 || n->out[0] < 0 ||
        g->values[n->in[0]].t.shape.rank != 4 || g->values[n->in[0]].t.dtype != EW_F32)
        return false;
    for (int i = 1; i < n->n_in; i++)
        if (n->in[i] >= 0 && !ew_pass_is_constant(g, n->in[i]))
            return false;
    ew_graph_call(g, n, slots, &c);
    if (ew_conv_transpose_resolve(&c, &s) != EW_OK || s.groups != 1 ||
        !find_span(&s.w, EW_WINDOW_DIMS - 2, &r[0]) || !find_span(&s.w, EW_WINDOW_DIMS - 1, &r[1]))
        return false;
    const int64_t stride = r[0].stride, channels = s.w.channels;
    return stride > 1 && stride == r[1].stride &&
           3 * r[0].taps * r[1].taps * vectors(stride * stride * channels) <=
               2 * r[0].kernel * r[1].kernel * vectors(channels);
}

/* [C, k, k, O] to [s s O, taps, taps, C]; zeros where a phase has no tap. */
static void fill_filters(const struct input_span r[2], const struct ew_tensor *from,
                         const struct ew_tensor *to)
{
    const int64_t channels = from->shape.dim[0], outputs = from->shape.dim[3];
    const float *w = from->data;
    float *f = to->data;
    for (int64_t i = 0; i < to->shape.dim[0]; i++) {
        const int64_t phase = i / outputs, o = i % outputs;
        for (int64_t p = 0; p < r[0].taps * r[1].taps; p++) {
            const int64_t y = tap_of(&r[0], phase / r[0].stride, r[0].first + p / r[1].taps);
            const int64_t x = tap_of(&r[1], phase % r[1].stride, r[1].first + p % r[1].taps);
            for (int64_t c = 0; c < channels; c++)
                *f++ =
                    y < 0 || x < 0 ? 0 : w[((c * r[0].kernel + y) * r[1].kernel + x) * outputs + o];
        }
    }
}

/* The bias, once for each phase. */
static ew_err repeat_bias(struct ew_graph *g, int64_t times, int *bias)
{
    const struct ew_tensor b = g->values[*bias].t;
    const int64_t n = ew_tensor_count(&b);
    const struct ew_shape shape = {1, {n * times}};
    EW_TRY(ew_pass_new_param(g, g->values[*bias].name, &shape, bias));
    float *to = g->values[*bias].t.data;
    for (int64_t i = 0; i < n * times; i++)
        to[i] = ((const float *)b.data)[i % n];
    return EW_OK;
}

static ew_err reshape(struct ew_graph *g, const int64_t *dims, int n, int *value)
{
    int shape;
    EW_TRY(ew_graph_const_ints(g, NULL, dims, n, &shape));
    return ew_graph_add(g, &ew_op_reshape, NULL, NULL, EW_INPUTS(*value, shape), value);
}

/* The phases are interleaved by a transpose, which every device has; DepthToSpace is not. */
static ew_err convert(struct ew_graph *g, int node, const struct input_span r[2])
{
    const struct ew_node *n = &g->nodes[node];
    const char *name = n->name;
    const int64_t stride = r[0].stride, area = stride * stride;
    int in[3] = {n->in[0], -1, n->n_in > 2 ? n->in[2] : -1}, out;
    const int old = n->in[1], first = g->n_nodes;
    const struct ew_shape y = g->values[n->out[0]].t.shape;
    const int64_t high = y.dim[1] / stride, wide = y.dim[2] / stride;
    const int64_t channels = g->values[old].t.shape.dim[0], outputs = g->values[old].t.shape.dim[3];
    const struct ew_shape shape = {4, {area * outputs, r[0].taps, r[1].taps, channels}};
    EW_TRY(ew_pass_new_param(g, g->values[old].name, &shape, &in[1]));
    fill_filters(r, &g->values[old].t, &g->values[in[1]].t);
    if (in[2] >= 0)
        EW_TRY(repeat_bias(g, area, &in[2]));
    const struct ew_conv_attr conv = {
        .win = {.pad = {4, {-r[0].first, -r[1].first, r[0].pad_end, r[1].pad_end}}}, .groups = 1};
    EW_TRY(ew_graph_add(g, &ew_op_conv, name, &conv, ew_inputs(in, in[2] >= 0 ? 3 : 2), &out));
    const int64_t apart[] = {0, high, wide, stride, stride, outputs};
    const int64_t whole[] = {0, high * stride, wide * stride, outputs};
    const struct ew_transpose_attr turn = {.perm = {6, {0, 1, 3, 2, 4, 5}}};
    EW_TRY(reshape(g, apart, 6, &out));
    EW_TRY(ew_graph_add(g, &ew_op_transpose, NULL, &turn, EW_INPUTS(out), &out));
    EW_TRY(reshape(g, whole, 4, &out));
    return ew_graph_splice(g, node, first, &out);
}

ew_err ew_pass_transposed_conv(struct ew_graph *g)
{
    const int n_nodes = g->n_nodes;
    struct input_span r[2];
    EW_TRY(ew_graph_rewrite_begin(g));
    for (int k = 0; k < n_nodes; k++)
        if (pays(g, &g->nodes[k], r))
            EW_TRY(convert(g, k, r));
    EW_TRY(ew_graph_rewrite_end(g));
    EW_TRY(ew_graph_sweep(g));
    return ew_graph_infer(g);
}
