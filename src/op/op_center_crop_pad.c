/* SPDX-License-Identifier: Apache-2.0 */
/* CenterCropPad: crops axes that are larger than the target to their centre, pads smaller ones with
 * zeros. */
#include <string.h>

#include "graph/onnx.h"
#include "op/move.h"
#include "op/types.h"

struct attr {
    struct ew_ints axes; /* axes of the sizes; empty: all */
};

static const struct ew_field attrs[] = {
    {.name = "axes",
     .type = EW_FIELD_INTS,
     .offset = offsetof(struct attr, axes),
     .help = "that the sizes are of; empty: all"},
    EW_FIELD_END,
};

static ew_err read_sizes(const struct ew_call *c, struct ew_shape *out)
{
    const struct attr *a = c->attr;
    struct ew_ints sizes;
    unsigned seen = 0;
    *out = c->in[0]->shape;
    EW_TRY(ew_tensor_ints(c->in[1], "shape", &sizes));
    EW_CHECK(sizes.n == (a->axes.n ? a->axes.n : out->rank), EW_ERR_SHAPE, "%d sizes for %d axes",
             sizes.n, a->axes.n ? a->axes.n : out->rank);
    for (int i = 0; i < sizes.n; i++) {
        int axis = i;
        if (a->axes.n)
            EW_TRY(ew_shape_axis(a->axes.v[i], out->rank, &axis));
        EW_CHECK(!(seen >> axis & 1), EW_ERR_ARG, "axis %d is there twice", axis);
        EW_CHECK(sizes.v[i] >= 0, EW_ERR_SHAPE, "size %d is %lld", i, (long long)sizes.v[i]);
        seen |= 1u << axis;
        out->dim[axis] = sizes.v[i];
    }
    return ew_shape_check(out, c->name);
}

static ew_err infer(const struct ew_call *c)
{
    EW_TRY(ew_types_check(c, 1, EW_TYPES_INDEX));
    return read_sizes(c, &c->out[0]->shape);
}

/* The part common to both; an odd pixel is cut off or added at the end. */
static struct ew_move middle(const struct ew_shape *x, const struct ew_shape *y)
{
    struct ew_shape both = *x;
    for (int i = 0; i < x->rank; i++)
        both.dim[i] = ew_min_i64(x->dim[i], y->dim[i]);
    struct ew_move m = ew_move_box(&both, x, y);
    for (int i = 0; i < x->rank; i++) {
        m.src_at += (x->dim[i] - both.dim[i]) / 2 * m.src[i];
        m.dst_at += (y->dim[i] - both.dim[i]) / 2 * m.dst[i];
    }
    return m;
}

static ew_err forward(const struct ew_call *c)
{
    const struct ew_move m = middle(&c->in[0]->shape, &c->out[0]->shape);
    if (ew_tensor_bytes(c->out[0]))
        memset(c->out[0]->data, 0, ew_tensor_bytes(c->out[0]));
    ew_move_copy(&m, c->in[0], c->out[0]);
    return EW_OK;
}

static ew_err backward(const struct ew_call *c)
{
    if (!c->din[0] || !c->dout[0])
        return EW_OK;
    const struct ew_move m = middle(&c->in[0]->shape, &c->out[0]->shape);
    ew_move_back(&m, c->din[0], c->dout[0]);
    return EW_OK;
}

static ew_err export_node(const struct ew_graph *g, int node, struct ew_onnx_node *n)
{
    const struct attr *a = g->nodes[node].attr;
    if (!a->axes.n)
        ew_onnx_drop(n, "axes");
    return EW_OK;
}

#define SIZES(count, text)                                                                         \
    {                                                                                              \
        count, EW_S64, EW_FILL_VALUES, .values = text, .constant = true                            \
    }
static const struct ew_op_case cases[] = {
    {.name = "crop", .in = {{"5x6x4"}, SIZES("3", "2,3,4")}, .n_in = 2, .out_shape = "2x3x4"},
    {.name = "crop and pad",
     .in = {{"5x2x3"}, SIZES("3", "4,5,3")},
     .n_in = 2,
     .out_shape = "4x5x3"},
    {.name = "some axes",
     .attrs = "axes=-1x0",
     .in = {{"3x4x5"}, SIZES("2", "8,1")},
     .n_in = 2,
     .out_shape = "1x4x8"},
    {.name = "nothing left", .in = {{"3", EW_S32}, SIZES("1", "0")}, .n_in = 2, .out_shape = "0"},
};

const struct ew_op ew_op_center_crop_pad = {
    .name = "center_crop_pad",
    .help = "the middle, cut or padded with zeros to a size",
    .min_in = 2,
    .max_in = 2,
    .known_in = 1 << 1,
    .attr_size = sizeof(struct attr),
    .attrs = attrs,
    .infer = infer,
    .cost = ew_move_cost,
    .forward = forward,
    .backward = backward,
    .onnx = {.type = "CenterCropPad", .since = 18, .export = export_node},
    EW_OP_CASES(cases),
};
