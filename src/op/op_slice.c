/* SPDX-License-Identifier: Apache-2.0 */
/* Slice: from start to end by a step along each axis; a negative step goes backwards. */
#include <string.h>

#include "graph/onnx.h"
#include "op/axis.h"
#include "op/move.h"
#include "op/types.h"

extern const struct ew_op ew_op_slice;

enum { DATA, STARTS, ENDS, AXES, STEPS, INPUTS };

/* One axis of `d` elements: the first one taken, the step, and how many (NumPy's rules). */
static void cut(int64_t d, int64_t *start, int64_t end, int64_t *step, int64_t *count)
{
    const bool forth = *step > 0;
    const int64_t lo = forth ? 0 : -1, hi = forth ? d : d - 1;
    int64_t from = *start < 0 ? *start + d : *start;
    int64_t to = end < 0 ? end + d : end;
    from = ew_max_i64(lo + !forth, ew_min_i64(from, hi));
    to = ew_max_i64(lo, ew_min_i64(to, hi));
    /* larger steps are equivalent; avoids overflow below */
    const int64_t by = ew_max_i64(-(d + 1), ew_min_i64(*step, d + 1));
    const int64_t span = forth ? to - from : from - to, stride = forth ? by : -by;
    *count = d > 0 && span > 0 ? (span + stride - 1) / stride : 0;
    *start = from;
    *step = by;
}

/* The box is the output's shape. */
ew_err ew_slice_move(const struct ew_call *c, struct ew_move *out)
{
    const struct ew_shape *in = &c->in[DATA]->shape;
    struct ew_ints starts, ends, axes, steps = {0};
    EW_TRY(ew_tensor_ints(c->in[STARTS], "starts", &starts));
    EW_TRY(ew_tensor_ints(c->in[ENDS], "ends", &ends));
    EW_TRY(ew_axes_read(ew_call_in(c, AXES), in->rank, starts.n, &axes));
    if (ew_call_in(c, STEPS))
        EW_TRY(ew_tensor_ints(ew_call_in(c, STEPS), "steps", &steps));
    EW_CHECK(ends.n == starts.n && axes.n == starts.n && (!steps.n || steps.n == starts.n),
             EW_ERR_SHAPE, "%d starts, %d ends, %d axes and %d steps", starts.n, ends.n, axes.n,
             steps.n);
    struct ew_move m = ew_move_box(in, in, in);
    for (int i = 0; i < axes.n; i++) {
        const int64_t k = axes.v[i];
        int64_t start = starts.v[i], step = steps.n ? steps.v[i] : 1;
        EW_CHECK(step != 0, EW_ERR_ARG, "step %d is 0", i);
        cut(in->dim[k], &start, ends.v[i], &step, &m.box.dim[k]);
        m.src_at += m.box.dim[k] ? start * m.src[k] : 0;
        m.src[k] *= m.box.dim[k] > 1 ? step : 1;
    }
    ew_shape_strides(&m.box, &m.box, m.dst);
    *out = m;
    return EW_OK;
}

static ew_err infer(const struct ew_call *c)
{
    struct ew_move m;
    EW_TRY(ew_slice_move(c, &m));
    c->out[0]->shape = m.box;
    return EW_OK;
}

static ew_err forward(const struct ew_call *c)
{
    struct ew_move m;
    EW_TRY(ew_slice_move(c, &m));
    ew_move_copy(&m, c->in[DATA], c->out[0]);
    return EW_OK;
}

static ew_err backward(const struct ew_call *c)
{
    struct ew_move m;
    if (!c->din[DATA] || !c->dout[0])
        return EW_OK;
    EW_TRY(ew_slice_move(c, &m));
    ew_move_back(&m, c->din[DATA], c->dout[0]);
    return EW_OK;
}

static ew_err permute(struct ew_graph *g, int node, const int *perm, int *out_perm)
{
    const struct ew_node *n = &g->nodes[node];
    const int count = (int)ew_tensor_count(&g->values[n->in[STARTS]].t);
    return ew_axes_input_permute(g, node, AXES, count, perm);
}

/* Legacy Crop: images [N, C, H, W] without a border (left, top, right, bottom), or `scale` (height,
 * width) from the left and top border on. */
static ew_err import_crop(struct ew_graph *g, const struct ew_onnx_node *n, int *out)
{
    const struct ew_onnx_attr *border = ew_onnx_attr(n, "border"),
                              *scale = ew_onnx_attr(n, "scale");
    EW_CHECK(n->n_in == 1 && n->in[0] >= 0, EW_ERR_FORMAT, "needs one input");
    EW_CHECK(border && border->type == EW_ONNX_INTS && border->n == 4, EW_ERR_FORMAT,
             "border has not four entries");
    EW_CHECK(!scale || (scale->type == EW_ONNX_INTS && scale->n == 2), EW_ERR_FORMAT,
             "scale has not two entries");
    const struct ew_shape *x = &g->values[n->in[0]].t.shape;
    EW_CHECK(x->rank == 4, EW_ERR_SHAPE, "the input has %d dimensions, must be 4", x->rank);
    int64_t from[2], to[2];
    for (int i = 0; i < 2; i++) {
        const int64_t size = x->dim[2 + i], first = border->ints[1 - i];
        const int64_t room = size - first - border->ints[3 - i];
        from[i] = first;
        to[i] = first + (scale ? scale->ints[i] : room);
        EW_CHECK(first >= 0 && first <= to[i] && to[i] <= size, EW_ERR_SHAPE,
                 "from %lld to %lld of %lld", (long long)first, (long long)to[i], (long long)size);
    }
    int in[4] = {n->in[0]};
    EW_TRY(ew_graph_const_ints(g, NULL, from, 2, &in[STARTS]));
    EW_TRY(ew_graph_const_ints(g, NULL, to, 2, &in[ENDS]));
    EW_TRY(ew_graph_const_ints(g, NULL, (const int64_t[]){2, 3}, 2, &in[AXES]));
    return ew_graph_add(g, &ew_op_slice, n->name, NULL, ew_inputs(in, 4), out);
}

/* Before opset 10 all but the data are attributes. */
static ew_err import(struct ew_graph *g, const struct ew_onnx_node *n, int *out)
{
    if (strcmp(n->type, "Crop") == 0)
        return import_crop(g, n, out);
    static const char *const names[INPUTS] = {NULL, "starts", "ends", "axes", "steps"};
    int in[INPUTS] = {n->in[DATA]};
    int n_in = 1;
    for (int i = STARTS; i < INPUTS; i++) {
        EW_TRY(ew_onnx_input_or_attr(g, n, i, names[i], &in[i]));
        n_in = in[i] >= 0 ? i + 1 : n_in;
    }
    EW_CHECK(n_in >= 3, EW_ERR_FORMAT, "needs starts and ends");
    const struct ew_onnx_node own = ew_onnx_with_inputs(n, in, n_in);
    return ew_onnx_import_default(g, &ew_op_slice, &own, "", out);
}

#define INTS(count, text)                                                                          \
    {                                                                                              \
        count, EW_S64, EW_FILL_VALUES, .values = text, .constant = true                            \
    }

static const struct ew_op_case cases[] = {
    {.name = "leading axes",
     .in = {{"5x4x3"}, INTS("2", "1,0"), INTS("2", "4,2")},
     .n_in = 3,
     .out_shape = "3x2x3"},
    {.name = "steps",
     .in = {{"9x4"}, INTS("1", "1"), INTS("1", "1000"), INTS("1", "0"), INTS("1", "3")},
     .n_in = 5,
     .out_shape = "3x4"},
    {.name = "backwards",
     .in =
         {{"4x5"}, INTS("2", "-1,-2"), INTS("2", "-1000,0"), INTS("2", "0,-1"), INTS("2", "-2,-1")},
     .n_in = 5,
     .out_shape = "2x3"},
    {.name = "negative ends",
     .in = {{"2x6"}, INTS("1", "-4"), INTS("1", "-1"), INTS("1", "1")},
     .n_in = 4,
     .out_shape = "2x3"},
    {.name = "nothing",
     .in = {{"3x4"}, INTS("1", "5"), INTS("1", "9"), INTS("1", "1")},
     .n_in = 4,
     .out_shape = "3x0"},
    {.name = "bytes",
     .in = {{"6", EW_U8}, INTS("1", "2"), INTS("1", "4")},
     .n_in = 3,
     .out_shape = "2"},
};

static const char *const also[] = {"Crop", NULL};

const struct ew_op ew_op_slice = {
    .name = "slice",
    .help = "from start to end by a step along each axis",
    .min_in = 3,
    .max_in = INPUTS,
    .known_in = 1 << STARTS | 1 << ENDS | 1 << AXES | 1 << STEPS,
    .infer = infer,
    .cost = ew_move_cost,
    .forward = forward,
    .backward = backward,
    .permute = permute,
    .onnx = {.type = "Slice", .also = also, .import = import},
    EW_OP_CASES(cases),
};
