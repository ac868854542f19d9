/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the kernel tests: random guarded arrays, and iteration over the instruction sets. */
#ifndef EW_KERNEL_TEST_H
#define EW_KERNEL_TEST_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "backend/cpu/isa.h"
#include "ew_test.h"

/* A small full-period generator, uniform in [-1, 1). */
static inline float test_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (float)((double)(*state >> 33) / 1073741824.0 - 1.0);
}

/* n random floats, with the guard page behind (odd seeds) or before them (even ones). */
static inline float *test_array(int64_t n, uint64_t seed)
{
    const size_t bytes = (size_t)n * sizeof(float);
    float *p = seed & 1 ? ew_guard_end(bytes, sizeof(float)) : ew_guard_start(bytes);
    uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;
    for (int64_t i = 0; i < n; i++)
        p[i] = test_random(&state);
    return p;
}

/* Patterns of bytes and weights; LARGEST and SMALLEST maximise the magnitude of the sums; SMALL:
 * mostly small values with some large ones. */
enum test_pattern { LARGEST, SMALLEST, EXTREMES, ANY, SMALL, PATTERNS };

static inline void test_bytes(enum test_pattern p, uint8_t *x, int64_t n_x, uint8_t *w, int64_t n_w)
{
    uint64_t state = 7;
    for (int64_t i = 0; i < n_x; i++) {
        const float r = test_random(&state);
        const float s = p == SMALL && i % 97 != 0 ? r * r * r : r;
        x[i] = p <= SMALLEST ? 255 : p == EXTREMES ? (r < 0 ? 0 : 255) : (uint8_t)(128 + 127 * s);
    }
    for (int64_t i = 0; i < n_w; i++) {
        const float r = test_random(&state);
        const int extreme = p == LARGEST ? 127 : p == SMALLEST || r < 0 ? -128 : 127;
        const float s = p == SMALL && i % 31 != 0 ? r * r * r : r;
        w[i] = (uint8_t)(p >= ANY ? (int)(127 * s) : extreme);
    }
}

/* Scratch as kernels require: 64-byte aligned, guard page behind. */
static inline void *test_scratch(size_t bytes)
{
    return ew_guard_end(bytes, 64);
}

static inline double *test_zeros(int64_t n)
{
    double *p = calloc((size_t)n + 1, sizeof(*p));
    if (!p)
        abort();
    return p;
}

/* The largest magnitude of an array. */
static inline double test_scale(const double *p, int64_t n)
{
    double scale = 0;
    for (int64_t i = 0; i < n; i++)
        scale = fmax(scale, fabs(p[i]));
    return scale;
}

/* Compares n floats with the reference.  `tol` is absolute, usually a fraction of the largest sum:
 * the error of a sum is relative to its terms, not to a result after cancellation. */
static inline bool test_close(const float *got, const double *want, int64_t n, double tol,
                              const char *what)
{
    double worst = 0;
    int64_t at = 0;
    for (int64_t i = 0; i < n; i++) {
        const double e = fabs((double)got[i] - want[i]);
        if (!(e <= worst)) { /* nan counts as the worst */
            worst = e;
            at = i;
            if (isnan(e))
                break;
        }
    }
    if (worst <= tol)
        return true;
    EW_FAIL("%s: [%lld] of %lld is %.9g, not %.9g: off by %.3g, %.3g allowed", what, (long long)at,
            (long long)n, (double)got[at], want[at], worst, tol);
    return false;
}

#endif
