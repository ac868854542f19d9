/* SPDX-License-Identifier: Apache-2.0 */
/* RoiAlign: pools regions of images to one size (He et al. 2017, Mask R-CNN, section 3).  Inference
 * only.
 *
 * in: x [N, H, W, C], rois [R, 4] as x1, y1, x2, y2, and the image of each, [R]. */
#include <math.h>

#include "graph/onnx.h"
#include "op/types.h"
#include "op/window.h"

#define CHUNK       256       /* channels at a time */
#define MAX_SAMPLES (1 << 18) /* per bin; more is treated as a malformed region */

enum { X, ROIS, IMAGES };
enum coordinate { HALF_PIXEL, OUTPUT_HALF_PIXEL };
enum mode { AVG, MAX };

struct ew_roi_align_attr {
    int mode;       /* enum mode */
    int coordinate; /* enum coordinate */
    int64_t height, width;
    int64_t sampling_ratio; /* samples along one side of a bin; 0: one per pixel */
    double spatial_scale;   /* from the regions' coordinates to x's */
};

static const char *const modes[] = {"avg", "max", NULL};
static const char *const coordinates[] = {"half_pixel", "output_half_pixel", NULL};

/* clang-format off */
#define AT(field) .offset = offsetof(struct ew_roi_align_attr, field)
static const struct ew_field attrs[] = {
    {.name = "mode", .type = EW_FIELD_ENUM, AT(mode), .choices = modes, .help = "how to pool"},
    {.name = "coordinate", .type = EW_FIELD_ENUM, AT(coordinate), .choices = coordinates,
     .help = "half_pixel: pixel centres at .5; output_half_pixel: as before opset 16"},
    {.name = "height", .type = EW_FIELD_INT, AT(height), .def = "1", .min = 1, .max = INT32_MAX,
     .help = "of the output"},
    {.name = "width", .type = EW_FIELD_INT, AT(width), .def = "1", .min = 1, .max = INT32_MAX,
     .help = "of the output"},
    {.name = "sampling_ratio", .type = EW_FIELD_INT, AT(sampling_ratio), .min = 0,
     .max = 512, .help = "samples along one side of a bin; 0: as many as pixels"},
    {.name = "spatial_scale", .type = EW_FIELD_FLOAT, AT(spatial_scale), .def = "1",
     .help = "from the regions' coordinates to the input's"},
    EW_FIELD_END};
/* clang-format on */

static ew_err infer(const struct ew_call *c)
{
    const struct ew_roi_align_attr *a = c->attr;
    const struct ew_shape *x = &c->in[X]->shape, *rois = &c->in[ROIS]->shape;
    EW_CHECK(x->rank == 4 && x->dim[1] > 0 && x->dim[2] > 0, EW_ERR_SHAPE,
             "the input has %d dimensions, 4 that are not empty are needed", x->rank);
    EW_CHECK(rois->rank == 2 && rois->dim[1] == 4, EW_ERR_SHAPE, "regions must be [R, 4]");
    EW_CHECK(c->in[IMAGES]->shape.rank == 1 && c->in[IMAGES]->shape.dim[0] == rois->dim[0],
             EW_ERR_SHAPE, "there must be one image number for each of %lld regions",
             (long long)rois->dim[0]);
    EW_TRY(ew_types_check(c, X, EW_TYPES_FLOAT));
    EW_TRY(ew_types_check(c, IMAGES, EW_TYPES_INDEX));
    EW_CHECK(a->height >= 1 && a->width >= 1 && a->height <= INT32_MAX && a->width <= INT32_MAX,
             EW_ERR_SHAPE, "the output is %lldx%lld", (long long)a->height, (long long)a->width);
    c->out[0]->shape = (struct ew_shape){4, {rois->dim[0], a->height, a->width, x->dim[3]}};
    return EW_OK;
}

static void cost(const struct ew_call *c, struct ew_cost *out)
{
    const struct ew_roi_align_attr *a = c->attr;
    const int64_t side = ew_max_i64(a->sampling_ratio, 2); /* 0: two samples is usual */
    out->flops += ew_cost_mul(ew_tensor_count(c->out[0]), 8 * side * side);
}

/* A region in x's coordinates. */
struct region {
    int64_t image;
    double y, x;        /* its corner */
    double dy, dx;      /* a bin's sides */
    int64_t rows, cols; /* samples in a bin */
};

static ew_err get_region(const struct ew_call *c, int64_t r, struct region *out)
{
    const struct ew_roi_align_attr *a = c->attr;
    const double shift = a->coordinate == HALF_PIXEL ? 0.5 : 0;
    double v[4];
    ew_tensor_load(c->in[ROIS], 4 * r, 4, v);
    for (int i = 0; i < 4; i++)
        v[i] = v[i] * a->spatial_scale - shift;
    double wide = v[2] - v[0], high = v[3] - v[1];
    if (a->coordinate == OUTPUT_HALF_PIXEL) { /* at least one pixel */
        wide = fmax(wide, 1);
        high = fmax(high, 1);
    }
    *out = (struct region){.image = ew_tensor_get_int(c->in[IMAGES], r),
                           .y = v[1],
                           .x = v[0],
                           .dy = high / (double)a->height,
                           .dx = wide / (double)a->width,
                           .rows = a->sampling_ratio,
                           .cols = a->sampling_ratio};
    EW_CHECK(isfinite(wide) && isfinite(high), EW_ERR_ARG, "region %lld is not finite",
             (long long)r);
    EW_CHECK(out->image >= 0 && out->image < c->in[X]->shape.dim[0], EW_ERR_ARG,
             "region %lld is of image %lld", (long long)r, (long long)out->image);
    if (a->sampling_ratio > 0)
        return EW_OK;
    const double rows = ceil(fmax(out->dy, 0)), cols = ceil(fmax(out->dx, 0));
    EW_CHECK(rows * cols <= MAX_SAMPLES, EW_ERR_LIMIT, "bins of region %lld span %gx%g pixels",
             (long long)r, rows, cols);
    out->rows = rows * cols > 0 ? (int64_t)rows : 0;
    out->cols = rows * cols > 0 ? (int64_t)cols : 0;
    return EW_OK;
}

/* The two pixels around position v on an axis of n, and the weight of the second; false: outside.
 */
static bool between(double v, int64_t n, int64_t *at, double *weight)
{
    if (!(v >= -1 && v <= (double)n))
        return false;
    v = fmax(v, 0);
    at[0] = ew_min_i64((int64_t)v, n - 1);
    at[1] = ew_min_i64(at[0] + 1, n - 1);
    *weight = at[0] < n - 1 ? v - (double)at[0] : 0;
    return true;
}

/* Adds a bilinear sample to `to`; for MAX the maximum of the weighted pixels, as in ONNX. */
static void add_sample(const struct ew_call *c, const struct region *g, double y, double x,
                       const int64_t *part, double *to)
{
    const struct ew_roi_align_attr *a = c->attr;
    const struct ew_shape *s = &c->in[X]->shape;
    int64_t ys[2] = {0}, xs[2] = {0};
    double wy = 0, wx = 0, v[CHUNK];
    const bool inside = between(y, s->dim[1], ys, &wy) && between(x, s->dim[2], xs, &wx);
    for (int k = 0; k < 4; k++) {
        const int64_t row = (g->image * s->dim[1] + ys[k / 2]) * s->dim[2] + xs[k % 2];
        const double weight = inside ? (k / 2 ? wy : 1 - wy) * (k % 2 ? wx : 1 - wx) : 0;
        if (!inside && a->mode == AVG)
            return;
        ew_tensor_load(c->in[X], row * s->dim[3] + part[0], part[1], v);
        for (int64_t i = 0; i < part[1]; i++)
            to[i] = a->mode == AVG ? to[i] + weight * v[i] : fmax(to[i], weight * v[i]);
    }
}

/* One output pixel, channels part[0] .. part[0] + part[1]. */
static void pool_bin(const struct ew_call *c, const struct region *g, const int64_t *o,
                     const int64_t *part, double *to)
{
    const struct ew_roi_align_attr *a = c->attr;
    const int64_t count = g->rows * g->cols;
    for (int64_t i = 0; i < part[1]; i++)
        to[i] = a->mode == MAX && count > 0 ? -INFINITY : 0;
    for (int64_t k = 0; k < count; k++) {
        const double y = ((double)(k / g->cols) + 0.5) / (double)g->rows;
        const double x = ((double)(k % g->cols) + 0.5) / (double)g->cols;
        add_sample(c, g, g->y + ((double)o[0] + y) * g->dy, g->x + ((double)o[1] + x) * g->dx, part,
                   to);
    }
    for (int64_t i = 0; i < part[1] && a->mode == AVG && count > 0; i++)
        to[i] /= (double)count;
}

static ew_err forward(const struct ew_call *c)
{
    const struct ew_shape *y = &c->out[0]->shape;
    double sum[CHUNK];
    for (int64_t p = 0; p < ew_shape_span(y, 0, 3); p++) {
        struct region g;
        EW_TRY(get_region(c, p / y->dim[2] / y->dim[1], &g));
        const int64_t o[2] = {p / y->dim[2] % y->dim[1], p % y->dim[2]};
        for (int64_t at = 0; at < y->dim[3]; at += CHUNK) {
            const int64_t part[2] = {at, ew_min_i64(CHUNK, y->dim[3] - at)};
            pool_bin(c, &g, o, part, sum);
            ew_tensor_store(c->out[0], p * y->dim[3] + at, part[1], sum);
        }
    }
    return EW_OK;
}

extern const struct ew_op ew_op_roi_align;

/* Before opset 16 there was no coordinate mode. */
static ew_err import(struct ew_graph *g, const struct ew_onnx_node *n, int *out)
{
    struct ew_roi_align_attr a;
    EW_TRY(ew_onnx_fill(&ew_op_roi_align, n, NULL, &a));
    if (n->opset < 16)
        a.coordinate = OUTPUT_HALF_PIXEL;
    return ew_onnx_import_default(g, &ew_op_roi_align, n, &a, out);
}

static ew_err export_node(const struct ew_graph *g, int node, struct ew_onnx_node *n)
{
    const struct ew_roi_align_attr *a = g->nodes[node].attr;
    if (a->coordinate != OUTPUT_HALF_PIXEL && n->opset < 16)
        n->opset = 16;
    if (n->opset < 16)
        ew_onnx_drop(n, "coordinate_transformation_mode");
    return EW_OK;
}

static const char *const renames[] = {"coordinate", "coordinate_transformation_mode",
                                      "height",     "output_height",
                                      "width",      "output_width",
                                      NULL};

/* clang-format off */
#define ROIS_IN {"2x4", .fill = EW_FILL_VALUES, .values = "0,0,3,4,1,1.5,4,2"},                    \
                {"2", EW_S64, EW_FILL_VALUES, .values = "1,0"}
static const struct ew_op_case cases[] = {
    {.name = "average", .attrs = "height=2 width=3 sampling_ratio=2",
     .in = {{"2x5x4x3"}, ROIS_IN}, .n_in = 3, .out_shape = "2x2x3x3"},
    {.name = "samples by size", .attrs = "height=2 width=1 coordinate=output_half_pixel",
     .in = {{"2x5x5x2"}, ROIS_IN}, .n_in = 3, .out_shape = "2x2x1x2"},
    {.name = "max, scaled", .attrs = "mode=max height=2 width=2 spatial_scale=0.5 sampling_ratio=2",
     .in = {{"2x4x4x1"}, ROIS_IN}, .n_in = 3, .out_shape = "2x2x2x1"},
};
/* clang-format on */

const struct ew_op ew_op_roi_align = {
    .name = "roi_align",
    .help = "regions of images pooled to one size",
    .flags = EW_OP_SPATIAL,
    .min_in = 3,
    .max_in = 3,
    .attr_size = sizeof(struct ew_roi_align_attr),
    .attrs = attrs,
    .infer = infer,
    .cost = cost,
    .forward = forward,
    .onnx = {.type = "RoiAlign",
             .since = 10,
             .rename = renames,
             .import = import,
             .export = export_node},
    EW_OP_CASES(cases),
};
