/* SPDX-License-Identifier: Apache-2.0 */
/* Rounding of weights. */
#include "op/quant_weights.h"

#include <math.h>
#include <string.h>

#include "op/types.h"

struct ew_weight_channels ew_weight_channels(const struct ew_shape *s, int axis)
{
    const int64_t inner = ew_shape_span(s, axis + 1, s->rank);
    return (struct ew_weight_channels){.count = s->dim[axis],
                                       .outer = ew_shape_span(s, 0, axis),
                                       .inner = inner,
                                       .step = s->dim[axis] * inner};
}

/* Compares magnitudes as integers, which vectorises. */
static float largest(const float *w, const struct ew_weight_channels *c, int64_t at)
{
    int32_t most = 0;
    for (int64_t o = 0; o < c->outer; o++) {
        const float *run = w + o * c->step + at * c->inner;
        for (int64_t i = 0; i < c->inner; i++) {
            int32_t bits;
            memcpy(&bits, &run[i], sizeof(bits));
            bits &= INT32_MAX;
            most = bits > most ? bits : most;
        }
    }
    float out;
    memcpy(&out, &most, sizeof(out));
    return out;
}

static float bias_needs(const struct ew_tensor *bias, double x_scale, int64_t i)
{
    return bias ? (float)(fabs(ew_tensor_get(bias, i)) / x_scale * 0x1p-29) : 0;
}

float ew_weight_scale(const struct ew_tensor *w, const struct ew_tensor *bias,
                      const struct ew_weight_rounding *r, int64_t channel)
{
    const struct ew_weight_channels c = ew_weight_channels(&w->shape, r->axis);
    const float most = largest(w->data, &c, channel);
    return fmaxf(most > 0 ? most / 127 : 1, bias_needs(bias, r->x_scale, channel));
}

float ew_bias_scale(double x_scale, float w_scale)
{
    return (float)x_scale * w_scale;
}

int32_t ew_bias_round(float bias, float scale)
{
    return (int32_t)rint((double)bias / (double)scale);
}

int8_t ew_pow2_round(float x, int position)
{
    return (int8_t)fmax(fmin(round(ldexp((double)x, position)), 127), -128);
}

/* A product with a power of two is exact; adding the float before 0.5 and truncating rounds half
 * away from zero.  No libm call, so it vectorises. */
void ew_pow2_there_and_back(const float *x, int64_t n, int position, float *to)
{
    const float up = ldexpf(1, position), down = ldexpf(1, -position), half = 0x1.fffffep-2f;
    for (int64_t i = 0; i < n; i++) {
        float v = x[i] * up;
        v = v < 127 ? v : 127;
        v = v > -128 ? v : -128;
        to[i] = (float)(int32_t)(v + copysignf(half, v)) * down;
    }
}

/* Adding and subtracting 1.5 * 2^23 rounds a float below 2^22 half to even, like rintf, but inline.
 */
static float round_even(float x)
{
    const float big = 0x1.8p23f;
    const float sum = x + big;
    return sum - big;
}

static void round_channels(const struct ew_tensor *w, const struct ew_tensor *bias,
                           const struct ew_weight_rounding *r, float *to)
{
    const struct ew_weight_channels c = ew_weight_channels(&w->shape, r->axis);
    const float *from = w->data;
    for (int64_t at = 0; at < c.count; at++) {
        const float scale = ew_weight_scale(w, bias, r, at);
        for (int64_t o = 0; o < c.outer; o++) {
            const int64_t k = o * c.step + at * c.inner;
            for (int64_t i = 0; i < c.inner; i++) {
                float q = round_even(from[k + i] / scale);
                q = q > 127 ? 127 : q;
                to[k + i] = (q < -127 ? -127 : q) * scale;
            }
        }
    }
}

static void round_bias(const struct ew_tensor *bias, const struct ew_tensor *w,
                       const struct ew_weight_rounding *r, float *to)
{
    const float *from = bias->data;
    for (int64_t i = 0; i < ew_tensor_count(bias); i++) {
        const float scale = ew_bias_scale(r->x_scale, ew_weight_scale(w, bias, r, i));
        to[i] = (float)ew_bias_round(from[i], scale) * scale;
    }
}

void ew_weight_round(const struct ew_tensor *x, const struct ew_tensor *other,
                     const struct ew_weight_rounding *r, float *to)
{
    if (r->pow2)
        ew_pow2_there_and_back(x->data, ew_tensor_count(x), r->position, to);
    else if (r->is_bias)
        round_bias(x, other, r, to);
    else
        round_channels(x, other, r, to);
}

/* ---- Steps of training ---- */

ew_err ew_weight_round_run(const struct ew_call *c)
{
    const struct ew_tensor *x = c->in[EW_ROUND_X];
    const size_t bytes = ew_tensor_bytes(x);
    memcpy(c->in[EW_ROUND_KEPT]->data, x->data, bytes);
    ew_weight_round(x, c->in[EW_ROUND_OTHER], c->attr, c->in[EW_ROUND_ROUNDED]->data);
    memcpy(x->data, c->in[EW_ROUND_ROUNDED]->data, bytes);
    return EW_OK;
}

ew_err ew_weight_restore_run(const struct ew_call *c)
{
    const float *kept = c->in[EW_ROUND_KEPT]->data, *rounded = c->in[EW_ROUND_ROUNDED]->data;
    float *x = c->in[EW_ROUND_X]->data;
    const int64_t n = ew_tensor_count(c->in[EW_ROUND_X]);
    for (int64_t k = 0; k < n; k++)
        x[k] = kept[k] + (x[k] - rounded[k]);
    return EW_OK;
}
