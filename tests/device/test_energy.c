/* SPDX-License-Identifier: Apache-2.0 */
/* Energy of traces with known integrals, within the stated bound; the sampler and its cost. */
#include "device/energy.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/rng.h"
#include "device/sampler.h"
#include "ew_test.h"

#define TENTH (EW_NS_PER_S / 10)

static const struct ew_sample_value none = {0, EW_ABSENT_NO_SENSOR};

/* ---- Traces ---------------------------------------------------------------------------------- */

/* Power at time t in seconds, and its integral from 0. */
struct trace {
    const char *name;
    double (*power)(double t);
    double (*integral)(double t);
};

static double constant(double t)
{
    return 5;
}
static double constant_j(double t)
{
    return 5 * t;
}
static double ramp(double t)
{
    return 2 + 0.5 * t;
}
static double ramp_j(double t)
{
    return 2 * t + 0.25 * t * t;
}
static double wave(double t)
{
    return 10 + 4 * sin(2 * t);
}
static double wave_j(double t)
{
    return 10 * t + 2 * (1 - cos(2 * t));
}
/* 3 W, and 12 W in the second half of every second. */
static double steps(double t)
{
    return t - floor(t) < 0.5 ? 3 : 12;
}
static double steps_j(double t)
{
    const double whole = floor(t), part = t - whole;
    return whole * 7.5 + (part < 0.5 ? 3 * part : 1.5 + 12 * (part - 0.5));
}

static const struct trace traces[] = {{"constant", constant, constant_j},
                                      {"ramp", ramp, ramp_j},
                                      {"wave", wave, wave_j},
                                      {"steps", steps, steps_j}};

/* Sampling parameters. */
struct way {
    const char *name;
    double interval_s, jitter_s; /* maximum deviation, either way */
    double drop;                 /* fraction of absent samples */
    double gap_from, gap_to;     /* no samples in this interval */
    double step_w;               /* the sensor's resolution, to which values are rounded */
};

static const struct way ways[] = {
    {"10 Hz", 0.1, 0, 0, 0, 0, 0},          {"jitter", 0.1, 0.04, 0, 0, 0, 0},
    {"dropped", 0.1, 0.02, 0.3, 0, 0, 0},   {"gap", 0.1, 0, 0, 7.33, 9.1, 0},
    {"coarse", 0.1, 0.01, 0, 0, 0, 0.4},    {"slow", 1.0, 0.1, 0, 0, 0, 0.05},
    {"all", 0.1, 0.04, 0.2, 4.2, 5.9, 0.15}};

static struct ew_energy sample(const struct trace *tr, const struct way *w, double from, double to,
                               uint64_t seed)
{
    struct ew_energy_sum e;
    struct ew_rng rng = {.seed = seed};
    ew_energy_begin(&e, (int64_t)(from * 1e9), (int64_t)(w->interval_s * 1e9), w->step_w);
    ew_energy_stop(&e, (int64_t)(to * 1e9));
    const int n = (int)ceil((to + 0.03 - from) / w->interval_s + 3);
    for (int i = 0; i < n; i++) {
        const double t = from - 0.03 + i * w->interval_s;
        const double at = t + w->jitter_s * (2 * ew_rng_next_uniform(&rng) - 1);
        double p = tr->power(at);
        if (w->step_w > 0)
            p = w->step_w * round(p / w->step_w);
        const bool lost = ew_rng_next_uniform(&rng) < w->drop;
        if (at > w->gap_from && at < w->gap_to)
            continue;
        ew_energy_add(&e, (int64_t)(at * 1e9),
                      lost ? ew_sample_value_absent(EW_ABSENT_NOT_READY) : ew_sample_value_of(p),
                      none);
    }
    return ew_energy_result(&e);
}

static void known_integrals(void)
{
    for (size_t i = 0; i < EW_COUNT(traces); i++)
        for (size_t k = 0; k < EW_COUNT(ways); k++)
            for (uint64_t seed = 1; seed <= 20; seed++) {
                /* Steps of half a second, sampled once a second, are not covered by the bound. */
                if (traces[i].power == steps && ways[k].interval_s > 0.5)
                    continue;
                const double from = 0.517, to = 12.803;
                const struct ew_energy r = sample(&traces[i], &ways[k], from, to, seed);
                const double truth = traces[i].integral(to) - traces[i].integral(from);
                if (r.absent != EW_ABSENT_NOT || fabs(r.joules - truth) > r.error_j + 1e-6)
                    EW_FAIL("%s, %s: %g J +- %g, truth %g", traces[i].name, ways[k].name, r.joules,
                            r.error_j, truth);
                if (seed == 1)
                    printf("  %-9s %-8s %8.3f J, truth %8.3f, off %6.3f, bound %6.3f\n",
                           traces[i].name, ways[k].name, r.joules, truth, r.joules - truth,
                           r.error_j);
            }
}

/* The bound must also be tight in some case. */
static void bounds_are_not_idle(void)
{
    const struct ew_energy flat = sample(&traces[0], &ways[0], 1, 11, 1);
    EW_EXPECT_NEAR(flat.joules, 50, 1e-9);
    EW_EXPECT_NEAR(flat.error_j, 0, 1e-9);
    const struct ew_energy line = sample(&traces[1], &ways[0], 1, 11, 1);
    EW_EXPECT_NEAR(line.joules, ramp_j(11) - ramp_j(1), 1e-6);
    EW_EXPECT(line.error_j < 0.01 * line.joules);
    const struct ew_energy w = sample(&traces[2], &ways[0], 0, 60, 1);
    EW_EXPECT(w.error_j < 0.05 * w.joules);
    EW_EXPECT_INT(w.samples, 600);
}

static void ends_and_absence(void)
{
    struct ew_energy_sum e;
    /* No samples: absent with the sensor's reason, not 0. */
    ew_energy_begin(&e, 0, TENTH, 0);
    ew_energy_add(&e, TENTH, ew_sample_value_absent(EW_ABSENT_NO_PERMISSION), none);
    ew_energy_stop(&e, EW_NS_PER_S);
    struct ew_energy r = ew_energy_result(&e);
    EW_EXPECT_INT(r.absent, EW_ABSENT_NO_PERMISSION);
    EW_EXPECT_INT(r.missing, 1);
    /* A single sample in the middle is extrapolated to both ends. */
    ew_energy_begin(&e, 0, TENTH, 0);
    ew_energy_add(&e, EW_NS_PER_S / 2, ew_sample_value_of(4), none);
    ew_energy_stop(&e, EW_NS_PER_S);
    r = ew_energy_result(&e);
    EW_EXPECT_NEAR(r.joules, 4, 1e-12);
    EW_EXPECT_NEAR(r.held_s, 1, 1e-12);
    /* Regression: a sensor that was lost after a second of ten gave all ten, with an error of 0. */
    ew_energy_begin(&e, 0, TENTH, 0);
    for (int i = 0; i <= 100; i++)
        ew_energy_add(&e, i * TENTH,
                      i < 10 ? ew_sample_value_of(4) : ew_sample_value_absent(EW_ABSENT_LOST),
                      none);
    ew_energy_stop(&e, 10 * EW_NS_PER_S);
    EW_EXPECT_INT(ew_energy_result(&e).absent, EW_ABSENT_LOST);
    /* A slow meter's readings are absent between its lines. */
    ew_energy_begin(&e, 0, TENTH, 0);
    for (int i = 0; i <= 155; i++)
        ew_energy_add(&e, i * TENTH,
                      i % 60 == 1 ? ew_sample_value_of(4) : ew_sample_value_absent(EW_ABSENT_STALE),
                      none);
    ew_energy_stop(&e, 15 * EW_NS_PER_S);
    EW_EXPECT_NEAR(ew_energy_result(&e).joules, 60, 1e-9);
    /* An interval between two samples is interpolated. */
    ew_energy_begin(&e, TENTH, EW_NS_PER_S, 0);
    ew_energy_add(&e, 0, ew_sample_value_of(0), none);
    ew_energy_stop(&e, 2 * TENTH);
    ew_energy_add(&e, EW_NS_PER_S, ew_sample_value_of(10), none);
    r = ew_energy_result(&e);
    EW_EXPECT_NEAR(r.joules, 0.1 * 1.5, 1e-12);
    EW_EXPECT_NEAR(r.held_s, 0, 0);
}

/* ---- Counters -------------------------------------------------------------------------------- */

static struct ew_energy count(double scale, bool falls)
{
    struct ew_energy_sum e;
    ew_energy_begin(&e, EW_NS_PER_S, TENTH, 0);
    ew_energy_stop(&e, 3 * EW_NS_PER_S);
    for (int i = 0; i <= 40; i++) {
        const double t = 0.07 + 0.1 * i;
        double j = 1e6 + wave_j(t);
        if (falls && i == 20)
            j -= 1000;
        ew_energy_add(&e, (int64_t)(t * 1e9), ew_sample_value_of(scale * wave(t)),
                      ew_sample_value_of(j));
    }
    return ew_energy_result(&e);
}

static void counters_are_preferred_and_checked(void)
{
    const double truth = wave_j(3) - wave_j(1);
    struct ew_energy r = count(1, false);
    EW_EXPECT(r.counted && !r.disagree);
    EW_EXPECT(fabs(r.joules - truth) <= r.error_j);
    EW_EXPECT(fabs(r.integrated_j - truth) < 0.1);
    r = count(1.5, false); /* the power sensor is wrong */
    EW_EXPECT(r.counted && r.disagree);
    EW_EXPECT(fabs(r.joules - truth) <= r.error_j);
    r = count(1, true); /* the counter was reset */
    EW_EXPECT(!r.counted);
    EW_EXPECT(fabs(r.joules - truth) <= r.error_j);
}

/* Regression: a stuck counter was used: 0 J +- 0 J beside samples of 80 W. */
static void counter_that_stands_still(void)
{
    static const double power[] = {80, 0};
    for (size_t k = 0; k < EW_COUNT(power); k++) {
        struct ew_energy_sum e;
        ew_energy_begin(&e, EW_NS_PER_S, TENTH, 0);
        ew_energy_stop(&e, 2 * EW_NS_PER_S);
        for (int i = 9; i < 22; i++)
            ew_energy_add(&e, i * TENTH, ew_sample_value_of(power[k]), ew_sample_value_of(8482));
        const struct ew_energy r = ew_energy_result(&e);
        EW_EXPECT(!r.counted && !r.disagree);
        EW_EXPECT_INT(r.absent, power[k] > 0 ? EW_ABSENT_NOT : EW_ABSENT_STILL);
        EW_EXPECT_NEAR(r.joules, power[k], 1e-9);
    }
}

/* ---- The sampler ----------------------------------------------------------------------------- */

static void sampler_keeps_time(void)
{
    struct ew_board *b = NULL;
    struct ew_sampler *s = NULL;
    const struct ew_board_opts opts = {.root = "tests/fixtures/boards/agx-orin-jp6"};
    if (!EW_EXPECT_OK(ew_board_open(&opts, &b)))
        return;
    struct ew_sample_value *values = calloc((size_t)b->n_channels, sizeof(*values));
    EW_EXPECT_OK(ew_sampler_start(b, TENTH, 0, &s));
    const int64_t begin = ew_clock_ns();
    struct ew_energy_sum e;
    ew_energy_begin(&e, begin, TENTH, b->channels[b->total.power].resolution);
    nanosleep(&(struct timespec){.tv_sec = 2, .tv_nsec = 30000000}, NULL);
    ew_energy_stop(&e, ew_clock_ns());
    ew_sampler_stop(s);
    int64_t t, last = 0;
    int frames = 0;
    while (ew_sampler_next(s, &t, values)) {
        EW_EXPECT(t > last);
        last = t;
        frames++;
        ew_energy_add(&e, t, values[b->total.power], none);
    }
    const struct ew_sampler_stats st = ew_sampler_stats(s);
    printf("  sampler: %lld frames of %d channels, %lld missed; CPU %.3f %% of a core at 10 Hz; "
           "reading %.3f ms, at most %.3f ms\n",
           (long long)st.frames, b->n_channels, (long long)st.missed, 100 * st.cpu_s / st.wall_s,
           1e3 * st.read_mean_s, 1e3 * st.read_max_s);
    EW_EXPECT_INT(st.frames, frames);
    EW_EXPECT_INT(st.dropped, 0);
    EW_EXPECT_NEAR(frames + st.missed, 10 * st.wall_s, 3); /* however long the sleep really took */
    const struct ew_energy r = ew_energy_result(&e);
    EW_EXPECT_NEAR(r.mean_w, 20.008 * 0.2 + 5.04 * 0.94 + 5.04 * 0.14, 1e-9);
    /* Extrapolated before the first reading and after the last: a tenth, plus missed deadlines. */
    EW_EXPECT_NEAR(r.held_s, 0, 0.1 * (double)(1 + st.missed));
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    EW_EXPECT(st.cpu_s / st.wall_s < 0.01);
#endif
    ew_sampler_free(s);
    ew_board_close(b);
    free(values);
}

/* A consumer that does not keep up loses the newest samples, and is told how many. */
static void full_ring_drops(void)
{
    struct ew_board *b = NULL;
    struct ew_sampler *s = NULL;
    const struct ew_board_opts opts = {.root = "tests/fixtures/boards/rpi4"};
    if (!EW_EXPECT_OK(ew_board_open(&opts, &b)))
        return;
    struct ew_sample_value *values = calloc((size_t)b->n_channels, sizeof(*values));
    EW_EXPECT_OK(ew_sampler_start(b, EW_NS_PER_S / 200, 4, &s));
    nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
    ew_sampler_stop(s);
    int64_t t;
    int frames = 0;
    while (ew_sampler_next(s, &t, values))
        frames++;
    const struct ew_sampler_stats st = ew_sampler_stats(s);
    EW_EXPECT_INT(frames, 4);
    EW_EXPECT_INT(st.dropped, st.frames - 4);
    EW_EXPECT_ERR(ew_sampler_start(b, 1, 0, &s), EW_ERR_ARG, "1 ns");
    ew_sampler_free(s);
    ew_board_close(b);
    free(values);
}

EW_TEST_MAIN(EW_TEST(known_integrals), EW_TEST(bounds_are_not_idle), EW_TEST(ends_and_absence),
             EW_TEST(counters_are_preferred_and_checked), EW_TEST(counter_that_stands_still),
             EW_TEST(sampler_keeps_time), EW_TEST(full_ring_drops))
