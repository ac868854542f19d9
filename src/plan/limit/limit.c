/* SPDX-License-Identifier: Apache-2.0 */
/* Compiling within a memory limit: the cheapest strategy that meets it.
 *
 * In training, in order of cost: nothing; recomputing cheap operators; checkpointing, which repeats
 * up to one forward pass; micro-batches, which make every kernel's work smaller.  Dry plans take
 * milliseconds, so each is simply tried. */
#include <stdio.h>

#include "plan/limit/pack_limit.h"
#include "plan/strategy.h"

struct search {
    struct ew_graph *g;
    struct ew_plan_opts opts;
    size_t least; /* the smallest total seen */
};

static ew_err total_bytes(struct search *s, const struct ew_strategy *st, size_t *out)
{
    struct ew_plan *p;
    struct ew_plan_stats stats;
    EW_TRY(ew_plan_build(s->g, &s->opts, st, &p));
    ew_plan_stats(p, &stats);
    ew_plan_free(p);
    *out = stats.arena_bytes + stats.weight_bytes;
    s->least = *out < s->least ? *out : s->least;
    return EW_OK;
}

/* The cheapest strategy for a given number of micro-batches. */
static ew_err try_micro_batches(struct search *s, int micro_batches, struct ew_strategy *out,
                                bool *found)
{
    static const int segments[] = {2, 3, 4, 6, 8, 12, 16, 24, 32};
    struct ew_strategy st = {.segments = 1, .micro_batches = micro_batches};
    size_t bytes;
    EW_TRY(total_bytes(s, &st, &bytes));
    if (bytes > s->opts.memory_limit) {
        st.cheap = true;
        EW_TRY(total_bytes(s, &st, &bytes));
    }
    for (size_t i = 0; i < EW_COUNT(segments) && bytes > s->opts.memory_limit; i++) {
        st = (struct ew_strategy){.segments = segments[i], .micro_batches = micro_batches};
        EW_TRY(total_bytes(s, &st, &bytes));
    }
    *found = bytes <= s->opts.memory_limit;
    *out = st;
    return EW_OK;
}

static ew_err choose(struct ew_graph *g, const struct ew_plan_opts *o, struct ew_strategy *out)
{
    struct search s = {.g = g, .opts = *o, .least = SIZE_MAX};
    s.opts.dry = true;
    int64_t batch = 1;
    EW_TRY(ew_graph_batch(g, &batch));
    EW_CHECK(o->micro_batches >= 0 && (o->micro_batches == 0 || batch % o->micro_batches == 0),
             EW_ERR_ARG, "a batch of %lld cannot be run in %d parts", (long long)batch,
             o->micro_batches);
    char as[40] = "";
    if (o->micro_batches)
        snprintf(as, sizeof(as), " in %d parts", o->micro_batches);
    bool found = false;
    for (int64_t n = o->micro_batches ? o->micro_batches : 1; n <= batch && !found; n++)
        if (batch % n == 0 && (!o->micro_batches || n == o->micro_batches))
            EW_TRY(try_micro_batches(&s, (int)n, out, &found));
    EW_CHECK(found, EW_ERR_LIMIT,
             "training %s at batch %lld%s needs at least %zu bytes, %zu more than the limit of %zu",
             g->name, (long long)batch, as, s.least, s.least - o->memory_limit, o->memory_limit);
    return EW_OK;
}

ew_err ew_plan_compile(struct ew_graph *g, const struct ew_plan_opts *o, struct ew_plan **out)
{
    struct ew_strategy s = {.segments = 1, .micro_batches = 1};
    if (o->mode == EW_PLAN_TRAIN && o->memory_limit)
        EW_TRY(choose(g, o, &s));
    if (o->mode == EW_PLAN_INFER && o->memory_limit && !(o->given && o->given->kernels))
        return ew_pack_limit_compile(g, o, out);
    return ew_plan_build(g, o, &s, out);
}
