/* SPDX-License-Identifier: Apache-2.0 */
/* DeformConv: a convolution whose taps are displaced by offsets and weighted by a mask (Dai et al.
 * 2017, Zhu et al. 2018).  2-D, inference only.
 *
 * in: x [N, H, W, C], w [O, kh, kw, C / groups], offset [N, oh, ow, offset_groups kh kw 2] as pairs
 * of y and x, bias [O], mask [N, oh, ow, offset_groups kh kw]. */
#include <math.h>

#include "graph/onnx.h"
#include "op/conv.h"
#include "op/types.h"

enum { X, W, OFFSET, BIAS, MASK };

struct attr {
    struct ew_window_attr win;
    int64_t groups, offset_groups;
};

/* clang-format off */
static const struct ew_field attrs[] = {
    EW_WINDOW_FIELDS(struct attr, win),
    EW_GROUPS_FIELD(struct attr),
    {.name = "offset_groups", .type = EW_FIELD_INT, .offset = offsetof(struct attr, offset_groups),
     .def = "1", .min = 1, .max = INT32_MAX, .help = "parts of the channels with own offsets"},
    EW_FIELD_END};
/* clang-format on */

/* Checks that in[slot], if present, is [N, oh, ow, channels]. */
static ew_err check_field(const struct ew_call *c, int slot, const struct ew_shape *y,
                          int64_t channels)
{
    const struct ew_tensor *t = ew_call_in(c, slot);
    char a[EW_SHAPE_TEXT], b[EW_SHAPE_TEXT];
    struct ew_shape want = *y;
    want.dim[3] = channels;
    EW_CHECK(!t || ew_shape_equal(&t->shape, &want), EW_ERR_SHAPE, "input %d is %s, must be %s",
             slot, ew_shape_text(&t->shape, a), ew_shape_text(&want, b));
    return EW_OK;
}

static ew_err infer(const struct ew_call *c)
{
    const struct attr *a = c->attr;
    const struct ew_shape *x = &c->in[X]->shape, *w = &c->in[W]->shape;
    struct ew_conv_sizes s;
    EW_TRY(ew_types_check(c, X, EW_TYPES_FLOAT));
    for (int i = W; i < c->n_in; i++)
        EW_TRY(ew_types_same(c, i));
    EW_CHECK(x->rank == 4 && w->rank == 4, EW_ERR_UNSUPPORTED,
             "has %d dimensions, only images of two are supported", x->rank - 2);
    EW_TRY(ew_spatial_check(c->in[X]));
    EW_TRY(ew_conv_geometry(&a->win, a->groups, x, w, &s));
    ew_window_shape(&s.w, 4, s.filters, &c->out[0]->shape);
    EW_CHECK(a->offset_groups >= 1 && x->dim[3] % a->offset_groups == 0, EW_ERR_SHAPE,
             "%lld channels do not fall into %lld parts", (long long)x->dim[3],
             (long long)a->offset_groups);
    EW_CHECK(!ew_call_in(c, BIAS) || ew_tensor_count(c->in[BIAS]) == s.filters, EW_ERR_SHAPE,
             "the bias has %lld entries for %lld filters", (long long)ew_tensor_count(c->in[BIAS]),
             (long long)s.filters);
    const int64_t taps = a->offset_groups * ew_window_taps(&s.w);
    EW_TRY(check_field(c, OFFSET, &c->out[0]->shape, 2 * taps));
    return check_field(c, MASK, &c->out[0]->shape, taps);
}

static void cost(const struct ew_call *c, struct ew_cost *out)
{
    const struct ew_shape *w = &c->in[W]->shape;
    const int64_t macs = ew_cost_mul(ew_tensor_count(c->out[0]), ew_shape_span(w, 1, 4));
    out->macs += macs;
    out->flops += 2 * macs;
}

/* Bilinear sample of x at a fractional position; zero outside. */
static double sample(const struct ew_tensor *x, int64_t image, double y0, double x0,
                     int64_t channel)
{
    const int64_t *d = x->shape.dim;
    if (!(y0 > -1 && y0 < (double)d[1] && x0 > -1 && x0 < (double)d[2]))
        return 0;
    const double fy = floor(y0), fx = floor(x0);
    double sum = 0;
    for (int k = 0; k < 4; k++) {
        const int64_t i = (int64_t)fy + k / 2, j = (int64_t)fx + k % 2;
        if (i < 0 || j < 0 || i >= d[1] || j >= d[2])
            continue;
        const double wy = k / 2 ? y0 - fy : 1 - (y0 - fy), wx = k % 2 ? x0 - fx : 1 - (x0 - fx);
        sum += wy * wx * ew_tensor_get(x, ((image * d[1] + i) * d[2] + j) * d[3] + channel);
    }
    return sum;
}

/* One output position: `at` is its number over all images. */
struct output_position {
    const struct ew_call *c;
    struct ew_conv_sizes s;
    int64_t at, image, oy, ox;
};

/* Channel `channel` of x at the displaced tap `tap`, weighted by the mask. */
static double moved(const struct output_position *p, int64_t tap, int64_t channel)
{
    const struct attr *a = p->c->attr;
    const struct ew_window *w = &p->s.w;
    const int64_t taps = w->kernel[1] * w->kernel[2];
    const int64_t part = channel / (w->channels / a->offset_groups);
    const int64_t field = (p->at * a->offset_groups + part) * taps + tap;
    const struct ew_tensor *mask = ew_call_in(p->c, MASK);
    double move[2];
    ew_tensor_load(p->c->in[OFFSET], 2 * field, 2, move);
    const int64_t y = p->oy * w->stride[1] - w->pad[1] + tap / w->kernel[2] * w->dilation[1];
    const int64_t x = p->ox * w->stride[2] - w->pad[2] + tap % w->kernel[2] * w->dilation[2];
    const double v =
        sample(p->c->in[X], p->image, (double)y + move[0], (double)x + move[1], channel);
    return v * (mask ? ew_tensor_get(mask, field) : 1);
}

static double filter_at(const struct output_position *p, int64_t filter)
{
    const struct attr *a = p->c->attr;
    const int64_t depth = p->s.w.channels / a->groups, taps = ew_window_taps(&p->s.w);
    const int64_t first = filter / (p->s.filters / a->groups) * depth;
    const struct ew_tensor *bias = ew_call_in(p->c, BIAS);
    double sum = bias ? ew_tensor_get(bias, filter) : 0;
    for (int64_t t = 0; t < taps; t++)
        for (int64_t k = 0; k < depth; k++)
            sum += ew_tensor_get(p->c->in[W], (filter * taps + t) * depth + k) *
                   moved(p, t, first + k);
    return sum;
}

static ew_err forward(const struct ew_call *c)
{
    const struct attr *a = c->attr;
    struct output_position p = {.c = c};
    EW_TRY(ew_conv_geometry(&a->win, a->groups, &c->in[X]->shape, &c->in[W]->shape, &p.s));
    const int64_t high = p.s.w.out[1], wide = p.s.w.out[2];
    for (p.at = 0; p.at < p.s.w.batch * high * wide; p.at++) {
        p.image = p.at / (high * wide);
        p.oy = p.at / wide % high;
        p.ox = p.at % wide;
        for (int64_t f = 0; f < p.s.filters; f++) {
            const double v = filter_at(&p, f);
            ew_tensor_store(c->out[0], p.at * p.s.filters + f, 1, &v);
        }
    }
    return EW_OK;
}

static ew_err export_node(const struct ew_graph *g, int node, struct ew_onnx_node *n)
{
    const struct attr *a = g->nodes[node].attr;
    EW_CHECK(a->win.auto_pad == EW_AUTO_PAD_NOTSET, EW_ERR_UNSUPPORTED,
             "node %s: ONNX has no auto_pad here", n->name);
    ew_onnx_drop(n, "auto_pad");
    return EW_OK;
}

static const char *const renames[] = {EW_WINDOW_RENAMES, "groups",       "group",
                                      "offset_groups",   "offset_group", NULL};

/* clang-format off */
static const struct ew_op_case cases[] = {
    {.name = "2x2", .attrs = "pad=1x1x1x1",
     .in = {{"1x3x3x2"}, {"3x2x2x2"}, {"1x4x4x8"}}, .n_in = 3, .out_shape = "1x4x4x3"},
    {.name = "mask and bias", .attrs = "stride=2x1",
     .in = {{"2x5x4x2"}, {"2x3x3x2"}, {"2x2x2x18"}, {"2"}, {"2x2x2x9"}}, .n_in = 5,
     .out_shape = "2x2x2x2"},
    {.name = "groups", .attrs = "groups=2 offset_groups=2 dilation=2x2",
     .in = {{"1x5x5x4"}, {"4x2x2x2"}, {"1x3x3x16"}, {"4"}, {"1x3x3x8"}}, .n_in = 5,
     .out_shape = "1x3x3x4"},
};
/* clang-format on */

const struct ew_op ew_op_deform_conv = {
    .name = "deform_conv",
    .help = "a convolution whose taps are moved by offsets",
    .flags = EW_OP_SPATIAL,
    .min_in = 3,
    .max_in = 5,
    .param_in = 1 << W | 1 << BIAS,
    .spatial_in = 1 << OFFSET | 1 << MASK,
    .filter_in = 1 << W,
    .attr_size = sizeof(struct attr),
    .attrs = attrs,
    .infer = infer,
    .cost = cost,
    .forward = forward,
    .onnx = {.type = "DeformConv", .since = 19, .rename = renames, .export = export_node},
    EW_OP_CASES(cases),
};
