/* SPDX-License-Identifier: Apache-2.0 */
/* How well the law of work predicts what was left out. */
#include "advise/work_check.h"

#include <math.h>
#include <string.h>

#include "base/order_stats.h"
#include "base/rng.h"

#define SEED 19

struct validation {
    struct ew_arena *arena;
    const struct ew_work_run *runs;
    const double *time;
    int n;
    bool *out; /* n: left out now */
};

/* Fits to what is not left out, and appends predictions of the rest. */
static ew_err predict_out(const struct validation *all, struct ew_work_errors *s)
{
    struct ew_arena *a = all->arena;
    struct ew_work_run *runs = ew_arena_array(a, (size_t)all->n, sizeof(*runs));
    double *time = ew_arena_array(a, (size_t)all->n, sizeof(*time));
    struct ew_work_predictor *p;
    EW_CHECK(runs && time, EW_ERR_MEMORY, "no memory for a check");
    s->fitted = 0;
    for (int i = 0; i < all->n; i++)
        if (!all->out[i]) {
            runs[s->fitted] = all->runs[i];
            time[s->fitted++] = all->time[i];
        }
    EW_TRY(ew_work_fit(a, runs, time, s->fitted, &p));
    for (int i = 0; i < all->n; i++)
        if (all->out[i])
            s->held_out[s->tested++] = (struct ew_work_holdout){
                .run = i, .time = all->time[i], .predicted = ew_work_predict(p, &all->runs[i])};
    return EW_OK;
}

static ew_err summarise(struct ew_arena *a, struct ew_work_errors *s)
{
    double *errors = ew_arena_array(a, (size_t)s->tested + 1, sizeof(*errors));
    EW_CHECK(errors, EW_ERR_MEMORY, "no memory for a check");
    for (int i = 0; i < s->tested; i++) {
        const struct ew_work_holdout *t = &s->held_out[i];
        errors[i] = fabs(t->predicted.mid / t->time - 1);
        s->error += errors[i] / s->tested;
        s->in50 +=
            (double)(t->time >= t->predicted.low50 && t->time <= t->predicted.high50) / s->tested;
        s->in90 +=
            (double)(t->time >= t->predicted.low90 && t->time <= t->predicted.high90) / s->tested;
    }
    s->median = s->tested ? ew_median(errors, s->tested) : 0;
    return EW_OK;
}

static ew_err begin(struct validation *all, int times, struct ew_work_errors *s)
{
    *s = (struct ew_work_errors){
        .held_out =
            ew_arena_array(all->arena, (size_t)all->n * (size_t)times, sizeof(*s->held_out))};
    all->out = ew_arena_array(all->arena, (size_t)all->n, sizeof(*all->out));
    EW_CHECK(s->held_out && all->out, EW_ERR_MEMORY, "no memory for a check");
    return EW_OK;
}

ew_err ew_work_check_thirds(struct ew_arena *a, const struct ew_work_run *runs, const double *time,
                            int n, struct ew_work_errors *out)
{
    struct validation all = {.arena = a, .runs = runs, .time = time, .n = n};
    struct ew_rng rng = {.seed = SEED};
    int64_t *order = ew_arena_array(a, (size_t)n, sizeof(*order));
    EW_CHECK(order, EW_ERR_MEMORY, "no memory for a check");
    EW_TRY(begin(&all, 2 * EW_WORK_SHUFFLES, out));
    for (int i = 0; i < n; i++)
        order[i] = i;
    for (int k = 0; k < EW_WORK_SHUFFLES; k++) {
        ew_rng_shuffle(&rng, order, (size_t)n);
        for (int part = 0; part < 3; part++) {
            for (int i = 0; i < n; i++)
                all.out[order[i]] = i % 3 != part;
            EW_TRY(predict_out(&all, out));
        }
    }
    return summarise(a, out);
}

ew_err ew_work_check_networks(struct ew_arena *a, const struct ew_work_run *runs,
                              const double *time, int n, struct ew_work_errors *out)
{
    struct validation all = {.arena = a, .runs = runs, .time = time, .n = n};
    EW_TRY(begin(&all, 1, out));
    for (int first = 0; first < n; first++) {
        int before = 0, left = 0;
        while (before < first && strcmp(runs[before].network, runs[first].network) != 0)
            before++;
        for (int i = 0; i < n; i++) {
            all.out[i] = strcmp(runs[i].network, runs[first].network) == 0;
            left += !all.out[i];
        }
        if (before == first && left >= EW_WORK_MIN)
            EW_TRY(predict_out(&all, out));
    }
    return summarise(a, out);
}
