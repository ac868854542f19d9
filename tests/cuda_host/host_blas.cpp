/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products of cuBLASLt, column-major, with its epilogues. */
#include <stdlib.h>
#include <string.h>
#include <vector>

#include <cublasLt.h>

#include "host_faults.h"
#include "host_work.h"

using namespace ew_host;

struct ew_host_blas {
    int unused;
};

struct ew_host_product {
    cublasComputeType_t compute;
    int32_t trans_a, trans_b, epilogue;
    const void *bias;
};

struct ew_host_matrix {
    storage type;
    int64_t rows, cols, ld;
    int32_t batch;
    int64_t stride;
};

struct ew_host_preference {
    size_t workspace;
    uint32_t schemes;
};

void ew_host::multiply(const float *a, const float *b, float *y, int64_t m, int64_t n, int64_t k)
{
    const int64_t step = 256; /* rows of b that stay in the cache */
    for (int64_t from = 0; from < k; from += step)
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = from; j < k && j < from + step; j++) {
                const float v = a[i * k + j];
                for (int64_t c = 0; c < n; c++)
                    y[i * n + c] += v * b[j * n + c];
            }
}

size_t cublasLtGetVersion(void)
{
    return 110000;
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t *h)
{
    if (ew_host::fault(__func__))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    *h = new ew_host_blas();
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t h)
{
    delete h;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *d, cublasComputeType_t compute,
                                        cudaDataType_t)
{
    *d = new ew_host_product{compute, CUBLAS_OP_N, CUBLAS_OP_N, CUBLASLT_EPILOGUE_DEFAULT, NULL};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t d)
{
    delete d;
    return CUBLAS_STATUS_SUCCESS;
}

template <typename T> static cublasStatus_t set(T *to, const void *v, size_t bytes)
{
    if (bytes != sizeof(T))
        return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(to, v, bytes);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t d,
                                              cublasLtMatmulDescAttributes_t a, const void *v,
                                              size_t bytes)
{
    switch (a) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
        return set(&d->trans_a, v, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB:
        return set(&d->trans_b, v, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
        return set(&d->epilogue, v, bytes);
    default:
        return set(&d->bias, v, bytes);
    }
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *l, cudaDataType_t t,
                                          uint64_t rows, uint64_t cols, int64_t ld)
{
    const storage s = t == CUDA_R_32F ? STORES_F32 : t == CUDA_R_16F ? STORES_F16 : STORES_BF16;
    *l = new ew_host_matrix{s, (int64_t)rows, (int64_t)cols, ld, 1, 0};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t l)
{
    delete l;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t l,
                                                cublasLtMatrixLayoutAttribute_t a, const void *v,
                                                size_t bytes)
{
    return a == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT ? set(&l->batch, v, bytes)
                                                   : set(&l->stride, v, bytes);
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *p)
{
    *p = new ew_host_preference{0, ~0u};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t p)
{
    delete p;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t p,
                                                    cublasLtMatmulPreferenceAttributes_t a,
                                                    const void *v, size_t bytes)
{
    return a == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES ? set(&p->workspace, v, bytes)
                                                         : set(&p->schemes, v, bytes);
}

/* op(a) [rows of y, depth], op(b) [depth, columns of y]; the depth, or -1. */
static int64_t depth_of(const ew_host_product *d, const ew_host_matrix *a, const ew_host_matrix *b,
                        const ew_host_matrix *y)
{
    const bool ta = d->trans_a == CUBLAS_OP_T, tb = d->trans_b == CUBLAS_OP_T;
    const int64_t m = ta ? a->cols : a->rows, n = tb ? b->rows : b->cols;
    const int64_t ka = ta ? a->rows : a->cols, kb = tb ? b->cols : b->rows;
    const bool fits = m == y->rows && n == y->cols && ka == kb && a->type == b->type &&
                      a->batch == y->batch && b->batch == y->batch && m > 0 && n > 0 && ka > 0 &&
                      (y->type == a->type || y->type == STORES_F32);
    return fits ? ka : -1;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t d,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t y,
                                              cublasLtMatmulPreference_t p, int most,
                                              cublasLtMatmulHeuristicResult_t *out, int *n)
{
    *n = 0;
    if (most < 1 || depth_of(d, a, b, y) < 0)
        return CUBLAS_STATUS_INVALID_VALUE;
    out->workspaceSize = p->workspace < 4096 ? p->workspace : 4096;
    out->algo.number = 1;
    *n = 1;
    return CUBLAS_STATUS_SUCCESS;
}

namespace
{

/* A matrix as row-major floats [rows, cols], rounded as the arithmetic says. */
std::vector<float> read(const void *p, const ew_host_matrix &l, int64_t image, bool turned,
                        bool tf32)
{
    const int64_t rows = turned ? l.cols : l.rows, cols = turned ? l.rows : l.cols;
    std::vector<float> v((size_t)(rows * cols));
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++) {
            const int64_t at = turned ? i * l.ld + j : j * l.ld + i;
            const float x = get(p, image * l.stride + at, l.type);
            v[(size_t)(i * cols + j)] = tf32 ? to_tf32(x) : x;
        }
    return v;
}

struct job {
    ew_host_product d;
    ew_host_matrix al, bl, yl;
    int64_t depth;
    float alpha, beta;
    const void *a, *b, *c;
    void *y;
};

/* y' = op(b)' op(a)', which is row-major. */
void compute(const job &j)
{
    const bool tf32 = j.d.compute == CUBLAS_COMPUTE_32F_FAST_TF32 && j.al.type == STORES_F32;
    const int64_t m = j.yl.rows, n = j.yl.cols;
    for (int64_t image = 0; image < j.yl.batch; image++) {
        const std::vector<float> a = read(j.a, j.al, image, j.d.trans_a == CUBLAS_OP_N, tf32);
        const std::vector<float> b = read(j.b, j.bl, image, j.d.trans_b == CUBLAS_OP_N, tf32);
        std::vector<float> sum((size_t)(m * n), 0.f);
        multiply(b.data(), a.data(), sum.data(), n, m, j.depth);
        for (int64_t i = 0; i < n; i++)
            for (int64_t k = 0; k < m; k++) {
                const int64_t at = image * j.yl.stride + i * j.yl.ld + k;
                float v = j.alpha * sum[(size_t)(i * m + k)];
                v += j.beta != 0 ? j.beta * get(j.c, at, j.yl.type) : 0;
                v += j.d.epilogue & 4 ? get(j.d.bias, k, j.yl.type) : 0;
                put(j.y, at, j.yl.type, j.d.epilogue & 2 && v < 0 ? 0 : v);
            }
    }
}

} // namespace

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t d, const void *alpha,
                              const void *a, cublasLtMatrixLayout_t al, const void *b,
                              cublasLtMatrixLayout_t bl, const void *beta, const void *c,
                              cublasLtMatrixLayout_t, void *y, cublasLtMatrixLayout_t yl,
                              const cublasLtMatmulAlgo_t *algo, void *room, size_t bytes,
                              cudaStream_t s)
{
    const job j = {*d,
                   *al,
                   *bl,
                   *yl,
                   depth_of(d, al, bl, yl),
                   *static_cast<const float *>(alpha),
                   *static_cast<const float *>(beta),
                   a,
                   b,
                   c,
                   y};
    if (j.depth < 0 || algo->number != 1 || (bytes && !room) || ((j.d.epilogue & 4) && !j.d.bias))
        return CUBLAS_STATUS_INVALID_VALUE;
    return enqueue_work(s,
                        [j, room, bytes] {
                            if (bytes)
                                memset(room, 0xff, bytes);
                            compute(j);
                        })
               ? CUBLAS_STATUS_INVALID_VALUE
               : CUBLAS_STATUS_SUCCESS;
}
