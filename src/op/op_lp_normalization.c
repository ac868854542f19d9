/* SPDX-License-Identifier: Apache-2.0 */
/* LpNormalization: divides each lane along an axis by its L1 or L2 norm. */
#include <math.h>

#include "op/axis.h"
#include "op/types.h"

struct ew_lp_normalization_attr {
    int64_t axis, p;
};

/* clang-format off */
static const struct ew_field attrs[] = {
    {.name = "axis", .type = EW_FIELD_INT,
     .offset = offsetof(struct ew_lp_normalization_attr, axis), .def = "-1",
     .help = "the axis along which the norm is taken"},
    {.name = "p", .type = EW_FIELD_INT, .offset = offsetof(struct ew_lp_normalization_attr, p),
     .def = "2", .min = 1, .max = 2, .help = "the norm"},
    EW_FIELD_END};
/* clang-format on */

/* Element k of line (i, j) is x[(i * length + k) * inner + j]. */
struct lines {
    int64_t outer, length, inner;
};

static ew_err resolve(const struct ew_call *c, struct lines *out)
{
    const struct ew_lp_normalization_attr *a = c->attr;
    const struct ew_shape *x = &c->in[0]->shape;
    int axis;
    EW_TRY(ew_shape_axis(a->axis, x->rank, &axis));
    *out = (struct lines){ew_shape_span(x, 0, axis), x->dim[axis],
                          ew_shape_span(x, axis + 1, x->rank)};
    return EW_OK;
}

static ew_err infer(const struct ew_call *c)
{
    struct lines s;
    EW_TRY(ew_types_check(c, 0, EW_TYPES_FLOAT));
    c->out[0]->shape = c->in[0]->shape;
    return resolve(c, &s);
}

static void cost(const struct ew_call *c, struct ew_cost *out)
{
    out->flops += 3 * ew_tensor_count(c->in[0]);
}

static double norm(const struct ew_call *c, const struct lines *s, int64_t base)
{
    const struct ew_lp_normalization_attr *a = c->attr;
    double sum = 0;
    for (int64_t k = 0; k < s->length; k++) {
        const double v = ew_tensor_get(c->in[0], base + k * s->inner);
        sum += a->p == 1 ? fabs(v) : v * v;
    }
    return a->p == 1 ? sum : sqrt(sum);
}

static ew_err forward(const struct ew_call *c)
{
    struct lines s;
    EW_TRY(resolve(c, &s));
    for (int64_t line = 0; line < s.outer * s.inner; line++) {
        const int64_t base = line / s.inner * s.length * s.inner + line % s.inner;
        const double n = norm(c, &s, base);
        for (int64_t k = 0; k < s.length; k++) {
            const int64_t at = base + k * s.inner;
            const double y = n > 0 ? ew_tensor_get(c->in[0], at) / n : 0;
            ew_tensor_store(c->out[0], at, 1, &y);
        }
    }
    return EW_OK;
}

/* y = x / n: dx = (dy - n' sum(dy y)) / n with n' = d n / d x = sign(x), or x / n for p = 2. */
static ew_err backward(const struct ew_call *c)
{
    const struct ew_lp_normalization_attr *a = c->attr;
    struct lines s;
    EW_TRY(resolve(c, &s));
    if (!c->din[0] || !c->dout[0])
        return EW_OK;
    for (int64_t line = 0; line < s.outer * s.inner; line++) {
        const int64_t base = line / s.inner * s.length * s.inner + line % s.inner;
        const double n = norm(c, &s, base);
        double dot = 0;
        for (int64_t k = 0; k < s.length && n > 0; k++) {
            const int64_t at = base + k * s.inner;
            dot += ew_tensor_get(c->dout[0], at) * ew_tensor_get(c->in[0], at) / n;
        }
        for (int64_t k = 0; k < s.length && n > 0; k++) {
            const int64_t at = base + k * s.inner;
            const double x = ew_tensor_get(c->in[0], at);
            const double slope = a->p == 2 ? x / n : (x > 0) - (x < 0);
            const double g = (ew_tensor_get(c->dout[0], at) - slope * dot) / n;
            ew_tensor_accumulate(c->din[0], at, 1, &g);
        }
    }
    return EW_OK;
}

/* clang-format off */
static const struct ew_op_case cases[] = {
    {.name = "last", .in = {{"2x3x4"}}, .n_in = 1, .out_shape = "2x3x4"},
    {.name = "middle, 1-norm", .attrs = "axis=1 p=1",
     .in = {{"2x3x4", .fill = EW_FILL_AWAY}}, .n_in = 1, .out_shape = "2x3x4"},
};
/* clang-format on */

const struct ew_op ew_op_lp_normalization = {
    .name = "lp_normalization",
    .help = "lines along an axis divided by their norm",
    .saves = EW_SAVE_IN0,
    .min_in = 1,
    .max_in = 1,
    .attr_size = sizeof(struct ew_lp_normalization_attr),
    .attrs = attrs,
    .infer = infer,
    .cost = cost,
    .forward = forward,
    .backward = backward,
    .permute = ew_axis_permute,
    .onnx = {.type = "LpNormalization"},
    EW_OP_CASES(cases),
};
