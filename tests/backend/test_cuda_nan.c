/* SPDX-License-Identifier: Apache-2.0 */
/* NaN and infinities in launchers of the CUDA module: what is not a number must not become one. */
#include "cuda_buffers.h"
#include "op/epilogue.h"

/* NaN stays NaN; infinities are what the operators say, where that is a number. */
static void activations(void)
{
    if (!gpu_open())
        return;
    for (int k = 0; k < EW_ACT_COUNT; k++) {
        const struct ew_cuda_act act = {k, 0.2f, 0.5f};
        const struct ew_epilogue_attr e = {.act = k, .lo = (double)act.lo, .hi = (double)act.hi};
        struct buf x = buf_new(EW_CUDA_F32, 4, 1), y = buf_new(EW_CUDA_F32, 4, 0);
        const float values[] = {NAN, INFINITY, -INFINITY, 0};
        memcpy(x.h, values, sizeof(values));
        buf_put(&x);
        const struct ew_cuda_chain p = {.n = 1,
                                        .dim = {1, 1, 1, 4},
                                        .a = x.d,
                                        .a_stride = {0, 0, 0, 1},
                                        .link = {{act.kind, act.lo, act.hi, NULL, {0}}},
                                        .y = y.d};
        EXPECT_LAUNCH(chain(gpu.q, &p));
        const float *got = buf_get(&y);
        for (int i = 0; i < 4; i++) {
            const double want = ew_act_apply(&e, (double)values[i]);
            const float v = got[i], limit = (float)want;
            if (isnan(values[i]) ? !isnan(v) : !isnan(want) && !(v >= limit && v <= limit))
                EW_FAIL("activation %d of %g is %g, must be %g", k, (double)values[i],
                        (double)got[i], want);
        }
        gpu_end();
    }
}

/* One infinity makes its channel or group nan; with a variance of zero it would become zeros behind
 * a ReLU. */
static void norms_of_infinity(void)
{
    if (!gpu_open())
        return;
    struct buf x = buf_new(EW_CUDA_F32, 32, 1), y = buf_new(EW_CUDA_F32, 32, 0),
               one = buf_new(EW_CUDA_F32, 4, 1), mean = buf_new(EW_CUDA_F32, 4, 1),
               kept = buf_new(EW_CUDA_F32, 8, 0);
    x.h[4] = INFINITY;
    buf_put(&x);
    const struct ew_cuda_norm batch = {.pixels = 8,
                                       .channels = 4,
                                       .batch_stats = 1,
                                       .act = {EW_CUDA_ACT_RELU, 0, 0},
                                       .x = x.d,
                                       .y = y.d,
                                       .scale = one.d,
                                       .bias = one.d,
                                       .mean = mean.d,
                                       .var = mean.d,
                                       .kept = kept.d,
                                       .scratch =
                                           device_bytes(NULL, ew_cuda_reduce_scratch(1, 8, 4, 2))};
    EXPECT_LAUNCH(norm(gpu.q, &batch));
    const float *got = buf_get(&y);
    for (int i = 0; i < 32; i++)
        EW_EXPECT_INT(isnan(got[i]) != 0, i % 4 == 0);
    const struct ew_cuda_group_norm group = {
        .outer = 8, .rows = 1, .inner = 1, .run = 4, .x = x.d, .scale = one.d, .y = y.d};
    EXPECT_LAUNCH(group_norm(gpu.q, &group));
    got = buf_get(&y);
    for (int i = 0; i < 32; i++)
        EW_EXPECT_INT(isnan(got[i]) != 0, i / 4 == 1);
    gpu_end();
}

EW_TEST_MAIN(EW_TEST(activations), EW_TEST(norms_of_infinity))
