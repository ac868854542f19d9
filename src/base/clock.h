/* SPDX-License-Identifier: Apache-2.0 */
/* Time that only goes forward. */
#ifndef EW_BASE_CLOCK_H
#define EW_BASE_CLOCK_H

#include <errno.h>
#include <stddef.h>
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

/* Returns at that time of ew_clock_ns, or when a signal has made *stop true; stop NULL: never. */
static inline void ew_clock_sleep_until(int64_t ns, const volatile int *stop)
{
    const struct timespec at = {.tv_sec = (time_t)(ns / EW_NS_PER_S),
                                .tv_nsec = (long)(ns % EW_NS_PER_S)};
    while (!(stop && *stop) && clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
        continue;
}

#endif
