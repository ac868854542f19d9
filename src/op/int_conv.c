/* SPDX-License-Identifier: Apache-2.0 */
/* Convolution of 8-bit tensors: zero points are subtracted first, so that padding is 0. */
#include "op/int_conv.h"

ew_err ew_int_conv_resolve(const struct ew_call *c, struct ew_int_conv *v)
{
    const struct ew_int_conv_attr *a = c->attr;
    const struct ew_tensor *x = c->in[v->x], *w = c->in[v->w];
    EW_TRY(ew_spatial_check(x));
    EW_CHECK(w->shape.rank == x->shape.rank, EW_ERR_SHAPE,
             "filters have %d dimensions, the input %d", w->shape.rank, x->shape.rank);
    EW_TRY(ew_quant_check(c, v->x, v->x_zero, 1));
    EW_TRY(ew_quant_check(c, v->w, v->w_zero, w->shape.dim[0]));
    return ew_conv_geometry(&a->win, a->groups, &x->shape, &w->shape, &v->s);
}

void ew_int_conv_infer(const struct ew_call *c, const struct ew_int_conv *v)
{
    ew_window_shape(&v->s.w, c->in[v->x]->shape.rank, v->s.filters, &c->out[0]->shape);
}

size_t ew_int_conv_scratch(const struct ew_call *c, int x, int w)
{
    return (size_t)(ew_tensor_count(c->in[x]) + ew_tensor_count(c->in[w])) * sizeof(int32_t);
}

static int64_t filter_size(const struct ew_conv_sizes *s)
{
    return ew_window_taps(&s->w) * (s->w.channels / s->groups);
}

void ew_int_conv_begin(const struct ew_call *c, const struct ew_int_conv *v)
{
    int32_t *x = c->scratch, *w = x + ew_tensor_count(c->in[v->x]);
    ew_quant_centre(c->in[v->x], ew_call_in(c, v->x_zero), 1, x);
    ew_quant_centre(c->in[v->w], ew_call_in(c, v->w_zero), ew_max_i64(filter_size(&v->s), 1), w);
}

int32_t ew_int_conv_sum(const struct ew_call *c, const struct ew_int_conv *v, int64_t image,
                        const int64_t *o, int64_t filter)
{
    const struct ew_conv_sizes *s = &v->s;
    const int64_t depth = s->w.channels / s->groups;
    const int64_t group = filter / (s->filters / s->groups);
    const int32_t *x = c->scratch, *w = x + ew_tensor_count(c->in[v->x]);
    uint32_t sum = 0;
    struct ew_tap t;
    for (bool more = ew_tap_first(&s->w, image, o, &t); more; more = ew_tap_next(&s->w, &t)) {
        const int32_t *px = x + t.row * s->w.channels + group * depth;
        const int32_t *pw = w + filter * filter_size(s) + t.index * depth;
        for (int64_t i = 0; i < depth; i++)
            sum += (uint32_t)(px[i] * pw[i]);
    }
    return (int32_t)sum;
}
