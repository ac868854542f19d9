/* SPDX-License-Identifier: Apache-2.0 */
/* Which instruction sets this program holds, which of them this machine has, and which one runs. */
#ifndef EW_BACKEND_CPU_ISA_H
#define EW_BACKEND_CPU_ISA_H

#include "backend/cpu/kernel.h"
#include "base/err.h"

/* The i-th instruction set of the build that this machine can run, best first; NULL beyond the
 * last.  Any thread. */
const struct ew_kernels *ew_isa_at(int i);

/* By name; fails where the build or the machine has no such set. */
ew_err ew_isa_find(const char *name, const struct ew_kernels **out);

/* The one to use: the best, or what the environment variable EW_ISA names. */
ew_err ew_isa_pick(const struct ew_kernels **out);

#endif
