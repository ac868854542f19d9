/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of two tensors of equal shape, and their gradients. */
#include <string.h>

#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/isa.h"
#include "backend/cpu/parallel.h"
#include "graph/ops.h"

#define GRAIN 8192 /* elements a tile */

struct work {
    const struct ew_kernels *k;
    struct ew_add_map map; /* without b: a copy */
    int64_t count;
};

static void add_tiles(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct work *w = ctx;
    const int64_t first = begin * GRAIN, last = ew_min_i64(end * GRAIN, w->count);
    if (w->map.b)
        w->k->add_run(&w->map, first, last);
    else
        memcpy(w->map.y + first, w->map.a + first, (size_t)(last - first) * sizeof(float));
}

/* y = act(a + b); b NULL: a copy. */
static void add(const struct ew_call *c, const struct ew_tensor *a, const struct ew_tensor *b,
                struct ew_tensor *y)
{
    struct work w = {.k = ew_cpu(c->be)->isa,
                     .map = {.a = a->data, .b = b ? b->data : NULL, .y = y->data},
                     .count = ew_tensor_count(y)};
    ew_pool_run(ew_cpu(c->be)->pool, (w.count + GRAIN - 1) / GRAIN, add_tiles, &w);
}

static ew_err run_forward(const struct ew_call *c)
{
    add(c, c->in[0], c->in[1], c->out[0]);
    return EW_OK;
}

/* Both gradients are dout[0]: copied or added, nothing if in place. */
static ew_err run_backward(const struct ew_call *c)
{
    for (int i = 0; i < 2; i++) {
        if (!c->dout[0] || !c->din[i] || c->din[i]->data == c->dout[0]->data)
            continue;
        if (c->fresh >> i & 1)
            add(c, c->dout[0], NULL, c->din[i]);
        else
            add(c, c->din[i], c->dout[0], c->din[i]);
    }
    return EW_OK;
}

static int offer(const struct ew_kernel_query *query, struct ew_kernel *out)
{
    const struct ew_call *c = query->c;
    if (c->in[0]->dtype != EW_F32 || !ew_shape_equal(&c->in[0]->shape, &c->in[1]->shape))
        return 0;
    out[0] =
        (struct ew_kernel){.name = "add",
                           .run = query->phase == EW_PHASE_FORWARD ? run_forward : run_backward,
                           .fresh = true,
                           .in_place = true};
    return 1;
}

const struct ew_kernel_family ew_offer_add = {.ops = EW_FAMILY_OPS(&ew_op_add), .offer = offer};
