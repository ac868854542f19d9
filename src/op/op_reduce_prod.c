/* SPDX-License-Identifier: Apache-2.0 */
/* ReduceProd: the product over axes. */
#include "op/pointwise.h"
#include "op/reduce.h"

static double step(double acc, double x)
{
    return acc * x;
}

static int64_t step_int(int64_t acc, int64_t x)
{
    return (int64_t)((uint64_t)acc * (uint64_t)x);
}

EW_REDUCE_FORWARD(.start = 1, .step = step, .start_int = 1, .step_int = step_int)

/* The product of a group's non-zero elements, and the number of zeros. */
static double product(const struct ew_groups *r, const struct ew_tensor *x, int64_t group,
                      int64_t *zeros)
{
    double v[EW_CHUNK], p = 1;
    *zeros = 0;
    for (int64_t at = 0; at < r->size; at += EW_CHUNK) {
        const int64_t n = ew_min_i64(EW_CHUNK, r->size - at);
        ew_group_load(r, x, group, at, n, v);
        for (int64_t k = 0; k < n; k++) {
            const bool zero = !(v[k] < 0 || v[k] > 0);
            *zeros += zero;
            p *= zero ? 1 : v[k];
        }
    }
    return p;
}

/* An element's gradient is the product of the others: with exactly one zero only that element has
 * one. */
static ew_err backward(const struct ew_call *c)
{
    struct ew_groups r;
    double v[EW_CHUNK];
    if (!c->din[0] || !c->dout[0])
        return EW_OK;
    EW_TRY(ew_groups_of(c, &r));
    for (int64_t group = 0; group < r.count; group++) {
        const double g = ew_tensor_get(c->dout[0], group);
        int64_t zeros;
        const double p = product(&r, c->in[0], group, &zeros);
        for (int64_t at = 0; at < r.size; at += EW_CHUNK) {
            const int64_t n = ew_min_i64(EW_CHUNK, r.size - at);
            ew_group_load(&r, c->in[0], group, at, n, v);
            for (int64_t k = 0; k < n; k++) {
                const bool zero = !(v[k] < 0 || v[k] > 0);
                if (zeros == 0)
                    v[k] = g * p / v[k];
                else
                    v[k] = zero && zeros == 1 ? g * p : 0;
            }
            ew_group_accumulate(&r, c->din[0], group, at, n, v);
        }
    }
    return EW_OK;
}

static const struct ew_op_case cases[] = {
    {.name = "all",
     .in = {{"2x3x4", EW_F32, EW_FILL_POSITIVE}},
     .n_in = 1,
     .out_shape = "1x1x1",
     .tolerance = 1e-4},
    {.name = "middle",
     .attrs = "keepdims=false",
     .in = {{"2x5x3", EW_F32, EW_FILL_POSITIVE},
            {"1", EW_S64, EW_FILL_VALUES, .values = "1", .constant = true}},
     .n_in = 2,
     .out_shape = "2x3",
     .tolerance = 1e-4},
    {.name = "two axes",
     .in = {{"2x3x4x3", EW_F32, EW_FILL_POSITIVE},
            {"2", EW_S64, EW_FILL_VALUES, .values = "-1,1", .constant = true}},
     .n_in = 2,
     .out_shape = "2x1x4x1",
     .tolerance = 1e-4},
    {.name = "long",
     .attrs = "keepdims=false",
     .in = {{"2x300", EW_F32, EW_FILL_POSITIVE},
            {"1", EW_S64, EW_FILL_VALUES, .values = "1", .constant = true}},
     .n_in = 2,
     .out_shape = "2",
     .tolerance = 1e-4},
    {.name = "int",
     .in = {{"2x3", EW_S32}, {"1", EW_S64, EW_FILL_VALUES, .values = "1", .constant = true}},
     .n_in = 2,
     .out_shape = "2x1"},
    {.name = "one zero",
     .in = {{"4", EW_F32, EW_FILL_VALUES, .values = "3,0,-2,5"}},
     .n_in = 1,
     .out_shape = "1"},
    {.name = "two zeros",
     .in = {{"4", EW_F32, EW_FILL_VALUES, .values = "3,0,-2,0"}},
     .n_in = 1,
     .out_shape = "1"},
};

const struct ew_op ew_op_reduce_prod = {
    .name = "reduce_prod",
    .help = "product over axes",
    .saves = EW_SAVE_IN0,
    EW_REDUCE_OP("ReduceProd", ew_reduce_infer),
    .forward = forward,
    .backward = backward,
    EW_OP_CASES(cases),
};
