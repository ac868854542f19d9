/* SPDX-License-Identifier: Apache-2.0 */
/* The instruction sets of this build, which of them the machine supports, and which one is used. */
#ifndef EW_BACKEND_CPU_ISA_H
#define EW_BACKEND_CPU_ISA_H

#include "backend/cpu/kernel.h"
#include "base/err.h"

/* The i-th instruction set of the build that this machine can run, best first; NULL beyond the
 * last.  Any thread. */
const struct ew_kernels *ew_isa_at(int i);

/* By name; fails if the build or the machine lacks it. */
ew_err ew_isa_find(const char *name, const struct ew_kernels **out);

/* The best one, or the one that the environment variable EW_ISA names. */
ew_err ew_isa_pick(const struct ew_kernels **out);

#endif
