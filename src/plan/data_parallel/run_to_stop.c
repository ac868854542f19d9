/* SPDX-License-Identifier: Apache-2.0 */
/* Running a plan in pieces, between which ranks exchange gradients of complete buckets and
 * statistics of batch norms.  A segment ends wherever a run may stop. */
#include "plan/plan_impl.h"

/* Sets the last executed step before which a bucket is complete. */
static void mark_bucket(struct ew_plan *p, int bucket)
{
    int k = p->stops.buckets[bucket].step - 1;
    while (k > 0 && !ew_plan_runs_last(p, &p->steps[k]))
        k--;
    p->steps[k].buckets = bucket + 1;
}

void ew_plan_mark_stops(struct ew_plan *p)
{
    for (int i = 0; i < p->stops.n; i++)
        mark_bucket(p, i);
    for (int k = p->stops.n ? p->stops.buckets[0].step : p->n_steps; k < p->n_steps; k++)
        if (p->steps[k].phase == EW_PHASE_BACKWARD && p->steps[k].stop == EW_STOP_END)
            p->steps[k].stop = EW_STOP_PAUSE;
}

static const struct ew_step *last_step(const struct ew_plan *p, const struct ew_run_list *l,
                                       const struct ew_segment *s)
{
    return &p->steps[l->steps[s->first + s->n - 1]];
}

ew_err ew_plan_run_to_stop(struct ew_plan *p, struct ew_stop *out)
{
    struct ew_stop_state *at = &p->stops;
    const struct ew_run_list *l = &p->lists[EW_MICRO_BATCH_LAST];
    EW_CHECK(!p->opts.dry && p->opts.bucket_bytes, EW_ERR_ARG, "graph %s: its plan has no buckets",
             p->g->name);
    if (!at->begun) {
        at->segment = at->handed = 0;
        EW_TRY(ew_plan_run_first_micro_batches(p, &at->loss));
        at->begun = true;
    }
    int complete = at->segment ? last_step(p, l, &l->segments[at->segment - 1])->buckets : 0;
    while (complete <= at->handed && complete < at->n) {
        const struct ew_segment *s = &l->segments[at->segment++];
        const struct ew_step *last = last_step(p, l, s);
        EW_TRY(ew_plan_run_segment(p, s, NULL));
        complete = last->buckets > complete ? last->buckets : complete;
        const bool pause = last->stop == EW_STOP_PAUSE;
        if (last->stop != EW_STOP_END && (!pause || complete <= at->handed)) {
            *out = (struct ew_stop){.kind = last->stop, .norm = pause ? NULL : &last->call};
            return EW_OK;
        }
    }
    *out = (struct ew_stop){.kind = EW_STOP_END};
    if (at->handed < at->n)
        *out = (struct ew_stop){.kind = EW_STOP_BUCKET, .bucket = at->handed++};
    return EW_OK;
}

ew_err ew_plan_run_updates(struct ew_plan *p)
{
    struct ew_stop_state *at = &p->stops;
    const struct ew_run_list *l = &p->lists[EW_MICRO_BATCH_LAST];
    EW_CHECK(at->begun && at->handed == at->n, EW_ERR_ARG,
             "graph %s: its gradients are not complete yet", p->g->name);
    at->begun = false;
    while (at->segment < l->n)
        EW_TRY(ew_plan_run_segment(p, &l->segments[at->segment++], NULL));
    return ew_plan_end_run(p, at->loss);
}
