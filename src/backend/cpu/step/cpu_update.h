/* SPDX-License-Identifier: Apache-2.0 */
/* Optimiser steps on the CPU's kernels. */
#ifndef EW_BACKEND_CPU_STEP_CPU_UPDATE_H
#define EW_BACKEND_CPU_STEP_CPU_UPDATE_H

#include "backend/cpu/kernel.h"
#include "graph/op.h"

/* As ew_update_run, for float32; others go to the reference. */
ew_err ew_cpu_update(const struct ew_call *c);

/* The update that the call does as well (EW_ROLE_UPDATE), as kernels take it: *out, filled, or NULL
 * where there is none.  Its settings change from run to run. */
const struct ew_update *ew_cpu_update_of(const struct ew_call *c, struct ew_update *out);

#endif
