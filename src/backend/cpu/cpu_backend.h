/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU backend's threads and instruction set, as its kernels need them. */
#ifndef EW_BACKEND_CPU_BACKEND_H
#define EW_BACKEND_CPU_BACKEND_H

#include "backend/backend_type.h"
#include "backend/cpu/isa.h"

struct ew_cpu {
    struct ew_backend base;
    struct ew_pool *pool;         /* NULL: the caller alone */
    const struct ew_kernels *isa; /* NULL: reference implementations only */
};

/* The backend of a CPU kernel's call or query. */
static inline const struct ew_cpu *ew_cpu(const struct ew_backend *be)
{
    return (const struct ew_cpu *)be;
}

extern const struct ew_backend_type ew_cpu_type;

#endif
