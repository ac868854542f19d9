/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of 1x1 convolutions' backward with the batch norms around them.  Scratch is the packed
 * filter, the filter gradient's partial sums, those of the norm before it, and scratch for the
 * threads. */
#include "backend/cpu/joint_step.h"

#include "backend/cpu/cpu_update.h"
#include "backend/cpu/norm_step.h"
#include "backend/cpu/share.h"

/* Apart from batch norms two passes do as well. */
bool ew_joint_pays(const struct ew_call *c, const struct ew_conv_shape *s)
{
    return (c->behind || c->norm) && c->n_in == 2 && c->be->isa->joint_fits(s);
}

/* Bytes of the parts of scratch. */
struct parts {
    size_t packed, partial, sums, each;
};

static struct parts parts_of(const struct ew_kernels *k, const struct ew_conv_shape *s)
{
    const size_t sums = s->normed ? (size_t)k->joint_tiles(s) * 2 * (size_t)s->cin : 0;
    return (struct parts){.packed = ew_align_up(k->conv_data_pack_size(s) * sizeof(float)),
                          .partial = ew_align_up(k->joint_partial(s) * sizeof(float)),
                          .sums = ew_align_up(sums * sizeof(float)),
                          .each = k->joint_scratch(s)};
}

struct packing {
    const struct ew_call *c;
    float *to;
};

static void pack_tiles(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct packing *p = ctx;
    const struct ew_joint *j = p->c->state;
    p->c->be->isa->conv_data_pack(&j->filter.shape, p->c->in[1]->data, p->to, begin, end);
}

static void joint_tiles(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct ew_call *c = ctx;
    const struct ew_joint *j = c->state;
    const size_t each = c->be->isa->joint_scratch(&j->filter.shape);
    c->be->isa->joint_run(j, begin, end, ew_worker_scratch(c, each, worker));
}

static void sum_tiles(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct ew_call *c = ctx;
    c->be->isa->joint_sum(c->state, begin, end);
}

/* Points the kernel at the call's tensors. */
static void bind(const struct ew_call *c, struct ew_joint *j)
{
    j->filter.x = c->norm ? j->filter.norm->x : c->in[0]->data;
    j->filter.dy = c->behind ? NULL : c->dout[0]->data;
    j->filter.dw = c->din[1] ? c->din[1]->data : NULL;
    j->filter.add = !(c->fresh & 2);
    j->no_filter = !c->din[1];
    j->dx = c->din[0] ? c->din[0]->data : NULL;
    j->add_dx = !(c->fresh & 1);
}

/* The norm's step finds its sums as one split. */
static void leave_sums(const struct ew_call *c, const struct ew_joint *j)
{
    struct ew_batch_norm b = *j->filter.norm;
    b.partial = j->norm_sums;
    b.splits = c->be->isa->joint_tiles(&j->filter.shape);
    c->be->isa->batch_back_total(&b, b.sums);
}

static ew_err run(const struct ew_call *c)
{
    struct ew_joint *j = c->state;
    const struct ew_kernels *k = c->be->isa;
    const struct ew_conv_shape *s = &j->filter.shape;
    const struct parts parts = parts_of(k, s);
    if (!c->dout[0])
        return EW_OK;
    struct ew_batch_norm norm, behind;
    struct ew_update update; /* its settings change from run to run */
    char *at = c->scratch;
    if (c->norm)
        ew_norm_of_call(c->norm, &norm);
    if (c->behind)
        ew_norm_of_call(c->behind, &behind);
    if (c->update)
        ew_cpu_update_of(c->update, &update);
    j->filter.norm = c->norm ? &norm : NULL;
    j->behind = c->behind ? &behind : NULL;
    j->filter.update = c->update ? &update : NULL;
    bind(c, j);
    struct packing p = {c, (float *)(void *)at};
    j->w = p.to;
    j->filter.partial = (float *)(void *)(at + parts.packed);
    j->norm_sums = c->norm ? (float *)(void *)(at + parts.packed + parts.partial) : NULL;
    struct ew_call rest = *c;
    rest.scratch = at + parts.packed + parts.partial + parts.sums;
    ew_pool_run(NULL, k->conv_data_pack_tiles(s), pack_tiles, &p); /* small */
    ew_share_run(&rest, k->joint_tiles(s), joint_tiles);
    if (!j->no_filter)
        ew_share_run(c, k->joint_sum_tiles(s), sum_tiles);
    if (c->norm)
        leave_sums(c, j);
    return EW_OK;
}

void ew_joint_prepare(const struct ew_call *c, const struct ew_conv_shape *s)
{
    *(struct ew_joint *)c->state = (struct ew_joint){.filter = {.shape = *s}};
}

struct ew_kernel ew_joint_kernel(const struct ew_backend *be, const struct ew_conv_shape *s)
{
    const struct parts p = parts_of(be->isa, s);
    return (struct ew_kernel){.name = "joint gradients",
                              .run = run,
                              .fresh = true,
                              .updates = true,
                              .norms = s->normed,
                              .lates = true,
                              .sums = s->normed,
                              .scratch =
                                  p.packed + p.partial + p.sums + ew_share_scratch(be, p.each),
                              .state = sizeof(struct ew_joint)};
}
