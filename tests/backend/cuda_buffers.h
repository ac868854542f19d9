/* SPDX-License-Identifier: Apache-2.0 */
/* Paired host and device buffers for tests of CUDA launchers. */
#ifndef EW_CUDA_BUFFERS_H
#define EW_CUDA_BUFFERS_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cuda/cuda_module.h"
#include "base/rng.h"
#include "ew_test.h"
#include "graph/tensor.h"

#define MOST_BUFFERS 64
#define WORKSPACE    ((size_t)64 << 20)

/* The device of this program, opened at first use. */
struct gpu {
    const struct ew_cuda_api *cu;
    struct ew_cuda_queue *q;
    void *buffers[MOST_BUFFERS * 2]; /* of the current case: device and host alternate */
    int n;
    uint64_t seed;
};

static struct gpu gpu;

#define CUDA(call) (gpu.cu->call)
/* The launch must succeed. */
#define EXPECT_LAUNCH(call) expect_status(CUDA(call), #call, __LINE__)

static inline bool expect_status(int status, const char *what, int line)
{
    if (status)
        ew_test_fail("cuda", line, "%s: %s", what, gpu.cu->error_text(status));
    return status == 0;
}

/* False, after skipping the case, if there is no device. */
static inline bool gpu_open(void)
{
    if (gpu.q)
        return true;
    if (ew_cuda_open(&gpu.cu) != EW_OK) {
        ew_test_skip("%s", ew_error_message());
        return false;
    }
    return expect_status(gpu.cu->queue_open(1, WORKSPACE, WORKSPACE, &gpu.q), "queue_open",
                         __LINE__);
}

/* Elements of a storage type, and their values as floats. */
struct buf {
    int type;
    size_t n;
    float *h; /* values */
    void *d;  /* device */
};

static inline size_t type_bytes(int type)
{
    return type == EW_CUDA_F32 ? 4 : 2;
}

static inline uint16_t half_of(int type, float v)
{
    return type == EW_CUDA_F16 ? ew_f32_to_f16(v) : ew_f32_to_bf16(v);
}

static inline float of_half(int type, uint16_t v)
{
    return type == EW_CUDA_F16 ? ew_f16_to_f32(v) : ew_bf16_to_f32(v);
}

/* Copies host values to the device, rounding them to the type. */
static inline void buf_put(struct buf *b)
{
    uint16_t *half = malloc(b->n * 2 + 1);
    for (size_t i = 0; b->type != EW_CUDA_F32 && i < b->n; i++) {
        half[i] = half_of(b->type, b->h[i]);
        b->h[i] = of_half(b->type, half[i]);
    }
    EXPECT_LAUNCH(copy(gpu.q, b->d, b->type == EW_CUDA_F32 ? (void *)b->h : (void *)half,
                       b->n * type_bytes(b->type), EW_CUDA_TO_DEVICE));
    EXPECT_LAUNCH(queue_wait(gpu.q));
    free(half);
}

/* Copies device values to the host. */
static inline float *buf_get(struct buf *b)
{
    uint16_t *half = malloc(b->n * 2 + 1);
    EXPECT_LAUNCH(copy(gpu.q, b->type == EW_CUDA_F32 ? (void *)b->h : (void *)half, b->d,
                       b->n * type_bytes(b->type), EW_CUDA_TO_HOST));
    EXPECT_LAUNCH(queue_wait(gpu.q));
    for (size_t i = 0; b->type != EW_CUDA_F32 && i < b->n; i++)
        b->h[i] = of_half(b->type, half[i]);
    free(half);
    return b->h;
}

/* Normally distributed values times `scale`; scale 0: nan, to detect outputs that are not
 * written. */
static inline struct buf buf_new(int type, int64_t n, double scale)
{
    struct buf b = {.type = type, .n = (size_t)n, .h = malloc((size_t)n * 4 + 4)};
    EXPECT_LAUNCH(alloc(b.n * 4, &b.d));
    gpu.buffers[gpu.n++] = b.d;
    gpu.buffers[gpu.n++] = b.h;
    gpu.seed++;
    for (int64_t i = 0; i < n; i++)
        b.h[i] = scale > 0 ? (float)(scale * ew_rng_normal(gpu.seed, 7, (uint64_t)i)) : NAN;
    buf_put(&b);
    return b;
}

static inline void *device_bytes(const void *from, size_t bytes)
{
    void *d = NULL;
    EXPECT_LAUNCH(alloc(bytes, &d));
    gpu.buffers[gpu.n++] = d;
    gpu.buffers[gpu.n++] = NULL;
    if (from)
        EXPECT_LAUNCH(copy(gpu.q, d, from, bytes, EW_CUDA_TO_DEVICE));
    EXPECT_LAUNCH(queue_wait(gpu.q));
    return d;
}

static inline void gpu_end(void)
{
    for (int i = 0; i < gpu.n; i += 2) {
        EXPECT_LAUNCH(release(gpu.buffers[i]));
        free(gpu.buffers[i + 1]);
    }
    gpu.n = 0;
}

/* Tolerance for results of a type: sums are float32, storage rounds. */
static inline double tolerance(int type)
{
    return type == EW_CUDA_F32 ? 2e-5 : type == EW_CUDA_F16 ? 2e-3 : 1.6e-2;
}

/* The device's values of b must equal `want` within `times` the type's tolerance, relative to the
 * largest. */
static inline void expect_buf(struct buf *b, const double *want, double times, int line)
{
    double most = 1e-30, worst = 0;
    size_t at = 0;
    const float *got = buf_get(b);
    for (size_t i = 0; i < b->n; i++)
        most = fabs(want[i]) > most ? fabs(want[i]) : most;
    for (size_t i = 0; i < b->n; i++) {
        const double off = fabs((double)got[i] - want[i]);
        if (!(off <= worst)) {
            worst = isnan(off) ? HUGE_VAL : off;
            at = i;
        }
    }
    if (!(worst <= times * tolerance(b->type) * most))
        ew_test_fail("cuda", line, "element %zu of %zu is %g, must be %g (largest %g, type %d)", at,
                     b->n, (double)got[at], want[at], most, b->type);
    else
        ew_expect(true, "close", "cuda", line);
}

#define EXPECT_BUF(b, want, times) expect_buf((b), (want), (times), __LINE__)

#endif
