/* SPDX-License-Identifier: Apache-2.0 */
/* The best configuration of every network among results, in words. */
#include "advise/best_candidates.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "advise/mode_grid.h"

static ew_err parse_criterion(const char *name, enum ew_criterion *out)
{
    for (int k = 0; k < EW_CRITERIA; k++)
        if (strcmp(ew_criteria[k].name, name) == 0) {
            *out = (enum ew_criterion)k;
            return EW_OK;
        }
    return ew_fail(EW_ERR_USAGE,
                   "goal '%s' is not one of time, power, energy, memory, latency, cost, accuracy, "
                   "life",
                   name);
}

ew_err ew_limits_parse(const char *text, struct ew_limit out[EW_LIMITS], int *n)
{
    char copy[1024], *rest = copy, *word;
    EW_CHECK(!text || strlen(text) < sizeof(copy), EW_ERR_USAGE, "the limits are too long");
    snprintf(copy, sizeof(copy), "%s", text ? text : "");
    *n = 0;
    while ((word = strsep(&rest, ",")))
        if (*word) {
            EW_CHECK(*n < EW_LIMITS, EW_ERR_USAGE, "more than %d limits", EW_LIMITS);
            EW_TRY(ew_limit_parse(word, &out[(*n)++]));
        }
    return EW_OK;
}

static struct ew_interval known(double v)
{
    return (struct ew_interval){v, v, v, v, v, 0};
}

ew_err ew_candidates_of_rows(struct ew_arena *a, const struct ew_measured *m, const char *workload,
                             struct ew_candidate **out, int *n)
{
    static const struct ew_mode none = {0};
    *out = ew_arena_array(a, (size_t)m->n, sizeof(**out));
    EW_CHECK(*out, EW_ERR_MEMORY, "no memory for %d rows", m->n);
    *n = 0;
    for (int i = 0; i < m->n; i++) {
        const struct ew_measured_row *r = &m->rows[i];
        if (strcmp(r->workload, workload) != 0)
            continue;
        struct ew_candidate *x = &(*out)[(*n)++];
        *x = (struct ew_candidate){.name = r->name,
                                   .mode = m->has_clocks ? r->mode : none,
                                   .lacks = m->lacks,
                                   .measured = true};
        x->v[EW_CRITERION_TIME] = known(r->time);
        x->v[EW_CRITERION_POWER] = known(r->power);
        x->v[EW_CRITERION_ENERGY] = known(r->time * r->power);
        x->v[EW_CRITERION_MEMORY] = known(r->memory_mib);
        x->v[EW_CRITERION_LATENCY] = known(r->latency_ms);
        x->v[EW_CRITERION_PRICE] = known(r->price_usd);
        x->v[EW_CRITERION_ACCURACY] = known(r->accuracy);
        x->v[EW_CRITERION_LIFE] = known(NAN);
    }
    return EW_OK;
}

static const char *candidate_text(struct ew_arena *a, const struct ew_candidate *x)
{
    const char *text = *x->name ? x->name : "";
    char mode[EW_MODE_CHARS];
    if (x->mode.cpu > 0)
        text = ew_arena_printf(a, "%s%s%s", text, *text ? ": " : "",
                               ew_mode_text(&x->mode, x->lacks, mode));
    for (int k = 0; text && k < EW_CRITERIA; k++)
        if (isfinite(x->v[k].mid))
            text = ew_arena_printf(a, "%s; %s %.4g%s%s", text, ew_criteria[k].name, x->v[k].mid,
                                   *ew_criteria[k].unit ? " " : "", ew_criteria[k].unit);
    return text;
}

ew_err ew_best_candidates_text(struct ew_arena *a, const struct ew_measured *m, const char *goal,
                               const char *limits, const char **out)
{
    struct ew_limit list[EW_LIMITS];
    struct ew_recommend_data d = {.limits = list, .sure = 0.8};
    const char *text = "";
    EW_TRY(parse_criterion(goal, &d.goal));
    EW_TRY(ew_limits_parse(limits, list, &d.n_limits));
    for (int i = 0; i < m->n_workloads; i++) {
        struct ew_candidate *candidates;
        struct ew_recommendation c;
        EW_TRY(ew_candidates_of_rows(a, m, m->workloads[i], &candidates, &d.n));
        d.candidates = candidates;
        const bool found = ew_recommend(&d, &c) == EW_OK;
        const char *line = found ? candidate_text(a, &candidates[c.best]) : ew_error_message();
        EW_CHECK(line, EW_ERR_MEMORY, "no memory for the best");
        text = ew_arena_printf(a, "%s%s%s: %s", text, *text ? "\n" : "", m->workloads[i], line);
        EW_CHECK(text, EW_ERR_MEMORY, "no memory for the best");
    }
    *out = text;
    return EW_OK;
}
