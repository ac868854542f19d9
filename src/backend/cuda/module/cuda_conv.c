/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions by cuDNN's calls that are the same in versions 8.6 to 9, channels-last.  What it has
 * no algorithm for (in full float32 and deterministic), direct kernels do. */
#include <cuda_runtime.h>
#include <cudnn.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cuda/module/cuda_status.h"

#define ALGORITHMS 10

struct job {
    cudnnTensorDescriptor_t x, y, bias;
    cudnnFilterDescriptor_t w;
    cudnnConvolutionDescriptor_t conv;
    cudnnActivationDescriptor_t act;
};

static void job_end(struct job *j)
{
    if (j->x)
        cudnnDestroyTensorDescriptor(j->x);
    if (j->y)
        cudnnDestroyTensorDescriptor(j->y);
    if (j->bias)
        cudnnDestroyTensorDescriptor(j->bias);
    if (j->w)
        cudnnDestroyFilterDescriptor(j->w);
    if (j->conv)
        cudnnDestroyConvolutionDescriptor(j->conv);
    if (j->act)
        cudnnDestroyActivationDescriptor(j->act);
}

static cudnnDataType_t data_type(int type)
{
    return type == EW_CUDA_F16    ? CUDNN_DATA_HALF
           : type == EW_CUDA_BF16 ? CUDNN_DATA_BFLOAT16
                                  : CUDNN_DATA_FLOAT;
}

static cudnnMathType_t math_of(int type, int math)
{
    if (type != EW_CUDA_F32)
        return CUDNN_TENSOR_OP_MATH;
    return math == EW_CUDA_MATH_TF32 ? CUDNN_DEFAULT_MATH : CUDNN_FMA_MATH;
}

static int describe(const struct ew_cuda_conv *p, struct job *j)
{
    const struct ew_cuda_window *g = &p->g;
    const cudnnDataType_t t = data_type(p->type);
    const cudnnTensorFormat_t last = p->planar ? CUDNN_TENSOR_NCHW : CUDNN_TENSOR_NHWC;
    EW_CU_CUDNN_TRY(cudnnCreateTensorDescriptor(&j->x));
    EW_CU_CUDNN_TRY(cudnnSetTensor4dDescriptor(j->x, last, t, g->n, g->c, g->h, g->w));
    EW_CU_CUDNN_TRY(cudnnCreateTensorDescriptor(&j->y));
    EW_CU_CUDNN_TRY(cudnnSetTensor4dDescriptor(j->y, last, t, g->n, g->k, g->oh, g->ow));
    EW_CU_CUDNN_TRY(cudnnCreateFilterDescriptor(&j->w));
    EW_CU_CUDNN_TRY(
        cudnnSetFilter4dDescriptor(j->w, t, last, g->k, g->c / g->groups, g->kh, g->kw));
    EW_CU_CUDNN_TRY(cudnnCreateConvolutionDescriptor(&j->conv));
    EW_CU_CUDNN_TRY(cudnnSetConvolution2dDescriptor(j->conv, g->ph, g->pw, g->sh, g->sw, g->dh,
                                                    g->dw, CUDNN_CROSS_CORRELATION,
                                                    CUDNN_DATA_FLOAT));
    EW_CU_CUDNN_TRY(cudnnSetConvolutionGroupCount(j->conv, g->groups));
    EW_CU_CUDNN_TRY(cudnnSetConvolutionMathType(j->conv, math_of(p->type, p->math)));
    return 0;
}

/* ---- Algorithms ---- */

/* The three kinds of result differ in nothing but the enumeration that `algo` is of. */
struct found {
    int algo, status, deterministic, math;
    size_t memory;
    float ms;
};

#define EW_CU_TAKE(perf, n, out)                                                                   \
    for (int i = 0; i < (n); i++)                                                                  \
        (out)[i] = (struct found)                                                                  \
        {                                                                                          \
            (int)(perf)[i].algo, (int)(perf)[i].status,                                            \
                (perf)[i].determinism == CUDNN_DETERMINISTIC, (int)(perf)[i].mathType,             \
                (perf)[i].memory, (perf)[i].time                                                   \
        }

static int by_rules(cudnnHandle_t h, int pass, const struct job *j, struct found *out, int *n)
{
    if (pass == EW_CUDA_FORWARD) {
        cudnnConvolutionFwdAlgoPerf_t perf[ALGORITHMS];
        EW_CU_CUDNN_TRY(cudnnGetConvolutionForwardAlgorithm_v7(h, j->x, j->w, j->conv, j->y,
                                                               ALGORITHMS, n, perf));
        EW_CU_TAKE(perf, *n, out);
    } else if (pass == EW_CUDA_DGRAD) {
        cudnnConvolutionBwdDataAlgoPerf_t perf[ALGORITHMS];
        EW_CU_CUDNN_TRY(cudnnGetConvolutionBackwardDataAlgorithm_v7(h, j->w, j->y, j->conv, j->x,
                                                                    ALGORITHMS, n, perf));
        EW_CU_TAKE(perf, *n, out);
    } else {
        cudnnConvolutionBwdFilterAlgoPerf_t perf[ALGORITHMS];
        EW_CU_CUDNN_TRY(cudnnGetConvolutionBackwardFilterAlgorithm_v7(h, j->x, j->y, j->conv, j->w,
                                                                      ALGORITHMS, n, perf));
        EW_CU_TAKE(perf, *n, out);
    }
    return 0;
}

/* Measured on memory of its own, which is freed again: not while a queue is captured. */
static int by_measuring(cudnnHandle_t h, int pass, const struct job *j, struct found *out, int *n)
{
    if (pass == EW_CUDA_FORWARD) {
        cudnnConvolutionFwdAlgoPerf_t perf[ALGORITHMS];
        EW_CU_CUDNN_TRY(cudnnFindConvolutionForwardAlgorithm(h, j->x, j->w, j->conv, j->y,
                                                             ALGORITHMS, n, perf));
        EW_CU_TAKE(perf, *n, out);
    } else if (pass == EW_CUDA_DGRAD) {
        cudnnConvolutionBwdDataAlgoPerf_t perf[ALGORITHMS];
        EW_CU_CUDNN_TRY(cudnnFindConvolutionBackwardDataAlgorithm(h, j->w, j->y, j->conv, j->x,
                                                                  ALGORITHMS, n, perf));
        EW_CU_TAKE(perf, *n, out);
    } else {
        cudnnConvolutionBwdFilterAlgoPerf_t perf[ALGORITHMS];
        EW_CU_CUDNN_TRY(cudnnFindConvolutionBackwardFilterAlgorithm(h, j->x, j->y, j->conv, j->w,
                                                                    ALGORITHMS, n, perf));
        EW_CU_TAKE(perf, *n, out);
    }
    return 0;
}

/* Those that may run: supported, of the precision, within the workspace, deterministic if asked. */
static int usable(const struct ew_cuda_queue *q, const struct found *f, int type, int math)
{
    const int exact = type == EW_CUDA_F32 && math == EW_CUDA_MATH_FP32;
    return f->status == CUDNN_STATUS_SUCCESS && f->memory <= q->workspace_bytes &&
           (!q->deterministic || f->deterministic) && (!exact || f->math == CUDNN_FMA_MATH);
}

int ew_cu_conv_find(struct ew_cuda_queue *q, int pass, const struct ew_cuda_conv *p, int measure,
                    struct ew_cuda_algo *out, int *n)
{
    struct job j = {0};
    struct found found[ALGORITHMS];
    int count = 0, kept = 0;
    int e = describe(p, &j);
    if (!e)
        e = (measure ? by_measuring : by_rules)((cudnnHandle_t)q->cudnn, pass, &j, found, &count);
    job_end(&j);
    for (int i = 0; !e && i < count && kept < *n; i++)
        if (usable(q, &found[i], p->type, p->math))
            out[kept++] = (struct ew_cuda_algo){found[i].algo, found[i].deterministic,
                                                found[i].memory, measure ? found[i].ms : -1};
    *n = kept;
    return e;
}

/* What the library's rules have said before: asking takes it milliseconds. */
struct ew_cuda_found {
    int pass, type, math, planar;
    struct ew_cuda_window g;
    int algo; /* -1: it has none */
};

static struct ew_cuda_found *find_again(const struct ew_cuda_queue *q, int pass,
                                        const struct ew_cuda_conv *p)
{
    for (int i = 0; i < q->n_found; i++) {
        struct ew_cuda_found *f = &q->found[i];
        if (f->pass == pass && f->type == p->type && f->math == p->math && f->planar == p->planar &&
            memcmp(&f->g, &p->g, sizeof(p->g)) == 0)
            return f;
    }
    return NULL;
}

static int remember(struct ew_cuda_queue *q, const struct ew_cuda_found *f)
{
    if (q->n_found == q->cap_found) {
        const int cap = q->cap_found ? 2 * q->cap_found : 64;
        void *more = realloc(q->found, (size_t)cap * sizeof(*q->found));
        if (!more)
            return cudaErrorMemoryAllocation;
        q->found = more;
        q->cap_found = cap;
    }
    q->found[q->n_found++] = *f;
    return 0;
}

/* The algorithm to run: the given one, or the first that may run. */
static int pick(struct ew_cuda_queue *q, int pass, const struct ew_cuda_conv *p, int *out)
{
    const struct ew_cuda_found *again = find_again(q, pass, p);
    struct ew_cuda_algo best = {.algo = -1};
    int n = 1;
    *out = p->algo >= 0 ? p->algo : again ? again->algo : -1;
    if (p->algo < 0 && !again) {
        EW_CU_TRY(ew_cu_conv_find(q, pass, p, 0, &best, &n));
        *out = n == 0 ? -1 : best.algo;
        const struct ew_cuda_found f = {pass, p->type, p->math, p->planar, p->g, *out};
        EW_CU_TRY(remember(q, &f));
    }
    return *out < 0 ? EW_CU_CUDNN + CUDNN_STATUS_NOT_SUPPORTED : 0;
}

/* ---- Forward ---- */

/* With bias, residual and relu in the same kernel; fails where the library has none for it. */
static int fused(struct ew_cuda_queue *q, const struct ew_cuda_conv *p, struct job *j, int algo)
{
    const float one = 1, zero = 0;
    const int relu = p->act.kind == EW_CUDA_ACT_RELU;
    EW_CU_CUDNN_TRY(cudnnCreateTensorDescriptor(&j->bias));
    EW_CU_CUDNN_TRY(cudnnSetTensor4dDescriptor(j->bias, CUDNN_TENSOR_NHWC, data_type(p->type), 1,
                                               p->g.k, 1, 1));
    EW_CU_CUDNN_TRY(cudnnCreateActivationDescriptor(&j->act));
    EW_CU_CUDNN_TRY(cudnnSetActivationDescriptor(
        j->act, relu ? CUDNN_ACTIVATION_RELU : CUDNN_ACTIVATION_IDENTITY, CUDNN_PROPAGATE_NAN, 0));
    EW_CU_CUDNN_TRY(cudnnConvolutionBiasActivationForward(
        (cudnnHandle_t)q->cudnn, &one, j->x, p->x, j->w, p->w, j->conv,
        relu ? (cudnnConvolutionFwdAlgo_t)algo : CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM,
        q->workspace, q->workspace_bytes, p->residual ? &one : &zero, j->y,
        p->residual ? p->residual : p->y, j->bias, p->type == EW_CUDA_F32 ? p->bias : p->typed_bias,
        j->act, j->y, p->y));
    return 0;
}

static int finish(struct ew_cuda_queue *q, const struct ew_cuda_conv *p)
{
    if (!p->bias && !p->residual && p->act.kind == EW_CUDA_ACT_NONE)
        return 0;
    const struct ew_cuda_epilogue end = {.type = p->type,
                                         .act = p->act,
                                         .add_after = p->add_after,
                                         .rows = (int64_t)p->g.n * p->g.oh * p->g.ow,
                                         .cols = p->g.k,
                                         .bias = p->bias,
                                         .residual = p->residual,
                                         .y = p->y};
    return ew_cu_epilogue(q, &end);
}

static int plain(struct ew_cuda_queue *q, const struct ew_cuda_conv *p, const struct job *j,
                 int algo)
{
    const float one = 1, zero = 0;
    EW_CU_CUDNN_TRY(cudnnConvolutionForward((cudnnHandle_t)q->cudnn, &one, j->x, p->x, j->w, p->w,
                                            j->conv, (cudnnConvolutionFwdAlgo_t)algo, q->workspace,
                                            q->workspace_bytes, &zero, j->y, p->y));
    return finish(q, p);
}

static int can_fuse(const struct ew_cuda_conv *p)
{
    if (!p->bias || p->add_after)
        return 0;
    if (p->type == EW_CUDA_F32)
        return p->act.kind == EW_CUDA_ACT_RELU;
    return p->typed_bias && (p->act.kind == EW_CUDA_ACT_RELU || p->act.kind == EW_CUDA_ACT_NONE);
}

/* ---- Channels-first copies ---- */

/* [batch, rows, cols] to [batch, cols, rows]. */
static int turn(struct ew_cuda_queue *q, const void *from, void *to, int64_t batch, int64_t rows,
                int64_t cols, int add)
{
    const struct ew_cuda_copy c = {.bytes = sizeof(float),
                                   .rank = 3,
                                   .add_type = add ? EW_CUDA_F32 : -1,
                                   .dim = {batch, cols, rows},
                                   .x_stride = {rows * cols, 1, cols},
                                   .y_stride = {rows * cols, rows, 1},
                                   .x = from,
                                   .y = to};
    return ew_cu_strided_copy(q, &c);
}

/* Where the copies of x, y and w lie. */
struct planes {
    char *x, *y, *w;
};

static struct planes planes_in(const struct ew_cuda_window *g, void *scratch)
{
    size_t at[3];
    char *base = scratch;
    if (!base)
        return (struct planes){NULL, NULL, NULL};
    ew_cuda_planar_bytes(g, at);
    return (struct planes){base + at[0], base + at[1], base + at[2]};
}

static int turn_x(struct ew_cuda_queue *q, const struct ew_cuda_window *g, const void *x, void *to)
{
    return turn(q, x, to, g->n, (int64_t)g->h * g->w, g->c, 0);
}

static int turn_y(struct ew_cuda_queue *q, const struct ew_cuda_window *g, const void *y, void *to)
{
    return turn(q, y, to, g->n, (int64_t)g->oh * g->ow, g->k, 0);
}

static int turn_w(struct ew_cuda_queue *q, const struct ew_cuda_window *g, const void *w, void *to)
{
    return turn(q, w, to, g->k, (int64_t)g->kh * g->kw, g->c / g->groups, 0);
}

static int planar(struct ew_cuda_queue *q, const struct ew_cuda_conv *p, const struct job *j,
                  int algo)
{
    const struct planes c = planes_in(&p->g, p->scratch);
    const float one = 1, zero = 0;
    EW_CU_TRY(turn_x(q, &p->g, p->x, c.x));
    EW_CU_TRY(turn_w(q, &p->g, p->w, c.w));
    EW_CU_CUDNN_TRY(cudnnConvolutionForward((cudnnHandle_t)q->cudnn, &one, j->x, c.x, j->w, c.w,
                                            j->conv, (cudnnConvolutionFwdAlgo_t)algo, q->workspace,
                                            q->workspace_bytes, &zero, j->y, c.y));
    EW_CU_TRY(turn(q, c.y, p->y, p->g.n, p->g.k, (int64_t)p->g.oh * p->g.ow, 0));
    return finish(q, p);
}

int ew_cu_conv(struct ew_cuda_queue *q, const struct ew_cuda_conv *p)
{
    struct job j = {0};
    int algo, e = describe(p, &j);
    if (!e)
        e = pick(q, EW_CUDA_FORWARD, p, &algo);
    if (!e && p->planar)
        e = planar(q, p, &j, algo);
    else if (!e && !(can_fuse(p) && fused(q, p, &j, algo) == 0))
        e = plain(q, p, &j, algo);
    job_end(&j);
    return e == EW_CU_CUDNN + CUDNN_STATUS_NOT_SUPPORTED ? ew_cu_direct(q, p) : e;
}

/* ---- Gradients ---- */

static int run_dgrad(struct ew_cuda_queue *q, const struct ew_cuda_conv_back *p,
                     const struct job *j, int algo)
{
    const struct planes c = planes_in(&p->g, p->scratch);
    const float one = 1, beta = p->add && !p->planar ? 1 : 0;
    if (p->planar) {
        EW_CU_TRY(turn_y(q, &p->g, p->dy, c.y));
        EW_CU_TRY(turn_w(q, &p->g, p->w, c.w));
    }
    EW_CU_CUDNN_TRY(cudnnConvolutionBackwardData(
        (cudnnHandle_t)q->cudnn, &one, j->w, p->planar ? c.w : p->w, j->y, p->planar ? c.y : p->dy,
        j->conv, (cudnnConvolutionBwdDataAlgo_t)algo, q->workspace, q->workspace_bytes, &beta, j->x,
        p->planar ? c.x : p->dx));
    return p->planar ? turn(q, c.x, p->dx, p->g.n, p->g.c, (int64_t)p->g.h * p->g.w, p->add) : 0;
}

/* Of half types the library makes dw in that type: it goes to scratch first. */
static int run_wgrad(struct ew_cuda_queue *q, const struct ew_cuda_conv_back *p,
                     const struct job *j, int algo)
{
    const struct planes c = planes_in(&p->g, p->scratch);
    const int whole = p->type == EW_CUDA_F32, direct = whole && !p->planar;
    const float one = 1, beta = p->add && direct ? 1 : 0;
    void *to = direct ? (void *)p->dw : p->planar ? (void *)c.w : (void *)p->scratch;
    if (p->planar) {
        EW_CU_TRY(turn_x(q, &p->g, p->x, c.x));
        EW_CU_TRY(turn_y(q, &p->g, p->dy, c.y));
    }
    EW_CU_CUDNN_TRY(cudnnConvolutionBackwardFilter(
        (cudnnHandle_t)q->cudnn, &one, j->x, p->planar ? c.x : p->x, j->y, p->planar ? c.y : p->dy,
        j->conv, (cudnnConvolutionBwdFilterAlgo_t)algo, q->workspace, q->workspace_bytes, &beta,
        j->w, to));
    const int64_t depth = p->g.c / p->g.groups, taps = (int64_t)p->g.kh * p->g.kw;
    if (p->planar)
        return turn(q, to, p->dw, p->g.k, depth, taps, p->add);
    if (direct)
        return 0;
    return p->add ? ew_cu_cast_add(q, p->type, to, p->dw, p->g.k * taps * depth)
                  : ew_cu_cast(q, p->type, to, EW_CUDA_F32, p->dw, p->g.k * taps * depth);
}

int ew_cu_conv_back(struct ew_cuda_queue *q, const struct ew_cuda_conv_back *p)
{
    const struct ew_cuda_conv asked = {
        .type = p->type, .math = p->math, .g = p->g, .planar = p->planar, .algo = p->algo};
    const int pass = p->dx ? EW_CUDA_DGRAD : EW_CUDA_WGRAD;
    struct job j = {0};
    int algo, e = describe(&asked, &j);
    if (!e)
        e = pick(q, pass, &asked, &algo);
    if (!e)
        e = (p->dx ? run_dgrad : run_wgrad)(q, p, &j, algo);
    job_end(&j);
    if (e != EW_CU_CUDNN + CUDNN_STATUS_NOT_SUPPORTED)
        return e;
    return p->dx ? ew_cu_direct_dx(q, p) : ew_cu_direct_dw(q, p);
}
