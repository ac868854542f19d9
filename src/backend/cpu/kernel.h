/* SPDX-License-Identifier: Apache-2.0 */
/* The float32 kernels of the CPU: what they compute, on plain pointers.  Which instruction set runs
 * is decided in isa.c; graphs, plans and threads are left to others.
 *
 * A kernel is cut into tiles by its shape alone, never by the number of threads.  `run` does the
 * tiles [begin, end) in the caller's scratch (one per thread, `scratch` bytes, 64-byte aligned);
 * ranges may run at the same time and in any order, and the result is the same bits.
 *
 * Tensors are channels-last and contiguous, filters [O, k..., I / groups].  Sizes are checked by
 * the operators; kernels trust them. */
#ifndef EW_BACKEND_CPU_KERNEL_H
#define EW_BACKEND_CPU_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "op/epilogue.h" /* enum ew_act */

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
};

/* What is done to a convolution's sums before they are stored:
 * y = act(sum + bias + add), or act(sum + bias) + add where add_after is set. */
struct ew_epilogue {
    const float *bias; /* [cout]; NULL: none */
    const float *add;  /* laid out as y; may be y itself unless add_after; NULL: none */
    bool add_after;
    enum ew_act act;
    float lo, hi; /* the activation's two parameters */
};

struct ew_conv {
    struct ew_conv_shape shape;
    const float *x, *w; /* w: packed by the same instruction set's conv_pack */
    float *y;
    struct ew_epilogue end;
};

/* Gradient for the filter: dw (+)= sum over pixels of dy x.  Where all of it takes a few tiles
 * only, pixels are split too: each tile then leaves its sums in `partial`, and conv_filter_sum adds
 * them up in order when all tiles are done. */
struct ew_conv_filter {
    struct ew_conv_shape shape;
    const float *x, *dy;
    float *dw;      /* [O, k..., I / groups], as the filter */
    float *partial; /* conv_filter_partial floats */
    bool add;       /* to what dw holds */
};

/* ---- The table ------------------------------------------------------------------------------- */

/* clang-format off */
#define EW_KERNEL_MAP(X)                                                                           \
    /* Flops done in that many steps of multiply-adds on registers. */                             \
    X(int64_t, peak,           (int64_t steps, float *sink))                                       \
    /* Floats of the packed filter; packing; tiles; bytes of scratch for a thread; the run. */     \
    X(size_t,  conv_pack_size, (const struct ew_conv_shape *s))                                    \
    X(void,    conv_pack,      (const struct ew_conv_shape *s, const float *w, float *packed))     \
    X(int64_t, conv_tiles,     (const struct ew_conv_shape *s))                                    \
    X(size_t,  conv_scratch,   (const struct ew_conv_shape *s))                                    \
    X(void,    conv_run,       (const struct ew_conv *c, int64_t begin, int64_t end, void *scratch)) \
    /* Gradient for the data: shape is the forward convolution's, c->x is dy, c->y is dx, w packed \
     * by conv_data_pack; end.add = dx adds to what is there. */                                   \
    X(size_t,  conv_data_pack_size, (const struct ew_conv_shape *s))                               \
    X(void,    conv_data_pack, (const struct ew_conv_shape *s, const float *w, float *packed))     \
    X(int64_t, conv_data_tiles, (const struct ew_conv_shape *s))                                   \
    X(size_t,  conv_data_scratch, (const struct ew_conv_shape *s))                                 \
    X(void,    conv_data_run,  (const struct ew_conv *c, int64_t begin, int64_t end, void *scratch)) \
    /* Gradient for the filter; both loops in this order.  sum_tiles is 0 where nothing is left. */ \
    X(size_t,  conv_filter_partial, (const struct ew_conv_shape *s))                               \
    X(int64_t, conv_filter_tiles, (const struct ew_conv_shape *s))                                 \
    X(size_t,  conv_filter_scratch, (const struct ew_conv_shape *s))                               \
    X(void,    conv_filter_run, (const struct ew_conv_filter *f, int64_t begin, int64_t end, void *scratch)) \
    X(int64_t, conv_filter_sum_tiles, (const struct ew_conv_shape *s))                             \
    X(void,    conv_filter_sum, (const struct ew_conv_filter *f, int64_t begin, int64_t end))      \
    /* Winograd's F(4x4, 3x3): the same for 3x3, stride 1, no groups (winograd_fits).  With `flip` \
     * the filter is that of a forward convolution whose data gradient `s` describes. */           \
    X(bool,    winograd_fits,  (const struct ew_conv_shape *s))                                    \
    X(size_t,  winograd_pack_size, (const struct ew_conv_shape *s))                                \
    X(void,    winograd_pack,  (const struct ew_conv_shape *s, const float *w, bool flip, float *packed)) \
    X(int64_t, winograd_tiles, (const struct ew_conv_shape *s))                                    \
    X(size_t,  winograd_scratch, (const struct ew_conv_shape *s))                                  \
    X(void,    winograd_run,   (const struct ew_conv *c, int64_t begin, int64_t end, void *scratch)) \
    /* Depthwise: groups = cin = cout. */                                                          \
    X(bool,    depthwise_fits, (const struct ew_conv_shape *s))                                    \
    X(size_t,  depthwise_pack_size, (const struct ew_conv_shape *s))                               \
    X(void,    depthwise_pack, (const struct ew_conv_shape *s, const float *w, float *packed))     \
    X(int64_t, depthwise_tiles, (const struct ew_conv_shape *s))                                   \
    X(size_t,  depthwise_scratch, (const struct ew_conv_shape *s))                                 \
    X(void,    depthwise_run,  (const struct ew_conv *c, int64_t begin, int64_t end, void *scratch)) \
    /* Its gradients, as those of conv. */                                                         \
    X(void,    depthwise_data_pack, (const struct ew_conv_shape *s, const float *w, float *packed)) \
    X(int64_t, depthwise_data_tiles, (const struct ew_conv_shape *s))                              \
    X(size_t,  depthwise_data_scratch, (const struct ew_conv_shape *s))                            \
    X(void,    depthwise_data_run, (const struct ew_conv *c, int64_t begin, int64_t end, void *scratch)) \
    X(size_t,  depthwise_filter_partial, (const struct ew_conv_shape *s))                          \
    X(int64_t, depthwise_filter_tiles, (const struct ew_conv_shape *s))                            \
    X(size_t,  depthwise_filter_scratch, (const struct ew_conv_shape *s))                          \
    X(void,    depthwise_filter_run, (const struct ew_conv_filter *f, int64_t begin, int64_t end, void *scratch)) \
    X(int64_t, depthwise_filter_sum_tiles, (const struct ew_conv_shape *s))                        \
    X(void,    depthwise_filter_sum, (const struct ew_conv_filter *f, int64_t begin, int64_t end))
/* clang-format on */

struct ew_kernels {
    const char *isa; /* "avx512" */
    int lanes;       /* floats in a vector */
#define EW_KERNEL_FIELD(ret, name, args) ret(*name) args;
    EW_KERNEL_MAP(EW_KERNEL_FIELD)
#undef EW_KERNEL_FIELD
};

#endif
