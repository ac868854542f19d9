/* SPDX-License-Identifier: Apache-2.0 */
/* Transpose: axes in another order. */
#include "graph/layout.h"

static const struct ew_field attrs[] = {
    {.name = "perm",
     .type = EW_FIELD_INTS,
     .offset = offsetof(struct ew_transpose_attr, perm),
     .help = "axis i of the output is axis perm[i] of the input; empty: reversed"},
    EW_FIELD_END};

static void get_perm(const struct ew_call *c, int rank, int *perm)
{
    const struct ew_transpose_attr *a = c->attr;
    for (int i = 0; i < rank; i++)
        perm[i] = a->perm.n ? (int)a->perm.v[i] : rank - 1 - i;
}

static ew_err infer(const struct ew_call *c)
{
    const struct ew_transpose_attr *a = c->attr;
    const int rank = c->in[0]->shape.rank;
    EW_CHECK(a->perm.n == 0 || a->perm.n == rank, EW_ERR_SHAPE, "perm has %d axes, the input %d",
             a->perm.n, rank);
    unsigned seen = 0;
    for (int i = 0; i < a->perm.n; i++) {
        EW_CHECK(a->perm.v[i] >= 0 && a->perm.v[i] < rank && !(seen >> a->perm.v[i] & 1),
                 EW_ERR_SHAPE, "perm is not a permutation of %d axes", rank);
        seen |= 1u << a->perm.v[i];
    }
    int perm[EW_MAX_RANK];
    get_perm(c, rank, perm);
    c->out[0]->shape.rank = rank;
    for (int i = 0; i < rank; i++)
        c->out[0]->shape.dim[i] = c->in[0]->shape.dim[perm[i]];
    return EW_OK;
}

static ew_err forward(const struct ew_call *c)
{
    int perm[EW_MAX_RANK];
    get_perm(c, c->in[0]->shape.rank, perm);
    ew_tensor_permute(c->in[0], perm, c->out[0]);
    return EW_OK;
}

static ew_err backward(const struct ew_call *c)
{
    if (!c->din[0] || !c->dout[0])
        return EW_OK;
    const struct ew_tensor *dx = c->din[0], *dy = c->dout[0];
    const int rank = dx->shape.rank;
    int perm[EW_MAX_RANK];
    int64_t stride[EW_MAX_RANK], at[EW_MAX_RANK] = {0}, pos = 0;
    get_perm(c, rank, perm);
    ew_shape_strides(&dx->shape, &dx->shape, stride);
    for (int64_t i = 0; i < ew_tensor_count(dy); i++) {
        const double g = ew_tensor_get(dy, i);
        ew_tensor_accumulate(c->din[0], pos, 1, &g);
        for (int k = rank - 1; k >= 0; k--) {
            pos += stride[perm[k]];
            if (++at[k] < dy->shape.dim[k])
                break;
            pos -= at[k] * stride[perm[k]];
            at[k] = 0;
        }
    }
    return EW_OK;
}

static void cost(const struct ew_call *c, struct ew_cost *out)
{
    (void)c;
    (void)out; /* moves bytes, computes nothing */
}

static const struct ew_op_case cases[] = {
    {.name = "reversed", .in = {{"2x3x4"}}, .n_in = 1, .out_shape = "4x3x2"},
    {.name = "nchw to nhwc",
     .attrs = "perm=0,2,3,1",
     .in = {{"2x3x4x5"}},
     .n_in = 1,
     .out_shape = "2x4x5x3"},
    {.name = "bytes", .attrs = "perm=1,0", .in = {{"3x5", EW_S8}}, .n_in = 1, .out_shape = "5x3"},
};

const struct ew_op ew_op_transpose = {
    .name = "transpose",
    .help = "axes in another order",
    .min_in = 1,
    .max_in = 1,
    .attr_size = sizeof(struct ew_transpose_attr),
    .attrs = attrs,
    .infer = infer,
    .cost = cost,
    .forward = forward,
    .backward = backward,
    .onnx = {.type = "Transpose"},
    .cases = cases,
    .n_cases = EW_COUNT(cases),
};
