/* SPDX-License-Identifier: Apache-2.0 */
/* Bias gradient: din[2] (+)= sums of dout[0] over all axes but the last, with the mask of a ReLU
 * behind the bias.  Many rows are divided into a fixed number of parts, whose sums are added in a
 * second step. */
#ifndef EW_BACKEND_CPU_STEP_BIAS_GRAD_H
#define EW_BACKEND_CPU_STEP_BIAS_GRAD_H

#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/isa.h"
#include "backend/cpu/parallel.h"

#define EW_BIAS_WIDE  64        /* channels of a tile */
#define EW_BIAS_PARTS 8         /* parts of the rows */
#define EW_BIAS_ALONE (8 << 10) /* elements of dout[0] below which one thread is faster */
#define EW_BIAS_MANY  (1 << 17) /* elements of dout[0] from which on parts are used */

struct ew_bias_work {
    const struct ew_call *c;
    struct ew_column_sums sums; /* over all rows */
    int64_t parts;              /* if > 1, sums.out is [parts][channels] */
};

static inline void ew_bias_tiles(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct ew_bias_work *w = ctx;
    for (int64_t i = begin; i < end; i++) {
        const int64_t part = i % w->parts, c = i / w->parts * EW_BIAS_WIDE;
        const int64_t first = w->sums.rows * part / w->parts;
        struct ew_column_sums s = w->sums;
        s.rows = w->sums.rows * (part + 1) / w->parts - first;
        s.x += first * s.step;
        s.y = s.y ? s.y + first * s.step : NULL;
        s.out += w->parts > 1 ? part * s.channels : 0;
        ew_cpu(w->c->be)->isa->column_sums(&s, c, ew_min_i64(c + EW_BIAS_WIDE, s.channels));
    }
}

/* Bytes of scratch. */
static inline size_t ew_bias_scratch(int64_t channels)
{
    return (size_t)(EW_BIAS_PARTS * channels) * sizeof(float);
}

/* With y, the output of a ReLU, dout[0] is set to 0 where y <= 0 first; NULL: no mask.  Sums are
 * computed even if din[2] is not wanted. */
static inline void ew_bias_gradient(const struct ew_call *c, const struct ew_tensor *y)
{
    const struct ew_shape *shape = &c->dout[0]->shape;
    const int64_t channels = shape->dim[shape->rank - 1], count = ew_tensor_count(c->dout[0]);
    const int64_t blocks = (channels + EW_BIAS_WIDE - 1) / EW_BIAS_WIDE;
    struct ew_tensor *db = c->n_in > 2 ? c->din[2] : NULL;
    struct ew_bias_work w = {.c = c,
                             .parts = count >= EW_BIAS_MANY || !db ? EW_BIAS_PARTS : 1,
                             .sums = {.rows = count / channels,
                                      .channels = channels,
                                      .step = c->out_step ? c->out_step : channels,
                                      .x = c->dout[0]->data,
                                      .y = y ? y->data : NULL,
                                      .out = db ? db->data : NULL,
                                      .add = !(c->fresh & 4)}};
    const struct ew_column_sums last = {.rows = EW_BIAS_PARTS,
                                        .channels = channels,
                                        .step = channels,
                                        .x = c->scratch,
                                        .out = w.sums.out,
                                        .add = w.sums.add};
    if (w.parts > 1) {
        w.sums.out = c->scratch;
        w.sums.add = false;
    }
    ew_pool_run(count < EW_BIAS_ALONE ? NULL : ew_cpu(c->be)->pool, blocks * w.parts, ew_bias_tiles,
                &w);
    if (w.parts > 1 && db)
        ew_cpu(c->be)->isa->column_sums(&last, 0, channels);
}

#endif
