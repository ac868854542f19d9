/* SPDX-License-Identifier: Apache-2.0 */
/* Power modes as configurations to choose from. */
#include "advise/store/mode_candidates.h"

#include <math.h>
#include <string.h>

static struct ew_interval known(double v)
{
    return (struct ew_interval){v, v, v, v, v};
}

static void fill(struct ew_interval *v, const struct ew_interval *time,
                 const struct ew_interval *power, const struct ew_interval *energy)
{
    for (int k = 0; k < EW_CRITERIA; k++)
        v[k] = known(NAN);
    v[EW_CRITERION_TIME] = *time;
    v[EW_CRITERION_POWER] = *power;
    v[EW_CRITERION_ENERGY] = *energy;
}

static struct ew_candidate measured_candidate(const struct ew_mode_series *m, int i, unsigned lacks)
{
    struct ew_candidate x = {
        .name = m->names[i], .mode = m->modes[i], .lacks = lacks, .measured = true};
    const struct ew_interval t = known(m->time[i]), p = known(m->power[i]),
                             e = known(m->time[i] * m->power[i]);
    fill(x.v, &t, &p, &e);
    return x;
}

static bool was_measured(const struct ew_mode_series *m, const struct ew_mode *mode)
{
    for (int i = 0; i < m->n; i++)
        if (fabs(m->modes[i].cores - mode->cores) < 0.5 &&
            fabs(m->modes[i].cpu / mode->cpu - 1) < 0.005 &&
            fabs(m->modes[i].gpu / mode->gpu - 1) < 0.005 &&
            fabs(m->modes[i].mem / mode->mem - 1) < 0.005)
            return true;
    return false;
}

#define ENOUGH 50 /* measured modes: then untried ones are considered only where asked for */

static ew_err untried_modes(struct ew_advice_source *s, const char *workload, const char *words,
                            const struct ew_mode_series *m, struct ew_mode_series *out)
{
    EW_TRY(ew_measured_of(&s->arena, &s->measured, workload, true, out));
    if (out->n == 0 && (words || m->n < ENOUGH))
        return ew_advice_modes(s, workload, words ? words : "all", &out->modes, &out->n);
    return EW_OK;
}

/* What the fit says of the modes that it was made from. */
static ew_err fitted_values(struct ew_arena *a, const struct ew_predictor *p,
                            const struct ew_mode_series *m, struct ew_candidate *candidates)
{
    struct ew_prediction *v = ew_arena_array(a, (size_t)m->n, sizeof(*v));
    struct ew_interval *fitted = ew_arena_array(a, (size_t)m->n, sizeof(*fitted) * EW_CRITERIA);
    EW_CHECK(v && fitted, EW_ERR_MEMORY, "no memory for %d modes", m->n);
    EW_TRY(ew_predict(p, m->modes, m->n, v));
    for (int i = 0; i < m->n; i++) {
        fill(fitted + (size_t)i * EW_CRITERIA, &v[i].time, &v[i].power, &v[i].energy);
        candidates[i].fitted = fitted + (size_t)i * EW_CRITERIA;
    }
    return EW_OK;
}

static ew_err predict_untried(struct ew_advice_source *s, const struct ew_mode_series *m,
                              const struct ew_mode_series *untried, struct ew_candidate *candidates,
                              int *n)
{
    struct ew_predictor *p;
    struct ew_prediction *v = ew_arena_array(&s->arena, (size_t)untried->n, sizeof(*v));
    EW_CHECK(v, EW_ERR_MEMORY, "no memory for %d modes", untried->n);
    EW_TRY(ew_advice_fit(s, m, &p));
    EW_TRY(fitted_values(&s->arena, p, m, candidates));
    EW_TRY(ew_predict(p, untried->modes, untried->n, v));
    for (int i = 0; i < untried->n; i++)
        if (!was_measured(m, &untried->modes[i])) {
            struct ew_candidate *x = &candidates[(*n)++];
            *x = (struct ew_candidate){
                .name = "", .mode = untried->modes[i], .lacks = ew_advice_lacks(s)};
            fill(x->v, &v[i].time, &v[i].power, &v[i].energy);
        }
    return EW_OK;
}

ew_err ew_candidates_of_modes(struct ew_advice_source *s, const char *workload, const char *modes,
                              struct ew_candidate **out, int *n)
{
    struct ew_mode_series m, untried = {0};
    EW_TRY(ew_measured_of(&s->arena, &s->measured, workload, false, &m));
    if (m.n >= EW_PREDICT_MIN)
        EW_TRY(untried_modes(s, workload, modes, &m, &untried));
    *out = ew_arena_array(&s->arena, (size_t)(m.n + untried.n), sizeof(**out));
    EW_CHECK(*out, EW_ERR_MEMORY, "no memory for %d modes", m.n + untried.n);
    *n = 0;
    while (*n < m.n) {
        (*out)[*n] = measured_candidate(&m, *n, s->measured.lacks);
        ++*n;
    }
    return untried.n ? predict_untried(s, &m, &untried, *out, n) : EW_OK;
}

/* ---- The job ---- */

static struct ew_interval scaled(const struct ew_interval *g, double by)
{
    return (struct ew_interval){by * g->mid,   by * g->low50,  by * g->high50,
                                by * g->low90, by * g->high90, g->sd};
}

static void for_job(const struct ew_candidate_job *job, struct ew_interval *v)
{
    v[EW_CRITERION_TIME] = scaled(&v[EW_CRITERION_TIME], job->times);
    v[EW_CRITERION_ENERGY] = scaled(&v[EW_CRITERION_ENERGY], job->times);
    if (job->battery_wh > 0)
        v[EW_CRITERION_LIFE] =
            ew_life(&v[EW_CRITERION_POWER], job->battery_wh, job->duty, job->idle_w);
}

ew_err ew_candidates_for_job(struct ew_arena *a, const struct ew_candidate_job *job,
                             struct ew_candidate *o, int n)
{
    for (int i = 0; i < n; i++) {
        for_job(job, o[i].v);
        if (!o[i].fitted)
            continue;
        struct ew_interval *fitted = ew_arena_array(a, EW_CRITERIA, sizeof(*fitted));
        EW_CHECK(fitted, EW_ERR_MEMORY, "no memory for %d configurations", n);
        memcpy(fitted, o[i].fitted, EW_CRITERIA * sizeof(*fitted));
        for_job(job, fitted);
        o[i].fitted = fitted;
    }
    return EW_OK;
}
