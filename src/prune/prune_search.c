/* SPDX-License-Identifier: Apache-2.0 */
/* Choosing units to remove, and how many. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "plan/plan.h"
#include "prune/prune.h"

const char *const ew_prune_by_names[] = {
    "share of channels", "MACs", "parameters", "bytes", "ms", NULL};

/* ---- Measuring ---- */

static ew_err plan_bytes(struct ew_graph *g, double *out)
{
    const struct ew_plan_opts o = {.mode = EW_PLAN_INFER, .dry = true};
    struct ew_plan *p;
    struct ew_plan_stats s;
    EW_TRY(ew_plan_compile(g, &o, &p));
    ew_plan_stats(p, &s);
    ew_plan_free(p);
    *out = (double)(s.arena_bytes + s.weight_bytes);
    return EW_OK;
}

static ew_err time_it(struct ew_graph *g, int threads, double *out)
{
    const struct ew_plan_opts o = {
        .mode = EW_PLAN_INFER, .optimize = true, .backend = {.threads = threads}};
    const struct ew_bench_opts b = {.warmup = 3, .iters = 15, .trials = 1};
    struct ew_plan *p;
    struct ew_bench_stats s = {0};
    EW_TRY(ew_plan_compile(g, &o, &p));
    ew_bench_fill(p, g, 2, 1);
    const ew_err e = ew_bench_run(p, &b, NULL, NULL, &s);
    ew_plan_free(p);
    *out = s.median_ms;
    return e;
}

ew_err ew_prune_measure(struct ew_graph *g, enum ew_prune_by by, int threads, double *out)
{
    struct ew_cost cost;
    *out = 1;
    if (by == EW_PRUNE_BYTES)
        return plan_bytes(g, out);
    if (by == EW_PRUNE_LATENCY)
        return time_it(g, threads, out);
    if (by == EW_PRUNE_KEEP)
        return EW_OK;
    EW_TRY(ew_graph_cost(g, &cost, NULL));
    *out = (double)(by == EW_PRUNE_MACS ? cost.macs : cost.params);
    return EW_OK;
}

/* The value without these units. */
static ew_err measure_without(const struct ew_prune_job *j, const bool *gone, double *out)
{
    struct ew_graph *copy;
    const bool count = j->by == EW_PRUNE_MACS || j->by == EW_PRUNE_PARAMS;
    EW_TRY(ew_graph_clone(j->g, &copy));
    ew_err e = ew_channels_remove(copy, j->channels, gone, count);
    if (e == EW_OK)
        e = ew_prune_measure(copy, j->by, j->rule.threads, out);
    ew_graph_free(copy);
    return e;
}

/* ---- Choosing ---- */

struct ranked {
    double score;
    int unit;
};

/* By increasing importance; ties by number, for determinism. */
static int compare(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    if (x->score < y->score || x->score > y->score)
        return x->score < y->score ? -1 : 1;
    return x->unit - y->unit;
}

/* Number of units that a group of n keeps at the share `keep`.  By itself it aligns to a vector of
 * AVX2 or two of NEON, where that is at most an eighth of the group. */
static int stay_of(int n, double keep, int align)
{
    if (align <= 0)
        align = n >= 64 ? 8 : 1;
    int stay = (int)ceil(keep * n - 1e-9);
    stay = stay < 1 ? 1 : stay;
    stay = (stay + align - 1) / align * align;
    return stay < n ? stay : n;
}

/* Marks all but the `stay` most important of a group's units. */
static void cut_group(const struct ew_channel_group *k, const double *scores, int stay,
                      struct ranked *room, bool *gone)
{
    for (int i = 0; i < k->n; i++)
        room[i] = (struct ranked){scores[k->units[i]], k->units[i]};
    qsort(room, (size_t)k->n, sizeof(*room), compare);
    for (int i = 0; i < k->n; i++)
        gone[room[i].unit] = i < k->n - stay;
}

/* stay[group]: how many are among the `n` most important units overall. */
static void count_global(const struct ew_channels *c, const double *scores, int n,
                         struct ranked *room, int *stay)
{
    int all = 0;
    for (int u = 0; u < c->n_units; u++)
        if (c->units[u].group >= 0)
            room[all++] = (struct ranked){scores[u], u};
    qsort(room, (size_t)all, sizeof(*room), compare);
    for (int i = all - n; i < all; i++)
        stay[c->units[room[i].unit].group]++;
}

static int movable(const struct ew_channels *c)
{
    int n = 0;
    for (int k = 0; k < c->n_groups; k++)
        n += c->groups[k].n;
    return n;
}

ew_err ew_prune_choose(const struct ew_channels *c, const double *scores, double keep,
                       const struct ew_prune_rule *rule, bool *gone)
{
    const int all = movable(c);
    EW_CLEANUP(ew_free_ptr) void *room = calloc((size_t)c->n_units + 1, sizeof(struct ranked));
    EW_CLEANUP(ew_free_ptr) void *counts = calloc((size_t)c->n_groups + 1, sizeof(int));
    EW_CHECK(room && counts, EW_ERR_MEMORY, "no memory for %d channels", c->n_units);
    int *stay = counts;
    memset(gone, 0, (size_t)c->n_units * sizeof(*gone));
    if (rule->global)
        count_global(c, scores, (int)ceil(keep * all - 1e-9), room, stay);
    for (int k = 0; k < c->n_groups; k++) {
        const int n = c->groups[k].n;
        const double share = rule->global ? (double)stay[k] / n : keep;
        cut_group(&c->groups[k], scores, stay_of(n, share, rule->align), room, gone);
    }
    return EW_OK;
}

/* ---- How many ---- */

static ew_err try_keep(const struct ew_prune_job *j, double keep, bool *gone, double *value)
{
    EW_TRY(ew_prune_choose(j->channels, j->scores, keep, &j->rule, gone));
    return measure_without(j, gone, value);
}

ew_err ew_prune_reach(const struct ew_prune_job *j, bool *gone, double *value)
{
    EW_CHECK(j->channels->n_groups > 0, EW_ERR_ARG, "%s: none of its channels can go", j->g->name);
    *value = j->target;
    if (j->by == EW_PRUNE_KEEP)
        return EW_OK;
    EW_TRY(try_keep(j, 0, gone, value));
    EW_CHECK(*value <= j->target, EW_ERR_LIMIT,
             "%s: has %.*g %s with the fewest channels that can stay, over %.*g", j->g->name,
             ew_prune_digits(j->by), *value, ew_prune_by_names[j->by], ew_prune_digits(j->by),
             j->target);
    return EW_OK;
}

ew_err ew_prune_search(const struct ew_prune_job *j, bool *gone, struct ew_prune_found *out)
{
    const int steps = j->by == EW_PRUNE_LATENCY ? 7 : 14;
    double low = 0, high = 1, value;
    *out = (struct ew_prune_found){.keep = j->target};
    EW_TRY(ew_prune_reach(j, gone, &out->value));
    if (j->by == EW_PRUNE_KEEP)
        return ew_prune_choose(j->channels, j->scores, j->target, &j->rule, gone);
    for (out->tried = 1; out->tried <= steps; out->tried++) {
        const double middle = 0.5 * (low + high);
        EW_TRY(try_keep(j, middle, gone, &value));
        if (value <= j->target) {
            low = middle;
            out->value = value;
        } else {
            high = middle;
        }
    }
    out->keep = low;
    return ew_prune_choose(j->channels, j->scores, low, &j->rule, gone);
}
