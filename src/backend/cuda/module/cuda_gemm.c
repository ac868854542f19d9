/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products by cuBLASLt.  It is column-major, so y = A B is computed as y' = B' A'. */
#include <cublasLt.h>
#include <cuda_runtime.h>
#include <string.h>

#include "backend/cuda/module/cuda_status.h"

struct product {
    cublasLtMatmulDesc_t op;
    cublasLtMatrixLayout_t a, b, y; /* a is our B, b our A */
    cublasLtMatmulPreference_t preference;
};

static void product_end(struct product *p)
{
    if (p->op)
        cublasLtMatmulDescDestroy(p->op);
    if (p->a)
        cublasLtMatrixLayoutDestroy(p->a);
    if (p->b)
        cublasLtMatrixLayoutDestroy(p->b);
    if (p->y)
        cublasLtMatrixLayoutDestroy(p->y);
    if (p->preference)
        cublasLtMatmulPreferenceDestroy(p->preference);
}

static cudaDataType_t data_type(int type)
{
    return type == EW_CUDA_F16 ? CUDA_R_16F : type == EW_CUDA_BF16 ? CUDA_R_16BF : CUDA_R_32F;
}

static int layout(cublasLtMatrixLayout_t *l, cudaDataType_t type, int64_t rows, int64_t cols,
                  const struct ew_cuda_gemm *g, int64_t stride)
{
    EW_CU_BLAS_TRY(cublasLtMatrixLayoutCreate(l, type, (uint64_t)rows, (uint64_t)cols, rows));
    if (g->batch <= 1)
        return 0;
    const int32_t n = (int32_t)g->batch;
    EW_CU_BLAS_TRY(
        cublasLtMatrixLayoutSetAttribute(*l, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &n, sizeof(n)));
    EW_CU_BLAS_TRY(cublasLtMatrixLayoutSetAttribute(*l, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                                    &stride, sizeof(stride)));
    return 0;
}

/* True if cuBLASLt's epilogue can do all: a bias of y's type, and relu. */
static int fuses(const struct ew_cuda_gemm *g)
{
    return (g->type == EW_CUDA_F32 || (!g->out_f32 && (!g->bias || g->typed_bias))) &&
           (g->act.kind == EW_CUDA_ACT_NONE || g->act.kind == EW_CUDA_ACT_RELU);
}

static int set_epilogue(struct product *p, const struct ew_cuda_gemm *g)
{
    const int relu = g->act.kind == EW_CUDA_ACT_RELU;
    const cublasLtEpilogue_t e = g->bias
                                     ? (relu ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_BIAS)
                                     : (relu ? CUBLASLT_EPILOGUE_RELU : CUBLASLT_EPILOGUE_DEFAULT);
    EW_CU_BLAS_TRY(
        cublasLtMatmulDescSetAttribute(p->op, CUBLASLT_MATMUL_DESC_EPILOGUE, &e, sizeof(e)));
    const void *bias = g->type == EW_CUDA_F32 ? g->bias : g->typed_bias;
    if (g->bias)
        EW_CU_BLAS_TRY(cublasLtMatmulDescSetAttribute(p->op, CUBLASLT_MATMUL_DESC_BIAS_POINTER,
                                                      &bias, sizeof(bias)));
    return 0;
}

static int describe(const struct ew_cuda_queue *q, const struct ew_cuda_gemm *g, struct product *p)
{
    const cudaDataType_t type = data_type(g->type);
    const cudaDataType_t out = g->out_f32 ? CUDA_R_32F : type;
    const cublasComputeType_t compute = g->type == EW_CUDA_F32 && g->math == EW_CUDA_MATH_TF32
                                            ? CUBLAS_COMPUTE_32F_FAST_TF32
                                            : CUBLAS_COMPUTE_32F;
    const cublasOperation_t op_a = g->trans_b ? CUBLAS_OP_T : CUBLAS_OP_N;
    const cublasOperation_t op_b = g->trans_a ? CUBLAS_OP_T : CUBLAS_OP_N;
    EW_CU_BLAS_TRY(cublasLtMatmulDescCreate(&p->op, compute, CUDA_R_32F));
    EW_CU_BLAS_TRY(
        cublasLtMatmulDescSetAttribute(p->op, CUBLASLT_MATMUL_DESC_TRANSA, &op_a, sizeof(op_a)));
    EW_CU_BLAS_TRY(
        cublasLtMatmulDescSetAttribute(p->op, CUBLASLT_MATMUL_DESC_TRANSB, &op_b, sizeof(op_b)));
    EW_CU_TRY(
        layout(&p->a, type, g->trans_b ? g->k : g->n, g->trans_b ? g->n : g->k, g, g->stride_b));
    EW_CU_TRY(
        layout(&p->b, type, g->trans_a ? g->m : g->k, g->trans_a ? g->k : g->m, g, g->stride_a));
    EW_CU_TRY(layout(&p->y, out, g->n, g->m, g, g->stride_y));
    EW_CU_BLAS_TRY(cublasLtMatmulPreferenceCreate(&p->preference));
    EW_CU_BLAS_TRY(cublasLtMatmulPreferenceSetAttribute(p->preference,
                                                        CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                        &q->workspace_limit, sizeof(size_t)));
    /* In-place split-k reduction is excluded: it adds in the order in which blocks arrive. */
    const uint32_t schemes =
        CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE | CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE;
    if (q->deterministic)
        EW_CU_BLAS_TRY(cublasLtMatmulPreferenceSetAttribute(
            p->preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &schemes, sizeof(schemes)));
    return fuses(g) ? set_epilogue(p, g) : 0;
}

static int multiply(struct ew_cuda_queue *q, const struct ew_cuda_gemm *g, const struct product *p)
{
    const cublasLtHandle_t handle = (cublasLtHandle_t)q->blas;
    const int residual = g->residual && fuses(g);
    const float beta = residual ? 1 : g->beta;
    const void *c = residual ? g->residual : g->y;
    cublasLtMatmulHeuristicResult_t best;
    int n = 0;
    EW_CU_BLAS_TRY(cublasLtMatmulAlgoGetHeuristic(handle, p->op, p->a, p->b, p->y, p->y,
                                                  p->preference, 1, &best, &n));
    if (n == 0)
        return EW_CU_BLAS + CUBLAS_STATUS_NOT_SUPPORTED;
    EW_CU_TRY(ew_cu_workspace(q, best.workspaceSize));
    EW_CU_BLAS_TRY(cublasLtMatmul(handle, p->op, &g->alpha, g->b, p->a, g->a, p->b, &beta, c, p->y,
                                  g->y, p->y, &best.algo, q->workspace, best.workspaceSize,
                                  (cudaStream_t)q->stream));
    return 0;
}

int ew_cu_gemm(struct ew_cuda_queue *q, const struct ew_cuda_gemm *g)
{
    const int small = ew_cu_small_gemm(q, g);
    if (small != cudaErrorNotSupported)
        return small;
    struct product p = {0};
    int e = describe(q, g, &p);
    if (!e)
        e = multiply(q, g, &p);
    product_end(&p);
    const int rest = g->bias || g->residual || g->act.kind != EW_CUDA_ACT_NONE;
    if (e || fuses(g) || !rest)
        return e;
    const struct ew_cuda_epilogue end = {.type = g->out_f32 ? EW_CUDA_F32 : g->type,
                                         .act = g->act,
                                         .rows = g->m * (g->batch > 1 ? g->batch : 1),
                                         .cols = (int)g->n,
                                         .bias = g->bias,
                                         .residual = g->residual,
                                         .y = g->y};
    return ew_cu_epilogue(q, &end);
}
