/* SPDX-License-Identifier: Apache-2.0 */
/* Walking N-dimensional positions in row-major order while keeping linear positions that have
 * strides of their own. */
#ifndef EW_OP_WALK_H
#define EW_OP_WALK_H

#include "graph/tensor.h"

#define EW_WALK_POS 3

struct ew_walk {
    struct ew_shape shape;
    int64_t at[EW_MAX_RANK];
    int64_t stride[EW_WALK_POS][EW_MAX_RANK]; /* in elements; all 0 until the caller sets them */
    int64_t pos[EW_WALK_POS];                 /* 0 at the start */
};

static inline struct ew_walk ew_walk_begin(const struct ew_shape *shape)
{
    return (struct ew_walk){.shape = *shape};
}

/* To the next position; from the last back to the first. */
static inline void ew_walk_next(struct ew_walk *w)
{
    for (int i = w->shape.rank - 1; i >= 0; i--) {
        const bool carry = ++w->at[i] >= w->shape.dim[i];
        for (int p = 0; p < EW_WALK_POS; p++)
            w->pos[p] += carry ? (1 - w->at[i]) * w->stride[p][i] : w->stride[p][i];
        if (!carry)
            return;
        w->at[i] = 0;
    }
}

#endif
