/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients that go into their parameter as they are made, a piece at a time. */
#ifndef EW_BACKEND_CPU_KERNEL_UPDATE_PIECE_H
#define EW_BACKEND_CPU_KERNEL_UPDATE_PIECE_H

#include "backend/cpu/kernel/vec.h"

/* Elements [at, at + n) of the parameter; g holds their gradients. */
INLINE void update_piece(const struct ew_update *u, int64_t at, const float *g, int64_t n)
{
    if (u->is_adam) {
        struct ew_adam a = u->adam;
        a.w += at;
        a.m += at;
        a.v += at;
        a.g = g;
        EW_K(adam_run)(&a, 0, n);
    } else {
        struct ew_sgd s = u->sgd;
        s.w += at;
        s.m = s.m ? s.m + at : NULL;
        s.g = g;
        EW_K(sgd_run)(&s, 0, n);
    }
}

#endif
