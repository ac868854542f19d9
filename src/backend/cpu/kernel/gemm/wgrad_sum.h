/* SPDX-License-Identifier: Apache-2.0 */
/* The last step of wgrad: reduces partial sums in a fixed order, and applies fused optimiser
 * updates. */
#ifndef EW_BACKEND_CPU_KERNEL_GEMM_WGRAD_SUM_H
#define EW_BACKEND_CPU_KERNEL_GEMM_WGRAD_SUM_H

#include "backend/cpu/kernel/pointwise/update_piece.h"

#define FILTER_SUM 4096 /* floats of dw in a tile of the reduction */

/* Computes n floats of dw, from `at` on, as the sum of `splits` partial sums in `from`, `size`
 * floats apart; `from` NULL: zero. */
static void filter_sum(const struct ew_conv_wgrad *f, const float *from, int64_t splits,
                       int64_t size, int64_t at, int64_t n)
{
    float piece[FILTER_SUM];
    for (int64_t begin = 0; begin < n; begin += FILTER_SUM) {
        float *to = f->update ? piece : f->dw + at + begin;
        const int64_t count = min_i64(FILTER_SUM, n - begin);
        for (int64_t i = 0; i < count; i += LANES) {
            vec sum = f->add ? load_n(to + i, count - i) : (vec){0};
            for (int64_t s = 0; from && s < splits; s++)
                sum += load_n(from + s * size + begin + i, count - i);
            store_n(to + i, sum, count - i);
        }
        if (f->update)
            update_piece(f->update, at + begin, piece, count);
    }
}

#endif
