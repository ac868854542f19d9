/* SPDX-License-Identifier: Apache-2.0 */
/* Common part of convolution and transposed convolution: reference loops, bias, cost. */
#include "op/conv.h"

/* Iterates over an output row by row, and over the contiguous runs of a window in x and w. */
struct runs {
    const struct ew_conv_sizes *s;
    struct ew_tap t;
    int64_t image, o[EW_WINDOW_DIMS]; /* output position */
    int64_t row;                      /* output row over the whole batch */
    int64_t group;
    int64_t depth;   /* channels of x per group */
    int64_t filter;  /* elements of one filter */
    int64_t x, w, n; /* current run: offsets and length */
    bool joined;     /* taps along the window's last dimension are contiguous in x */
};

static bool rows_first(const struct ew_conv_sizes *s, struct runs *r)
{
    const int64_t depth = s->w.channels / s->groups;
    *r = (struct runs){.s = s, .depth = depth, .filter = ew_window_taps(&s->w) * depth};
    r->joined = s->groups == 1 && s->w.dilation[EW_WINDOW_DIMS - 1] == 1;
    return s->w.batch > 0;
}

static bool rows_next(struct runs *r)
{
    r->row++;
    r->o[EW_WINDOW_DIMS - 1] = 0;
    for (int d = EW_WINDOW_DIMS - 2; d >= 0; d--) {
        if (++r->o[d] < r->s->w.out[d])
            return true;
        r->o[d] = 0;
    }
    return ++r->image < r->s->w.batch;
}

static void set_run(struct runs *r)
{
    r->x = r->t.row * r->s->w.channels + r->group * r->depth;
    r->w = r->t.index * r->depth;
}

static inline bool runs_first(struct runs *r)
{
    const int last = EW_WINDOW_DIMS - 1;
    if (!ew_tap_first(&r->s->w, r->image, r->o, &r->t))
        return false;
    r->n = r->depth;
    if (r->joined) {
        r->n *= r->t.end[last] - r->t.first[last];
        r->t.end[last] = r->t.first[last] + 1;
    }
    set_run(r);
    return true;
}

static inline bool runs_next(struct runs *r)
{
    if (!ew_tap_next(&r->s->w, &r->t))
        return false;
    set_run(r);
    return true;
}

#define EW_REF_FILE "op/conv_ref.h"
#include "op/each_float.h"

ew_err ew_conv_geometry(const struct ew_window_attr *win, int64_t groups, const struct ew_shape *x,
                        const struct ew_shape *w, struct ew_conv_sizes *out)
{
    const int64_t filters = w->dim[0], depth = w->dim[w->rank - 1];
    const int64_t channels = x->dim[x->rank - 1];
    EW_CHECK(groups >= 1 && channels % groups == 0 && filters % groups == 0, EW_ERR_SHAPE,
             "%lld groups do not divide %lld channels and %lld filters", (long long)groups,
             (long long)channels, (long long)filters);
    EW_CHECK(channels / groups == depth, EW_ERR_SHAPE,
             "filters take %lld channels, the input has %lld in %lld groups", (long long)depth,
             (long long)channels, (long long)groups);
    out->groups = groups;
    out->filters = filters;
    return ew_window_resolve(win, x, w->dim + 1, false, &out->w);
}

ew_err ew_conv_check(const struct ew_call *c, int64_t filters)
{
    const struct ew_tensor *x = c->in[0], *w = c->in[1], *b = c->n_in > 2 ? c->in[2] : NULL;
    EW_TRY(ew_spatial_check(x));
    EW_TRY(ew_float_check(x, "the input"));
    EW_CHECK(w->dtype == x->dtype && (!b || b->dtype == x->dtype), EW_ERR_TYPE,
             "input, filters and bias are not of one type");
    EW_CHECK(w->shape.rank == x->shape.rank, EW_ERR_SHAPE,
             "filters have %d dimensions, the input %d", w->shape.rank, x->shape.rank);
    EW_CHECK(!b || (b->shape.rank == 1 && b->shape.dim[0] == filters), EW_ERR_SHAPE,
             "the bias does not have one entry for each of %lld filters", (long long)filters);
    return EW_OK;
}

void ew_conv_apply(const struct ew_conv_sizes *s, enum ew_dtype dtype, const struct ew_conv_data *d)
{
    EW_REF_CALL(apply, dtype, s, d->x, d->w, d->to);
}

void ew_conv_grad_x(const struct ew_conv_sizes *s, enum ew_dtype dtype,
                    const struct ew_conv_data *d)
{
    EW_REF_CALL(spread, dtype, s, NULL, d->w, d->y, d->to);
}

void ew_conv_grad_w(const struct ew_conv_sizes *s, enum ew_dtype dtype,
                    const struct ew_conv_data *d)
{
    EW_REF_CALL(spread, dtype, s, d->x, NULL, d->y, d->to);
}

void ew_conv_cost(const struct ew_conv_sizes *s, const struct ew_call *c, struct ew_cost *out)
{
    const int64_t pixels = ew_cost_mul(s->w.batch, ew_window_outs(&s->w));
    const int64_t filter = ew_cost_mul(ew_window_taps(&s->w), s->w.channels / s->groups);
    const int64_t macs = ew_cost_mul(ew_cost_mul(pixels, s->filters), filter);
    out->macs += macs;
    out->thop_macs += macs;
    out->flops += 2 * macs;
    if (c->n_in > 2 && c->in[2])
        out->flops += ew_tensor_count(c->out[0]);
}

#define CHUNK 256

void ew_bias_fill(const struct ew_tensor *b, struct ew_tensor *y)
{
    const int64_t channels = y->shape.dim[y->shape.rank - 1];
    const int64_t pixels = ew_shape_span(&y->shape, 0, y->shape.rank - 1);
    double v[CHUNK] = {0};
    for (int64_t at = 0; at < channels; at += CHUNK) {
        const int64_t n = ew_min_i64(CHUNK, channels - at);
        if (b)
            ew_tensor_load(b, at, n, v);
        for (int64_t i = 0; i < pixels; i++)
            ew_tensor_store(y, i * channels + at, n, v);
    }
}

void ew_bias_grad(const struct ew_tensor *dy, struct ew_tensor *db)
{
    const int64_t channels = dy->shape.dim[dy->shape.rank - 1];
    const int64_t pixels = ew_shape_span(&dy->shape, 0, dy->shape.rank - 1);
    for (int64_t at = 0; at < channels; at += CHUNK) {
        const int64_t n = ew_min_i64(CHUNK, channels - at);
        double v[CHUNK], sum[CHUNK] = {0};
        for (int64_t i = 0; i < pixels; i++) {
            ew_tensor_load(dy, i * channels + at, n, v);
            for (int64_t k = 0; k < n; k++)
                sum[k] += v[k];
        }
        ew_tensor_accumulate(db, at, n, sum);
    }
}
