/* SPDX-License-Identifier: Apache-2.0 */
/* A batch norm in training, for kernels that apply it as they read (EW_ROLE_INPUT_NORM). */
#ifndef EW_BACKEND_CPU_STEP_NORM_STEP_H
#define EW_BACKEND_CPU_STEP_NORM_STEP_H

#include "backend/cpu/kernel.h"
#include "graph/op.h"

/* The norm of a call, with statistics, and sums after its backward reduction, in aux.  y, dx and
 * partial are not set. */
void ew_norm_of_call(const struct ew_call *c, struct ew_batch_norm *out);

/* Computes the statistics and running statistics of the call from partial sums: `partial` and
 * `split_rows` as in struct ew_batch_norm. */
void ew_norm_finish(const struct ew_call *c, float *partial, int64_t split_rows);

/* The same, from the norm's input; `partial`: batch_partial floats of scratch. */
void ew_norm_reduce(const struct ew_call *c, float *partial);

#endif
