/* SPDX-License-Identifier: Apache-2.0 */
/* Choice of positions, and rounding of weights. */
#include "compress/pow2.h"

#include <stdio.h>

#include "compress/quant_view.h"
#include "graph/ops.h"

#define NAME  256
#define LANES 8

static int limit(int position)
{
    return position < EW_POW2_LEAST ? EW_POW2_LEAST
                                    : (position > EW_POW2_MOST ? EW_POW2_MOST : position);
}

/* lo and hi must round into int8: step >= max(lo / -128.5, hi / 127.5). */
int ew_pow2_first(float lo, float hi)
{
    const double step = fmax((double)lo / -128.5, (double)hi / 127.5);
    if (!(step > 0))
        return EW_POW2_MOST;
    const double position = floor(-log2(step));
    return limit(position < -1000 ? -1000 : (position > 1000 ? 1000 : (int)position));
}

/* Adding and subtracting 1.5 * 2^23 rounds a small float32 to an integer; ties do not affect the
 * error. */
static double squared_error(const float *x, int64_t n, int position)
{
    const float up = ldexpf(1, position), down = ldexpf(1, -position), magic = 0x1.8p23f;
    double sum = 0;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        float e[LANES];
        for (int k = 0; k < LANES; k++) {
            float q = x[i + k] * up;
            q = q < -128 ? -128 : q;
            q = q > 127 ? 127 : q;
            q = (q + magic) - magic;
            e[k] = q * down - x[i + k];
            e[k] *= e[k];
        }
        sum += (double)((e[0] + e[1]) + (e[2] + e[3])) + (double)((e[4] + e[5]) + (e[6] + e[7]));
    }
    for (; i < n; i++) {
        const float q = rintf(fminf(fmaxf(x[i] * up, -128), 127)) * down - x[i];
        sum += (double)(q * q);
    }
    return sum;
}

int ew_pow2_best(const float *x, int64_t n)
{
    float lo = 0, hi = 0;
    for (int64_t i = 0; i < n; i++) {
        lo = x[i] < lo ? x[i] : lo;
        hi = x[i] > hi ? x[i] : hi;
    }
    const int first = ew_pow2_first(lo, hi);
    int best = first;
    double least = INFINITY;
    for (int p = first; p < first + EW_POW2_TRIED && p <= EW_POW2_MOST; p++) {
        const double error = squared_error(x, n, p);
        if (error < least) {
            least = error;
            best = p;
        }
    }
    return best;
}

bool ew_pow2_position(double scale, int *position)
{
    int exponent;
    if (!(scale > 0) || !isfinite(scale) || frexp(scale, &exponent) > 0.5)
        return false;
    *position = 1 - exponent;
    return *position >= EW_POW2_LEAST && *position <= EW_POW2_MOST;
}

/* Adds dequantize_linear of a float32 constant rounded to int8. */
static ew_err add_constant(struct ew_graph *g, int value, int position, int *out)
{
    const struct ew_value old = g->values[value];
    const struct ew_shape one = {0};
    char name[NAME];
    int in[3];
    snprintf(name, sizeof(name), "%.200s_quantized", old.name);
    EW_TRY(ew_qview_const(g, name, EW_S8, &old.t.shape, &in[0]));
    snprintf(name, sizeof(name), "%.200s_scale", old.name);
    EW_TRY(ew_graph_const_float(g, name, ew_pow2_scale(position), &in[1]));
    snprintf(name, sizeof(name), "%.200s_zero", old.name);
    EW_TRY(ew_qview_const(g, name, EW_S8, &one, &in[2]));
    int8_t *q = g->values[in[0]].t.data;
    const float *x = old.t.data;
    for (int64_t i = 0; i < ew_tensor_count(&old.t); i++)
        q[i] = ew_pow2_round(x[i], position);
    return ew_graph_add(g, &ew_op_dequantize_linear, NULL, NULL, ew_inputs(in, 3), out);
}

int ew_pow2_bias(const struct ew_tensor *bias, const struct ew_pow2_layer *l)
{
    const int sums = l->input + l->weights, least = sums - EW_POW2_BIAS_SHIFT;
    const int best = l->has_bias ? l->bias : ew_pow2_best(bias->data, ew_tensor_count(bias));
    return best > sums ? sums : (best < least ? least : best);
}

ew_err ew_pow2_weights(struct ew_graph *g, const struct ew_pow2_layer *l, int n_in, int *in)
{
    const int bias = n_in > 2 ? in[2] : -1;
    EW_TRY(add_constant(g, in[1], l->weights, &in[1]));
    if (bias < 0)
        return EW_OK;
    return add_constant(g, bias, ew_pow2_bias(&g->values[bias].t, l), &in[2]);
}
