/* SPDX-License-Identifier: Apache-2.0 */
/* Backward of 1x1 and depthwise convolutions, fused with the batch norms around them.  Scratch:
 * packed filter, partial sums of wgrad, partial sums of the norm before it, the threads'
 * scratch. */
#include "backend/cpu/step/fused_grads_step.h"
#include "backend/cpu/cpu_backend.h"

#include "backend/cpu/fuse/fuse.h"
#include "backend/cpu/parallel.h"
#include "backend/cpu/step/bias_grad.h"
#include "backend/cpu/step/cpu_update.h"
#include "backend/cpu/step/norm_step.h"

/* The kernels of one kind of convolution. */
struct way {
    const char *name;
    size_t (*pack_size)(const struct ew_conv_shape *s);
    size_t (*partial)(const struct ew_conv_shape *s);
    size_t (*scratch)(const struct ew_conv_shape *s);
    int64_t (*tiles)(const struct ew_conv_shape *s);
    void (*run)(const struct ew_fused_grads *j, int64_t begin, int64_t end, void *scratch);
    bool updates;
};

static struct way way_of(const struct ew_kernels *k, const struct ew_conv_shape *s)
{
    if (s->groups > 1)
        return (struct way){"depthwise fused dgrad+wgrad",
                            k->depthwise_pack_size,
                            k->depthwise_wgrad_partial,
                            k->depthwise_fused_grads_scratch,
                            k->depthwise_wgrad_tiles,
                            k->depthwise_fused_grads_run,
                            false};
    return (struct way){"fused dgrad+wgrad",
                        k->conv_dgrad_pack_size,
                        k->fused_grads_partial,
                        k->fused_grads_scratch,
                        k->fused_grads_tiles,
                        k->fused_grads_run,
                        true};
}

/* For depthwise layers without norms two passes are as fast: they read little. */
bool ew_fused_grads_pays(const struct ew_call *c, const struct ew_conv_shape *s, bool relu)
{
    const struct ew_kernels *k = ew_cpu(c->be)->isa;
    const bool norms = c->roles & (EW_ROLE_INPUT_NORM | EW_ROLE_OUTPUT_NORM_GRAD);
    const bool plain = c->n_in == 2 && !relu;
    if (s->groups > 1)
        return norms && plain && k->depthwise_fused_grads_fits(s);
    return (plain || !norms) && k->fused_grads_fits(s);
}

struct state {
    struct ew_fused_grads j;
    struct way way;
    bool relu; /* forward ends in a ReLU: dout[0] is masked by out[0] */
};

/* Bytes of the parts of scratch; `each`: for one thread. */
struct parts {
    size_t packed, partial, sums, each;
};

static struct parts parts_of(const struct way *w, const struct ew_conv_shape *s)
{
    const size_t sums = s->input_norm ? (size_t)w->tiles(s) * 2 * (size_t)s->cin : 0;
    return (struct parts){.packed = ew_float_bytes(w->pack_size(s)),
                          .partial = ew_float_bytes(w->partial(s)),
                          .sums = ew_float_bytes(sums),
                          .each = w->scratch(s)};
}

/* On one thread: these filters are small. */
static void pack(const struct ew_call *c, float *to)
{
    const struct ew_kernels *k = ew_cpu(c->be)->isa;
    const struct ew_conv_shape *s = &((const struct state *)c->state)->j.filter.shape;
    if (s->groups > 1)
        k->depthwise_dgrad_pack(s, c->in[1]->data, to);
    else
        k->conv_dgrad_pack(s, c->in[1]->data, to, 0, k->conv_dgrad_pack_tiles(s));
}

static void fused_grads_tiles(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct ew_call *c = ctx;
    const struct state *s = c->state;
    const size_t each = s->way.scratch(&s->j.filter.shape);
    s->way.run(&s->j, begin, end, ew_thread_scratch(c, each, worker));
}

static void sum_tiles(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct ew_call *c = ctx;
    const struct ew_fused_grads *j = &((const struct state *)c->state)->j;
    if (j->filter.shape.groups > 1)
        ew_cpu(c->be)->isa->depthwise_wgrad_sum(&j->filter, begin, end);
    else
        ew_cpu(c->be)->isa->fused_grads_sum(j, begin, end);
}

static int64_t sum_tile_count(const struct ew_kernels *k, const struct ew_conv_shape *s)
{
    return s->groups > 1 ? k->depthwise_wgrad_sum_tiles(s) : k->fused_grads_sum_tiles(s);
}

/* The ReLU's mask takes a pass over dout[0], which also computes the bias gradient. */
static bool clears(const struct ew_call *c)
{
    return ((const struct state *)c->state)->relu && !ew_has_role(c, EW_ROLE_RELU_MASKED);
}

static bool makes_bias(const struct ew_call *c)
{
    return c->n_in > 2 && c->din[2] && !clears(c);
}

/* Points the kernel at the call's tensors. */
static void bind(const struct ew_call *c, struct ew_fused_grads *j)
{
    j->filter.x = j->filter.norm ? j->filter.norm->x : c->in[0]->data;
    j->filter.dy = j->output_norm ? NULL : c->dout[0]->data;
    j->filter.dw = c->din[1] ? c->din[1]->data : NULL;
    j->filter.add = !(c->fresh & 2);
    j->no_filter = !c->din[1];
    j->filter.db = !j->no_filter && makes_bias(c) ? c->din[2]->data : NULL;
    j->filter.add_db = !(c->fresh & 4);
    j->mask = ew_has_role(c, EW_ROLE_RELU_MASK);
    j->dx = c->din[0] ? c->din[0]->data : NULL;
    j->add_dx = !(c->fresh & 1);
}

/* Reduces the sums of the norm before the layer to one split in its aux (EW_ROLE_SUMS_READY). */
static void leave_sums(const struct ew_call *c, const struct ew_fused_grads *j)
{
    struct ew_batch_norm b = *j->filter.norm;
    b.partial = j->norm_sums;
    b.splits = ((const struct state *)c->state)->way.tiles(&j->filter.shape);
    ew_cpu(c->be)->isa->batch_back_total(&b, b.sums);
}

static ew_err run(const struct ew_call *c)
{
    struct state *state = c->state;
    struct ew_fused_grads *j = &state->j;
    const struct ew_conv_shape *s = &j->filter.shape;
    const struct parts parts = parts_of(&state->way, s);
    if (!c->dout[0])
        return EW_OK;
    if (clears(c) || (makes_bias(c) && !c->din[1]))
        ew_bias_gradient(c, clears(c) ? c->out[0] : NULL);
    struct ew_batch_norm norm, output_norm;
    struct ew_update update;
    char *at = c->scratch;
    const struct ew_call *before = ew_call_fused(c, EW_ROLE_INPUT_NORM);
    const struct ew_call *after = ew_call_fused(c, EW_ROLE_OUTPUT_NORM_GRAD);
    if (before)
        ew_norm_of_call(before, &norm);
    if (after)
        ew_norm_of_call(after, &output_norm);
    j->filter.norm = before ? &norm : NULL;
    j->output_norm = after ? &output_norm : NULL;
    j->filter.update = ew_cpu_update_of(c, &update);
    bind(c, j);
    pack(c, (float *)(void *)at);
    j->w = (float *)(void *)at;
    j->filter.partial = (float *)(void *)(at + parts.packed);
    j->norm_sums = before && j->dx ? (float *)(void *)(at + parts.packed + parts.partial) : NULL;
    struct ew_call rest = *c;
    rest.scratch = at + parts.packed + parts.partial + parts.sums;
    ew_parallel_for(&rest, state->way.tiles(s), fused_grads_tiles);
    if (!j->no_filter)
        ew_parallel_for(c, sum_tile_count(ew_cpu(c->be)->isa, s), sum_tiles);
    if (j->norm_sums)
        leave_sums(c, j);
    return EW_OK;
}

void ew_fused_grads_prepare(const struct ew_call *c, const struct ew_conv_shape *s, bool relu)
{
    *(struct state *)c->state = (struct state){
        .j = {.filter = {.shape = *s}}, .way = way_of(ew_cpu(c->be)->isa, s), .relu = relu};
}

struct ew_kernel ew_fused_grads_kernel(const struct ew_backend *be, const struct ew_conv_shape *s)
{
    const struct way way = way_of(ew_cpu(be)->isa, s);
    const struct parts p = parts_of(&way, s);
    const size_t all = p.packed + p.partial + p.sums + ew_thread_scratch_bytes(be, p.each);
    const size_t bias = ew_bias_scratch(s->cout);
    const unsigned norms = EW_ROLE_OUTPUT_NORM_GRAD |
                           (s->input_norm ? EW_ROLE_INPUT_NORM | EW_ROLE_INPUT_NORM_SUMS : 0);
    const unsigned pointwise =
        EW_ROLE_STRIDED_OUTPUT | EW_ROLE_RELU_MASKED | (s->input_norm ? 0 : EW_ROLE_RELU_MASK);
    const unsigned depthwise = EW_ROLE_EXCITE_LAYER; /* its lines lie in one image */
    return (struct ew_kernel){.name = way.name,
                              .run = run,
                              .fresh = true,
                              .roles = norms | (way.updates ? EW_ROLE_UPDATE : 0) |
                                       (s->groups == 1 ? pointwise : depthwise),
                              .scratch = all > bias ? all : bias,
                              .state = sizeof(struct state)};
}
