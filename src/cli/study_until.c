/* SPDX-License-Identifier: Apache-2.0 */
/* Stops measuring power modes when the others can be predicted well enough. */
#include "cli/study_until.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "advise/store/advice_source.h"
#include "base/num.h"

#define LEAST  5    /* measured modes: fewer give no reliable leave-one-out error */
#define LOOKED 2000 /* untried modes that are checked, spread over all */

ew_err ew_until_parse(const char *text, struct ew_until *out)
{
    char copy[64], *rest = copy, *word;
    *out = (struct ew_until){0};
    snprintf(copy, sizeof(copy), "%s", text ? text : "");
    while ((word = strsep(&rest, ","))) {
        char *equals = strchr(word, '='), *percent = strchr(word, '%');
        double v = 0, *to = strncmp(word, "time=", 5) == 0 ? &out->time : &out->power;
        if (!*word)
            continue;
        if (percent)
            *percent = '\0';
        EW_CHECK((to == &out->time || strncmp(word, "power=", 6) == 0) && percent && !percent[1] &&
                     ew_num_float(equals + 1, &v) && v > 0 && v < 100,
                 EW_ERR_USAGE, "--until '%s' is not time=5%%,power=4%%", text);
        *to = v / 100;
    }
    return EW_OK;
}

bool ew_until_reached(const struct ew_until *u, double time_sd, double power_sd)
{
    return (!(u->time > 0) || EW_MEAN_OF_SD * time_sd <= u->time) &&
           (!(u->power > 0) || EW_MEAN_OF_SD * power_sd <= u->power);
}

bool ew_until_same_sweep(const struct ew_study_job *a, const struct ew_study_job *b)
{
    if (strcmp(a->label, b->label) != 0 || a->n_given != b->n_given)
        return false;
    for (int i = 0; i < a->n_given; i++) {
        const struct ew_setting *s = &a->given[i];
        const char *other = ew_setting_find(b->given, b->n_given, s->name);
        if (strcmp(s->name, "power-mode") != 0 && (!other || strcmp(s->value, other) != 0))
            return false;
    }
    return true;
}

/* The workload of a run; NULL: the run has no mode. */
static const char *workload_of(const struct ew_measured *m, int64_t run)
{
    for (int i = 0; i < m->n; i++)
        if (m->rows[i].line == run)
            return m->rows[i].workload;
    return NULL;
}

static ew_err look(const struct ew_until *u, struct ew_advice_source *s, const char *workload,
                   struct ew_until_state *out)
{
    struct ew_mode_series m;
    struct ew_predictor *p;
    struct ew_mode *modes;
    int n, kept = 0;
    EW_TRY(ew_measured_of(&s->arena, &s->measured, workload, false, &m));
    out->measured = m.n;
    if (m.n < LEAST)
        return EW_OK;
    const struct ew_holdout_board b = ew_advice_board(s);
    const struct ew_predict_data d = {.modes = m.modes,
                                      .time = m.time,
                                      .power = m.any_power ? m.power : NULL,
                                      .n = m.n,
                                      .top = b.top,
                                      .board = b.name};
    EW_TRY(ew_predictor_fit(&s->arena, &d, &p));
    EW_TRY(ew_advice_modes(s, workload, "all", &modes, &n));
    for (int i = 0; i < n; i += 1 + n / LOOKED)
        modes[kept++] = modes[i];
    struct ew_prediction *v = ew_arena_array(&s->arena, (size_t)kept, sizeof(*v));
    EW_CHECK(v, EW_ERR_MEMORY, "no memory for %d modes", kept);
    EW_TRY(ew_predict(p, modes, kept, v));
    double time = 0, power = 0;
    for (int i = 0; i < kept; i++) {
        time += v[i].time.sd / kept;
        power += p->has_power ? v[i].power.sd / kept : (double)NAN;
    }
    out->time = EW_MEAN_OF_SD * time;
    out->power = EW_MEAN_OF_SD * power;
    out->reached = ew_until_reached(u, time, power);
    return EW_OK;
}

ew_err ew_until_look(const struct ew_until *u, struct ew_store *store, const char *db,
                     const struct ew_study_job *job, struct ew_until_state *out)
{
    struct ew_advice_source s;
    int64_t run;
    bool there;
    *out = (struct ew_until_state){.time = NAN, .power = NAN};
    EW_TRY(ew_store_int(store, &run, &there,
                        "SELECT max(id) FROM run WHERE job = ?1 AND status = 'done'", "s",
                        job->row.id));
    if (!there)
        return EW_OK;
    ew_err err = ew_advice_open_store(db, &s);
    const char *workload = err == EW_OK ? workload_of(&s.measured, run) : NULL;
    if (workload)
        err = look(u, &s, workload, out);
    ew_advice_close(&s);
    return err;
}
