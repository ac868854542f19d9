/* SPDX-License-Identifier: Apache-2.0 */
/* What one run of a plan costs on a CPU. */
#include "advise/work_load.h"

#include <math.h>
#include <string.h>

#include "advise/call_bytes.h"
#include "backend/candidates.h"
#include "compress/pass.h"
#include "plan/plan.h"

#define CANDIDATES      32
#define FLOPS_PER_CYCLE 32 /* of a core whose vectors hold eight floats: two products each */

/* An estimate of cycles has the weights in it, which come after the input. */
static double call_bytes(const struct ew_call *c, bool estimated)
{
    return ew_call_bytes(c, estimated && c->n_in > 1 ? 1 : c->n_in);
}

/* The chosen kernel's entry of the catalogue; false: it has none. */
static bool chosen(const struct ew_kernel_query *q, const char *kernel,
                   struct ew_kernel_candidate *out)
{
    struct ew_kernel_candidate list[CANDIDATES];
    const int n = ew_backend_candidates(q, list, CANDIDATES);
    for (int i = 0; i < n; i++)
        if (strcmp(list[i].name, kernel) == 0) {
            *out = list[i];
            return true;
        }
    return false;
}

static void take_step(const struct ew_plan *p, int k, struct ew_work_load *l, double *integers)
{
    struct ew_step_info info;
    struct ew_kernel_query q;
    struct ew_kernel_candidate c;
    ew_plan_step_info(p, k, &info);
    if (info.kernel && strcmp(info.kernel, "view") == 0)
        return;
    struct ew_work_step *s = &l->steps[l->n++];
    *s = (struct ew_work_step){.flops = info.flops};
    bool integer = false;
    if (ew_plan_step_query(p, k, &q) && q.c) {
        if (info.kernel && chosen(&q, info.kernel, &c)) {
            s->cycles = c.cycles;
            integer = strcmp(c.technique, "int8") == 0;
        }
        s->bytes = call_bytes(q.c, s->cycles > 0);
    }
    const double cycles = s->cycles > 0 ? s->cycles : s->flops / FLOPS_PER_CYCLE;
    l->cycles += cycles;
    *integers += integer ? cycles : 0;
}

static ew_err load_of(struct ew_arena *a, struct ew_graph *g, bool train, struct ew_work_load *l)
{
    const struct ew_plan_opts o = {
        .mode = train ? EW_PLAN_TRAIN : EW_PLAN_INFER,
        .dry = true,
        .update = train,
        .optimizer = {.kind = EW_OPTIMIZER_SGD, .lr = 0.01, .momentum = 0.9},
        .backend = {.device = "cpu", .threads = 1}};
    struct ew_plan *p;
    double integers = 0;
    if (!train)
        EW_TRY(ew_pass_all(g)); /* a dry plan leaves these out */
    EW_TRY(ew_plan_compile(g, &o, &p));
    l->steps = ew_arena_array(a, (size_t)ew_plan_step_count(p) + 1, sizeof(*l->steps));
    for (int k = 0; l->steps && k < ew_plan_step_count(p); k++)
        take_step(p, k, l, &integers);
    struct ew_plan_stats stats;
    ew_plan_stats(p, &stats);
    /* Inference gives up weights that a kernel has packed. */
    const double packed = train ? 0 : (double)stats.packed_bytes;
    l->memory_bytes = (double)stats.arena_bytes + fmax((double)stats.weight_bytes - packed, 0);
    l->integers = integers > 0.5 * l->cycles;
    ew_plan_free(p);
    EW_CHECK(l->steps, EW_ERR_MEMORY, "no memory for a plan's steps");
    return EW_OK;
}

ew_err ew_work_load_of(struct ew_arena *a, const struct ew_graph *g, bool train,
                       struct ew_work_load *out)
{
    struct ew_graph *copy;
    *out = (struct ew_work_load){.n = 0};
    EW_TRY(ew_graph_clone(g, &copy));
    const ew_err e = load_of(a, copy, train, out);
    ew_graph_free(copy);
    return e;
}
