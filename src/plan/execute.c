/* SPDX-License-Identifier: Apache-2.0 */
/* Running plans: consecutive device steps are one program, loaded once; host steps run between
 * programs. */
#include <stdlib.h>

#include "base/clock.h"
#include "plan/plan_impl.h"

/* ---- Loading ---- */

/* Without micro-batches the only one is both the first and the last. */
static bool runs_in(const struct ew_plan *p, const struct ew_step *s, enum ew_micro_batch kind)
{
    return s->kernel.run && (s->micro_batches >> kind & 1 || p->strategy.micro_batches == 1);
}

bool ew_plan_runs_last(const struct ew_plan *p, const struct ew_step *s)
{
    return runs_in(p, s, EW_MICRO_BATCH_LAST);
}

/* Makes a segment of the commands since the end of the last one. */
static ew_err add_segment(struct ew_plan *p, struct ew_run_list *l, struct ew_host_step *host,
                          const struct ew_command *commands)
{
    const struct ew_segment *last = l->n ? &l->segments[l->n - 1] : NULL;
    const int first = last ? last->first + last->n : 0, n = l->n_steps - first;
    if (n == 0)
        return EW_OK;
    EW_TRY(ew_grow((void **)&l->segments, &l->cap, l->n + 1, sizeof(*l->segments)));
    struct ew_segment *s = &l->segments[l->n];
    *s = (struct ew_segment){.host = host, .first = first, .n = n};
    EW_TRY(ew_backend_load(host ? p->host : p->be, commands + first, n, &s->program));
    l->n++;
    return EW_OK;
}

/* True if all steps of a run are one program. */
static bool is_one_program(const struct ew_plan *p)
{
    for (int k = 0; k < p->n_steps; k++)
        if (p->steps[k].host || p->steps[k].stop != EW_STOP_END || p->steps[k].buckets)
            return false;
    return !p->opts.bucket_bytes;
}

static ew_err load_list(struct ew_plan *p, enum ew_micro_batch kind, struct ew_run_list *l)
{
    EW_CLEANUP(ew_free_ptr)
    struct ew_command *commands = calloc((size_t)p->n_steps + 1, sizeof(*commands));
    EW_CLEANUP(ew_free_ptr)
    bool *makes_output = calloc((size_t)p->g->n_nodes + 1, sizeof(*makes_output));
    l->steps = calloc((size_t)p->n_steps + 1, sizeof(*l->steps));
    EW_CHECK(commands && makes_output && l->steps, EW_ERR_MEMORY, "no memory to run graph %s",
             p->g->name);
    for (int i = 0; i < p->g->n_outputs; i++) {
        const int node = p->g->values[p->g->outputs[i]].producer;
        if (node >= 0)
            makes_output[node] = true;
    }
    const bool one = is_one_program(p);
    for (int k = 0; k < p->n_steps; k++) {
        struct ew_step *s = &p->steps[k];
        if (!runs_in(p, s, kind))
            continue;
        if (s->host)
            EW_TRY(add_segment(p, l, NULL, commands));
        const bool output = s->phase == EW_PHASE_FORWARD && s->node >= 0 && makes_output[s->node];
        l->steps[l->n_steps] = k;
        commands[l->n_steps++] = (struct ew_command){.kernel = &s->kernel,
                                                     .call = ew_step_call(s),
                                                     .node = s->node,
                                                     .phase = s->phase,
                                                     .is_read_later = !one || output};
        if (s->host || (kind == EW_MICRO_BATCH_LAST && (s->stop != EW_STOP_END || s->buckets)))
            EW_TRY(add_segment(p, l, s->host, commands));
    }
    return add_segment(p, l, NULL, commands);
}

ew_err ew_plan_load(struct ew_plan *p)
{
    for (enum ew_micro_batch kind = 0; kind < EW_MICRO_BATCH_KINDS; kind++)
        if (kind == EW_MICRO_BATCH_LAST || p->strategy.micro_batches > 1)
            EW_TRY(load_list(p, kind, &p->lists[kind]));
    return EW_OK;
}

void ew_plan_unload(struct ew_plan *p)
{
    for (int kind = 0; kind < EW_MICRO_BATCH_KINDS; kind++) {
        struct ew_run_list *l = &p->lists[kind];
        for (int i = 0; i < l->n; i++)
            ew_backend_unload(l->segments[i].program);
        free(l->segments);
        free(l->steps);
        *l = (struct ew_run_list){0};
    }
}

/* ---- Running ---- */

static ew_err copy_in(const struct ew_plan *p, const struct ew_host_step *h)
{
    for (const struct ew_copy *c = h->copies; c < h->copies + h->n_copies; c++)
        if (c->in)
            EW_TRY(ew_plan_read_slot(p, c->slot, *c->data));
    return EW_OK;
}

static ew_err copy_out(const struct ew_plan *p, const struct ew_host_step *h)
{
    for (const struct ew_copy *c = h->copies; c < h->copies + h->n_copies; c++)
        if (c->out)
            EW_TRY(ew_plan_write_slot(p, c->slot, *c->data));
    return EW_OK;
}

/* Runs a program, timing every step if `ns` is not NULL. */
static ew_err run_program(struct ew_plan *p, const struct ew_segment *s, int64_t *ns)
{
    return ns ? ew_backend_run_timed(s->program, &p->params, ns)
              : ew_backend_run(s->program, &p->params);
}

ew_err ew_plan_run_segment(struct ew_plan *p, const struct ew_segment *s, int64_t *ns)
{
    if (!s->host)
        return run_program(p, s, ns);
    const int64_t start = ew_clock_ns();
    EW_TRY(copy_in(p, s->host));
    const int64_t before = ew_clock_ns();
    EW_TRY(run_program(p, s, ns));
    const int64_t after = ew_clock_ns();
    EW_TRY(copy_out(p, s->host));
    if (!ns)
        return EW_OK;
    EW_TRY(ew_backend_sync(p->be));
    s->host->copy_ns = ew_clock_ns() - after + before - start;
    *ns += s->host->copy_ns;
    return EW_OK;
}

static ew_err run_list(struct ew_plan *p, const struct ew_run_list *l, int64_t *ns)
{
    for (int i = 0; i < l->n; i++)
        EW_TRY(ew_plan_run_segment(p, &l->segments[i], ns ? ns + l->segments[i].first : NULL));
    return EW_OK;
}

/* The loss of the last micro-batch. */
static ew_err micro_batch_loss(struct ew_plan *p, double *out)
{
    const struct ew_slot *slot = &p->values[p->g->outputs[0]];
    struct ew_tensor loss = slot->t;
    double bytes = 0; /* storage for a number of any type */
    loss.data = &bytes;
    EW_TRY(ew_plan_read_slot(p, slot, loss.data));
    *out = ew_tensor_get(&loss, 0);
    return EW_OK;
}

static ew_err begin_micro_batch(struct ew_plan *p, int i)
{
    if (p->strategy.micro_batches > 1)
        ew_plan_set_micro_batch(p, i);
    return ew_plan_write_inputs(p, i);
}

ew_err ew_plan_run_first_micro_batches(struct ew_plan *p, double *sum)
{
    const int n = p->strategy.micro_batches;
    *sum = 0;
    for (int i = 0; i < n - 1; i++) {
        double loss;
        EW_TRY(begin_micro_batch(p, i));
        EW_TRY(run_list(p, &p->lists[i == 0 ? EW_MICRO_BATCH_FIRST : EW_MICRO_BATCH_MIDDLE], NULL));
        EW_TRY(micro_batch_loss(p, &loss));
        *sum += loss;
    }
    return begin_micro_batch(p, n - 1);
}

ew_err ew_plan_end_run(struct ew_plan *p, double sum)
{
    const int n = p->strategy.micro_batches;
    double loss = 0;
    if (n > 1)
        EW_TRY(micro_batch_loss(p, &loss));
    EW_TRY(ew_plan_fetch_outputs(p, p->in_flight.shown));
    EW_TRY(ew_backend_sync(p->be));
    p->opts.optimizer.step += p->opts.update;
    if (n == 1)
        return EW_OK;
    sum = (sum + loss) / n;
    /* With micro-batches there is one set of outputs. */
    struct ew_tensor *out = p->outputs ? &p->outputs[0] : &p->values[p->g->outputs[0]].t;
    ew_tensor_store(out, 0, 1, &sum);
    return EW_OK;
}

ew_err ew_plan_run(struct ew_plan *p)
{
    double sum;
    EW_CHECK(!p->opts.dry, EW_ERR_ARG, "a dry plan of graph %s cannot run", p->g->name);
    EW_CHECK(!p->in_flight.n, EW_ERR_ARG, "graph %s: a run that was started was not waited for",
             p->g->name);
    EW_TRY(ew_plan_run_first_micro_batches(p, &sum));
    EW_TRY(run_list(p, &p->lists[EW_MICRO_BATCH_LAST], NULL));
    return ew_plan_end_run(p, sum);
}

/* ---- Asynchronous runs ---- */

/* 2 if the device does all of a run: no host steps, no micro-batches. */
int ew_plan_depth(const struct ew_plan *p)
{
    const struct ew_run_list *l = &p->lists[EW_MICRO_BATCH_LAST];
    return l->n == 1 && !l->segments[0].host && p->output_sets == 2 ? 2 : 1;
}

ew_err ew_plan_start(struct ew_plan *p)
{
    struct ew_in_flight *a = &p->in_flight;
    const int depth = ew_plan_depth(p), set = a->next;
    EW_CHECK(a->n < depth, EW_ERR_ARG, "graph %s: %d runs are under way already", p->g->name, a->n);
    if (depth == 1) {
        const int64_t start = ew_clock_ns();
        EW_TRY(ew_plan_run(p));
        a->ns = ew_clock_ns() - start;
        a->n = 1;
        return EW_OK;
    }
    EW_TRY(ew_plan_write_inputs(p, 0));
    EW_TRY(ew_backend_event_record(p->be, 2 * set));
    EW_TRY(run_list(p, &p->lists[EW_MICRO_BATCH_LAST], NULL));
    EW_TRY(ew_plan_fetch_outputs(p, set));
    EW_TRY(ew_backend_event_record(p->be, 2 * set + 1));
    p->opts.optimizer.step += p->opts.update;
    a->next = 1 - set;
    a->n++;
    return EW_OK;
}

ew_err ew_plan_wait(struct ew_plan *p, int64_t *device_ns)
{
    struct ew_in_flight *a = &p->in_flight;
    EW_CHECK(a->n > 0, EW_ERR_ARG, "graph %s: no run is under way", p->g->name);
    int64_t ns = a->ns;
    if (ew_plan_depth(p) > 1) {
        const int set = a->n == 2 ? a->next : 1 - a->next;
        EW_TRY(ew_backend_event_wait(p->be, 2 * set + 1));
        EW_TRY(ew_backend_event_elapsed(p->be, 2 * set, 2 * set + 1, &ns));
        a->shown = set;
    }
    a->n--;
    if (device_ns)
        *device_ns = ns;
    return EW_OK;
}

ew_err ew_plan_run_steps(struct ew_plan *p)
{
    EW_CHECK(!p->opts.dry && p->strategy.micro_batches == 1, EW_ERR_ARG,
             "only a plan that runs the whole batch at once runs without its inputs");
    EW_TRY(run_list(p, &p->lists[EW_MICRO_BATCH_LAST], NULL));
    EW_TRY(ew_backend_sync(p->be));
    p->opts.optimizer.step += p->opts.update;
    return EW_OK;
}

/* ---- Timed runs ---- */

ew_err ew_plan_run_timed(struct ew_plan *p, int64_t *ns)
{
    const struct ew_run_list *l = &p->lists[EW_MICRO_BATCH_LAST];
    EW_CHECK(!p->opts.dry && p->strategy.micro_batches == 1, EW_ERR_ARG,
             "only a plan that runs the whole batch at once can be profiled");
    EW_CLEANUP(ew_free_ptr) int64_t *each = calloc((size_t)l->n_steps + 1, sizeof(*each));
    EW_CHECK(each, EW_ERR_MEMORY, "no memory to profile %d steps", l->n_steps);
    EW_TRY(ew_plan_write_inputs(p, 0));
    EW_TRY(run_list(p, l, each));
    for (int k = 0; k < p->n_steps; k++)
        ns[k] = 0;
    for (int k = 0; k < l->n_steps; k++)
        ns[l->steps[k]] = each[k];
    return ew_plan_end_run(p, 0);
}
