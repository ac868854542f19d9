/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions of cuDNN: im2col and matrix products over copies in float32, for each image and
 * group.  Its choice of algorithms differs in determinism, workspace and arithmetic only. */
#include <stdlib.h>
#include <string.h>
#include <vector>

#include <cudnn.h>

#include "host_faults.h"
#include "host_work.h"

#define DIMS 3 /* spatial */

using namespace ew_host;

struct ew_host_cudnn {
    cudaStream_t stream;
};

/* [n, c, d, h, w] as described; `last`: channels are the last dimension in memory. */
struct ew_host_tensor {
    storage type;
    bool last;
    int dims; /* of all */
    int64_t n, c, size[DIMS];
};

struct ew_host_conv {
    int dims; /* spatial ones */
    int pad[DIMS], stride[DIMS], dilation[DIMS], groups;
    cudnnMathType_t math;
};

struct ew_host_act {
    cudnnActivationMode_t mode;
};

const char *cudnnGetErrorString(cudnnStatus_t s)
{
    return s == CUDNN_STATUS_BAD_PARAM ? "CUDNN_STATUS_BAD_PARAM" : "CUDNN_STATUS_NOT_SUPPORTED";
}

size_t cudnnGetVersion(void)
{
    return 8600;
}

cudnnStatus_t cudnnCreate(cudnnHandle_t *h)
{
    if (ew_host::fault(__func__))
        return CUDNN_STATUS_NOT_SUPPORTED;
    *h = new ew_host_cudnn();
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t h)
{
    delete h;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t h, cudaStream_t s)
{
    h->stream = s;
    return CUDNN_STATUS_SUCCESS;
}

/* ---- Descriptors ---- */

static cudnnStatus_t describe(ew_host_tensor *d, cudnnTensorFormat_t f, cudnnDataType_t t, int n,
                              const int *dims)
{
    d->type = t == CUDNN_DATA_FLOAT ? STORES_F32 : t == CUDNN_DATA_HALF ? STORES_F16 : STORES_BF16;
    d->last = f == CUDNN_TENSOR_NHWC;
    d->dims = n;
    d->n = dims[0];
    d->c = dims[1];
    for (int i = 0; i < DIMS; i++)
        d->size[i] = i < 5 - n ? 1 : dims[i + n - 3];
    for (int i = 0; i < n; i++)
        if (dims[i] <= 0)
            return CUDNN_STATUS_BAD_PARAM;
    return n == 4 || n == 5 ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
}

cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t *d)
{
    *d = new ew_host_tensor();
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t d)
{
    delete d;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t d, cudnnTensorFormat_t f,
                                         cudnnDataType_t t, int n, int c, int h, int w)
{
    const int dims[] = {n, c, h, w};
    return describe(d, f, t, 4, dims);
}

cudnnStatus_t cudnnSetTensorNdDescriptorEx(cudnnTensorDescriptor_t d, cudnnTensorFormat_t f,
                                           cudnnDataType_t t, int n, const int dims[])
{
    return describe(d, f, t, n, dims);
}

cudnnStatus_t cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t *d)
{
    return cudnnCreateTensorDescriptor(d);
}

cudnnStatus_t cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t d)
{
    return cudnnDestroyTensorDescriptor(d);
}

cudnnStatus_t cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t d, cudnnDataType_t t,
                                         cudnnTensorFormat_t f, int k, int c, int h, int w)
{
    return cudnnSetTensor4dDescriptor(d, f, t, k, c, h, w);
}

cudnnStatus_t cudnnSetFilterNdDescriptor(cudnnFilterDescriptor_t d, cudnnDataType_t t,
                                         cudnnTensorFormat_t f, int n, const int dims[])
{
    return describe(d, f, t, n, dims);
}

cudnnStatus_t cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t *d)
{
    *d = new ew_host_conv();
    (*d)->groups = 1;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroyConvolutionDescriptor(cudnnConvolutionDescriptor_t d)
{
    delete d;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolution2dDescriptor(cudnnConvolutionDescriptor_t d, int ph, int pw,
                                              int sh, int sw, int dh, int dw,
                                              cudnnConvolutionMode_t m, cudnnDataType_t t)
{
    const int pads[] = {ph, pw}, strides[] = {sh, sw}, dilations[] = {dh, dw};
    return cudnnSetConvolutionNdDescriptor(d, 2, pads, strides, dilations, m, t);
}

cudnnStatus_t cudnnSetConvolutionNdDescriptor(cudnnConvolutionDescriptor_t d, int n,
                                              const int pads[], const int strides[],
                                              const int dilations[], cudnnConvolutionMode_t m,
                                              cudnnDataType_t t)
{
    if (n < 2 || n > DIMS || m != CUDNN_CROSS_CORRELATION || t != CUDNN_DATA_FLOAT)
        return CUDNN_STATUS_BAD_PARAM;
    d->dims = n;
    for (int i = 0; i < DIMS; i++) {
        const int from = i - (DIMS - n);
        d->pad[i] = from < 0 ? 0 : pads[from];
        d->stride[i] = from < 0 ? 1 : strides[from];
        d->dilation[i] = from < 0 ? 1 : dilations[from];
        if (d->pad[i] < 0 || d->stride[i] < 1 || d->dilation[i] < 1)
            return CUDNN_STATUS_BAD_PARAM;
    }
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t d, int groups)
{
    d->groups = groups;
    return groups > 0 ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
}

cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t d, cudnnMathType_t m)
{
    d->math = m;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreateActivationDescriptor(cudnnActivationDescriptor_t *d)
{
    *d = new ew_host_act();
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroyActivationDescriptor(cudnnActivationDescriptor_t d)
{
    delete d;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetActivationDescriptor(cudnnActivationDescriptor_t d, cudnnActivationMode_t m,
                                           cudnnNanPropagation_t, double)
{
    d->mode = m;
    return CUDNN_STATUS_SUCCESS;
}

/* ---- Geometry ---- */

/* Everything about a convolution; x, w and y of one type and format. */
struct job {
    ew_host_tensor x, w, y;
    ew_host_conv c;
};

/* False: the sizes do not fit together, as with padding that differs at the two ends. */
static bool fits(const job &j)
{
    bool ok = j.x.n == j.y.n && j.w.n == j.y.c && j.x.c == j.w.c * j.c.groups &&
              j.y.c % j.c.groups == 0 && j.x.type == j.w.type && j.x.type == j.y.type &&
              j.x.last == j.w.last && j.x.last == j.y.last && j.x.dims == j.c.dims + 2;
    for (int i = 0; i < DIMS; i++) {
        const int64_t span = (j.w.size[i] - 1) * j.c.dilation[i] + 1;
        const int64_t room = j.x.size[i] + 2 * j.c.pad[i] - span;
        ok = ok && room >= 0 && room / j.c.stride[i] + 1 == j.y.size[i];
    }
    return ok;
}

static int64_t pixels(const ew_host_tensor &t)
{
    return t.size[0] * t.size[1] * t.size[2];
}

/* Index of channel c of pixel p of image n. */
static int64_t index(const ew_host_tensor &t, int64_t n, int64_t p, int64_t c)
{
    return t.last ? (n * pixels(t) + p) * t.c + c : (n * t.c + c) * pixels(t) + p;
}

static bool is_tf32(const job &j)
{
    return j.x.type == STORES_F32 && j.c.math != CUDNN_FMA_MATH;
}

static float value(const job &j, const ew_host_tensor &t, const void *p, int64_t at)
{
    const float v = get(p, at, t.type);
    return is_tf32(j) ? to_tf32(v) : v;
}

/* The input pixel of tap `tap` of output pixel `p`; -1: in the padding. */
static int64_t source(const job &j, int64_t p, int64_t tap)
{
    int64_t at = 0, scale = 1;
    for (int i = DIMS - 1; i >= 0; i--) {
        const int64_t o = p % j.y.size[i], t = tap % j.w.size[i];
        const int64_t k = o * j.c.stride[i] - j.c.pad[i] + t * j.c.dilation[i];
        if (k < 0 || k >= j.x.size[i])
            return -1;
        at += k * scale;
        scale *= j.x.size[i];
        p /= j.y.size[i];
        tap /= j.w.size[i];
    }
    return at;
}

/* One group of one image: columns [taps * channels, output pixels]. */
struct part {
    int64_t n, group, channels, filters, taps, depth, count;
    part(const job &j, int64_t n_, int64_t g)
        : n(n_), group(g), channels(j.w.c), filters(j.y.c / j.c.groups), taps(pixels(j.w)),
          depth(taps * channels), count(pixels(j.y))
    {
    }
};

static std::vector<float> columns(const job &j, const part &p, const void *x)
{
    std::vector<float> v((size_t)(p.depth * p.count));
    for (int64_t tap = 0; tap < p.taps; tap++)
        for (int64_t o = 0; o < p.count; o++) {
            const int64_t from = source(j, o, tap);
            for (int64_t c = 0; c < p.channels; c++)
                v[(size_t)((tap * p.channels + c) * p.count + o)] =
                    from < 0 ? 0
                             : value(j, j.x, x, index(j.x, p.n, from, p.group * p.channels + c));
        }
    return v;
}

/* Filters of a group, [filters, taps * channels], or turned. */
static std::vector<float> filters(const job &j, const part &p, const void *w, bool turned)
{
    std::vector<float> v((size_t)(p.filters * p.depth));
    for (int64_t f = 0; f < p.filters; f++)
        for (int64_t tap = 0; tap < p.taps; tap++)
            for (int64_t c = 0; c < p.channels; c++) {
                const int64_t d = tap * p.channels + c;
                v[(size_t)(turned ? d * p.filters + f : f * p.depth + d)] =
                    value(j, j.w, w, index(j.w, p.group * p.filters + f, tap, c));
            }
    return v;
}

/* Gradients of a group's outputs, [filters, pixels]. */
static std::vector<float> gradients(const job &j, const part &p, const void *dy)
{
    std::vector<float> v((size_t)(p.filters * p.count));
    for (int64_t f = 0; f < p.filters; f++)
        for (int64_t o = 0; o < p.count; o++)
            v[(size_t)(f * p.count + o)] =
                value(j, j.y, dy, index(j.y, p.n, o, p.group * p.filters + f));
    return v;
}

/* ---- Computation ---- */

struct ending {
    const void *z, *bias; /* may be NULL */
    float by_z;
    bool relu;
};

static void forward(const job &j, const void *x, const void *w, const ending &e, void *y)
{
    for (int64_t n = 0; n < j.x.n; n++)
        for (int64_t g = 0; g < j.c.groups; g++) {
            const part p(j, n, g);
            const std::vector<float> col = columns(j, p, x), f = filters(j, p, w, false);
            std::vector<float> sum((size_t)(p.filters * p.count), 0.f);
            multiply(f.data(), col.data(), sum.data(), p.filters, p.count, p.depth);
            for (int64_t k = 0; k < p.filters; k++)
                for (int64_t o = 0; o < p.count; o++) {
                    const int64_t c = g * p.filters + k, at = index(j.y, n, o, c);
                    float v = sum[(size_t)(k * p.count + o)];
                    v += e.by_z != 0 ? e.by_z * get(e.z, at, j.y.type) : 0;
                    v += e.bias ? get(e.bias, c, j.y.type) : 0;
                    put(y, at, j.y.type, e.relu && v < 0 ? 0 : v);
                }
        }
}

static void data_gradient(const job &j, const void *w, const void *dy, float beta, void *dx)
{
    for (int64_t n = 0; n < j.x.n; n++)
        for (int64_t g = 0; g < j.c.groups; g++) {
            const part p(j, n, g);
            const std::vector<float> d = gradients(j, p, dy), f = filters(j, p, w, true);
            std::vector<float> col((size_t)(p.depth * p.count), 0.f);
            multiply(f.data(), d.data(), col.data(), p.depth, p.count, p.filters);
            std::vector<float> sum((size_t)(p.channels * pixels(j.x)), 0.f);
            for (int64_t tap = 0; tap < p.taps; tap++)
                for (int64_t o = 0; o < p.count; o++) {
                    const int64_t to = source(j, o, tap);
                    for (int64_t c = 0; to >= 0 && c < p.channels; c++)
                        sum[(size_t)(c * pixels(j.x) + to)] +=
                            col[(size_t)((tap * p.channels + c) * p.count + o)];
                }
            for (int64_t c = 0; c < p.channels; c++)
                for (int64_t i = 0; i < pixels(j.x); i++) {
                    const int64_t at = index(j.x, n, i, g * p.channels + c);
                    const float old = beta != 0 ? beta * get(dx, at, j.x.type) : 0;
                    put(dx, at, j.x.type, sum[(size_t)(c * pixels(j.x) + i)] + old);
                }
        }
}

static void filter_gradient(const job &j, const void *x, const void *dy, float beta, void *dw)
{
    for (int64_t g = 0; g < j.c.groups; g++) {
        const part whole(j, 0, g);
        std::vector<float> sum((size_t)(whole.depth * whole.filters), 0.f);
        for (int64_t n = 0; n < j.x.n; n++) {
            const part p(j, n, g);
            const std::vector<float> col = columns(j, p, x), d = gradients(j, p, dy);
            std::vector<float> turned((size_t)(p.count * p.filters));
            for (int64_t f = 0; f < p.filters; f++)
                for (int64_t o = 0; o < p.count; o++)
                    turned[(size_t)(o * p.filters + f)] = d[(size_t)(f * p.count + o)];
            multiply(col.data(), turned.data(), sum.data(), p.depth, p.filters, p.count);
        }
        for (int64_t f = 0; f < whole.filters; f++)
            for (int64_t tap = 0; tap < whole.taps; tap++)
                for (int64_t c = 0; c < whole.channels; c++) {
                    const int64_t at = index(j.w, g * whole.filters + f, tap, c);
                    const float old = beta != 0 ? beta * get(dw, at, j.w.type) : 0;
                    put(dw, at, j.w.type,
                        sum[(size_t)((tap * whole.channels + c) * whole.filters + f)] + old);
                }
    }
}

/* ---- Algorithms ---- */

/* Those of a card in kind: fast ones that are not deterministic or need workspace, and a slow one
 * that is and needs none.  In float32 with TF32 allowed there are both kinds of arithmetic. */
struct known {
    int algo;
    bool deterministic, winograd;
    size_t workspace;
};

static const known ways[3][3] = {
    {{CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, true, false, 8192},
     {CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED, true, true, 65536},
     {CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, true, false, 0}},
    {{CUDNN_CONVOLUTION_BWD_DATA_ALGO_0, false, false, 0},
     {CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD_NONFUSED, true, true, 65536},
     {CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, true, false, 4096}},
    {{CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0, false, false, 0},
     {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD_NONFUSED, true, true, 65536},
     {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, true, false, 4096}},
};

static bool runs(const known &k, const job &j)
{
    return !k.winograd || (j.w.size[1] == 3 && j.w.size[2] == 3 && j.c.stride[1] == 1 &&
                           j.c.stride[2] == 1 && j.c.groups == 1 && j.c.dims == 2 && !j.x.last);
}

static const known *find(int pass, int algo, const job &j)
{
    for (const known &k : ways[pass])
        if (k.algo == algo && runs(k, j))
            return &k;
    return NULL;
}

template <typename P>
static cudnnStatus_t list(int pass, const job &j, bool measured, int most, int *n, P *perf)
{
    *n = 0;
    if (!fits(j))
        return CUDNN_STATUS_BAD_PARAM;
    for (const known &k : ways[pass])
        if (*n < most && runs(k, j)) {
            P p = {};
            p.algo = static_cast<decltype(p.algo)>(k.algo);
            p.memory = k.workspace;
            p.determinism = k.deterministic ? CUDNN_DETERMINISTIC : CUDNN_NON_DETERMINISTIC;
            p.mathType = j.c.math;
            p.time = measured ? 1.f + (float)*n : -1;
            perf[(*n)++] = p;
        }
    return CUDNN_STATUS_SUCCESS;
}

#define EW_HOST_LIST(name, pass, first, second, third, X, W, Y, P)                                 \
    cudnnStatus_t name(cudnnHandle_t, first, second, cudnnConvolutionDescriptor_t c, third,        \
                       int most, int *n, P *perf)                                                  \
    {                                                                                              \
        return list(pass, job{*X, *W, *Y, *c}, strstr(#name, "Find") != NULL, most, n, perf);      \
    }

EW_HOST_LIST(cudnnGetConvolutionForwardAlgorithm_v7, 0, cudnnTensorDescriptor_t x,
             cudnnFilterDescriptor_t w, cudnnTensorDescriptor_t y, x, w, y,
             cudnnConvolutionFwdAlgoPerf_t)
EW_HOST_LIST(cudnnFindConvolutionForwardAlgorithm, 0, cudnnTensorDescriptor_t x,
             cudnnFilterDescriptor_t w, cudnnTensorDescriptor_t y, x, w, y,
             cudnnConvolutionFwdAlgoPerf_t)
EW_HOST_LIST(cudnnGetConvolutionBackwardDataAlgorithm_v7, 1, cudnnFilterDescriptor_t w,
             cudnnTensorDescriptor_t y, cudnnTensorDescriptor_t x, x, w, y,
             cudnnConvolutionBwdDataAlgoPerf_t)
EW_HOST_LIST(cudnnFindConvolutionBackwardDataAlgorithm, 1, cudnnFilterDescriptor_t w,
             cudnnTensorDescriptor_t y, cudnnTensorDescriptor_t x, x, w, y,
             cudnnConvolutionBwdDataAlgoPerf_t)
EW_HOST_LIST(cudnnGetConvolutionBackwardFilterAlgorithm_v7, 2, cudnnTensorDescriptor_t x,
             cudnnTensorDescriptor_t y, cudnnFilterDescriptor_t w, x, w, y,
             cudnnConvolutionBwdFilterAlgoPerf_t)
EW_HOST_LIST(cudnnFindConvolutionBackwardFilterAlgorithm, 2, cudnnTensorDescriptor_t x,
             cudnnTensorDescriptor_t y, cudnnFilterDescriptor_t w, x, w, y,
             cudnnConvolutionBwdFilterAlgoPerf_t)

cudnnStatus_t cudnnGetConvolutionForwardWorkspaceSize(cudnnHandle_t, cudnnTensorDescriptor_t x,
                                                      cudnnFilterDescriptor_t w,
                                                      cudnnConvolutionDescriptor_t c,
                                                      cudnnTensorDescriptor_t y,
                                                      cudnnConvolutionFwdAlgo_t algo, size_t *bytes)
{
    const job j = {*x, *w, *y, *c};
    const known *k = find(0, algo, j);
    *bytes = k ? k->workspace : 0;
    return !fits(j) ? CUDNN_STATUS_BAD_PARAM
           : k      ? CUDNN_STATUS_SUCCESS
                    : CUDNN_STATUS_NOT_SUPPORTED;
}

/* Checks the workspace, which the algorithm overwrites. */
static cudnnStatus_t start(cudnnHandle_t h, int pass, int algo, const job &j, void *room,
                           size_t bytes, const std::function<void()> &work)
{
    const known *k = find(pass, algo, j);
    if (!fits(j))
        return CUDNN_STATUS_BAD_PARAM;
    if (!k)
        return CUDNN_STATUS_NOT_SUPPORTED;
    const size_t uses = k->workspace;
    if (bytes < uses || (uses && !room))
        return CUDNN_STATUS_BAD_PARAM;
    return enqueue_work(h->stream,
                        [work, room, uses] {
                            if (uses)
                                memset(room, 0xff, uses);
                            work();
                        })
               ? CUDNN_STATUS_BAD_PARAM
               : CUDNN_STATUS_SUCCESS;
}

static float number(const void *p)
{
    return *static_cast<const float *>(p);
}

cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t h, const void *alpha,
                                      cudnnTensorDescriptor_t xd, const void *x,
                                      cudnnFilterDescriptor_t wd, const void *w,
                                      cudnnConvolutionDescriptor_t c,
                                      cudnnConvolutionFwdAlgo_t algo, void *room, size_t bytes,
                                      const void *beta, cudnnTensorDescriptor_t yd, void *y)
{
    const job j = {*xd, *wd, *yd, *c};
    const ending e = {y, NULL, number(beta), false};
    if (number(alpha) != 1)
        return CUDNN_STATUS_NOT_SUPPORTED;
    return start(h, 0, algo, j, room, bytes, [=] { forward(j, x, w, e, y); });
}

cudnnStatus_t cudnnConvolutionBiasActivationForward(
    cudnnHandle_t h, const void *alpha, cudnnTensorDescriptor_t xd, const void *x,
    cudnnFilterDescriptor_t wd, const void *w, cudnnConvolutionDescriptor_t c,
    cudnnConvolutionFwdAlgo_t algo, void *room, size_t bytes, const void *alpha2,
    cudnnTensorDescriptor_t, const void *z, cudnnTensorDescriptor_t bd, const void *bias,
    cudnnActivationDescriptor_t act, cudnnTensorDescriptor_t yd, void *y)
{
    const job j = {*xd, *wd, *yd, *c};
    const bool relu = act->mode == CUDNN_ACTIVATION_RELU;
    const ending e = {z, bias, number(alpha2), relu};
    if (number(alpha) != 1 || bd->c != yd->c || bd->type != yd->type)
        return CUDNN_STATUS_BAD_PARAM;
    if (!relu && algo != CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM)
        return CUDNN_STATUS_NOT_SUPPORTED;
    return start(h, 0, algo, j, room, bytes, [=] { forward(j, x, w, e, y); });
}

cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t h, const void *alpha,
                                           cudnnFilterDescriptor_t wd, const void *w,
                                           cudnnTensorDescriptor_t dyd, const void *dy,
                                           cudnnConvolutionDescriptor_t c,
                                           cudnnConvolutionBwdDataAlgo_t algo, void *room,
                                           size_t bytes, const void *beta,
                                           cudnnTensorDescriptor_t dxd, void *dx)
{
    const job j = {*dxd, *wd, *dyd, *c};
    const float old = number(beta);
    if (number(alpha) != 1)
        return CUDNN_STATUS_NOT_SUPPORTED;
    return start(h, 1, algo, j, room, bytes, [=] { data_gradient(j, w, dy, old, dx); });
}

cudnnStatus_t cudnnConvolutionBackwardFilter(cudnnHandle_t h, const void *alpha,
                                             cudnnTensorDescriptor_t xd, const void *x,
                                             cudnnTensorDescriptor_t dyd, const void *dy,
                                             cudnnConvolutionDescriptor_t c,
                                             cudnnConvolutionBwdFilterAlgo_t algo, void *room,
                                             size_t bytes, const void *beta,
                                             cudnnFilterDescriptor_t dwd, void *dw)
{
    const job j = {*xd, *dwd, *dyd, *c};
    const float old = number(beta);
    if (number(alpha) != 1)
        return CUDNN_STATUS_NOT_SUPPORTED;
    return start(h, 2, algo, j, room, bytes, [=] { filter_gradient(j, x, dy, old, dw); });
}
