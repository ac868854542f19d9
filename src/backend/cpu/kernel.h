/* SPDX-License-Identifier: Apache-2.0 */
/* The float32 kernels of the CPU: what they compute, on plain pointers.  Which instruction set runs
 * is decided in isa.c; graphs, plans and threads are left to others.
 *
 * A kernel is cut into tiles by its shape alone, never by the number of threads.  `run` does the
 * tiles [begin, end) in the caller's scratch (one per thread, `scratch` bytes, 64-byte aligned);
 * ranges may run at the same time and in any order, and the result is the same bits.
 *
 * Tensors are channels-last and contiguous but for what the steps of a shape say, filters [O, k...,
 * I / groups].  Sizes are checked by the operators; kernels trust them. */
#ifndef EW_BACKEND_CPU_KERNEL_H
#define EW_BACKEND_CPU_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backend/cpu/kernel_int8.h"
#include "backend/cpu/kernel_tensor.h"
#include "op/activation.h"

/* ---- Optimisers ------------------------------------------------------------------------------ */

/* SGD as PyTorch writes it: g += decay w; m = momentum m + (1 - dampening) g; w -= rate (nesterov ?
 * g + momentum m : m), and without momentum w -= rate g. */
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

/* Either of them. */
struct ew_update {
    bool is_adam;
    struct ew_sgd sgd;
    struct ew_adam adam;
};

/* ---- Convolution ----------------------------------------------------------------------------- */

/* One spatial axis.  Output o reads inputs o * stride - pad + t * dilation for taps t; those
 * outside [0, in) are zero.  The pad behind the input is implied by `out`.  A negative pad crops.
 */
struct ew_conv_axis {
    int32_t in, out, taps, stride, dilation, pad;
};

/* [batch, in..., cin] to [batch, out..., cout]; axes are depth, height, width, and an axis that a
 * convolution lacks has in = out = taps = stride = dilation = 1, pad = 0.  A dense layer has three
 * of those and its rows as `batch`. */
struct ew_conv_shape {
    int32_t batch, groups, cin, cout;
    struct ew_conv_axis axis[3];
    bool input_norm; /* depthwise_norms and conv_norms only: the input is what a batch norm makes of
                        x */
    /* conv, winograd and sparse only: floats between pixels of x, and of y or dy; 0: as many as
     * channels.
     */
    int32_t x_step, y_step;
    /* winograd only: w is packed as it is, and each work tile transforms what it multiplies */
    bool late_transform;
    bool unpacked; /* winograd only, where winograd_unpacked says so: the same of a w not packed */
};

/* What is done to a convolution's sums before they are stored:
 * y = act(sum + bias + add), or act(sum + bias) + add where add_after is set. */
struct ew_epilogue {
    const float *bias; /* [cout]; NULL: none */
    const float *add;  /* laid out as y; may be y itself unless add_after; NULL: none */
    bool add_after;
    enum ew_act act;
    float lo, hi; /* the activation's two parameters */
    /* conv and winograd, without an activation: y becomes 0 where that, laid out as y, is not
     * positive; NULL: nowhere. */
    const float *mask;
};

struct ew_batch_norm;

/* A max pool of 2x2 behind a convolution of winograd_5x5_run, and perhaps a ReLU; what is pooled is
 * stored nowhere. */
struct ew_winograd_5x5_pool {
    bool relu;
    float *y;        /* [batch, cout, out / 2, out / 2] */
    const float *dy; /* as y */
    uint8_t
        *argmax; /* [batch, out / 2, out / 2, cout]: EW_CONV_POOL_NO_GRAD, or which of the four */
};

struct ew_conv {
    struct ew_conv_shape shape;
    const float *x, *w; /* w: packed by the same instruction set's conv_pack */
    float *y;
    /* winograd_5x5 only, with a bias and nothing else behind the sums: takes them instead of y. */
    const struct ew_winograd_5x5_pool *pool;
    struct ew_epilogue end;
    const struct ew_batch_norm *norm; /* where shape.input_norm; its x, y and rows do not count */
    bool flip;                        /* where shape.unpacked: as with winograd_pack */
    /* conv and depthwise: the statistics of what is written, for a batch norm that reads it: its
     * `partial`, in splits of ew_stats_split.rows.  NULL: not wanted. */
    float *stats;
};

/* How that is cut: pixels of a split but for the last, tiles that go to `run` together, and floats
 * of all splits; 0: it does not pay. */
struct ew_stats_split {
    int64_t rows, tiles;
    size_t size;
};

/* Gradient for the filter: dw (+)= sum over pixels of dy x.  Where all of it takes a few tiles
 * only, pixels are split too: each tile then leaves its sums in `partial`, and conv_wgrad_sum adds
 * them up in order when all tiles are done. */
struct ew_conv_wgrad {
    struct ew_conv_shape shape;
    const float *x, *dy;
    float *dw;      /* [O, k..., I / groups], as the filter */
    float *partial; /* conv_wgrad_partial floats */
    bool add;       /* to what dw holds */
    /* Instead of being written to dw, gradients go into the filter; conv and winograd only.  NULL:
     * they do not.
     */
    const struct ew_update *update;
    /* [O]: the gradient of the bias, made too but by depthwise and grouped; NULL: not wanted. */
    float *db;
    bool add_db;                      /* to what db holds */
    const struct ew_batch_norm *norm; /* as ew_conv's, of x */
};

/* Both gradients of a 1x1 or depthwise convolution in one pass (see kernel/gemm/k_fused_grads.c).
 */
struct ew_fused_grads {
    struct ew_conv_wgrad filter; /* dy: NULL with `output_norm`; norm: makes x of its own */
    bool no_filter;              /* that gradient is not wanted */
    const float *w;              /* packed by conv_dgrad_pack, or depthwise_dgrad_pack */
    float *dx;                   /* NULL: not wanted */
    bool add_dx;
    bool mask;                               /* dx becomes 0 where x is not positive */
    const struct ew_batch_norm *output_norm; /* makes dy, after its batch_back_finish; NULL: none */
    float *norm_sums; /* as many splits as tiles of batch_back_stats for filter.norm; NULL: not
                         wanted */
};

/* Convolutions on small feature maps and dense layers, in training (see
 * kernel/unpacked/tap_pairs.h). Filters change at each step and are read where they lie, once. */
struct ew_unpacked_conv {
    struct ew_conv_shape shape;
    const float *x, *w;
    const float *bias; /* [cout]; NULL: none */
    bool relu;         /* behind the bias */
    float *y;
    float *transposed; /* tap_pairs_transposed or small_dense_transposed floats */
};

/* Both gradients, in one pass over the filter. */
struct ew_unpacked_grads {
    struct ew_conv_wgrad filter; /* `partial` is not used; dx is made of w before it is updated */
    bool no_filter;              /* that gradient is not wanted */
    bool skip_unmet;             /* with an update: leave taps that meet no pixel as they are */
    const float *w;
    float *dx; /* NULL: not wanted */
    bool add_dx;
    bool mask;     /* sparse and scatter_grad: dx becomes 0 where x is not positive */
    float *shared; /* tap_pairs_grad_shared floats */
    const struct ew_winograd_5x5_pool *pool; /* winograd_5x5 only: makes filter.dy; NULL: none */
};

/* A convolution (two axes, one group, stride and dilation 1) with a max pool of 2x2 behind it and
 * perhaps a ReLU, in training.  What is pooled is never stored, and there is no gradient for x.
 * Tiles are images, backward those of a few. */
struct ew_conv_pool {
    struct ew_conv_shape shape; /* of the convolution */
    bool relu;
    const float *x;
    const float *w; /* packed by conv_pool_pack, with the bias */
    float *y;       /* [batch, out / 2, out / 2, cout] */
    uint8_t
        *argmax; /* [batch, cout, out / 2, out / 2]: EW_CONV_POOL_NO_GRAD, or which of the four */
    const float *dy;        /* as y */
    const int32_t *offsets; /* by conv_pool_offsets */
    float *partial;         /* conv_pool_partial floats */
    float *dw, *db;         /* db: NULL: not wanted */
    bool add_dw, add_db;    /* to what they hold */
};

#define EW_CONV_POOL_NO_GRAD 4 /* the ReLU lets no gradient through */

/* ---- Pooling --------------------------------------------------------------------------------- */

/* Windows of the input, channel by channel: shape.groups = cin = cout, and only the axes count.
 * Padding is never a maximum.  A tile of the forward passes is a row of outputs; one of the
 * average's gradient an image and some channels, of the maximum's a row of windows or pixels. */
struct ew_pooling {
    struct ew_conv_shape shape;
    bool max;        /* else the average */
    bool count_pads; /* the average's divisor is the whole window, not its part in the input */
    const float *x;
    float *y;
    uint8_t *index; /* max_pool_*: the maximum's index in its window, of at most 256 elements */
    /* max_pool_run: a ReLU is behind it, and the index of what that cuts off is EW_POOL_NO_GRAD; of
     * windows with fewer than 256 elements. */
    bool relu;
    const float *dy;
    float *dx;
    bool add; /* to what dx holds */
};

#define EW_POOL_NO_GRAD 255

/* ---- Normalisation --------------------------------------------------------------------------- */

/* Batch norm of [rows, channels] in training, with an addition and an activation behind it:
 *   y = act((x - mean) * rstd * scale + bias + add)
 * Forward: batch_stats over batch_splits tiles, or a convolution before it as it writes x; then
 * batch_finish once, batch_apply over rows.
 * Backward: batch_back_stats over the tiles, batch_back_finish once, batch_back_apply over rows. */
struct ew_batch_norm {
    int64_t rows, channels;
    const float *x, *scale, *bias;
    const float *add; /* [rows, channels]; NULL: none */
    enum ew_act act;
    float lo, hi;
    float eps, momentum;               /* running = (1 - momentum) running + momentum batch */
    float *y;                          /* may be x in inference only */
    float *mean, *rstd;                /* [channels]: made by finish, kept for backward */
    float *running_mean, *running_var; /* NULL: not kept; the variance is the unbiased one */
    /* batch_partial floats, or splits that others have made: forward as kernel/norm/norm_stats.h
     * says, backward [2][channels]. */
    float *partial;
    int64_t splits;     /* of others, backward; 0: batch_splits */
    int64_t split_rows; /* and forward: rows of each but the last; 0: batch_splits of equal size */
    const float *dy;
    /* batch_back_apply in front of squeeze-and-excite: the gradient is dy factor + average_scale
     * average_grad, both [image][channels], of `image` rows each; NULL: dy itself. */
    const float *factor, *average_grad;
    float average_scale;
    int64_t image;
    float *dx, *dadd;      /* dadd: gradient of `add`; NULL: not wanted */
    float *dscale, *dbias; /* [channels] */
    float *sums;           /* [2 * channels]: made by back_finish */
    bool add_dx, add_dparam;
};

/* Of y = act(norm(x)), whose product with a factor a channel and image has the gradient norm->dy:
 * that of the factor, and by images sums from which the norm's are made once `average_grad` is
 * known. */
struct ew_squeeze_excite_norm {
    const struct ew_batch_norm
        *norm;      /* with its image; `factor` and `average_grad` for the total only */
    float *dfactor; /* [image][channels] */
    bool add;       /* to what that holds */
    float *sums;    /* [4][image][channels] */
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
    bool from_output; /* backward: x is act's output, which does not do for hard_swish, silu
                       * and gelu */
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

/* x [batch, rows, channels], s [batch, 1, channels]: y (+)= x s, or x + s with `sum`; and back,
 * ds (+)= sum over rows of dy x, or of dy. */
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

/* Each row [groups, each] to [each, groups], (+)=. */
struct ew_shuffle {
    int64_t groups, each;
    const float *in;
    float *out;
    bool add;
};

/* y = act(x * scale + shift + add), [rows, channels]: a batch norm of an inference. */
struct ew_scale_shift {
    int64_t channels;
    const float *x, *scale, *shift, *add; /* add: NULL: none */
    enum ew_act act;
    float lo, hi;
    float *y;
};

/* Softmax over [rows, classes] and, where `label` is given, its cross-entropy with one class a row:
 * loss[row] = -log p[label], dx = (p - one-hot) * grad. */
struct ew_softmax {
    int64_t classes;
    const float *x;
    const int64_t *label; /* in [0, classes) */
    float *p;             /* probabilities; NULL: not wanted */
    float *loss;          /* NULL: not wanted */
    float *dx;            /* NULL: not wanted */
    float grad;
    bool add; /* softmax_back, where x is dy and p is given: to what dx holds */
};

/* y (+)= x * factor, where the factor of element i is 0 with probability `ratio`, else 1 / (1 -
 * ratio): the one that op_dropout.c gives, and the product is computed in double as that does, so
 * that the bits are the same (with `add`, up to one rounding). */
struct ew_dropout {
    uint64_t seed;
    double ratio;
    const float *x;
    float *y; /* may be x unless add */
    bool add; /* to what y holds */
};

/* out[b][j][i] = in[b][i][j] + bias[i]: NCHW to NHWC with rows = C, columns = HW, and back.  A tile
 * is a block of rows of one matrix. */
struct ew_transpose {
    int64_t batch, rows, columns;
    const float *in;
    const float *bias; /* NULL: none */
    float *out;
};

/* out[c] (+)= sum of x[row][c]; rows lie `step` apart.  With y, laid out alike, x is made zero
 * first where that is not positive: the gradient in front of a relu. */
struct ew_column_sums {
    int64_t rows, channels, step;
    float *x;
    const float *y; /* NULL: x is as it should be */
    float *out;
    bool add;
};

/* ---- The table ------------------------------------------------------------------------------- */

/* clang-format off */
#define EW_KERNEL_MAP(X)                                                                           \
    /* Flops done in that many steps of multiply-adds on registers. */                             \
    X(int64_t, peak,           (int64_t steps, float *sink))                                       \
    /* Floats of the packed filter; tiles of packing, and packing; tiles; bytes of scratch for a   \
     * thread; the run. */                                                                         \
    X(size_t,  conv_pack_size, (const struct ew_conv_shape *s))                                    \
    X(int64_t, conv_pack_tiles, (const struct ew_conv_shape *s))                                   \
    X(void,    conv_pack,      (const struct ew_conv_shape *s, const float *w, float *packed, int64_t begin, int64_t end)) \
    X(bool,    conv_norms,     (const struct ew_conv_shape *s)) /* heeds shape.input_norm */       \
    X(int64_t, conv_tiles,     (const struct ew_conv_shape *s))                                    \
    X(struct ew_stats_split, conv_stats_split, (const struct ew_conv_shape *s)) /* with ew_conv.stats */           \
    X(size_t,  conv_scratch,   (const struct ew_conv_shape *s))                                    \
    X(void,    conv_run,       (const struct ew_conv *c, int64_t begin, int64_t end, void *scratch)) \
    /* Gradient for the data: shape is the forward convolution's, c->x is dy, c->y is dx, w packed \
     * by conv_dgrad_pack; end.add = dx adds to what is there. */                                   \
    X(size_t,  conv_dgrad_pack_size, (const struct ew_conv_shape *s))                               \
    X(int64_t, conv_dgrad_pack_tiles, (const struct ew_conv_shape *s))                              \
    X(void,    conv_dgrad_pack, (const struct ew_conv_shape *s, const float *w, float *packed, int64_t begin, int64_t end)) \
    X(int64_t, conv_dgrad_tiles, (const struct ew_conv_shape *s))                                   \
    X(size_t,  conv_dgrad_scratch, (const struct ew_conv_shape *s))                                 \
    X(void,    conv_dgrad_run,  (const struct ew_conv *c, int64_t begin, int64_t end, void *scratch)) \
    /* Gradient for the filter; both loops in this order.  sum_tiles is 0 where nothing is left. */ \
    X(size_t,  conv_wgrad_partial, (const struct ew_conv_shape *s))                               \
    X(int64_t, conv_wgrad_tiles, (const struct ew_conv_shape *s))                                 \
    X(size_t,  conv_wgrad_scratch, (const struct ew_conv_shape *s))                               \
    X(void,    conv_wgrad_run, (const struct ew_conv_wgrad *f, int64_t begin, int64_t end, void *scratch)) \
    X(int64_t, conv_wgrad_sum_tiles, (const struct ew_conv_shape *s))                             \
    X(void,    conv_wgrad_sum, (const struct ew_conv_wgrad *f, int64_t begin, int64_t end))      \
    /* Both for 1x1 filters at once: run, then sum. */                                             \
    X(bool,    fused_grads_fits,     (const struct ew_conv_shape *s))                                    \
    X(size_t,  fused_grads_partial,  (const struct ew_conv_shape *s))                                    \
    X(int64_t, fused_grads_tiles,    (const struct ew_conv_shape *s))                                    \
    X(size_t,  fused_grads_scratch,  (const struct ew_conv_shape *s))                                    \
    X(void,    fused_grads_run,      (const struct ew_fused_grads *j, int64_t begin, int64_t end, void *scratch)) \
    X(int64_t, fused_grads_sum_tiles, (const struct ew_conv_shape *s))                                   \
    X(void,    fused_grads_sum,      (const struct ew_fused_grads *j, int64_t begin, int64_t end))             \
    /* Winograd's: the same for 3x3 and 5x5, no groups, or 3 to 5 strides (winograd_fits).  With   \
     * `flip` the filter is that of a forward convolution with stride 1 whose data gradient `s`    \
     * describes. */                                                                               \
    X(bool,    winograd_fits,  (const struct ew_conv_shape *s))                                    \
    X(bool,    winograd_pays,  (const struct ew_conv_shape *s, bool train)) /* beside conv */      \
    /* Cycles of one core, estimated; with `train` filters are packed at each run. */              \
    X(double,  winograd_cycles, (const struct ew_conv_shape *s, bool train))                       \
    X(double,  conv_cycles,    (const struct ew_conv_shape *s, bool train))                        \
    X(bool,    winograd_unpacked,   (const struct ew_conv_shape *s)) /* pays where weights change */     \
    X(size_t,  winograd_pack_size, (const struct ew_conv_shape *s))                                \
    X(int64_t, winograd_pack_tiles, (const struct ew_conv_shape *s))                               \
    X(void,    winograd_pack,  (const struct ew_conv_shape *s, const float *w, bool flip, float *packed, int64_t begin, int64_t end)) \
    X(int64_t, winograd_tiles, (const struct ew_conv_shape *s))                                    \
    X(size_t,  winograd_scratch, (const struct ew_conv_shape *s))                                  \
    X(void,    winograd_run,   (const struct ew_conv *c, int64_t begin, int64_t end, void *scratch)) \
    /* The filter gradient by Winograd: phases one after the other, each over its tiles; `partial` \
     * is filter_shared floats.  fits says where it pays, too. */                                  \
    X(bool,    winograd_wgrad_fits, (const struct ew_conv_shape *s))                              \
    X(double,  winograd_wgrad_cycles, (const struct ew_conv_shape *s)) /* estimated */            \
    X(size_t,  winograd_wgrad_shared, (const struct ew_conv_shape *s))                            \
    X(size_t,  winograd_wgrad_scratch, (const struct ew_conv_shape *s))                           \
    X(int64_t, winograd_wgrad_phases, (const struct ew_conv_shape *s))                            \
    X(int64_t, winograd_wgrad_tiles, (const struct ew_conv_shape *s, int64_t phase))              \
    X(void,    winograd_wgrad_run, (const struct ew_conv_wgrad *f, int64_t phase, int64_t begin, int64_t end, void *scratch)) \
    /* Depthwise: groups = cin = cout. */                                                          \
    X(bool,    depthwise_fits, (const struct ew_conv_shape *s))                                    \
    X(bool,    depthwise_norms, (const struct ew_conv_shape *s)) /* heeds shape.input_norm */          \
    X(size_t,  depthwise_pack_size, (const struct ew_conv_shape *s))                               \
    X(void,    depthwise_pack, (const struct ew_conv_shape *s, const float *w, float *packed))     \
    X(int64_t, depthwise_tiles, (const struct ew_conv_shape *s))                                   \
    X(struct ew_stats_split, depthwise_stats_split, (const struct ew_conv_shape *s))                               \
    X(size_t,  depthwise_scratch, (const struct ew_conv_shape *s))                                 \
    X(void,    depthwise_run,  (const struct ew_conv *c, int64_t begin, int64_t end, void *scratch)) \
    /* Its gradients, as those of conv. */                                                         \
    X(void,    depthwise_dgrad_pack, (const struct ew_conv_shape *s, const float *w, float *packed)) \
    X(int64_t, depthwise_dgrad_tiles, (const struct ew_conv_shape *s))                              \
    X(size_t,  depthwise_dgrad_scratch, (const struct ew_conv_shape *s))                            \
    X(void,    depthwise_dgrad_run, (const struct ew_conv *c, int64_t begin, int64_t end, void *scratch)) \
    X(size_t,  depthwise_wgrad_partial, (const struct ew_conv_shape *s))                          \
    X(int64_t, depthwise_wgrad_tiles, (const struct ew_conv_shape *s))                            \
    X(size_t,  depthwise_wgrad_scratch, (const struct ew_conv_shape *s))                          \
    X(void,    depthwise_wgrad_run, (const struct ew_conv_wgrad *f, int64_t begin, int64_t end, void *scratch)) \
    X(int64_t, depthwise_wgrad_sum_tiles, (const struct ew_conv_shape *s))                        \
    X(void,    depthwise_wgrad_sum, (const struct ew_conv_wgrad *f, int64_t begin, int64_t end)) \
    /* Both at once, as `fused_grads`; tiles, partial and sum are depthwise_wgrad's. */                 \
    X(bool,    depthwise_fused_grads_fits, (const struct ew_conv_shape *s))                              \
    X(size_t,  depthwise_fused_grads_scratch, (const struct ew_conv_shape *s))                           \
    X(void,    depthwise_fused_grads_run, (const struct ew_fused_grads *j, int64_t begin, int64_t end, void *scratch)) \
    /* Groups of few channels (grouped_fits), as conv. */                                           \
    X(bool,    grouped_fits,   (const struct ew_conv_shape *s))                                    \
    X(size_t,  grouped_pack_size, (const struct ew_conv_shape *s))                                 \
    X(void,    grouped_pack,   (const struct ew_conv_shape *s, const float *w, float *packed))     \
    X(int64_t, grouped_tiles,  (const struct ew_conv_shape *s))                                    \
    X(size_t,  grouped_scratch, (const struct ew_conv_shape *s))                                   \
    X(void,    grouped_run,    (const struct ew_conv *c, int64_t begin, int64_t end, void *scratch)) \
    X(bool,    grouped_dgrad_fits, (const struct ew_conv_shape *s)) /* stride 1 */                  \
    X(size_t,  grouped_dgrad_pack_size, (const struct ew_conv_shape *s))                            \
    X(void,    grouped_dgrad_pack, (const struct ew_conv_shape *s, const float *w, float *packed))  \
    X(int64_t, grouped_dgrad_tiles, (const struct ew_conv_shape *s))                                \
    X(size_t,  grouped_dgrad_scratch, (const struct ew_conv_shape *s))                              \
    X(void,    grouped_dgrad_run, (const struct ew_conv *c, int64_t begin, int64_t end, void *scratch)) \
    X(size_t,  grouped_wgrad_partial, (const struct ew_conv_shape *s))                            \
    X(int64_t, grouped_wgrad_tiles, (const struct ew_conv_shape *s))                              \
    X(size_t,  grouped_wgrad_scratch, (const struct ew_conv_shape *s))                            \
    X(void,    grouped_wgrad_run, (const struct ew_conv_wgrad *f, int64_t begin, int64_t end, void *scratch)) \
    X(int64_t, grouped_wgrad_sum_tiles, (const struct ew_conv_shape *s))                          \
    X(void,    grouped_wgrad_sum, (const struct ew_conv_wgrad *f, int64_t begin, int64_t end))   \
    /* Filters of few channels, but more weights than batch_lanes_wgrad takes (batch_lanes_large_wgrad_fits): the     \
     * first pass only transposes. */                                                              \
    X(bool,    batch_lanes_large_wgrad_fits, (const struct ew_conv_shape *s))                                  \
    X(size_t,  batch_lanes_large_wgrad_partial, (const struct ew_conv_shape *s))                               \
    X(int64_t, batch_lanes_large_wgrad_tiles, (const struct ew_conv_shape *s))                                 \
    X(size_t,  batch_lanes_large_wgrad_scratch, (const struct ew_conv_shape *s))                               \
    X(void,    batch_lanes_large_wgrad_run, (const struct ew_conv_wgrad *f, int64_t begin, int64_t end, void *scratch)) \
    X(int64_t, batch_lanes_large_wgrad_sum_tiles, (const struct ew_conv_shape *s))                             \
    X(void,    batch_lanes_large_wgrad_sum, (const struct ew_conv_wgrad *f, int64_t begin, int64_t end))      \
    /* Few outputs over at least LANES images (batch_lanes_fits), as conv; batch_lanes_dgrad_pack packs for the     \
     * convolution that batch_lanes_run makes the gradient for the data with, as winograd_pack with `flip` \
     * does. */                                                                                    \
    X(bool,    batch_lanes_fits,       (const struct ew_conv_shape *s))                                    \
    X(bool,    batch_lanes_dgrad_fits,  (const struct ew_conv_shape *s))                                    \
    X(bool,    batch_lanes_wgrad_fits, (const struct ew_conv_shape *s))                                   \
    X(size_t,  batch_lanes_pack_size,  (const struct ew_conv_shape *s))                                    \
    X(void,    batch_lanes_pack,       (const struct ew_conv_shape *s, const float *w, float *packed))     \
    X(void,    batch_lanes_dgrad_pack,  (const struct ew_conv_shape *s, const float *w, float *packed))     \
    X(int64_t, batch_lanes_tiles,      (const struct ew_conv_shape *s))                                    \
    X(size_t,  batch_lanes_scratch,    (const struct ew_conv_shape *s))                                    \
    X(void,    batch_lanes_run,        (const struct ew_conv *c, int64_t begin, int64_t end, void *scratch)) \
    /* Few inputs and outputs that fill no vectors, stride 1 (pixel_lanes_fits), as conv. */        \
    X(bool,    pixel_lanes_fits,       (const struct ew_conv_shape *s))                                    \
    X(size_t,  pixel_lanes_pack_size,  (const struct ew_conv_shape *s))                                    \
    X(void,    pixel_lanes_pack,       (const struct ew_conv_shape *s, const float *w, float *packed))     \
    X(int64_t, pixel_lanes_tiles,      (const struct ew_conv_shape *s))                                    \
    X(size_t,  pixel_lanes_scratch,    (const struct ew_conv_shape *s))                                    \
    X(void,    pixel_lanes_run,        (const struct ew_conv *c, int64_t begin, int64_t end, void *scratch)) \
    X(size_t,  batch_lanes_wgrad_partial, (const struct ew_conv_shape *s))                                \
    X(int64_t, batch_lanes_wgrad_tiles, (const struct ew_conv_shape *s))                                  \
    X(size_t,  batch_lanes_wgrad_scratch, (const struct ew_conv_shape *s))                                \
    X(void,    batch_lanes_wgrad_run, (const struct ew_conv_wgrad *f, int64_t begin, int64_t end, void *scratch)) \
    X(int64_t, batch_lanes_wgrad_sum_tiles, (const struct ew_conv_shape *s))                              \
    X(void,    batch_lanes_wgrad_sum, (const struct ew_conv_wgrad *f, int64_t begin, int64_t end))       \
    /* Small feature maps, in training: transpose, then run.  Backward: transpose, run, sum. */                   \
    X(bool,    tap_pairs_fits,     (const struct ew_conv_shape *s))                                    \
    X(bool,    tap_pairs_pays,     (const struct ew_conv_shape *s)) /* beside conv and winograd */     \
    X(uint32_t, tap_pairs_met,     (const struct ew_conv_shape *s)) /* bit t: tap t meets a pixel */    \
    X(size_t,  tap_pairs_transposed,   (const struct ew_conv_shape *s))                                    \
    X(int64_t, tap_pairs_transpose_tiles, (const struct ew_conv_shape *s))                                  \
    X(void,    tap_pairs_transpose,     (const struct ew_unpacked_conv *p, int64_t begin, int64_t end))             \
    X(int64_t, tap_pairs_tiles,    (const struct ew_conv_shape *s))                                    \
    X(size_t,  tap_pairs_scratch,  (const struct ew_conv_shape *s))                                    \
    X(void,    tap_pairs_run,      (const struct ew_unpacked_conv *p, int64_t begin, int64_t end, void *scratch)) \
    X(bool,    small_dense_pays,     (const struct ew_conv_shape *s)) /* beside tap_pairs, both ways */       \
    X(int64_t, small_dense_tiles,    (const struct ew_conv_shape *s))                                    \
    X(size_t,  small_dense_transposed,   (const struct ew_conv_shape *s))                                    \
    X(void,    small_dense_run,      (const struct ew_unpacked_conv *p, int64_t begin, int64_t end))             \
    X(void,    small_dense_sum,      (const struct ew_unpacked_conv *p))                                         \
    X(int64_t, small_dense_grad_tiles, (const struct ew_conv_shape *s))                                  \
    X(size_t,  small_dense_grad_shared, (const struct ew_conv_shape *s))                                 \
    X(void,    small_dense_grad_run, (const struct ew_unpacked_grads *p, int64_t begin, int64_t end))        \
    X(void,    small_dense_grad_sum, (const struct ew_unpacked_grads *p))                                    \
    X(size_t,  tap_pairs_grad_shared, (const struct ew_conv_shape *s))                                 \
    X(int64_t, tap_pairs_grad_transpose_tiles, (const struct ew_conv_shape *s))                             \
    X(void,    tap_pairs_grad_transpose, (const struct ew_unpacked_grads *p, int64_t begin, int64_t end))       \
    X(int64_t, tap_pairs_grad_tiles, (const struct ew_conv_shape *s))                                  \
    X(size_t,  tap_pairs_grad_scratch, (const struct ew_conv_shape *s))                                \
    X(void,    tap_pairs_grad_run, (const struct ew_unpacked_grads *p, int64_t begin, int64_t end, void *scratch)) \
    X(int64_t, tap_pairs_grad_sum_tiles, (const struct ew_conv_shape *s))                              \
    X(void,    tap_pairs_grad_sum, (const struct ew_unpacked_grads *p, int64_t begin, int64_t end))        \
    /* Dense layers and 1x1 filters of many zeros, in training (see kernel/sparse/sparse.h): in x, and      \
     * backward in dy.  share: of [rows, n], rows `step` apart, what is not zero.  Backward: grad,   \
     * then filter, whose tiles are 0 where grad makes both; `by_x`: of x's zeros, grad's no_filter. \
     * Scratch is for a thread; neither `transposed` nor `shared` is used. */                            \
    X(bool,    sparse_fits,    (const struct ew_conv_shape *s))                                    \
    X(double,  sparse_share,   (const float *a, int64_t rows, int64_t n, int64_t step))            \
    X(int64_t, sparse_tiles,   (const struct ew_conv_shape *s))                                    \
    X(size_t,  sparse_scratch, (const struct ew_conv_shape *s))                                    \
    X(void,    sparse_run,     (const struct ew_unpacked_conv *p, int64_t begin, int64_t end, void *scratch)) \
    X(int64_t, sparse_grad_tiles, (const struct ew_conv_shape *s))                                 \
    X(size_t,  sparse_grad_scratch, (const struct ew_conv_shape *s))                               \
    X(void,    sparse_grad_run, (const struct ew_unpacked_grads *g, int64_t begin, int64_t end, void *scratch)) \
    X(int64_t, sparse_wgrad_tiles, (const struct ew_conv_shape *s, bool by_x))                    \
    X(size_t,  sparse_wgrad_scratch, (const struct ew_conv_shape *s))                             \
    X(void,    sparse_wgrad_run, (const struct ew_unpacked_grads *g, bool by_x, int64_t begin, int64_t end, void *scratch)) \
    /* Any filters, where dy is nearly all zeros (see kernel/sparse/k_scatter_grad.c): run over tiles, then sum over  \
     * outputs, the bias's gradient too.  Fits: with or without a gradient for the data. */            \
    X(bool,    scatter_grad_fits,      (const struct ew_conv_shape *s, bool data))                         \
    X(int64_t, scatter_grad_tiles,     (const struct ew_conv_shape *s))                                    \
    X(size_t,  scatter_grad_shared,    (const struct ew_conv_shape *s))                                    \
    X(size_t,  scatter_grad_scratch,   (const struct ew_conv_shape *s))                                    \
    X(void,    scatter_grad_run,       (const struct ew_unpacked_grads *g, int64_t begin, int64_t end, void *scratch)) \
    X(void,    scatter_grad_sum,       (const struct ew_unpacked_grads *g, int64_t begin, int64_t end))        \
    /* Few channels, 5x5 and stride 1 (winograd_5x5_fits), as conv; winograd_5x5_pays: beside the others, in      \
     * training.  Both gradients: pack into each thread's scratch, run over tiles, sum. */          \
    X(bool,    winograd_5x5_fits,     (const struct ew_conv_shape *s))                                    \
    X(bool,    winograd_5x5_pays,     (const struct ew_conv_shape *s))                                    \
    X(size_t,  winograd_5x5_pack_size, (const struct ew_conv_shape *s))                                   \
    X(void,    winograd_5x5_pack,     (const struct ew_conv_shape *s, const float *w, float *packed))     \
    X(int64_t, winograd_5x5_tiles,    (const struct ew_conv_shape *s))                                    \
    X(size_t,  winograd_5x5_scratch,  (const struct ew_conv_shape *s))                                    \
    X(void,    winograd_5x5_run,      (const struct ew_conv *c, int64_t begin, int64_t end, void *scratch)) \
    X(size_t,  winograd_5x5_grad_shared, (const struct ew_conv_shape *s))                                 \
    X(void,    winograd_5x5_grad_pack, (const struct ew_unpacked_grads *g, void *scratch)) /* for dx */        \
    X(int64_t, winograd_5x5_grad_tiles, (const struct ew_conv_shape *s))                                  \
    X(size_t,  winograd_5x5_grad_scratch, (const struct ew_conv_shape *s))                                \
    X(void,    winograd_5x5_grad_run, (const struct ew_unpacked_grads *g, int64_t begin, int64_t end, void *scratch)) \
    X(void,    winograd_5x5_grad_sum, (const struct ew_unpacked_grads *g)) /* for dw and db */                 \
    /* Convolution, max pool and ReLU; scratch for a thread.  Backward: run, then sum. */          \
    X(bool,    conv_pool_fits, (const struct ew_conv_shape *s))                                    \
    X(size_t,  conv_pool_pack_size, (const struct ew_conv_shape *s))                               \
    X(void,    conv_pool_pack, (const struct ew_conv_shape *s, const float *w, const float *bias, float *packed)) \
    X(size_t,  conv_pool_scratch, (const struct ew_conv_shape *s))                                 \
    X(void,    conv_pool_run,  (const struct ew_conv_pool *p, int64_t begin, int64_t end, void *scratch)) \
    X(size_t,  conv_pool_offsets_size, (const struct ew_conv_shape *s))                              \
    X(void,    conv_pool_offsets, (const struct ew_conv_shape *s, int32_t *offsets))                   \
    X(size_t,  conv_pool_partial, (const struct ew_conv_shape *s))                                 \
    X(size_t,  conv_pool_grad_scratch, (const struct ew_conv_shape *s))                            \
    X(int64_t, conv_pool_grad_tiles, (const struct ew_conv_shape *s))                              \
    X(void,    conv_pool_grad_run, (const struct ew_conv_pool *p, int64_t begin, int64_t end, void *scratch)) \
    X(int64_t, conv_pool_sum_tiles, (const struct ew_conv_shape *s))                               \
    X(void,    conv_pool_sum,  (const struct ew_conv_pool *p, int64_t begin, int64_t end))         \
    /* Pooling; max_pool_run notes where maxima were, over the same tiles; pool_back_run is the     \
     * average's. */                                                                                 \
    X(int64_t, pool_tiles,     (const struct ew_conv_shape *s))                                    \
    X(void,    pool_run,       (const struct ew_pooling *p, int64_t begin, int64_t end))             \
    X(void,    max_pool_run,   (const struct ew_pooling *p, int64_t begin, int64_t end))           \
    X(int64_t, max_pool_back_tiles, (const struct ew_conv_shape *s))                               \
    X(void,    max_pool_back_run, (const struct ew_pooling *p, int64_t begin, int64_t end))        \
    X(int64_t, pool_back_tiles, (const struct ew_conv_shape *s))                                   \
    X(void,    pool_back_run,  (const struct ew_pooling *p, int64_t begin, int64_t end))             \
    /* Normalisation; apply and lrn by rows. */                                                    \
    X(int64_t, batch_splits,   (int64_t rows))                                                     \
    X(size_t,  batch_partial,  (int64_t rows, int64_t channels))                                   \
    X(void,    batch_stats,    (const struct ew_batch_norm *b, int64_t begin, int64_t end))        \
    X(void,    batch_finish,   (const struct ew_batch_norm *b))                                    \
    X(void,    batch_apply,    (const struct ew_batch_norm *b, int64_t begin, int64_t end))        \
    X(void,    batch_back_stats, (const struct ew_batch_norm *b, int64_t begin, int64_t end))      \
    X(void,    batch_back_total, (const struct ew_batch_norm *b, float *to)) /* one split of all */ \
    X(int64_t, squeeze_excite_tiles,    (const struct ew_squeeze_excite_norm *g))                                    \
    X(void,    squeeze_excite_run,      (const struct ew_squeeze_excite_norm *g, int64_t begin, int64_t end))        \
    X(void,    squeeze_excite_total,    (const struct ew_squeeze_excite_norm *g, float *to)) /* as batch_back_total */ \
    X(void,    batch_back_finish, (const struct ew_batch_norm *b))                                 \
    X(void,    batch_back_apply, (const struct ew_batch_norm *b, int64_t begin, int64_t end))      \
    X(size_t,  lrn_scratch,    (const struct ew_lrn *l))                                           \
    X(void,    lrn_run,        (const struct ew_lrn *l, int64_t begin, int64_t end, void *scratch)) \
    /* Element by element: [begin, end) are elements, or rows where the struct has channels. */    \
    X(void,    act_run,        (const struct ew_act_map *a, int64_t begin, int64_t end))           \
    X(void,    act_back,       (const struct ew_act_map *a, int64_t begin, int64_t end))           \
    X(void,    add_run,        (const struct ew_add_map *a, int64_t begin, int64_t end))           \
    X(void,    mul_run,        (const struct ew_mul_map *m, int64_t begin, int64_t end))           \
    X(void,    channel_scale_run,       (const struct ew_channel_scale *g, int64_t begin, int64_t end))              \
    X(int64_t, channel_scale_sum_tiles, (const struct ew_channel_scale *g))                                          \
    X(void,    channel_scale_sum,       (const struct ew_channel_scale *g, int64_t begin, int64_t end))              \
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
    /* Sums over rows of [rows, channels], of channels [begin, end): the gradient of a bias.  The  \
     * order of the sum does not depend on the range, but for fewer channels than lanes, which     \
     * should go together. */                                                                      \
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
