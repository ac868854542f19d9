/* SPDX-License-Identifier: Apache-2.0 */
/* Resize along one axis: output size, coordinates and weights by the definitions of ONNX's Resize
 * (opset 19).  All modes are separable, so axes are independent. */
#include "op/resize.h"

#include <math.h>

#include "op/cubic.h"
#include "op/types.h"

/* Empty tensors stand for absent inputs since opset 11. */
static const struct ew_tensor *given(const struct ew_call *c, int slot)
{
    const struct ew_tensor *t = ew_call_in(c, slot);
    return t && ew_tensor_count(t) > 0 ? t : NULL;
}

/* ---- Sizes ---- */

static double support(const struct ew_resize_attr *a)
{
    return a->mode == EW_RESIZE_LINEAR ? 1 : 2;
}

/* Factor by which antialiasing widens the kernel. */
static double squeeze(const struct ew_resize_attr *a, const struct ew_resize_axis *axis)
{
    return a->antialias && axis->scale < 1 ? axis->scale : 1;
}

static ew_err set_taps(const struct ew_resize_attr *a, struct ew_resize_axis *axis)
{
    /* with scale 1 every rule is the identity, except these two */
    axis->same = axis->out == axis->in && !(axis->scale < 1) && !(axis->scale > 1) &&
                 a->coordinate != EW_RESIZE_TF_CROP_AND_RESIZE &&
                 a->coordinate != EW_RESIZE_TF_HALF_PIXEL_FOR_NN;
    axis->taps = 1;
    if (axis->same || a->mode == EW_RESIZE_NEAREST)
        return EW_OK;
    const double reach = support(a) / squeeze(a, axis);
    EW_CHECK(reach <= 4 * (double)axis->in, EW_ERR_LIMIT,
             "a scale of %g is too small for an axis of %lld", axis->scale, (long long)axis->in);
    axis->taps = 2 * (int64_t)ceil(reach);
    return EW_OK;
}

/* Output size by `scale`, in float32 like ONNX's shape inference. */
static int64_t scaled(const struct ew_resize_attr *a, const struct ew_resize_axis *axis)
{
    float share = (float)axis->scale;
    if (a->coordinate == EW_RESIZE_TF_CROP_AND_RESIZE)
        share *= (float)(axis->end - axis->start);
    const float out = floorf((float)axis->in * share);
    return out >= 1 && out < 0x1p40f ? (int64_t)out : 0;
}

static ew_err set_by_scales(const struct ew_resize_attr *a, const struct ew_tensor *scales,
                            const int *list, int n, struct ew_resize_axis *axes)
{
    for (int i = 0; i < n; i++) {
        struct ew_resize_axis *axis = &axes[list[i]];
        axis->scale = ew_tensor_get(scales, i);
        EW_CHECK(isfinite(axis->scale) && axis->scale > 0, EW_ERR_SHAPE, "scale %d is %g", i,
                 axis->scale);
        axis->out = scaled(a, axis);
    }
    return EW_OK;
}

static ew_err set_by_sizes(const struct ew_resize_attr *a, const struct ew_tensor *sizes,
                           const int *list, int n, struct ew_resize_axis *axes)
{
    double least = INFINITY, most = 0;
    for (int i = 0; i < n; i++) {
        struct ew_resize_axis *axis = &axes[list[i]];
        axis->out = ew_tensor_get_int(sizes, i);
        EW_CHECK(axis->out >= 0 && axis->out <= (int64_t)1 << 40, EW_ERR_SHAPE, "size %d is %lld",
                 i, (long long)axis->out);
        axis->scale = (double)axis->out / (double)axis->in;
        axis->by_size = a->aspect == EW_RESIZE_STRETCH;
        least = fmin(least, axis->scale);
        most = fmax(most, axis->scale);
    }
    for (int i = 0; i < n && a->aspect != EW_RESIZE_STRETCH; i++) {
        struct ew_resize_axis *axis = &axes[list[i]];
        axis->scale = a->aspect == EW_RESIZE_NOT_LARGER ? least : most;
        const double out = floor(axis->scale * (double)axis->in + 0.5);
        axis->out = out < 0x1p40 ? (int64_t)out : 0;
    }
    return EW_OK;
}

/* The axes of scales, sizes and roi. */
static ew_err read_axes(const struct ew_resize_attr *a, int rank, int *list, int *n)
{
    unsigned seen = 0;
    *n = a->axes.n ? a->axes.n : rank;
    EW_CHECK(*n <= rank, EW_ERR_SHAPE, "%d axes are named, there are %d", *n, rank);
    for (int i = 0; i < *n; i++) {
        list[i] = i;
        if (a->axes.n)
            EW_TRY(ew_shape_axis(a->axes.v[i], rank, &list[i]));
        EW_CHECK(!(seen >> list[i] & 1), EW_ERR_SHAPE, "axis %d is named twice", list[i]);
        seen |= 1u << list[i];
    }
    return EW_OK;
}

/* Reads roi: all starts, then all ends. */
static ew_err read_roi(const struct ew_call *c, const int *list, int n, struct ew_resize_axis *axes)
{
    const struct ew_resize_attr *a = c->attr;
    const struct ew_tensor *roi = given(c, EW_RESIZE_ROI);
    if (a->coordinate != EW_RESIZE_TF_CROP_AND_RESIZE)
        return EW_OK;
    EW_CHECK(roi && ew_tensor_count(roi) == 2 * n, EW_ERR_SHAPE,
             "tf_crop_and_resize needs a roi of %d numbers", 2 * n);
    for (int i = 0; i < n; i++) {
        axes[list[i]].start = ew_tensor_get(roi, i);
        axes[list[i]].end = ew_tensor_get(roi, n + i);
        EW_CHECK(isfinite(axes[list[i]].start) && isfinite(axes[list[i]].end), EW_ERR_SHAPE,
                 "the roi of axis %d is not finite", list[i]);
    }
    return EW_OK;
}

ew_err ew_resize_resolve(const struct ew_call *c, struct ew_resize_axis *axes)
{
    const struct ew_resize_attr *a = c->attr;
    const struct ew_shape *x = &c->in[EW_RESIZE_X]->shape;
    const struct ew_tensor *scales = given(c, EW_RESIZE_SCALES);
    const struct ew_tensor *sizes = given(c, EW_RESIZE_SIZES);
    int list[EW_MAX_RANK], n;
    EW_TRY(read_axes(a, x->rank, list, &n));
    EW_CHECK(!scales != !sizes || n == 0, EW_ERR_ARG, "needs either scales or sizes");
    const struct ew_tensor *by = scales ? scales : sizes;
    EW_CHECK(n == 0 || ew_tensor_count(by) == n, EW_ERR_SHAPE, "%lld %s for %d axes",
             (long long)ew_tensor_count(by), scales ? "scales" : "sizes", n);
    for (int d = 0; d < x->rank; d++)
        axes[d] = (struct ew_resize_axis){
            .in = x->dim[d], .out = x->dim[d], .scale = 1, .end = 1, .same = true, .taps = 1};
    EW_TRY(read_roi(c, list, n, axes));
    if (n > 0)
        EW_TRY(scales ? set_by_scales(a, scales, list, n, axes)
                      : set_by_sizes(a, sizes, list, n, axes));
    for (int i = 0; i < n; i++) {
        struct ew_resize_axis *axis = &axes[list[i]];
        EW_CHECK(axis->in > 0 ? axis->out > 0 : axis->out == 0, EW_ERR_SHAPE,
                 "axis %d of %lld becomes %lld", list[i], (long long)axis->in,
                 (long long)axis->out);
        if (axis->in > 0)
            EW_TRY(set_taps(a, axis));
    }
    return EW_OK;
}

/* ---- Coordinates ---- */

/* at / scale, rounded once, so that ties of nearest are not decided by rounding errors.  A scale of
 * 1/3 or 0.1 is itself rounded to float32: 1 / 0.33333334 is 3 only in float32, and nearest must
 * not take the neighbour. */
static double unscaled(const struct ew_resize_attr *a, const struct ew_resize_axis *s, double at)
{
    if (s->by_size)
        return at * (double)s->in / (double)s->out;
    const double x = at / s->scale;
    return a->mode == EW_RESIZE_NEAREST ? (double)(float)x : x;
}

/* Position of output o on x's axis. */
static double source(const struct ew_resize_attr *a, const struct ew_resize_axis *s, int64_t o)
{
    const double at = (double)o, in = (double)s->in;
    /* the output's size before it was rounded */
    const double wide = s->by_size ? (double)s->out : s->scale * in;
    switch ((enum ew_resize_coordinate)a->coordinate) {
    case EW_RESIZE_HALF_PIXEL:
        return unscaled(a, s, at + 0.5) - 0.5;
    case EW_RESIZE_HALF_PIXEL_SYMMETRIC:
        return in / 2 * (1 - (double)s->out / wide) + unscaled(a, s, at + 0.5) - 0.5;
    case EW_RESIZE_PYTORCH_HALF_PIXEL:
        return s->out > 1 ? unscaled(a, s, at + 0.5) - 0.5 : 0;
    case EW_RESIZE_ALIGN_CORNERS:
        return s->out > 1 ? at * (in - 1) / (wide - 1) : 0;
    case EW_RESIZE_ASYMMETRIC:
        return unscaled(a, s, at);
    case EW_RESIZE_TF_CROP_AND_RESIZE:
        return s->out > 1 ? s->start * (in - 1) +
                                at * (s->end - s->start) * (in - 1) / (double)(s->out - 1)
                          : 0.5 * (s->start + s->end) * (in - 1);
    case EW_RESIZE_TF_HALF_PIXEL_FOR_NN:
        return unscaled(a, s, at + 0.5);
    }
    return at;
}

static double rounded(const struct ew_resize_attr *a, double x)
{
    switch ((enum ew_resize_round)a->round) {
    case EW_RESIZE_ROUND_PREFER_FLOOR:
        return ceil(x - 0.5);
    case EW_RESIZE_ROUND_PREFER_CEIL:
        return floor(x + 0.5);
    case EW_RESIZE_FLOOR:
        return floor(x);
    case EW_RESIZE_CEIL:
        return ceil(x);
    }
    return x;
}

/* ---- Weights ---- */

static double kernel(const struct ew_resize_attr *a, double distance)
{
    const double x = fabs(distance);
    return a->mode == EW_RESIZE_LINEAR ? fmax(1 - x, 0) : ew_cubic(a->cubic_a, x);
}

static int64_t clamp_index(double v, int64_t n)
{
    return v > 0 ? (int64_t)fmin(v, (double)(n - 1)) : 0;
}

void ew_resize_taps(const struct ew_resize_attr *a, const struct ew_resize_axis *axis, int64_t o,
                    struct ew_resize_tap *out)
{
    out[0] = (struct ew_resize_tap){o, 1};
    if (axis->same)
        return;
    const double x = source(a, axis, o), last = (double)(axis->in - 1);
    for (int64_t i = 0; i < axis->taps; i++)
        out[i] = (struct ew_resize_tap){0, 0};
    if (a->coordinate == EW_RESIZE_TF_CROP_AND_RESIZE && !(x >= 0 && x <= last)) {
        out[0].at = -1;
        return;
    }
    if (a->mode == EW_RESIZE_NEAREST) {
        out[0] = (struct ew_resize_tap){clamp_index(rounded(a, x), axis->in), 1};
        return;
    }
    const double share = squeeze(a, axis);
    const double first = floor(x) - (double)(axis->taps / 2 - 1);
    double sum = 0;
    for (int64_t i = 0; i < axis->taps; i++) {
        const double at = first + (double)i;
        out[i].at = clamp_index(at, axis->in);
        if (!a->exclude_outside || (at >= 0 && at <= last))
            out[i].weight = kernel(a, (at - x) * share);
        sum += out[i].weight;
    }
    if (!(fabs(sum) > 0)) { /* all taps outside */
        out[0] = (struct ew_resize_tap){clamp_index(x, axis->in), 1};
        sum = 1;
    }
    for (int64_t i = 0; i < axis->taps; i++)
        out[i].weight /= sum;
}
