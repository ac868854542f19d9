/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel choice on the CPU: the kernel families of offer/, then the operator's reference. */
#include "backend/cpu/cpu_offer.h"

#include <string.h>

#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/step/cpu_update.h"
#include "op/optimizer.h"
#include "op/quant_weights.h"

#define EW_OFFER(name) extern const struct ew_kernel_family ew_offer_##name;
#include "offer_list.h"
#undef EW_OFFER

/* In the order of the files' names: of two families that serve an operator (offer_add.c and
 * offer_pair.c) the first that supports the call offers its kernels. */
static const struct ew_kernel_family *const families[] = {
#define EW_OFFER(name) &ew_offer_##name,
#include "offer_list.h"
#undef EW_OFFER
};

static bool serves(const struct ew_kernel_family *family, const struct ew_op *op)
{
    for (const struct ew_op *const *own = family->ops; *own; own++)
        if (*own == op)
            return true;
    return false;
}

/* Backward of a view: the gradient is the same bytes. */
static ew_err run_view_backward(const struct ew_call *c)
{
    if (!c->din[0] || !c->dout[0] || c->din[0]->data == c->dout[0]->data)
        return EW_OK;
    if (!(c->fresh & 1))
        return c->op->backward(c);
    memcpy(c->din[0]->data, c->dout[0]->data, ew_tensor_bytes(c->din[0]));
    return EW_OK;
}

static const struct ew_kernel view_backward = {
    .name = "view", .run = run_view_backward, .fresh = true, .in_place = true};

/* Keeps the kernels that support the call's roles in fused groups; returns how many. */
static int keep_supporting(const struct ew_call *c, struct ew_kernel *offers, int n)
{
    int left = 0;
    for (int i = 0; i < n; i++)
        if (!(c->roles & ~offers[i].roles))
            offers[left++] = offers[i];
    return left;
}

int ew_cpu_offer(const struct ew_kernel_query *query, struct ew_kernel *out)
{
    const struct ew_op *op = query->op;
    int n = 0;
    for (size_t i = 0; ew_cpu(query->be)->isa && i < EW_COUNT(families) && n == 0; i++)
        if (serves(families[i], op))
            n = families[i]->offer(query, out);
    if (query->phase == EW_PHASE_BACKWARD && (op->flags & EW_OP_VIEW) && op->backward)
        out[n++] = view_backward;
    const struct ew_kernel reference = {.name = "reference",
                                        .run = query->phase == EW_PHASE_FORWARD ? op->forward
                                                                                : op->backward,
                                        .scratch = op->scratch ? op->scratch(query->c) : 0};
    if (reference.run)
        out[n++] = reference;
    return keep_supporting(query->c, out, n);
}

/* ---- What plans need beside operators ---- */

static ew_err clear(const struct ew_call *c)
{
    memset(c->out[0]->data, 0, ew_tensor_bytes(c->out[0]));
    return EW_OK;
}

/* The batch is run in *attr micro-batches, whose mean losses are averaged. */
static ew_err seed_loss(const struct ew_call *c)
{
    const double share = 1.0 / *(const int *)c->attr;
    ew_tensor_store(c->out[0], 0, 1, &share);
    return EW_OK;
}

bool ew_cpu_task(const struct ew_backend *be, enum ew_task task, const struct ew_optimizer *o,
                 struct ew_kernel *out)
{
    switch (task) {
    case EW_TASK_CLEAR:
        *out = (struct ew_kernel){.name = "clear", .run = clear};
        return true;
    case EW_TASK_SEED:
        *out = (struct ew_kernel){.name = "seed", .run = seed_loss};
        return true;
    case EW_TASK_UPDATE:
        *out = (struct ew_kernel){.name = ew_optimizer_names[o->kind],
                                  .run = ew_cpu(be)->isa ? ew_cpu_update : ew_update_run};
        return true;
    case EW_TASK_ROUND:
        *out = (struct ew_kernel){.name = "round weights", .run = ew_weight_round_run};
        return true;
    case EW_TASK_RESTORE:
        *out = (struct ew_kernel){.name = "restore weights", .run = ew_weight_restore_run};
        return true;
    }
    return false;
}
