/* SPDX-License-Identifier: Apache-2.0 */
/* Training of the fused convolution, max pool and ReLU.  First layers (no dgrad): 2x2 windows here,
 * 3x3 windows by conv_pool_tiled.h.  Inner layers with channels-first output:
 * winograd_5x5_step.h. */
#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/isa.h"
#include "backend/cpu/parallel.h"
#include "backend/cpu/step/conv_pass.h"
#include "backend/cpu/step/conv_pool_tiled.h"
#include "backend/cpu/step/winograd_5x5_step.h"
#include "graph/ops.h"
#include "op/conv.h"

/* Small scratch is on the threads' stacks: its cache lines are never shared, while those of the
 * plan's memory may be in another core's cache. */
#define STACK_BYTES (32 << 10)

static size_t plan_scratch(const struct ew_backend *be, size_t bytes)
{
    return bytes > STACK_BYTES ? ew_thread_scratch_bytes(be, bytes) : 0;
}

static bool is_channels_first(const struct ew_call *c)
{
    return ((const struct ew_conv_attr *)c->attr)->turned;
}

static bool is_tiled(const struct ew_call *c)
{
    return ((const struct ew_conv_attr *)c->attr)->pool == 3;
}

static bool resolve(const struct ew_call *c, struct ew_conv_pool *out)
{
    struct ew_conv_sizes s;
    *out = (struct ew_conv_pool){0};
    if (c->in[0]->dtype != EW_F32 || ew_tensor_count(c->in[0]) >= INT32_MAX ||
        ew_conv_resolve(c, &s) != EW_OK)
        return false;
    ew_conv_shape_of(&s, &out->shape);
    out->relu = ((const struct ew_conv_attr *)c->attr)->end.act == EW_ACT_RELU;
    if (is_tiled(c))
        return ew_conv_pool_tiled_fits(&out->shape);
    return is_channels_first(c) ? ew_cpu(c->be)->isa->winograd_5x5_fits(&out->shape)
                                : ew_cpu(c->be)->isa->conv_pool_fits(&out->shape);
}

/* ---- Forward: scratch is the packed filters, then the threads' scratch ---- */

static ew_err prepare_forward(const struct ew_call *c)
{
    EW_CHECK(resolve(c, c->state), EW_ERR_INTERNAL, "%s: the convolution has changed", c->name);
    return EW_OK;
}

static size_t packed_bytes(const struct ew_kernels *k, const struct ew_conv_shape *s)
{
    return ew_float_bytes(k->conv_pool_pack_size(s));
}

static void forward_tiles(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct ew_call *c = ctx;
    const struct ew_conv_pool *p = c->state;
    const struct ew_kernels *k = ew_cpu(c->be)->isa;
    const size_t bytes = k->conv_pool_scratch(&p->shape);
    _Alignas(EW_ALIGN) char stack[STACK_BYTES];
    k->conv_pool_run(p, ew_parallel_range_tile(c->be, p->shape.batch, begin),
                     ew_parallel_range_tile(c->be, p->shape.batch, end),
                     bytes > STACK_BYTES ? ew_thread_scratch(c, bytes, worker) : stack);
}

static ew_err run_forward(const struct ew_call *c)
{
    struct ew_conv_pool *p = c->state;
    const struct ew_kernels *k = ew_cpu(c->be)->isa;
    float *packed = c->scratch;
    struct ew_call rest = *c;
    rest.scratch = (char *)c->scratch + packed_bytes(k, &p->shape);
    k->conv_pool_pack(&p->shape, c->in[1]->data, c->n_in > 2 && c->in[2] ? c->in[2]->data : NULL,
                      packed);
    p->x = c->in[0]->data;
    p->w = packed;
    p->y = c->out[0]->data;
    p->argmax = c->aux;
    ew_parallel_for(&rest, ew_parallel_ranges(c->be, p->shape.batch), forward_tiles);
    return EW_OK;
}

static struct ew_kernel forward_kernel(const struct ew_backend *be, const struct ew_conv_shape *s)
{
    const size_t threads = plan_scratch(be, ew_cpu(be)->isa->conv_pool_scratch(s));
    return (struct ew_kernel){.name = "fused conv+max pool",
                              .run = run_forward,
                              .prepare = prepare_forward,
                              .scratch = packed_bytes(ew_cpu(be)->isa, s) + threads,
                              .state = sizeof(struct ew_conv_pool)};
}

/* ---- Backward: the state ends with the offsets; scratch is partial sums, then the threads' ----
 */

struct backward {
    struct ew_conv_pool p;
    int32_t offsets[];
};

static ew_err prepare_backward(const struct ew_call *c)
{
    struct backward *b = c->state;
    EW_CHECK(resolve(c, &b->p), EW_ERR_INTERNAL, "%s: the convolution has changed", c->name);
    ew_cpu(c->be)->isa->conv_pool_offsets(&b->p.shape, b->offsets);
    b->p.offsets = b->offsets;
    return EW_OK;
}

static void backward_tiles(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct ew_call *c = ctx;
    const struct backward *b = c->state;
    const struct ew_kernels *k = ew_cpu(c->be)->isa;
    const size_t bytes = k->conv_pool_grad_scratch(&b->p.shape);
    _Alignas(EW_ALIGN) char stack[STACK_BYTES];
    const int64_t tiles = k->conv_pool_grad_tiles(&b->p.shape);
    k->conv_pool_grad_run(&b->p, ew_parallel_range_tile(c->be, tiles, begin),
                          ew_parallel_range_tile(c->be, tiles, end),
                          bytes > STACK_BYTES ? ew_thread_scratch(c, bytes, worker) : stack);
}

static void sum_tiles(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct ew_call *c = ctx;
    const struct backward *b = c->state;
    ew_cpu(c->be)->isa->conv_pool_sum(&b->p, begin, end);
}

static size_t partial_bytes(const struct ew_kernels *k, const struct ew_conv_shape *s)
{
    return ew_float_bytes(k->conv_pool_partial(s));
}

static ew_err run_backward(const struct ew_call *c)
{
    struct ew_conv_pool *p = &((struct backward *)c->state)->p;
    const struct ew_kernels *k = ew_cpu(c->be)->isa;
    if (!c->dout[0])
        return EW_OK;
    struct ew_call rest = *c;
    rest.scratch = (char *)c->scratch + partial_bytes(k, &p->shape);
    p->partial = c->scratch;
    p->x = c->in[0]->data;
    p->argmax = c->aux;
    p->dy = c->dout[0]->data;
    p->dw = c->din[1]->data;
    p->db = c->n_in > 2 && c->din[2] ? c->din[2]->data : NULL;
    p->add_dw = !(c->fresh & 2);
    p->add_db = !(c->fresh & 4);
    ew_parallel_for(&rest, ew_parallel_ranges(c->be, k->conv_pool_grad_tiles(&p->shape)),
                    backward_tiles);
    ew_parallel_for(c, k->conv_pool_sum_tiles(&p->shape), sum_tiles);
    return EW_OK;
}

static struct ew_kernel backward_kernel(const struct ew_backend *be, const struct ew_conv_shape *s)
{
    const struct ew_kernels *k = ew_cpu(be)->isa;
    const size_t threads = plan_scratch(be, k->conv_pool_grad_scratch(s));
    return (struct ew_kernel){.name = "fused conv+max pool wgrad",
                              .run = run_backward,
                              .prepare = prepare_backward,
                              .fresh = true,
                              .scratch = partial_bytes(k, s) + threads,
                              .state = sizeof(struct backward) +
                                       k->conv_pool_offsets_size(s) * sizeof(int32_t)};
}

/* ---- Channels first ---- */

static ew_err prepare_channels_first(const struct ew_call *c)
{
    struct ew_conv_pool p;
    EW_CHECK(resolve(c, &p), EW_ERR_INTERNAL, "%s: the convolution has changed", c->name);
    ew_winograd_5x5_prepare_pool(c, &p.shape, p.relu);
    return EW_OK;
}

/* The search for fused groups queries with a call without din. */
static bool makes_filter_gradient(const struct ew_call *c)
{
    return c->din && c->din[1];
}

static int offer_channels_first(const struct ew_kernel_query *query, const struct ew_conv_shape *s,
                                struct ew_kernel *out)
{
    if (query->phase == EW_PHASE_BACKWARD && !makes_filter_gradient(query->c))
        return 0;
    out[0] = query->phase == EW_PHASE_FORWARD ? ew_winograd_5x5_forward_kernel(query->be, s)
                                              : ew_winograd_5x5_backward_kernel(query->be, s);
    out[0].prepare = prepare_channels_first;
    return 1;
}

/* ---- Windows of 3x3 ---- */

static ew_err prepare_tiled(const struct ew_call *c)
{
    struct ew_conv_pool p;
    EW_CHECK(resolve(c, &p), EW_ERR_INTERNAL, "%s: the convolution has changed", c->name);
    ew_conv_pool_tiled_prepare(c, &p.shape, p.relu);
    return EW_OK;
}

static int offer_tiled(const struct ew_kernel_query *query, const struct ew_conv_shape *s,
                       struct ew_kernel *out)
{
    out[0] = query->phase == EW_PHASE_FORWARD ? ew_conv_pool_tiled_forward_kernel(query->be, s)
                                              : ew_conv_pool_tiled_backward_kernel(query->be, s);
    out[0].prepare = prepare_tiled;
    return 1;
}

static int offer(const struct ew_kernel_query *query, struct ew_kernel *out)
{
    struct ew_conv_pool p;
    const struct ew_call *c = query->c;
    if (!c->train || !resolve(c, &p))
        return 0;
    if (is_channels_first(c))
        return offer_channels_first(query, &p.shape, out);
    if (query->phase == EW_PHASE_BACKWARD && (!makes_filter_gradient(c) || c->din[0]))
        return 0;
    if (is_tiled(c))
        return offer_tiled(query, &p.shape, out);
    out[0] = query->phase == EW_PHASE_FORWARD ? forward_kernel(query->be, &p.shape)
                                              : backward_kernel(query->be, &p.shape);
    return 1;
}

const struct ew_kernel_family ew_offer_conv_pool = {.ops = EW_FAMILY_OPS(&ew_op_conv_pool),
                                                    .offer = offer};
