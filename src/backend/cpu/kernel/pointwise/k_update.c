/* SPDX-License-Identifier: Apache-2.0 */
/* Optimiser steps, which are memory-bound.  Parameters are copied, so that stores cannot alias
 * them. */
#include "backend/cpu/kernel/pointwise/update_piece.h"

void EW_K(sgd_run)(const struct ew_sgd *s, int64_t begin, int64_t end)
{
    const struct ew_sgd c = *s;
    for (int64_t i = begin; i < end; i += LANES)
        sgd_vec(&c, i, load_n(c.g + i, end - i), end - i);
}

void EW_K(adam_run)(const struct ew_adam *a, int64_t begin, int64_t end)
{
    const struct ew_adam c = *a;
    for (int64_t i = begin; i < end; i += LANES)
        adam_vec(&c, i, load_n(c.g + i, end - i), end - i);
}
