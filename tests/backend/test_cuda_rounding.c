/* SPDX-License-Identifier: Apache-2.0 */
/* Quantisation-aware training on a CUDA device: bit-identical to the host, for weights and
 * activations. */
#include "cuda_buffers.h"
#include "op/quant.h"
#include "op/quant_weights.h"

/* ---- Weights ---- */

static struct ew_tensor host_tensor(const struct ew_shape *s, void *data)
{
    return (struct ew_tensor){.dtype = EW_F32, .shape = *s, .data = data};
}

static void expect_bits(struct buf *b, const float *want)
{
    EW_EXPECT(memcmp(buf_get(b), want, b->n * sizeof(*want)) == 0);
}

/* Weights, or their bias. */
static void check_values(const struct ew_shape *s, const struct ew_weight_rounding *r, bool biased,
                         int copy_type)
{
    const struct ew_weight_channels g = ew_weight_channels(s, r->axis);
    struct buf w = buf_new(EW_CUDA_F32, g.count * g.outer * g.inner, 0.3);
    struct buf bias = buf_new(EW_CUDA_F32, g.count, 1e5); /* some need a coarser scale */
    for (int64_t i = 0; i < g.inner; i++)
        w.h[i] = 0; /* a channel of zeros, if channels come first */
    buf_put(&w);
    struct buf *x = r->is_bias ? &bias : &w;
    const int64_t n = (int64_t)x->n;
    struct buf kept = buf_new(EW_CUDA_F32, n, 0), rounded = buf_new(EW_CUDA_F32, n, 0);
    struct buf copy = buf_new(copy_type, n, 0);
    const struct ew_tensor host_w = host_tensor(s, w.h);
    const struct ew_tensor host_bias = host_tensor(&(struct ew_shape){1, {g.count}}, bias.h);
    float *before = malloc((size_t)n * 4), *want = malloc((size_t)n * 4);
    memcpy(before, x->h, (size_t)n * 4);
    if (r->is_bias)
        ew_weight_round(&host_bias, &host_w, r, want);
    else
        ew_weight_round(&host_w, biased ? &host_bias : NULL, r, want);
    const struct ew_cuda_round p = {.is_bias = r->is_bias,
                                    .outer = g.outer,
                                    .inner = g.inner,
                                    .channels = (int)g.count,
                                    .w = w.d,
                                    .bias = biased || r->is_bias ? bias.d : NULL,
                                    .x_scale = r->x_scale,
                                    .pow2 = r->pow2,
                                    .position = r->position,
                                    .x = x->d,
                                    .kept = kept.d,
                                    .rounded = rounded.d,
                                    .copy = copy_type == EW_CUDA_F32 ? NULL : copy.d,
                                    .copy_type = copy_type};
    EXPECT_LAUNCH(round_weights(gpu.q, &p));
    expect_bits(x, want);
    expect_bits(&rounded, want);
    expect_bits(&kept, before);
    if (p.copy)
        for (int64_t i = 0; i < n && buf_get(&copy); i += n / 7 + 1)
            EW_EXPECT_INT(half_of(copy_type, copy.h[i]), half_of(copy_type, want[i]));
    for (int64_t i = 0; i < n; i++) {
        x->h[i] = want[i] + 0.01f;
        want[i] = before[i] + (x->h[i] - want[i]);
    }
    buf_put(x);
    EXPECT_LAUNCH(restore_weights(gpu.q, x->d, kept.d, rounded.d, n));
    expect_bits(x, want);
    free(before);
    free(want);
    gpu_end();
}

static void weights_round_as_on_the_host(void)
{
    static const struct ew_shape shapes[] = {
        {4, {24, 3, 3, 40}}, {4, {7, 1, 1, 1}}, {2, {120, 84}}, {2, {1000, 513}}};
    static const int types[] = {EW_CUDA_F32, EW_CUDA_F16, EW_CUDA_BF16};
    if (!gpu_open())
        return;
    for (size_t i = 0; i < EW_COUNT(shapes); i++)
        for (int k = 0; k < 8; k++) {
            const struct ew_weight_rounding r = {.axis = shapes[i].rank == 2 ? k % 2 : 0,
                                                 .x_scale = 0.013,
                                                 .is_bias = k >= 6,
                                                 .pow2 = k == 4 || k == 5,
                                                 .position = k + 2};
            check_values(&shapes[i], &r, k & 2, types[(i + (size_t)k) % 3]);
        }
}

/* ---- Activations ---- */

static void check_activations(int type, bool is_signed, bool add)
{
    enum { N = 3001 };
    const float scale = 0.0371f;
    const int zero = is_signed ? -9 : 13;
    const int8_t zero_byte = (int8_t)zero;
    const enum ew_dtype dtype = is_signed ? EW_S8 : EW_U8;
    struct buf x = buf_new(type, N, 4), y = buf_new(type, N, 0);
    struct buf dy = buf_new(type, N, 1), dx = buf_new(type, N, 1);
    struct ew_cuda_fake_quant p = {.type = type,
                                   .n = N,
                                   .q = {.scale = device_bytes(&scale, sizeof(scale)),
                                         .zero = device_bytes(&zero_byte, 1),
                                         .is_signed = is_signed},
                                   .x = x.d,
                                   .y = y.d};
    x.h[5] = NAN;
    for (int i = 0; i < 200; i++) /* ties */
        x.h[10 + i] = ((float)i - 100.5f) * scale;
    buf_put(&x);
    EXPECT_LAUNCH(fake_quant(gpu.q, &p));
    float *want = malloc(N * sizeof(*want));
    for (int i = 0; i < N; i++) {
        const double q = (double)(ew_quant_round((double)(x.h[i] / scale), zero, dtype) - zero);
        want[i] = (float)(q * (double)scale);
        want[i] = type == EW_CUDA_F32 ? want[i] : of_half(type, half_of(type, want[i]));
    }
    expect_bits(&y, want);
    const float lo = (float)((is_signed ? -128 : 0) - zero) * scale;
    const float hi = (float)((is_signed ? 127 : 255) - zero) * scale;
    for (int i = 0; i < N; i++) {
        const float d = x.h[i] > lo && x.h[i] < hi ? dy.h[i] : 0;
        want[i] = add ? dx.h[i] + d : d;
        want[i] = type == EW_CUDA_F32 ? want[i] : of_half(type, half_of(type, want[i]));
    }
    p.back = 1;
    p.add = add;
    p.dy = dy.d;
    p.y = dx.d;
    EXPECT_LAUNCH(fake_quant(gpu.q, &p));
    expect_bits(&dx, want);
    free(want);
    gpu_end();
}

static void activations_round_as_on_the_host(void)
{
    if (!gpu_open())
        return;
    for (int type = EW_CUDA_F32; type <= EW_CUDA_BF16; type++)
        for (int i = 0; i < 4; i++)
            check_activations(type, i & 1, i & 2);
}

EW_TEST_MAIN(EW_TEST(weights_round_as_on_the_host), EW_TEST(activations_round_as_on_the_host))
