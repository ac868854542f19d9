/* SPDX-License-Identifier: Apache-2.0 */
/* Channel shuffle (ShuffleNet): interleaves the channels of `groups` groups.  ONNX has no such
 * operator: it is exported as Reshape-Transpose-Reshape, which graph/shuffle.c recognises on
 * import. */
#include "graph/layout.h"
#include "graph/ops.h"
#include "graph/shuffle.h"
#include "op/move.h"

static const struct ew_field attrs[] = {
    {.name = "groups",
     .type = EW_FIELD_INT,
     .offset = offsetof(struct ew_channel_shuffle_attr, groups),
     .def = "1",
     .min = 1,
     .max = 1 << 30,
     .help = "parts of the channels that are dealt out in turn"},
    EW_FIELD_END};

static ew_err infer(const struct ew_call *c)
{
    const struct ew_channel_shuffle_attr *a = c->attr;
    const struct ew_shape *s = &c->in[0]->shape;
    EW_CHECK(s->rank >= 2, EW_ERR_SHAPE, "the input has %d dimensions, needs channels", s->rank);
    const int64_t channels = s->dim[s->rank - 1];
    EW_CHECK(a->groups >= 1 && channels % a->groups == 0, EW_ERR_SHAPE,
             "%lld channels do not divide into %lld groups", (long long)channels,
             (long long)a->groups);
    c->out[0]->shape = *s;
    return EW_OK;
}

/* [pixels, groups, k] to [pixels, k, groups], the box being the destination's. */
static struct ew_move deal(const struct ew_call *c)
{
    const struct ew_channel_shuffle_attr *a = c->attr;
    const struct ew_shape *s = &c->in[0]->shape;
    const int64_t channels = s->dim[s->rank - 1], k = channels / a->groups;
    return (struct ew_move){.box = {3, {ew_shape_span(s, 0, s->rank - 1), k, a->groups}},
                            .src = {channels, 1, k},
                            .dst = {channels, a->groups, 1}};
}

static ew_err forward(const struct ew_call *c)
{
    const struct ew_move m = deal(c);
    ew_move_copy(&m, c->in[0], c->out[0]);
    return EW_OK;
}

static ew_err backward(const struct ew_call *c)
{
    if (!c->din[0] || !c->dout[0])
        return EW_OK;
    const struct ew_move m = deal(c);
    ew_move_back(&m, c->din[0], c->dout[0]);
    return EW_OK;
}

/* Reshape-Transpose-Reshape in the node's layout; 0 keeps the batch dynamic. */
static ew_err expand(struct ew_graph *g, int node, int *out)
{
    const struct ew_node n = g->nodes[node];
    const struct ew_channel_shuffle_attr *a = n.attr;
    const struct ew_shape s = g->values[n.in[0]].t.shape;
    const int at = n.channels_first ? 1 : s.rank - 1;
    EW_CHECK(s.rank < EW_MAX_RANK, EW_ERR_LIMIT, "%s: has %d dimensions", n.name, s.rank);
    int64_t apart[EW_MAX_RANK], whole[EW_MAX_RANK];
    struct ew_transpose_attr turn = {.perm = {.n = s.rank + 1}};
    for (int i = 0; i <= s.rank; i++) {
        apart[i] = i == 0 ? 0 : i < at ? s.dim[i] : s.dim[i - 1];
        turn.perm.v[i] = i == at ? at + 1 : i == at + 1 ? at : i;
        if (i < s.rank)
            whole[i] = i == 0 ? 0 : s.dim[i];
    }
    apart[at] = a->groups;
    apart[at + 1] = s.dim[at] / a->groups;
    int in[2] = {n.in[0]}, back[2], v;
    EW_TRY(ew_graph_const_ints(g, NULL, apart, s.rank + 1, &in[1]));
    EW_TRY(ew_graph_const_ints(g, NULL, whole, s.rank, &back[1]));
    EW_TRY(ew_graph_add(g, &ew_op_reshape, NULL, NULL, ew_inputs(in, 2), &v));
    EW_TRY(ew_graph_add(g, &ew_op_transpose, NULL, &turn, EW_INPUTS(v), &back[0]));
    return ew_graph_add(g, &ew_op_reshape, n.name, NULL, ew_inputs(back, 2), out);
}

static const struct ew_op_case cases[] = {
    {.name = "two groups",
     .attrs = "groups=2",
     .in = {{"2x3x3x8"}},
     .n_in = 1,
     .out_shape = "2x3x3x8"},
    {.name = "three groups",
     .attrs = "groups=3",
     .in = {{"1x2x6"}},
     .n_in = 1,
     .out_shape = "1x2x6"},
    {.name = "two groups, wide",
     .attrs = "groups=2",
     .in = {{"1x3x42"}},
     .n_in = 1,
     .out_shape = "1x3x42"},
    {.name = "bytes",
     .attrs = "groups=4",
     .in = {{"1x2x2x4", EW_U8}},
     .n_in = 1,
     .out_shape = "1x2x2x4"},
};

const struct ew_op ew_op_channel_shuffle = {
    .name = "channel_shuffle",
    .help = "channels of several groups dealt out in turn",
    .flags = EW_OP_SPATIAL,
    .min_in = 1,
    .max_in = 1,
    .attr_size = sizeof(struct ew_channel_shuffle_attr),
    .attrs = attrs,
    .infer = infer,
    .cost = ew_move_cost,
    .forward = forward,
    .backward = backward,
    .onnx = {.expand = expand},
    EW_OP_CASES(cases),
};
