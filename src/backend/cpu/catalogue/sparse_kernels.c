/* SPDX-License-Identifier: Apache-2.0 */
/* Zero-skipping kernels of convolutions and dense layers.  The fallback for dense data is the first
 * kernel in the layer's list that fits. */
#include "backend/cpu/catalogue/conv_rules.h"
#include "backend/cpu/step/sparse_step.h"

static ew_err prepare(const struct ew_call *c, enum ew_phase phase)
{
    const struct ew_kernel_query query = {c->be, c->op, phase, c};
    const struct ew_kernel_list *l = ew_catalogue_find(&query);
    struct ew_kernel_case it;
    struct ew_kernel offers[EW_OFFERS];
    EW_CHECK(l && l->resolve(&query, &it) && ew_catalogue_offer_dense(l, &it, offers) > 0,
             EW_ERR_INTERNAL, "%s: the layer has changed", c->name);
    return ew_sparse_prepare(c, &it.shape, it.relu, &offers[0]);
}

static ew_err prepare_forward(const struct ew_call *c)
{
    return prepare(c, EW_PHASE_FORWARD);
}

static ew_err prepare_backward(const struct ew_call *c)
{
    return prepare(c, EW_PHASE_BACKWARD);
}

struct ew_kernel ew_wrap_sparse(const struct ew_kernel_case *c, struct ew_kernel next)
{
    struct ew_kernel k = ew_sparse_kernel(c->query, &c->shape, next);
    k.prepare = c->query->phase == EW_PHASE_FORWARD ? prepare_forward : prepare_backward;
    return k;
}
