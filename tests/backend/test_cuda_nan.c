/* SPDX-License-Identifier: Apache-2.0 */
/* NaN and infinities in launchers of the CUDA module: what is not a number must not become one. */
#include "cuda_buffers.h"
#include "op/epilogue.h"

/* As the operators say. */
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
            if (isnan(want) ? !isnan(v) : !(v >= limit && v <= limit))
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

/* A class is left out by a score of -INFINITY: the loss of the others is finite. */
static void classes_left_out(void)
{
    if (!gpu_open())
        return;
    struct buf x = buf_new(EW_CUDA_F32, 40, 1), dx = buf_new(EW_CUDA_F32, 40, 0),
               loss = buf_new(EW_CUDA_F32, 1, 0);
    const int32_t labels[] = {1, 2, 0, 7};
    double sum[4] = {0}, want = 0, slopes[40];
    for (int i = 0; i < 40; i++) {
        x.h[i] = i % 10 == 5 ? -INFINITY : x.h[i];
        sum[i / 10] += exp((double)x.h[i]);
    }
    buf_put(&x);
    for (int i = 0; i < 4; i++)
        want += (log(sum[i]) - (double)x.h[i * 10 + labels[i]]) / 4;
    for (int i = 0; i < 40; i++)
        slopes[i] = (exp((double)x.h[i]) / sum[i / 10] - (i % 10 == labels[i / 10])) / 4;
    const struct ew_cuda_loss p = {.label_bytes = 4,
                                   .mean = 1,
                                   .samples = 4,
                                   .classes = 10,
                                   .ignore = -100,
                                   .x = x.d,
                                   .labels = device_bytes(labels, sizeof(labels)),
                                   .loss = loss.d,
                                   .dx = dx.d,
                                   .scratch = device_bytes(NULL, 5 * sizeof(float))};
    EXPECT_LAUNCH(loss(gpu.q, &p));
    EXPECT_BUF(&loss, &want, 1);
    EXPECT_BUF(&dx, slopes, 1);
    gpu_end();
}

EW_TEST_MAIN(EW_TEST(activations), EW_TEST(norms_of_infinity), EW_TEST(classes_left_out))
