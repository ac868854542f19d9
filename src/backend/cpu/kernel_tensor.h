/* SPDX-License-Identifier: Apache-2.0 */
/* Float32 kernels of tensor operators: layer and group norm, reductions, resampling, permutations,
 * element-wise functions.  Tiles and ranges are as in kernel.h. */
#ifndef EW_BACKEND_CPU_KERNEL_TENSOR_H
#define EW_BACKEND_CPU_KERNEL_TENSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ew_softmax;

/* ---- Layer and group norm: y = (x - mean) rstd scale + bias ---------------------------------- */

/* Statistics over each row of n elements. */
struct ew_layer_norm {
    int64_t rows, n;
    const float *x, *scale, *bias; /* [n]; bias: NULL: none */
    float eps;
    float *y;           /* may alias x */
    float *mean, *rstd; /* [rows]; forward, NULL: not wanted */
    const float *dy;
    float *dx; /* NULL: not wanted */
    bool add_dx;
    float *partial; /* [layer_norm_splits][2][n]: sums of dy xhat and of dy; NULL: not wanted */
};

/* Statistics over each group of `run` channels in all rows of an image.  Forward: stats over tiles,
 * finish over images, apply over tiles.  Backward the same, but one call of finish. */
struct ew_group_norm {
    int64_t images, rows, channels, run;
    bool per_group;                /* scale and bias have one value for each group, else for each
                                    * channel */
    const float *x, *scale, *bias; /* bias: NULL: none */
    float eps;
    float *y;           /* may alias x */
    float *mean, *rstd; /* [images][channels / run] */
    float *partial;     /* group_norm_partial floats */
    float *factors;     /* [images][3][channels]: written by finish, read by apply */
    const float *dy;
    float *dx; /* NULL: not wanted */
    float *dscale, *dbias;
    bool add_dx, add_dscale, add_dbias;
};

/* ---- Reductions ------------------------------------------------------------------------------ */

enum ew_reduction_kind {
    EW_REDUCTION_SUM,
    EW_REDUCTION_SQUARES,
    EW_REDUCTION_ABS,
    EW_REDUCTION_MAX,
    EW_REDUCTION_MIN
};

#define EW_REDUCTION_DIMS 8

/* A reduction of x over some axes.  Adjacent axes of the same kind are merged, so kept and
 * reduced dimensions alternate; the last has `inner` contiguous elements. y has the kept ones in
 * order. */
struct ew_reduction_axes {
    int64_t inner;
    bool inner_kept;
    int kept, reduced; /* number of dimensions, without the inner one */
    int64_t kept_dim[EW_REDUCTION_DIMS], kept_stride[EW_REDUCTION_DIMS];
    int64_t reduced_dim[EW_REDUCTION_DIMS], reduced_stride[EW_REDUCTION_DIMS];
};

struct ew_reduction {
    struct ew_reduction_axes axes;
    enum ew_reduction_kind kind;
    float scale; /* factor of the result (of dy backward): 1 / n for a mean */
    bool root;   /* then the square root */
    const float *x;
    float *y;
    const float *dy; /* backward of a sum: dx (+)= scale dy */
    float *dx;
    bool add;
};

/* ---- Resampling ------------------------------------------------------------------------------ */

/* One axis: y[o] = sum over t < taps of weight[o][t] x[at[o][t]]. */
struct ew_resample_axis {
    int64_t in, out, taps;
    const int32_t *at;   /* [out][taps] */
    const float *weight; /* [out][taps]; 0 for unused taps */
};

/* [images, in..., channels] to [images, out..., channels], separable over three axes (depth,
 * height, width; an absent one has in = out = taps = 1).  A tile is a row of outputs; backward,
 * EW_RESAMPLE_BLOCK channels of an image. */
struct ew_resample {
    int64_t images, channels;
    struct ew_resample_axis axis[3];
    bool copies; /* every output is one input with weight 1 (nearest) */
    const float *x;
    float *y;
    const float *dy;
    float *dx;
    bool add; /* accumulate into dx */
};

#define EW_RESAMPLE_BLOCK 64

/* ---- Permutations ---------------------------------------------------------------------------- */

#define EW_PERMUTE_DIMS 8

/* The output's dimensions, outermost first, with their strides in the input; the innermost is `run`
 * contiguous floats. */
struct ew_permute {
    int dims;
    int64_t run;
    int64_t dim[EW_PERMUTE_DIMS], step[EW_PERMUTE_DIMS];
    const float *x;
    float *y;
    bool add; /* accumulate into y */
};

/* ---- Element-wise functions ------------------------------------------------------------------ */

enum ew_map_kind {
    EW_MAP_ERF,
    EW_MAP_GELU,
    EW_MAP_GELU_TANH, /* 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) */
    EW_MAP_EXP,
    EW_MAP_SQRT,
    EW_MAP_NEG,
    EW_MAP_ABS
};

/* y = f(x).  Backward, of both GELUs only: dx (+)= dy f'(x). */
struct ew_map {
    enum ew_map_kind kind;
    const float *x, *dy;
    float *y, *dx;
    bool add; /* accumulate into dx */
};

enum ew_pair_kind {
    EW_PAIR_ADD,
    EW_PAIR_SUB,
    EW_PAIR_MUL,
    EW_PAIR_DIV,
    EW_PAIR_PRELU /* a, or a b where a <= 0 */
};

struct ew_pair_side {
    const float *x;
    bool one;       /* x is a scalar */
    int64_t repeat; /* period of a broadcast operand, on one side at most; 0: not broadcast */
    int64_t each;   /* elements that share one of its values, x[i / each % repeat]; 1 or more */
};

/* y = f(a, b), element by element */
struct ew_pair {
    enum ew_pair_kind kind;
    struct ew_pair_side a, b;
    float *y;
};

/* clang-format off */
#define EW_TENSOR_KERNEL_MAP(X)                                                                    \
    X(void,    layer_norm_run,  (const struct ew_layer_norm *l, int64_t begin, int64_t end)) /* rows */ \
    X(int64_t, layer_norm_splits, (int64_t rows))                                                  \
    X(void,    layer_norm_back, (const struct ew_layer_norm *l, int64_t begin, int64_t end)) /* splits */ \
    X(int64_t, group_norm_tiles, (const struct ew_group_norm *g))                                  \
    X(size_t,  group_norm_partial, (const struct ew_group_norm *g))                                \
    X(void,    group_norm_stats, (const struct ew_group_norm *g, int64_t begin, int64_t end))      \
    X(void,    group_norm_finish, (const struct ew_group_norm *g, int64_t begin, int64_t end))     \
    X(void,    group_norm_apply, (const struct ew_group_norm *g, int64_t begin, int64_t end))      \
    X(void,    group_norm_back_stats, (const struct ew_group_norm *g, int64_t begin, int64_t end)) \
    X(void,    group_norm_back_finish, (const struct ew_group_norm *g))                            \
    X(void,    group_norm_back_apply, (const struct ew_group_norm *g, int64_t begin, int64_t end)) \
    /* dx (+)= y (dy - sum of y dy), row by row. */                                                \
    X(void,    softmax_back,    (const struct ew_softmax *s, int64_t begin, int64_t end))          \
    /* [begin, end) are elements. */                                                               \
    X(void,    map_run,         (const struct ew_map *m, int64_t begin, int64_t end))              \
    X(void,    map_back,        (const struct ew_map *m, int64_t begin, int64_t end))              \
    X(void,    pair_run,        (const struct ew_pair *p, int64_t begin, int64_t end))             \
    X(int64_t, reduce_tiles,    (const struct ew_reduction_axes *a))                               \
    X(void,    reduce_run,      (const struct ew_reduction *f, int64_t begin, int64_t end))        \
    X(void,    reduce_back,     (const struct ew_reduction *f, int64_t begin, int64_t end))        \
    X(int64_t, resample_tiles,    (const struct ew_resample *s))                                   \
    X(void,    resample_run,      (const struct ew_resample *s, int64_t begin, int64_t end))       \
    X(int64_t, resample_back_tiles, (const struct ew_resample *s))                                 \
    X(void,    resample_back,     (const struct ew_resample *s, int64_t begin, int64_t end))       \
    X(int64_t, permute_tiles,   (const struct ew_permute *p))                                      \
    X(void,    permute_run,     (const struct ew_permute *p, int64_t begin, int64_t end))
/* clang-format on */

#endif
