/* SPDX-License-Identifier: Apache-2.0 */
/* The gradient of a bias: sums of dout[0] over all but the last axis, to din[2]. */
#ifndef EW_BACKEND_CPU_BIAS_H
#define EW_BACKEND_CPU_BIAS_H

#include "backend/cpu/isa.h"
#include "backend/cpu/share.h"

#define EW_BIAS_WIDE 64 /* channels of a tile: a few vectors */

static inline void ew_bias_tiles(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct ew_call *c = ctx;
    const int64_t channels = ew_tensor_count(c->din[2]);
    const struct ew_column_sums s = {.rows = ew_tensor_count(c->dout[0]) / channels,
                                     .channels = channels,
                                     .x = c->dout[0]->data,
                                     .out = c->din[2]->data,
                                     .add = !(c->fresh & 4)};
    c->be->isa->column_sums(&s, begin * EW_BIAS_WIDE, ew_min_i64(end * EW_BIAS_WIDE, channels));
}

static inline void ew_bias_gradient(const struct ew_call *c)
{
    ew_share_run(c, (ew_tensor_count(c->din[2]) + EW_BIAS_WIDE - 1) / EW_BIAS_WIDE, ew_bias_tiles);
}

#endif
