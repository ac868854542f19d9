/* SPDX-License-Identifier: Apache-2.0 */
/* GridSample: samples x at the positions of a grid.  Inference only.
 *
 * in: x [N, d..., C] and grid [N, o..., D], with D spatial dimensions; coordinates are in reverse
 * order of the dimensions, and -1 and 1 are x's borders. */
#include <math.h>
#include <string.h>

#include "graph/onnx.h"
#include "op/cubic.h"
#include "op/types.h"
#include "op/window.h"

#define DIMS  EW_WINDOW_DIMS
#define CHUNK 256 /* channels at a time */

#define CUBIC_A (-0.75) /* of ONNX's definition */

enum mode { LINEAR, NEAREST, CUBIC };
enum padding { ZEROS, BORDER, REFLECTION };

struct ew_grid_sample_attr {
    int mode;    /* enum mode */
    int padding; /* enum padding */
    bool align_corners;
};

static const char *const modes[] = {"linear", "nearest", "cubic", NULL};
static const char *const paddings[] = {"zeros", "border", "reflection", NULL};

/* clang-format off */
static const struct ew_field attrs[] = {
    {.name = "mode", .type = EW_FIELD_ENUM, .offset = offsetof(struct ew_grid_sample_attr, mode),
     .choices = modes, .help = "interpolation"},
    {.name = "padding", .type = EW_FIELD_ENUM,
     .offset = offsetof(struct ew_grid_sample_attr, padding), .choices = paddings,
     .help = "what lies outside x"},
    {.name = "align_corners", .type = EW_FIELD_BOOL,
     .offset = offsetof(struct ew_grid_sample_attr, align_corners),
     .help = "-1 and 1 are the centres of the corner pixels, instead of their outer edges"},
    EW_FIELD_END};
/* clang-format on */

static ew_err infer(const struct ew_call *c)
{
    const struct ew_grid_sample_attr *a = c->attr;
    const struct ew_shape *x = &c->in[0]->shape, *grid = &c->in[1]->shape;
    EW_TRY(ew_spatial_check(c->in[0]));
    EW_TRY(ew_types_check(c, 1, EW_TYPES_FLOAT));
    EW_CHECK(grid->rank == x->rank && grid->dim[0] == x->dim[0] &&
                 grid->dim[x->rank - 1] == x->rank - 2,
             EW_ERR_SHAPE, "the grid must have %d dimensions, %lld images and %d coordinates",
             x->rank, (long long)x->dim[0], x->rank - 2);
    EW_CHECK(a->mode != CUBIC || x->rank == 4, EW_ERR_UNSUPPORTED,
             "cubic needs 2 spatial dimensions, x has %d", x->rank - 2);
    c->out[0]->shape = *grid;
    c->out[0]->shape.dim[x->rank - 1] = x->dim[x->rank - 1];
    return EW_OK;
}

static void cost(const struct ew_call *c, struct ew_cost *out)
{
    const struct ew_grid_sample_attr *a = c->attr;
    const int n = c->in[0]->shape.rank - 2;
    const int taps = a->mode == NEAREST ? 1 : a->mode == LINEAR ? 1 << n : 16;
    out->flops += 2 * taps * ew_tensor_count(c->out[0]);
}

/* Mirrors x at both borders until it lies between them. */
static double reflect(double x, double low, double high)
{
    const double range = high - low;
    if (!(range > 0))
        return low;
    const double past = x < low ? low - x : x > high ? x - high : 0;
    if (!(past > 0))
        return x;
    const double turns = floor(past / range), rest = past - turns * range;
    const bool even = fmod(turns, 2) < 1;
    return (x < low) == even ? low + rest : high - rest;
}

static float nearest_position(const struct ew_grid_sample_attr *a, float g, float n)
{
    const float from_start = g + 1;
    if (a->align_corners)
        return from_start / 2 * (n - 1);
    const float doubled = from_start * n;
    return (doubled - 1) / 2;
}

/* The position in pixels of coordinate g on an axis of n, with padding applied (except zeros).
 * Cubic applies it to the pixels that it reads instead, as PyTorch and ONNX Runtime do; ONNX leaves
 * this open.  Nearest rounds what float32 arithmetic gives, as they do: regular grids have
 * positions halfway between two pixels. */
static double position(const struct ew_grid_sample_attr *a, double g, int64_t n)
{
    const double low = a->align_corners ? 0 : -0.5, high = (double)(n - 1) - low;
    double x = a->align_corners ? (g + 1) / 2 * (double)(n - 1) : ((g + 1) * (double)n - 1) / 2;
    if (a->mode == NEAREST)
        x = rintf(nearest_position(a, (float)g, (float)n));
    if ((x >= low && x <= high) || a->padding == ZEROS || a->mode == CUBIC)
        return x;
    return a->padding == BORDER ? fmin(fmax(x, 0), (double)(n - 1)) : reflect(x, low, high);
}

/* The pixel at integer position x, or -1: outside. */
static int64_t pixel(const struct ew_grid_sample_attr *a, double x, int64_t n)
{
    const double last = (double)(n - 1), low = a->align_corners ? 0 : -0.5;
    if (a->padding == BORDER)
        x = fmin(fmax(x, 0), last);
    else if (a->padding == REFLECTION)
        x = reflect(x, low, last - low);
    return x >= 0 && x <= last ? (int64_t)x : -1;
}

/* Taps along one axis: at most four pixels and their weights. */
struct taps {
    int n;
    int64_t at[4];
    double weight[4];
};

static void get_taps(const struct ew_grid_sample_attr *a, double g, int64_t n, struct taps *t)
{
    const double x = position(a, g, n), base = floor(x);
    if (a->mode == NEAREST) {
        *t = (struct taps){.n = 1, .at = {pixel(a, x, n)}, .weight = {1}};
        return;
    }
    t->n = a->mode == LINEAR ? 2 : 4;
    for (int i = 0; i < t->n; i++) {
        const double at = base + i - (a->mode == CUBIC), d = fabs(at - x);
        t->at[i] = pixel(a, at, n);
        t->weight[i] = a->mode == LINEAR ? 1 - d : ew_cubic(CUBIC_A, d);
    }
}

/* sum += the weighted pixels of image n, channels [ch, ch + count). */
static void sample(const struct ew_call *c, const struct taps *t, int64_t n, int64_t ch,
                   int64_t count, double *sum)
{
    const struct ew_shape *x = &c->in[0]->shape;
    const int dims = x->rank - 2;
    int k[DIMS] = {0};
    double v[CHUNK];
    for (bool more = true; more;) {
        double weight = 1;
        int64_t row = n;
        for (int d = 0; d < dims; d++) {
            weight = t[d].at[k[d]] < 0 ? 0 : weight * t[d].weight[k[d]];
            row = row * x->dim[1 + d] + ew_max_i64(t[d].at[k[d]], 0);
        }
        if (weight > 0 || weight < 0) {
            ew_tensor_load(c->in[0], row * x->dim[x->rank - 1] + ch, count, v);
            for (int64_t i = 0; i < count; i++)
                sum[i] += weight * v[i];
        }
        more = false;
        for (int d = dims - 1; d >= 0 && !more; d--) {
            more = ++k[d] < t[d].n;
            k[d] = more ? k[d] : 0;
        }
    }
}

static ew_err forward(const struct ew_call *c)
{
    const struct ew_shape *x = &c->in[0]->shape, *grid = &c->in[1]->shape;
    const int dims = x->rank - 2;
    const int64_t channels = x->dim[x->rank - 1];
    const int64_t outs = ew_shape_span(grid, 1, grid->rank - 1);
    for (int64_t p = 0; p < x->dim[0] * outs; p++) {
        struct taps t[DIMS];
        double g[DIMS];
        ew_tensor_load(c->in[1], p * dims, dims, g);
        for (int d = 0; d < dims; d++)
            get_taps(c->attr, g[dims - 1 - d], x->dim[1 + d], &t[d]);
        for (int64_t ch = 0; ch < channels; ch += CHUNK) {
            const int64_t n = ew_min_i64(CHUNK, channels - ch);
            double sum[CHUNK] = {0};
            sample(c, t, p / outs, ch, n, sum);
            ew_tensor_store(c->out[0], p * channels + ch, n, sum);
        }
    }
    return EW_OK;
}

static const char *const renames[] = {"padding", "padding_mode", NULL};

extern const struct ew_op ew_op_grid_sample;

/* Opset 16 names the modes bilinear and bicubic. */
static ew_err import(struct ew_graph *g, const struct ew_onnx_node *n, int *out)
{
    struct ew_onnx_node plain = *n;
    for (int i = 0; i < plain.n_attrs; i++) {
        struct ew_onnx_attr *a = &plain.attrs[i];
        if (strcmp(a->name, "mode") == 0 && a->type == EW_ONNX_STRING &&
            strncmp(a->s, "bi", 2) == 0)
            a->s += 2;
    }
    return ew_onnx_import_default(g, &ew_op_grid_sample, &plain, NULL, out);
}

static ew_err export_node(const struct ew_graph *g, int node, struct ew_onnx_node *n)
{
    const struct ew_grid_sample_attr *a = g->nodes[node].attr;
    if (g->values[g->nodes[node].in[0]].t.shape.rank != 4 && n->opset < 20)
        n->opset = 20;
    if (n->opset < 20 && a->mode != NEAREST)
        return ew_onnx_set_str(n, "mode", a->mode == LINEAR ? "bilinear" : "bicubic");
    return EW_OK;
}

/* clang-format off */
static const struct ew_op_case cases[] = {
    {.name = "linear", .in = {{"2x3x4x3"}, {"2x2x5x2"}}, .n_in = 2, .out_shape = "2x2x5x3"},
    {.name = "corners, border", .attrs = "align_corners=true padding=border",
     .in = {{"1x3x4x2"}, {"1x3x3x2"}}, .n_in = 2, .out_shape = "1x3x3x2"},
    {.name = "nearest, reflection", .attrs = "mode=nearest padding=reflection",
     .in = {{"1x3x3x2"}, {"1x4x4x2", .fill = EW_FILL_UNIT}}, .n_in = 2, .out_shape = "1x4x4x2"},
    {.name = "cubic", .attrs = "mode=cubic padding=reflection", .in = {{"1x5x4x2"}, {"1x3x3x2"}},
     .n_in = 2, .out_shape = "1x3x3x2"},
    {.name = "3-D", .in = {{"1x3x2x4x2"}, {"1x2x2x3x3"}}, .n_in = 2, .out_shape = "1x2x2x3x2"},
};
/* clang-format on */

const struct ew_op ew_op_grid_sample = {
    .name = "grid_sample",
    .help = "x read at the positions of a grid",
    .flags = EW_OP_SPATIAL,
    .min_in = 2,
    .max_in = 2,
    .attr_size = sizeof(struct ew_grid_sample_attr),
    .attrs = attrs,
    .infer = infer,
    .cost = cost,
    .forward = forward,
    .onnx = {.type = "GridSample",
             .since = 16,
             .rename = renames,
             .import = import,
             .export = export_node},
    EW_OP_CASES(cases),
};
