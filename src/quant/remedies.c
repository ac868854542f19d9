/* SPDX-License-Identifier: Apache-2.0 */
/* Tries the remedies, and chooses the one with the best SQNR against the float network. */
#include "quant/remedies.h"

#include "compress/pass.h"
#include "edgewise.h"

#define EQUALIZE_ROUNDS 4
#define WORTH_DB        0.5 /* improvement that justifies a remedy */

/* Copies ranges and means by name, since passes renumber values. */
static ew_err carry_over(const struct ew_quant_variant *from, struct ew_quant_variant *to)
{
    const size_t n = (size_t)to->g->n_values;
    to->images = from->images;
    to->ranges = ew_arena_array(&to->arena, n, sizeof(*to->ranges));
    to->positions = ew_arena_array(&to->arena, n, sizeof(*to->positions));
    to->means = ew_arena_array(&to->arena, n, sizeof(*to->means));
    to->peaks = ew_arena_array(&to->arena, n, sizeof(*to->peaks));
    EW_CHECK(!to->arena.failed, EW_ERR_MEMORY, "no memory for ranges");
    for (int v = 0; v < to->g->n_values; v++) {
        const int old = ew_graph_find(from->g, to->g->values[v].name);
        to->ranges[v] = old >= 0 ? from->ranges[old] : (struct ew_range){.lo = 1, .hi = -1};
        to->positions[v] = old >= 0 ? from->positions[old] : 0;
    }
    return EW_OK;
}

static bool is_pow2(const struct ew_quant_job *job)
{
    return job->opts.scheme == EW_QUANTIZE_POW2;
}

static ew_err corrected(const struct ew_quant_job *job, const struct ew_quant_variant *from,
                        struct ew_quant_variant *to)
{
    *to = (struct ew_quant_variant){.uncorrected = from};
    ew_arena_init(&to->arena);
    EW_TRY(ew_graph_clone(from->g, &to->g));
    EW_TRY(ew_pass_correct_bias(to->g, from->means, is_pow2(job)));
    return carry_over(from, to);
}

static ew_err equalized(const struct ew_quant_job *job, const struct ew_quant_variant *from,
                        struct ew_quant_variant *to)
{
    /* one scale per layer: equalise by the filters' own ranges, repeatedly */
    const struct ew_equalize_opts pow2 = {.reach = from->peaks, .rounds = EQUALIZE_ROUNDS};
    const struct ew_equalize_opts channel = {.peaks = from->peaks, .rounds = 1};
    struct ew_graph *g = NULL;
    ew_err e = ew_graph_clone(from->g, &g);
    if (e == EW_OK)
        e = ew_pass_equalize(g, is_pow2(job) ? &pow2 : &channel);
    if (e == EW_OK)
        e = ew_quant_observe(job, g, "calibrating, equalised", to);
    if (e == EW_OK) /* keeps alive what it borrows */
        to->parent = g;
    else
        ew_graph_free(g);
    return e;
}

static ew_err rate(const struct ew_quant_job *job, const struct ew_quant_probe *p,
                   const struct ew_quant_variant *v, double *db)
{
    struct ew_graph *q = NULL;
    ew_err e = ew_quant_build(job, v, NULL, &q);
    if (e == EW_OK)
        e = ew_quant_probe_sqnr(p, q, job->opts.threads, db);
    ew_graph_free(q);
    return e;
}

/* Rates a remedy, and chooses it if it is better by the margin. */
static ew_err consider(struct ew_quant_remedies *w, struct ew_quant_variant *v, bool is_equalized,
                       bool is_corrected)
{
    struct ew_quant_remedy *remedy = &w->out->remedies[w->out->n_remedies];
    *remedy = (struct ew_quant_remedy){.equalized = is_equalized, .corrected = is_corrected};
    EW_TRY(rate(w->job, w->probe, v, &remedy->sqnr_db));
    if (w->out->n_remedies == 0 ||
        remedy->sqnr_db > w->out->remedies[w->out->remedy].sqnr_db + WORTH_DB) {
        w->out->remedy = w->out->n_remedies;
        w->best = v;
    }
    w->out->n_remedies++;
    return EW_OK;
}

/* With one scale per layer, clips weights that hardly matter. */
static ew_err limit(const struct ew_quant_job *job, struct ew_quant_variant *v)
{
    return is_pow2(job) ? ew_pass_clip_weights(v->g, v->peaks) : EW_OK;
}

/* Considers variant `at`, and the same with bias correction. */
static ew_err consider_both(struct ew_quant_remedies *w, int at, bool is_equalized)
{
    EW_TRY(limit(w->job, &w->all[at]));
    EW_TRY(consider(w, &w->all[at], is_equalized, false));
    if (!w->job->opts.correct_bias)
        return EW_OK;
    EW_TRY(corrected(w->job, &w->all[at], &w->all[at + 1]));
    return consider(w, &w->all[at + 1], is_equalized, true);
}

ew_err ew_quant_remedies_try(struct ew_quant_remedies *w)
{
    EW_TRY(ew_quant_observe(w->job, w->job->net, "calibrating", &w->all[0]));
    w->out->calibrated = w->all[0].images;
    if (w->job->opts.equalize)
        EW_TRY(equalized(w->job, &w->all[0], &w->all[2]));
    EW_TRY(consider_both(w, 0, false));
    return w->job->opts.equalize ? consider_both(w, 2, true) : EW_OK;
}

void ew_quant_remedies_fini(struct ew_quant_remedies *w)
{
    for (int i = EW_QUANT_REMEDIES - 1; i >= 0; i--) /* later variants borrow from earlier ones */
        ew_quant_variant_fini(&w->all[i]);
}
