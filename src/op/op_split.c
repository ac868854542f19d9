/* SPDX-License-Identifier: Apache-2.0 */
/* Split: parts of a tensor along an axis. */
#include "graph/onnx.h"
#include "op/axis.h"
#include "op/move.h"
#include "op/shape_attr.h"
#include "op/types.h"

extern const struct ew_op ew_op_split;

static const struct ew_field attrs[] = {{.name = "axis",
                                         .type = EW_FIELD_INT,
                                         .offset = offsetof(struct ew_split_attr, axis),
                                         .help = "along which the parts follow each other"},
                                        EW_FIELD_END};

/* Size of part i along the axis: as listed, or equal parts with a smaller last one. */
static int64_t part_size(const struct ew_call *c, int64_t whole, int i)
{
    if (c->n_in > 1 && c->in[1])
        return ew_tensor_get_int(c->in[1], i);
    const int64_t part = (whole + c->n_out - 1) / c->n_out;
    return i < c->n_out - 1 ? part : whole - part * (c->n_out - 1);
}

static ew_err check_sizes(const struct ew_call *c, int64_t whole)
{
    const struct ew_tensor *sizes = c->n_in > 1 ? c->in[1] : NULL;
    if (sizes) {
        EW_CHECK(!ew_dtype_is_float(sizes->dtype), EW_ERR_TYPE, "sizes are %s, must be integers",
                 ew_dtype_name(sizes->dtype));
        EW_CHECK(ew_tensor_count(sizes) == c->n_out, EW_ERR_SHAPE, "%lld sizes for %d outputs",
                 (long long)ew_tensor_count(sizes), c->n_out);
    }
    int64_t sum = 0;
    for (int i = 0; i < c->n_out; i++) {
        const int64_t part = part_size(c, whole, i);
        EW_CHECK(part >= 0 && part <= whole - sum, EW_ERR_SHAPE,
                 "part %d has %lld elements, %lld are left", i, (long long)part,
                 (long long)(whole - sum));
        sum += part;
    }
    EW_CHECK(sum == whole, EW_ERR_SHAPE, "the parts have %lld elements, the input %lld",
             (long long)sum, (long long)whole);
    return EW_OK;
}

static ew_err infer(const struct ew_call *c)
{
    const struct ew_split_attr *a = c->attr;
    const struct ew_shape *in = &c->in[0]->shape;
    int axis;
    EW_TRY(ew_shape_axis(a->axis, in->rank, &axis));
    EW_TRY(check_sizes(c, in->dim[axis]));
    for (int i = 0; i < c->n_out; i++) {
        if (!c->out[i])
            continue;
        c->out[i]->shape = *in;
        c->out[i]->shape.dim[axis] = part_size(c, in->dim[axis], i);
    }
    return EW_OK;
}

/* Copies the parts; `back`: adds their gradients. */
static ew_err run(const struct ew_call *c, bool back)
{
    const struct ew_split_attr *a = c->attr;
    const struct ew_shape *in = &c->in[0]->shape;
    const int axis = ew_axis_of(a->axis, in->rank);
    int64_t at = 0;
    for (int i = 0; i < c->n_out; i++) {
        struct ew_shape part = *in;
        part.dim[axis] = part_size(c, in->dim[axis], i);
        struct ew_move m = ew_move_box(&part, in, &part);
        m.src_at = at * m.src[axis];
        if (back && c->dout[i])
            ew_move_back(&m, c->din[0], c->dout[i]);
        else if (!back && c->out[i])
            ew_move_copy(&m, c->in[0], c->out[i]);
        at += part.dim[axis];
    }
    return EW_OK;
}

static ew_err forward(const struct ew_call *c)
{
    return run(c, false);
}

static ew_err backward(const struct ew_call *c)
{
    return c->din[0] ? run(c, true) : EW_OK;
}

/* The number of parts is that of the outputs; before opset 13 sizes are an attribute. */
static ew_err import(struct ew_graph *g, const struct ew_onnx_node *n, int *out)
{
    static const char *const ignore[] = {"split", "num_outputs", NULL};
    const int64_t parts = ew_onnx_int(n, "num_outputs", n->n_out);
    EW_CHECK(parts == n->n_out, EW_ERR_FORMAT, "num_outputs is %lld, the node has %d",
             (long long)parts, n->n_out);
    struct ew_split_attr attr;
    int in[2] = {n->in[0], -1};
    EW_TRY(ew_onnx_fill(&ew_op_split, n, ignore, &attr));
    EW_TRY(ew_onnx_input_or_attr(g, n, 1, "split", &in[1]));
    const struct ew_onnx_node own = ew_onnx_with_inputs(n, in, in[1] < 0 ? 1 : 2);
    return ew_onnx_import_default(g, &ew_op_split, &own, &attr, out);
}

/* Equal parts need no sizes in opset 13, and num_outputs in 18; otherwise sizes are written, except
 * along a dynamic batch. */
static ew_err export_node(const struct ew_graph *g, int node, struct ew_onnx_node *n)
{
    const struct ew_split_attr *a = g->nodes[node].attr;
    const struct ew_shape *s = &g->values[n->in[0]].t.shape;
    const int axis = ew_axis_of(a->axis, s->rank);
    const int64_t whole = s->dim[axis];
    if (n->n_in > 1 && n->in[1] >= 0)
        return EW_OK;
    if (axis == 0 && whole % n->n_out == 0)
        return n->opset < 18 ? EW_OK : ew_onnx_set_int(n, "num_outputs", n->n_out);
    int64_t *sizes = ew_arena_array(n->arena, (size_t)n->n_out, sizeof(*sizes));
    EW_CHECK(sizes, EW_ERR_MEMORY, "%s: no memory", n->name);
    const struct ew_call c = {.n_in = 1, .n_out = n->n_out};
    for (int i = 0; i < n->n_out; i++)
        sizes[i] = part_size(&c, whole, i);
    return ew_onnx_set_input_ints(n, 1, sizes, n->n_out);
}

static const struct ew_op_case cases[] = {
    {.name = "bytes",
     .attrs = "axis=-1",
     .in = {{"2x3x3x70", EW_S8, EW_FILL_BYTES}},
     .n_in = 1,
     .n_out = 2,
     .out_shape = "2x3x3x35"},
    {.name = "halves",
     .attrs = "axis=1",
     .in = {{"2x6"}},
     .n_in = 1,
     .n_out = 2,
     .out_shape = "2x3"},
    {.name = "last smaller", .in = {{"7x2"}}, .n_in = 1, .n_out = 3, .out_shape = "3x2"},
    {.name = "sizes",
     .attrs = "axis=-1",
     .in = {{"2x2x6"}, {"3", EW_S64, EW_FILL_VALUES, .values = "1,2,3", .constant = true}},
     .n_in = 2,
     .n_out = 3,
     .out_shape = "2x2x1"},
    {.name = "empty part",
     .in = {{"4"}, {"2", EW_S64, EW_FILL_VALUES, .values = "4,0", .constant = true}},
     .n_in = 2,
     .n_out = 2,
     .out_shape = "4"},
    {.name = "bytes", .in = {{"4x3", EW_S8}}, .n_in = 1, .n_out = 2, .out_shape = "2x3"},
};

const struct ew_op ew_op_split = {
    .name = "split",
    .help = "parts of a tensor along an axis",
    .min_in = 1,
    .max_in = 2,
    .max_out = -1,
    .known_in = 1 << 1,
    .attr_size = sizeof(struct ew_split_attr),
    .attrs = attrs,
    .infer = infer,
    .cost = ew_move_cost,
    .forward = forward,
    .backward = backward,
    .permute = ew_axis_permute,
    .onnx = {.type = "Split", .import = import, .export = export_node},
    EW_OP_CASES(cases),
};
