/* SPDX-License-Identifier: Apache-2.0 */
/* The interface of the CUDA module (libedgewise-cuda.so): launchers that take plain pointers and
 * numbers.
 *
 * The library includes no CUDA header.  It opens the module at run time and gets the function table
 * at the end of this file; everything that needs nvcc, cuDNN or cuBLASLt is in the module.
 *
 * Unless stated otherwise: pointers are device memory; tensors are contiguous, channels-last ([N,
 * H, W, C]) and of the launch's `type`; parameters and statistics are float32; sums are accumulated
 * in float32 or double.  Reductions have a fixed order: same input, same card, same bits.
 * Functions return 0, or a code that `error_text` explains. */
#ifndef EW_BACKEND_CUDA_KERNELS_H
#define EW_BACKEND_CUDA_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#define EW_CUDA_MODULE_VERSION 11 /* must be the same in the library and the module */

/* Storage types of activations. */
enum ew_cuda_type { EW_CUDA_F32, EW_CUDA_F16, EW_CUDA_BF16 };

/* How float32 products are computed. */
enum ew_cuda_math {
    EW_CUDA_MATH_FP32, /* FMA units: full float32 */
    EW_CUDA_MATH_TF32  /* tensor cores: 10 bits of mantissa, float32 accumulation */
};

/* A stream, and the resources shared by the launches on it. */
struct ew_cuda_queue {
    void *stream;       /* cudaStream_t */
    unsigned *counters; /* EW_CUDA_COUNTERS of arrived blocks; zero before and after each launch */
    int processors;     /* streaming multiprocessors */
    int deterministic;  /* only algorithms of cuDNN and cuBLASLt that always give the same bits */
    void *cudnn, *blas; /* library handles */
    void *workspace;    /* of cuDNN and cuBLASLt: grows with what they ask for, */
    size_t workspace_bytes, workspace_limit; /* to at most this */
    void **outgrown;                         /* smaller workspaces, which captured graphs may use */
    int n_outgrown;
    size_t planned_bytes;        /* limit for the workspace of a planar convolution, in its
                                  * scratch */
    struct ew_cuda_found *found; /* cache of chosen cuDNN algorithms */
    int n_found, cap_found;
};

#define EW_CUDA_COUNTERS 65536

/* ---- Activations: numbered as in op/epilogue.h ---- */

enum ew_cuda_act_kind {
    EW_CUDA_ACT_NONE,
    EW_CUDA_ACT_RELU,
    EW_CUDA_ACT_CLIP,
    EW_CUDA_ACT_LEAKY,
    EW_CUDA_ACT_HARD_SWISH,
    EW_CUDA_ACT_HARD_SIGMOID,
    EW_CUDA_ACT_SILU,
    EW_CUDA_ACT_SIGMOID,
    EW_CUDA_ACT_TANH,
    EW_CUDA_ACT_GELU
};

struct ew_cuda_act {
    int kind;
    float lo, hi;
};

/* ---- Element-wise chains ---- */

/* Numbers below EW_CUDA_OP_ADD are activations. */
enum ew_cuda_op {
    EW_CUDA_OP_ADD = 16,
    EW_CUDA_OP_SUB,
    EW_CUDA_OP_MUL,
    EW_CUDA_OP_DIV,
    EW_CUDA_OP_MAX,
    EW_CUDA_OP_MIN,
    EW_CUDA_OP_POW,
    EW_CUDA_OP_AT_LEAST, /* a clip's bounds: NaN is none, whereas MAX and MIN return it */
    EW_CUDA_OP_AT_MOST,
    EW_CUDA_OP_LAST_BINARY = EW_CUDA_OP_AT_MOST,
    EW_CUDA_OP_NEG = 32,
    EW_CUDA_OP_ABS,
    EW_CUDA_OP_EXP,
    EW_CUDA_OP_LOG,
    EW_CUDA_OP_SQRT,
    EW_CUDA_OP_RECIPROCAL,
    EW_CUDA_OP_ERF,
    EW_CUDA_OP_GELU,
    EW_CUDA_OP_SOFTPLUS,
    EW_CUDA_OP_ELU, /* lo: alpha */
    EW_CUDA_OP_MISH,
    EW_CUDA_OP_FLOOR,
    EW_CUDA_OP_CEIL,
    EW_CUDA_OP_AFFINE /* x * lo + hi */
};

#define EW_CUDA_DIMS  4
#define EW_CUDA_LINKS 6

/* One operation: v = op(v), or v = op(v, b). */
struct ew_cuda_link {
    int op;
    float lo, hi;
    const void *b;
    int64_t stride[EW_CUDA_DIMS]; /* of b, in elements; 0 broadcasts it */
    int b_f32;                    /* b is float32 whatever `type` is */
};

/* y = link[n - 1](... link[0](a)), over dim[0] x ... x dim[3], outermost first; y is contiguous. */
struct ew_cuda_chain {
    int type;
    int n;
    int add; /* accumulate into y */
    int64_t dim[EW_CUDA_DIMS];
    int a_f32; /* a is float32 whatever `type` is */
    const void *a;
    int64_t a_stride[EW_CUDA_DIMS];
    struct ew_cuda_link link[EW_CUDA_LINKS];
    void *y;
};

/* y = act(y + bias + residual), or act(y + bias) + residual, over [rows, cols], in place. */
struct ew_cuda_epilogue {
    int type;
    struct ew_cuda_act act;
    int add_after;
    int64_t rows;
    int cols;
    const float *bias;    /* may be NULL */
    const void *residual; /* may be NULL */
    void *y;
};

/* dx = dy * act'(x).  by_output: x is the activation's output instead of its input (not for
 * hard_swish, silu and gelu).
 * bounds: a clip takes its bounds from lo and hi in device memory (NULL: unbounded) instead of from
 * act. */
struct ew_cuda_act_back {
    int type;
    struct ew_cuda_act act;
    int bounds;
    const float *lo, *hi;
    int by_output;
    int add; /* accumulate into dx */
    int64_t n;
    const void *x, *dy;
    void *dx;
};

/* Dropout: element i is dropped if Philox(seed, 0, i / 4)[i % 4] * 2^-32 < ratio; the seed is
 * splitmix64(*key ^ node), as in ew_run_seed. */
struct ew_cuda_dropout {
    int type;
    int add;
    int64_t n;
    double ratio;
    const uint64_t *key;
    int node;
    const void *x;
    void *y;
};

/* ---- Reductions ---- */

enum ew_cuda_reduce_kind { EW_CUDA_SUM, EW_CUDA_MAXIMUM };

/* out[o][i] = scale * sum (or maximum) over m of a[o][m][i], or of a[o][m][i] * b[o][m][i] if b is
 * not NULL. */
struct ew_cuda_reduce {
    int type;
    int out_f32; /* the output is float32 whatever `type` is */
    int kind;
    int add;
    int64_t outer, mid, inner;
    float scale;
    const void *a, *b;
    void *out;
    float *scratch; /* ew_cuda_reduce_scratch() bytes; so are the other `scratch` of reductions
                     * below */
};

/* ---- Batch norm: x [pixels, channels] ---- */

struct ew_cuda_norm {
    int type;
    int64_t pixels;
    int channels;
    float eps, momentum; /* momentum: weight of the old running statistics */
    int batch_stats;     /* normalise by the batch's statistics, else by the running ones */
    int update_running;
    int again; /* recomputation: `kept` has the statistics, running ones stay as they are */
    struct ew_cuda_act act;
    const void *x, *residual; /* y = act(norm(x) + residual); residual may be NULL */
    void *y;
    const float *scale, *bias;
    float *mean, *var; /* running statistics */
    float *kept;       /* saved for backward, [2][channels]: mean, 1 / std */
    float *scratch;
};

/* z: input of the activation.  dz = dy * act'(z); dx by the chain rule; dresidual = dz.  dx may be
 * dy. */
struct ew_cuda_norm_back {
    int type;
    int64_t pixels;
    int channels;
    int batch_stats;
    struct ew_cuda_act act;
    int add_dx, add_dscale, add_dbias, add_dresidual;
    const void *x, *y, *dy; /* y: given only with a residual; relu's mask is y > 0 */
    void *dx, *dresidual;   /* either may be NULL */
    const float *scale, *bias, *kept;
    float *dscale, *dbias; /* either may be NULL */
    float *sums;           /* [2][channels], output: sums of dz and of dz * xhat */
    float *scratch;
};

/* ---- Group, instance and layer norm ----
 * Group (i, j), whose statistics are shared, is x[i][..][j][..] of x [outer, rows, inner, run];
 * element k of the run has scale[j * run + k]. */

struct ew_cuda_group_norm {
    int type;
    int64_t outer, rows;
    int inner, run;
    float eps;
    const void *x;
    const float *scale, *bias; /* [inner * run]; bias may be NULL */
    float *kept;               /* saved for backward, [2][outer * inner]: mean, 1 / std; forward:
                                * may be NULL */
    void *y;                   /* forward */
    const void *dy;            /* backward, as are the following */
    void *dx;                  /* may be NULL */
    float *dscale, *dbias;     /* either may be NULL */
    int add_dx, add_dscale, add_dbias;
    float *scratch; /* ew_cuda_reduce_scratch(1, outer * rows, inner * run, 2) bytes */
};

/* ---- Convolution and pooling windows ---- */

/* x [n, h, w, c], y [n, oh, ow, k]; padding at the end follows from the sizes.  od != 0: three
 * spatial dimensions, x [n, d, h, w, c], y [n, od, oh, ow, k]. */
struct ew_cuda_window {
    int n, h, w, c;
    int oh, ow, k;
    int kh, kw, sh, sw, ph, pw, dh, dw;
    int groups;
    int d, od, kd, sd, pd, dd;
};

static inline int64_t ew_cuda_in_pixels(const struct ew_cuda_window *g)
{
    return (int64_t)g->n * (g->od ? g->d : 1) * g->h * g->w;
}

static inline int64_t ew_cuda_out_pixels(const struct ew_cuda_window *g)
{
    return (int64_t)g->n * (g->od ? g->od : 1) * g->oh * g->ow;
}

static inline int64_t ew_cuda_taps(const struct ew_cuda_window *g)
{
    return (int64_t)(g->od ? g->kd : 1) * g->kh * g->kw;
}

#include "backend/cuda/kernels_int8.h"

/* y = act(conv(x, w) + bias + residual), or with add_after act(conv(x, w) + bias) + residual.
 * w [k, kh, kw, c / groups]; bias (float32) and residual may be NULL.  typed_bias: the bias
 * converted to `type`, as cuDNN's fused epilogue wants it; NULL: no fused epilogue. */
struct ew_cuda_conv {
    int type, math;
    struct ew_cuda_window g;
    struct ew_cuda_act act;
    int add_after;
    const void *x, *w, *residual;
    const float *bias;
    const void *typed_bias;
    void *y;
    int planar;    /* conv: through NCHW copies, for which cuDNN has other kernels */
    void *scratch; /* planar: ew_cuda_planar_bytes(), then the algorithm's workspace */
    int algo;      /* cuDNN's, from conv_find; -1: the first of its heuristics */
};

/* dgrad: dx, in x's shape; wgrad: dw, float32.  Exactly one of dx and dw is not NULL. */
struct ew_cuda_conv_back {
    int type, math;
    struct ew_cuda_window g;
    int add; /* accumulate into the gradient */
    const void *x, *w, *dy;
    void *dx;
    float *dw;
    float *scratch; /* wgrad by conv_back in a half type: room for dw in that type */
    int planar;     /* as in ew_cuda_conv, with its scratch */
    int algo;
};

enum ew_cuda_conv_pass { EW_CUDA_FORWARD, EW_CUDA_DGRAD, EW_CUDA_WGRAD };

/* An algorithm of cuDNN; conv_find returns the best first. */
struct ew_cuda_algo {
    int algo;
    int deterministic;
    size_t workspace;
    float ms; /* measured; negative: estimated by heuristics */
};

/* ---- Pools ---- */

enum ew_cuda_pool_kind { EW_CUDA_POOL_MAX, EW_CUDA_POOL_MEAN };

struct ew_cuda_pool {
    int type;
    int kind;
    int count_pad; /* mean: padding counts as zeros in the divisor */
    int pad_end_d, pad_end_h, pad_end_w;
    int adaptive;            /* window o of n is [floor(o * in / n), ceil((o + 1) * in / n)) */
    struct ew_cuda_window g; /* k = c */
    const void *x;
    void *y;
    uint8_t *index; /* max: position of the maximum within its window; may be NULL forward */
    const void *dy; /* backward */
    void *dx;
    int add;
};

/* ---- Loss and softmax ---- */

/* Softmax cross-entropy of x [samples, classes], as in op/op_softmax_cross_entropy.c. */
struct ew_cuda_loss {
    int type;
    int label_bytes; /* 4 or 8 */
    int mean;        /* mean over the samples that count, else their sum */
    int64_t samples;
    int classes;
    float smoothing;
    int64_t ignore;
    const void *x, *labels;
    const float *weights; /* [classes], or NULL */
    float *loss;          /* forward */
    void *dx;             /* backward */
    const float *dloss;   /* backward: the gradient of the loss; NULL: 1 */
    int add;
    float *scratch; /* samples + 1 floats */
};

enum ew_cuda_softmax_kind { EW_CUDA_SOFTMAX, EW_CUDA_LOG_SOFTMAX };

struct ew_cuda_softmax {
    int type;
    int kind;
    int64_t rows;
    int cols;
    const void *x; /* backward: y */
    void *y;       /* backward: dx */
    const void *dy;
    int add;
};

/* ---- Small networks in two launches ----
 * A chain of layers small enough for one block to take one image through all of it, forward and
 * backward (net.cu); a second launch computes the weight gradients over all images
 * (net_weights.cu). x and y have the launch's `type` without backward, float32 with it; weights and
 * arithmetic are float32. */

enum ew_cuda_layer_kind {
    EW_CUDA_LAYER_CONV,     /* w [k, kh, kw, c] */
    EW_CUDA_LAYER_DENSE,    /* of h * w * c inputs; w [k, inputs], or [inputs, k] if w_turned */
    EW_CUDA_LAYER_MAX,      /* k = c */
    EW_CUDA_LAYER_MEAN,     /* k = c; no padding */
    EW_CUDA_LAYER_TRANSPOSE /* [h, w, c]: axis i of the result is axis perm[i]; k = h * w * c */
};

#define EW_CUDA_NET_LAYERS 16
#define EW_CUDA_NET_BYTES  (64 * 1024 - 64) /* shared memory limit of a network */
#define EW_CUDA_NET_PARTS  4096             /* floats of it for partial sums of dense layers */
#define EW_CUDA_NET_SPAN   7                /* output pixels per thread in sliding convolutions */

/* Strides of an activation [h, w, c] of one image, in floats. */
struct ew_cuda_layout {
    int start;                /* offset of pixel (0, 0) */
    int row, column, channel; /* strides */
    int left, right;          /* columns of zero padding on either side of a row */
};

/* Reciprocal for division by multiplication: i / d == __umulhi(i, over) for i, d < 2^16; 0 stands
 * for d = 1. */
static inline unsigned ew_cuda_over(int d)
{
    return 0xffffffffu / (unsigned)d + 1;
}

struct ew_cuda_layer {
    int kind;
    struct ew_cuda_act act; /* fused after the layer: none, relu, sigmoid or tanh, whose derivatives
                             * follow from the output */
    int h, w, c, oh, ow, k;
    int kh, kw, sh, sw, ph, pw;
    int w_turned;
    signed char perm[3];
    unsigned over_c, over_w, over_in, over_ow, over_out, over_taps; /* in: h * w, out: oh * ow */
    int slides;    /* conv: stride 1, filters 3 or 5 wide, rows padded with zeros in shared memory
                    * (net_conv.cuh) */
    int slides_dy; /* likewise for dgrad */
    int step, step_dy; /* row pitch of filters in shared memory, in floats: forward, dgrad */
    int tiles;         /* pools: windows partition the input */
    int y_at;          /* offset of its output within an image's `values` and `grads`, in floats */
    int place_at;      /* max pools: offset of the arg-max positions within place_bytes */
    int keeps;         /* its output is written to `values`: backward or the second launch reads
                        * it */
    int add_dw, add_db;
    const float *weights, *bias; /* bias may be NULL */
    float *dw, *db;              /* either may be NULL: not computed */
    struct ew_cuda_layout y, dy; /* output and its gradient in shared memory */
    struct ew_cuda_layout
        kept; /* both in global memory: channels-first unless a dense layer follows */
};

struct ew_cuda_net {
    int type; /* of x and y */
    int n;
    int images;
    int first_back;           /* first layer with weight gradients; n: forward only */
    int value_floats;         /* per image: outputs of all layers */
    int place_bytes;          /* shared memory: arg-max positions */
    int filter_floats;        /* shared memory: the filters of a layer, or partial sums */
    int value_room;           /* shared memory: one of the two activation buffers */
    const void *x;            /* [images, h, w, c], input of the first layer */
    void *y;                  /* the last layer's output; may be NULL */
    float *values, *grads;    /* [images][value_floats]; NULL without backward */
    struct ew_cuda_loss loss; /* of the last output; samples 0: no loss; scratch: one float per
                               * sample */
    float up;                 /* the gradient of the loss */
    struct ew_cuda_layout x_layout; /* of the network's input in shared memory */
    struct ew_cuda_layer layers[EW_CUDA_NET_LAYERS];
};

/* Pixel pitch in floats if neighbouring threads read neighbouring pixels: not a multiple of 4,
 * which reduces shared memory bank conflicts. */
static inline int ew_cuda_pitch(int c)
{
    return c % 4 ? c : c + 1;
}

static inline size_t ew_cuda_net_bytes(const struct ew_cuda_net *p)
{
    return sizeof(float) * (size_t)(p->filter_floats + 2 * p->value_room) + (size_t)p->place_bytes;
}

/* ---- Data movement ---- */

#define EW_CUDA_COPY_DIMS 6

/* y[sum i_d * y_stride_d] = x[sum i_d * x_stride_d] for all i: slice, concat, transpose, channel
 * shuffle.  Strides are in elements. */
struct ew_cuda_copy {
    int bytes; /* per element: 1, 2, 4 or 8 */
    int rank;
    int add_type; /* -1: copy; else accumulate into y in this type (enum ew_cuda_type) */
    int64_t dim[EW_CUDA_COPY_DIMS], x_stride[EW_CUDA_COPY_DIMS], y_stride[EW_CUDA_COPY_DIMS];
    const void *x;
    void *y;
};

/* Resampling of [n, h, w, c], separable, by tables: output row o is the sum over t < taps_h of
 * weight_h[o][t] * input row at_h[o][t]; columns likewise. */
struct ew_cuda_resize {
    int type;
    int n, h, w, c, oh, ow, taps_h, taps_w;
    const int *at_h, *at_w;           /* [oh][taps_h], [ow][taps_w] */
    const float *weight_h, *weight_w; /* likewise */
    const void *x;
    void *y;
};

/* ---- Matrix products ---- */

/* y [m, n] = act(alpha * A B + beta * y + bias), row-major; A [m, k], with trans_a [k, m]; B [k,
 * n], with trans_b [n, k].  Activations that cuBLASLt's epilogue lacks run in a kernel of their
 * own. */
struct ew_cuda_gemm {
    int type, math;
    int out_f32; /* y is float32 whatever `type` is */
    int trans_a, trans_b;
    int64_t m, n, k;
    int64_t batch, stride_a, stride_b, stride_y; /* batch 0 or 1: a single product */
    float alpha, beta;
    struct ew_cuda_act act;
    const void *a, *b, *residual; /* residual: added before the activation; may be NULL */
    const float *bias;            /* [n], or NULL */
    const void *typed_bias;       /* as in ew_cuda_conv */
    void *y;
};

/* ---- Optimiser ---- */

enum ew_cuda_update_kind { EW_CUDA_SGD, EW_CUDA_NESTEROV, EW_CUDA_ADAM, EW_CUDA_ADAMW };

/* One parameter; the tables of parameters are in device memory. */
struct ew_cuda_param {
    float *w, *state[2];
    const float *g;
    void *copy; /* copy of the parameter in `copy_type` (mixed precision); NULL: none */
    int copy_type;
    int64_t n;
};

/* Values that change from step to step; in device memory, since captured graphs read them. */
struct ew_cuda_rates {
    double lr, momentum, weight_decay, beta1, beta2, eps;
    double bias1, bias2; /* 1 - beta^t */
    int scaled;          /* the loss is multiplied by ew_cuda_scale.scale */
    uint64_t key;        /* seeds random numbers */
};

/* Dynamic loss scaling (Micikevicius et al., Mixed Precision Training, 2018), in device memory: the
 * loss is multiplied by `scale`, so that small float16 gradients do not underflow.  If a gradient
 * overflows, the step is skipped and the scale halved; after EW_CUDA_SCALE_STEPS steps without
 * overflow it is doubled. */
struct ew_cuda_scale {
    float scale;
    int good;     /* steps since the scale changed */
    int overflow; /* in this step */
    int skipped;  /* skipped steps in total */
};

#define EW_CUDA_SCALE_FIRST 65536.f
#define EW_CUDA_SCALE_STEPS 2000

#define EW_CUDA_UPDATE_CHUNK 1024 /* elements of a parameter per block */

struct ew_cuda_update {
    int kind;
    int n_chunks;
    const struct ew_cuda_param *params;
    const int *chunk_param, *chunk_index; /* [n_chunks]: index of the parameter, index of the chunk
                                           * within it */
    const struct ew_cuda_rates *rates;
    struct ew_cuda_scale *scale; /* NULL: no loss scaling */
};

/* ---- The device ---- */

struct ew_cuda_device {
    char name[128];
    int major, minor; /* compute capability */
    int processors;   /* streaming multiprocessors */
    int integrated;   /* shares its memory with the host (Jetson) */
    int clock_khz, memory_clock_khz, bus_bits;
    size_t memory, l2_bytes;
    char uuid[40];                    /* without the "GPU-" prefix */
    int driver, runtime, cudnn, blas; /* numbered as by the libraries */
};

enum ew_cuda_copy_kind { EW_CUDA_TO_DEVICE, EW_CUDA_TO_HOST, EW_CUDA_ON_DEVICE };

/* ---- The function table ----
 * X(name, parameters) stands for `int name(parameters)`. */
/* clang-format off */
#define EW_CUDA_MAP(X)                                                                             \
    X(device_count, (int *n))                                                                      \
    X(device_info, (int device, struct ew_cuda_device *out))                                       \
    X(device_use, (int device)) /* for the calling thread */                                       \
    X(device_memory, (size_t *free_bytes, size_t *total))                                          \
    X(alloc, (size_t bytes, void **out))                                                           \
    X(release, (void *p))                                                                          \
    X(alloc_host, (size_t bytes, void **out)) /* pinned */                                         \
    X(release_host, (void *p))                                                                     \
    X(copy, (struct ew_cuda_queue *q, void *to, const void *from, size_t bytes, int kind))         \
    X(fill, (struct ew_cuda_queue *q, void *p, int byte, size_t bytes))                            \
    X(seed, (struct ew_cuda_queue *q, void *p, int wide, float v,                                  \
             const struct ew_cuda_rates *rates, const struct ew_cuda_scale *scale))                \
             /* p = v, times the loss scale if there is one; wide: p is a double */                \
    X(set_rates, (struct ew_cuda_queue *q, struct ew_cuda_rates *p, const struct ew_cuda_rates *v))\
    X(kernel_arch, (int *out)) /* architecture of the compiled kernels (90), or of their PTX if the\
                                  driver compiles that */                                          \
    X(queue_open, (int deterministic, size_t workspace, size_t planned,                            \
                   struct ew_cuda_queue **out))                                                    \
    X(queue_close, (struct ew_cuda_queue *q))                                                      \
    X(queue_wait, (struct ew_cuda_queue *q)) /* until idle; reports errors of launches */          \
    X(event_new, (int timing, void **out))                                                         \
    X(event_free, (void *event))                                                                   \
    X(event_record, (struct ew_cuda_queue *q, void *event))                                        \
    X(event_wait, (void *event))                                                                   \
    X(event_hold, (struct ew_cuda_queue *q, void *event)) /* the queue waits for the event */      \
    X(event_ms, (void *from, void *to, float *out))                                                \
    X(capture_begin, (struct ew_cuda_queue *q))                                                    \
    X(capture_end, (struct ew_cuda_queue *q, void **graph))                                        \
    X(graph_launch, (struct ew_cuda_queue *q, void *graph))                                        \
    X(graph_free, (void *graph))                                                                   \
    X(chain, (struct ew_cuda_queue *q, const struct ew_cuda_chain *p))                             \
    X(epilogue, (struct ew_cuda_queue *q, const struct ew_cuda_epilogue *p))                       \
    X(act_back, (struct ew_cuda_queue *q, const struct ew_cuda_act_back *p))                       \
    X(dropout, (struct ew_cuda_queue *q, const struct ew_cuda_dropout *p))                         \
    X(reduce, (struct ew_cuda_queue *q, const struct ew_cuda_reduce *p))                           \
    X(norm, (struct ew_cuda_queue *q, const struct ew_cuda_norm *p))                               \
    X(norm_back, (struct ew_cuda_queue *q, const struct ew_cuda_norm_back *p))                     \
    X(group_norm, (struct ew_cuda_queue *q, const struct ew_cuda_group_norm *p))                   \
    X(group_norm_back, (struct ew_cuda_queue *q, const struct ew_cuda_group_norm *p))              \
    X(depthwise, (struct ew_cuda_queue *q, const struct ew_cuda_conv *p))                          \
    X(depthwise_dx, (struct ew_cuda_queue *q, const struct ew_cuda_conv_back *p))                  \
    X(depthwise_dw, (struct ew_cuda_queue *q, const struct ew_cuda_conv_back *p))                  \
    X(direct, (struct ew_cuda_queue *q, const struct ew_cuda_conv *p)) /* any convolution, small */\
    X(direct_dx, (struct ew_cuda_queue *q, const struct ew_cuda_conv_back *p))                     \
    X(direct_dw, (struct ew_cuda_queue *q, const struct ew_cuda_conv_back *p))                     \
    X(conv, (struct ew_cuda_queue *q, const struct ew_cuda_conv *p)) /* cuDNN */                   \
    X(conv_back, (struct ew_cuda_queue *q, const struct ew_cuda_conv_back *p))                     \
    X(wide_conv, (struct ew_cuda_queue *q, const struct ew_cuda_conv *p)) /* half types */         \
    X(wide_dw, (struct ew_cuda_queue *q, const struct ew_cuda_conv_back *p))                       \
    X(im2col_conv, (struct ew_cuda_queue *q, const struct ew_cuda_conv *p)) /* float32, 1 group */ \
    X(im2col_dx, (struct ew_cuda_queue *q, const struct ew_cuda_conv_back *p))                     \
    X(im2col_dw, (struct ew_cuda_queue *q, const struct ew_cuda_conv_back *p))                     \
    X(stem, (struct ew_cuda_queue *q, const struct ew_cuda_conv *p)) /* if ew_cuda_is_stem */      \
    X(widen, (struct ew_cuda_queue *q, const void *x, int c, void *y, int64_t rows))               \
              /* [rows, c] of a half type to [rows, EW_CUDA_WIDE], zero-padded */                  \
    X(conv_find, (struct ew_cuda_queue *q, int pass, const struct ew_cuda_conv *p, int measure,    \
                  struct ew_cuda_algo *out, int *n)) /* n: in: capacity, out: count */             \
    X(pool, (struct ew_cuda_queue *q, const struct ew_cuda_pool *p))                               \
    X(pool_back, (struct ew_cuda_queue *q, const struct ew_cuda_pool *p))                          \
    X(pool_3d, (struct ew_cuda_queue *q, const struct ew_cuda_pool *p))                            \
    X(pool_3d_back, (struct ew_cuda_queue *q, const struct ew_cuda_pool *p))                       \
    X(loss, (struct ew_cuda_queue *q, const struct ew_cuda_loss *p))                               \
    X(net, (struct ew_cuda_queue *q, const struct ew_cuda_net *p)) /* forward, backward */         \
    X(net_weights, (struct ew_cuda_queue *q, const struct ew_cuda_net *p)) /* then: wgrad */       \
    X(softmax, (struct ew_cuda_queue *q, const struct ew_cuda_softmax *p))                         \
    X(softmax_back, (struct ew_cuda_queue *q, const struct ew_cuda_softmax *p))                    \
    X(strided_copy, (struct ew_cuda_queue *q, const struct ew_cuda_copy *p))                       \
    X(cast, (struct ew_cuda_queue *q, int from, const void *x, int to, void *y, int64_t n))        \
    X(cast_add, (struct ew_cuda_queue *q, int from, const void *x, float *y, int64_t n))           \
    X(resize, (struct ew_cuda_queue *q, const struct ew_cuda_resize *p))                           \
    X(gemm, (struct ew_cuda_queue *q, const struct ew_cuda_gemm *p))                               \
    X(small_gemm, (struct ew_cuda_queue *q, const struct ew_cuda_gemm *p)) /* gemm tries it */     \
    X(qpack, (struct ew_cuda_queue *q, const struct ew_cuda_qpack *p))                             \
    X(qconv, (struct ew_cuda_queue *q, const struct ew_cuda_qconv *p))                             \
    X(qbinary, (struct ew_cuda_queue *q, const struct ew_cuda_qbinary *p))                         \
    X(qpool, (struct ew_cuda_queue *q, const struct ew_cuda_qpool *p))                             \
    X(quantize, (struct ew_cuda_queue *q, const struct ew_cuda_quantize *p))                       \
    X(fake_quant, (struct ew_cuda_queue *q, const struct ew_cuda_fake_quant *p))                   \
    X(round_weights, (struct ew_cuda_queue *q, const struct ew_cuda_round *p))                     \
    X(restore_weights, (struct ew_cuda_queue *q, float *w, const float *kept,                      \
                        const float *rounded, int64_t n)) /* w = kept + (w - rounded) */           \
    X(lookup, (struct ew_cuda_queue *q, const uint8_t *x, const uint8_t *table, uint8_t *y,        \
               int64_t n))                                                                         \
    X(update, (struct ew_cuda_queue *q, const struct ew_cuda_update *p))
/* clang-format on */

struct ew_cuda_api {
    int version; /* EW_CUDA_MODULE_VERSION */
    const char *(*error_text)(int code);
#define EW_CUDA_FIELD(name, parameters) int(*name) parameters;
    EW_CUDA_MAP(EW_CUDA_FIELD)
#undef EW_CUDA_FIELD
};

/* Number of row parts (split-k) of a reduction over `rows` of [outer, rows, cols]; the partial sums
 * are added in order.  Both sides of the interface use it, to size scratch. */
static inline int ew_cuda_splits(int64_t outer, int64_t rows, int64_t cols)
{
    const int64_t most = (rows + 31) / 32, fill = 1024 / (outer * ((cols + 255) / 256));
    const int64_t n = fill < most ? fill : most;
    return n < 1 ? 1 : n > 256 ? 256 : (int)n;
}

/* Scratch bytes of a reduction of `quantities` sums per column (reduce: 1; norm, norm_back: 2;
 * depthwise_dw: one per tap, over n * oh * ow rows). */
static inline size_t ew_cuda_reduce_scratch(int64_t outer, int64_t rows, int64_t cols,
                                            int quantities)
{
    return (size_t)(outer * cols * quantities) * (size_t)ew_cuda_splits(outer, rows, cols) *
           sizeof(float);
}

/* Bytes of the channels-first copies of x, y and w, at offsets at[0..2] that are multiples of 256;
 * at[3], half types only: w again, for dw in NCHW order before its conversion to float32. */
static inline size_t ew_cuda_planar_bytes(const struct ew_cuda_window *g, int type, size_t at[4])
{
    const size_t x = (size_t)(ew_cuda_in_pixels(g) * g->c);
    const size_t y = (size_t)(ew_cuda_out_pixels(g) * g->k);
    const size_t w = (size_t)(g->k * ew_cuda_taps(g) * (g->c / g->groups));
    const size_t counts[] = {x, y, w, type == EW_CUDA_F32 ? 0 : w};
    const size_t size = type == EW_CUDA_F32 ? sizeof(float) : 2;
    size_t bytes = 0;
    for (int i = 0; i < 4; i++) {
        at[i] = bytes;
        bytes += (counts[i] * size + 255) / 256 * 256;
    }
    return bytes;
}

/* In half types, inputs with fewer channels are zero-padded to EW_CUDA_WIDE, which tensor cores
 * need.  Scratch: padded x; at at[0] padded w (wgrad: dw in the half type); at at[1] dw in float32;
 * at[2]: its size. */
#define EW_CUDA_WIDE 8

static inline size_t ew_cuda_wide_bytes(const struct ew_cuda_window *g, size_t at[3])
{
    const size_t w = (size_t)(g->k * ew_cuda_taps(g)) * EW_CUDA_WIDE;
    at[0] = ((size_t)ew_cuda_in_pixels(g) * EW_CUDA_WIDE * 2 + 255) / 256 * 256;
    at[1] = at[0] + (w * 2 + 255) / 256 * 256;
    at[2] = at[1] + w * sizeof(float);
    return at[2];
}

/* First layers for which stem.cu has a tensor-core kernel in half types. */
static inline int ew_cuda_is_stem(const struct ew_cuda_window *g)
{
    return !g->od && g->groups == 1 && (g->c == 1 || g->c == 3) && g->kh == g->kw && g->kh >= 3 &&
           g->kh <= 7 && g->dh == 1 && g->dw == 1 && g->sh == g->sw && g->sh <= 2 && g->k % 8 == 0;
}

/* im2col of float32 convolutions: row pitch in elements (rows are multiples of 16 bytes); images
 * per launch, so that their rows take at most EW_CUDA_IM2COL_BYTES; bytes of these rows. */
#define EW_CUDA_IM2COL_BYTES ((size_t)32 << 20)

static inline int ew_cuda_im2col_pitch(const struct ew_cuda_window *g)
{
    return (g->kh * g->kw * g->c + 3) / 4 * 4;
}

static inline int ew_cuda_im2col_images(const struct ew_cuda_window *g)
{
    const size_t one =
        (size_t)g->oh * (size_t)g->ow * (size_t)ew_cuda_im2col_pitch(g) * sizeof(float);
    const size_t n = EW_CUDA_IM2COL_BYTES / one;
    return n < 1 ? 1 : n < (size_t)g->n ? (int)n : g->n;
}

static inline size_t ew_cuda_im2col_bytes(const struct ew_cuda_window *g)
{
    const size_t rows = (size_t)ew_cuda_im2col_images(g) * (size_t)g->oh * (size_t)g->ow;
    return (rows * (size_t)ew_cuda_im2col_pitch(g) * sizeof(float) + 255) / 256 * 256;
}

/* Scratch: the rows, then, if the pitch is padded, filters or their float32 gradient in the same
 * pitch. */
static inline size_t ew_cuda_im2col_scratch(const struct ew_cuda_window *g)
{
    const int pitch = ew_cuda_im2col_pitch(g);
    const size_t filters = (size_t)g->k * (size_t)pitch * sizeof(float);
    return ew_cuda_im2col_bytes(g) +
           (pitch == g->kh * g->kw * g->c ? 0 : (filters + 255) / 256 * 256);
}

#ifdef __cplusplus
extern "C" {
#endif
/* The only exported symbol of the module. */
const struct ew_cuda_api *ew_cuda_module(void);

#define EW_CUDA_DECLARE(name, parameters) int ew_cu_##name parameters;
EW_CUDA_MAP(EW_CUDA_DECLARE)
#undef EW_CUDA_DECLARE
const char *ew_cu_error_text(int code);
#ifdef __cplusplus
}
#endif

#endif
