/* SPDX-License-Identifier: Apache-2.0 */
/* Flushing denormals to zero.
 *
 * The momentum of a weight that no longer gets gradients decays below 1e-38 and stays denormal.
 * Some CPUs are far slower on denormals (a Xeon three times for LeNet's dense gradients), which
 * have no significance here.  The mode of a thread is set while it computes and then restored, so
 * that the library does not change its caller's arithmetic. */
#ifndef EW_BASE_FLUSH_H
#define EW_BASE_FLUSH_H

#include <stdbool.h>
#include <stdint.h>

#if defined(__x86_64__)
#include <xmmintrin.h>
#define EW_FLUSH_BITS 0x8040u /* FTZ and DAZ */
static inline uint64_t ew_flush_get(void)
{
    return _mm_getcsr();
}

static inline void ew_flush_set(uint64_t mode)
{
    _mm_setcsr((unsigned)mode);
}
#elif defined(__aarch64__)
#define EW_FLUSH_BITS (1u << 24)
static inline uint64_t ew_flush_get(void)
{
    uint64_t mode;
    __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
    return mode;
}

static inline void ew_flush_set(uint64_t mode)
{
    __asm__ volatile("msr fpcr, %0" : : "r"(mode));
}
#else
#define EW_FLUSH_BITS 0u
static inline uint64_t ew_flush_get(void)
{
    return 0;
}

static inline void ew_flush_set(uint64_t mode)
{
}
#endif

/* Returns the previous mode, for ew_flush_end. */
static inline uint64_t ew_flush_begin(void)
{
    const uint64_t was = ew_flush_get();
    if ((was & EW_FLUSH_BITS) != EW_FLUSH_BITS)
        ew_flush_set(was | EW_FLUSH_BITS);
    return was;
}

static inline void ew_flush_end(uint64_t was)
{
    if ((was & EW_FLUSH_BITS) != EW_FLUSH_BITS)
        ew_flush_set(was);
}

#endif
