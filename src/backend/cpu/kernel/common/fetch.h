/* SPDX-License-Identifier: Apache-2.0 */
/* Software prefetch into L2, a few cache lines at a time between other work, of memory that
 * hardware prefetchers miss: short pieces, or the start of a new stream. */
#ifndef EW_BACKEND_CPU_KERNEL_COMMON_FETCH_H
#define EW_BACKEND_CPU_KERNEL_COMMON_FETCH_H

#include "backend/cpu/kernel/gemm/micro.h"

/* `pieces` of `lines` cache lines, `step` floats apart. */
struct fetch {
    const float *at;
    int64_t step, pieces, lines, piece, line;
};

/* One piece of n floats. */
INLINE struct fetch fetch_lines(const float *at, int64_t n)
{
    return (struct fetch){.at = at, .pieces = n > 0, .lines = div_up(n, LINE)};
}

INLINE void fetch_some(struct fetch *f, int64_t count)
{
    for (; count > 0 && f->piece < f->pieces; count--) {
        __builtin_prefetch(f->at + f->piece * f->step + f->line * LINE, 0, 2);
        if (++f->line == f->lines) {
            f->line = 0;
            f->piece++;
        }
    }
}

#endif
