/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of the CPU backend. */
#ifndef EW_BACKEND_CPU_OFFER_H
#define EW_BACKEND_CPU_OFFER_H

#include "backend/backend.h"

/* As in ew_backend_type. */
int ew_cpu_offer(const struct ew_kernel_query *query, struct ew_kernel *out);
bool ew_cpu_task(const struct ew_backend *be, enum ew_task task, const struct ew_optimizer *o,
                 struct ew_kernel *out);

#endif
