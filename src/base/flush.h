/* SPDX-License-Identifier: Apache-2.0 */
/* Denormal numbers as zeros.
 *
 * Momentum of a weight that no longer gets gradients shrinks until it is below 1e-38, and stays
 * there for good.  Some CPUs take far longer for such numbers (a Xeon three times as long for
 * LeNet's dense gradients), and they mean nothing here.  A thread's setting is changed while it
 * computes and then put back: a library leaves its caller's arithmetic alone. */
#ifndef EW_BASE_FLUSH_H
#define EW_BASE_FLUSH_H

#include <stdbool.h>
#include <stdint.h>

#if defined(__x86_64__)
#include <xmmintrin.h>
#define EW_FLUSH_BITS 0x8040u /* results and operands */
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

/* Returns what the thread's setting was, for ew_flush_end. */
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
