/* SPDX-License-Identifier: Apache-2.0 */
/* Permutes axes in any order.  Trailing axes that stay in place are copied as runs; otherwise the
 * output's rows are read with a stride. */
#include "backend/cpu/kernel/common/vec.h"

/* The last dimension is the inner loop; a tile is one position of the others. */
int64_t EW_K(permute_tiles)(const struct ew_permute *p)
{
    int64_t tiles = 1;
    for (int i = 0; i < p->dims - 1; i++)
        tiles *= p->dim[i];
    return tiles;
}

static void put_run(const struct ew_permute *p, const float *x, float *y)
{
    if (!p->add) {
        copy(y, x, p->run);
        return;
    }
    for (int64_t i = 0; i < p->run; i += LANES)
        store_n(y + i, load_n(y + i, p->run - i) + load_n(x + i, p->run - i), p->run - i);
}

void EW_K(permute_run)(const struct ew_permute *p, int64_t begin, int64_t end)
{
    const int64_t last = p->dim[p->dims - 1], step = p->step[p->dims - 1];
    for (int64_t tile = begin; tile < end; tile++) {
        int64_t at = 0, left = tile;
        for (int i = p->dims - 2; i >= 0; i--) {
            at += left % p->dim[i] * p->step[i];
            left /= p->dim[i];
        }
        float *y = p->y + tile * last * p->run;
        if (p->run == 1 && !p->add) {
            for (int64_t j = 0; j < last; j++)
                y[j] = p->x[at + j * step];
            continue;
        }
        for (int64_t j = 0; j < last; j++)
            put_run(p, p->x + at + j * step, y + j * p->run);
    }
}
