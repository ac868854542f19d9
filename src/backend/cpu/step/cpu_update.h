/* SPDX-License-Identifier: Apache-2.0 */
/* Optimiser steps on the CPU's kernels. */
#ifndef EW_BACKEND_CPU_STEP_CPU_UPDATE_H
#define EW_BACKEND_CPU_STEP_CPU_UPDATE_H

#include "backend/cpu/kernel.h"
#include "graph/op.h"

/* As ew_update_run, with kernels for float32. */
ew_err ew_cpu_update(const struct ew_call *c);

/* The fused optimiser update of a call (EW_ROLE_UPDATE), for kernels: fills and returns *out, or
 * NULL if there is none.  Its parameters change from run to run. */
const struct ew_update *ew_cpu_update_of(const struct ew_call *c, struct ew_update *out);

#endif
