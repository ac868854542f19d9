/* SPDX-License-Identifier: Apache-2.0 */
/* Resize and Upsample: resamples x along any axes.  Taps and weights are in resize.c. */
#include <math.h>

#include "graph/onnx.h"
#include "op/axis.h"
#include "op/resize.h"
#include "op/types.h"

#define CHUNK 256 /* elements at a time */

static const char *const modes[] = {"nearest", "linear", "cubic", NULL};
static const char *const coordinates[] = {
    "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel",   "align_corners",
    "asymmetric", "tf_crop_and_resize",   "tf_half_pixel_for_nn", NULL};
static const char *const rounds[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil",
                                     NULL};
static const char *const aspects[] = {"stretch", "not_larger", "not_smaller", NULL};

/* clang-format off */
#define AT(field) .offset = offsetof(struct ew_resize_attr, field)
static const struct ew_field attrs[] = {
    {.name = "mode", .type = EW_FIELD_ENUM, AT(mode), .choices = modes, .help = "interpolation"},
    {.name = "coordinate", .type = EW_FIELD_ENUM, AT(coordinate), .choices = coordinates,
     .help = "how output positions map to input positions"},
    {.name = "round", .type = EW_FIELD_ENUM, AT(round), .choices = rounds,
     .help = "nearest: which element"},
    {.name = "aspect", .type = EW_FIELD_ENUM, AT(aspect), .choices = aspects,
     .help = "sizes: keep the ratio of the axes"},
    {.name = "cubic_a", .type = EW_FIELD_FLOAT, AT(cubic_a), .def = "-0.75",
     .help = "cubic: the kernel's parameter"},
    {.name = "extrapolation", .type = EW_FIELD_FLOAT, AT(extrapolation),
     .help = "tf_crop_and_resize: value outside the input"},
    {.name = "exclude_outside", .type = EW_FIELD_BOOL, AT(exclude_outside),
     .help = "no weight outside the input, instead of repeating its edge"},
    {.name = "antialias", .type = EW_FIELD_BOOL, AT(antialias),
     .help = "a wider kernel where the output is smaller"},
    {.name = "axes", .type = EW_FIELD_INTS, AT(axes),
     .help = "the axes that scales, sizes and roi speak of; empty: all"},
    EW_FIELD_END};
/* clang-format on */

static ew_err infer(const struct ew_call *c)
{
    const struct ew_resize_attr *a = c->attr;
    struct ew_resize_axis axes[EW_MAX_RANK];
    EW_CHECK(a->mode != EW_RESIZE_CUBIC || (isfinite(a->cubic_a) && fabs(a->cubic_a) <= 16),
             EW_ERR_ARG, "cubic_a is %g", a->cubic_a);
    EW_CHECK(!a->antialias || a->coordinate != EW_RESIZE_TF_CROP_AND_RESIZE, EW_ERR_UNSUPPORTED,
             "antialias with tf_crop_and_resize is not supported");
    EW_TRY(ew_resize_resolve(c, axes));
    c->out[0]->shape.rank = c->in[EW_RESIZE_X]->shape.rank;
    for (int d = 0; d < c->out[0]->shape.rank; d++)
        c->out[0]->shape.dim[d] = axes[d].out;
    return EW_OK;
}

static void cost(const struct ew_call *c, struct ew_cost *out)
{
    const struct ew_resize_attr *a = c->attr;
    struct ew_resize_axis axes[EW_MAX_RANK];
    /* moves bytes */
    if (a->mode == EW_RESIZE_NEAREST || ew_resize_resolve(c, axes) != EW_OK)
        return;
    double flops = 2 * (double)ew_tensor_count(c->out[0]);
    for (int d = 0; d < c->out[0]->shape.rank; d++)
        flops *= (double)axes[d].taps;
    out->flops += (int64_t)fmin(flops, 0x1p56);
}

/* ---- The loops ----
 *
 * Dimensions after the last one that changes form runs of contiguous elements; the others have a
 * table of taps for each of their outputs, in scratch. */
struct grid {
    int dims; /* with tables */
    int64_t run;
    struct ew_resize_axis axes[EW_MAX_RANK];
    struct ew_resize_tap *table[EW_MAX_RANK];
    int64_t stride[EW_MAX_RANK]; /* of x */
    int64_t o[EW_MAX_RANK];      /* the present output position */
};

static ew_err grid_resolve(const struct ew_call *c, struct grid *g)
{
    const int rank = c->in[EW_RESIZE_X]->shape.rank;
    *g = (struct grid){.dims = rank, .run = 1};
    EW_TRY(ew_resize_resolve(c, g->axes));
    while (g->dims > 0 && g->axes[g->dims - 1].same)
        g->run *= g->axes[--g->dims].in;
    int64_t stride = g->run;
    for (int d = g->dims - 1; d >= 0; d--) {
        g->stride[d] = stride;
        stride *= g->axes[d].in;
    }
    return EW_OK;
}

static size_t scratch(const struct ew_call *c)
{
    struct grid g;
    size_t bytes = 0;
    if (grid_resolve(c, &g) != EW_OK)
        return 0;
    for (int d = 0; d < g.dims; d++)
        bytes += (size_t)(g.axes[d].out * g.axes[d].taps) * sizeof(struct ew_resize_tap);
    return bytes;
}

static ew_err grid_begin(const struct ew_call *c, struct grid *g)
{
    EW_TRY(grid_resolve(c, g));
    struct ew_resize_tap *room = c->scratch;
    for (int d = 0; d < g->dims; d++) {
        const struct ew_resize_axis *axis = &g->axes[d];
        g->table[d] = room;
        for (int64_t o = 0; o < axis->out; o++)
            ew_resize_taps(c->attr, axis, o, room + o * axis->taps);
        room += axis->out * axis->taps;
    }
    return EW_OK;
}

static bool grid_next(struct grid *g)
{
    for (int d = g->dims - 1; d >= 0; d--) {
        if (++g->o[d] < g->axes[d].out)
            return true;
        g->o[d] = 0;
    }
    return false;
}

static bool grid_outside(const struct grid *g)
{
    for (int d = 0; d < g->dims; d++)
        if (g->table[d][g->o[d] * g->axes[d].taps].at < 0)
            return true;
    return false;
}

/* Iterates over all combinations of the axes' taps; `k` is the counter, initially 0. */
static bool tap_next(const struct grid *g, int64_t *k, int64_t *at, double *weight)
{
    for (;;) {
        *at = 0;
        *weight = 1;
        for (int d = 0; d < g->dims; d++) {
            const struct ew_resize_tap *t = &g->table[d][g->o[d] * g->axes[d].taps + k[d]];
            *at += t->at * g->stride[d];
            *weight *= t->weight;
        }
        /* k[dims] marks the end */
        if (k[g->dims])
            return false;
        int d = g->dims - 1;
        for (; d >= 0 && ++k[d] == g->axes[d].taps; d--)
            k[d] = 0;
        k[g->dims] = d < 0;
        if (*weight > 0 || *weight < 0)
            return true;
    }
}

static ew_err forward(const struct ew_call *c)
{
    const struct ew_resize_attr *a = c->attr;
    struct grid g;
    double v[CHUNK], sum[CHUNK];
    if (ew_tensor_count(c->out[0]) == 0)
        return EW_OK;
    EW_TRY(grid_begin(c, &g));
    int64_t to = 0;
    do {
        const bool outside = grid_outside(&g);
        for (int64_t k = 0; k < g.run; k += CHUNK) {
            const int64_t n = ew_min_i64(CHUNK, g.run - k);
            int64_t tap[EW_MAX_RANK + 1] = {0}, at;
            double weight;
            for (int64_t i = 0; i < n; i++)
                sum[i] = outside ? a->extrapolation : 0;
            while (!outside && tap_next(&g, tap, &at, &weight)) {
                ew_tensor_load(c->in[EW_RESIZE_X], at + k, n, v);
                for (int64_t i = 0; i < n; i++)
                    sum[i] += weight * v[i];
            }
            ew_tensor_store(c->out[0], to + k, n, sum);
        }
        to += g.run;
    } while (grid_next(&g));
    return EW_OK;
}

static ew_err backward(const struct ew_call *c)
{
    struct grid g;
    double dy[CHUNK], v[CHUNK];
    if (!c->din[EW_RESIZE_X] || !c->dout[0] || ew_tensor_count(c->dout[0]) == 0)
        return EW_OK;
    EW_TRY(grid_begin(c, &g));
    int64_t from = 0;
    do {
        const bool outside = grid_outside(&g);
        for (int64_t k = 0; k < g.run; k += CHUNK) {
            const int64_t n = ew_min_i64(CHUNK, g.run - k);
            int64_t tap[EW_MAX_RANK + 1] = {0}, at;
            double weight;
            ew_tensor_load(c->dout[0], from + k, n, dy);
            while (!outside && tap_next(&g, tap, &at, &weight)) {
                for (int64_t i = 0; i < n; i++)
                    v[i] = weight * dy[i];
                ew_tensor_accumulate(c->din[EW_RESIZE_X], at + k, n, v);
            }
        }
        from += g.run;
    } while (grid_next(&g));
    return EW_OK;
}

/* ---- Layout and ONNX ---- */

/* ONNX Runtime only interpolates along adjacent axes, after the batch or after batch and channels;
 * cubic only the latter.  `perm` NULL: identity. */
static bool is_common(const struct ew_graph *g, const struct ew_node *n, const int *perm)
{
    const struct ew_resize_attr *a = n->attr;
    const struct ew_shape *x = &g->values[n->in[EW_RESIZE_X]].t.shape;
    const struct ew_shape *y = &g->values[n->out[0]].t.shape;
    unsigned changed = 0;
    for (int i = 0; i < x->rank; i++)
        if (x->dim[i] != y->dim[i])
            changed |= 1u << (perm ? ew_axis_moved(i, perm, x->rank) : i);
    const unsigned first = 3, last = 1u << (x->rank - 1);
    if (a->mode == EW_RESIZE_NEAREST || !(changed & first))
        return true;
    return a->mode == EW_RESIZE_LINEAR && !(changed & 1) && !(changed & last);
}

/* Permutes `axes`; scales, sizes and roi are in its order. */
static ew_err permute(struct ew_graph *g, int node, const int *perm, int *out_perm)
{
    struct ew_resize_attr *a = g->nodes[node].attr;
    const int rank = g->values[g->nodes[node].in[EW_RESIZE_X]].t.shape.rank;
    EW_CHECK(is_common(g, &g->nodes[node], perm) || !is_common(g, &g->nodes[node], NULL),
             EW_ERR_UNSUPPORTED, "other programs would not read it along these axes");
    struct ew_ints moved = {.n = a->axes.n ? a->axes.n : rank};
    bool plain = moved.n == rank;
    for (int i = 0; i < moved.n; i++) {
        int axis = i;
        if (a->axes.n)
            EW_TRY(ew_shape_axis(a->axes.v[i], rank, &axis));
        moved.v[i] = ew_axis_moved(axis, perm, rank);
        plain = plain && moved.v[i] == i;
    }
    a->axes = moved;
    a->axes.n = plain ? 0 : moved.n;
    return EW_OK;
}

extern const struct ew_op ew_op_resize;

/* Resize of opset 10 rounds nearest up where it shrinks: the tests of that version take elements 0
 * and 2 of 4 at a scale of 0.6. */
static ew_err older_rounding(const struct ew_graph *g, int scales, struct ew_resize_attr *a)
{
    const struct ew_tensor *t = scales >= 0 ? &g->values[scales].t : NULL;
    bool up = false, down = false;
    for (int64_t i = 0; t && t->data && i < ew_tensor_count(t); i++) {
        up |= ew_tensor_get(t, i) > 1;
        down |= ew_tensor_get(t, i) < 1;
    }
    EW_CHECK(!up || !down, EW_ERR_UNSUPPORTED,
             "nearest of opset 10 that enlarges one axis and shrinks another is not supported");
    a->round = down ? EW_RESIZE_CEIL : EW_RESIZE_FLOOR;
    return EW_OK;
}

/* Upsample and Resize before opset 11 have (x, scales) or scales as an attribute, and sample at
 * o / scale, nearest rounding down. */
static ew_err import(struct ew_graph *g, const struct ew_onnx_node *n, int *out)
{
    static const char *const ignore[] = {"scales", NULL};
    struct ew_resize_attr a;
    int in[EW_RESIZE_INPUTS] = {n->n_in > 0 ? n->in[0] : -1, -1, -1, -1};
    EW_TRY(ew_onnx_fill(&ew_op_resize, n, ignore, &a));
    if (n->opset < 11) {
        a.coordinate = EW_RESIZE_ASYMMETRIC;
        a.round = EW_RESIZE_FLOOR;
        EW_TRY(ew_onnx_input_or_attr(g, n, 1, "scales", &in[EW_RESIZE_SCALES]));
        if (n->opset == 10 && a.mode == EW_RESIZE_NEAREST)
            EW_TRY(older_rounding(g, in[EW_RESIZE_SCALES], &a));
    }
    for (int i = EW_RESIZE_ROI; i < n->n_in && i < EW_RESIZE_INPUTS && n->opset >= 11; i++) {
        in[i] = n->in[i];
        const struct ew_value *v = in[i] >= 0 ? &g->values[in[i]] : NULL;
        if (v && (v->kind == EW_VALUE_CONST || v->t.data) && ew_tensor_count(&v->t) == 0)
            in[i] = -1;
    }
    const struct ew_onnx_node own = ew_onnx_with_inputs(n, in, EW_RESIZE_INPUTS);
    return ew_onnx_import_default(g, &ew_op_resize, &own, &a, out);
}

/* Writes scales or sizes, and roi, for all axes; they must be known. */
static ew_err export_all_axes(const struct ew_call *c, struct ew_onnx_node *n)
{
    struct ew_resize_axis axes[EW_MAX_RANK];
    const int rank = c->in[EW_RESIZE_X]->shape.rank;
    EW_TRY(ew_resize_resolve(c, axes));
    float scales[EW_MAX_RANK], roi[2 * EW_MAX_RANK];
    int64_t sizes[EW_MAX_RANK];
    for (int d = 0; d < rank; d++) {
        scales[d] = (float)axes[d].scale;
        sizes[d] = axes[d].out;
        roi[d] = (float)axes[d].start;
        roi[rank + d] = (float)axes[d].end;
    }
    const struct ew_resize_attr *a = c->attr;
    const struct ew_tensor *by = ew_call_in(c, EW_RESIZE_SCALES);
    if (a->coordinate == EW_RESIZE_TF_CROP_AND_RESIZE) {
        const struct ew_tensor t = {EW_F32, {1, {2 * rank}}, roi};
        EW_TRY(ew_onnx_set_input(n, EW_RESIZE_ROI, &t));
    }
    if (by) {
        const struct ew_tensor t = {EW_F32, {1, {rank}}, scales};
        return ew_onnx_set_input(n, EW_RESIZE_SCALES, &t);
    }
    return ew_onnx_set_input_ints(n, EW_RESIZE_SIZES, sizes, rank);
}

static bool all_const(const struct ew_graph *g, const struct ew_node *n)
{
    for (int i = EW_RESIZE_ROI; i < n->n_in; i++)
        if (n->in[i] >= 0 && g->values[n->in[i]].kind != EW_VALUE_CONST)
            return false;
    return true;
}

/* True if sizes are given, but not for the batch, which sizes for all axes would fix. */
static bool leaves_batch_open(const struct ew_graph *g, const struct ew_node *n)
{
    const struct ew_resize_attr *a = n->attr;
    const int rank = g->values[n->in[EW_RESIZE_X]].t.shape.rank;
    bool batch = false;
    for (int i = 0; i < a->axes.n; i++)
        batch |= a->axes.v[i] == 0 || a->axes.v[i] == -rank;
    return n->n_in > EW_RESIZE_SIZES && n->in[EW_RESIZE_SIZES] >= 0 && !batch;
}

/* Opset 18 brought antialias, axes and the aspect, 19 half_pixel_symmetric. */
static ew_err export_node(const struct ew_graph *g, int node, struct ew_onnx_node *n)
{
    const struct ew_node *from = &g->nodes[node];
    const struct ew_resize_attr *a = from->attr;
    if (a->coordinate == EW_RESIZE_HALF_PIXEL_SYMMETRIC && n->opset < 19)
        n->opset = 19;
    EW_CHECK(a->coordinate != EW_RESIZE_TF_HALF_PIXEL_FOR_NN, EW_ERR_UNSUPPORTED,
             "tf_half_pixel_for_nn is in opset 11 only");
    if (n->opset < 18 && (a->antialias || a->aspect != EW_RESIZE_STRETCH ||
                          (a->axes.n && (!all_const(g, from) || leaves_batch_open(g, from)))))
        n->opset = 18;
    if (n->opset >= 18)
        return EW_OK;
    ew_onnx_drop(n, "antialias");
    ew_onnx_drop(n, "keep_aspect_ratio_policy");
    if (!a->axes.n)
        return EW_OK;
    ew_onnx_drop(n, "axes");
    struct ew_tensor *slots[EW_RESIZE_INPUTS + 1];
    struct ew_call c;
    ew_graph_call(g, from, slots, &c);
    return export_all_axes(&c, n);
}

static const char *const renames[] = {"coordinate",
                                      "coordinate_transformation_mode",
                                      "round",
                                      "nearest_mode",
                                      "aspect",
                                      "keep_aspect_ratio_policy",
                                      "cubic_a",
                                      "cubic_coeff_a",
                                      "extrapolation",
                                      "extrapolation_value",
                                      NULL};

static const char *const also[] = {"Upsample", NULL};

/* clang-format off */
#define FLOATS(n, text) {n, EW_F32, EW_FILL_VALUES, .values = text, .constant = true, .no_grad = true}
#define INTS(n, text) {n, EW_S64, EW_FILL_VALUES, .values = text, .constant = true}
#define BY_SCALES(shape, text) {{"" shape}, {NULL}, FLOATS("4", text)}, .n_in = 3
#define BY_SIZES(shape, text) {{"" shape}, {NULL}, {NULL}, INTS("4", text)}, .n_in = 4
static const struct ew_op_case cases[] = {
    {.name = "nearest, up", .attrs = "coordinate=asymmetric round=floor",
     .in = BY_SCALES("2x2x3x2", "1,2,3,1"), .out_shape = "2x4x9x2"},
    {.name = "nearest, down", .in = BY_SCALES("1x1x4x5", "1,1,0.6,0.6"), .out_shape = "1x1x2x3"},
    {.name = "nearest, ceil", .attrs = "round=ceil", .in = BY_SIZES("1x3x2x2", "1,4,5,2"),
     .out_shape = "1x4x5x2"},
    {.name = "nearest, prefer ceil", .attrs = "round=round_prefer_ceil coordinate=asymmetric",
     .in = BY_SIZES("1x2x2x2", "1,5,5,2"), .out_shape = "1x5x5x2"},
    {.name = "nearest, tf_half_pixel_for_nn", .attrs = "coordinate=tf_half_pixel_for_nn",
     .in = BY_SIZES("1x4x4x1", "1,3,2,1"), .out_shape = "1x3x2x1"},
    {.name = "linear, up", .attrs = "mode=linear", .in = BY_SCALES("1x2x3x4", "1,2,2,1"),
     .out_shape = "1x4x6x4"},
    {.name = "linear, many channels", .attrs = "mode=linear", .in = BY_SCALES("2x3x2x19", "1,2,3,1"),
     .out_shape = "2x6x6x19"},
    {.name = "linear, down", .attrs = "mode=linear", .in = BY_SIZES("2x5x6x2", "2,3,4,2"),
     .out_shape = "2x3x4x2"},
    {.name = "linear, align_corners", .attrs = "mode=linear coordinate=align_corners",
     .in = BY_SIZES("1x3x4x2", "1,5,7,2"), .out_shape = "1x5x7x2"},
    {.name = "linear, pytorch_half_pixel", .attrs = "mode=linear coordinate=pytorch_half_pixel",
     .in = BY_SIZES("1x4x4x1", "1,1,3,1"), .out_shape = "1x1x3x1"},
    {.name = "linear, symmetric", .attrs = "mode=linear coordinate=half_pixel_symmetric",
     .in = BY_SCALES("1x4x5x1", "1,1.6,0.7,1"), .out_shape = "1x6x3x1"},
    {.name = "linear, antialias", .attrs = "mode=linear antialias=true",
     .in = BY_SCALES("1x6x7x2", "1,0.4,0.5,1"), .out_shape = "1x2x3x2"},
    {.name = "linear, not larger", .attrs = "mode=linear aspect=not_larger axes=1x2",
     .in = {{"1x2x4x2"}, {NULL}, {NULL}, INTS("2", "5,6")}, .n_in = 4, .out_shape = "1x3x6x2"},
    {.name = "nearest, not smaller", .attrs = "aspect=not_smaller axes=2,1",
     .in = {{"1x2x4x2"}, {NULL}, {NULL}, INTS("2", "6,5")}, .n_in = 4, .out_shape = "1x5x10x2"},
    {.name = "linear, one axis of five", .attrs = "mode=linear axes=-2",
     .in = {{"1x2x2x3x2"}, {NULL}, FLOATS("1", "1.7")}, .n_in = 3, .out_shape = "1x2x2x5x2"},
    {.name = "cubic, up", .attrs = "mode=cubic", .in = BY_SCALES("1x4x3x2", "1,1.5,2,1"),
     .out_shape = "1x6x6x2"},
    {.name = "cubic, exclude_outside", .attrs = "mode=cubic cubic_a=-0.5 exclude_outside=true",
     .in = BY_SCALES("1x1x4x4", "1,1,0.8,2"), .out_shape = "1x1x3x8"},
    {.name = "cubic, antialias", .attrs = "mode=cubic antialias=true",
     .in = BY_SIZES("1x9x8x1", "1,4,3,1"), .out_shape = "1x4x3x1"},
    {.name = "crop", .attrs = "mode=linear coordinate=tf_crop_and_resize extrapolation=10",
     .in = {{"1x4x4x2"}, FLOATS("8", "0,0.4,0.6,0,1,0.6,1.3,1"), {NULL}, INTS("4", "1,3,3,2")},
     .n_in = 4, .out_shape = "1x3x3x2"},
    {.name = "bytes", .in = {{"1x2x2x1", EW_U8}, {NULL}, FLOATS("4", "1,2,2,1")}, .n_in = 3,
     .out_shape = "1x4x4x1"},
};
/* clang-format on */

const struct ew_op ew_op_resize = {
    .name = "resize",
    .help = "another resolution along any axes: nearest, linear or cubic",
    .saves = 1 << EW_RESIZE_ROI | 1 << EW_RESIZE_SCALES | 1 << EW_RESIZE_SIZES,
    .min_in = 1,
    .max_in = EW_RESIZE_INPUTS,
    .known_in = 1 << EW_RESIZE_ROI | 1 << EW_RESIZE_SCALES | 1 << EW_RESIZE_SIZES,
    .attr_size = sizeof(struct ew_resize_attr),
    .attrs = attrs,
    .infer = infer,
    .cost = cost,
    .scratch = scratch,
    .forward = forward,
    .backward = backward,
    .permute = permute,
    .onnx = {.type = "Resize",
             .since = 11,
             .rename = renames,
             .also = also,
             .import = import,
             .export = export_node},
    EW_OP_CASES(cases),
};
