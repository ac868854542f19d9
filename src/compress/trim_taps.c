/* SPDX-License-Identifier: Apache-2.0 */
/* On small feature maps some taps of a filter only ever see padding: a 3x3 convolution over one
 * pixel is a 1x1 convolution.  Removes those taps from constant filters. */
#include <string.h>

#include "compress/pass.h"
#include "graph/ops.h"
#include "op/conv.h"

/* One axis: the taps that some output reads, and the remaining padding. */
struct axis {
    int64_t first, count;
    int64_t pad, pad_end;
};

static bool reads_input(const struct ew_window *w, int d, int64_t tap)
{
    for (int64_t o = 0; o < w->out[d]; o++) {
        const int64_t at = o * w->stride[d] - w->pad[d] + tap * w->dilation[d];
        if (at >= 0 && at < w->in[d])
            return true;
    }
    return false;
}

static int64_t out_size(const struct ew_window *w, int d, const struct axis *a)
{
    const int64_t span = w->in[d] + a->pad + a->pad_end - (a->count - 1) * w->dilation[d] - 1;
    return span < 0 ? 0 : span / w->stride[d] + 1;
}

/* The kept range of one axis; all of it if trimming would need negative padding or change the
 * output. */
static struct axis cut_axis(const struct ew_window *w, int d)
{
    const struct axis all = {0, w->kernel[d], w->pad[d], w->pad_end[d]};
    struct axis a = all;
    while (a.count > 1 && !reads_input(w, d, a.first)) {
        a.first++;
        a.count--;
        a.pad -= w->dilation[d];
    }
    while (a.count > 1 && !reads_input(w, d, a.first + a.count - 1))
        a.count--;
    a.pad_end = ew_max_i64(
        (w->out[d] - 1) * w->stride[d] + (a.count - 1) * w->dilation[d] + 1 - w->in[d] - a.pad, 0);
    return a.pad < 0 || out_size(w, d, &a) != w->out[d] ? all : a;
}

/* Copies the kept taps of filters [O, k0, k1, k2, I]. */
static void cut_filters(const struct ew_conv_sizes *s, const struct axis *a, const float *from,
                        float *to)
{
    const int64_t *k = s->w.kernel, depth = s->w.channels / s->groups;
    for (int64_t o = 0; o < s->filters; o++)
        for (int64_t z = 0; z < a[0].count; z++)
            for (int64_t y = 0; y < a[1].count; y++) {
                const int64_t row =
                    ((o * k[0] + a[0].first + z) * k[1] + a[1].first + y) * k[2] + a[2].first;
                memcpy(to, from + row * depth, (size_t)(a[2].count * depth) * sizeof(*to));
                to += a[2].count * depth;
            }
}

static void cut_attr(const struct ew_window *w, const struct axis *a, int spatial,
                     struct ew_window_attr *out)
{
    *out = (struct ew_window_attr){.kernel = {.n = spatial},
                                   .stride = {.n = spatial},
                                   .dilation = {.n = spatial},
                                   .pad = {.n = 2 * spatial},
                                   .auto_pad = EW_AUTO_PAD_NOTSET};
    for (int i = 0; i < spatial; i++) {
        const int d = EW_WINDOW_DIMS - spatial + i;
        out->kernel.v[i] = a[d].count;
        out->stride.v[i] = w->stride[d];
        out->dilation.v[i] = w->dilation[d];
        out->pad.v[i] = a[d].pad;
        out->pad.v[spatial + i] = a[d].pad_end;
    }
}

static ew_err trim(struct ew_graph *g, struct ew_node *n)
{
    struct ew_tensor *slots[8];
    struct ew_call c;
    struct ew_conv_sizes s;
    if (n->n_in + n->n_out > (int)EW_COUNT(slots) || !ew_pass_is_floats(g, n->in[1]))
        return EW_OK;
    ew_graph_call(g, n, slots, &c);
    EW_TRY(ew_conv_resolve(&c, &s));
    struct axis a[EW_WINDOW_DIMS];
    bool any = false;
    for (int d = 0; d < EW_WINDOW_DIMS; d++) {
        a[d] = cut_axis(&s.w, d);
        any |= a[d].count != s.w.kernel[d];
    }
    if (!any)
        return EW_OK;
    const struct ew_tensor old = g->values[n->in[1]].t;
    const int spatial = old.shape.rank - 2;
    struct ew_shape shape = old.shape;
    for (int i = 0; i < spatial; i++)
        shape.dim[1 + i] = a[EW_WINDOW_DIMS - spatial + i].count;
    int id;
    EW_TRY(ew_pass_new_param(g, g->values[n->in[1]].name, &shape, &id));
    cut_filters(&s, a, old.data, g->values[id].t.data);
    g->values[id].frozen = g->values[n->in[1]].frozen;
    cut_attr(&s.w, a, spatial, &((struct ew_conv_attr *)n->attr)->win);
    n->in[1] = id;
    return EW_OK;
}

ew_err ew_pass_trim_taps(struct ew_graph *g)
{
    for (int k = 0; k < g->n_nodes; k++)
        if (g->nodes[k].op == &ew_op_conv)
            EW_TRY(trim(g, &g->nodes[k]));
    EW_TRY(ew_graph_sweep(g));
    return ew_graph_infer(g);
}
