/* SPDX-License-Identifier: Apache-2.0 */
/* Inference within a memory limit: kernels by what they pack.
 *
 * The fastest kernel of a layer may keep several times the bytes of its weights: Winograd's
 * transformed filters take up to 36 numbers for 9.  A dry plan says what the rules would take.
 * Where that is too much, layers change to the kernel that packs least, those first that lose the
 * fewest estimated cycles for a byte, until it fits. */
#include "plan/pack_limit.h"

#include <stdlib.h>
#include <string.h>

#include "backend/candidates.h"
#include "compress/pass.h"
#include "plan/limit.h"

#define CANDIDATES 16
#define SMALL      ((size_t)64 << 10) /* bytes of weights that arenas do not release alone */

/* A layer by another kernel. */
struct swap {
    int node;
    const char *kernel;
    size_t saved;  /* bytes */
    double slower; /* cycles, estimated */
};

struct search {
    struct ew_graph *g;
    struct ew_plan_opts opts;
    struct ew_plan_given given;
    const char **kernels; /* by node: NULL: by rules */
    struct swap *swaps;   /* cheapest first */
    int n_swaps, used;
    double cycles; /* of all layers by rules, estimated */
    bool once;     /* what is packed is in memory in that form alone */
};

/* ---- What a plan takes ---- */

static bool reads(const struct ew_plan *p, int value)
{
    for (int k = 0; k < p->g->n_nodes; k++) {
        const struct ew_node *n = &p->g->nodes[k];
        for (int i = 0; i < n->n_in && p->needed[k]; i++)
            if (n->in[i] == value && !ew_plan_node_packs(p, k, i))
                return true;
    }
    return false;
}

static bool is_weight(const struct ew_value *v)
{
    return v->kind != EW_VALUE_ACT && v->kind != EW_VALUE_INPUT;
}

/* The plan's memory, and weights that stay: those that kernels read where they lie, those too small
 * to be released, which lie in the caller's graph and in the plan's, and all of the caller's where
 * they are not the plan's to release. */
static size_t bytes_of(const struct ew_plan *p, bool once)
{
    struct ew_plan_stats s;
    ew_plan_stats(p, &s);
    size_t bytes = s.arena_bytes;
    for (int i = 0; i < p->g->n_values; i++) {
        const struct ew_value *v = &p->g->values[i];
        const size_t own = is_weight(v) ? ew_tensor_bytes(&v->t) : 0;
        if (!once || reads(p, i))
            bytes += own;
        if (once && own < SMALL)
            bytes += 2 * own;
    }
    return bytes;
}

/* ---- Other kernels ---- */

static double cycles_of(const struct ew_kernel_candidate *c, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (!c[i].refused && strcmp(c[i].name, name) == 0)
            return c[i].cycles;
    return 0;
}

/* The kernel on offer that packs least, where that is less than the step's. */
static ew_err find_swap(struct search *s, const struct ew_plan *p, int step)
{
    struct ew_kernel_query query;
    struct ew_kernel offers[EW_OFFERS];
    struct ew_kernel_candidate known[CANDIDATES];
    const struct ew_kernel *now = &p->steps[step].kernel, *least = now;
    int n = 0;
    if (!now->packed || !ew_plan_step_query(p, step, &query))
        return EW_OK;
    EW_TRY(ew_backend_offer(&query, offers, &n));
    for (int i = 0; i < n; i++)
        if (offers[i].packed && offers[i].packed < least->packed)
            least = &offers[i];
    const int n_known = ew_backend_candidates(&query, known, CANDIDATES);
    const double before = cycles_of(known, n_known, now->name);
    s->cycles += before;
    if (least == now)
        return EW_OK;
    const double after = cycles_of(known, n_known, least->name);
    s->swaps[s->n_swaps++] = (struct swap){.node = p->steps[step].node,
                                           .kernel = least->name,
                                           .saved = now->packed - least->packed,
                                           .slower = after > before ? after - before : 0};
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

/* Takes swaps until they save so many bytes more. */
static void take_swaps(struct search *s, size_t bytes)
{
    for (size_t saved = 0; s->used < s->n_swaps && saved < bytes; s->used++) {
        s->kernels[s->swaps[s->used].node] = s->swaps[s->used].kernel;
        saved += s->swaps[s->used].saved;
    }
}

/* ---- The search ---- */

static ew_err begin(struct search *s, const struct ew_plan *p)
{
    s->swaps = calloc((size_t)p->n_steps + 1, sizeof(*s->swaps));
    s->kernels = calloc((size_t)p->g->n_nodes + 1, sizeof(*s->kernels));
    EW_CHECK(s->swaps && s->kernels, EW_ERR_MEMORY, "no memory to choose kernels of %s",
             s->g->name);
    for (int k = 0; k < p->n_steps; k++)
        EW_TRY(find_swap(s, p, k));
    qsort(s->swaps, (size_t)s->n_swaps, sizeof(*s->swaps), by_price);
    s->given.kernels = s->kernels;
    return EW_OK;
}

static ew_err search(struct search *s)
{
    static const struct ew_strategy whole = {.segments = 1, .parts = 1};
    const size_t limit = s->opts.memory_limit;
    for (bool first = true;; first = false) {
        struct ew_plan *p;
        EW_TRY(ew_plan_build(s->g, &s->opts, &whole, &p));
        const size_t bytes = bytes_of(p, s->once);
        const ew_err e = first && bytes > limit ? begin(s, p) : EW_OK;
        ew_plan_free(p);
        EW_TRY(e);
        if (bytes <= limit)
            return EW_OK;
        EW_CHECK(s->used < s->n_swaps, EW_ERR_LIMIT,
                 "%s needs at least %zu bytes, %zu more than the limit of %zu", s->g->name, bytes,
                 bytes - limit, limit);
        take_swaps(s, bytes - limit);
    }
}

/* The graph as the plan will have it, so that nodes have the same numbers; *out is NULL where that
 * is the caller's own. */
static ew_err passed_graph(struct ew_graph *g, const struct ew_plan_opts *o, struct ew_graph **out)
{
    *out = NULL;
    if (!g->inferred)
        EW_TRY(ew_graph_infer(g));
    if (!o->optimize)
        return EW_OK;
    EW_TRY(ew_graph_clone(g, out));
    return ew_pass_all(*out);
}

static struct ew_strategy strategy_of(const struct search *s)
{
    struct ew_strategy st = {.segments = 1, .parts = 1, .swapped = s->used};
    for (int i = 0; i < s->used && s->cycles > 0; i++)
        st.slower += s->swaps[i].slower / s->cycles;
    return st;
}

ew_err ew_pack_limit_compile(struct ew_graph *g, const struct ew_plan_opts *o, struct ew_plan **out)
{
    struct search s = {.g = g, .opts = *o, .once = o->consume};
    struct ew_graph *passed;
    if (o->given) { /* an engine maps what is packed, and what is not */
        s.given = *o->given;
        s.once = s.once || s.given.packed_of;
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
