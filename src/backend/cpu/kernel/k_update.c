/* SPDX-License-Identifier: Apache-2.0 */
/* Optimiser steps.  Memory rules the time. */
#include "backend/cpu/kernel/update_piece.h"

void EW_K(sgd_run)(const struct ew_sgd *s, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i += LANES)
        sgd_vec(s, i, load_n(s->g + i, end - i), end - i);
}

void EW_K(adam_run)(const struct ew_adam *a, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i += LANES)
        adam_vec(a, i, load_n(a->g + i, end - i), end - i);
}
