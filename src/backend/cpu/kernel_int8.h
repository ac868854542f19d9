/* SPDX-License-Identifier: Apache-2.0 */
/* The 8-bit kernels of the CPU, on plain pointers; kernel.h has the rules for all kernels.
 *
 * Kernels treat all tensors as uint8.  An int8 tensor is read as it is with `flip` = 0x80: byte ^
 * flip is its value + 128, and its zero point is stored + 128 as well.  Requantisation is bitwise
 * that of op/quant.h. */
#ifndef EW_BACKEND_CPU_KERNEL_INT8_H
#define EW_BACKEND_CPU_KERNEL_INT8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ew_conv_shape;

/* An 8-bit tensor's type and zero point. */
struct ew_qbyte {
    uint8_t flip;
    int32_t zero; /* 0 to 255 */
};

/* Epilogue of an int32 sum s, with t = (float)s * ratio:
 *   no add:   q = clamp(round(t) + y.zero)
 *   with add: m = saturate(round(t) + mid.zero) - mid.zero,
 *             q = clamp(round(m * mid_ratio + (add - add_zero) * add_ratio) + y.zero)
 *   stored:   (table ? table[q ^ y.flip] : q ^ y.flip), or t where to_float is set */
struct ew_qend {
    bool to_float;
    bool ratios_below_1; /* all ratios are below 1, so that t stays below 2^31 */
    struct ew_qbyte y, mid, of_add;
    int32_t lo, hi; /* of q, 0 to 255 */
    const uint8_t *add;
    float mid_ratio, add_ratio;
    const uint8_t *table; /* 256 bytes; NULL: none */
};

/* A convolution or a dense layer.  `packed` is made by the same instruction set's
 * int8_gemm_pack. */
struct ew_qconv {
    const struct ew_conv_shape *shape;
    const uint8_t *x;
    struct ew_qbyte of_x;
    const void *packed;
    void *y; /* bytes; floats if end.to_float */
    struct ew_qend end;
};

/* Input of int8_gemm_pack.  Filters are int8, or uint8 with zero point 128 (`flip` 0x80). */
struct ew_qconv_weights {
    const uint8_t *w; /* [O, k..., I / groups]; [I, O] if by_row (one tap, one group) */
    bool by_row;
    uint8_t flip;
    struct ew_qbyte of_x;
    const int32_t *bias; /* [O]; NULL: none */
    const float *ratio;  /* [O] */
};

/* ---- Element by element ---------------------------------------------------------------------- */

/* y = clamp(round(a * a_ratio + b * b_ratio) + zero) with zero points subtracted from a and b; with
 * `times` y = clamp(round(a * b * a_ratio) + zero).  With channels a is [batch, rows, channels] and
 * b [batch, 1, channels]; else both have one shape. */
struct ew_qpair {
    const uint8_t *a, *b;
    uint8_t *y;
    struct ew_qbyte of_a, of_b, of_y;
    float a_ratio, b_ratio;
    int32_t lo, hi;
    bool times;
    int64_t rows, channels; /* channels 0: equal shapes */
};

/* y = table[x] */
struct ew_qtable {
    const uint8_t *x, *table;
    uint8_t *y;
};

/* Quantize: bytes = saturate(round(real / scale) + zero).  Dequantize: real = (bytes - zero) *
 * scale. */
struct ew_qfloat {
    float *real;
    uint8_t *bytes;
    float scale;
    struct ew_qbyte of;
};

/* Pooling: the maximum, or the average round((float)sum * ratio) + zero with ratio = scale_x /
 * (scale_y * n), where n counts the window's elements inside the input, or all of them with
 * count_pads. */
struct ew_qpool {
    const struct ew_conv_shape *shape; /* groups = cin = cout */
    bool max, count_pads;
    const uint8_t *x;
    uint8_t *y;
    struct ew_qbyte of_x, of_y;
    float scale_x, scale_y;
};

/* Rows of n bytes: out[row * out_step + i] = in[row * in_step + i]. */
struct ew_qrows {
    int64_t n, in_step, out_step;
    const uint8_t *in;
    uint8_t *out;
};

/* Channel shuffle: transposes each row, [groups, each] to [each, groups]. */
struct ew_qshuffle {
    int64_t groups, each;
    const uint8_t *in;
    uint8_t *out;
};

/* Transposes each of `batch` matrices [rows, columns]. */
struct ew_qtranspose {
    int64_t batch, rows, columns;
    const uint8_t *in;
    uint8_t *out;
};

/* clang-format off */
#define EW_INT8_KERNEL_MAP(X)                                                                          \
    /* Runs `steps` iterations on registers; returns the number of operations (a MAC is two). */   \
    X(int64_t, int8_peak,          (int64_t steps, int32_t *sink))                                 \
    /* As conv_* in kernel.h; pack_size is in bytes. */                                            \
    X(size_t,  int8_gemm_pack_size, (const struct ew_conv_shape *s))                               \
    X(int64_t, int8_gemm_pack_tiles, (const struct ew_conv_shape *s))                              \
    X(void,    int8_gemm_pack,     (const struct ew_conv_shape *s, const struct ew_qconv_weights *w, void *packed, int64_t begin, int64_t end)) \
    X(int64_t, int8_gemm_tiles,    (const struct ew_conv_shape *s))                                \
    X(size_t,  int8_gemm_scratch,  (const struct ew_conv_shape *s))                                \
    X(void,    int8_gemm_run,      (const struct ew_qconv *c, int64_t begin, int64_t end, void *scratch)) \
    /* Depthwise: groups = cin = cout. */                                                          \
    X(bool,    int8_depthwise_fits,    (const struct ew_conv_shape *s))                            \
    X(size_t,  int8_depthwise_pack_size, (const struct ew_conv_shape *s))                          \
    X(void,    int8_depthwise_pack,    (const struct ew_conv_shape *s, const struct ew_qconv_weights *w, void *packed)) \
    X(int64_t, int8_depthwise_tiles,   (const struct ew_conv_shape *s))                            \
    X(size_t,  int8_depthwise_scratch, (const struct ew_conv_shape *s))                            \
    X(void,    int8_depthwise_run,     (const struct ew_qconv *c, int64_t begin, int64_t end, void *scratch)) \
    /* Depthwise by columns of the window; x is uint8, epilogue without addition or floats, ratios \
     * below 1. */                                                                                 \
    X(bool,    int8_depthwise_column_fits,   (const struct ew_conv_shape *s))                      \
    X(size_t,  int8_depthwise_column_pack_size, (const struct ew_conv_shape *s))                   \
    X(void,    int8_depthwise_column_pack,   (const struct ew_conv_shape *s, const struct ew_qconv_weights *w, void *packed)) \
    X(int64_t, int8_depthwise_column_tiles,  (const struct ew_conv_shape *s))                      \
    X(size_t,  int8_depthwise_column_scratch, (const struct ew_conv_shape *s))                     \
    X(void,    int8_depthwise_column_run,    (const struct ew_qconv *c, int64_t begin, int64_t end, void *scratch)) \
    /* Grouped, few channels a group; x is uint8. */                                               \
    X(bool,    int8_grouped_fits,    (const struct ew_conv_shape *s))                              \
    X(size_t,  int8_grouped_pack_size, (const struct ew_conv_shape *s))                            \
    X(void,    int8_grouped_pack,    (const struct ew_conv_shape *s, const struct ew_qconv_weights *w, void *packed)) \
    X(int64_t, int8_grouped_tiles,   (const struct ew_conv_shape *s))                              \
    X(size_t,  int8_grouped_scratch, (const struct ew_conv_shape *s))                              \
    X(void,    int8_grouped_run,     (const struct ew_qconv *c, int64_t begin, int64_t end, void *scratch)) \
    /* Winograd of 3x3 filters with stride 1; pays: fewer estimated cycles than int8_gemm. */      \
    X(bool,    int8_winograd_fits,     (const struct ew_conv_shape *s))                            \
    X(double,  int8_winograd_cycles, (const struct ew_conv_shape *s)) /* estimated, on one core */ \
    X(double,  int8_gemm_cycles, (const struct ew_conv_shape *s)) /* only for 3x3 with stride 1 */ \
    X(bool,    int8_winograd_pays,     (const struct ew_conv_shape *s))                            \
    X(size_t,  int8_winograd_pack_size, (const struct ew_conv_shape *s))                           \
    X(int64_t, int8_winograd_pack_tiles, (const struct ew_conv_shape *s))                          \
    X(void,    int8_winograd_pack,     (const struct ew_conv_shape *s, const struct ew_qconv_weights *w, void *packed, int64_t begin, int64_t end)) \
    X(int64_t, int8_winograd_tiles,    (const struct ew_conv_shape *s))                            \
    X(size_t,  int8_winograd_scratch,  (const struct ew_conv_shape *s))                            \
    X(void,    int8_winograd_run,      (const struct ew_qconv *c, int64_t begin, int64_t end, void *scratch)) \
    /* Tiles are rows of outputs. */                                                               \
    X(int64_t, int8_pool_tiles,    (const struct ew_conv_shape *s))                                \
    X(void,    int8_pool_run,      (const struct ew_qpool *p, int64_t begin, int64_t end))         \
    /* [begin, end) are elements, or rows if the struct has channels. */                           \
    X(void,    int8_pair_run,      (const struct ew_qpair *q, int64_t begin, int64_t end))         \
    X(void,    int8_table_run,     (const struct ew_qtable *t, int64_t begin, int64_t end))        \
    X(void,    quantize_run,   (const struct ew_qfloat *f, int64_t begin, int64_t end))            \
    X(void,    dequantize_run, (const struct ew_qfloat *f, int64_t begin, int64_t end))            \
    /* [begin, end) are rows. */                                                                   \
    X(void,    int8_copy_rows,      (const struct ew_qrows *r, int64_t begin, int64_t end))        \
    X(void,    int8_shuffle_run,   (const struct ew_qshuffle *s, int64_t begin, int64_t end))      \
    X(int64_t, int8_transpose_tiles, (const struct ew_qtranspose *t))                              \
    X(void,    int8_transpose_run, (const struct ew_qtranspose *t, int64_t begin, int64_t end))
/* clang-format on */

#endif
