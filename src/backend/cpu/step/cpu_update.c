/* SPDX-License-Identifier: Apache-2.0 */
/* Optimiser steps on the CPU's kernels. */
#include <math.h>

#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/fuse/fuse.h"
#include "backend/cpu/isa.h"
#include "backend/cpu/parallel.h"
#include "backend/cpu/step/cpu_update.h"
#include "op/optimizer.h"

#define GRAIN 4096 /* elements of a tile */

struct work {
    const struct ew_kernels *k;
    int64_t count;
    struct ew_update u;
};

static void update_tiles(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct work *w = ctx;
    const int64_t last = ew_min_i64(end * GRAIN, w->count);
    if (w->u.is_adam)
        w->k->adam_run(&w->u.adam, begin * GRAIN, last);
    else
        w->k->sgd_run(&w->u.sgd, begin * GRAIN, last);
}

static void fill_sgd(const struct ew_call *c, const struct ew_optimizer *o, struct ew_sgd *out)
{
    *out = (struct ew_sgd){.rate = (float)o->lr,
                           .momentum = c->n_in > 2 ? (float)o->momentum : 0,
                           .decay = (float)o->weight_decay,
                           .nesterov = o->kind == EW_OPTIMIZER_NESTEROV,
                           .w = c->in[0]->data,
                           .g = c->in[1]->data,
                           .m = c->n_in > 2 ? c->in[2]->data : NULL};
}

static void fill_adam(const struct ew_call *c, const struct ew_optimizer *o, struct ew_adam *out)
{
    const double t = (double)(o->step + 1);
    *out = (struct ew_adam){.rate = (float)o->lr,
                            .beta1 = (float)o->beta1,
                            .beta2 = (float)o->beta2,
                            .eps = (float)o->eps,
                            .decay = (float)o->weight_decay,
                            .c1 = (float)(1 - pow(o->beta1, t)),
                            .c2 = (float)(1 - pow(o->beta2, t)),
                            .decoupled = o->kind == EW_OPTIMIZER_ADAMW,
                            .w = c->in[0]->data,
                            .m = c->in[2]->data,
                            .v = c->in[3]->data,
                            .g = c->in[1]->data};
}

static void fill(const struct ew_call *c, struct ew_update *out)
{
    const struct ew_optimizer *o = c->attr;
    /* Zero the whole struct: kernels copy it, and compilers may load fields of either optimiser
     * before the branch. */
    *out = (struct ew_update){.is_adam =
                                  o->kind == EW_OPTIMIZER_ADAM || o->kind == EW_OPTIMIZER_ADAMW};
    if (out->is_adam)
        fill_adam(c, o, &out->adam);
    else
        fill_sgd(c, o, &out->sgd);
}

const struct ew_update *ew_cpu_update_of(const struct ew_call *c, struct ew_update *out)
{
    const struct ew_call *update = ew_call_fused(c, EW_ROLE_UPDATE);
    if (!update)
        return NULL;
    fill(update, out);
    return out;
}

ew_err ew_cpu_update(const struct ew_call *c)
{
    if (c->in[0]->dtype != EW_F32)
        return ew_update_run(c);
    struct work w = {.k = ew_cpu(c->be)->isa, .count = ew_tensor_count(c->in[0])};
    fill(c, &w.u);
    ew_pool_run(ew_cpu(c->be)->pool, (w.count + GRAIN - 1) / GRAIN, update_tiles, &w);
    return EW_OK;
}
