/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel choice.  Every operator has its reference; faster rows come from the backend's folders. */
#include "backend/backend.h"

ew_err ew_backend_choose(const struct ew_op *op, enum ew_phase phase, const struct ew_call *c,
                         struct ew_kernel *out)
{
    *out = (struct ew_kernel){.name = "reference",
                              .run = phase == EW_PHASE_FORWARD ? op->forward : op->backward,
                              .scratch = op->scratch ? op->scratch(c) : 0};
    EW_CHECK(out->run, EW_ERR_UNSUPPORTED, "node %s: operator %s cannot be %s", c->name, op->name,
             phase == EW_PHASE_FORWARD ? "run" : "trained through");
    return EW_OK;
}
