/* SPDX-License-Identifier: Apache-2.0 */
/* Inference within a memory limit: kernels chosen by the size of their packed weights.
 *
 * The fastest kernel of a layer may pack several times the bytes of its weights: Winograd F(4x4,
 * 3x3) needs 36 numbers for 9.  A dry plan gives the memory of the kernels chosen by rules.  If
 * that is over the limit, layers switch to the kernel that packs least, in order of estimated
 * cycles lost per byte saved, until the plan fits; if that is not enough, all switch to the kernel
 * with the least packed weights + scratch. */
#include "plan/limit/pack_limit.h"

#include <stdlib.h>
#include <string.h>

#include "backend/candidates.h"
#include "base/mem.h"
#include "plan/strategy.h"

#define CANDIDATES 16
/* Weights below this size share arena blocks, and are not freed. */
#define SMALL ((size_t)64 << 10)

/* Another kernel for a layer. */
struct swap {
    int node;
    const char *kernel;
    size_t saved;         /* bytes */
    double slower;        /* cycles, estimated */
    const char *smallest; /* kernel with the least packed weights + scratch */
    double smallest_slower;
};

struct search {
    struct ew_graph *g;
    struct ew_plan_opts opts;
    struct ew_plan_given given;
    const char **kernels; /* by node; NULL: by rules */
    struct swap *swaps;   /* cheapest first */
    int n_swaps, used;
    double cycles;    /* estimate for all layers, kernels by rules */
    bool packed_only; /* weights that are packed are in memory in packed form only */
    bool smallest;    /* all swaps are applied, each to its `smallest` */
};

/* ---- Memory of a plan ---- */

/* Marks weights that some step reads unpacked. */
static void mark_read(const struct ew_graph *g, struct ew_plan *p, bool *read)
{
    const void *data;
    size_t bytes;
    for (int k = 0; k < g->n_nodes; k++)
        for (int i = 0; i < g->nodes[k].n_in && ew_plan_node_kernel(p, k, &data, &bytes); i++)
            if (g->nodes[k].in[i] >= 0 && !ew_plan_node_packs(p, k, i))
                read[g->nodes[k].in[i]] = true;
}

/* Memory of the plan and of unpacked weights: those that kernels read; those too small to be freed,
 * which are both in the caller's graph and in the plan's; and all, if the plan may not free them.
 */
static ew_err total_bytes(const struct search *s, struct ew_plan *p, size_t *out)
{
    EW_CLEANUP(ew_free_ptr) bool *read = calloc((size_t)s->g->n_values + 1, sizeof(*read));
    EW_CHECK(read, EW_ERR_MEMORY, "no memory to choose kernels of %s", s->g->name);
    struct ew_plan_stats stats;
    ew_plan_stats(p, &stats);
    mark_read(s->g, p, read);
    *out = stats.arena_bytes;
    for (int i = 0; i < s->g->n_values; i++) {
        const struct ew_value *v = &s->g->values[i];
        const size_t own = ew_value_is_weight(v) ? ew_tensor_bytes(&v->t) : 0;
        if (!s->packed_only || read[i])
            *out += own;
        if (s->packed_only && own < SMALL)
            *out += 2 * own;
    }
    return EW_OK;
}

/* ---- Other kernels ---- */

static double cycles_of(const struct ew_kernel_candidate *c, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (!c[i].refused && strcmp(c[i].name, name) == 0)
            return c[i].cycles;
    return 0;
}

/* Finds the offered kernel that packs least, if less than the step's. */
static ew_err find_swap(struct search *s, struct ew_plan *p, int step)
{
    struct ew_step_info info;
    struct ew_kernel_query query;
    struct ew_kernel offers[EW_OFFERS];
    struct ew_kernel_candidate known[CANDIDATES];
    const void *data;
    size_t now = 0;
    int n = 0;
    ew_plan_step_info(p, step, &info);
    if (!ew_plan_step_query(p, step, &query) || !ew_plan_node_kernel(p, info.node, &data, &now) ||
        now == 0)
        return EW_OK;
    EW_TRY(ew_backend_offer(&query, offers, &n));
    const struct ew_kernel *least = NULL, *smallest = NULL;
    for (int i = 0; i < n; i++) {
        if (!offers[i].packed || offers[i].packed >= now)
            continue;
        if (!least || offers[i].packed < least->packed)
            least = &offers[i];
        if (!smallest ||
            offers[i].packed + offers[i].scratch < smallest->packed + smallest->scratch)
            smallest = &offers[i];
    }
    const int n_known = ew_backend_candidates(&query, known, CANDIDATES);
    const double before = cycles_of(known, n_known, info.kernel);
    s->cycles += before;
    if (!least)
        return EW_OK;
    const double after = cycles_of(known, n_known, least->name);
    const double at_last = cycles_of(known, n_known, smallest->name);
    s->swaps[s->n_swaps++] =
        (struct swap){.node = info.node,
                      .kernel = least->name,
                      .saved = now - least->packed,
                      .slower = after > before ? after - before : 0,
                      .smallest = smallest->name,
                      .smallest_slower = at_last > before ? at_last - before : 0};
    return EW_OK;
}

static int by_price(const void *a, const void *b)
{
    const struct swap *x = a, *y = b;
    const double left = x->slower * (double)y->saved, right = y->slower * (double)x->saved;
    if (left < right || left > right)
        return left < right ? -1 : 1;
    return x->node - y->node;
}

/* Applies swaps until they save `bytes` more. */
static void apply_swaps(struct search *s, size_t bytes)
{
    for (size_t saved = 0; s->used < s->n_swaps && saved < bytes; s->used++) {
        s->kernels[s->swaps[s->used].node] = s->swaps[s->used].kernel;
        saved += s->swaps[s->used].saved;
    }
}

static void apply_smallest(struct search *s)
{
    for (int i = 0; i < s->n_swaps; i++) {
        s->kernels[s->swaps[i].node] = s->swaps[i].smallest;
        s->swaps[i].slower = s->swaps[i].smallest_slower;
    }
    s->smallest = true;
}

/* ---- The search ---- */

static ew_err begin(struct search *s, struct ew_plan *p)
{
    s->swaps = calloc((size_t)ew_plan_step_count(p) + 1, sizeof(*s->swaps));
    s->kernels = calloc((size_t)s->g->n_nodes + 1, sizeof(*s->kernels));
    EW_CHECK(s->swaps && s->kernels, EW_ERR_MEMORY, "no memory to choose kernels of %s",
             s->g->name);
    for (int k = 0; k < ew_plan_step_count(p); k++)
        EW_TRY(find_swap(s, p, k));
    qsort(s->swaps, (size_t)s->n_swaps, sizeof(*s->swaps), by_price);
    s->given.kernels = s->kernels;
    return EW_OK;
}

static ew_err search(struct search *s)
{
    static const struct ew_strategy whole = {.segments = 1, .micro_batches = 1};
    const size_t limit = s->opts.memory_limit;
    for (bool first = true;; first = false) {
        struct ew_plan *p;
        EW_TRY(ew_plan_build(s->g, &s->opts, &whole, &p));
        size_t bytes = 0;
        ew_err e = total_bytes(s, p, &bytes);
        if (e == EW_OK && first && bytes > limit)
            e = begin(s, p);
        ew_plan_free(p);
        EW_TRY(e);
        if (bytes <= limit)
            return EW_OK;
        EW_CHECK(!s->smallest, EW_ERR_LIMIT,
                 "%s needs at least %zu bytes, %zu more than the limit of %zu", s->g->name, bytes,
                 bytes - limit, limit);
        if (s->used < s->n_swaps)
            apply_swaps(s, bytes - limit);
        else
            apply_smallest(s);
    }
}

/* The graph after the plan's passes, so that node numbers agree; *out is NULL if that is the
 * caller's. */
static ew_err passed_graph(struct ew_graph *g, const struct ew_plan_opts *o, struct ew_graph **out)
{
    *out = NULL;
    if (!g->inferred)
        EW_TRY(ew_graph_infer(g));
    if (!o->optimize)
        return EW_OK;
    EW_TRY(ew_graph_clone(g, out));
    if (o->given && o->given->backend)
        return ew_plan_passes(&ew_backend_info(o->given->backend)->passes, *out);
    struct ew_device_found device;
    EW_TRY(ew_backend_probe(o->backend.device, &device));
    return ew_plan_passes(&device.passes, *out);
}

static struct ew_strategy strategy_of(const struct search *s)
{
    struct ew_strategy st = {.segments = 1, .micro_batches = 1, .swapped = s->used};
    for (int i = 0; i < s->used && s->cycles > 0; i++)
        st.slower += s->swaps[i].slower / s->cycles;
    return st;
}

ew_err ew_pack_limit_compile(struct ew_graph *g, const struct ew_plan_opts *o, struct ew_plan **out)
{
    struct search s = {.g = g, .opts = *o, .packed_only = o->consume};
    struct ew_graph *passed;
    if (o->given) { /* an engine file maps both packed and unpacked weights */
        s.given = *o->given;
        s.packed_only = s.packed_only || s.given.packed_of;
    }
    s.opts.given = &s.given;
    s.opts.dry = true;
    s.opts.optimize = false;
    ew_err e = passed_graph(g, o, &passed);
    if (passed)
        s.g = passed;
    if (e == EW_OK)
        e = search(&s);
    ew_graph_free(passed);
    const struct ew_strategy st = strategy_of(&s);
    s.opts.dry = o->dry;
    s.opts.optimize = o->optimize;
    if (e == EW_OK)
        e = ew_plan_build(g, &s.opts, &st, out);
    free(s.swaps);
    free(s.kernels);
    return e;
}
