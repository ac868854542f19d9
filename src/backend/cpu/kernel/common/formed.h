/* SPDX-License-Identifier: Apache-2.0 */
/* FORMED: a function that is instantiated for many constants (a form of loops).
 *
 * It is inlined, so that its loops are of constant length and vanish.  Sanitizers keep loops
 * anyway: one copy serves all forms, and a file of them builds in a tenth of the time. */
#ifndef EW_BACKEND_CPU_KERNEL_COMMON_FORMED_H
#define EW_BACKEND_CPU_KERNEL_COMMON_FORMED_H

#include "backend/cpu/kernel/common/vec.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define FORMED static __attribute__((noinline))
#else
#define FORMED INLINE
#endif

/* ENDING: what such a function does with the last channels, less than a vector of them.  Where
 * vectors are of 4 hardly a network has such, and testing each lane of each load and store is much
 * code: one copy serves all forms. */
#if LANES == 4 && __has_attribute(noclone)
#define ENDING static __attribute__((noinline, noclone))
#elif LANES == 4 /* clang makes no clones, and does not know the attribute */
#define ENDING static __attribute__((noinline))
#else
#define ENDING FORMED
#endif

#endif
