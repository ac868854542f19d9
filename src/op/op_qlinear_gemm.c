/* SPDX-License-Identifier: Apache-2.0 */
/* QGemm of ONNX Runtime: the product of quantised matrices with a bias, quantised again or as
 * float32. */
#include "graph/graph.h"
#include "graph/onnx.h"
#include "op/qlinear.h"

extern const struct ew_op ew_op_qlinear_gemm;

static const struct ew_field attrs[] = {{.name = "trans_b",
                                         .type = EW_FIELD_BOOL,
                                         .offset = offsetof(struct ew_qgemm_attr, trans_b),
                                         .help = "B is stored as [n, k]"},
                                        EW_QUANT_CLAMP_FIELDS(struct ew_qgemm_attr, clamp),
                                        EW_FIELD_END};

static ew_err check_shapes(const struct ew_call *c, int64_t n, int64_t k)
{
    const struct ew_tensor *bias = ew_call_in(c, EW_QGEMM_BIAS);
    const int64_t m = c->in[EW_QGEMM_A]->shape.dim[0], inner = c->in[EW_QGEMM_A]->shape.dim[1];
    EW_CHECK(inner == k, EW_ERR_SHAPE, "A has %lld columns, B %lld rows", (long long)inner,
             (long long)k);
    EW_CHECK(!bias || ew_tensor_count(bias) == n, EW_ERR_SHAPE,
             "the bias has %lld entries, must have %lld",
             bias ? (long long)ew_tensor_count(bias) : 0, (long long)n);
    EW_TRY(ew_types_check(c, EW_QGEMM_BIAS, 1 << EW_S32));
    c->out[0]->shape = (struct ew_shape){2, {m, n}};
    return EW_OK;
}

static ew_err infer(const struct ew_call *c)
{
    const struct ew_qgemm_attr *attr = c->attr;
    const struct ew_shape *a = &c->in[EW_QGEMM_A]->shape, *b = &c->in[EW_QGEMM_B]->shape;
    EW_CHECK(a->rank == 2 && b->rank == 2, EW_ERR_SHAPE, "A and B must be matrices");
    const int64_t n = b->dim[!attr->trans_b];
    EW_TRY(ew_quant_check(c, EW_QGEMM_A, EW_QGEMM_A_ZERO, 1));
    EW_TRY(ew_quant_check(c, EW_QGEMM_B, EW_QGEMM_B_ZERO, n));
    EW_TRY(ew_quant_check_scale(c, EW_QGEMM_A_SCALE, 1));
    EW_TRY(ew_quant_check_scale(c, EW_QGEMM_B_SCALE, n));
    c->out[0]->dtype = EW_F32;
    if (ew_call_in(c, EW_QGEMM_Y_SCALE)) {
        EW_CHECK(ew_call_in(c, EW_QGEMM_Y_ZERO), EW_ERR_ARG, "the output has no zero point");
        EW_TRY(ew_quant_check_scale(c, EW_QGEMM_Y_SCALE, 1));
        EW_TRY(ew_quant_check(c, EW_QGEMM_Y_ZERO, EW_QGEMM_Y_ZERO, 1));
        c->out[0]->dtype = c->in[EW_QGEMM_Y_ZERO]->dtype;
    }
    return check_shapes(c, n, b->dim[attr->trans_b]);
}

static void cost(const struct ew_call *c, struct ew_cost *out)
{
    const int64_t macs = ew_cost_mul(ew_tensor_count(c->out[0]), c->in[EW_QGEMM_A]->shape.dim[1]);
    out->macs += macs;
    out->thop_macs += macs;
    out->flops += 2 * macs;
}

/* The int32 sum of one element, after subtracting the zero points. */
static int32_t sum_of(const struct ew_call *c, int64_t row, int64_t col)
{
    const struct ew_qgemm_attr *attr = c->attr;
    const struct ew_tensor *a = c->in[EW_QGEMM_A], *b = c->in[EW_QGEMM_B];
    const struct ew_tensor *bias = ew_call_in(c, EW_QGEMM_BIAS);
    const int64_t k = a->shape.dim[1], n = c->out[0]->shape.dim[1];
    const int64_t za = ew_quant_zero(ew_call_in(c, EW_QGEMM_A_ZERO), 0);
    const int64_t zb = ew_quant_zero(ew_call_in(c, EW_QGEMM_B_ZERO), col);
    uint32_t sum = bias ? (uint32_t)ew_tensor_get_int(bias, col) : 0;
    for (int64_t i = 0; i < k; i++) {
        const int64_t at = attr->trans_b ? col * k + i : i * n + col;
        sum +=
            (uint32_t)((ew_tensor_get_int(a, row * k + i) - za) * (ew_tensor_get_int(b, at) - zb));
    }
    return (int32_t)sum;
}

static ew_err forward(const struct ew_call *c)
{
    const struct ew_qgemm_attr *attr = c->attr;
    const struct ew_tensor *y_scale = ew_call_in(c, EW_QGEMM_Y_SCALE);
    const int64_t n = c->out[0]->shape.dim[1];
    for (int64_t i = 0; i < ew_tensor_count(c->out[0]); i++) {
        const int32_t sum = sum_of(c, i / n, i % n);
        const float ratio = ew_quant_ratio(ew_tensor_get(c->in[EW_QGEMM_A_SCALE], 0),
                                           ew_quant_scale(c->in[EW_QGEMM_B_SCALE], i % n),
                                           y_scale ? ew_tensor_get(y_scale, 0) : 1);
        if (!y_scale) {
            ((float *)c->out[0]->data)[i] = (float)sum * ratio;
            continue;
        }
        const int64_t zero = ew_quant_zero(c->in[EW_QGEMM_Y_ZERO], 0);
        const int64_t q =
            ew_quant_clamp(&attr->clamp, ew_quant_sum(sum, ratio, zero, c->out[0]->dtype));
        ew_tensor_store_int(c->out[0], i, 1, &q);
    }
    return EW_OK;
}

static ew_err import(struct ew_graph *g, const struct ew_onnx_node *n, int *out)
{
    static const char *const ignore[] = {"alpha", "transA", NULL};
    struct ew_qgemm_attr attr;
    const double alpha = ew_onnx_float(n, "alpha", 1);
    EW_CHECK(!(alpha < 1) && !(alpha > 1), EW_ERR_UNSUPPORTED, "alpha is %g, must be 1", alpha);
    EW_CHECK(ew_onnx_int(n, "transA", 0) == 0, EW_ERR_UNSUPPORTED, "A is stored transposed");
    EW_TRY(ew_onnx_fill(&ew_op_qlinear_gemm, n, ignore, &attr));
    return ew_onnx_import_default(g, &ew_op_qlinear_gemm, n, &attr, out);
}

static ew_err export(const struct ew_graph *g, int node, struct ew_onnx_node *n)
{
    const struct ew_qgemm_attr *a = g->nodes[node].attr;
    EW_CHECK(ew_quant_clamps_nothing(&a->clamp), EW_ERR_UNSUPPORTED,
             "node %s: fused with what follows it", g->nodes[node].name);
    return EW_OK;
}

static const char *const renames[] = {"trans_b", "transB", EW_QUANT_CLAMP_RENAMES, NULL};

/* clang-format off */
#define SCALE(shape) {shape, .fill = EW_FILL_POSITIVE, .constant = true}
#define TINY {"", .fill = EW_FILL_VALUES, .values = "0.003", .constant = true}
#define BYTE(value, type) {"", type, EW_FILL_VALUES, .values = value, .constant = true}
#define BYTES(shape, type) {shape, type, EW_FILL_BYTES}
#define KNOWN(shape, type) {shape, type, EW_FILL_BYTES, .constant = true}

static const struct ew_op_case cases[] = {
    {.name = "linear", .attrs = "trans_b=true",
     .in = {BYTES("3x130", EW_U8), TINY, BYTE("100", EW_U8), KNOWN("37x130", EW_S8), SCALE("37"),
            {NULL}, {"37", EW_S32, .constant = true}, SCALE(""), BYTE("99", EW_U8)},
     .n_in = 9, .out_shape = "3x37"},
    {.name = "plain, clamped", .attrs = "lo=-10",
     .in = {BYTES("3x13", EW_S8), TINY, BYTE("-100", EW_S8), KNOWN("13x7", EW_S8), SCALE(""),
            BYTE("0", EW_S8), {NULL}, SCALE(""), BYTE("-9", EW_S8)},
     .n_in = 9, .out_shape = "3x7"},
    {.name = "zero points by column",
     .in = {BYTES("2x5", EW_U8), TINY, BYTE("100", EW_U8), {"5x3", EW_S8, .constant = true}, SCALE("3"),
            {"3", EW_S8, .constant = true}, {"3", EW_S32, .constant = true}, SCALE(""), BYTE("9", EW_S8)},
     .n_in = 9, .out_shape = "2x3"},
    {.name = "to float", .attrs = "trans_b=true",
     .in = {BYTES("1x40", EW_U8), TINY, BYTE("100", EW_U8), KNOWN("70x40", EW_S8), SCALE("70"),
            BYTE("0", EW_S8), {"70", EW_S32, .constant = true}},
     .n_in = 7, .out_shape = "1x70"},
};
/* clang-format on */

const struct ew_op ew_op_qlinear_gemm = {
    .name = "qlinear_gemm",
    .help = "product of quantised matrices and a bias, quantised again",
    .min_in = 5,
    .max_in = EW_QGEMM_INPUTS,
    .attr_size = sizeof(struct ew_qgemm_attr),
    .attrs = attrs,
    .infer = infer,
    .cost = cost,
    .forward = forward,
    .onnx = {.type = "QGemm",
             .domain = "com.microsoft",
             .rename = renames,
             .import = import,
             .export = export},
    EW_OP_CASES(cases),
};
