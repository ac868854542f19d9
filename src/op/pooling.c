/* SPDX-License-Identifier: Apache-2.0 */
/* Reference loops of pooling, over any window, in double. */
#include "op/pooling.h"

#include <math.h>

#include "graph/onnx.h"
#include "op/types.h"

#define CHUNK 256 /* channels at a time */

/* clang-format off */
const struct ew_field ew_adaptive_fields[] = {
    {.name = "size", .type = EW_FIELD_INTS, .offset = offsetof(struct ew_adaptive_attr, size),
     .min = 1, .max = INT32_MAX, .help = "spatial size of the output"},
    EW_FIELD_END};
/* clang-format on */

ew_err ew_pool_resolve(const struct ew_call *c, struct ew_window *out)
{
    const struct ew_pool_attr *a = c->attr;
    const struct ew_shape *x = &c->in[0]->shape;
    EW_TRY(ew_spatial_check(c->in[0]));
    EW_CHECK(a->win.kernel.n == x->rank - 2, EW_ERR_SHAPE, "kernel has %d entries, %d are needed",
             (int)a->win.kernel.n, x->rank - 2);
    EW_TRY(ew_window_resolve(&a->win, x, a->win.kernel.v, a->ceil_mode, out));
    for (int d = 0; d < EW_WINDOW_DIMS; d++) {
        const int64_t reach = (out->kernel[d] - 1) * out->dilation[d] + 1;
        EW_CHECK(out->pad[d] < reach && out->pad_end[d] < reach, EW_ERR_SHAPE,
                 "padding of %lld and %lld leaves windows of %lld without an element",
                 (long long)out->pad[d], (long long)out->pad_end[d], (long long)reach);
    }
    return EW_OK;
}

ew_err ew_adaptive_resolve(const struct ew_call *c, struct ew_window *out)
{
    const struct ew_adaptive_attr *a = c->attr;
    EW_TRY(ew_spatial_check(c->in[0]));
    return ew_window_adaptive(&c->in[0]->shape, &a->size, out);
}

ew_err ew_global_resolve(const struct ew_call *c, struct ew_window *out)
{
    EW_TRY(ew_spatial_check(c->in[0]));
    ew_window_global(&c->in[0]->shape, out);
    return EW_OK;
}

void ew_pool_shape(const struct ew_call *c, const struct ew_window *w)
{
    for (int i = 0; i < c->n_out; i++)
        if (c->out[i])
            ew_window_shape(w, c->in[0]->shape.rank, w->channels, &c->out[i]->shape);
}

void ew_pool_cost(const struct ew_call *c, const struct ew_window *w, struct ew_cost *out)
{
    out->flops += ew_cost_mul(ew_tensor_count(c->out[0]), ew_window_taps(w));
}

ew_err ew_pool_infer_float(const struct ew_call *c)
{
    struct ew_window w;
    EW_TRY(ew_types_check(c, 0, EW_TYPES_FLOAT));
    EW_TRY(ew_pool_resolve(c, &w));
    ew_pool_shape(c, &w);
    return EW_OK;
}

ew_err ew_global_infer_float(const struct ew_call *c)
{
    struct ew_window w;
    EW_TRY(ew_types_check(c, 0, EW_TYPES_FLOAT));
    EW_TRY(ew_global_resolve(c, &w));
    ew_pool_shape(c, &w);
    return EW_OK;
}

void ew_pool_cost_sliding(const struct ew_call *c, struct ew_cost *out)
{
    struct ew_window w;
    if (ew_pool_resolve(c, &w) == EW_OK)
        ew_pool_cost(c, &w, out);
}

void ew_pool_cost_global(const struct ew_call *c, struct ew_cost *out)
{
    struct ew_window w;
    if (ew_global_resolve(c, &w) == EW_OK)
        ew_pool_cost(c, &w, out);
}

void ew_adaptive_cost(const struct ew_call *c, const struct ew_window *w, struct ew_cost *out)
{
    int64_t taps = 1;
    for (int d = 0; d < EW_WINDOW_DIMS; d++)
        taps = ew_cost_mul(taps, w->in[d] / w->out[d]);
    const int64_t ops = ew_cost_mul(ew_tensor_count(c->out[0]), taps + 1);
    out->flops += ops;
    out->thop_macs += ops;
}

ew_err ew_pool_export(const struct ew_graph *g, int node, struct ew_onnx_node *n, int since)
{
    const struct ew_pool_attr *a = g->nodes[node].attr;
    for (int i = 0; i < a->win.dilation.n; i++)
        if (a->win.dilation.v[i] != 1 && n->opset < since)
            n->opset = since;
    if (n->opset < since)
        ew_onnx_drop(n, "dilations");
    return EW_OK;
}

ew_err ew_adaptive_export(const struct ew_graph *g, int node, struct ew_onnx_node *n,
                          const char *global, const char *sliding)
{
    const struct ew_node *at = &g->nodes[node];
    const struct ew_adaptive_attr *a = at->attr;
    /* during export shapes are [N, C, d...] */
    const struct ew_shape *x = &g->values[at->in[0]].t.shape;
    const int first = at->channels_first ? 2 : 1;
    int64_t kernel[EW_MAX_INTS];
    bool one = true;
    for (int i = 0; i < a->size.n; i++) {
        const int64_t in = x->dim[first + i], out = a->size.v[i];
        EW_CHECK(in % out == 0, EW_ERR_UNSUPPORTED,
                 "ONNX has no adaptive pool, and windows from %lld to %lld are not even",
                 (long long)in, (long long)out);
        kernel[i] = in / out;
        one = one && out == 1;
    }
    ew_onnx_drop(n, "size");
    n->type = one ? global : sliding;
    if (one)
        return EW_OK;
    EW_TRY(ew_onnx_set_ints(n, "kernel_shape", kernel, a->size.n));
    return ew_onnx_set_ints(n, "strides", kernel, a->size.n);
}

/* ---- One output pixel's channels [at, at + n) at a time ---- */

struct block {
    int64_t image, o[EW_WINDOW_DIMS];
    int64_t pixel; /* of the output, over the whole batch */
    int64_t at, n; /* channels */
    int64_t out;   /* offset in the output */
};

static bool block_first(const struct ew_window *w, struct block *b)
{
    *b = (struct block){.n = ew_min_i64(CHUNK, w->channels)};
    return w->batch > 0 && w->channels > 0;
}

static bool block_next(const struct ew_window *w, struct block *b)
{
    b->at += b->n;
    if (b->at == w->channels) {
        b->at = 0;
        b->pixel++;
        if (!ew_window_next(w, b->o) && ++b->image == w->batch)
            return false;
    }
    b->n = ew_min_i64(CHUNK, w->channels - b->at);
    b->out = b->pixel * w->channels + b->at;
    return true;
}

/* ---- Maximum ---- */

/* Flat index of (pixel `row`, channel ch) in [N, C, d...]; `columns`: column-major in the spatial
 * dimensions. */
static int64_t onnx_index(const struct ew_window *w, int64_t row, int64_t ch, bool columns)
{
    const int64_t area = w->in[0] * w->in[1] * w->in[2];
    int64_t image = row / area, pixel = row % area;
    if (columns) {
        const int64_t x = pixel % w->in[2], y = pixel / w->in[2] % w->in[1];
        const int64_t z = pixel / w->in[2] / w->in[1];
        pixel = (x * w->in[1] + y) * w->in[0] + z;
    }
    return (image * w->channels + ch) * area + pixel;
}

/* The maxima of a block; the first of equals. */
struct maxima {
    double best[CHUNK];
    int64_t row[CHUNK]; /* pixel of x with the maximum */
    int64_t tap[CHUNK]; /* its position in the window */
};

static void block_max(const struct ew_call *c, const struct ew_window *w, const struct block *b,
                      struct maxima *m)
{
    double v[CHUNK];
    struct ew_tap t;
    for (int64_t i = 0; i < b->n; i++) {
        m->best[i] = -INFINITY;
        m->row[i] = 0;
        m->tap[i] = 0;
    }
    bool first = true;
    for (bool more = ew_tap_first(w, b->image, b->o, &t); more; more = ew_tap_next(w, &t)) {
        ew_tensor_load(c->in[0], t.row * w->channels + b->at, b->n, v);
        for (int64_t i = 0; i < b->n; i++) {
            if (first || v[i] > m->best[i] || isnan(v[i])) {
                m->best[i] = v[i];
                m->row[i] = t.row;
                m->tap[i] = t.index;
            }
        }
        first = false;
    }
}

bool ew_max_pool_small(const struct ew_window *w)
{
    return ew_window_taps(w) <= EW_MAX_POOL_SMALL;
}

size_t ew_max_pool_aux(const struct ew_window *w)
{
    const size_t size = ew_max_pool_small(w) ? sizeof(uint8_t) : sizeof(int64_t);
    return (size_t)(w->batch * ew_window_outs(w) * w->channels) * size;
}

static void keep_tap(void *aux, bool small, int64_t at, int64_t tap)
{
    if (small)
        ((uint8_t *)aux)[at] = (uint8_t)tap;
    else
        ((int64_t *)aux)[at] = tap;
}

static int64_t kept_tap(const void *aux, bool small, int64_t at)
{
    return small ? ((const uint8_t *)aux)[at] : ((const int64_t *)aux)[at];
}

ew_err ew_max_pool_forward(const struct ew_call *c, const struct ew_window *w, bool columns)
{
    struct maxima m;
    struct block b;
    struct ew_tensor *indices = c->n_out > 1 ? c->out[1] : NULL;
    const bool small = ew_max_pool_small(w);
    for (bool more = block_first(w, &b); more; more = block_next(w, &b)) {
        block_max(c, w, &b, &m);
        if (c->out[0])
            ew_tensor_store(c->out[0], b.out, b.n, m.best);
        for (int64_t i = 0; indices && i < b.n; i++)
            ((int64_t *)indices->data)[b.out + i] = onnx_index(w, m.row[i], b.at + i, columns);
        for (int64_t i = 0; c->aux && i < b.n; i++)
            keep_tap(c->aux, small, b.out + i, m.tap[i]);
    }
    return EW_OK;
}

ew_err ew_max_pool_backward(const struct ew_call *c, const struct ew_window *w)
{
    double v[CHUNK];
    struct block b;
    struct ew_tap t;
    const bool small = ew_max_pool_small(w);
    if (!c->din[0] || !c->dout[0])
        return EW_OK;
    for (bool more = block_first(w, &b); more; more = block_next(w, &b)) {
        ew_tensor_load(c->dout[0], b.out, b.n, v);
        for (bool go = ew_tap_first(w, b.image, b.o, &t); go; go = ew_tap_next(w, &t))
            for (int64_t i = 0; i < b.n; i++)
                if (kept_tap(c->aux, small, b.out + i) == t.index)
                    ew_tensor_accumulate(c->din[0], t.row * w->channels + b.at + i, 1, &v[i]);
    }
    return EW_OK;
}

/* ---- Mean ---- */

ew_err ew_avg_pool_forward(const struct ew_call *c, const struct ew_window *w, bool padded)
{
    double v[CHUNK], sum[CHUNK];
    struct block b;
    for (bool more = block_first(w, &b); more; more = block_next(w, &b)) {
        struct ew_tap t;
        for (int64_t i = 0; i < b.n; i++)
            sum[i] = 0;
        for (bool go = ew_tap_first(w, b.image, b.o, &t); go; go = ew_tap_next(w, &t)) {
            ew_tensor_load(c->in[0], t.row * w->channels + b.at, b.n, v);
            for (int64_t i = 0; i < b.n; i++)
                sum[i] += v[i];
        }
        const double count = (double)ew_max_i64(ew_tap_count(w, b.o, padded), 1);
        for (int64_t i = 0; i < b.n; i++)
            sum[i] /= count;
        ew_tensor_store(c->out[0], b.out, b.n, sum);
    }
    return EW_OK;
}

ew_err ew_avg_pool_backward(const struct ew_call *c, const struct ew_window *w, bool padded)
{
    double v[CHUNK];
    struct block b;
    if (!c->din[0] || !c->dout[0])
        return EW_OK;
    for (bool more = block_first(w, &b); more; more = block_next(w, &b)) {
        struct ew_tap t;
        ew_tensor_load(c->dout[0], b.out, b.n, v);
        const double count = (double)ew_max_i64(ew_tap_count(w, b.o, padded), 1);
        for (int64_t i = 0; i < b.n; i++)
            v[i] /= count;
        for (bool go = ew_tap_first(w, b.image, b.o, &t); go; go = ew_tap_next(w, &t))
            ew_tensor_accumulate(c->din[0], t.row * w->channels + b.at, b.n, v);
    }
    return EW_OK;
}

/* ---- p-norm ---- */

ew_err ew_lp_pool_forward(const struct ew_call *c, const struct ew_window *w, int64_t p)
{
    double v[CHUNK], sum[CHUNK];
    struct block b;
    for (bool more = block_first(w, &b); more; more = block_next(w, &b)) {
        struct ew_tap t;
        for (int64_t i = 0; i < b.n; i++)
            sum[i] = 0;
        for (bool go = ew_tap_first(w, b.image, b.o, &t); go; go = ew_tap_next(w, &t)) {
            ew_tensor_load(c->in[0], t.row * w->channels + b.at, b.n, v);
            for (int64_t i = 0; i < b.n; i++)
                sum[i] += pow(fabs(v[i]), (double)p);
        }
        for (int64_t i = 0; i < b.n; i++)
            sum[i] = pow(sum[i], 1.0 / (double)p);
        ew_tensor_store(c->out[0], b.out, b.n, sum);
    }
    return EW_OK;
}

/* d y / d x = sign(x) (|x| / y)^(p - 1); 0 where y is. */
ew_err ew_lp_pool_backward(const struct ew_call *c, const struct ew_window *w, int64_t p)
{
    double v[CHUNK], y[CHUNK], dy[CHUNK];
    struct block b;
    if (!c->din[0] || !c->dout[0])
        return EW_OK;
    for (bool more = block_first(w, &b); more; more = block_next(w, &b)) {
        struct ew_tap t;
        ew_tensor_load(c->dout[0], b.out, b.n, dy);
        ew_tensor_load(c->out[0], b.out, b.n, y);
        for (bool go = ew_tap_first(w, b.image, b.o, &t); go; go = ew_tap_next(w, &t)) {
            ew_tensor_load(c->in[0], t.row * w->channels + b.at, b.n, v);
            for (int64_t i = 0; i < b.n; i++) {
                const double g = y[i] > 0 ? dy[i] * pow(fabs(v[i]) / y[i], (double)(p - 1)) : 0;
                v[i] = v[i] < 0 ? -g : g;
            }
            ew_tensor_accumulate(c->din[0], t.row * w->channels + b.at, b.n, v);
        }
    }
    return EW_OK;
}
