/* SPDX-License-Identifier: Apache-2.0 */
/* The float32 kernels of the CPU, on plain pointers: no graphs, plans or threads.  isa.c picks the
 * instruction set.
 *
 * Work is divided into tiles by the shape alone, never by the number of threads.  `run` computes
 * the tiles [begin, end) with the caller's scratch (`scratch` bytes for each thread, 64-byte
 * aligned).  Ranges may run concurrently and in any order; the result is bitwise the same.
 *
 * Tensors are channels-last and contiguous, unless a shape gives strides (x_step, y_step); filters
 * are [O, k..., I / groups].  Operators have checked all sizes. */
#ifndef EW_BACKEND_CPU_KERNEL_H
#define EW_BACKEND_CPU_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backend/cpu/kernel_int8.h"
#include "backend/cpu/kernel_tensor.h"
#include "op/activation.h"

/* ---- Optimisers ------------------------------------------------------------------------------ */

/* SGD as in PyTorch: g += decay w; m = momentum m + (1 - dampening) g; w -= rate (nesterov ? g +
 * momentum m : m).  Without momentum: w -= rate g. */
struct ew_sgd {
    float rate, momentum, dampening, decay;
    bool nesterov;
    float *w, *m; /* m: NULL without momentum; starts as zero */
    const float *g;
    bool first; /* the first step: m = g */
};

/* Adam; `decoupled` is AdamW.  c1 = 1 - beta1^t, c2 = 1 - beta2^t at step t. */
struct ew_adam {
    float rate, beta1, beta2, eps, decay, c1, c2;
    bool decoupled;
    float *w, *m, *v;
    const float *g;
};

/* One of the two. */
struct ew_update {
    bool is_adam;
    struct ew_sgd sgd;
    struct ew_adam adam;
};

/* ---- Convolution ----------------------------------------------------------------------------- */

/* One spatial axis.  Output o reads inputs o * stride - pad + t * dilation for taps t; inputs
 * outside [0, in) are zero.  The padding at the end follows from `out`.  A negative pad crops. */
struct ew_conv_axis {
    int32_t in, out, taps, stride, dilation, pad;
};

/* [batch, in..., cin] to [batch, out..., cout].  Axes are depth, height, width; an absent axis has
 * in = out = taps = stride = dilation = 1, pad = 0.  In a dense layer all three are absent, and
 * `batch` is its rows. */
struct ew_conv_shape {
    int32_t batch, groups, cin, cout;
    struct ew_conv_axis axis[3];
    bool input_norm; /* only if depthwise_norms or conv_norms: apply ew_conv.norm to x as it is
                      * read */
    /* conv, winograd and sparse only: pixel stride of x, and of y or dy, in floats; 0:
     * contiguous. */
    int32_t x_step, y_step;
    /* winograd only: w is packed untransformed, and each tile transforms the filters that it
     * uses. */
    bool late_transform;
    bool unpacked; /* winograd only, if winograd_unpacked: the same, and w is not packed at all */
};

/* Epilogue of a convolution: y = act(sum + bias + add), or act(sum + bias) + add if add_after. */
struct ew_epilogue {
    const float *bias; /* [cout]; NULL: none */
    const float *add;  /* residual, in y's layout; may alias y unless add_after; NULL: none */
    bool add_after;
    enum ew_act act;
    float lo, hi; /* parameters of the activation */
    /* conv and winograd, without activation: y = 0 where mask <= 0 (ReLU's gradient), in y's
     * layout; NULL: no mask. */
    const float *mask;
};

struct ew_batch_norm;

/* Max pool 2x2 fused behind winograd_5x5_run, with an optional ReLU; the convolution's output is
 * not stored. */
struct ew_winograd_5x5_pool {
    bool relu;
    float *y;        /* [batch, cout, out / 2, out / 2] */
    const float *dy; /* as y */
    uint8_t *argmax; /* [batch, out / 2, out / 2, cout]: index of the maximum in its window, 0 to 3,
                      * or EW_CONV_POOL_NO_GRAD */
};

struct ew_conv {
    struct ew_conv_shape shape;
    const float *x, *w; /* w: packed by the same instruction set's conv_pack */
    float *y;
    /* winograd_5x5 only: the output is pooled and y is not written; the epilogue may have a bias
     * only. */
    const struct ew_winograd_5x5_pool *pool;
    struct ew_epilogue end;
    const struct ew_batch_norm *norm; /* if shape.input_norm; its x, y and rows are ignored */
    bool flip;                        /* if shape.unpacked: as in winograd_pack */
    /* conv and depthwise: statistics of y for the batch norm that reads it, as its `partial` in
     * splits of ew_stats_split.rows pixels (kernel/norm/norm_stats.h).  NULL: not wanted. */
    float *stats;
};

/* Division of ew_conv.stats: pixels of each split but the last, tiles that one call of `run` must
 * cover, and floats of all splits; size 0: a separate pass is faster. */
struct ew_stats_split {
    int64_t rows, tiles;
    size_t size;
};

/* Wgrad, the gradient of the filter: dw (+)= sum over pixels of dy x^T.  Where dw has too few
 * tiles, pixels are split as well (split-K): tiles write their sums to `partial`, and after all of
 * them conv_wgrad_sum reduces these in a fixed order. */
struct ew_conv_wgrad {
    struct ew_conv_shape shape;
    const float *x, *dy;
    float *dw;      /* [O, k..., I / groups], as the filter */
    float *partial; /* conv_wgrad_partial floats */
    bool add;       /* accumulate into dw */
    /* Fused optimiser update: gradients are not written to dw but applied to the filter; conv and
     * winograd only.  NULL: none. */
    const struct ew_update *update;
    /* [O]: gradient of the bias; not by depthwise and grouped.  NULL: not wanted. */
    float *db;
    bool add_db;                      /* accumulate into db */
    const struct ew_batch_norm *norm; /* as in ew_conv */
};

/* Fused dgrad + wgrad of a 1x1 or depthwise convolution (kernel/gemm/k_fused_grads.c). */
struct ew_fused_grads {
    struct ew_conv_wgrad filter; /* dy: NULL with `output_norm`; norm: applied to x as it is read */
    bool no_filter;              /* that gradient is not wanted */
    const float *w;              /* packed by conv_dgrad_pack, or depthwise_dgrad_pack */
    float *dx;                   /* NULL: not wanted */
    bool add_dx;
    bool mask;                               /* dx = 0 where x <= 0 (ReLU's gradient) */
    const struct ew_batch_norm *output_norm; /* computes dy, after its batch_back_finish; NULL:
                                              * none */
    float *norm_sums; /* sums of filter.norm's backward, [tiles][2][cin], as of batch_back_stats;
                       * NULL: not wanted */
};

/* Training of convolutions on small feature maps and of dense layers (kernel/unpacked/tap_pairs.h).
 * Filters change at each step, so they are not packed but read once, as they are. */
struct ew_unpacked_conv {
    struct ew_conv_shape shape;
    const float *x, *w;
    const float *bias; /* [cout]; NULL: none */
    bool relu;         /* after the bias */
    float *y;
    float *transposed; /* tap_pairs_transposed or small_dense_transposed floats */
};

/* Dgrad and wgrad in one pass over the filter. */
struct ew_unpacked_grads {
    struct ew_conv_wgrad filter; /* `partial` is unused; dx is computed from w before the update */
    bool no_filter;              /* that gradient is not wanted */
    bool skip_unmet;             /* with an update: skip taps that meet only padding */
    const float *w;
    float *dx; /* NULL: not wanted */
    bool add_dx;
    bool mask;     /* sparse and scatter_grad: dx = 0 where x <= 0 (ReLU's gradient) */
    float *shared; /* tap_pairs_grad_shared floats */
    const struct ew_winograd_5x5_pool *pool; /* winograd_5x5 only: filter.dy comes from this pool's
                                              * gradient; NULL: none */
};

/* Training of a convolution (2-D, one group, stride and dilation 1) with max pool 2x2 and an
 * optional ReLU.  The convolution's output is not stored, and there is no dgrad.  A tile is an
 * image, backward a few images. */
struct ew_conv_pool {
    struct ew_conv_shape shape; /* of the convolution */
    bool relu;
    const float *x;
    const float *w;  /* packed by conv_pool_pack, with the bias */
    float *y;        /* [batch, out / 2, out / 2, cout] */
    uint8_t *argmax; /* [batch, cout, out / 2, out / 2]: index of the maximum in its window, 0 to 3,
                      * or EW_CONV_POOL_NO_GRAD */
    const float *dy; /* as y */
    const int32_t *offsets; /* filled by conv_pool_offsets */
    float *partial;         /* conv_pool_partial floats */
    float *dw, *db;         /* db: NULL: not wanted */
    bool add_dw, add_db;    /* accumulate into dw, db */
};

#define EW_CONV_POOL_NO_GRAD 4 /* ReLU is zero here: no gradient */

/* ---- Pooling --------------------------------------------------------------------------------- */

/* Pooling: shape.groups = cin = cout.  Padding is never a maximum.  Forward, a tile is a row of
 * outputs; backward of the average, some channels of an image; backward of the maximum, a row of
 * windows or of pixels. */
struct ew_pooling {
    struct ew_conv_shape shape;
    bool max;        /* else average */
    bool count_pads; /* average: divide by the whole window, padding included */
    const float *x;
    float *y;
    uint8_t *index; /* max_pool_*: index of the maximum in its window of at most 256 elements */
    /* max_pool_run: with ReLU, and index EW_POOL_NO_GRAD where it is zero; windows of fewer than
     * 256 elements only. */
    bool relu;
    const float *dy;
    float *dx;
    bool add; /* to what dx holds */
};

#define EW_POOL_NO_GRAD 255

/* ---- Normalisation --------------------------------------------------------------------------- */

/* Batch norm of [rows, channels] in training, with a residual addition and an activation:
 *   y = act((x - mean) * rstd * scale + bias + add)
 * Forward: batch_stats over batch_splits tiles, or statistics from the convolution before it
 * (ew_conv.stats); then batch_finish once, then batch_apply over rows.
 * Backward: batch_back_stats over the same tiles, batch_back_finish once, batch_back_apply over
 * rows. */
struct ew_batch_norm {
    int64_t rows, channels;
    const float *x, *scale, *bias;
    const float *add; /* [rows, channels]; NULL: none */
    enum ew_act act;
    float lo, hi;
    float eps, momentum;               /* running = (1 - momentum) running + momentum batch */
    float *y;                          /* may alias x in inference only */
    float *mean, *rstd;                /* [channels]: written by batch_finish, kept for backward */
    float *running_mean, *running_var; /* NULL: none; running_var is the unbiased variance */
    /* batch_partial floats, or splits from other kernels: forward as in kernel/norm/norm_stats.h,
     * backward [splits][2][channels]. */
    float *partial;
    int64_t splits;     /* backward, splits from other kernels; 0: batch_splits */
    int64_t split_rows; /* forward, the same: rows of each but the last; 0: batch_splits of equal
                         * size */
    const float *dy;
    /* batch_back_apply before squeeze-and-excite: the gradient is dy factor + average_scale
     * average_grad, with factor and average_grad [images][channels] and `image` rows an image;
     * NULL: dy itself. */
    const float *factor, *average_grad;
    float average_scale;
    int64_t image;
    float *dx, *dadd;      /* dadd: gradient of `add`; NULL: not wanted */
    float *dscale, *dbias; /* [channels] */
    float *sums;           /* [2][channels]: written by batch_back_finish */
    bool add_dx, add_dparam;
};

/* Backward of z = y factor with y = act(norm(x)), one factor for each channel of an image, and
 * norm->dy the gradient of z.  Computes the factor's gradient, and for each image the sums from
 * which squeeze_excite_total makes the sums of the norm's backward once average_grad is known. */
struct ew_squeeze_excite_norm {
    const struct ew_batch_norm
        *norm;      /* with `image`; `factor` and `average_grad` only for squeeze_excite_total */
    float *dfactor; /* [images][channels] */
    bool add;       /* accumulate into dfactor */
    float *sums;    /* [4][images][channels] */
};

/* y = x / (k + alpha / size * sum of x^2 over `size` channels around)^beta, [rows, channels]. */
struct ew_lrn {
    int64_t rows, channels;
    int32_t size;
    float alpha, beta, k;
    const float *x;
    float *y;
};

/* ---- Element by element ---------------------------------------------------------------------- */

/* y = act(x), dx (+)= dy * act'(x); elements [begin, end). */
struct ew_act_map {
    enum ew_act act;
    float lo, hi;
    const float *x, *dy;
    bool from_output; /* backward: x is the activation's output; not for hard_swish, silu and
                       * gelu */
    float *y, *dx;
    bool add; /* to what dx holds */
};

/* y = act(a + b) */
struct ew_add_map {
    enum ew_act act;
    float lo, hi;
    const float *a, *b;
    float *y;
};

/* y (+)= a * b */
struct ew_mul_map {
    const float *a, *b;
    float *y;
    bool add; /* to what y holds */
};

/* x [batch, rows, channels], s [batch, 1, channels]: y (+)= x s, or x + s with `sum`.  Backward: ds
 * (+)= sum over rows of dy x, or of dy. */
struct ew_channel_scale {
    int64_t batch, rows, channels;
    const float *x, *s, *dy;
    float *y, *ds;
    bool sum, add;
};

/* out[row * out_step + i] (+)= in[row * in_step + i], i < n */
struct ew_copy_rows {
    int64_t n, in_step, out_step;
    const float *in;
    float *out;
    bool add;
};

/* Channel shuffle: transposes each row, [groups, each] to [each, groups]. */
struct ew_shuffle {
    int64_t groups, each;
    const float *in;
    float *out;
    bool add;
};

/* y = act(x * scale + shift + add), [rows, channels]: batch norm in inference. */
struct ew_scale_shift {
    int64_t channels;
    const float *x, *scale, *shift, *add; /* add: NULL: none */
    enum ew_act act;
    float lo, hi;
    float *y;
};

/* Softmax over [rows, classes]; with `label` also cross-entropy: loss[row] = -log p[label], dx = (p
 * - onehot(label)) grad. */
struct ew_softmax {
    int64_t classes;
    const float *x;
    const int64_t *label; /* in [0, classes) */
    float *p;             /* probabilities; NULL: not wanted */
    float *loss;          /* NULL: not wanted */
    float *dx;            /* NULL: not wanted */
    float grad;
    bool add; /* softmax_back, where x is dy and p the output: accumulate into dx */
};

/* y (+)= x * factor: 0 with probability `ratio`, else 1 / (1 - ratio).  The factor is that of
 * op_dropout.c, multiplied in double as there, so results are bitwise equal (with `add`, up to one
 * rounding). */
struct ew_dropout {
    uint64_t seed;
    double ratio;
    const float *x;
    float *y; /* may alias x unless add */
    bool add; /* to what y holds */
};

/* out[b][j][i] = in[b][i][j] + bias[i].  NCHW to NHWC has rows = C, columns = HW.  A tile is a
 * block of rows of one matrix. */
struct ew_transpose {
    int64_t batch, rows, columns;
    const float *in;
    const float *bias; /* NULL: none */
    float *out;
};

/* out[c] (+)= sum over rows of x[row][c], with row stride `step`: a bias gradient.  With y, in x's
 * layout, x is set to 0 where y <= 0 first: the gradient of a ReLU with output y. */
struct ew_column_sums {
    int64_t rows, channels, step;
    float *x;
    const float *y; /* NULL: no mask */
    float *out;
    bool add;
};

/* ---- The table ------------------------------------------------------------------------------- */

/* clang-format off */
#define EW_KERNEL_MAP(X)                                                                           \
    /* Runs `steps` iterations of FMAs on registers; returns their number of operations. */        \
    X(int64_t, peak,           (int64_t steps, float *sink))                                       \
    /* pack_size: floats of the packed filter; pack_tiles, tiles: tiles of `pack` and of `run`;    \
     * scratch: bytes for one thread. */                                                           \
    X(size_t,  conv_pack_size, (const struct ew_conv_shape *s))                                    \
    X(int64_t, conv_pack_tiles, (const struct ew_conv_shape *s))                                   \
    X(void,    conv_pack,      (const struct ew_conv_shape *s, const float *w, float *packed, int64_t begin, int64_t end)) \
    X(bool,    conv_norms,     (const struct ew_conv_shape *s)) /* supports shape.input_norm */    \
    X(int64_t, conv_tiles,     (const struct ew_conv_shape *s))                                    \
    X(struct ew_stats_split, conv_stats_split, (const struct ew_conv_shape *s)) /* of ew_conv.stats */ \
    X(size_t,  conv_scratch,   (const struct ew_conv_shape *s))                                    \
    X(void,    conv_run,       (const struct ew_conv *c, int64_t begin, int64_t end, void *scratch)) \
    /* Dgrad, the gradient of the input: shape is that of the forward convolution, c->x is dy,     \
     * c->y is dx, w is packed by conv_dgrad_pack; end.add = dx accumulates. */                    \
    X(size_t,  conv_dgrad_pack_size, (const struct ew_conv_shape *s))                              \
    X(int64_t, conv_dgrad_pack_tiles, (const struct ew_conv_shape *s))                             \
    X(void,    conv_dgrad_pack, (const struct ew_conv_shape *s, const float *w, float *packed, int64_t begin, int64_t end)) \
    X(int64_t, conv_dgrad_tiles, (const struct ew_conv_shape *s))                                  \
    X(size_t,  conv_dgrad_scratch, (const struct ew_conv_shape *s))                                \
    X(void,    conv_dgrad_run,  (const struct ew_conv *c, int64_t begin, int64_t end, void *scratch)) \
    /* Wgrad: run over all tiles, then sum over all sum_tiles (0: nothing to reduce). */           \
    X(size_t,  conv_wgrad_partial, (const struct ew_conv_shape *s))                                \
    X(int64_t, conv_wgrad_tiles, (const struct ew_conv_shape *s))                                  \
    X(size_t,  conv_wgrad_scratch, (const struct ew_conv_shape *s))                                \
    X(void,    conv_wgrad_run, (const struct ew_conv_wgrad *f, int64_t begin, int64_t end, void *scratch)) \
    X(int64_t, conv_wgrad_sum_tiles, (const struct ew_conv_shape *s))                              \
    X(void,    conv_wgrad_sum, (const struct ew_conv_wgrad *f, int64_t begin, int64_t end))        \
    /* Fused dgrad + wgrad of 1x1 filters: run, then sum. */                                       \
    X(bool,    fused_grads_fits,     (const struct ew_conv_shape *s))                              \
    X(size_t,  fused_grads_partial,  (const struct ew_conv_shape *s))                              \
    X(int64_t, fused_grads_tiles,    (const struct ew_conv_shape *s))                              \
    X(size_t,  fused_grads_scratch,  (const struct ew_conv_shape *s))                              \
    X(void,    fused_grads_run,      (const struct ew_fused_grads *j, int64_t begin, int64_t end, void *scratch)) \
    X(int64_t, fused_grads_sum_tiles, (const struct ew_conv_shape *s))                             \
    X(void,    fused_grads_sum,      (const struct ew_fused_grads *j, int64_t begin, int64_t end)) \
    /* Winograd: as conv, for filters that winograd_fits takes (no groups; 3 to 5 taps, or with a  \
     * stride 3 to 5 strides).  With `flip`, `s` is the dgrad of a convolution with stride 1 and w \
     * its forward filter, which is rotated by 180 degrees and transposed. */                      \
    X(bool,    winograd_fits,  (const struct ew_conv_shape *s))                                    \
    X(bool,    winograd_pays,  (const struct ew_conv_shape *s, bool train)) /* faster than conv */ \
    /* Estimated cycles on one core; with `train`, including packing at each run. */               \
    X(double,  winograd_cycles, (const struct ew_conv_shape *s, bool train))                       \
    X(double,  conv_cycles,    (const struct ew_conv_shape *s, bool train))                        \
    X(bool,    winograd_unpacked,   (const struct ew_conv_shape *s)) /* faster unpacked in training */ \
    X(size_t,  winograd_pack_size, (const struct ew_conv_shape *s))                                \
    X(int64_t, winograd_pack_tiles, (const struct ew_conv_shape *s))                               \
    X(void,    winograd_pack,  (const struct ew_conv_shape *s, const float *w, bool flip, float *packed, int64_t begin, int64_t end)) \
    X(int64_t, winograd_tiles, (const struct ew_conv_shape *s))                                    \
    X(size_t,  winograd_scratch, (const struct ew_conv_shape *s))                                  \
    X(void,    winograd_run,   (const struct ew_conv *c, int64_t begin, int64_t end, void *scratch)) \
    /* Wgrad by Winograd, only where it is faster: phases in order, each over its tiles.           \
     * `partial` has winograd_wgrad_shared floats. */                                              \
    X(bool,    winograd_wgrad_fits, (const struct ew_conv_shape *s))                               \
    X(double,  winograd_wgrad_cycles, (const struct ew_conv_shape *s)) /* estimated */             \
    X(size_t,  winograd_wgrad_shared, (const struct ew_conv_shape *s))                             \
    X(size_t,  winograd_wgrad_scratch, (const struct ew_conv_shape *s))                            \
    X(int64_t, winograd_wgrad_phases, (const struct ew_conv_shape *s))                             \
    X(int64_t, winograd_wgrad_tiles, (const struct ew_conv_shape *s, int64_t phase))               \
    X(void,    winograd_wgrad_run, (const struct ew_conv_wgrad *f, int64_t phase, int64_t begin, int64_t end, void *scratch)) \
    /* Depthwise: groups = cin = cout. */                                                          \
    X(bool,    depthwise_fits, (const struct ew_conv_shape *s))                                    \
    X(bool,    depthwise_norms, (const struct ew_conv_shape *s)) /* supports shape.input_norm */   \
    X(size_t,  depthwise_pack_size, (const struct ew_conv_shape *s))                               \
    X(void,    depthwise_pack, (const struct ew_conv_shape *s, const float *w, float *packed))     \
    X(int64_t, depthwise_tiles, (const struct ew_conv_shape *s))                                   \
    X(struct ew_stats_split, depthwise_stats_split, (const struct ew_conv_shape *s))               \
    X(size_t,  depthwise_scratch, (const struct ew_conv_shape *s))                                 \
    X(void,    depthwise_run,  (const struct ew_conv *c, int64_t begin, int64_t end, void *scratch)) \
    /* Dgrad and wgrad, as of conv. */                                                             \
    X(void,    depthwise_dgrad_pack, (const struct ew_conv_shape *s, const float *w, float *packed)) \
    X(int64_t, depthwise_dgrad_tiles, (const struct ew_conv_shape *s))                             \
    X(size_t,  depthwise_dgrad_scratch, (const struct ew_conv_shape *s))                           \
    X(void,    depthwise_dgrad_run, (const struct ew_conv *c, int64_t begin, int64_t end, void *scratch)) \
    X(size_t,  depthwise_wgrad_partial, (const struct ew_conv_shape *s))                           \
    X(int64_t, depthwise_wgrad_tiles, (const struct ew_conv_shape *s))                             \
    X(size_t,  depthwise_wgrad_scratch, (const struct ew_conv_shape *s))                           \
    X(void,    depthwise_wgrad_run, (const struct ew_conv_wgrad *f, int64_t begin, int64_t end, void *scratch)) \
    X(int64_t, depthwise_wgrad_sum_tiles, (const struct ew_conv_shape *s))                         \
    X(void,    depthwise_wgrad_sum, (const struct ew_conv_wgrad *f, int64_t begin, int64_t end))   \
    /* Fused dgrad + wgrad; tiles, partial and sum are those of depthwise_wgrad. */                \
    X(bool,    depthwise_fused_grads_fits, (const struct ew_conv_shape *s))                        \
    X(size_t,  depthwise_fused_grads_scratch, (const struct ew_conv_shape *s))                     \
    X(void,    depthwise_fused_grads_run, (const struct ew_fused_grads *j, int64_t begin, int64_t end, void *scratch)) \
    /* Grouped convolution with few channels a group, as conv. */                                  \
    X(bool,    grouped_fits,   (const struct ew_conv_shape *s))                                    \
    X(size_t,  grouped_pack_size, (const struct ew_conv_shape *s))                                 \
    X(void,    grouped_pack,   (const struct ew_conv_shape *s, const float *w, float *packed))     \
    X(int64_t, grouped_tiles,  (const struct ew_conv_shape *s))                                    \
    X(size_t,  grouped_scratch, (const struct ew_conv_shape *s))                                   \
    X(void,    grouped_run,    (const struct ew_conv *c, int64_t begin, int64_t end, void *scratch)) \
    X(bool,    grouped_dgrad_fits, (const struct ew_conv_shape *s)) /* stride 1 */                 \
    X(size_t,  grouped_dgrad_pack_size, (const struct ew_conv_shape *s))                           \
    X(void,    grouped_dgrad_pack, (const struct ew_conv_shape *s, const float *w, float *packed)) \
    X(int64_t, grouped_dgrad_tiles, (const struct ew_conv_shape *s))                               \
    X(size_t,  grouped_dgrad_scratch, (const struct ew_conv_shape *s))                             \
    X(void,    grouped_dgrad_run, (const struct ew_conv *c, int64_t begin, int64_t end, void *scratch)) \
    X(size_t,  grouped_wgrad_partial, (const struct ew_conv_shape *s))                             \
    X(int64_t, grouped_wgrad_tiles, (const struct ew_conv_shape *s))                               \
    X(size_t,  grouped_wgrad_scratch, (const struct ew_conv_shape *s))                             \
    X(void,    grouped_wgrad_run, (const struct ew_conv_wgrad *f, int64_t begin, int64_t end, void *scratch)) \
    X(int64_t, grouped_wgrad_sum_tiles, (const struct ew_conv_shape *s))                           \
    X(void,    grouped_wgrad_sum, (const struct ew_conv_wgrad *f, int64_t begin, int64_t end))     \
    /* Wgrad with the batch in the lanes, for filters with more weights than batch_lanes_wgrad     \
     * takes: x and dy are transposed as a whole in `run`, and multiplied in `sum`. */             \
    X(bool,    batch_lanes_large_wgrad_fits, (const struct ew_conv_shape *s))                      \
    X(size_t,  batch_lanes_large_wgrad_partial, (const struct ew_conv_shape *s))                   \
    X(int64_t, batch_lanes_large_wgrad_tiles, (const struct ew_conv_shape *s))                     \
    X(size_t,  batch_lanes_large_wgrad_scratch, (const struct ew_conv_shape *s))                   \
    X(void,    batch_lanes_large_wgrad_run, (const struct ew_conv_wgrad *f, int64_t begin, int64_t end, void *scratch)) \
    X(int64_t, batch_lanes_large_wgrad_sum_tiles, (const struct ew_conv_shape *s))                 \
    X(void,    batch_lanes_large_wgrad_sum, (const struct ew_conv_wgrad *f, int64_t begin, int64_t end)) \
    /* Direct convolution with the batch in the lanes, as conv: fewer output channels than lanes,  \
     * at least LANES images.  batch_lanes_dgrad_pack packs the filter for dgrad by                \
     * batch_lanes_run, as winograd_pack with `flip`. */                                           \
    X(bool,    batch_lanes_fits,       (const struct ew_conv_shape *s))                            \
    X(bool,    batch_lanes_dgrad_fits,  (const struct ew_conv_shape *s))                           \
    X(bool,    batch_lanes_wgrad_fits, (const struct ew_conv_shape *s))                            \
    X(size_t,  batch_lanes_pack_size,  (const struct ew_conv_shape *s))                            \
    X(void,    batch_lanes_pack,       (const struct ew_conv_shape *s, const float *w, float *packed)) \
    X(void,    batch_lanes_dgrad_pack,  (const struct ew_conv_shape *s, const float *w, float *packed)) \
    X(int64_t, batch_lanes_tiles,      (const struct ew_conv_shape *s))                            \
    X(size_t,  batch_lanes_scratch,    (const struct ew_conv_shape *s))                            \
    X(void,    batch_lanes_run,        (const struct ew_conv *c, int64_t begin, int64_t end, void *scratch)) \
    /* Direct convolution with neighbouring pixels in the lanes, as conv: few input channels,      \
     * stride 1. */                                                                                \
    X(bool,    pixel_lanes_fits,       (const struct ew_conv_shape *s))                            \
    X(size_t,  pixel_lanes_pack_size,  (const struct ew_conv_shape *s))                            \
    X(void,    pixel_lanes_pack,       (const struct ew_conv_shape *s, const float *w, float *packed)) \
    X(int64_t, pixel_lanes_tiles,      (const struct ew_conv_shape *s))                            \
    X(size_t,  pixel_lanes_scratch,    (const struct ew_conv_shape *s))                            \
    X(void,    pixel_lanes_run,        (const struct ew_conv *c, int64_t begin, int64_t end, void *scratch)) \
    /* With input channels in the lanes, as conv: few output channels. */                          \
    X(bool,    input_lanes_fits,       (const struct ew_conv_shape *s))                            \
    X(size_t,  input_lanes_pack_size,  (const struct ew_conv_shape *s))                            \
    X(void,    input_lanes_pack,       (const struct ew_conv_shape *s, const float *w, float *packed)) \
    X(int64_t, input_lanes_tiles,      (const struct ew_conv_shape *s))                            \
    X(size_t,  input_lanes_scratch,    (const struct ew_conv_shape *s))                            \
    X(void,    input_lanes_run,        (const struct ew_conv *c, int64_t begin, int64_t end, void *scratch)) \
    X(size_t,  batch_lanes_wgrad_partial, (const struct ew_conv_shape *s))                         \
    X(int64_t, batch_lanes_wgrad_tiles, (const struct ew_conv_shape *s))                           \
    X(size_t,  batch_lanes_wgrad_scratch, (const struct ew_conv_shape *s))                         \
    X(void,    batch_lanes_wgrad_run, (const struct ew_conv_wgrad *f, int64_t begin, int64_t end, void *scratch)) \
    X(int64_t, batch_lanes_wgrad_sum_tiles, (const struct ew_conv_shape *s))                       \
    X(void,    batch_lanes_wgrad_sum, (const struct ew_conv_wgrad *f, int64_t begin, int64_t end)) \
    /* Training on small feature maps.  Forward: transpose, run.  Backward: transpose, run,        \
     * sum. */                                                                                     \
    X(bool,    tap_pairs_fits,     (const struct ew_conv_shape *s))                                \
    X(bool,    tap_pairs_pays,     (const struct ew_conv_shape *s)) /* faster than conv and winograd */ \
    X(uint32_t, tap_pairs_met,     (const struct ew_conv_shape *s)) /* bit t: tap t meets a pixel, not only padding */ \
    X(size_t,  tap_pairs_transposed,   (const struct ew_conv_shape *s))                            \
    X(int64_t, tap_pairs_transpose_tiles, (const struct ew_conv_shape *s))                         \
    X(void,    tap_pairs_transpose,     (const struct ew_unpacked_conv *p, int64_t begin, int64_t end)) \
    X(int64_t, tap_pairs_tiles,    (const struct ew_conv_shape *s))                                \
    X(size_t,  tap_pairs_scratch,  (const struct ew_conv_shape *s))                                \
    X(void,    tap_pairs_run,      (const struct ew_unpacked_conv *p, int64_t begin, int64_t end, void *scratch)) \
    X(bool,    small_dense_pays,     (const struct ew_conv_shape *s)) /* faster than tap_pairs, forward and backward */ \
    X(int64_t, small_dense_tiles,    (const struct ew_conv_shape *s))                              \
    X(size_t,  small_dense_transposed,   (const struct ew_conv_shape *s))                          \
    X(void,    small_dense_run,      (const struct ew_unpacked_conv *p, int64_t begin, int64_t end)) \
    X(void,    small_dense_sum,      (const struct ew_unpacked_conv *p))                           \
    X(int64_t, small_dense_grad_tiles, (const struct ew_conv_shape *s))                            \
    X(size_t,  small_dense_grad_shared, (const struct ew_conv_shape *s))                           \
    X(void,    small_dense_grad_run, (const struct ew_unpacked_grads *p, int64_t begin, int64_t end)) \
    X(void,    small_dense_grad_sum, (const struct ew_unpacked_grads *p))                          \
    X(size_t,  tap_pairs_grad_shared, (const struct ew_conv_shape *s))                             \
    X(int64_t, tap_pairs_grad_transpose_tiles, (const struct ew_conv_shape *s))                    \
    X(void,    tap_pairs_grad_transpose, (const struct ew_unpacked_grads *p, int64_t begin, int64_t end)) \
    X(int64_t, tap_pairs_grad_tiles, (const struct ew_conv_shape *s))                              \
    X(size_t,  tap_pairs_grad_scratch, (const struct ew_conv_shape *s))                            \
    X(void,    tap_pairs_grad_run, (const struct ew_unpacked_grads *p, int64_t begin, int64_t end, void *scratch)) \
    X(int64_t, tap_pairs_grad_sum_tiles, (const struct ew_conv_shape *s))                          \
    X(void,    tap_pairs_grad_sum, (const struct ew_unpacked_grads *p, int64_t begin, int64_t end)) \
    /* Training of dense layers and 1x1 filters on sparse activations: zeros of x, or backward of  \
     * dy, are skipped (kernel/sparse/sparse.h).  sparse_share: the fraction of non-zeros in [rows, \
     * n] with row stride `step`.  Backward: sparse_grad_run, then sparse_wgrad_run, which has 0   \
     * tiles where the former has computed both gradients; by_x: wgrad skips the zeros of x, and   \
     * the former ran with no_filter.  `transposed` and `shared` are unused. */                    \
    X(bool,    sparse_fits,    (const struct ew_conv_shape *s))                                    \
    X(double,  sparse_share,   (const float *a, int64_t rows, int64_t n, int64_t step))            \
    X(int64_t, sparse_tiles,   (const struct ew_conv_shape *s))                                    \
    X(size_t,  sparse_scratch, (const struct ew_conv_shape *s))                                    \
    X(void,    sparse_run,     (const struct ew_unpacked_conv *p, int64_t begin, int64_t end, void *scratch)) \
    X(int64_t, sparse_grad_tiles, (const struct ew_conv_shape *s))                                 \
    X(size_t,  sparse_grad_scratch, (const struct ew_conv_shape *s))                               \
    X(void,    sparse_grad_run, (const struct ew_unpacked_grads *g, int64_t begin, int64_t end, void *scratch)) \
    X(int64_t, sparse_wgrad_tiles, (const struct ew_conv_shape *s, bool by_x))                     \
    X(size_t,  sparse_wgrad_scratch, (const struct ew_conv_shape *s))                              \
    X(void,    sparse_wgrad_run, (const struct ew_unpacked_grads *g, bool by_x, int64_t begin, int64_t end, void *scratch)) \
    /* Scatter gradient, for any filter and very sparse dy (kernel/sparse/k_scatter_grad.c): run   \
     * over tiles, then sum over output channels, including the bias gradient.  `data`: dx is      \
     * wanted. */                                                                                  \
    X(bool,    scatter_grad_fits,      (const struct ew_conv_shape *s, bool data))                 \
    X(int64_t, scatter_grad_tiles,     (const struct ew_conv_shape *s))                            \
    X(size_t,  scatter_grad_shared,    (const struct ew_conv_shape *s))                            \
    X(size_t,  scatter_grad_scratch,   (const struct ew_conv_shape *s))                            \
    X(void,    scatter_grad_run,       (const struct ew_unpacked_grads *g, int64_t begin, int64_t end, void *scratch)) \
    X(void,    scatter_grad_sum,       (const struct ew_unpacked_grads *g, int64_t begin, int64_t end)) \
    /* Winograd F(5x5, 5x5) of few channels, stride 1, as conv.  pays: faster than the others in   \
     * training.  Backward, both gradients: grad_pack into each thread's scratch, run over tiles,  \
     * sum. */                                                                                     \
    X(bool,    winograd_5x5_fits,     (const struct ew_conv_shape *s))                             \
    X(bool,    winograd_5x5_pays,     (const struct ew_conv_shape *s))                             \
    X(size_t,  winograd_5x5_pack_size, (const struct ew_conv_shape *s))                            \
    X(void,    winograd_5x5_pack,     (const struct ew_conv_shape *s, const float *w, float *packed)) \
    X(int64_t, winograd_5x5_tiles,    (const struct ew_conv_shape *s))                             \
    X(size_t,  winograd_5x5_scratch,  (const struct ew_conv_shape *s))                             \
    X(void,    winograd_5x5_run,      (const struct ew_conv *c, int64_t begin, int64_t end, void *scratch)) \
    X(size_t,  winograd_5x5_grad_shared, (const struct ew_conv_shape *s))                          \
    X(void,    winograd_5x5_grad_pack, (const struct ew_unpacked_grads *g, void *scratch)) /* for dx */ \
    X(int64_t, winograd_5x5_grad_tiles, (const struct ew_conv_shape *s))                           \
    X(size_t,  winograd_5x5_grad_scratch, (const struct ew_conv_shape *s))                         \
    X(void,    winograd_5x5_grad_run, (const struct ew_unpacked_grads *g, int64_t begin, int64_t end, void *scratch)) \
    X(void,    winograd_5x5_grad_sum, (const struct ew_unpacked_grads *g)) /* for dw and db */     \
    /* Convolution, max pool 2x2 and ReLU.  Backward: run, then sum. */                            \
    X(bool,    conv_pool_fits, (const struct ew_conv_shape *s))                                    \
    X(size_t,  conv_pool_pack_size, (const struct ew_conv_shape *s))                               \
    X(void,    conv_pool_pack, (const struct ew_conv_shape *s, const float *w, const float *bias, float *packed)) \
    X(size_t,  conv_pool_scratch, (const struct ew_conv_shape *s))                                 \
    X(void,    conv_pool_run,  (const struct ew_conv_pool *p, int64_t begin, int64_t end, void *scratch)) \
    X(size_t,  conv_pool_offsets_size, (const struct ew_conv_shape *s))                            \
    X(void,    conv_pool_offsets, (const struct ew_conv_shape *s, int32_t *offsets))               \
    X(size_t,  conv_pool_partial, (const struct ew_conv_shape *s))                                 \
    X(size_t,  conv_pool_grad_scratch, (const struct ew_conv_shape *s))                            \
    X(int64_t, conv_pool_grad_tiles, (const struct ew_conv_shape *s))                              \
    X(void,    conv_pool_grad_run, (const struct ew_conv_pool *p, int64_t begin, int64_t end, void *scratch)) \
    X(int64_t, conv_pool_sum_tiles, (const struct ew_conv_shape *s))                               \
    X(void,    conv_pool_sum,  (const struct ew_conv_pool *p, int64_t begin, int64_t end))         \
    /* Pooling.  max_pool_run also writes the index, over pool_tiles; pool_back_run is for the     \
     * average. */                                                                                 \
    X(int64_t, pool_tiles,     (const struct ew_conv_shape *s))                                    \
    X(void,    pool_run,       (const struct ew_pooling *p, int64_t begin, int64_t end))           \
    X(void,    max_pool_run,   (const struct ew_pooling *p, int64_t begin, int64_t end))           \
    X(int64_t, max_pool_back_tiles, (const struct ew_conv_shape *s))                               \
    X(void,    max_pool_back_run, (const struct ew_pooling *p, int64_t begin, int64_t end))        \
    X(int64_t, pool_back_tiles, (const struct ew_conv_shape *s))                                   \
    X(void,    pool_back_run,  (const struct ew_pooling *p, int64_t begin, int64_t end))           \
    /* Normalisation; ranges of batch_apply, batch_back_apply and lrn_run are rows. */             \
    X(int64_t, batch_splits,   (int64_t rows))                                                     \
    X(size_t,  batch_partial,  (int64_t rows, int64_t channels))                                   \
    X(void,    batch_stats,    (const struct ew_batch_norm *b, int64_t begin, int64_t end))        \
    X(void,    batch_finish,   (const struct ew_batch_norm *b))                                    \
    X(void,    batch_apply,    (const struct ew_batch_norm *b, int64_t begin, int64_t end))        \
    X(void,    batch_back_stats, (const struct ew_batch_norm *b, int64_t begin, int64_t end))      \
    X(void,    batch_back_total, (const struct ew_batch_norm *b, float *to)) /* [2][channels]: all splits added */ \
    X(int64_t, squeeze_excite_tiles,    (const struct ew_squeeze_excite_norm *g))                  \
    X(void,    squeeze_excite_run,      (const struct ew_squeeze_excite_norm *g, int64_t begin, int64_t end)) \
    X(void,    squeeze_excite_total,    (const struct ew_squeeze_excite_norm *g, float *to)) /* as batch_back_total */ \
    X(void,    batch_back_finish, (const struct ew_batch_norm *b))                                 \
    X(void,    batch_back_apply, (const struct ew_batch_norm *b, int64_t begin, int64_t end))      \
    X(size_t,  lrn_scratch,    (const struct ew_lrn *l))                                           \
    X(void,    lrn_run,        (const struct ew_lrn *l, int64_t begin, int64_t end, void *scratch)) \
    /* Element-wise: [begin, end) are elements, or rows if the struct has channels. */             \
    X(void,    act_run,        (const struct ew_act_map *a, int64_t begin, int64_t end))           \
    X(void,    act_back,       (const struct ew_act_map *a, int64_t begin, int64_t end))           \
    X(void,    add_run,        (const struct ew_add_map *a, int64_t begin, int64_t end))           \
    X(void,    mul_run,        (const struct ew_mul_map *m, int64_t begin, int64_t end))           \
    X(void,    channel_scale_run,       (const struct ew_channel_scale *g, int64_t begin, int64_t end)) \
    X(int64_t, channel_scale_sum_tiles, (const struct ew_channel_scale *g))                        \
    X(void,    channel_scale_sum,       (const struct ew_channel_scale *g, int64_t begin, int64_t end)) \
    X(void,    copy_rows,      (const struct ew_copy_rows *c, int64_t begin, int64_t end))         \
    X(void,    shuffle_run,    (const struct ew_shuffle *s, int64_t begin, int64_t end))           \
    X(void,    scale_shift,    (const struct ew_scale_shift *s, int64_t begin, int64_t end))       \
    X(void,    dropout_run,    (const struct ew_dropout *d, int64_t begin, int64_t end))           \
    X(void,    exp_run,        (const float *x, float *y, int64_t begin, int64_t end))             \
    X(void,    softmax_run,    (const struct ew_softmax *s, int64_t begin, int64_t end))           \
    X(void,    sgd_run,        (const struct ew_sgd *s, int64_t begin, int64_t end))               \
    X(void,    adam_run,       (const struct ew_adam *a, int64_t begin, int64_t end))              \
    X(int64_t, transpose_tiles, (const struct ew_transpose *t))                                    \
    X(void,    transpose_run,  (const struct ew_transpose *t, int64_t begin, int64_t end))         \
    /* Sums of the channels [begin, end).  The order of addition does not depend on the range,     \
     * except for fewer channels than lanes, which must be one range. */                           \
    X(void,    column_sums,    (const struct ew_column_sums *c, int64_t begin, int64_t end))
/* clang-format on */

struct ew_kernels {
    const char *isa; /* "avx512" */
    int lanes;       /* floats in a vector */
#define EW_KERNEL_FIELD(ret, name, args) ret(*name) args;
    EW_KERNEL_MAP(EW_KERNEL_FIELD)
    EW_TENSOR_KERNEL_MAP(EW_KERNEL_FIELD)
    EW_INT8_KERNEL_MAP(EW_KERNEL_FIELD)
#undef EW_KERNEL_FIELD
};

#endif
