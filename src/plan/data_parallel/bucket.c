/* SPDX-License-Identifier: Apache-2.0 */
/* Gradient buckets for data-parallel training: parameters in the order in which backward completes
 * them, cut at bucket_bytes.  The order depends on the graph alone, so that every rank has the same
 * buckets; when a gradient is complete depends on fusion, which may differ between batches. */
#include <stdlib.h>

#include "plan/plan_impl.h"

struct entry {
    int value, node, step; /* node: the first reader, whose backward is the last to add to the
                            * gradient */
};

static int last_node_first(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    return x->node != y->node ? (x->node < y->node) - (x->node > y->node)
                              : (x->value > y->value) - (x->value < y->value);
}

/* Lists parameters with a gradient; one that no backward step completes is complete at the end. */
static int list_parameters(const struct ew_plan *p, struct entry *out)
{
    int n = 0;
    for (int i = 0; i < p->g->n_values; i++)
        if (p->g->values[i].kind == EW_VALUE_PARAM && p->grads[i].first >= 0)
            out[n++] = (struct entry){i, p->stops.complete[i] ? p->uses[i].first : -1,
                                      p->stops.complete[i] ? p->stops.complete[i] : p->n_steps};
    qsort(out, (size_t)n, sizeof(*out), last_node_first);
    return n;
}

ew_err ew_plan_make_buckets(struct ew_plan *p)
{
    const size_t room = (size_t)p->g->n_values + 1;
    struct entry *all = ew_arena_array(&p->arena, room, sizeof(*all));
    int *values = ew_arena_array(&p->arena, room, sizeof(*values)), step = 0;
    p->stops.buckets = ew_arena_array(&p->arena, room, sizeof(*p->stops.buckets));
    EW_CHECK(all && values && p->stops.buckets, EW_ERR_MEMORY, "no memory for buckets");
    const int n = list_parameters(p, all);
    size_t bytes = 0;
    p->stops.n = 0;
    for (int i = 0, first = 0; i < n; i++) {
        values[i] = all[i].value;
        bytes += ew_tensor_bytes(&p->grads[all[i].value].t);
        step = all[i].step > step ? all[i].step : step;
        const bool together = i + 1 < n && all[i + 1].node == all[i].node;
        if (i + 1 < n && (together || bytes < p->opts.bucket_bytes))
            continue;
        p->stops.buckets[p->stops.n++] =
            (struct ew_bucket){.values = values + first, .n = i + 1 - first, .step = step};
        first = i + 1;
        bytes = 0;
    }
    return EW_OK;
}

int ew_plan_buckets(const struct ew_plan *p)
{
    return p->stops.n;
}

const int *ew_plan_bucket(const struct ew_plan *p, int bucket, int *n)
{
    *n = p->stops.buckets[bucket].n;
    return p->stops.buckets[bucket].values;
}
