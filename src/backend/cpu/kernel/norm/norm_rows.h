/* SPDX-License-Identifier: Apache-2.0 */
/* Batch norm of some rows, forward and backward, for kernels that fuse it. */
#ifndef EW_BACKEND_CPU_KERNEL_NORM_NORM_ROWS_H
#define EW_BACKEND_CPU_KERNEL_NORM_NORM_ROWS_H

#include "backend/cpu/kernel/common/vec.h"

/* Accumulates the sums of batch_back_stats for rows [begin, end) into `to`, [2][channels]. */
void EW_KF(batch_back_rows)(const struct ew_batch_norm *norm, int64_t begin, int64_t end,
                            float *to);

/* batch_apply and batch_back_apply of the first `rows` rows, with output that stays in a cache;
 * input `ahead` floats further on is prefetched unless ahead is 0. */
void EW_KF(batch_apply_near)(const struct ew_batch_norm *norm, int64_t rows, int64_t ahead);
void EW_KF(batch_back_near)(const struct ew_batch_norm *norm, int64_t rows, int64_t ahead);

/* Normalises `rows` rows of x from `row` on into `to`. */
INLINE void norm_rows(const struct ew_batch_norm *norm, int64_t row, int64_t rows, float *to,
                      int64_t ahead)
{
    struct ew_batch_norm b = *norm;
    b.x += row * b.channels;
    b.y = to;
    EW_KF(batch_apply_near)(&b, rows, ahead);
}

/* Computes the gradient of the norm's input for `rows` rows from `row` on into `to`; with
 * squeeze-and-excite they must belong to one image. */
INLINE void norm_back_rows(const struct ew_batch_norm *norm, int64_t row, int64_t rows, float *to,
                           int64_t ahead)
{
    struct ew_batch_norm b = *norm;
    if (b.factor) {
        b.factor += row / b.image * b.channels;
        b.average_grad += row / b.image * b.channels;
    }
    b.x += row * b.channels;
    b.dy += row * b.channels;
    b.dx = to;
    b.add_dx = false;
    EW_KF(batch_back_near)(&b, rows, ahead);
}

#endif
