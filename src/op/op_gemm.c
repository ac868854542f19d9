/* SPDX-License-Identifier: Apache-2.0 */
/* Gemm: alpha A B + beta C, with A and B possibly stored transposed. */
#include <string.h>

#include "graph/onnx.h"
#include "op/act_node.h"
#include "op/math_attr.h"
#include "op/pointwise.h"
#include "op/product.h"

extern const struct ew_op ew_op_gemm;

#define TYPES (EW_TYPES_FLOAT | 1 << EW_S32 | 1 << EW_U32 | 1 << EW_S64 | 1 << EW_U64)

static const struct ew_field attrs[] = {
    {.name = "alpha",
     .type = EW_FIELD_FLOAT,
     .offset = offsetof(struct ew_gemm_attr, alpha),
     .def = "1",
     .help = "factor of A B"},
    {.name = "beta",
     .type = EW_FIELD_FLOAT,
     .offset = offsetof(struct ew_gemm_attr, beta),
     .def = "1",
     .help = "factor of C"},
    {.name = "trans_a",
     .type = EW_FIELD_BOOL,
     .offset = offsetof(struct ew_gemm_attr, trans_a),
     .help = "A is stored as [k, m]"},
    {.name = "trans_b",
     .type = EW_FIELD_BOOL,
     .offset = offsetof(struct ew_gemm_attr, trans_b),
     .help = "B is stored as [n, k]"},
    EW_FIELD_END,
};

static const char *const rename[] = {"trans_a", "transA", "trans_b", "transB", NULL};

static struct ew_matrix transposed(struct ew_matrix m)
{
    return (struct ew_matrix){m.t, m.start, m.col, m.row};
}

/* A as [m, k], B as [k, n], and the sizes. */
static struct ew_product product_of(const struct ew_call *c)
{
    const struct ew_gemm_attr *attr = c->attr;
    const int64_t *da = c->in[0]->shape.dim, *db = c->in[1]->shape.dim;
    struct ew_product p = {.m = da[attr->trans_a],
                           .k = da[!attr->trans_a],
                           .n = db[!attr->trans_b],
                           .a = {.t = c->in[0], .row = da[1], .col = 1},
                           .b = {.t = c->in[1], .row = db[1], .col = 1},
                           .alpha = attr->alpha};
    if (attr->trans_a)
        p.a = transposed(p.a);
    if (attr->trans_b)
        p.b = transposed(p.b);
    return p;
}

static ew_err infer(const struct ew_call *c)
{
    const struct ew_gemm_attr *attr = c->attr;
    char ta[EW_SHAPE_TEXT], tb[EW_SHAPE_TEXT];
    EW_TRY(ew_types_check(c, 0, TYPES));
    EW_TRY(ew_types_same(c, 1));
    EW_TRY(ew_types_same(c, 2));
    for (int i = 0; i < 2; i++)
        EW_CHECK(c->in[i]->shape.rank == 2, EW_ERR_SHAPE, "input %d is %s, must be a matrix", i,
                 ew_shape_text(&c->in[i]->shape, ta));
    const struct ew_product p = product_of(c);
    EW_CHECK(p.k == c->in[1]->shape.dim[attr->trans_b], EW_ERR_SHAPE,
             "matrices %s%s and %s%s do not fit", ew_shape_text(&c->in[0]->shape, ta),
             attr->trans_a ? " (transposed)" : "", ew_shape_text(&c->in[1]->shape, tb),
             attr->trans_b ? " (transposed)" : "");
    const struct ew_shape out = {2, {p.m, p.n}};
    const struct ew_tensor *bias = ew_call_in(c, 2);
    if (bias) {
        struct ew_shape both;
        EW_TRY(ew_shape_broadcast(&bias->shape, &out, &both));
        EW_CHECK(ew_shape_equal(&both, &out), EW_ERR_SHAPE, "C is %s, which is more than %s",
                 ew_shape_text(&bias->shape, ta), ew_shape_text(&out, tb));
    }
    c->out[0]->dtype = c->in[0]->dtype;
    c->out[0]->shape = out;
    return EW_OK;
}

static void cost(const struct ew_call *c, struct ew_cost *out)
{
    const struct ew_product p = product_of(c);
    const int64_t macs = p.m * p.n * p.k;
    out->macs += macs;
    out->thop_macs += macs;
    out->flops += 2 * macs;
}

static ew_err forward(const struct ew_call *c)
{
    const struct ew_gemm_attr *attr = c->attr;
    const struct ew_tensor *bias = ew_call_in(c, 2);
    struct ew_tensor *out = c->out[0];
    double v[EW_CHUNK];
    const int64_t count = ew_tensor_count(out);
    memset(out->data, 0, ew_tensor_bytes(out));
    for (int64_t at = 0; bias && at < count; at += EW_CHUNK) {
        const int64_t n = ew_min_i64(EW_CHUNK, count - at);
        ew_broadcast_load(bias, &out->shape, at, n, v);
        for (int64_t i = 0; i < n; i++)
            v[i] *= attr->beta;
        ew_tensor_store(out, at, n, v);
    }
    struct ew_product p = product_of(c);
    p.out = out;
    ew_product_add(&p);
    return EW_OK;
}

/* dA = alpha dY B', dB = alpha A' dY; transposed if A or B is stored transposed. */
static ew_err backward(const struct ew_call *c)
{
    const struct ew_gemm_attr *attr = c->attr;
    const struct ew_tensor *dy = c->dout[0];
    if (!dy)
        return EW_OK;
    const struct ew_product p = product_of(c);
    const struct ew_matrix g = {.t = dy, .row = p.n, .col = 1};
    const struct ew_matrix bt = transposed(p.b), at = transposed(p.a);
    if (c->din[0]) {
        struct ew_product d = {p.m, p.k, p.n, g, bt, c->din[0], 0, p.alpha};
        if (attr->trans_a)
            d = (struct ew_product){p.k, p.m, p.n, p.b, transposed(g), c->din[0], 0, p.alpha};
        ew_product_add(&d);
    }
    if (c->din[1]) {
        struct ew_product d = {p.k, p.n, p.m, at, g, c->din[1], 0, p.alpha};
        if (attr->trans_b)
            d = (struct ew_product){p.n, p.k, p.m, transposed(g), p.a, c->din[1], 0, p.alpha};
        ew_product_add(&d);
    }
    if (c->n_in < 3 || !c->din[2])
        return EW_OK;
    double v[EW_CHUNK];
    for (int64_t i = 0; i < ew_tensor_count(dy); i += EW_CHUNK) {
        const int64_t n = ew_min_i64(EW_CHUNK, ew_tensor_count(dy) - i);
        ew_tensor_load(dy, i, n, v);
        for (int64_t j = 0; j < n; j++)
            v[j] *= attr->beta;
        ew_broadcast_accumulate(c->din[2], &dy->shape, i, n, v);
    }
    return EW_OK;
}

/* ONNX Runtime's FusedGemm is Gemm and an activation. */
static ew_err import(struct ew_graph *g, const struct ew_onnx_node *n, int *out)
{
    static const char *const fused[] = {"activation", "activation_alpha", "activation_beta",
                                        "activation_gamma", NULL};
    struct ew_gemm_attr attr;
    EW_CHECK(*n->domain || n->opset >= 7, EW_ERR_UNSUPPORTED,
             "operator Gemm of opset %d is not supported, only 7 and later", n->opset);
    EW_TRY(ew_onnx_fill(&ew_op_gemm, n, *n->domain ? fused : NULL, &attr));
    EW_TRY(ew_onnx_import_default(g, &ew_op_gemm, n, &attr, out));
    struct ew_act_params act = {.type = ew_onnx_str(n, "activation", "")};
    for (; act.n < 3 && ew_onnx_attr(n, fused[1 + act.n]); act.n++)
        act.v[act.n] = (float)ew_onnx_float(n, fused[1 + act.n], 0);
    return *act.type ? ew_act_add_node(g, &act, out[0], out) : EW_OK;
}

static const char *const also[] = {"com.microsoft:FusedGemm", NULL};

static const struct ew_op_case cases[] = {
    {.name = "linear",
     .attrs = "trans_b=true",
     .in = {{"3x5"}, {"4x5"}, {"4"}},
     .n_in = 3,
     .out_shape = "3x4"},
    {.name = "plain", .in = {{"3x5"}, {"5x4"}}, .n_in = 2, .out_shape = "3x4"},
    {.name = "all",
     .attrs = "alpha=0.25 beta=0.35 trans_a=true trans_b=true",
     .in = {{"4x3"}, {"5x4"}, {"1x5"}},
     .n_in = 3,
     .out_shape = "3x5"},
    {.name = "column bias",
     .attrs = "trans_a=true",
     .in = {{"5x3"}, {"5x4"}, {"3x1"}},
     .n_in = 3,
     .out_shape = "3x4"},
    {.name = "scalar bias", .in = {{"1x300"}, {"300x2"}, {""}}, .n_in = 3, .out_shape = "1x2"},
    {.name = "half", .in = {{"2x3", EW_F16}, {"3x2", EW_F16}}, .n_in = 2, .out_shape = "2x2"},
    {.name = "int",
     .in = {{"2x3", EW_S32}, {"3x2", EW_S32}, {"2", EW_S32}},
     .n_in = 3,
     .out_shape = "2x2"},
    {.name = "no terms", .in = {{"2x0"}, {"0x3"}, {"3"}}, .n_in = 3, .out_shape = "2x3"},
};

const struct ew_op ew_op_gemm = {
    .name = "gemm",
    .help = "alpha A B + beta C of matrices",
    .saves = EW_SAVE_IN0 | EW_SAVE_IN1,
    .layer = EW_LAYER_DENSE,
    .min_in = 2,
    .max_in = 3,
    .param_in = 1 << 1 | 1 << 2,
    .attr_size = sizeof(struct ew_gemm_attr),
    .attrs = attrs,
    .infer = infer,
    .cost = cost,
    .forward = forward,
    .backward = backward,
    .onnx = {.type = "Gemm", .since = 7, .rename = rename, .also = also, .import = import},
    EW_OP_CASES(cases),
};
