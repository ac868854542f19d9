/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of convolutions and dense layers. */
#include "backend/cpu/step/conv_step.h"
#include "backend/cpu/cpu_backend.h"

#include "backend/cpu/fuse/fuse.h"
#include "backend/cpu/parallel.h"
#include "backend/cpu/step/bias_grad.h"
#include "backend/cpu/step/cpu_update.h"
#include "backend/cpu/step/norm_step.h"

/* p + bytes, rounded up to cache lines. */
static void *past(void *p, size_t bytes)
{
    return (char *)p + ew_align_up(bytes);
}

/* ---- Forward: state is a pass.  Filters that change (in training, or computed by the graph) are
 * packed at each run into scratch, before the threads' scratch ---- */

/* s, with unpacked filters if that is faster. */
static struct ew_conv_shape shape_for(const struct ew_call *c, enum ew_conv_method m,
                                      const struct ew_conv_shape *s)
{
    struct ew_conv_shape out = *s;
    out.unpacked = c->train && m == EW_CONV_WINOGRAD && ew_cpu(c->be)->isa->winograd_unpacked(s);
    return out;
}

void ew_conv_forward_prepare(const struct ew_call *c, enum ew_conv_method m,
                             const struct ew_conv_shape *s, const struct ew_epilogue_attr *end)
{
    struct ew_conv_pass *p = c->state;
    *p = (struct ew_conv_pass){
        .method = m, .conv = {.shape = shape_for(c, m, s)}, .packed = c->packed};
    if (end)
        p->conv.end = (struct ew_epilogue){.add_after = end->add_after,
                                           .act = (enum ew_act)end->act,
                                           .lo = (float)end->lo,
                                           .hi = (float)end->hi};
}

static ew_err pack_filters(const struct ew_call *c)
{
    ew_conv_pack(c->be, c->state, c->in[1]->data);
    return EW_OK;
}

static size_t pack_filters_piece(const struct ew_call *c, int64_t *next)
{
    return ew_conv_pack_piece(c->be, c->state, c->in[1]->data, next);
}

static const float *input_or_null(const struct ew_call *c, int i)
{
    return i < c->n_in && c->in[i] ? c->in[i]->data : NULL;
}

/* in[0], or with a fused input norm the input of that batch norm. */
static const float *input_of(const struct ew_call *c, struct ew_batch_norm *norm,
                             const struct ew_batch_norm **out)
{
    const struct ew_call *before = ew_call_fused(c, EW_ROLE_INPUT_NORM);
    *out = before ? norm : NULL;
    if (!before)
        return c->in[0]->data;
    ew_norm_of_call(before, norm);
    return norm->x;
}

/* Bytes of statistics for the batch norm after it, behind the threads' scratch; 0: unsupported. */
static size_t stats_bytes(const struct ew_kernels *k, enum ew_conv_method m,
                          const struct ew_conv_shape *s)
{
    struct ew_stats_split cut;
    return ew_conv_stats_split(k, m, s, &cut) ? cut.size * sizeof(float) : 0;
}

static void run_with_stats(const struct ew_call *c, struct ew_conv_pass *p)
{
    const struct ew_kernels *k = ew_cpu(c->be)->isa;
    const struct ew_conv_shape *s = &p->conv.shape;
    struct ew_stats_split cut = {0};
    ew_conv_stats_split(k, p->method, s, &cut);
    p->conv.stats =
        past(c->scratch, ew_thread_scratch_bytes(c->be, ew_conv_scratch_bytes(k, p->method, s)));
    ew_conv_pass_run(c, p);
    ew_norm_finish(ew_call_fused(c, EW_ROLE_OUTPUT_NORM_STATS), p->conv.stats, cut.rows);
    p->conv.stats = NULL;
}

static ew_err run_forward(const struct ew_call *c)
{
    struct ew_conv_pass *p = c->state;
    struct ew_batch_norm norm;
    p->conv.x = input_of(c, &norm, &p->conv.norm);
    p->conv.y = c->out[0]->data;
    p->conv.end.bias = input_or_null(c, 2);
    p->conv.end.add = input_or_null(c, 3);
    if (ew_has_role(c, EW_ROLE_OUTPUT_NORM_STATS))
        run_with_stats(c, p);
    else
        ew_conv_pass_run(c, p);
    p->conv.norm = NULL;
    return EW_OK;
}

static ew_err run_packing(const struct ew_call *c)
{
    struct ew_conv_pass *p = c->state;
    struct ew_call rest = *c;
    p->packed = c->scratch;
    rest.scratch =
        past(c->scratch, ew_conv_packed_bytes(ew_cpu(c->be)->isa, p->method, &p->conv.shape));
    ew_conv_pack(c->be, p, c->in[1]->data);
    return run_forward(&rest);
}

bool ew_conv_trains(const struct ew_call *c)
{
    const enum ew_act act = (enum ew_act)((const struct ew_conv_attr *)c->attr)->end.act;
    return (act == EW_ACT_NONE || act == EW_ACT_RELU) && c->n_in <= 3;
}

#define TRAINED_GROUP 15 /* most input channels of a group: beyond, implicit GEMM is as fast */

bool ew_conv_trains_grouped(const struct ew_conv_shape *s)
{
    return s->cin / s->groups <= TRAINED_GROUP;
}

/* All strides are 1. */
static bool is_dense(const struct ew_conv_shape *s)
{
    return s->axis[0].stride == 1 && s->axis[1].stride == 1 && s->axis[2].stride == 1;
}

struct ew_kernel ew_conv_forward_kernel(const struct ew_call *c, enum ew_conv_method m,
                                        const struct ew_conv_shape *s)
{
    const struct ew_backend *be = c->be;
    const struct ew_conv_shape shape = shape_for(c, m, s);
    const bool fixed = !c->train && c->in[1]->data; /* weights that the graph computes have no data
                                                     * yet */
    static const char *const names[EW_CONV_BATCH_LANES_DGRAD + 1] = {
        [EW_CONV_GEMM] = "implicit gemm",
        [EW_CONV_WINOGRAD] = "winograd",
        [EW_CONV_DEPTHWISE] = "depthwise",
        [EW_CONV_GROUPED] = "grouped",
        [EW_CONV_BATCH_LANES] = "batch in lanes",
        [EW_CONV_PIXEL_LANES] = "pixels in lanes",
        [EW_CONV_INPUT_LANES] = "inputs in lanes",
        [EW_CONV_WINOGRAD_DGRAD] = "transposed winograd",
        [EW_CONV_DEPTHWISE_DGRAD] = "transposed depthwise",
        [EW_CONV_GROUPED_DGRAD] = "transposed grouped",
        [EW_CONV_BATCH_LANES_DGRAD] = "transposed batch in lanes"};
    const size_t scratch =
        ew_thread_scratch_bytes(be, ew_conv_scratch_bytes(ew_cpu(be)->isa, m, &shape));
    const size_t packed = ew_conv_packed_bytes(ew_cpu(be)->isa, m, &shape);
    /* The residual is read at the offsets of the output, so it would need the same row stride. */
    const bool strided =
        is_dense(s) && (m == EW_CONV_GEMM || m == EW_CONV_WINOGRAD) && !(c->n_in > 3 && c->in[3]);
    const size_t stats = c->train ? stats_bytes(ew_cpu(be)->isa, m, s) : 0;
    const unsigned roles = (strided ? EW_ROLE_STRIDED_OUTPUT : 0) |
                           (s->input_norm ? EW_ROLE_INPUT_NORM : 0) |
                           (stats ? EW_ROLE_OUTPUT_NORM_STATS : 0);
    const size_t all = scratch + (fixed ? 0 : ew_align_up(packed));
    return (struct ew_kernel){
        .name = names[m], /* NULL for EW_CONV_DGRAD: adjoint_step.c sets it */
        .run = fixed ? run_forward : run_packing,
        .pack = fixed ? pack_filters : NULL,
        .pack_piece = fixed && ew_conv_packs_pieces(m, &shape) ? pack_filters_piece : NULL,
        .packs = fixed ? 1u << 1 : 0,
        .packed = fixed ? packed : 0,
        .scratch = ew_has_role(c, EW_ROLE_OUTPUT_NORM_STATS) ? ew_align_up(all) + stats : all,
        .state = sizeof(struct ew_conv_pass),
        .roles = roles};
}

/* ---- Backward: scratch serves dgrad (packed filters, threads' scratch), then wgrad (partial sums,
 * threads' scratch) ---- */

enum ew_conv_method ew_conv_dgrad_method(const struct ew_kernels *k, const struct ew_conv_shape *s,
                                         struct ew_conv_shape *shape)
{
    *shape = *s;
    if (ew_conv_fits(k, EW_CONV_DEPTHWISE_DGRAD, s))
        return EW_CONV_DEPTHWISE_DGRAD;
    if (ew_conv_trains_grouped(s) && ew_conv_fits(k, EW_CONV_GROUPED_DGRAD, s))
        return EW_CONV_GROUPED_DGRAD;
    const struct ew_conv_shape mirrored = ew_conv_dgrad_shape(s);
    if (ew_conv_fits(k, EW_CONV_BATCH_LANES_DGRAD, &mirrored)) {
        *shape = mirrored;
        return EW_CONV_BATCH_LANES_DGRAD;
    }
    if (ew_conv_fits(k, EW_CONV_WINOGRAD, s) &&
        ew_conv_fits(k, EW_CONV_WINOGRAD_DGRAD, &mirrored) && k->winograd_pays(&mirrored, true)) {
        *shape = mirrored;
        shape->unpacked = k->winograd_unpacked(&mirrored);
        return EW_CONV_WINOGRAD_DGRAD;
    }
    return EW_CONV_DGRAD;
}

/* The kernels of one wgrad method: run, then sum.  For Winograd, which has its own phases, `run` is
 * NULL. */
struct filter_way {
    const char *text;
    size_t (*partial)(const struct ew_conv_shape *s);
    size_t (*scratch)(const struct ew_conv_shape *s);
    int64_t (*tiles)(const struct ew_conv_shape *s);
    void (*run)(const struct ew_conv_wgrad *f, int64_t begin, int64_t end, void *scratch);
    int64_t (*sum_tiles)(const struct ew_conv_shape *s);
    void (*sum)(const struct ew_conv_wgrad *f, int64_t begin, int64_t end);
    bool bias; /* also computes the bias gradient */
};

#define FILTER_WAY(k, kind, words)                                                                 \
    (struct filter_way)                                                                            \
    {                                                                                              \
        words, (k)->kind##_wgrad_partial, (k)->kind##_wgrad_scratch, (k)->kind##_wgrad_tiles,      \
            (k)->kind##_wgrad_run, (k)->kind##_wgrad_sum_tiles, (k)->kind##_wgrad_sum,             \
            (k)->kind##_wgrad_run != (k)->depthwise_wgrad_run &&                                   \
                (k)->kind##_wgrad_run != (k)->grouped_wgrad_run                                    \
    }

static struct filter_way filter_way(const struct ew_kernels *k, const struct ew_conv_shape *s)
{
    if (ew_conv_fits(k, EW_CONV_DEPTHWISE, s))
        return FILTER_WAY(k, depthwise, "wgrad: depthwise");
    if (ew_conv_trains_grouped(s) && ew_conv_fits(k, EW_CONV_GROUPED, s))
        return FILTER_WAY(k, grouped, "wgrad: grouped");
    if (k->batch_lanes_wgrad_fits(s))
        return FILTER_WAY(k, batch_lanes, "wgrad: batch in lanes");
    if (k->winograd_wgrad_fits(s))
        return (struct filter_way){.text = "wgrad: winograd",
                                   .partial = k->winograd_wgrad_shared,
                                   .scratch = k->winograd_wgrad_scratch,
                                   .bias = true};
    if (k->batch_lanes_large_wgrad_fits(s))
        return FILTER_WAY(k, batch_lanes_large, "wgrad: batch in lanes, transposed whole");
    return FILTER_WAY(k, conv, "wgrad: implicit gemm");
}

const char *ew_conv_wgrad_text(const struct ew_kernels *k, const struct ew_conv_shape *s)
{
    return filter_way(k, s).text;
}

/* All other methods have as many MACs as implicit GEMM. */
double ew_conv_wgrad_cycles(const struct ew_kernels *k, const struct ew_conv_shape *s)
{
    return filter_way(k, s).run ? k->conv_cycles(s, false) : k->winograd_wgrad_cycles(s);
}

struct backward {
    struct ew_conv_pass data;
    struct ew_conv_wgrad filter;
    struct filter_way way;
    int64_t phase;
    bool relu; /* forward ends in a ReLU: dout[0] is masked by out[0] */
};

void ew_conv_backward_prepare(const struct ew_call *c, const struct ew_conv_shape *s, bool relu)
{
    struct backward *b = c->state;
    *b = (struct backward){.filter = {.shape = *s}, .relu = relu};
    b->data.method = ew_conv_dgrad_method(ew_cpu(c->be)->isa, s, &b->data.conv.shape);
    b->way = filter_way(ew_cpu(c->be)->isa, s);
}

static void filter_tiles(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct ew_call *c = ctx;
    const struct backward *b = c->state;
    const size_t scratch = b->way.scratch(&b->filter.shape);
    b->way.run(&b->filter, begin, end, ew_thread_scratch(c, scratch, worker));
}

static void filter_sum(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct ew_call *c = ctx;
    const struct backward *b = c->state;
    b->way.sum(&b->filter, begin, end);
}

static void phase_tiles(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct ew_call *c = ctx;
    const struct backward *b = c->state;
    const size_t scratch = b->way.scratch(&b->filter.shape);
    ew_cpu(c->be)->isa->winograd_wgrad_run(&b->filter, b->phase, begin, end,
                                           ew_thread_scratch(c, scratch, worker));
}

/* rest->scratch is the threads' scratch. */
static void run_filter_phases(const struct ew_call *c, const struct ew_call *rest)
{
    struct backward *b = c->state;
    const struct ew_kernels *k = ew_cpu(c->be)->isa;
    const struct ew_conv_shape *s = &b->filter.shape;
    if (b->way.run) {
        ew_parallel_for(rest, b->way.tiles(s), filter_tiles);
        ew_parallel_for(c, b->way.sum_tiles(s), filter_sum);
        return;
    }
    const int64_t phases = k->winograd_wgrad_phases(s);
    for (b->phase = 0; b->phase < phases; b->phase++)
        ew_parallel_for(rest, k->winograd_wgrad_tiles(s, b->phase), phase_tiles);
}

/* True if wgrad also computes the bias gradient. */
static bool makes_bias(const struct ew_call *c, const struct backward *b)
{
    return b->way.bias && (!b->relu || ew_has_role(c, EW_ROLE_RELU_MASKED)) && c->din[1] &&
           c->n_in > 2 && c->din[2];
}

static void run_filter(const struct ew_call *c)
{
    struct backward *b = c->state;
    const struct ew_conv_shape *s = &b->filter.shape;
    struct ew_batch_norm norm;
    b->filter.x = input_of(c, &norm, &b->filter.norm);
    b->filter.dy = c->dout[0]->data;
    b->filter.dw = c->din[1]->data;
    b->filter.add = !(c->fresh & 2);
    b->filter.db = makes_bias(c, b) ? c->din[2]->data : NULL;
    b->filter.add_db = !(c->fresh & 4);
    b->filter.partial = c->scratch;
    struct ew_update update;
    b->filter.update = ew_cpu_update_of(c, &update);
    struct ew_call rest = *c;
    rest.scratch = past(c->scratch, b->way.partial(s) * sizeof(float));
    run_filter_phases(c, &rest);
    b->filter.update = NULL;
    b->filter.norm = NULL;
}

static void run_data(const struct ew_call *c)
{
    struct backward *b = c->state;
    struct ew_call rest = *c;
    b->data.packed = c->scratch;
    rest.scratch = past(
        c->scratch, ew_conv_packed_bytes(ew_cpu(c->be)->isa, b->data.method, &b->data.conv.shape));
    ew_conv_pack(c->be, &b->data, c->in[1]->data);
    b->data.conv.x = c->dout[0]->data;
    b->data.conv.y = c->din[0]->data;
    b->data.conv.end.add = c->fresh & 1 ? NULL : c->din[0]->data;
    b->data.conv.end.mask = ew_has_role(c, EW_ROLE_RELU_MASK) ? c->in[0]->data : NULL;
    ew_conv_pass_run(&rest, &b->data);
}

static ew_err run_backward(const struct ew_call *c)
{
    const struct backward *b = c->state;
    const bool masks = b->relu && !ew_has_role(c, EW_ROLE_RELU_MASKED);
    if (!c->dout[0])
        return EW_OK;
    if (masks || (c->n_in > 2 && c->din[2] && !makes_bias(c, b)))
        ew_bias_gradient(c, masks ? c->out[0] : NULL);
    if (c->din[0])
        run_data(c);
    if (c->din[1])
        run_filter(c);
    return EW_OK;
}

struct ew_kernel ew_conv_backward_kernel(const struct ew_backend *be, const struct ew_conv_shape *s)
{
    const struct ew_kernels *k = ew_cpu(be)->isa;
    struct ew_conv_shape shape;
    const enum ew_conv_method m = ew_conv_dgrad_method(k, s, &shape);
    const struct filter_way way = filter_way(k, s);
    static const char *const names[] = {[EW_CONV_DGRAD] = "implicit gemm gradients",
                                        [EW_CONV_WINOGRAD_DGRAD] = "winograd gradients",
                                        [EW_CONV_DEPTHWISE_DGRAD] = "depthwise gradients",
                                        [EW_CONV_GROUPED_DGRAD] = "grouped gradients",
                                        [EW_CONV_BATCH_LANES_DGRAD] = "batch in lanes gradients"};
    const size_t data = ew_align_up(ew_conv_packed_bytes(k, m, &shape)) +
                        ew_thread_scratch_bytes(be, ew_conv_scratch_bytes(k, m, &shape));
    const size_t filter =
        ew_float_bytes(way.partial(s)) + ew_thread_scratch_bytes(be, way.scratch(s));
    const size_t bias = ew_bias_scratch(s->cout), most = data > filter ? data : filter;
    const bool general = !way.run || way.run == k->conv_wgrad_run; /* Winograd or implicit GEMM */
    const bool any_data = m == EW_CONV_DGRAD || m == EW_CONV_WINOGRAD_DGRAD;
    const bool strided = general && any_data && is_dense(s);
    const unsigned roles = EW_ROLE_RELU_MASKED | (general ? EW_ROLE_UPDATE : 0) |
                           (any_data ? EW_ROLE_RELU_MASK : 0) |
                           (strided ? EW_ROLE_STRIDED_OUTPUT : 0) |
                           (s->input_norm && m == EW_CONV_DEPTHWISE_DGRAD ? EW_ROLE_INPUT_NORM : 0);
    return (struct ew_kernel){.name = names[m],
                              .run = run_backward,
                              .fresh = true,
                              .roles = roles,
                              .scratch = most > bias ? most : bias,
                              .state = sizeof(struct backward)};
}
