/* SPDX-License-Identifier: Apache-2.0 */
/* Monotonic time. */
#ifndef EW_BASE_CLOCK_H
#define EW_BASE_CLOCK_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#define EW_NS_PER_S 1000000000LL

/* Nanoseconds of CLOCK_MONOTONIC, of which only differences are meaningful; any thread. */
static inline int64_t ew_clock_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * EW_NS_PER_S + t.tv_nsec;
}

/* Sleeps until this time of ew_clock_ns, or until a signal handler has set *stop (stop NULL: none).
 */
static inline void ew_clock_sleep_until(int64_t ns, const volatile int *stop)
{
    const struct timespec at = {.tv_sec = (time_t)(ns / EW_NS_PER_S),
                                .tv_nsec = (long)(ns % EW_NS_PER_S)};
    while (!(stop && *stop) && clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
        continue;
}

#endif
