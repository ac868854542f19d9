/* SPDX-License-Identifier: Apache-2.0 */
/* Time that only goes forward. */
#ifndef EW_BASE_CLOCK_H
#define EW_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

#define EW_NS_PER_S 1000000000LL

/* Nanoseconds on CLOCK_MONOTONIC; any thread.  Only differences mean something. */
static inline int64_t ew_clock_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * EW_NS_PER_S + t.tv_nsec;
}

#endif
