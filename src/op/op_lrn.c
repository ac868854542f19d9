/* SPDX-License-Identifier: Apache-2.0 */
/* LRN: local response normalisation over neighbouring channels (Krizhevsky et al. 2012, 3.3):
 * y = x / s^beta with s = bias + alpha / size * (sum of squares over the neighbours). */
#include <math.h>

#include "op/norm.h"
#include "op/types.h"

/* clang-format off */
static const struct ew_field attrs[] = {
    {.name = "size", .type = EW_FIELD_INT, .offset = offsetof(struct ew_lrn_attr, size),
     .def = "5", .min = 1, .max = INT32_MAX, .help = "channels that are summed over"},
    {.name = "alpha", .type = EW_FIELD_FLOAT, .offset = offsetof(struct ew_lrn_attr, alpha),
     .def = "1e-4", .help = "weight of the sum of squares"},
    {.name = "beta", .type = EW_FIELD_FLOAT, .offset = offsetof(struct ew_lrn_attr, beta),
     .def = "0.75", .help = "exponent"},
    {.name = "bias", .type = EW_FIELD_FLOAT, .offset = offsetof(struct ew_lrn_attr, bias),
     .def = "1", .help = "added to the sum"},
    EW_FIELD_END};
/* clang-format on */

static ew_err infer(const struct ew_call *c)
{
    const struct ew_lrn_attr *a = c->attr;
    EW_TRY(ew_types_check(c, 0, EW_TYPES_FLOAT));
    EW_CHECK(c->in[0]->shape.rank >= 3, EW_ERR_SHAPE,
             "the input has %d dimensions, 3 or more are needed", c->in[0]->shape.rank);
    EW_CHECK(a->size >= 1 && a->size <= INT32_MAX, EW_ERR_SHAPE, "size is %lld",
             (long long)a->size);
    c->out[0]->shape = c->in[0]->shape;
    return EW_OK;
}

static void cost(const struct ew_call *c, struct ew_cost *out)
{
    out->flops += 6 * ew_tensor_count(c->in[0]); /* square, running sum, weigh, power, divide */
}

/* The neighbours [*lo, *hi) of channel ch: an even size has one more above. */
static void neighbours(const struct ew_lrn_attr *a, int64_t channels, int64_t ch, int64_t *lo,
                       int64_t *hi)
{
    const int64_t below = (a->size - 1) / 2;
    *lo = ew_max_i64(ch - below, 0);
    *hi = ew_min_i64(ch + a->size - below, channels);
}

/* s of channel ch in the pixel that begins at `base`. */
static double sum_at(const struct ew_call *c, int64_t base, int64_t ch)
{
    const struct ew_lrn_attr *a = c->attr;
    int64_t lo, hi;
    double sum = 0;
    neighbours(a, c->in[0]->shape.dim[c->in[0]->shape.rank - 1], ch, &lo, &hi);
    for (int64_t k = lo; k < hi; k++) {
        const double v = ew_tensor_get(c->in[0], base + k);
        sum += v * v;
    }
    return a->bias + a->alpha / (double)a->size * sum;
}

static ew_err forward(const struct ew_call *c)
{
    const struct ew_lrn_attr *a = c->attr;
    const int64_t channels = c->in[0]->shape.dim[c->in[0]->shape.rank - 1];
    const int64_t count = ew_tensor_count(c->in[0]);
    for (int64_t base = 0; base < count; base += channels) {
        for (int64_t ch = 0; ch < channels; ch++) {
            const double y =
                ew_tensor_get(c->in[0], base + ch) * pow(sum_at(c, base, ch), -a->beta);
            ew_tensor_store(c->out[0], base + ch, 1, &y);
        }
    }
    return EW_OK;
}

/* y_i = x_i s_i^-beta, so dx_j = dy_j s_j^-beta
 *   - 2 beta alpha / size x_j sum over i, j being i's neighbour, of dy_i x_i s_i^(-beta - 1). */
static ew_err backward(const struct ew_call *c)
{
    const struct ew_lrn_attr *a = c->attr;
    if (!c->din[0] || !c->dout[0])
        return EW_OK;
    const int64_t channels = c->in[0]->shape.dim[c->in[0]->shape.rank - 1];
    const int64_t count = ew_tensor_count(c->in[0]);
    for (int64_t base = 0; base < count; base += channels) {
        for (int64_t i = 0; i < channels; i++) {
            const double s = sum_at(c, base, i), g = ew_tensor_get(c->dout[0], base + i);
            const double own = g * pow(s, -a->beta);
            const double factor = -2 * a->beta * a->alpha / (double)a->size * own / s *
                                  ew_tensor_get(c->in[0], base + i);
            int64_t lo, hi;
            neighbours(a, channels, i, &lo, &hi);
            ew_tensor_accumulate(c->din[0], base + i, 1, &own);
            for (int64_t j = lo; j < hi; j++) {
                const double v = factor * ew_tensor_get(c->in[0], base + j);
                ew_tensor_accumulate(c->din[0], base + j, 1, &v);
            }
        }
    }
    return EW_OK;
}

/* clang-format off */
static const struct ew_op_case cases[] = {
    {.name = "odd", .attrs = "size=3 alpha=0.5", .in = {{"2x2x3x5"}}, .n_in = 1,
     .out_shape = "2x2x3x5"},
    {.name = "even", .attrs = "size=4 alpha=0.3 beta=0.5 bias=2", .in = {{"1x3x6"}}, .n_in = 1,
     .out_shape = "1x3x6"},
    {.name = "many channels", .attrs = "size=5 alpha=0.5", .in = {{"1x2x2x37"}}, .n_in = 1,
     .out_shape = "1x2x2x37"},
    {.name = "wider than the channels", .attrs = "size=9 alpha=1", .in = {{"1x2x2x2x3"}},
     .n_in = 1, .out_shape = "1x2x2x2x3"},
};
/* clang-format on */

const struct ew_op ew_op_lrn = {
    .name = "lrn",
    .help = "local response normalisation over neighbouring channels",
    .flags = EW_OP_SPATIAL,
    .saves = EW_SAVE_IN0,
    .min_in = 1,
    .max_in = 1,
    .attr_size = sizeof(struct ew_lrn_attr),
    .attrs = attrs,
    .infer = infer,
    .cost = cost,
    .forward = forward,
    .backward = backward,
    .onnx = {.type = "LRN"},
    EW_OP_CASES(cases),
};
