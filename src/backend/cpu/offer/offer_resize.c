/* SPDX-License-Identifier: Apache-2.0 */
/* Resize.  Axes from the first to the last one that changes are resampled with tables of taps; axes
 * before them are images, axes after them channels. */
#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/parallel.h"
#include "graph/ops.h"
#include "op/resize.h"

#define AXES 3

/* State: this, then the tables of the axes. */
struct tables {
    struct ew_resample s;
    struct ew_resize_axis axis[AXES];
};

static bool resolve(const struct ew_call *c, struct tables *out)
{
    const struct ew_resize_attr *a = c->attr;
    const struct ew_shape *x = &c->in[EW_RESIZE_X]->shape;
    struct ew_resize_axis all[EW_MAX_RANK];
    if (c->in[0]->dtype != EW_F32 || a->coordinate == EW_RESIZE_TF_CROP_AND_RESIZE ||
        ew_tensor_count(c->in[0]) == 0 || ew_resize_resolve(c, all) != EW_OK)
        return false;
    int first = 0, last = x->rank;
    while (first < x->rank && all[first].same)
        first++;
    while (last > first && all[last - 1].same)
        last--;
    if (last - first > AXES)
        return false;
    *out = (struct tables){.s = {.images = ew_shape_span(x, 0, first),
                                 .channels = ew_shape_span(x, last, x->rank),
                                 .copies = true}};
    for (int i = 0; i < AXES; i++) {
        const int d = last - AXES + i;
        out->axis[i] =
            d >= first
                ? all[d]
                : (struct ew_resize_axis){.in = 1, .out = 1, .scale = 1, .same = true, .taps = 1};
        const struct ew_resize_axis *r = &out->axis[i];
        out->s.axis[i] = (struct ew_resample_axis){.in = r->in, .out = r->out, .taps = r->taps};
        out->s.copies = out->s.copies && r->taps == 1;
        if (r->in >= INT32_MAX)
            return false;
    }
    return true;
}

static size_t table_bytes(const struct ew_resample_axis *a, size_t element)
{
    return ew_align_up((size_t)(a->out * a->taps) * element);
}

static size_t state_bytes(const struct tables *t)
{
    size_t bytes = ew_align_up(sizeof(*t));
    for (int i = 0; i < AXES; i++)
        bytes += ew_align_up((size_t)t->s.axis[i].taps * sizeof(struct ew_resize_tap)) +
                 table_bytes(&t->s.axis[i], sizeof(int32_t)) +
                 table_bytes(&t->s.axis[i], sizeof(float));
    return bytes;
}

static void fill_axis(const struct ew_call *c, const struct ew_resize_axis *axis,
                      struct ew_resample_axis *to, char **room)
{
    struct ew_resize_tap *taps = (void *)*room; /* of one output */
    *room += ew_align_up((size_t)to->taps * sizeof(*taps));
    int32_t *at = (void *)*room;
    *room += table_bytes(to, sizeof(*at));
    float *weight = (void *)*room;
    *room += table_bytes(to, sizeof(*weight));
    for (int64_t i = 0; i < to->out * to->taps; i++) {
        if (i % to->taps == 0)
            ew_resize_taps(c->attr, axis, i / to->taps, taps);
        at[i] = (int32_t)taps[i % to->taps].at;
        weight[i] = (float)taps[i % to->taps].weight;
    }
    to->at = at;
    to->weight = weight;
}

static ew_err prepare(const struct ew_call *c)
{
    struct tables *t = c->state;
    char *room = (char *)c->state + ew_align_up(sizeof(*t));
    EW_CHECK(resolve(c, t), EW_ERR_INTERNAL, "%s: the sizes have changed", c->name);
    for (int i = 0; i < AXES; i++)
        fill_axis(c, &t->axis[i], &t->s.axis[i], &room);
    return EW_OK;
}

static void tiles(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct ew_call *c = ctx;
    const struct tables *t = c->state;
    ew_cpu(c->be)->isa->resample_run(&t->s, begin, end);
}

static void back_tiles(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct ew_call *c = ctx;
    const struct tables *t = c->state;
    ew_cpu(c->be)->isa->resample_back(&t->s, begin, end);
}

static ew_err run_forward(const struct ew_call *c)
{
    struct tables *t = c->state;
    t->s.x = c->in[0]->data;
    t->s.y = c->out[0]->data;
    ew_parallel_for(c, ew_cpu(c->be)->isa->resample_tiles(&t->s), tiles);
    return EW_OK;
}

static ew_err run_backward(const struct ew_call *c)
{
    struct tables *t = c->state;
    if (!c->din[0] || !c->dout[0])
        return EW_OK;
    t->s.dy = c->dout[0]->data;
    t->s.dx = c->din[0]->data;
    t->s.add = !(c->fresh & 1);
    ew_parallel_for(c, ew_cpu(c->be)->isa->resample_back_tiles(&t->s), back_tiles);
    return EW_OK;
}

static int offer(const struct ew_kernel_query *query, struct ew_kernel *out)
{
    struct tables t;
    const bool back = query->phase == EW_PHASE_BACKWARD;
    if (!resolve(query->c, &t))
        return 0;
    out[0] = (struct ew_kernel){.name = "resample",
                                .run = back ? run_backward : run_forward,
                                .prepare = prepare,
                                .fresh = back,
                                .state = state_bytes(&t)};
    return 1;
}

const struct ew_kernel_family ew_offer_resize = {.ops = EW_FAMILY_OPS(&ew_op_resize),
                                                 .offer = offer};
