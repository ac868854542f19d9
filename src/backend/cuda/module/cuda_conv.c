/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions by cuDNN, channels-last or through NCHW copies, with calls that are the same in
 * versions 8.6 to 9.  The direct kernels do what cuDNN has no algorithm for (in full float32,
 * deterministic). */
#include <cuda_runtime.h>
#include <cudnn.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cuda/module/cuda_status.h"

#define ALGORITHMS     10
#define WINOGRAD_BATCH 8 /* images; VGG at batch 1 takes twice the time with it */

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

/* Three spatial dimensions; contiguous NCDHW. */
static int describe_deep(const struct ew_cuda_conv *p, struct job *j)
{
    const struct ew_cuda_window *g = &p->g;
    const cudnnDataType_t t = data_type(p->type);
    const int x[] = {g->n, g->c, g->d, g->h, g->w}, y[] = {g->n, g->k, g->od, g->oh, g->ow};
    const int w[] = {g->k, g->c / g->groups, g->kd, g->kh, g->kw};
    const int pads[] = {g->pd, g->ph, g->pw}, strides[] = {g->sd, g->sh, g->sw};
    const int dilations[] = {g->dd, g->dh, g->dw};
    EW_CU_CUDNN_TRY(cudnnCreateTensorDescriptor(&j->x));
    EW_CU_CUDNN_TRY(cudnnSetTensorNdDescriptorEx(j->x, CUDNN_TENSOR_NCHW, t, 5, x));
    EW_CU_CUDNN_TRY(cudnnCreateTensorDescriptor(&j->y));
    EW_CU_CUDNN_TRY(cudnnSetTensorNdDescriptorEx(j->y, CUDNN_TENSOR_NCHW, t, 5, y));
    EW_CU_CUDNN_TRY(cudnnCreateFilterDescriptor(&j->w));
    EW_CU_CUDNN_TRY(cudnnSetFilterNdDescriptor(j->w, t, CUDNN_TENSOR_NCHW, 5, w));
    EW_CU_CUDNN_TRY(cudnnCreateConvolutionDescriptor(&j->conv));
    EW_CU_CUDNN_TRY(cudnnSetConvolutionNdDescriptor(j->conv, 3, pads, strides, dilations,
                                                    CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
    return 0;
}

static int describe_flat(const struct ew_cuda_conv *p, struct job *j)
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
    return 0;
}

static int describe(const struct ew_cuda_conv *p, struct job *j)
{
    EW_CU_TRY((p->g.od ? describe_deep : describe_flat)(p, j));
    EW_CU_CUDNN_TRY(cudnnSetConvolutionGroupCount(j->conv, p->g.groups));
    EW_CU_CUDNN_TRY(cudnnSetConvolutionMathType(j->conv, math_of(p->type, p->math)));
    return 0;
}

/* ---- Algorithms ---- */

/* cuDNN's three result structs, which differ only in the enumeration type of `algo`. */
struct perf_result {
    int algo, status, deterministic, math;
    size_t memory;
    float ms;
};

#define EW_CU_TAKE(perf, n, out)                                                                   \
    for (int i = 0; i < (n); i++)                                                                  \
        (out)[i] = (struct perf_result)                                                            \
        {                                                                                          \
            (int)(perf)[i].algo, (int)(perf)[i].status,                                            \
                (perf)[i].determinism == CUDNN_DETERMINISTIC, (int)(perf)[i].mathType,             \
                (perf)[i].memory, (perf)[i].time                                                   \
        }

static int by_rules(cudnnHandle_t h, int pass, const struct job *j, struct perf_result *out, int *n)
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

/* Times the algorithms on temporary memory; not allowed during capture. */
static int by_measuring(cudnnHandle_t h, int pass, const struct job *j, struct perf_result *out,
                        int *n)
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

/* True if the algorithm may run: supported, in the wanted precision, within the workspace limit,
 * deterministic if required. */
static int usable(const struct ew_cuda_queue *q, const struct perf_result *f,
                  const struct ew_cuda_conv *p)
{
    const int exact = p->type == EW_CUDA_F32 && p->math == EW_CUDA_MATH_FP32;
    const size_t most = p->planar ? q->planned_bytes : q->workspace_limit;
    return f->status == CUDNN_STATUS_SUCCESS && f->memory <= most &&
           (!q->deterministic || f->deterministic) && (!exact || f->math == CUDNN_FMA_MATH);
}

/* cuDNN's heuristics underrate its float32 Winograd kernels: for the 3x3 layers of VGG and ResNet
 * on an H200, forward, dgrad and wgrad, these take 0.3 to 0.8 of the time of the heuristics' first
 * choice. */
static void winograd_first(int pass, const struct ew_cuda_conv *p, struct ew_cuda_algo *list, int n)
{
    static const int algorithms[] = {CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED,
                                     CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD_NONFUSED,
                                     CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD_NONFUSED};
    const struct ew_cuda_window *g = &p->g;
    if (!p->planar || p->type != EW_CUDA_F32 || p->math != EW_CUDA_MATH_FP32 || g->od ||
        g->n < WINOGRAD_BATCH || g->kh != 3 || g->kw != 3 || g->sh != 1 || g->sw != 1)
        return;
    for (int i = 1; i < n; i++)
        if (list[i].algo == algorithms[pass]) {
            const struct ew_cuda_algo best = list[i];
            memmove(list + 1, list, (size_t)i * sizeof(*list));
            list[0] = best;
            return;
        }
}

int ew_cu_conv_find(struct ew_cuda_queue *q, int pass, const struct ew_cuda_conv *p, int measure,
                    struct ew_cuda_algo *out, int *n)
{
    struct job j = {0};
    struct perf_result found[ALGORITHMS];
    int count = 0, kept = 0;
    int e = describe(p, &j);
    if (!e)
        e = (measure ? by_measuring : by_rules)((cudnnHandle_t)q->cudnn, pass, &j, found, &count);
    job_end(&j);
    struct ew_cuda_algo list[ALGORITHMS];
    for (int i = 0; !e && i < count; i++)
        if (usable(q, &found[i], p))
            list[kept++] = (struct ew_cuda_algo){found[i].algo, found[i].deterministic,
                                                 found[i].memory, measure ? found[i].ms : -1};
    if (!measure)
        winograd_first(pass, p, list, kept);
    *n = kept < *n ? kept : *n;
    memcpy(out, list, (size_t)*n * sizeof(*out));
    return e;
}

/* Cache of the heuristics' answers: a query takes milliseconds. */
struct ew_cuda_found {
    int pass, type, math, planar;
    struct ew_cuda_window g;
    int algo; /* -1: no algorithm */
    size_t workspace;
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

/* The algorithm to run and its workspace. */
struct choice {
    int algo;
    void *workspace;
    size_t bytes;
};

/* The given algorithm, or the first usable one.  In planar convolutions the workspace follows the
 * copies. */
static int pick(struct ew_cuda_queue *q, int pass, const struct ew_cuda_conv *p, struct choice *out)
{
    const struct ew_cuda_found *again = find_again(q, pass, p);
    struct ew_cuda_algo best = {.algo = p->algo, .workspace = q->workspace_limit};
    int n = 1;
    if (again) {
        best.algo = again->algo;
        best.workspace = again->workspace;
    } else if (p->algo < 0) {
        EW_CU_TRY(ew_cu_conv_find(q, pass, p, 0, &best, &n));
        best.algo = n == 0 ? -1 : best.algo;
        const struct ew_cuda_found f = {pass, p->type,   p->math,       p->planar,
                                        p->g, best.algo, best.workspace};
        EW_CU_TRY(remember(q, &f));
    }
    size_t at[4];
    const size_t copies = p->planar ? ew_cuda_planar_bytes(&p->g, p->type, at) : 0;
    if (best.algo < 0)
        return EW_CU_CUDNN + CUDNN_STATUS_NOT_SUPPORTED;
    if (!p->planar)
        EW_CU_TRY(ew_cu_workspace(q, best.workspace));
    *out = (struct choice){
        best.algo, p->planar ? (char *)p->scratch + copies : (char *)q->workspace, best.workspace};
    return 0;
}

/* ---- Forward ---- */

/* The only algorithm that cuDNN has a bias for without a relu. */
static int without_relu(struct ew_cuda_queue *q, const struct job *j,
                        cudnnConvolutionFwdAlgo_t *algo, size_t *bytes)
{
    *algo = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM;
    EW_CU_CUDNN_TRY(cudnnGetConvolutionForwardWorkspaceSize((cudnnHandle_t)q->cudnn, j->x, j->w,
                                                            j->conv, j->y, *algo, bytes));
    return ew_cu_workspace(q, *bytes);
}

/* Convolution with bias, residual and relu in the epilogue; fails if cuDNN has no such kernel for
 * it. */
static int fused(struct ew_cuda_queue *q, const struct ew_cuda_conv *p, struct job *j,
                 const struct choice *w)
{
    const float one = 1, zero = 0;
    const int relu = p->act.kind == EW_CUDA_ACT_RELU;
    cudnnConvolutionFwdAlgo_t algo = (cudnnConvolutionFwdAlgo_t)w->algo;
    size_t bytes = w->bytes;
    if (!relu)
        EW_CU_TRY(without_relu(q, j, &algo, &bytes));
    EW_CU_CUDNN_TRY(cudnnCreateTensorDescriptor(&j->bias));
    EW_CU_CUDNN_TRY(cudnnSetTensor4dDescriptor(j->bias, CUDNN_TENSOR_NHWC, data_type(p->type), 1,
                                               p->g.k, 1, 1));
    EW_CU_CUDNN_TRY(cudnnCreateActivationDescriptor(&j->act));
    EW_CU_CUDNN_TRY(cudnnSetActivationDescriptor(
        j->act, relu ? CUDNN_ACTIVATION_RELU : CUDNN_ACTIVATION_IDENTITY, CUDNN_PROPAGATE_NAN, 0));
    EW_CU_CUDNN_TRY(cudnnConvolutionBiasActivationForward(
        (cudnnHandle_t)q->cudnn, &one, j->x, p->x, j->w, p->w, j->conv, algo, q->workspace, bytes,
        p->residual ? &one : &zero, j->y, p->residual ? p->residual : p->y, j->bias,
        p->type == EW_CUDA_F32 ? p->bias : p->typed_bias, j->act, j->y, p->y));
    return 0;
}

static int finish(struct ew_cuda_queue *q, const struct ew_cuda_conv *p)
{
    if (!p->bias && !p->residual && p->act.kind == EW_CUDA_ACT_NONE)
        return 0;
    const struct ew_cuda_epilogue end = {.type = p->type,
                                         .act = p->act,
                                         .add_after = p->add_after,
                                         .rows = ew_cuda_out_pixels(&p->g),
                                         .cols = p->g.k,
                                         .bias = p->bias,
                                         .residual = p->residual,
                                         .y = p->y};
    return ew_cu_epilogue(q, &end);
}

static int plain(struct ew_cuda_queue *q, const struct ew_cuda_conv *p, const struct job *j,
                 const struct choice *w)
{
    const float one = 1, zero = 0;
    EW_CU_CUDNN_TRY(cudnnConvolutionForward((cudnnHandle_t)q->cudnn, &one, j->x, p->x, j->w, p->w,
                                            j->conv, (cudnnConvolutionFwdAlgo_t)w->algo,
                                            q->workspace, w->bytes, &zero, j->y, p->y));
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

/* ---- NCHW copies ---- */

/* A batched transpose: [batch, rows, cols] to [batch, cols, rows]. */
struct batched_transpose {
    int type, add;
    int64_t batch, rows, cols;
};

static int turn(struct ew_cuda_queue *q, const struct batched_transpose *t, const void *from,
                void *to)
{
    const int64_t image = t->rows * t->cols;
    const struct ew_cuda_copy c = {.bytes = t->type == EW_CUDA_F32 ? 4 : 2,
                                   .rank = 3,
                                   .add_type = t->add ? t->type : -1,
                                   .dim = {t->batch, t->cols, t->rows},
                                   .x_stride = {image, 1, t->cols},
                                   .y_stride = {image, t->rows, 1},
                                   .x = from,
                                   .y = to};
    return ew_cu_strided_copy(q, &c);
}

/* The NCHW copies of x, y and w, and room for dw before its conversion. */
struct planes {
    char *x, *y, *w, *back;
};

static struct planes planes_in(const struct ew_cuda_window *g, int type, void *scratch)
{
    size_t at[4];
    char *base = scratch;
    if (!base)
        return (struct planes){NULL, NULL, NULL, NULL};
    ew_cuda_planar_bytes(g, type, at);
    return (struct planes){base + at[0], base + at[1], base + at[2], base + at[3]};
}

/* NHWC to NCHW. */
static struct batched_transpose turn_x(const struct ew_cuda_window *g, int type)
{
    return (struct batched_transpose){type, 0, g->n, ew_cuda_in_pixels(g) / g->n, g->c};
}

static struct batched_transpose turn_y(const struct ew_cuda_window *g, int type)
{
    return (struct batched_transpose){type, 0, g->n, ew_cuda_out_pixels(g) / g->n, g->k};
}

static struct batched_transpose turn_w(const struct ew_cuda_window *g, int type)
{
    return (struct batched_transpose){type, 0, g->k, ew_cuda_taps(g), g->c / g->groups};
}

/* The inverse transpose. */
static struct batched_transpose turned(struct batched_transpose t, int add)
{
    return (struct batched_transpose){t.type, add, t.batch, t.cols, t.rows};
}

static int planar(struct ew_cuda_queue *q, const struct ew_cuda_conv *p, const struct job *j,
                  const struct choice *by)
{
    const struct planes c = planes_in(&p->g, p->type, p->scratch);
    const struct batched_transpose x = turn_x(&p->g, p->type), w = turn_w(&p->g, p->type),
                                   y = turned(turn_y(&p->g, p->type), 0);
    const float one = 1, zero = 0;
    EW_CU_TRY(turn(q, &x, p->x, c.x));
    EW_CU_TRY(turn(q, &w, p->w, c.w));
    EW_CU_CUDNN_TRY(cudnnConvolutionForward((cudnnHandle_t)q->cudnn, &one, j->x, c.x, j->w, c.w,
                                            j->conv, (cudnnConvolutionFwdAlgo_t)by->algo,
                                            by->workspace, by->bytes, &zero, j->y, c.y));
    EW_CU_TRY(turn(q, &y, c.y, p->y));
    return finish(q, p);
}

int ew_cu_conv(struct ew_cuda_queue *q, const struct ew_cuda_conv *p)
{
    struct job j = {0};
    struct choice by;
    int e = describe(p, &j);
    if (!e)
        e = pick(q, EW_CUDA_FORWARD, p, &by);
    if (!e && p->planar)
        e = planar(q, p, &j, &by);
    else if (!e && !(can_fuse(p) && fused(q, p, &j, &by) == 0))
        e = plain(q, p, &j, &by);
    job_end(&j);
    return e == EW_CU_CUDNN + CUDNN_STATUS_NOT_SUPPORTED && !p->g.od ? ew_cu_direct(q, p) : e;
}

/* ---- Gradients ---- */

static int run_dgrad(struct ew_cuda_queue *q, const struct ew_cuda_conv_back *p,
                     const struct job *j, const struct choice *by)
{
    const struct planes c = planes_in(&p->g, p->type, p->scratch);
    const struct batched_transpose y = turn_y(&p->g, p->type), w = turn_w(&p->g, p->type),
                                   x = turned(turn_x(&p->g, p->type), p->add);
    const float one = 1, beta = p->add && !p->planar ? 1 : 0;
    if (p->planar) {
        EW_CU_TRY(turn(q, &y, p->dy, c.y));
        EW_CU_TRY(turn(q, &w, p->w, c.w));
    }
    EW_CU_CUDNN_TRY(cudnnConvolutionBackwardData(
        (cudnnHandle_t)q->cudnn, &one, j->w, p->planar ? c.w : p->w, j->y, p->planar ? c.y : p->dy,
        j->conv, (cudnnConvolutionBwdDataAlgo_t)by->algo, by->workspace, by->bytes, &beta, j->x,
        p->planar ? c.x : p->dx));
    return p->planar ? turn(q, &x, c.x, p->dx) : 0;
}

/* In half types cuDNN writes dw in that type: to scratch, then it is converted to float32. */
static int run_wgrad(struct ew_cuda_queue *q, const struct ew_cuda_conv_back *p,
                     const struct job *j, const struct choice *by)
{
    const struct planes c = planes_in(&p->g, p->type, p->scratch);
    const struct batched_transpose x = turn_x(&p->g, p->type), y = turn_y(&p->g, p->type);
    const int whole = p->type == EW_CUDA_F32, direct = whole && !p->planar;
    const struct batched_transpose w = turned(turn_w(&p->g, p->type), whole && p->add);
    const float one = 1, beta = p->add && direct ? 1 : 0;
    const void *made = p->planar ? (const void *)c.back : (const void *)p->scratch;
    void *to = direct ? (void *)p->dw : p->planar ? (void *)c.w : (void *)p->scratch;
    if (p->planar) {
        EW_CU_TRY(turn(q, &x, p->x, c.x));
        EW_CU_TRY(turn(q, &y, p->dy, c.y));
    }
    EW_CU_CUDNN_TRY(cudnnConvolutionBackwardFilter(
        (cudnnHandle_t)q->cudnn, &one, j->x, p->planar ? c.x : p->x, j->y, p->planar ? c.y : p->dy,
        j->conv, (cudnnConvolutionBwdFilterAlgo_t)by->algo, by->workspace, by->bytes, &beta, j->w,
        to));
    if (p->planar)
        EW_CU_TRY(turn(q, &w, to, whole ? (void *)p->dw : (void *)c.back));
    if (whole)
        return 0;
    const int64_t count = p->g.k * ew_cuda_taps(&p->g) * (p->g.c / p->g.groups);
    return p->add ? ew_cu_cast_add(q, p->type, made, p->dw, count)
                  : ew_cu_cast(q, p->type, made, EW_CUDA_F32, p->dw, count);
}

int ew_cu_conv_back(struct ew_cuda_queue *q, const struct ew_cuda_conv_back *p)
{
    const struct ew_cuda_conv asked = {.type = p->type,
                                       .math = p->math,
                                       .g = p->g,
                                       .planar = p->planar,
                                       .scratch = p->scratch,
                                       .algo = p->algo};
    const int pass = p->dx ? EW_CUDA_DGRAD : EW_CUDA_WGRAD;
    struct job j = {0};
    struct choice by;
    int e = describe(&asked, &j);
    if (!e)
        e = pick(q, pass, &asked, &by);
    if (!e)
        e = (p->dx ? run_dgrad : run_wgrad)(q, p, &j, &by);
    job_end(&j);
    if (e != EW_CU_CUDNN + CUDNN_STATUS_NOT_SUPPORTED || p->g.od)
        return e;
    return p->dx ? ew_cu_direct_dx(q, p) : ew_cu_direct_dw(q, p);
}
