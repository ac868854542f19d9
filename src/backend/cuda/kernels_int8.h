/* SPDX-License-Identifier: Apache-2.0 */
/* The part of the module's interface for 8-bit tensors.  Results are bit-identical to op/quant.h:
 * int32 sums that wrap around, then float32 operations without fused multiply-add.
 * Included by kernels.h only, after struct ew_cuda_window. */
#ifndef EW_BACKEND_CUDA_KERNELS_INT8_H
#define EW_BACKEND_CUDA_KERNELS_INT8_H

/* Quantisation of a tensor: value = (q - *zero) * *scale. */
struct ew_cuda_quant {
    const float *scale; /* NULL: the tensor is absent */
    const void *zero;   /* one byte; NULL: 0 */
    int is_signed;      /* int8, else uint8 */
};

/* Packs filters w [k, kd * kh * kw * c / groups] (transposed: [.., k]), biases and the ratios of
 * requantisation for ew_cuda_qconv. */
struct ew_cuda_qpack {
    struct ew_cuda_window g;
    int transposed;
    const int8_t *w;
    const int32_t *bias; /* [k], or NULL */
    const float *w_scale;
    int n_scales;                        /* 1 or k */
    struct ew_cuda_quant x, y, add, sum; /* y without scale: float32 output */
    void *packed;                        /* ew_cuda_qpacked_bytes() */
};

/* q = requantise(conv(x)); with `add`: q = requantise(q + add); then y = clamp(q), or
 * table[clamp(q)] if there is a table.  to_float: y = (float)sum * ratio. */
struct ew_cuda_qconv {
    struct ew_cuda_window g;
    int x_signed, y_signed, add_signed, sum_signed;
    int to_float;
    int lo, hi; /* clamp */
    const void *x, *add;
    const uint8_t *table;
    const void *packed;
    void *y;
};

/* y = clamp(requantise(a + b)), or of a * b, over dim[0] x ... x dim[3]. */
struct ew_cuda_qbinary {
    int multiply;
    int64_t dim[4], a_stride[4], b_stride[4];
    struct ew_cuda_quant a, b, y;
    int lo, hi;
    const void *x_a, *x_b;
    void *out;
};

/* Pools of bytes.  mean: sum of (x - x zero point) times x_scale / (elements * y_scale). */
struct ew_cuda_qpool {
    int mean; /* else max */
    int count_pad, pad_end_h, pad_end_w;
    struct ew_cuda_window g;
    struct ew_cuda_quant x, y; /* mean; max uses only x.is_signed */
    const void *from;
    void *to;
};

/* Quantises `type` to bytes, or dequantises (back), with one scale for the tensor. */
struct ew_cuda_quantize {
    int type;
    int back;
    int64_t n;
    struct ew_cuda_quant q;
    const void *x;
    void *y;
};

/* fake_quant: y = (saturate(round(x / scale) + zero) - zero) * scale; back (straight-through): y
 * (+)= dy where x is within the range of the integers. */
struct ew_cuda_fake_quant {
    int type;
    int back, add;
    int64_t n;
    struct ew_cuda_quant q;
    const void *x, *dy;
    void *y;
};

/* Rounds weights [outer, channels, inner], or their bias [channels], as op/quant_weights.h: kept =
 * x, x = rounded = the quantised value, dequantised. */
struct ew_cuda_round {
    int is_bias;
    int64_t outer, inner; /* of the weights */
    int channels;
    const float *w, *bias; /* before rounding; one of them is x; bias may be NULL */
    double x_scale;
    int pow2, position;
    float *x, *kept, *rounded;
    void *copy; /* copy of x in `copy_type`; NULL: none */
    int copy_type;
};

#define EW_CUDA_QDEPTH 64 /* filters are padded to a multiple of this depth */

static inline int ew_cuda_is_depthwise(const struct ew_cuda_window *g)
{
    return g->groups == g->c && g->k == g->c && g->c > 1;
}

static inline int ew_cuda_qdepth(const struct ew_cuda_window *g)
{
    const int depth = g->kh * g->kw * (g->c / g->groups);
    return ew_cuda_is_depthwise(g) ? depth
                                   : (depth + EW_CUDA_QDEPTH - 1) / EW_CUDA_QDEPTH * EW_CUDA_QDEPTH;
}

/* Byte offsets in the packed weights: ratios, biases, filters; the head is at 0. */
static inline size_t ew_cuda_qratios(void)
{
    return 256;
}

static inline size_t ew_cuda_qfilters(const struct ew_cuda_window *g)
{
    return ew_cuda_qratios() + ((size_t)g->k * 8 + 255) / 256 * 256;
}

static inline size_t ew_cuda_qpacked_bytes(const struct ew_cuda_window *g)
{
    return ew_cuda_qfilters(g) + ((size_t)g->k * (size_t)ew_cuda_qdepth(g) + 255) / 256 * 256;
}

#endif
