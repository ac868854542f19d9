/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU as a backend: its threads and its instruction set, for the kernels of this folder. */
#ifndef EW_BACKEND_CPU_BACKEND_H
#define EW_BACKEND_CPU_BACKEND_H

#include "backend/backend_type.h"
#include "backend/cpu/isa.h"

struct ew_cpu {
    struct ew_backend base;
    struct ew_pool *pool;         /* NULL: the caller alone */
    const struct ew_kernels *isa; /* NULL: references only */
};

/* What a call or a question of the CPU's kernels has as its backend. */
static inline const struct ew_cpu *ew_cpu(const struct ew_backend *be)
{
    return (const struct ew_cpu *)be;
}

extern const struct ew_backend_type ew_cpu_type;

#endif
