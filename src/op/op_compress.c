/* SPDX-License-Identifier: Apache-2.0 */
/* Compress: the entries of an axis for which a condition holds.  The condition must be known when
 * shapes are inferred, since the size of the output follows from it. */
#include "graph/onnx.h"
#include "op/lanes.h"
#include "op/move.h"

#define FLAT INT64_MAX

struct attr {
    int64_t axis;
};

static const struct ew_field attrs[] = {{.name = "axis",
                                         .type = EW_FIELD_INT,
                                         .offset = offsetof(struct attr, axis),
                                         .def = "9223372036854775807",
                                         .help = "the axis; unset: of the flattened input"},
                                        EW_FIELD_END};

/* Along the axis, or (*axis below 0) of the flattened input. */
static ew_err lanes_of(const struct ew_call *c, int *axis, struct ew_lanes *out)
{
    const struct attr *a = c->attr;
    const struct ew_shape *s = &c->in[0]->shape;
    *axis = -1;
    *out = (struct ew_lanes){.outer = 1, .n = ew_shape_count(s), .inner = 1};
    if (a->axis == FLAT)
        return EW_OK;
    EW_TRY(ew_shape_axis(a->axis, s->rank, axis));
    *out = ew_lanes_of(s, *axis);
    return EW_OK;
}

static ew_err infer(const struct ew_call *c)
{
    struct ew_lanes l = {0};
    int axis = -1;
    EW_TRY(ew_types_check(c, 1, EW_TYPES_BOOL));
    EW_TRY(lanes_of(c, &axis, &l));
    const int64_t n = ew_tensor_count(c->in[1]);
    EW_CHECK(n <= l.n, EW_ERR_SHAPE, "%lld conditions for %lld entries", (long long)n,
             (long long)l.n);
    int64_t kept = 0;
    for (int64_t i = 0; i < n; i++)
        kept += ew_tensor_get_int(c->in[1], i);
    c->out[0]->shape = c->in[0]->shape;
    if (axis >= 0)
        c->out[0]->shape.dim[axis] = kept;
    else
        c->out[0]->shape = (struct ew_shape){1, {kept}};
    return EW_OK;
}

/* Copies the selected entries; `back`: adds their gradients. */
static ew_err run(const struct ew_call *c, bool back)
{
    struct ew_lanes l = {0};
    int axis = -1;
    EW_TRY(lanes_of(c, &axis, &l));
    const struct ew_shape row = {1, {l.inner}};
    struct ew_move m = ew_move_box(&row, &row, &row);
    for (int64_t o = 0; o < l.outer; o++) {
        for (int64_t i = 0; i < ew_tensor_count(c->in[1]); i++) {
            if (!ew_tensor_get_int(c->in[1], i))
                continue;
            m.src_at = (o * l.n + i) * l.inner;
            if (back)
                ew_move_back(&m, c->din[0], c->dout[0]);
            else
                ew_move_copy(&m, c->in[0], c->out[0]);
            m.dst_at += l.inner;
        }
    }
    return EW_OK;
}

static ew_err forward(const struct ew_call *c)
{
    return run(c, false);
}

static ew_err backward(const struct ew_call *c)
{
    return c->din[0] && c->dout[0] ? run(c, true) : EW_OK;
}

static ew_err export_node(const struct ew_graph *g, int node, struct ew_onnx_node *n)
{
    const struct attr *a = g->nodes[node].attr;
    if (a->axis == FLAT)
        ew_onnx_drop(n, "axis");
    return EW_OK;
}

static const struct ew_op_case cases[] = {
    {.name = "rows",
     .attrs = "axis=0",
     .in = {{"3x2"}, {"3", EW_BOOL, EW_FILL_VALUES, .values = "0,1,1", .constant = true}},
     .n_in = 2,
     .out_shape = "2x2"},
    {.name = "last axis, short",
     .attrs = "axis=-1",
     .in = {{"3x4"}, {"2", EW_BOOL, EW_FILL_VALUES, .values = "0,1", .constant = true}},
     .n_in = 2,
     .out_shape = "3x1"},
    {.name = "flat",
     .in = {{"3x2"}, {"5", EW_BOOL, EW_FILL_VALUES, .values = "0,1,0,0,1", .constant = true}},
     .n_in = 2,
     .out_shape = "2"},
};

const struct ew_op ew_op_compress = {
    .name = "compress",
    .help = "the entries of an axis for which a condition holds",
    .min_in = 2,
    .max_in = 2,
    .known_in = 1 << 1,
    .attr_size = sizeof(struct attr),
    .attrs = attrs,
    .infer = infer,
    .cost = ew_move_cost,
    .forward = forward,
    .backward = backward,
    .onnx = {.type = "Compress", .since = 9, .export = export_node},
    EW_OP_CASES(cases),
};
