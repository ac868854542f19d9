/* SPDX-License-Identifier: Apache-2.0 */
/* Optimiser steps on the CPU's kernels. */
#ifndef EW_BACKEND_CPU_STEP_CPU_UPDATE_H
#define EW_BACKEND_CPU_STEP_CPU_UPDATE_H

#include "backend/cpu/kernel.h"
#include "graph/op.h"

/* As ew_update_run, for float32; others go to the reference. */
ew_err ew_cpu_update(const struct ew_call *c);

/* The same call as kernels take it, for those that update as they go. */
void ew_cpu_update_of(const struct ew_call *c, struct ew_update *out);

#endif
