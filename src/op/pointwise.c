/* SPDX-License-Identifier: Apache-2.0 */
/* Common loops of the element-wise operators. */
#include "op/pointwise.h"

#include <string.h>

#include "op/math_attr.h"

/* ---- One input ---- */

static ew_err unary_infer(const struct ew_call *c, unsigned types)
{
    EW_TRY(ew_types_check(c, 0, types));
    c->out[0]->dtype = c->in[0]->dtype;
    c->out[0]->shape = c->in[0]->shape;
    return EW_OK;
}

ew_err ew_unary_infer_float(const struct ew_call *c)
{
    return unary_infer(c, EW_TYPES_FLOAT);
}

ew_err ew_unary_infer_signed(const struct ew_call *c)
{
    return unary_infer(c, EW_TYPES_SIGNED);
}

ew_err ew_unary_infer_number(const struct ew_call *c)
{
    return unary_infer(c, EW_TYPES_NUMBER);
}

ew_err ew_unary_infer_int(const struct ew_call *c)
{
    return unary_infer(c, EW_TYPES_INT);
}

ew_err ew_unary_infer_bool(const struct ew_call *c)
{
    return unary_infer(c, EW_TYPES_BOOL);
}

ew_err ew_unary_infer_test(const struct ew_call *c)
{
    EW_TRY(unary_infer(c, EW_TYPES_FLOAT));
    c->out[0]->dtype = EW_BOOL;
    return EW_OK;
}

ew_err ew_unary_forward(const struct ew_call *c, double (*f)(double x, const void *attr))
{
    double v[EW_CHUNK];
    const int64_t count = ew_tensor_count(c->in[0]);
    for (int64_t at = 0; at < count; at += EW_CHUNK) {
        const int64_t n = ew_min_i64(EW_CHUNK, count - at);
        ew_tensor_load(c->in[0], at, n, v);
        for (int64_t i = 0; i < n; i++)
            v[i] = f(v[i], c->attr);
        ew_tensor_store(c->out[0], at, n, v);
    }
    return EW_OK;
}

ew_err ew_unary_forward_int(const struct ew_call *c, int64_t (*f)(int64_t x, const void *attr))
{
    int64_t v[EW_CHUNK];
    const int64_t count = ew_tensor_count(c->in[0]);
    for (int64_t at = 0; at < count; at += EW_CHUNK) {
        const int64_t n = ew_min_i64(EW_CHUNK, count - at);
        ew_tensor_load_int(c->in[0], at, n, v);
        for (int64_t i = 0; i < n; i++)
            v[i] = f(v[i], c->attr);
        ew_tensor_store_int(c->out[0], at, n, v);
    }
    return EW_OK;
}

/* Loads a tensor, or zeros if training did not save it. */
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
    double x[EW_CHUNK], y[EW_CHUNK], g[EW_CHUNK];
    if (!c->din[0] || !c->dout[0])
        return EW_OK;
    const int64_t count = ew_tensor_count(c->din[0]);
    for (int64_t at = 0; at < count; at += EW_CHUNK) {
        const int64_t n = ew_min_i64(EW_CHUNK, count - at);
        load_if(c->in[0], at, n, x);
        load_if(c->out[0], at, n, y);
        ew_tensor_load(c->dout[0], at, n, g);
        for (int64_t i = 0; i < n; i++)
            g[i] *= df(x[i], y[i], c->attr);
        ew_tensor_accumulate(c->din[0], at, n, g);
    }
    return EW_OK;
}

ew_err ew_backward_none(const struct ew_call *c)
{
    return EW_OK;
}

ew_err ew_unary_backward_rising(const struct ew_call *c,
                                double (*df)(double x, double y, const void *attr))
{
    const struct ew_scale_attr *a = c->attr;
    EW_CHECK(a->alpha >= 0 && a->beta >= 0, EW_ERR_UNSUPPORTED,
             "%s: %s is %g, in training it must not be negative", c->name,
             a->alpha < 0 ? "alpha" : "gamma", a->alpha < 0 ? a->alpha : a->beta);
    return ew_unary_backward(c, df);
}

const struct ew_op_case ew_rounding_cases[EW_ROUNDING_CASES] = {
    {.name = "plain",
     .in = {{"7", EW_F32, EW_FILL_VALUES, .values = "-2.6,-1.4,-0.6,0.1,0.4,0.6,2.7"}},
     .n_in = 1,
     .out_shape = "7"},
    {.name = "half",
     .in = {{"4", EW_F16, EW_FILL_VALUES, .values = "-1.5,-0.5,0.5,1.25"}},
     .n_in = 1,
     .out_shape = "4"},
};

/* ---- Broadcasting ---- */

static ew_err broadcast_infer(const struct ew_call *c, unsigned types)
{
    struct ew_shape s = c->in[0]->shape;
    EW_TRY(ew_types_check(c, 0, types));
    for (int i = 1; i < c->n_in; i++) {
        EW_TRY(ew_types_same(c, i));
        EW_TRY(ew_shape_broadcast(&s, &c->in[i]->shape, &s));
    }
    c->out[0]->dtype = c->in[0]->dtype;
    c->out[0]->shape = s;
    return EW_OK;
}

ew_err ew_broadcast_infer_number(const struct ew_call *c)
{
    return broadcast_infer(c, EW_TYPES_NUMBER);
}

ew_err ew_broadcast_infer_float(const struct ew_call *c)
{
    return broadcast_infer(c, EW_TYPES_FLOAT);
}

ew_err ew_broadcast_infer_int(const struct ew_call *c)
{
    return broadcast_infer(c, EW_TYPES_INT);
}

ew_err ew_broadcast_infer_logic(const struct ew_call *c)
{
    return broadcast_infer(c, EW_TYPES_BOOL);
}

ew_err ew_broadcast_infer_order(const struct ew_call *c)
{
    EW_TRY(broadcast_infer(c, EW_TYPES_NUMBER));
    c->out[0]->dtype = EW_BOOL;
    return EW_OK;
}

ew_err ew_broadcast_infer_bool(const struct ew_call *c)
{
    EW_TRY(broadcast_infer(c, EW_TYPES_ALL));
    c->out[0]->dtype = EW_BOOL;
    return EW_OK;
}

/* Layout of a tensor under the shape that it broadcasts to: runs of output elements that are either
 * contiguous in the tensor or one repeated element. */
struct runs {
    const struct ew_shape *out;
    int outer;      /* axes of `out` that count the runs */
    int64_t length; /* of one run */
    bool same;      /* a run repeats one element */
    int64_t stride[EW_MAX_RANK];
};

static struct runs runs_of(const struct ew_shape *s, const struct ew_shape *out)
{
    struct runs r = {.out = out, .outer = out->rank, .length = 1};
    ew_shape_strides(s, out, r.stride);
    const int shift = out->rank - s->rank;
    bool begun = false;
    for (; r.outer > 0; r.outer--) {
        const int axis = r.outer - 1;
        if (out->dim[axis] == 1)
            continue;
        const bool same = axis < shift || s->dim[axis - shift] == 1;
        if (begun && same != r.same)
            break;
        begun = true;
        r.same = same;
        r.length *= out->dim[axis];
    }
    return r;
}

/* Index in the tensor of output element `at`, and the number of elements (up to `most`) left in its
 * run. */
static int64_t run_at(const struct runs *r, int64_t at, int64_t most, int64_t *n)
{
    const int64_t within = at % r->length;
    int64_t run = at / r->length, pos = r->same ? 0 : within;
    for (int i = r->outer - 1; i >= 0; i--) {
        pos += run % r->out->dim[i] * r->stride[i];
        run /= r->out->dim[i];
    }
    *n = ew_min_i64(most, r->length - within);
    return pos;
}

void ew_broadcast_load(const struct ew_tensor *t, const struct ew_shape *out, int64_t at, int64_t n,
                       double *v)
{
    const struct runs r = runs_of(&t->shape, out);
    for (int64_t done = 0, len; done < n; done += len) {
        const int64_t pos = run_at(&r, at + done, n - done, &len);
        ew_tensor_load(t, pos, r.same ? 1 : len, v + done);
        for (int64_t i = 1; r.same && i < len; i++)
            v[done + i] = v[done];
    }
}

void ew_broadcast_load_int(const struct ew_tensor *t, const struct ew_shape *out, int64_t at,
                           int64_t n, int64_t *v)
{
    const struct runs r = runs_of(&t->shape, out);
    for (int64_t done = 0, len; done < n; done += len) {
        const int64_t pos = run_at(&r, at + done, n - done, &len);
        ew_tensor_load_int(t, pos, r.same ? 1 : len, v + done);
        for (int64_t i = 1; r.same && i < len; i++)
            v[done + i] = v[done];
    }
}

void ew_broadcast_accumulate(struct ew_tensor *t, const struct ew_shape *out, int64_t at, int64_t n,
                             const double *v)
{
    const struct runs r = runs_of(&t->shape, out);
    for (int64_t done = 0, len; done < n; done += len) {
        const int64_t pos = run_at(&r, at + done, n - done, &len);
        double sum = 0;
        for (int64_t i = 0; r.same && i < len; i++)
            sum += v[done + i];
        ew_tensor_accumulate(t, pos, r.same ? 1 : len, r.same ? &sum : v + done);
    }
}

/* ---- Two inputs ---- */

static void binary_int(const struct ew_call *c, const struct ew_binary *fn, int64_t at, int64_t n)
{
    int64_t a[EW_CHUNK], b[EW_CHUNK];
    const struct ew_shape *out = &c->out[0]->shape;
    ew_broadcast_load_int(c->in[0], out, at, n, a);
    ew_broadcast_load_int(c->in[1], out, at, n, b);
    const bool wide = fn->fu && c->in[0]->dtype == EW_U64;
    for (int64_t i = 0; i < n; i++)
        a[i] = wide ? (int64_t)fn->fu((uint64_t)a[i], (uint64_t)b[i]) : fn->fi(a[i], b[i]);
    ew_tensor_store_int(c->out[0], at, n, a);
}

static void binary_float(const struct ew_call *c, const struct ew_binary *fn, int64_t at, int64_t n)
{
    double a[EW_CHUNK], b[EW_CHUNK];
    const struct ew_shape *out = &c->out[0]->shape;
    ew_broadcast_load(c->in[0], out, at, n, a);
    ew_broadcast_load(c->in[1], out, at, n, b);
    for (int64_t i = 0; i < n; i++)
        a[i] = fn->f(a[i], b[i]);
    ew_tensor_store(c->out[0], at, n, a);
}

ew_err ew_binary_forward(const struct ew_call *c, const struct ew_binary *fn)
{
    const bool exact = fn->fi && (!fn->f || !ew_dtype_is_float(c->in[0]->dtype));
    const int64_t count = ew_tensor_count(c->out[0]);
    for (int64_t at = 0; at < count; at += EW_CHUNK) {
        const int64_t n = ew_min_i64(EW_CHUNK, count - at);
        if (exact)
            binary_int(c, fn, at, n);
        else
            binary_float(c, fn, at, n);
    }
    return EW_OK;
}

/* Loads a broadcast tensor, if it has data: operators that save no input (add) ignore it. */
static void broadcast_load_if(const struct ew_tensor *t, const struct ew_shape *out, int64_t at,
                              int64_t n, double *v)
{
    if (t->data)
        ew_broadcast_load(t, out, at, n, v);
    else
        memset(v, 0, (size_t)n * sizeof(*v));
}

ew_err ew_binary_backward(const struct ew_call *c,
                          void (*df)(double a, double b, double *ga, double *gb))
{
    double a[EW_CHUNK], b[EW_CHUNK], g[EW_CHUNK];
    if (!c->dout[0])
        return EW_OK;
    const struct ew_shape *out = &c->dout[0]->shape;
    const int64_t count = ew_shape_count(out);
    for (int64_t at = 0; at < count; at += EW_CHUNK) {
        const int64_t n = ew_min_i64(EW_CHUNK, count - at);
        broadcast_load_if(c->in[0], out, at, n, a);
        broadcast_load_if(c->in[1], out, at, n, b);
        ew_tensor_load(c->dout[0], at, n, g);
        for (int64_t i = 0; i < n; i++) {
            double ga = 0, gb = 0;
            df(a[i], b[i], &ga, &gb);
            a[i] = ga * g[i];
            b[i] = gb * g[i];
        }
        if (c->din[0])
            ew_broadcast_accumulate(c->din[0], out, at, n, a);
        if (c->din[1])
            ew_broadcast_accumulate(c->din[1], out, at, n, b);
    }
    return EW_OK;
}

/* ---- Any number of inputs ---- */

static void variadic_int(const struct ew_call *c, const struct ew_binary *fn, int64_t at, int64_t n)
{
    int64_t acc[EW_CHUNK], v[EW_CHUNK];
    const struct ew_shape *out = &c->out[0]->shape;
    const bool wide = fn->fu && c->in[0]->dtype == EW_U64;
    ew_broadcast_load_int(c->in[0], out, at, n, acc);
    for (int k = 1; k < c->n_in; k++) {
        ew_broadcast_load_int(c->in[k], out, at, n, v);
        for (int64_t i = 0; i < n; i++)
            acc[i] =
                wide ? (int64_t)fn->fu((uint64_t)acc[i], (uint64_t)v[i]) : fn->fi(acc[i], v[i]);
    }
    ew_tensor_store_int(c->out[0], at, n, acc);
}

static void variadic_float(const struct ew_call *c, const struct ew_binary *fn, double scale,
                           int64_t at, int64_t n)
{
    double acc[EW_CHUNK], v[EW_CHUNK];
    const struct ew_shape *out = &c->out[0]->shape;
    ew_broadcast_load(c->in[0], out, at, n, acc);
    for (int k = 1; k < c->n_in; k++) {
        ew_broadcast_load(c->in[k], out, at, n, v);
        for (int64_t i = 0; i < n; i++)
            acc[i] = fn->f(acc[i], v[i]);
    }
    for (int64_t i = 0; i < n; i++)
        acc[i] *= scale;
    ew_tensor_store(c->out[0], at, n, acc);
}

ew_err ew_variadic_forward(const struct ew_call *c, const struct ew_binary *fn, double scale)
{
    const bool exact = fn->fi && !ew_dtype_is_float(c->in[0]->dtype);
    const int64_t count = ew_tensor_count(c->out[0]);
    for (int64_t at = 0; at < count; at += EW_CHUNK) {
        const int64_t n = ew_min_i64(EW_CHUNK, count - at);
        if (exact)
            variadic_int(c, fn, at, n);
        else
            variadic_float(c, fn, scale, at, n);
    }
    return EW_OK;
}

ew_err ew_variadic_backward_sum(const struct ew_call *c, double scale)
{
    double g[EW_CHUNK];
    if (!c->dout[0])
        return EW_OK;
    const struct ew_shape *out = &c->dout[0]->shape;
    const int64_t count = ew_shape_count(out);
    for (int64_t at = 0; at < count; at += EW_CHUNK) {
        const int64_t n = ew_min_i64(EW_CHUNK, count - at);
        ew_tensor_load(c->dout[0], at, n, g);
        for (int64_t i = 0; i < n; i++)
            g[i] *= scale;
        for (int k = 0; k < c->n_in; k++)
            if (c->din[k])
                ew_broadcast_accumulate(c->din[k], out, at, n, g);
    }
    return EW_OK;
}

/* 1 where input k equals the output, else 0. */
static void load_chosen(const struct ew_call *c, int k, int64_t at, int64_t n, double *v)
{
    double y[EW_CHUNK];
    ew_broadcast_load(c->in[k], &c->out[0]->shape, at, n, v);
    ew_tensor_load(c->out[0], at, n, y);
    for (int64_t i = 0; i < n; i++)
        v[i] = v[i] >= y[i] && v[i] <= y[i];
}

ew_err ew_variadic_backward_extreme(const struct ew_call *c)
{
    double g[EW_CHUNK], v[EW_CHUNK], chosen[EW_CHUNK];
    if (!c->dout[0])
        return EW_OK;
    const struct ew_shape *out = &c->dout[0]->shape;
    const int64_t count = ew_shape_count(out);
    for (int64_t at = 0; at < count; at += EW_CHUNK) {
        const int64_t n = ew_min_i64(EW_CHUNK, count - at);
        memset(chosen, 0, sizeof(chosen));
        for (int k = 0; k < c->n_in; k++) {
            load_chosen(c, k, at, n, v);
            for (int64_t i = 0; i < n; i++)
                chosen[i] += v[i];
        }
        ew_tensor_load(c->dout[0], at, n, g);
        for (int k = 0; k < c->n_in; k++) {
            if (!c->din[k])
                continue;
            load_chosen(c, k, at, n, v);
            for (int64_t i = 0; i < n; i++)
                v[i] *= chosen[i] > 0 ? g[i] / chosen[i] : 0; /* none where there is a NaN */
            ew_broadcast_accumulate(c->din[k], out, at, n, v);
        }
    }
    return EW_OK;
}

const struct ew_op_case ew_order_cases[EW_ORDER_CASES] = {
    {.name = "same", .in = {{"2x3"}, {"2x3"}}, .n_in = 2, .out_shape = "2x3"},
    {.name = "both", .in = {{"2x1x4", EW_S32}, {"3x1", EW_S32}}, .n_in = 2, .out_shape = "2x3x4"},
    {.name = "half", .in = {{"5", EW_F16}, {"", EW_F16}}, .n_in = 2, .out_shape = "5"},
    {.name = "uint64", .in = {{"5", EW_U64}, {"5", EW_U64}}, .n_in = 2, .out_shape = "5"},
};

const struct ew_op_case ew_extreme_cases[EW_EXTREME_CASES] = {
    {.name = "one", .in = {{"2x3"}}, .n_in = 1, .out_shape = "2x3"},
    {.name = "three", .in = {{"2x1x4"}, {"3x1"}, {"4"}}, .n_in = 3, .out_shape = "2x3x4"},
    {.name = "two", .in = {{"3x100"}, {"3x100"}}, .n_in = 2, .out_shape = "3x100"},
    {.name = "int", .in = {{"2x3", EW_S64}, {"3", EW_S64}}, .n_in = 2, .out_shape = "2x3"},
    {.name = "uint64",
     .in = {{"3", EW_U64, EW_FILL_VALUES, .values = "1,2,3"},
            {"3", EW_U64, EW_FILL_VALUES, .values = "3,2,1"}},
     .n_in = 2,
     .out_shape = "3"},
};
