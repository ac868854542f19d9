/* SPDX-License-Identifier: Apache-2.0 */
/* FORMED: a function that is instantiated for many constant arguments (forms).
 *
 * It is inlined, so that its loops have constant length and are unrolled.  Under sanitizers one
 * copy serves all forms, and such a file builds in a tenth of the time. */
#ifndef EW_BACKEND_CPU_KERNEL_COMMON_FORMED_H
#define EW_BACKEND_CPU_KERNEL_COMMON_FORMED_H

#include "backend/cpu/kernel/common/vec.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define FORMED static __attribute__((noinline))
#else
#define FORMED INLINE
#endif

/* ENDING: the part of such a function for the last channels, fewer than a vector.  With 4 lanes few
 * networks need it, and partial loads and stores are much code, so one copy serves all forms. */
#if LANES == 4 && __has_attribute(noclone)
#define ENDING static __attribute__((noinline, noclone))
#elif LANES == 4 /* clang neither clones functions nor knows the attribute */
#define ENDING static __attribute__((noinline))
#else
#define ENDING FORMED
#endif

#endif
