/* SPDX-License-Identifier: Apache-2.0 */
/* Loops shared by the element-wise operators. */
#include "op/pointwise.h"

#include <string.h>

#define CHUNK 256 /* elements converted at a time; small enough to stay in the first-level cache   \
                   */

ew_err ew_unary_forward(const struct ew_call *c, double (*f)(double x, const void *attr))
{
    double v[CHUNK];
    const int64_t count = ew_tensor_count(c->in[0]);
    for (int64_t at = 0; at < count; at += CHUNK) {
        const int64_t n = ew_min_i64(CHUNK, count - at);
        ew_tensor_load(c->in[0], at, n, v);
        for (int64_t i = 0; i < n; i++)
            v[i] = f(v[i], c->attr);
        ew_tensor_store(c->out[0], at, n, v);
    }
    return EW_OK;
}

ew_err ew_unary_forward_int(const struct ew_call *c, int64_t (*f)(int64_t x, const void *attr))
{
    int64_t v[CHUNK];
    const int64_t count = ew_tensor_count(c->in[0]);
    for (int64_t at = 0; at < count; at += CHUNK) {
        const int64_t n = ew_min_i64(CHUNK, count - at);
        ew_tensor_load_int(c->in[0], at, n, v);
        for (int64_t i = 0; i < n; i++)
            v[i] = f(v[i], c->attr);
        ew_tensor_store_int(c->out[0], at, n, v);
    }
    return EW_OK;
}

/* Loads what is there and leaves zeros for what training did not keep. */
static void load_if(const struct ew_tensor *t, int64_t at, int64_t n, double *v)
{
    if (t && t->data)
        ew_tensor_load(t, at, n, v);
    else
        memset(v, 0, (size_t)n * sizeof(*v));
}

ew_err ew_unary_backward(const struct ew_call *c,
                         double (*df)(double x, double y, const void *attr))
{
    double x[CHUNK], y[CHUNK], g[CHUNK];
    if (!c->din[0] || !c->dout[0])
        return EW_OK;
    const int64_t count = ew_tensor_count(c->din[0]);
    for (int64_t at = 0; at < count; at += CHUNK) {
        const int64_t n = ew_min_i64(CHUNK, count - at);
        load_if(c->in[0], at, n, x);
        load_if(c->out[0], at, n, y);
        ew_tensor_load(c->dout[0], at, n, g);
        for (int64_t i = 0; i < n; i++)
            g[i] *= df(x[i], y[i], c->attr);
        ew_tensor_accumulate(c->din[0], at, n, g);
    }
    return EW_OK;
}

ew_err ew_broadcast_infer(const struct ew_call *c)
{
    struct ew_shape s = c->in[0]->shape;
    for (int i = 1; i < c->n_in; i++) {
        EW_CHECK(c->in[i]->dtype == c->in[0]->dtype, EW_ERR_TYPE, "inputs are %s and %s",
                 ew_dtype_name(c->in[0]->dtype), ew_dtype_name(c->in[i]->dtype));
        EW_TRY(ew_shape_broadcast(&s, &c->in[i]->shape, &s));
    }
    c->out[0]->dtype = c->in[0]->dtype;
    c->out[0]->shape = s;
    return EW_OK;
}

ew_err ew_broadcast_infer_bool(const struct ew_call *c)
{
    EW_TRY(ew_broadcast_infer(c));
    c->out[0]->dtype = EW_BOOL;
    return EW_OK;
}

/* Walks the output's elements in order and keeps the matching positions in the two inputs. */
struct walk {
    int rank;
    const int64_t *dim;
    int64_t at[EW_MAX_RANK];
    int64_t stride[2][EW_MAX_RANK];
    int64_t pos[2];
};

static void walk_begin(struct walk *w, const struct ew_shape *a, const struct ew_shape *b,
                       const struct ew_shape *out)
{
    *w = (struct walk){.rank = out->rank, .dim = out->dim};
    ew_shape_strides(a, out, w->stride[0]);
    ew_shape_strides(b, out, w->stride[1]);
}

static void walk_next(struct walk *w)
{
    for (int i = w->rank - 1; i >= 0; i--) {
        w->pos[0] += w->stride[0][i];
        w->pos[1] += w->stride[1][i];
        if (++w->at[i] < w->dim[i])
            return;
        w->pos[0] -= w->at[i] * w->stride[0][i];
        w->pos[1] -= w->at[i] * w->stride[1][i];
        w->at[i] = 0;
    }
}

ew_err ew_binary_forward(const struct ew_call *c, double (*f)(double a, double b),
                         int64_t (*fi)(int64_t a, int64_t b))
{
    const struct ew_tensor *a = c->in[0], *b = c->in[1];
    const bool exact = fi && (!f || !ew_dtype_is_float(a->dtype));
    const int64_t count = ew_tensor_count(c->out[0]);
    struct walk w;
    walk_begin(&w, &a->shape, &b->shape, &c->out[0]->shape);
    for (int64_t i = 0; i < count; i++, walk_next(&w)) {
        if (exact) {
            const int64_t y = fi(ew_tensor_get_int(a, w.pos[0]), ew_tensor_get_int(b, w.pos[1]));
            ew_tensor_store_int(c->out[0], i, 1, &y);
        } else {
            const double y = f(ew_tensor_get(a, w.pos[0]), ew_tensor_get(b, w.pos[1]));
            ew_tensor_store(c->out[0], i, 1, &y);
        }
    }
    return EW_OK;
}

ew_err ew_binary_backward(const struct ew_call *c,
                          void (*df)(double a, double b, double *ga, double *gb))
{
    const struct ew_tensor *a = c->in[0], *b = c->in[1], *dy = c->dout[0];
    if (!dy)
        return EW_OK;
    const int64_t count = ew_tensor_count(dy);
    struct walk w;
    walk_begin(&w, &a->shape, &b->shape, &dy->shape);
    for (int64_t i = 0; i < count; i++, walk_next(&w)) {
        /* An operator that saves no input (add) has no data to read and ignores it. */
        const double va = a->data ? ew_tensor_get(a, w.pos[0]) : 0;
        const double vb = b->data ? ew_tensor_get(b, w.pos[1]) : 0;
        double ga = 0, gb = 0;
        df(va, vb, &ga, &gb);
        const double g = ew_tensor_get(dy, i);
        ga *= g;
        gb *= g;
        if (c->din[0])
            ew_tensor_accumulate(c->din[0], w.pos[0], 1, &ga);
        if (c->din[1])
            ew_tensor_accumulate(c->din[1], w.pos[1], 1, &gb);
    }
    return EW_OK;
}
