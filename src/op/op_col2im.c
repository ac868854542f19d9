/* SPDX-License-Identifier: Apache-2.0 */
/* Col2Im: sums columns of blocks into an image, the adjoint of im2col (PyTorch's Fold).
 *
 * in: columns [N, C blocks', L], the image's spatial shape, the block's; out: [N, C, image...].
 * Column l is a position of the block, in row-major order. */
#include <string.h>

#include "graph/onnx.h"
#include "op/types.h"
#include "op/window.h"

enum { X, IMAGE, BLOCK };

struct attr {
    struct ew_ints stride, pad, dilation; /* as of windows */
};

/* clang-format off */
#define LIST(field, least, text)                                                                   \
    {.name = #field, .type = EW_FIELD_INTS, .offset = offsetof(struct attr, field), .min = least,  \
     .max = INT32_MAX, .help = text}
static const struct ew_field attrs[] = {
    LIST(stride, 1, "step of the block; empty: 1"),
    LIST(pad, 0, "padding: all beginnings, then all ends; empty: none"),
    LIST(dilation, 1, "distance of the block's elements; empty: 1"),
    EW_FIELD_END};
/* clang-format on */

struct geometry {
    int dims;
    int64_t channels, taps, columns;
    int64_t image[EW_MAX_RANK], block[EW_MAX_RANK], steps[EW_MAX_RANK];
    int64_t stride[EW_MAX_RANK], pad[EW_MAX_RANK], dilation[EW_MAX_RANK];
};

/* One dimension: number of block positions. */
static ew_err fill_dim(const struct attr *a, int d, struct geometry *g)
{
    g->stride[d] = a->stride.n ? a->stride.v[d] : 1;
    g->dilation[d] = a->dilation.n ? a->dilation.v[d] : 1;
    g->pad[d] = a->pad.n ? a->pad.v[d] : 0;
    const int64_t end = a->pad.n ? a->pad.v[g->dims + d] : 0;
    EW_CHECK(g->image[d] >= 1 && g->image[d] <= INT32_MAX && g->block[d] >= 1 &&
                 g->block[d] <= INT32_MAX,
             EW_ERR_SHAPE, "dimension %d: image %lld, block %lld", d, (long long)g->image[d],
             (long long)g->block[d]);
    const int64_t room = g->image[d] + g->pad[d] + end - g->dilation[d] * (g->block[d] - 1) - 1;
    EW_CHECK(room >= 0, EW_ERR_SHAPE, "dimension %d: the block does not fit", d);
    g->steps[d] = room / g->stride[d] + 1;
    g->taps = ew_cost_mul(g->taps, g->block[d]);
    g->columns = ew_cost_mul(g->columns, g->steps[d]);
    return EW_OK;
}

static ew_err resolve(const struct ew_call *c, struct geometry *g)
{
    const struct attr *a = c->attr;
    const struct ew_shape *x = &c->in[X]->shape;
    struct ew_ints image, block;
    EW_CHECK(x->rank == 3, EW_ERR_SHAPE, "columns have %d dimensions, must be 3", x->rank);
    EW_TRY(ew_tensor_ints(c->in[IMAGE], "image_shape", &image));
    EW_TRY(ew_tensor_ints(c->in[BLOCK], "block_shape", &block));
    EW_CHECK(image.n >= 1 && image.n + 2 <= EW_MAX_RANK && block.n == image.n, EW_ERR_SHAPE,
             "the image has %d dimensions, the block %d", image.n, block.n);
    *g = (struct geometry){.dims = image.n, .taps = 1, .columns = 1};
    EW_TRY(ew_window_list(&a->stride, g->dims, 1, "strides"));
    EW_TRY(ew_window_list(&a->dilation, g->dims, 1, "dilations"));
    EW_TRY(ew_window_list(&a->pad, 2 * g->dims, 0, "pads"));
    for (int d = 0; d < g->dims; d++) {
        g->image[d] = image.v[d];
        g->block[d] = block.v[d];
        EW_TRY(fill_dim(a, d, g));
    }
    g->channels = x->dim[1] / g->taps;
    EW_CHECK(x->dim[1] % g->taps == 0 && x->dim[2] == g->columns, EW_ERR_SHAPE,
             "columns are %lldx%lld, must be a multiple of %lld by %lld", (long long)x->dim[1],
             (long long)x->dim[2], (long long)g->taps, (long long)g->columns);
    return EW_OK;
}

static ew_err infer(const struct ew_call *c)
{
    struct geometry g;
    EW_TRY(ew_float_check(c->in[X], "the input"));
    EW_TRY(ew_types_check(c, IMAGE, EW_TYPES_INDEX));
    EW_TRY(ew_types_check(c, BLOCK, EW_TYPES_INDEX));
    EW_TRY(resolve(c, &g));
    struct ew_shape *y = &c->out[0]->shape;
    *y = (struct ew_shape){2 + g.dims, {c->in[X]->shape.dim[0], g.channels}};
    memcpy(y->dim + 2, g.image, (size_t)g.dims * sizeof(int64_t));
    return ew_shape_check(y, c->name);
}

/* The image pixel to which element k of the columns is added; -1: padding. */
static int64_t pixel_of(const struct geometry *g, int64_t k)
{
    int64_t l = k % g->columns, t = k / g->columns % g->taps, at = 0, span = 1;
    for (int d = g->dims - 1; d >= 0; d--) {
        const int64_t p =
            l % g->steps[d] * g->stride[d] - g->pad[d] + t % g->block[d] * g->dilation[d];
        if (p < 0 || p >= g->image[d])
            return -1;
        at += p * span;
        span *= g->image[d];
        l /= g->steps[d];
        t /= g->block[d];
    }
    return k / (g->columns * g->taps) * span + at;
}

static ew_err forward(const struct ew_call *c)
{
    struct geometry g;
    EW_TRY(resolve(c, &g));
    memset(c->out[0]->data, 0, ew_tensor_bytes(c->out[0]));
    for (int64_t k = 0; k < ew_tensor_count(c->in[X]); k++) {
        const int64_t p = pixel_of(&g, k);
        const double v = ew_tensor_get(c->in[X], k);
        if (p >= 0)
            ew_tensor_accumulate(c->out[0], p, 1, &v);
    }
    return EW_OK;
}

static ew_err backward(const struct ew_call *c)
{
    struct geometry g;
    if (!c->din[X] || !c->dout[0])
        return EW_OK;
    EW_TRY(resolve(c, &g));
    for (int64_t k = 0; k < ew_tensor_count(c->din[X]); k++) {
        const int64_t p = pixel_of(&g, k);
        const double v = p < 0 ? 0 : ew_tensor_get(c->dout[0], p);
        ew_tensor_accumulate(c->din[X], k, 1, &v);
    }
    return EW_OK;
}

static const char *const renames[] = {"stride",   "strides",   "pad", "pads",
                                      "dilation", "dilations", NULL};

/* clang-format off */
#define INTS(count, text) {count, EW_S64, EW_FILL_VALUES, .values = text, .constant = true}
static const struct ew_op_case cases[] = {
    {.name = "side by side", .attrs = "stride=1x5",
     .in = {{"1x5x5"}, INTS("2", "5,5"), INTS("2", "1,5")}, .n_in = 3, .out_shape = "1x1x5x5"},
    {.name = "overlapping, padded", .attrs = "pad=1x0x1x1 stride=2x1",
     .in = {{"2x12x12"}, INTS("2", "5,4"), INTS("2", "3,2")}, .n_in = 3, .out_shape = "2x2x5x4"},
    {.name = "dilated", .attrs = "dilation=1x3 stride=2x2",
     .in = {{"1x4x6"}, INTS("2", "6,6"), INTS("2", "2,2")}, .n_in = 3, .out_shape = "1x1x6x6"},
    {.name = "3-D", .in = {{"1x10x12"}, INTS("3", "3,4,5"), INTS("3", "1,1,5")}, .n_in = 3,
     .out_shape = "1x2x3x4x5"},
};
/* clang-format on */

const struct ew_op ew_op_col2im = {
    .name = "col2im",
    .help = "columns of blocks added up to an image",
    .min_in = 3,
    .max_in = 3,
    .known_in = 1 << IMAGE | 1 << BLOCK,
    .attr_size = sizeof(struct attr),
    .attrs = attrs,
    .infer = infer,
    .forward = forward,
    .backward = backward,
    .onnx = {.type = "Col2Im", .since = 18, .rename = renames},
    EW_OP_CASES(cases),
};
