/* SPDX-License-Identifier: Apache-2.0 */
/* MatMul: the product of matrices, or of stacks of them with broadcasting, as NumPy has it. */
#include <string.h>

#include "op/product.h"

#define TYPES (EW_TYPES_FLOAT | 1 << EW_S32 | 1 << EW_U32 | 1 << EW_S64 | 1 << EW_U64)

/* Both inputs as stacks of matrices: a vector on the left is a row, on the right a column. */
struct stacks {
    struct ew_shape batch; /* of the output, without its matrix axes */
    int64_t stride_a[EW_MAX_RANK], stride_b[EW_MAX_RANK]; /* in matrices, along `batch` */
    int64_t m, k, n;
};

static struct ew_shape batch_of(const struct ew_shape *s)
{
    struct ew_shape r = *s;
    r.rank = s->rank > 2 ? s->rank - 2 : 0;
    return r;
}

static ew_err stacks_of(const struct ew_call *c, struct stacks *out)
{
    const struct ew_shape *a = &c->in[0]->shape, *b = &c->in[1]->shape;
    char ta[EW_SHAPE_TEXT], tb[EW_SHAPE_TEXT];
    EW_CHECK(a->rank >= 1 && b->rank >= 1, EW_ERR_SHAPE, "matmul does not take scalars");
    const struct ew_shape ba = batch_of(a), bb = batch_of(b);
    out->m = a->rank > 1 ? a->dim[a->rank - 2] : 1;
    out->k = a->dim[a->rank - 1];
    out->n = b->rank > 1 ? b->dim[b->rank - 1] : 1;
    EW_CHECK(b->dim[b->rank > 1 ? b->rank - 2 : 0] == out->k, EW_ERR_SHAPE,
             "matrices %s and %s do not fit", ew_shape_text(a, ta), ew_shape_text(b, tb));
    EW_TRY(ew_shape_broadcast(&ba, &bb, &out->batch));
    ew_shape_strides(&ba, &out->batch, out->stride_a);
    ew_shape_strides(&bb, &out->batch, out->stride_b);
    return EW_OK;
}

static ew_err infer(const struct ew_call *c)
{
    struct stacks s;
    EW_TRY(ew_types_check(c, 0, TYPES));
    EW_TRY(ew_types_same(c, 1));
    EW_TRY(stacks_of(c, &s));
    struct ew_shape out = s.batch;
    if (c->in[0]->shape.rank > 1)
        out.dim[out.rank++] = s.m;
    if (c->in[1]->shape.rank > 1)
        out.dim[out.rank++] = s.n;
    c->out[0]->dtype = c->in[0]->dtype;
    c->out[0]->shape = out;
    return EW_OK;
}

static void cost(const struct ew_call *c, struct ew_cost *out)
{
    struct stacks s;
    if (stacks_of(c, &s) != EW_OK)
        return;
    const int64_t macs = ew_shape_count(&s.batch) * s.m * s.k * s.n;
    out->macs += macs;
    out->thop_macs += macs;
    out->flops += 2 * macs;
}

/* The numbers of A's and B's matrices for matrix `i` of the output. */
static void locate(const struct stacks *s, int64_t i, int64_t *a, int64_t *b)
{
    *a = *b = 0;
    for (int axis = s->batch.rank - 1; axis >= 0; axis--) {
        const int64_t at = i % s->batch.dim[axis];
        i /= s->batch.dim[axis];
        *a += at * s->stride_a[axis];
        *b += at * s->stride_b[axis];
    }
}

static ew_err forward(const struct ew_call *c)
{
    struct stacks s;
    EW_TRY(stacks_of(c, &s));
    memset(c->out[0]->data, 0, ew_tensor_bytes(c->out[0]));
    for (int64_t i = 0; i < ew_shape_count(&s.batch); i++) {
        int64_t a, b;
        locate(&s, i, &a, &b);
        ew_product_add(&(struct ew_product){.m = s.m,
                                            .n = s.n,
                                            .k = s.k,
                                            .a = {c->in[0], a * s.m * s.k, s.k, 1},
                                            .b = {c->in[1], b * s.k * s.n, s.n, 1},
                                            .out = c->out[0],
                                            .out_start = i * s.m * s.n,
                                            .alpha = 1});
    }
    return EW_OK;
}

/* dA = dY B', dB = A' dY, matrix by matrix: broadcast ones meet several times and add up. */
static ew_err backward(const struct ew_call *c)
{
    struct stacks s;
    if (!c->dout[0])
        return EW_OK;
    EW_TRY(stacks_of(c, &s));
    for (int64_t i = 0; i < ew_shape_count(&s.batch); i++) {
        int64_t a, b;
        locate(&s, i, &a, &b);
        const int64_t at_a = a * s.m * s.k, at_b = b * s.k * s.n;
        const struct ew_matrix g = {c->dout[0], i * s.m * s.n, s.n, 1};
        const struct ew_matrix bt = {c->in[1], at_b, 1, s.n}, at = {c->in[0], at_a, 1, s.k};
        if (c->din[0])
            ew_product_add(&(struct ew_product){s.m, s.k, s.n, g, bt, c->din[0], at_a, 1});
        if (c->din[1])
            ew_product_add(&(struct ew_product){s.k, s.n, s.m, at, g, c->din[1], at_b, 1});
    }
    return EW_OK;
}

static const struct ew_op_case cases[] = {
    {.name = "matrices", .in = {{"3x5"}, {"5x4"}}, .n_in = 2, .out_shape = "3x4"},
    {.name = "stack", .in = {{"2x3x5"}, {"2x5x4"}}, .n_in = 2, .out_shape = "2x3x4"},
    {.name = "shared right", .in = {{"2x3x5"}, {"5x4"}}, .n_in = 2, .out_shape = "2x3x4"},
    {.name = "both broadcast", .in = {{"2x1x3x2"}, {"3x2x2"}}, .n_in = 2, .out_shape = "2x3x3x2"},
    {.name = "vector left", .in = {{"5"}, {"2x5x4"}}, .n_in = 2, .out_shape = "2x4"},
    {.name = "vector right", .in = {{"2x3x5"}, {"5"}}, .n_in = 2, .out_shape = "2x3"},
    {.name = "dot", .in = {{"6"}, {"6"}}, .n_in = 2, .out_shape = ""},
    {.name = "int", .in = {{"2x3", EW_S64}, {"3x2", EW_S64}}, .n_in = 2, .out_shape = "2x2"},
    {.name = "bfloat", .in = {{"2x3", EW_BF16}, {"3x2", EW_BF16}}, .n_in = 2, .out_shape = "2x2"},
};

const struct ew_op ew_op_matmul = {
    .name = "matmul",
    .help = "product of matrices, or of stacks of them with broadcasting",
    .saves = EW_SAVE_IN0 | EW_SAVE_IN1,
    .min_in = 2,
    .max_in = 2,
    .param_in = 1 << 1,
    .infer = infer,
    .cost = cost,
    .forward = forward,
    .backward = backward,
    .onnx = {.type = "MatMul"},
    .cases = cases,
    .n_cases = EW_COUNT(cases),
};
