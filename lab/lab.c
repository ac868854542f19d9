/* SPDX-License-Identifier: Apache-2.0 */
/* lab [-r] [KERNEL [SHAPE]]: times each kernel relative to the peak of the same instruction set,
 * interleaved in the same run, with -r also its reference.  EW_ISA selects the instruction set.
 *
 * 8-bit kernels are compared with the peak of 8-bit products.
 * To reduce noise, times are thread CPU time and a round is peak, kernel, peak, kernel; the result
 * is the median of the rounds' ratios, and GFLOP/s the best round. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "lab.h"

#define ROUNDS   9
#define ROUND_NS 12e6 /* time of a kernel per round */

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

float *lab_array(size_t n)
{
    void *array = NULL;
    if (ew_aligned_new((n + 16) * sizeof(float), &array) != EW_OK) { /* huge pages, as in plans */
        fprintf(stderr, "lab: no memory for %zu floats\n", n);
        exit(1);
    }
    float *p = array;
    uint32_t state = 1;
    for (size_t i = 0; i < n + 16; i++) {
        state = state * 1664525u + 1013904223u;
        p[i] = (float)(state >> 8) / 8388608.0f - 1.0f;
    }
    return p;
}

/* Nanoseconds per flop at the peak. */
static double peak_ns(const struct ew_kernels *k, bool integer)
{
    static float sink = 0;
    static int32_t int_sink = 0;
    const double t = now_ns();
    const int64_t flops = integer ? k->int8_peak(20000, &int_sink) : k->peak(20000, &sink);
    return (now_ns() - t) / (double)flops;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double job_ns(const struct lab_job *job, int times)
{
    const double t = now_ns();
    for (int i = 0; i < times; i++)
        job->run(job->ctx);
    return (now_ns() - t) / times;
}

static void measure(const struct ew_kernels *k, const struct lab_experiment *e, int shape,
                    bool reference)
{
    struct lab_job job;
    e->setup(k, shape, &job);
    if (!job.run)
        return;
    job_ns(&job, 1);
    const double once = job_ns(&job, 1);
    const int times = once > ROUND_NS ? 1 : (int)(ROUND_NS / once) + 1;
    double share[ROUNDS], best = 1e30, peak = 1e30;
    for (int r = 0; r < ROUNDS; r++) {
        const double p = peak_ns(k, job.integer), t = job_ns(&job, times);
        const double q = peak_ns(k, job.integer);
        share[r] = job.flops * (p + q) / 2 / t;
        best = t < best ? t : best;
        peak = p < peak ? p : peak;
    }
    qsort(share, ROUNDS, sizeof(share[0]), by_value);
    printf("%-12s %-34s %10.1f us", e->kernel, e->shape(shape), best / 1e3);
    if (job.flops > 0)
        printf(" %7.1f %s/s %5.1f %% of %.0f", job.flops / best, job.integer ? "Gop" : "GFLOP",
               100 * share[ROUNDS / 2], 1 / peak);
    if (job.bytes > 0)
        printf(" %7.1f GB/s", job.bytes / best);
    if (reference && job.reference) {
        const double t = now_ns();
        job.reference(job.ctx);
        printf(" %8.1f x reference", (now_ns() - t) / best);
    }
    printf("\n");
    fflush(stdout);
}

static const struct lab_experiment *const experiments[] = {lab_conv, lab_train, lab_int,
                                                           lab_memory_bound};

int main(int argc, char **argv)
{
    const bool reference = argc > 1 && strcmp(argv[1], "-r") == 0;
    argc -= reference;
    argv += reference;
    const struct ew_kernels *k;
    if (ew_isa_pick(&k)) {
        fprintf(stderr, "lab: %s\n", ew_error_message());
        return 1;
    }
    printf("instruction set %s\n", k->isa);
    for (size_t i = 0; i < sizeof(experiments) / sizeof(experiments[0]); i++)
        for (const struct lab_experiment *e = experiments[i]; e->kernel; e++)
            for (int s = 0; s < e->shapes; s++)
                if ((argc < 2 || strcmp(argv[1], e->kernel) == 0) &&
                    (argc < 3 || strstr(e->shape(s), argv[2])))
                    measure(k, e, s, reference);
    return 0;
}
