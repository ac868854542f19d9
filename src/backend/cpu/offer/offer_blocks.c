/* SPDX-License-Identifier: Apache-2.0 */
/* Square blocks of pixels to channels and back: permutations of the block's axes. */
#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/isa.h"
#include "backend/cpu/parallel.h"
#include "graph/ops.h"
#include "op/blocks.h"

/* An axis of the output: its length and its stride in the input. */
struct axis {
    int64_t dim, step;
};

static void set_axes(struct ew_permute *p, const struct axis *axes, int n)
{
    *p = (struct ew_permute){.run = 1};
    while (n > 1 && axes[n - 1].step == p->run) /* these stay in place */
        p->run *= axes[--n].dim;
    for (int i = 0; i < n; i++) {
        p->dim[p->dims] = axes[i].dim;
        p->step[p->dims++] = axes[i].step;
    }
}

static bool resolve(const struct ew_call *c, struct ew_permute *out)
{
    const bool deep = c->op == &ew_op_depth_to_space;
    struct ew_blocks b;
    if (c->in[0]->dtype != EW_F32 || ew_tensor_count(c->in[0]) == 0 ||
        ew_blocks_resolve(c, deep, &b) != EW_OK)
        return false;
    const bool dcr = b.mode == EW_BLOCKS_DCR;
    const int64_t area = b.size * b.size, pixel = area * b.c, row = b.w * b.size * b.c;
    if (deep) /* [n h, size, w, size, c] of pixels of area * c channels */
        set_axes(out,
                 (struct axis[]){{b.n * b.h, b.w * pixel},
                                 {b.size, dcr ? b.size * b.c : b.size},
                                 {b.w, pixel},
                                 {b.size, dcr ? b.c : 1},
                                 {b.c, dcr ? 1 : area}},
                 5);
    else /* [n h, w, size, size, c] of rows of w * size pixels */
        set_axes(out,
                 (struct axis[]){{b.n * b.h, b.size * row},
                                 {b.w, b.size * b.c},
                                 {b.size, row},
                                 {b.size, b.c},
                                 {b.c, 1}},
                 5);
    return true;
}

static ew_err prepare(const struct ew_call *c)
{
    EW_CHECK(resolve(c, c->state), EW_ERR_INTERNAL, "%s: the blocks have changed", c->name);
    return EW_OK;
}

static void tiles(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct ew_call *c = ctx;
    ew_cpu(c->be)->isa->permute_run(c->state, begin, end);
}

static ew_err run(const struct ew_call *c)
{
    struct ew_permute *p = c->state;
    p->x = c->in[0]->data;
    p->y = c->out[0]->data;
    ew_parallel_for(c, ew_cpu(c->be)->isa->permute_tiles(p), tiles);
    return EW_OK;
}

static int offer(const struct ew_kernel_query *query, struct ew_kernel *out)
{
    struct ew_permute p;
    struct ew_call c = *query->c;
    c.op = query->op;
    if (query->phase != EW_PHASE_FORWARD || !resolve(&c, &p))
        return 0;
    out[0] =
        (struct ew_kernel){.name = "blocks", .run = run, .prepare = prepare, .state = sizeof(p)};
    return 1;
}

const struct ew_kernel_family ew_offer_blocks = {
    .ops = EW_FAMILY_OPS(&ew_op_depth_to_space, &ew_op_space_to_depth), .offer = offer};
