/* SPDX-License-Identifier: Apache-2.0 */
/* Closes gates by first-order importance, some units every few minibatches. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "scale/gates.h"

ew_err ew_pruner_open(const int32_t *widths, int gates, const struct ew_pruner_opts *o,
                      struct ew_pruner *out)
{
    *out = (struct ew_pruner){.o = *o, .gates = gates};
    for (int l = 0; l < gates; l++)
        out->units += widths[l];
    const size_t n = (size_t)out->units + 1;
    out->first = calloc((size_t)gates + 1, sizeof(*out->first));
    out->pruned = calloc((size_t)gates + 1, sizeof(*out->pruned));
    out->open = calloc(n, sizeof(*out->open));
    out->sum = calloc(n, sizeof(*out->sum));
    out->order = calloc(n, sizeof(*out->order));
    EW_CHECK(out->first && out->pruned && out->open && out->sum && out->order, EW_ERR_MEMORY,
             "no memory for %d gates", out->units);
    for (int l = 0; l < gates; l++)
        out->first[l + 1] = out->first[l] + widths[l];
    memset(out->open, true, (size_t)out->units);
    out->most = (int)trunc(o->fraction * out->units);
    out->steps = (out->most + o->per_step - 1) / o->per_step;
    return EW_OK;
}

void ew_pruner_close(struct ew_pruner *p)
{
    free(p->first);
    free(p->pruned);
    free(p->open);
    free(p->sum);
    free(p->order);
    ew_prune_rows_fini(&p->rows);
    *p = (struct ew_pruner){0};
}

static int left_in(const struct ew_pruner *p, int gate)
{
    int n = 0;
    for (int u = p->first[gate]; u < p->first[gate + 1]; u++)
        n += p->open[u];
    return n;
}

static ew_err add_row(struct ew_pruner *p)
{
    int32_t counts[EW_MAX_GATES];
    for (int l = 0; l < p->gates; l++)
        counts[l] = left_in(p, l);
    return ew_prune_rows_add(&p->rows, counts, p->gates);
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b; /* the first member */
    return x < y ? -1 : x > y;
}

/* Sorts units [from, to) by their criterion. */
static void sort_units(struct ew_pruner *p, int from, int to)
{
    for (int u = from; u < to; u++) {
        p->order[u].value = p->sum[u];
        p->order[u].unit = u;
    }
    qsort(p->order + from, (size_t)(to - from), sizeof(*p->order), by_value);
}

/* Closes all units of a gate up to the threshold; false if none would remain. */
static bool close_units(struct ew_pruner *p, int gate, double threshold)
{
    sort_units(p, p->first[gate], p->first[gate + 1]);
    for (int i = p->first[gate]; i < p->first[gate + 1] && p->order[i].value <= threshold; i++) {
        if (left_in(p, gate) == 1)
            return false;
        p->open[p->order[i].unit] = false;
        p->pruned[gate] = true;
    }
    return true;
}

static ew_err prune(struct ew_pruner *p)
{
    for (int u = 0; u < p->units; u++)
        p->sum[u] = p->open[u] ? p->sum[u] / p->since : 0;
    sort_units(p, 0, p->units);
    int at = p->closed + p->o.per_step - 1;
    at = at < p->most - 1 ? at : p->most - 1;
    at = at < p->units - 1 ? at : p->units - 1;
    const double threshold = p->order[at > 0 ? at : 0].value;
    for (int l = 0; l < p->gates && !p->done; l++)
        p->done = !close_units(p, l, threshold);
    if (p->done)
        return EW_OK; /* this step is not recorded */
    bool all = true;
    p->closed = p->units;
    for (int l = 0; l < p->gates; l++) {
        p->closed -= left_in(p, l);
        all &= p->pruned[l];
    }
    p->step++;
    return all ? add_row(p) : EW_OK;
}

ew_err ew_pruner_batch(struct ew_pruner *p, const double *gradients)
{
    for (int u = 0; u < p->units; u++)
        p->sum[u] += p->open[u] ? gradients[u] * gradients[u] : 0;
    p->since++;
    p->done |= p->step == p->steps; /* detected at the minibatch after the last step */
    if (!p->done && p->batches > 0 && p->batches % p->o.every == 0) {
        EW_TRY(prune(p));
        memset(p->sum, 0, (size_t)p->units * sizeof(*p->sum));
        p->since = 0;
    }
    p->batches++;
    return p->done && p->rows.n == 0 ? add_row(p) : EW_OK;
}
