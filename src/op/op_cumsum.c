/* SPDX-License-Identifier: Apache-2.0 */
/* CumSum: running sums along an axis. */
#include "graph/graph.h"
#include "op/axis.h"
#include "op/lanes.h"

struct attr {
    bool exclusive, reverse;
};

static const struct ew_field attrs[] = {
    {.name = "exclusive",
     .type = EW_FIELD_BOOL,
     .offset = offsetof(struct attr, exclusive),
     .help = "an element does not count for itself"},
    {.name = "reverse",
     .type = EW_FIELD_BOOL,
     .offset = offsetof(struct attr, reverse),
     .help = "from the end"},
    EW_FIELD_END,
};

static ew_err lanes_of(const struct ew_call *c, struct ew_lanes *out)
{
    int axis;
    EW_CHECK(ew_tensor_count(c->in[1]) == 1, EW_ERR_SHAPE, "axis is not a single number");
    EW_TRY(ew_shape_axis(ew_tensor_get_int(c->in[1], 0), c->in[0]->shape.rank, &axis));
    *out = ew_lanes_of(&c->in[0]->shape, axis);
    return EW_OK;
}

static ew_err infer(const struct ew_call *c)
{
    struct ew_lanes l;
    EW_TRY(ew_types_check(c, 0, EW_TYPES_NUMBER));
    EW_TRY(ew_types_check(c, 1, EW_TYPES_INDEX));
    EW_TRY(lanes_of(c, &l));
    c->out[0]->dtype = c->in[0]->dtype;
    c->out[0]->shape = c->in[0]->shape;
    return EW_OK;
}

static ew_err forward(const struct ew_call *c)
{
    const struct attr *a = c->attr;
    const bool real = ew_dtype_is_float(c->in[0]->dtype);
    struct ew_lanes l;
    EW_TRY(lanes_of(c, &l));
    for (int64_t lane = 0; lane < ew_lanes_count(&l); lane++) {
        double sum = 0;
        int64_t whole = 0;
        for (int64_t k = 0; k < l.n; k++) {
            const int64_t at = ew_lane_start(&l, lane) + (a->reverse ? l.n - 1 - k : k) * l.inner;
            const double x = real ? ew_tensor_get(c->in[0], at) : 0;
            const int64_t xi = real ? 0 : ew_tensor_get_int(c->in[0], at);
            const double before = sum;
            const int64_t whole_before = whole;
            sum += x;
            whole = (int64_t)((uint64_t)whole + (uint64_t)xi);
            if (real)
                ew_tensor_store(c->out[0], at, 1, a->exclusive ? &before : &sum);
            else
                ew_tensor_store_int(c->out[0], at, 1, a->exclusive ? &whole_before : &whole);
        }
    }
    return EW_OK;
}

/* The same sum from the other end. */
static ew_err backward(const struct ew_call *c)
{
    const struct attr *a = c->attr;
    struct ew_lanes l;
    if (!c->din[0] || !c->dout[0])
        return EW_OK;
    EW_TRY(lanes_of(c, &l));
    for (int64_t lane = 0; lane < ew_lanes_count(&l); lane++) {
        double sum = 0;
        for (int64_t k = 0; k < l.n; k++) {
            const int64_t at = ew_lane_start(&l, lane) + (a->reverse ? k : l.n - 1 - k) * l.inner;
            const double before = sum;
            sum += ew_tensor_get(c->dout[0], at);
            ew_tensor_accumulate(c->din[0], at, 1, a->exclusive ? &before : &sum);
        }
    }
    return EW_OK;
}

static ew_err permute(struct ew_graph *g, int node, const int *perm, int *out_perm)
{
    const struct ew_node *n = &g->nodes[node];
    const int rank = g->values[n->in[0]].t.shape.rank;
    int axis;
    EW_TRY(ew_shape_axis(ew_tensor_get_int(&g->values[n->in[1]].t, 0), rank, &axis));
    int64_t moved = ew_axis_moved(axis, perm, rank);
    const struct ew_tensor t = {.dtype = EW_S64, .data = &moved};
    return ew_graph_const(g, g->values[n->in[1]].name, EW_VALUE_CONST, &t, true, &n->in[1]);
}

#define AXIS(text)                                                                                 \
    {                                                                                              \
        "", EW_S64, EW_FILL_VALUES, .values = text, .constant = true                               \
    }

static const struct ew_op_case cases[] = {
    {.name = "plain", .in = {{"3x4"}, AXIS("-1")}, .n_in = 2, .out_shape = "3x4"},
    {.name = "exclusive",
     .attrs = "exclusive=true",
     .in = {{"2x3x4"}, AXIS("1")},
     .n_in = 2,
     .out_shape = "2x3x4"},
    {.name = "reverse",
     .attrs = "reverse=true exclusive=true",
     .in = {{"5x2"}, AXIS("0")},
     .n_in = 2,
     .out_shape = "5x2"},
    {.name = "int",
     .attrs = "reverse=true",
     .in = {{"5", EW_S64}, AXIS("0")},
     .n_in = 2,
     .out_shape = "5"},
};

const struct ew_op ew_op_cumsum = {
    .name = "cumsum",
    .help = "running sums along an axis",
    .flags = EW_OP_INPLACE,
    .min_in = 2,
    .max_in = 2,
    .known_in = 1 << 1,
    .attr_size = sizeof(struct attr),
    .attrs = attrs,
    .infer = infer,
    .forward = forward,
    .backward = backward,
    .permute = permute,
    .onnx = {.type = "CumSum", .since = 11},
    EW_OP_CASES(cases),
};
