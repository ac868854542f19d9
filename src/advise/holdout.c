/* SPDX-License-Identifier: Apache-2.0 */
/* How good predictions are. */
#include "advise/holdout.h"

#include <math.h>

#include "advise/design.h"

static ew_err data_of(struct ew_arena *a, const struct ew_mode_series *s,
                      const struct ew_holdout_board *b, const int *rows, int n,
                      struct ew_predict_data *out)
{
    struct ew_mode *modes = ew_arena_array(a, (size_t)n, sizeof(*modes));
    double *time = ew_arena_array(a, (size_t)n, sizeof(*time));
    double *power = ew_arena_array(a, (size_t)n, sizeof(*power));
    EW_CHECK(modes && time && power, EW_ERR_MEMORY, "no memory for a validation");
    for (int i = 0; i < n; i++) {
        modes[i] = s->modes[rows[i]];
        time[i] = s->time[rows[i]];
        power[i] = s->power[rows[i]];
    }
    *out = (struct ew_predict_data){.modes = modes,
                                    .time = time,
                                    .power = s->any_power ? power : NULL,
                                    .n = n,
                                    .top = b->top,
                                    .board = b->name};
    return EW_OK;
}

static ew_err holdout_new(struct ew_arena *a, int n, struct ew_holdout *out)
{
    out->row = ew_arena_array(a, (size_t)n, sizeof(*out->row));
    out->predicted = ew_arena_array(a, (size_t)n, sizeof(*out->predicted));
    EW_CHECK(out->row && out->predicted, EW_ERR_MEMORY, "no memory for a validation");
    return EW_OK;
}

ew_err ew_holdout_split(struct ew_arena *a, const struct ew_holdout_setup *setup, const int *rows,
                        int n_rows, struct ew_holdout *out)
{
    const struct ew_mode_series *s = setup->series;
    *out = (struct ew_holdout){.method = setup->method, .fitted = n_rows};
    EW_TRY(holdout_new(a, s->n, out));
    struct ew_mode *modes = ew_arena_array(a, (size_t)s->n, sizeof(*modes));
    bool *used = ew_arena_array(a, (size_t)s->n, sizeof(*used));
    EW_CHECK(modes && used, EW_ERR_MEMORY, "no memory for a validation");
    for (int i = 0; i < n_rows; i++)
        used[rows[i]] = true;
    for (int i = 0; i < s->n; i++)
        if (!used[i]) {
            modes[out->n] = s->modes[i];
            out->row[out->n++] = i;
        }
    struct ew_predict_data d;
    EW_TRY(data_of(a, s, setup->board, rows, n_rows, &d));
    return ew_method_predict(setup->method, &d, modes, out->n, out->predicted);
}

ew_err ew_holdout_leave_one_out(struct ew_arena *a, const struct ew_holdout_setup *setup,
                                struct ew_holdout *out)
{
    const struct ew_mode_series *s = setup->series;
    *out = (struct ew_holdout){.method = setup->method, .fitted = s->n - 1};
    EW_TRY(holdout_new(a, s->n, out));
    int *rows = ew_arena_array(a, (size_t)s->n, sizeof(*rows));
    EW_CHECK(rows, EW_ERR_MEMORY, "no memory for a validation");
    for (int i = 0; i < s->n; i++) {
        struct ew_predict_data d;
        for (int j = 0; j < s->n - 1; j++)
            rows[j] = j + (j >= i);
        EW_TRY(data_of(a, s, setup->board, rows, s->n - 1, &d));
        EW_TRY(ew_method_predict(setup->method, &d, &s->modes[i], 1, &out->predicted[i]));
        out->row[i] = i;
    }
    out->n = s->n;
    return EW_OK;
}

/* ---- Scores ---------------------------------------------------------------------------------- */

struct tally {
    double error;
    int n, in50, in90, with;
};

static void add(struct tally *t, const struct ew_interval *g, double measured)
{
    if (!isfinite(g->mid) || !isfinite(measured))
        return;
    t->error += fabs(g->mid / measured - 1);
    t->n++;
    if (!isfinite(g->low90))
        return;
    t->with++;
    t->in50 += measured >= g->low50 && measured <= g->high50;
    t->in90 += measured >= g->low90 && measured <= g->high90;
}

static double share(int part, int of)
{
    return of ? (double)part / of : (double)NAN;
}

void ew_holdout_errors(const struct ew_mode_series *s, const struct ew_holdout *t,
                       struct ew_holdout_errors *out)
{
    struct tally time = {0}, power = {0}, energy = {0};
    for (int i = 0; i < t->n; i++) {
        const double seconds = s->time[t->row[i]], watts = s->power[t->row[i]];
        add(&time, &t->predicted[i].time, seconds);
        add(&power, &t->predicted[i].power, watts);
        add(&energy, &t->predicted[i].energy, seconds * watts);
    }
    *out = (struct ew_holdout_errors){
        .fitted = t->fitted,
        .tested = t->n,
        .time = 100 * time.error / time.n,
        .power = power.n ? 100 * power.error / power.n : (double)NAN,
        .energy = energy.n ? 100 * energy.error / energy.n : (double)NAN,
        .time_in50 = share(time.in50, time.with),
        .time_in90 = share(time.in90, time.with),
        .power_in50 = share(power.in50, power.with),
        .power_in90 = share(power.in90, power.with),
        .energy_in50 = share(energy.in50, energy.with),
        .energy_in90 = share(energy.in90, energy.with),
    };
}

ew_err ew_holdout_design(struct ew_arena *a, const struct ew_mode_series *s, int n, int **rows,
                         int *n_rows)
{
    struct ew_design_step *steps = ew_arena_array(a, (size_t)n, sizeof(*steps));
    *rows = ew_arena_array(a, (size_t)n, sizeof(**rows));
    EW_CHECK(steps && *rows, EW_ERR_MEMORY, "no memory for a validation");
    const struct ew_design d = {.candidates = s->modes, .n = s->n};
    EW_TRY(ew_design_modes(&d, n, steps, n_rows));
    for (int i = 0; i < *n_rows; i++)
        (*rows)[i] = steps[i].candidate;
    return EW_OK;
}
