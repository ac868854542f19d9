/* SPDX-License-Identifier: Apache-2.0 */
/* The part of the module's boundary for 8-bit tensors.  Their arithmetic is op/quant.h's, to the
 * bit: int32 sums that wrap, then float32 steps of which none is fused with another.
 * Included by kernels.h alone, after struct ew_cuda_window. */
#ifndef EW_BACKEND_CUDA_KERNELS_INT8_H
#define EW_BACKEND_CUDA_KERNELS_INT8_H

/* How a tensor is quantised: value = (q - *zero) * *scale. */
struct ew_cuda_quant {
    const float *scale; /* NULL: it is not there */
    const void *zero;   /* one byte; NULL: 0 */
    int is_signed;      /* int8, else uint8 */
};

/* Filters w [k, kd * kh * kw * c / groups] (transposed: [.., k]) and all that outputs are scaled
 * by, in the form that ew_cuda_qconv reads. */
struct ew_cuda_qpack {
    struct ew_cuda_window g;
    int transposed;
    const int8_t *w;
    const int32_t *bias; /* [k], or NULL */
    const float *w_scale;
    int n_scales;                        /* 1 or k */
    struct ew_cuda_quant x, y, add, sum; /* y: none where the output is float32 */
    void *packed;                        /* ew_cuda_qpacked_bytes() */
};

/* y = clamp(requantise(conv(x))), or that quantised, added to `add` and quantised again, then
 * replaced by its entry of the table; or (float)sum * ratio. */
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

/* y = clamp(a + b) or clamp(a * b), over dim[0] x ... x dim[3], quantised again. */
struct ew_cuda_qbinary {
    int multiply;
    int64_t dim[4], a_stride[4], b_stride[4];
    struct ew_cuda_quant a, b, y;
    int lo, hi;
    const void *x_a, *x_b;
    void *out;
};

/* Pools of bytes.  mean: x_scale / (elements * y_scale) times the sum of x less its zero point. */
struct ew_cuda_qpool {
    int mean; /* else the maximum */
    int count_pad, pad_end_h, pad_end_w;
    struct ew_cuda_window g;
    struct ew_cuda_quant x, y; /* of a mean; a maximum looks at x.is_signed alone */
    const void *from;
    void *to;
};

/* From `type` to bytes (back: the other way), with one scale. */
struct ew_cuda_quantize {
    int type;
    int back;
    int64_t n;
    struct ew_cuda_quant q;
    const void *x;
    void *y;
};

/* fake_quant: y = (saturate(round(x / scale) + zero) - zero) * scale; back: y (+)= dy where x is
 * within what the integers stand for. */
struct ew_cuda_fake_quant {
    int type;
    int back, add;
    int64_t n;
    struct ew_cuda_quant q;
    const void *x, *dy;
    void *y;
};

/* Weights of [outer, channels, inner], or their bias of [channels], as op/quant_weights.h rounds
 * them: kept = x, x = rounded = what the integers stand for. */
struct ew_cuda_round {
    int is_bias;
    int64_t outer, inner; /* of the weights */
    int channels;
    const float *w, *bias; /* not rounded; one of them is x; bias: may be NULL */
    double x_scale;
    int pow2, position;
    float *x, *kept, *rounded;
    void *copy; /* x once more in `copy_type`; NULL: none */
    int copy_type;
};

#define EW_CUDA_QDEPTH 64 /* filters are padded to a multiple of it */

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

/* Where ratios, biases and filters begin in what is packed; 0 is the head. */
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
