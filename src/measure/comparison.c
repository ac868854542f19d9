/* SPDX-License-Identifier: Apache-2.0 */
/* Measures several networks and engines in interleaved trials. */
#include "measure/comparison.h"

#include <math.h>
#include <stdlib.h>

#include "base/pool.h"
#include "base/progress.h"
#include "bench/quiet.h"

static void show_tick(void *ctx, int64_t done, int64_t total)
{
    ew_progress_update(ctx, done);
}

static ew_err time_sides(struct ew_side_comparison *m, const struct ew_compare_opts *o)
{
    struct ew_bench_side sides[EW_COMPARISON_SIDES];
    struct ew_progress bar;
    const int64_t turns = o->bench.trials * ew_min_i64(8, o->bench.iters);
    for (int i = 0; i < m->n; i++)
        sides[i] = (struct ew_bench_side){.p = m->sides[i].side.p};
    ew_progress_begin(&bar, o->talk, "turns", turns);
    const struct ew_cpu_use before = ew_cpu_use_now();
    const ew_err e = ew_bench_interleave(sides, m->n, &o->bench, show_tick, &bar);
    const struct ew_cpu_use after = ew_cpu_use_now();
    ew_progress_end(&bar);
    m->others = ew_cpu_use_others(&before, &after, ew_pool_cpus());
    for (int i = 0; i < m->n; i++)
        m->sides[i].time = sides[i];
    return e;
}

static ew_err measure_power(struct ew_side_comparison *m, const struct ew_compare_opts *o)
{
    const char *absent = "not asked for";
    if (o->power_s > 0)
        EW_TRY(ew_power_meter_open(o->power_from, o->power_s, &m->meter, &absent));
    for (int i = 0; i < m->n; i++) {
        struct ew_measured_side *k = &m->sides[i];
        k->power.absent = absent;
        if (m->meter)
            EW_TRY(ew_side_power(&k->side, m->meter, o->power_s, &k->power));
    }
    return EW_OK;
}

static ew_err evaluate(struct ew_side_comparison *m, const struct ew_compare_opts *o)
{
    for (int i = 0; i < m->n; i++) {
        struct ew_measured_side *k = &m->sides[i];
        k->accuracy = -1;
        if (!o->eval)
            continue;
        EW_TRY(ew_image_opts_preprocess(&o->images, &k->side.prep));
        EW_TRY(ew_side_accuracy(&k->side, o->eval, &k->accuracy));
    }
    return EW_OK;
}

ew_err ew_comparison_run(const char *const *what, int n, const struct ew_compare_opts *o,
                         struct ew_side_comparison *out)
{
    *out = (struct ew_side_comparison){.others = (double)NAN};
    EW_CHECK(n >= 1 && n <= EW_COMPARISON_SIDES, EW_ERR_USAGE,
             "1 to %d networks are compared, not %d", EW_COMPARISON_SIDES, n);
    out->sides = calloc((size_t)n, sizeof(*out->sides));
    EW_CHECK(out->sides, EW_ERR_MEMORY, "no memory");
    out->n = n;
    for (int i = 0; i < n; i++) /* before any thread exists: it forks */
        out->sides[i].resident = ew_side_resident(what[i], &o->side);
    for (int i = 0; i < n; i++)
        EW_TRY(ew_side_load(what[i], &o->side, &out->sides[i].side));
    EW_TRY(time_sides(out, o));
    EW_TRY(measure_power(out, o));
    return evaluate(out, o);
}

void ew_comparison_fini(struct ew_side_comparison *m)
{
    for (int i = 0; i < m->n; i++)
        ew_side_fini(&m->sides[i].side);
    free(m->sides);
    ew_power_meter_close(m->meter);
    *m = (struct ew_side_comparison){0};
}
