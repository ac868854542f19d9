/* SPDX-License-Identifier: Apache-2.0 */
/* Configurations of a network, measured or not, as candidates. */
#include "measure/work_candidates.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define VALUES 16 /* most values of a factor */

static const char *const factors[] = {"batch", "threads", "width", "workers", "precision"};
enum { BATCH, THREADS, WIDTH, WORKERS, PRECISION, FACTORS };

/* ---- Words ----------------------------------------------------------------------------------- */

static int find_factor(const char *word, size_t length)
{
    for (int i = 0; i < FACTORS; i++)
        if (strlen(factors[i]) == length && strncmp(factors[i], word, length) == 0)
            return i;
    return -1;
}

ew_err ew_work_factors_match(const char *words, bool *are)
{
    int n = 0, found = 0;
    for (const char *p = words; *p; p += *p == ',') {
        const size_t length = strcspn(p, ",");
        found += find_factor(p, length) >= 0;
        n++;
        p += length;
    }
    *are = found > 0;
    EW_CHECK(
        !found || found == n, EW_ERR_USAGE,
        "--among %s: batch, threads, width, workers and precision go together; boards, and the "
        "power modes of --from, each alone",
        words);
    return EW_OK;
}

static bool is_asked(const char *words, int factor)
{
    for (const char *p = words; *p; p += *p == ',') {
        const size_t length = strcspn(p, ",");
        if (find_factor(p, length) == factor)
            return true;
        p += length;
    }
    return false;
}

/* ---- Values ---------------------------------------------------------------------------------- */

struct values {
    double v[VALUES];
    int n;
};

static struct values powers_of_two(double most)
{
    struct values out = {.n = 0};
    for (double x = 1; x < most && out.n < VALUES - 1; x *= 2)
        out.v[out.n++] = x;
    out.v[out.n++] = most;
    return out;
}

static struct values one(double v)
{
    return (struct values){.v = {v}, .n = 1};
}

static int find_precisions(const struct ew_work_source *s, const char *out[VALUES])
{
    int n = 1;
    out[0] = NULL;
    for (int i = 0; i < s->rows.n && n < VALUES; i++) {
        const char *p = s->rows.list[i].precision;
        int k = 1;
        while (k < n && strcmp(out[k], p) != 0)
            k++;
        if (*p && k == n)
            out[n++] = p;
    }
    return n;
}

struct grid {
    struct values batch, threads, width, workers;
    const char *precision[VALUES];
    int n_precision;
};

static ew_err make_grid(struct ew_work_source *s, const struct ew_work_space *o, struct grid *g)
{
    const struct ew_work_query *a = &o->query;
    struct ew_work_prediction here;
    EW_TRY(ew_work_source_predict(s, a, &here));
    EW_CHECK(!is_asked(o->factors, WORKERS) || a->data, EW_ERR_USAGE,
             "--among workers: needs --train and --data");
    *g = (struct grid){
        .batch = is_asked(o->factors, BATCH) ? powers_of_two(64) : one((double)a->net.batch),
        .threads = is_asked(o->factors, THREADS) ? powers_of_two((double)here.cores)
                                                 : one((double)here.threads),
        .width = is_asked(o->factors, WIDTH) ? (struct values){{0.25, 0.5, 0.75, 1}, 4}
                                             : one(a->net.width),
        .workers = is_asked(o->factors, WORKERS) ? (struct values){{0, 1, 2, 4}, 4}
                                                 : one((double)a->workers),
        .precision = {a->precision},
        .n_precision = 1};
    if (is_asked(o->factors, PRECISION))
        g->n_precision = find_precisions(s, g->precision);
    return EW_OK;
}

static int count(const struct grid *g)
{
    return g->batch.n * g->threads.n * g->width.n * g->workers.n * g->n_precision;
}

static struct ew_work_setting setting_at(const struct grid *g, int i)
{
    struct ew_work_setting s;
    s.precision = g->precision[i % g->n_precision];
    i /= g->n_precision;
    s.workers = (int64_t)g->workers.v[i % g->workers.n];
    i /= g->workers.n;
    s.threads = (int64_t)g->threads.v[i % g->threads.n];
    i /= g->threads.n;
    s.width = g->width.v[i % g->width.n];
    s.batch = (int64_t)g->batch.v[i / g->width.n];
    return s;
}

/* ---- Options --------------------------------------------------------------------------------- */

static struct ew_interval known(double v)
{
    return (struct ew_interval){v, v, v, v, v, 0};
}

static struct ew_interval scaled(const struct ew_interval *g, double by)
{
    return (struct ew_interval){by * g->mid,   by * g->low50,  by * g->high50,
                                by * g->low90, by * g->high90, g->sd};
}

static void fill(struct ew_interval v[EW_CRITERIA], const struct ew_interval *run, double batch,
                 double memory_mib)
{
    for (int k = 0; k < EW_CRITERIA; k++)
        v[k] = known(NAN);
    v[EW_CRITERION_TIME] = scaled(run, 1 / batch);
    v[EW_CRITERION_LATENCY] = scaled(run, 1e3);
    v[EW_CRITERION_MEMORY] = known(memory_mib);
}

static const char *name_of(struct ew_arena *a, const struct ew_work_query *o,
                           const struct ew_work_setting *s)
{
    char more[96] = "";
    int at = 0;
    if (fabs(s->width - 1) > 1e-9)
        at += snprintf(more + at, sizeof(more) - (size_t)at, ", width %g", s->width);
    if (o->data)
        at +=
            snprintf(more + at, sizeof(more) - (size_t)at, ", workers %lld", (long long)s->workers);
    if (s->precision)
        snprintf(more + at, sizeof(more) - (size_t)at, ", %.20s", s->precision);
    return ew_arena_printf(a, "%s, batch %lld, threads %lld%s", o->network, (long long)s->batch,
                           (long long)s->threads, more);
}

static ew_err add(struct ew_work_source *s, const struct ew_work_query *query,
                  const struct ew_work_setting *at, struct ew_candidate *x)
{
    struct ew_work_query o = *query;
    struct ew_work_prediction predicted;
    o.net.batch = at->batch;
    o.net.width = at->width;
    o.threads = at->threads;
    o.workers = at->workers;
    o.precision = at->precision;
    EW_TRY(ew_work_source_predict(s, &o, &predicted));
    *x = (struct ew_candidate){.name = name_of(&s->arena, &o, at),
                               .measured = isfinite(predicted.measured_s)};
    EW_CHECK(x->name, EW_ERR_MEMORY, "no memory");
    fill(x->v, &predicted.run, (double)at->batch, predicted.memory_mib);
    if (!x->measured)
        return EW_OK;
    struct ew_interval *fitted = ew_arena_array(&s->arena, EW_CRITERIA, sizeof(*fitted));
    EW_CHECK(fitted, EW_ERR_MEMORY, "no memory");
    memcpy(fitted, x->v, sizeof(x->v));
    x->fitted = fitted;
    const struct ew_interval seen = known(predicted.measured_s);
    fill(x->v, &seen, (double)at->batch, predicted.memory_mib);
    return EW_OK;
}

ew_err ew_candidates_of_work(struct ew_work_source *s, const struct ew_work_space *o,
                             struct ew_candidate **out, struct ew_work_setting **settings, int *n)
{
    struct grid g = {.n_precision = 1};
    EW_TRY(make_grid(s, o, &g));
    *n = count(&g);
    *out = ew_arena_array(&s->arena, (size_t)*n, sizeof(**out));
    *settings = ew_arena_array(&s->arena, (size_t)*n, sizeof(**settings));
    EW_CHECK(*out && *settings, EW_ERR_MEMORY, "no memory for %d settings", *n);
    for (int i = 0; i < *n; i++) {
        (*settings)[i] = setting_at(&g, i);
        EW_TRY(add(s, &o->query, &(*settings)[i], &(*out)[i]));
    }
    return EW_OK;
}
