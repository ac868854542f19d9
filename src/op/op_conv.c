/* SPDX-License-Identifier: Apache-2.0 */
/* Conv: 1-D to 3-D convolution with groups, dilation and padding. */
#include "op/conv.h"

#include "graph/graph.h"
#include "graph/onnx.h"
#include "graph/ops.h"
#include "op/act_node.h"

extern const struct ew_op ew_op_conv;

/* clang-format off */
static const struct ew_field attrs[] = {
    EW_WINDOW_FIELDS(struct ew_conv_attr, win),
    EW_GROUPS_FIELD(struct ew_conv_attr),
    EW_EPILOGUE_FIELDS(struct ew_conv_attr, end),
    EW_FIELD_END};
/* clang-format on */

ew_err ew_conv_resolve(const struct ew_call *c, struct ew_conv_sizes *out)
{
    const struct ew_conv_attr *a = c->attr;
    const struct ew_shape *x = &c->in[0]->shape, *w = &c->in[1]->shape;
    EW_TRY(ew_conv_check(c, w->dim[0]));
    return ew_conv_geometry(&a->win, a->groups, x, w, out);
}

static const struct ew_tensor *added(const struct ew_call *c)
{
    return c->n_in > 3 ? c->in[3] : NULL;
}

static ew_err infer(const struct ew_call *c)
{
    struct ew_conv_sizes s;
    EW_TRY(ew_conv_resolve(c, &s));
    ew_window_shape(&s.w, c->in[0]->shape.rank, s.filters, &c->out[0]->shape);
    EW_CHECK(!added(c) || (added(c)->dtype == c->in[0]->dtype &&
                           ew_shape_equal(&added(c)->shape, &c->out[0]->shape)),
             EW_ERR_SHAPE, "the residual's shape or type differs from the output's");
    return EW_OK;
}

static void cost(const struct ew_call *c, struct ew_cost *out)
{
    struct ew_conv_sizes s;
    if (ew_conv_resolve(c, &s) == EW_OK)
        ew_conv_cost(&s, c, out);
}

static ew_err forward(const struct ew_call *c)
{
    struct ew_conv_sizes s;
    EW_TRY(ew_conv_resolve(c, &s));
    ew_bias_fill(c->n_in > 2 ? c->in[2] : NULL, c->out[0]);
    const struct ew_conv_data d = {.x = c->in[0]->data, .w = c->in[1]->data, .to = c->out[0]->data};
    ew_conv_apply(&s, c->in[0]->dtype, &d);
    ew_epilogue_run(&((const struct ew_conv_attr *)c->attr)->end, added(c), c->out[0]);
    return EW_OK;
}

static bool has_act(const void *attr)
{
    return ((const struct ew_conv_attr *)attr)->end.act != EW_ACT_NONE;
}

static unsigned saves_too(const void *attr)
{
    return has_act(attr) ? EW_SAVE_OUT : 0;
}

/* Scratch of backward: the gradient before the activation. */
static size_t scratch(const struct ew_call *c)
{
    return c->train && has_act(c->attr) ? ew_tensor_bytes(c->out[0]) : 0;
}

static ew_err backward(const struct ew_call *c)
{
    const struct ew_epilogue_attr *end = &((const struct ew_conv_attr *)c->attr)->end;
    struct ew_conv_sizes s;
    EW_TRY(ew_conv_resolve(c, &s));
    EW_TRY(ew_epilogue_check_back(end, added(c)));
    if (!c->dout[0])
        return EW_OK;
    struct ew_tensor dy = *c->dout[0];
    if (has_act(c->attr)) {
        dy.data = c->scratch;
        ew_epilogue_back(end, c->out[0], c->dout[0], &dy);
    }
    struct ew_conv_data d = {.x = c->in[0]->data, .w = c->in[1]->data, .y = dy.data};
    if (c->din[0]) {
        d.to = c->din[0]->data;
        ew_conv_grad_x(&s, c->in[0]->dtype, &d);
    }
    if (c->din[1]) {
        d.to = c->din[1]->data;
        ew_conv_grad_w(&s, c->in[0]->dtype, &d);
    }
    if (c->n_in > 2 && c->din[2])
        ew_bias_grad(&dy, c->din[2]);
    return EW_OK;
}

static const char *const renames[] = {EW_WINDOW_RENAMES, "groups", "group", EW_EPILOGUE_RENAMES,
                                      NULL};

/* ONNX Runtime's FusedConv, act(conv + Z), as separate nodes, which passes fuse again. */
static ew_err import_fused(struct ew_graph *g, const struct ew_onnx_node *n, int *out)
{
    static const char *const ignore[] = {"activation", "activation_params", NULL};
    struct ew_act_params act = {.type = ew_onnx_str(n, "activation", "")};
    const struct ew_onnx_attr *params = ew_onnx_attr(n, "activation_params");
    struct ew_conv_attr attr;
    EW_TRY(ew_onnx_fill(&ew_op_conv, n, ignore, &attr));
    EW_CHECK(!params || (params->type == EW_ONNX_FLOATS && params->n <= (int)EW_COUNT(act.v)),
             EW_ERR_FORMAT, "activation_params are not at most %d floats", (int)EW_COUNT(act.v));
    for (; params && act.n < params->n; act.n++)
        act.v[act.n] = params->floats[act.n];
    EW_CHECK(n->n_out == 1 && n->n_in <= 4, EW_ERR_FORMAT, "has %d inputs and %d outputs", n->n_in,
             n->n_out);
    const struct ew_onnx_node own = ew_onnx_with_inputs(n, n->in, n->n_in > 3 ? 3 : n->n_in);
    EW_TRY(ew_onnx_import_default(g, &ew_op_conv, &own, &attr, out));
    const int sum[2] = {out[0], n->n_in > 3 ? n->in[3] : -1};
    if (sum[1] >= 0)
        EW_TRY(ew_graph_add(g, &ew_op_add, NULL, NULL, ew_inputs(sum, 2), out));
    return *act.type ? ew_act_add_node(g, &act, out[0], out) : EW_OK;
}

static ew_err import(struct ew_graph *g, const struct ew_onnx_node *n, int *out)
{
    if (*n->domain)
        return import_fused(g, n, out);
    EW_CHECK(n->n_in <= 3, EW_ERR_FORMAT, "has %d inputs, at most 3", n->n_in);
    return ew_onnx_import_default(g, &ew_op_conv, n, NULL, out);
}

static const char *const also[] = {"com.microsoft:FusedConv", NULL};

/* A fused node has no ONNX form. */
static ew_err export(const struct ew_graph *g, int node, struct ew_onnx_node *n)
{
    const struct ew_conv_attr *a = g->nodes[node].attr;
    EW_CHECK(a->end.act == EW_ACT_NONE && g->nodes[node].n_in < 4, EW_ERR_UNSUPPORTED,
             "node %s: fused with what follows it", g->nodes[node].name);
    return EW_OK;
}

/* clang-format off */
static const struct ew_op_case cases[] = {
    {.name = "3x3", .attrs = "pad=1x1x1x1",
     .in = {{"1x6x5x3"}, {"5x3x3x3"}, {"5"}}, .n_in = 3, .out_shape = "1x6x5x5"},
    {.name = "5x5", .attrs = "pad=1x0x1x0",
     .in = {{"3x10x14x6"}, {"16x5x5x6"}, {"16"}}, .n_in = 3, .out_shape = "3x8x10x16"},
    {.name = "pointwise", .in = {{"3x3x4x9"}, {"6x1x1x9"}}, .n_in = 2, .out_shape = "3x3x4x6"},
    {.name = "stride 2, odd padding", .attrs = "stride=2x2 pad=0x1x2x1 kernel=3x3",
     .in = {{"2x7x6x2"}, {"4x3x3x2"}, {"4"}}, .n_in = 3, .out_shape = "2x4x3x4"},
    {.name = "padding that makes up for a short input", .attrs = "stride=2x2 pad=2x0x3x0",
     .in = {{"1x2x3x2"}, {"24x7x1x2"}}, .n_in = 2, .out_shape = "1x1x2x24"},
    {.name = "stride beyond the kernel", .attrs = "stride=3x2",
     .in = {{"1x8x7x2"}, {"3x1x1x2"}}, .n_in = 2, .out_shape = "1x3x4x3"},
    {.name = "groups", .attrs = "groups=2 pad=1x1x1x1",
     .in = {{"1x4x4x6"}, {"10x3x3x3"}, {"10"}}, .n_in = 3, .out_shape = "1x4x4x10"},
    {.name = "depthwise", .attrs = "groups=5 pad=1x1x1x1 stride=2x1",
     .in = {{"2x5x4x5"}, {"5x3x3x1"}}, .n_in = 2, .out_shape = "2x3x4x5"},
    {.name = "depth multiplier", .attrs = "groups=3",
     .in = {{"1x4x4x3"}, {"6x2x2x1"}}, .n_in = 2, .out_shape = "1x3x3x6"},
    {.name = "dilation", .attrs = "dilation=2x3 pad=2x3x2x3",
     .in = {{"1x6x7x2"}, {"3x3x3x2"}}, .n_in = 2, .out_shape = "1x6x7x3"},
    {.name = "same upper", .attrs = "auto_pad=SAME_UPPER stride=2x2",
     .in = {{"1x5x6x2"}, {"3x3x2x2"}}, .n_in = 2, .out_shape = "1x3x3x3"},
    {.name = "same lower", .attrs = "auto_pad=SAME_LOWER",
     .in = {{"1x4x5x2"}, {"2x2x4x2"}}, .n_in = 2, .out_shape = "1x4x5x2"},
    {.name = "valid", .attrs = "auto_pad=VALID pad=9x9x9x9",
     .in = {{"1x4x5x1"}, {"2x2x2x1"}}, .n_in = 2, .out_shape = "1x3x4x2"},
    {.name = "1-D", .attrs = "stride=2 pad=1x0 dilation=2",
     .in = {{"3x9x4"}, {"5x3x4"}, {"5"}}, .n_in = 3, .out_shape = "3x3x5"},
    {.name = "3-D", .attrs = "stride=1x2x1 pad=1x0x1x0x1x1",
     .in = {{"2x3x4x5x2"}, {"3x2x2x3x2"}}, .n_in = 2, .out_shape = "2x3x2x5x3"},
    {.name = "wide", .in = {{"1x3x3x19"}, {"7x2x2x19"}, {"7"}}, .n_in = 3,
     .out_shape = "1x2x2x7"},
    {.name = "fused relu", .attrs = "pad=1x1x1x1 act=relu",
     .in = {{"1x4x4x3"}, {"5x3x3x3"}, {"5"}}, .n_in = 3, .out_shape = "1x4x4x5", .train = true},
    {.name = "fused add and clip", .attrs = "act=clip act_lo=-1 act_hi=2",
     .in = {{"1x4x4x3", .no_grad = true}, {"5x1x1x3", .no_grad = true}, {NULL},
            {"1x4x4x5", .no_grad = true}},
     .n_in = 4, .out_shape = "1x4x4x5"},
    {.name = "fused hard swish, then add", .attrs = "act=hard_swish add_after=true",
     .in = {{"1x4x4x3", .no_grad = true}, {"5x1x1x3", .no_grad = true}, {NULL},
            {"1x4x4x5", .no_grad = true}},
     .n_in = 4, .out_shape = "1x4x4x5"},
};
/* clang-format on */

static bool makes_relu(const void *attr)
{
    return ((const struct ew_conv_attr *)attr)->end.act == EW_ACT_RELU;
}

const struct ew_op ew_op_conv = {
    .name = "conv",
    .help = "convolution over 1 to 3 dimensions",
    .flags = EW_OP_SPATIAL,
    .saves = EW_SAVE_IN0 | EW_SAVE_IN1,
    .layer = EW_LAYER_CONV,
    .min_in = 2,
    .max_in = 4,
    .param_in = 1 << 1 | 1 << 2,
    .spatial_in = 1 << 3,
    .filter_in = 1 << 1,
    .attr_size = sizeof(struct ew_conv_attr),
    .attrs = attrs,
    .infer = infer,
    .cost = cost,
    .scratch = scratch,
    .forward = forward,
    .backward = backward,
    .saves_too = saves_too,
    .makes_relu = makes_relu,
    .onnx = {.type = "Conv", .rename = renames, .also = also, .import = import, .export = export},
    EW_OP_CASES(cases),
};
