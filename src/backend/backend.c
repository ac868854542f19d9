/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel choice: the rows of cpu/row_*.c, then the operator's reference. */
#include "backend/backend.h"

#include <stdlib.h>
#include <string.h>

#include "backend/cpu/isa.h"
#include "backend/cpu/step/cpu_update.h"
#include "op/optimizer.h"

#define EW_OFFER(name) extern const struct ew_kernel_family ew_offer_##name;
#include "offer_list.h"
#undef EW_OFFER

static const struct ew_kernel_family *const rows[] = {
#define EW_OFFER(name) &ew_offer_##name,
#include "offer_list.h"
#undef EW_OFFER
};

ew_err ew_backend_open(const struct ew_backend_opts *o, struct ew_backend **out)
{
    struct ew_backend *be = calloc(1, sizeof(*be));
    EW_CHECK(be, EW_ERR_MEMORY, "no memory for a backend");
    ew_err e = o->reference ? EW_OK : ew_isa_pick(&be->isa);
    if (e == EW_OK && o->threads != 1)
        e = ew_pool_new(o->threads, &be->pool);
    if (e != EW_OK)
        ew_backend_close(be);
    else
        *out = be;
    return e;
}

void ew_backend_close(struct ew_backend *be)
{
    if (!be)
        return;
    ew_pool_free(be->pool);
    free(be);
}

static bool takes(const struct ew_kernel_family *row, const struct ew_op *op)
{
    for (const char *const *name = row->ops; *name; name++)
        if (strcmp(*name, op->name) == 0)
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

ew_err ew_backend_offer(const struct ew_kernel_query *query, struct ew_kernel out[EW_OFFERS],
                        int *n)
{
    const struct ew_op *op = query->op;
    *n = 0;
    for (size_t i = 0; query->be->isa && i < EW_COUNT(rows) && *n == 0; i++)
        if (takes(rows[i], op))
            *n = rows[i]->offer(query, out);
    if (query->phase == EW_PHASE_BACKWARD && (op->flags & EW_OP_VIEW) && op->backward)
        out[(*n)++] = view_backward;
    const struct ew_kernel reference = {.name = "reference",
                                        .run = query->phase == EW_PHASE_FORWARD ? op->forward
                                                                                : op->backward,
                                        .scratch = op->scratch ? op->scratch(query->c) : 0};
    if (reference.run)
        out[(*n)++] = reference;
    EW_CHECK(*n > 0, EW_ERR_UNSUPPORTED, "node %s: operator %s cannot be %s", query->c->name,
             op->name, query->phase == EW_PHASE_FORWARD ? "run" : "trained through");
    return EW_OK;
}

struct ew_kernel ew_backend_update(const struct ew_backend *be, const struct ew_optimizer *o)
{
    return (struct ew_kernel){.name = ew_optimizer_names[o->kind],
                              .run = be->isa ? ew_cpu_update : ew_update_run};
}
