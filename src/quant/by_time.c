/* SPDX-License-Identifier: Apache-2.0 */
/* Which layers stay float32 for speed.  A layer that is slower in int8 by itself may still be
 * better quantised, since float32 between int8 layers costs conversions on both sides.  So runs of
 * adjacent layers are tried together, and the time of the whole network decides. */
#include <stdio.h>
#include <stdlib.h>

#include "edgewise.h"
#include "quant/gate.h"

#define SLOWER 1.05  /* int8 counts as slower from this ratio of times on; below it is noise */
#define COUNTS 0.005 /* share of the network's time below which a layer is ignored */
#define FASTER 0.99  /* a choice counts as faster below this share of the best time */
#define TRIALS 12    /* groups tried; each costs a plan and about twenty runs */

static bool is_slow(const struct ew_quant_layer *l, double whole_s)
{
    return !l->is_float && l->float_s > COUNTS * whole_s && l->int8_s > SLOWER * l->float_s;
}

static int by_saving(const void *a, const void *b)
{
    const struct ew_quant_group *x = a, *y = b;
    return x->saves_s > y->saves_s ? -1 : x->saves_s < y->saves_s;
}

int ew_quant_slow_groups(const struct ew_quant_layer *layers, int n, double whole_s,
                         struct ew_quant_group *out)
{
    int groups = 0;
    bool open = false;
    for (int i = 0; i < n; i++) {
        const struct ew_quant_layer *l = &layers[i];
        const bool slow = is_slow(l, whole_s);
        if (slow && !open)
            out[groups++] = (struct ew_quant_group){.first = i};
        open = slow ||
               (open && l->is_float); /* a layer that is float32 anyway does not end the group */
        if (!slow)
            continue;
        out[groups - 1].n = i + 1 - out[groups - 1].first;
        out[groups - 1].saves_s += l->int8_s - l->float_s;
    }
    qsort(out, (size_t)groups, sizeof(*out), by_saving);
    return groups;
}

static ew_err time_now(struct ew_quant_gate *gate, double *s)
{
    struct ew_graph *g = NULL;
    ew_err e = ew_quant_gate_build(gate, &g);
    if (e == EW_OK)
        e = ew_quant_time(g, gate->job->opts.threads, NULL, 0, NULL, s);
    ew_graph_free(g);
    return e;
}

/* Makes the slow layers of a group float32; undoes it if the network is not faster. */
static ew_err try_group(struct ew_quant_gate *gate, const struct ew_quant_group *group,
                        double *best)
{
    struct ew_quant_result *r = gate->out;
    EW_CLEANUP(ew_free_ptr) bool *tried = calloc((size_t)group->n + 1, sizeof(*tried));
    EW_CHECK(tried, EW_ERR_MEMORY, "no memory for %d layers", group->n);
    for (int i = 0; i < group->n; i++) {
        struct ew_quant_layer *l = &r->layers[group->first + i];
        char why[sizeof(l->reason)];
        tried[i] = is_slow(l, r->float_s);
        snprintf(why, sizeof(why), "int8 takes %.2f times as long here", l->int8_s / l->float_s);
        if (tried[i])
            ew_quant_gate_set(gate, l, why);
    }
    double s;
    EW_TRY(time_now(gate, &s));
    if (s < FASTER * *best) {
        *best = s;
        return EW_OK;
    }
    for (int i = 0; i < group->n; i++)
        if (tried[i])
            ew_quant_gate_set(gate, &r->layers[group->first + i], NULL);
    return EW_OK;
}

ew_err ew_quant_gate_by_time(struct ew_quant_gate *gate)
{
    struct ew_quant_result *r = gate->out;
    const int n = r->n_layers;
    EW_CLEANUP(ew_free_ptr) struct ew_quant_group *groups = calloc((size_t)n + 1, sizeof(*groups));
    EW_CHECK(groups, EW_ERR_MEMORY, "no memory for %d layers", n);
    const int all = ew_quant_slow_groups(r->layers, n, r->float_s, groups);
    if (all == 0)
        return EW_OK;
    struct ew_progress bar;
    const int trials = all < TRIALS ? all : TRIALS;
    double best;
    ew_progress_begin(&bar, gate->job->talk, "timing choices", trials + 1);
    ew_err e = time_now(gate, &best);
    if (e == EW_OK) /* first all together, then group by group */
        e = try_group(gate, &(struct ew_quant_group){.n = n}, &best);
    for (int i = 0; e == EW_OK && all > 1 && i < trials; i++) {
        ew_progress_update(&bar, i + 1);
        if (is_slow(&r->layers[groups[i].first], r->float_s)) /* still int8 */
            e = try_group(gate, &groups[i], &best);
    }
    ew_progress_end(&bar);
    for (int i = 0; e == EW_OK && i < n; i++)
        if (is_slow(&r->layers[i], r->float_s))
            snprintf(r->layers[i].reason, sizeof(r->layers[i].reason),
                     "%.2f times as long here, but conversions round float32 cost more",
                     r->layers[i].int8_s / r->layers[i].float_s);
    return e;
}
