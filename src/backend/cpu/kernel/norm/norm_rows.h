/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces of a batch norm's backward for kernels that have its rows at hand. */
#ifndef EW_BACKEND_CPU_KERNEL_NORM_NORM_ROWS_H
#define EW_BACKEND_CPU_KERNEL_NORM_NORM_ROWS_H

#include "backend/cpu/kernel/common/vec.h"

/* Adds what rows [begin, end) give to `to`, [2][channels]: the sums of batch_back_stats. */
void EW_KF(batch_back_rows)(const struct ew_batch_norm *norm, int64_t begin, int64_t end,
                            float *to);

/* batch_apply and batch_back_apply of so many rows, to memory that is in a cache; what they read is
 * also fetched `ahead` floats further on, where that is not 0. */
void EW_KF(batch_apply_near)(const struct ew_batch_norm *norm, int64_t rows, int64_t ahead);
void EW_KF(batch_back_near)(const struct ew_batch_norm *norm, int64_t rows, int64_t ahead);

/* x of `rows` rows from `row` on as the norm makes it, at `to`. */
INLINE void norm_rows(const struct ew_batch_norm *norm, int64_t row, int64_t rows, float *to,
                      int64_t ahead)
{
    struct ew_batch_norm b = *norm;
    b.x += row * b.channels;
    b.y = to;
    EW_KF(batch_apply_near)(&b, rows, ahead);
}

/* The gradient of the norm's input, of `rows` rows from `row` on, of one image with
 * squeeze-and-excite, at `to`.
 */
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
