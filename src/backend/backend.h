/* SPDX-License-Identifier: Apache-2.0 */
/* What a backend hands to the plan: for a node and a phase, the function that runs it. */
#ifndef EW_BACKEND_BACKEND_H
#define EW_BACKEND_BACKEND_H

#include "graph/op.h"

enum ew_phase { EW_PHASE_FORWARD, EW_PHASE_BACKWARD, EW_PHASE_UPDATE };

struct ew_kernel {
    const char *name; /* shown in profiles: "reference", "conv_f32_avx512" */
    ew_err (*run)(const struct ew_call *c);
    size_t scratch; /* bytes */
};

/* Picks the kernel of an operator; a call that no fast kernel fits gets the operator's reference.
 * Fails with EW_ERR_UNSUPPORTED where there is neither (backward of an operator that has none). */
ew_err ew_backend_choose(const struct ew_op *op, enum ew_phase phase, const struct ew_call *c,
                         struct ew_kernel *out);

#endif
