/* SPDX-License-Identifier: Apache-2.0 */
/* Walking the catalogue: the offers of a list, and all candidates with the reason for exclusion. */
#include "backend/cpu/catalogue/catalogue.h"

#include <math.h>
#include <string.h>

#include "backend/candidates.h"

const struct ew_kernel_list *ew_catalogue_at(int i)
{
    const struct ew_kernel_list *const ruled[] = {&ew_conv_kernels[0], &ew_conv_kernels[1],
                                                  &ew_dense_kernels[0], &ew_dense_kernels[1],
                                                  &ew_int8_conv_kernels};
    const int n = (int)EW_COUNT(ruled);
    if (i < n)
        return ruled[i];
    return i - n < ew_other_kernels_count ? &ew_other_kernels[i - n] : NULL;
}

/* The first condition that does not hold; NULL: all hold. */
static const struct ew_kernel_rule *first_refusal(const struct ew_kernel_entry *e,
                                                  const struct ew_kernel_case *c)
{
    for (int i = 0; i < EW_KERNEL_RULES && e->rules[i].holds; i++)
        if (!e->rules[i].holds(c))
            return &e->rules[i];
    return NULL;
}

static bool covers(const struct ew_kernel_list *l, const struct ew_kernel_query *query)
{
    if (l->phase != query->phase)
        return false;
    for (const struct ew_op *const *op = l->ops; *op; op++)
        if (*op == query->op)
            return true;
    return false;
}

const struct ew_kernel_list *ew_catalogue_find(const struct ew_kernel_query *query)
{
    const struct ew_kernel_list *l;
    for (int i = 0; (l = ew_catalogue_at(i)) != NULL; i++)
        if (l->resolve && covers(l, query))
            return l;
    return NULL;
}

int ew_catalogue_offer_dense(const struct ew_kernel_list *l, const struct ew_kernel_case *c,
                             struct ew_kernel *out)
{
    const int most = l->most ? l->most : EW_OFFERS - 1;
    int n = 0;
    for (int i = 0; i < l->n && n < most; i++)
        if (l->entries[i].make && !first_refusal(&l->entries[i], c))
            out[n++] = l->entries[i].make(c);
    return n;
}

int ew_catalogue_offer(const struct ew_kernel_list *l, const struct ew_kernel_query *query,
                       struct ew_kernel *out)
{
    struct ew_kernel_case c;
    if (query->phase != l->phase || !l->resolve(query, &c))
        return 0;
    const int n = ew_catalogue_offer_dense(l, &c, out);
    for (int i = 0; i < l->n && n > 0; i++)
        if (l->entries[i].wrap && !first_refusal(&l->entries[i], &c))
            out[0] = l->entries[i].wrap(&c, out[0]);
    return n;
}

/* ---- Candidates ---- */

/* Peaks of one core per cycle: two vector FMAs, four times as many 8-bit MACs, and bytes to or from
 * L2. */
#define VECTORS_A_CYCLE 2
#define INT8_RATE       4
#define BYTES_A_CYCLE   32

/* Roofline estimate: a lower bound of the cycles.  Backward is twice the work of forward: dgrad and
 * wgrad. */
static void add_roofline(const struct ew_kernel_query *query, struct ew_kernel_candidate *out)
{
    struct ew_cost cost = {0};
    const struct ew_kernels *k = ew_cpu(query->be)->isa;
    if (out->refused || !query->op->cost)
        return;
    query->op->cost(query->c, &cost);
    const bool bytes = query->c->n_in > 0 && query->c->in[0] && query->c->in[0]->dtype != EW_F32;
    const double rate = 2.0 * VECTORS_A_CYCLE * k->lanes * (bytes ? INT8_RATE : 1);
    const double passes = query->phase == EW_PHASE_BACKWARD ? 2 : 1;
    out->roofline =
        passes * fmax((double)cost.flops / rate, (double)cost.bytes / (double)BYTES_A_CYCLE);
}

static struct ew_kernel_candidate describe(const struct ew_kernel_entry *e,
                                           const struct ew_kernel_case *c)
{
    const struct ew_kernel_rule *no = first_refusal(e, c);
    struct ew_kernel_candidate out = {.name = e->name,
                                      .technique = e->folder,
                                      .refused = no ? no->says : NULL,
                                      .wraps = e->wrap != NULL};
    if (e->cycles && (!no || no->compares))
        out.cycles = e->cycles(c);
    if (e->detail && !no)
        out.detail = e->detail(c);
    return out;
}

/* A candidate of a list without conditions, or of one that does not support the call. */
static struct ew_kernel_candidate describe_only(const struct ew_kernel_list *l,
                                                const struct ew_kernel_entry *e,
                                                const struct ew_kernel *offers, int n)
{
    struct ew_kernel_candidate out = {.name = e->name, .technique = e->folder, .refused = l->needs};
    for (int i = 0; i < n && !l->resolve; i++)
        if (strcmp(offers[i].name, e->name) == 0)
            out.refused = NULL;
    return out;
}

int ew_cpu_candidates(const struct ew_kernel_query *query, struct ew_kernel_candidate *out,
                      int most)
{
    struct ew_kernel offers[EW_OFFERS];
    const struct ew_kernel_list *l;
    int n = 0, n_offers = 0;
    if (!ew_cpu(query->be)->isa || ew_backend_offer(query, offers, &n_offers) != EW_OK)
        return 0;
    for (int i = 0; (l = ew_catalogue_at(i)) != NULL; i++) {
        struct ew_kernel_case c;
        if (!covers(l, query))
            continue;
        const bool is_case = l->resolve && l->resolve(query, &c);
        for (int k = 0; k < l->n && n < most; k++) {
            out[n] = is_case ? describe(&l->entries[k], &c)
                             : describe_only(l, &l->entries[k], offers, n_offers);
            add_roofline(query, &out[n++]);
        }
    }
    return n;
}
