/* SPDX-License-Identifier: Apache-2.0 */
/* TopK: the k largest or smallest elements along an axis, in order, and their indices. */
#include "graph/onnx.h"
#include "graph/ops.h"
#include "op/axis.h"
#include "op/lanes.h"
#include "op/move.h"

struct attr {
    int64_t axis;
    bool largest, sorted;
};

static const struct ew_field attrs[] = {
    {.name = "axis",
     .type = EW_FIELD_INT,
     .offset = offsetof(struct attr, axis),
     .def = "-1",
     .help = "the axis that is searched"},
    {.name = "largest",
     .type = EW_FIELD_BOOL,
     .offset = offsetof(struct attr, largest),
     .def = "true",
     .help = "the largest elements, else the smallest"},
    {.name = "sorted",
     .type = EW_FIELD_BOOL,
     .offset = offsetof(struct attr, sorted),
     .def = "true",
     .help = "the best first; always done"},
    EW_FIELD_END,
};

static struct ew_lanes lanes_of(const struct ew_call *c, const struct ew_shape *s)
{
    const struct attr *a = c->attr;
    return ew_lanes_of(s, ew_axis_of(a->axis, s->rank));
}

static ew_err infer(const struct ew_call *c)
{
    const struct attr *a = c->attr;
    int axis;
    EW_TRY(ew_types_check(c, 0, EW_TYPES_NUMBER));
    EW_TRY(ew_types_check(c, 1, EW_TYPES_INDEX));
    EW_TRY(ew_shape_axis(a->axis, c->in[0]->shape.rank, &axis));
    EW_CHECK(ew_tensor_count(c->in[1]) == 1, EW_ERR_SHAPE, "k is not a single number");
    const int64_t k = ew_tensor_get_int(c->in[1], 0), n = c->in[0]->shape.dim[axis];
    EW_CHECK(k >= 0 && k <= n, EW_ERR_SHAPE, "k is %lld of %lld elements", (long long)k,
             (long long)n);
    for (int i = 0; i < c->n_out; i++) {
        if (!c->out[i])
            continue;
        c->out[i]->dtype = i ? EW_S64 : c->in[0]->dtype;
        c->out[i]->shape = c->in[0]->shape;
        c->out[i]->shape.dim[axis] = k;
    }
    return EW_OK;
}

/* The indices of the best so far, then one lane of values. */
static size_t scratch(const struct ew_call *c)
{
    const size_t n = (size_t)lanes_of(c, &c->in[0]->shape).n;
    return n * EW_LANE_ORDER_BYTES + n * sizeof(int64_t);
}

/* Insertion into the sorted best[0 .. k) over one pass of the lane; stable. */
static void select_best(const struct ew_lane_order *o, int64_t n, int64_t k, int64_t *best)
{
    int64_t filled = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t at = filled;
        while (at > 0 && ew_lane_better(o, i, best[at - 1]))
            at--;
        if (at >= k)
            continue;
        filled += filled < k;
        for (int64_t j = filled - 1; j > at; j--)
            best[j] = best[j - 1];
        best[at] = i;
    }
}

/* Calls `use` for each selected element: output element `to` is input element `from`. */
static void each_best(const struct ew_call *c, const struct ew_lanes *from_lanes, int64_t k,
                      void (*use)(const struct ew_call *c, int64_t from, int64_t to, int64_t index))
{
    const struct attr *a = c->attr;
    const struct ew_lanes *l = from_lanes;
    int64_t *best = c->scratch;
    for (int64_t lane = 0; lane < ew_lanes_count(l); lane++) {
        const struct ew_lanes to = {l->outer, k, l->inner};
        const struct ew_lane_order o =
            ew_lane_order_load(c->in[0], l, lane, a->largest, best + l->n);
        select_best(&o, l->n, k, best);
        for (int64_t i = 0; i < k; i++)
            use(c, ew_lane_start(l, lane) + best[i] * l->inner,
                ew_lane_start(&to, lane) + i * l->inner, best[i]);
    }
}

static void copy(const struct ew_call *c, int64_t from, int64_t to, int64_t index)
{
    if (c->out[0])
        ew_element_copy(c->in[0], from, c->out[0], to);
    if (ew_call_out(c, 1))
        ew_tensor_store_int(c->out[1], to, 1, &index);
}

static ew_err forward(const struct ew_call *c)
{
    const struct ew_lanes l = lanes_of(c, &c->in[0]->shape);
    each_best(c, &l, ew_tensor_get_int(c->in[1], 0), copy);
    return EW_OK;
}

static void copy_back(const struct ew_call *c, int64_t from, int64_t to, int64_t index)
{
    ew_element_add(c->dout[0], to, c->din[0], from);
}

static ew_err backward(const struct ew_call *c)
{
    if (!c->din[0] || !c->dout[0])
        return EW_OK;
    const struct ew_lanes l = lanes_of(c, &c->in[0]->shape);
    each_best(c, &l, lanes_of(c, &c->dout[0]->shape).n, copy_back);
    return EW_OK;
}

/* Before opset 10 k is an attribute; as an input it has one dimension. */
static ew_err import(struct ew_graph *g, const struct ew_onnx_node *n, int *out)
{
    static const char *const ignore[] = {"k", NULL};
    const struct ew_op *op = &ew_op_top_k;
    struct attr a;
    EW_TRY(ew_onnx_fill(op, n, ignore, &a));
    int in[2] = {n->n_in > 0 ? n->in[0] : -1, -1};
    EW_TRY(ew_onnx_input_or_attr(g, n, 1, "k", &in[1]));
    if (n->n_in < 2 && in[1] >= 0 && g->values[in[1]].t.shape.rank == 0)
        g->values[in[1]].t.shape = (struct ew_shape){1, {1}};
    const struct ew_onnx_node own = ew_onnx_with_inputs(n, in, 2);
    return ew_onnx_import_default(g, op, &own, &a, out);
}

#define K(text)                                                                                    \
    {                                                                                              \
        "1", EW_S64, EW_FILL_VALUES, .values = text, .constant = true                              \
    }

/* ONNX requires both outputs. */
static ew_err export(const struct ew_graph *g, int node, struct ew_onnx_node *n)
{
    n->n_out = 2;
    return EW_OK;
}

static const struct ew_op_case cases[] = {
    {.name = "largest",
     .in = {{"3x6", EW_F32, EW_FILL_DISTINCT}, K("3")},
     .n_in = 2,
     .n_out = 2,
     .out_shape = "3x3"},
    {.name = "smallest, middle axis",
     .attrs = "axis=1 largest=false",
     .in = {{"2x5x3", EW_F32, EW_FILL_DISTINCT}, K("2")},
     .n_in = 2,
     .n_out = 2,
     .out_shape = "2x2x3"},
    {.name = "equals",
     .in = {{"5", EW_S64, EW_FILL_VALUES, .values = "1,7,1,7,3"}, K("4")},
     .n_in = 2,
     .n_out = 2,
     .out_shape = "4"},
    {.name = "none", .in = {{"5"}, K("0")}, .n_in = 2, .out_shape = "0"},
};

const struct ew_op ew_op_top_k = {
    .name = "top_k",
    .help = "the k largest or smallest elements along an axis and their indices",
    .saves = EW_SAVE_IN0,
    .min_in = 2,
    .max_in = 2,
    .max_out = 2,
    .known_in = 1 << 1,
    .attr_size = sizeof(struct attr),
    .attrs = attrs,
    .infer = infer,
    .scratch = scratch,
    .forward = forward,
    .backward = backward,
    .permute = ew_axis_permute,
    .onnx = {.type = "TopK", .import = import, .export = export},
    EW_OP_CASES(cases),
};
