/* SPDX-License-Identifier: Apache-2.0 */
/* Optimisers: the update of a parameter by its gradient. */
#ifndef EW_OP_OPTIMIZER_H
#define EW_OP_OPTIMIZER_H

#include <stdint.h>

#include "graph/op.h"

/* clang-format off */
#define EW_OPTIMIZER_MAP(X)                                                                        \
    X(SGD,      "sgd",      1)                                                                     \
    X(NESTEROV, "nesterov", 1)                                                                     \
    X(ADAM,     "adam",     2)                                                                     \
    X(ADAMW,    "adamw",    2)
/* clang-format on */

enum ew_optimizer_kind {
#define EW_OPTIMIZER_ENUM(id, name, states) EW_OPTIMIZER_##id,
    EW_OPTIMIZER_MAP(EW_OPTIMIZER_ENUM)
#undef EW_OPTIMIZER_ENUM
        EW_OPTIMIZER_COUNT
};

/* As torch.optim defines them. */
struct ew_optimizer {
    enum ew_optimizer_kind kind;
    double lr;
    double momentum; /* sgd, nesterov; 0 keeps no state */
    double weight_decay;
    double beta1, beta2, eps; /* adam, adamw */
    int64_t step;             /* updates so far, counted by the plan */
    int64_t handed; /* times that ew_plan_state exposed its tensors for writing, counted by the
                     * plan */
};

extern const char *const ew_optimizer_names[]; /* NULL-terminated */

#define EW_UPDATE_STATES 2 /* most state tensors per parameter */

/* State tensors per parameter. */
int ew_optimizer_states(const struct ew_optimizer *o);

/* The update of one parameter as a call: attr is the optimiser, in[0] the parameter (written),
 * in[1] its gradient, in[2] and in[3] its state (written). */
ew_err ew_update_run(const struct ew_call *c);

#endif
