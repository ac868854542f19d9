/* SPDX-License-Identifier: Apache-2.0 */
/* A batch norm in training, for the kernels that do it as they read their input
 * (EW_ROLE_INPUT_NORM). */
#ifndef EW_BACKEND_CPU_STEP_NORM_STEP_H
#define EW_BACKEND_CPU_STEP_NORM_STEP_H

#include "backend/cpu/kernel.h"
#include "graph/op.h"

/* What the call's forward applies, or its backward after its sums; x is its input, y, dx and
 * partial are nobody's. */
void ew_norm_of_call(const struct ew_call *c, struct ew_batch_norm *out);

/* Makes the statistics of the call's forward, and the running ones, of sums that are there:
 * `partial` and `split_rows` are those of struct ew_batch_norm. */
void ew_norm_finish(const struct ew_call *c, float *partial, int64_t split_rows);

#endif
