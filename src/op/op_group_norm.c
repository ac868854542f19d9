/* SPDX-License-Identifier: Apache-2.0 */
/* GroupNormalization: normalises groups of channels of each image to mean 0 and variance 1, then
 * scale and bias, which have an entry per channel (opset 21) or per group (opset 18). */
#include "graph/onnx.h"
#include "op/norm.h"
#include "op/types.h"

/* clang-format off */
static const struct ew_field attrs[] = {
    {.name = "groups", .type = EW_FIELD_INT, .offset = offsetof(struct ew_group_norm_attr, groups),
     .def = "1", .min = 1, .max = INT32_MAX, .help = "the channels fall into so many parts"},
    {.name = "eps", .type = EW_FIELD_FLOAT, .offset = offsetof(struct ew_group_norm_attr, eps),
     .def = "1e-5", .help = "added to the variance"},
    {.name = "stash_type", .type = EW_FIELD_INT,
     .offset = offsetof(struct ew_group_norm_attr, stash_type), .def = "1",
     .help = "ONNX's type of the statistics"},
    EW_FIELD_END};
/* clang-format on */

static struct ew_norm_sets sets(const struct ew_call *c)
{
    const struct ew_group_norm_attr *a = c->attr;
    const struct ew_shape *x = &c->in[0]->shape;
    const int64_t channels = x->dim[x->rank - 1];
    return (struct ew_norm_sets){.outer = x->dim[0],
                                 .rows = ew_shape_span(x, 1, x->rank - 1),
                                 .inner = a->groups,
                                 .run = channels / a->groups,
                                 .per_set = c->in[1]->shape.dim[0] != channels,
                                 .eps = a->eps};
}

static ew_err infer(const struct ew_call *c)
{
    const struct ew_group_norm_attr *a = c->attr;
    const struct ew_shape *x = &c->in[0]->shape;
    for (int i = 0; i < c->n_in; i++)
        EW_TRY(ew_types_check(c, i, EW_TYPES_FLOAT));
    EW_CHECK(x->rank >= 3, EW_ERR_SHAPE, "the input has %d dimensions, 3 or more are needed",
             x->rank);
    const int64_t channels = x->dim[x->rank - 1];
    EW_CHECK(a->groups >= 1 && channels > 0 && channels % a->groups == 0, EW_ERR_SHAPE,
             "%lld groups do not divide %lld channels", (long long)a->groups, (long long)channels);
    const struct ew_shape *scale = &c->in[1]->shape, *bias = &c->in[2]->shape;
    EW_CHECK(scale->rank == 1 && (scale->dim[0] == channels || scale->dim[0] == a->groups),
             EW_ERR_SHAPE, "scale has neither %lld entries (channels) nor %lld (groups)",
             (long long)channels, (long long)a->groups);
    EW_CHECK(ew_shape_equal(scale, bias), EW_ERR_SHAPE, "scale and bias differ in length");
    c->out[0]->shape = *x;
    return EW_OK;
}

EW_NORM_HOOKS(sets)

static const char *const renames[] = {"groups", "num_groups", "eps", "epsilon", NULL};

/* Opset 18 has a scale per group, 21 one per channel and stash_type. */
static ew_err export_node(const struct ew_graph *g, int node, struct ew_onnx_node *n)
{
    const struct ew_node *from = &g->nodes[node];
    const struct ew_group_norm_attr *a = from->attr;
    const bool per_group = g->values[from->in[1]].t.shape.dim[0] == a->groups;
    if (!per_group && n->opset < 21)
        n->opset = 21;
    EW_CHECK(!per_group || n->opset < 21, EW_ERR_UNSUPPORTED, "opset %d has no scale per group",
             n->opset);
    if (n->opset < 21)
        ew_onnx_drop(n, "stash_type");
    return EW_OK;
}

/* clang-format off */
static const struct ew_op_case cases[] = {
    {.name = "per channel", .attrs = "groups=2", .in = {{"2x3x4x6"}, {"6"}, {"6"}}, .n_in = 3,
     .out_shape = "2x3x4x6"},
    {.name = "per group", .attrs = "groups=3", .in = {{"2x3x2x6"}, {"3"}, {"3"}}, .n_in = 3,
     .out_shape = "2x3x2x6"},
    {.name = "many rows", .attrs = "groups=3", .in = {{"2x20x15x6"}, {"6"}, {"6"}}, .n_in = 3,
     .out_shape = "2x20x15x6"},
    {.name = "many channels", .attrs = "groups=2", .in = {{"2x2x3x70"}, {"70"}, {"70"}}, .n_in = 3,
     .out_shape = "2x2x3x70"},
    {.name = "one group", .attrs = "eps=1e-2", .in = {{"3x5x4"}, {"4"}, {"4"}}, .n_in = 3,
     .out_shape = "3x5x4"},
    {.name = "a group per channel", .attrs = "groups=4", .in = {{"1x5x2x4"}, {"4"}, {"4"}},
     .n_in = 3, .out_shape = "1x5x2x4"},
};
/* clang-format on */

const struct ew_op ew_op_group_norm = {
    .name = "group_norm",
    .help = "groups of channels of each image to mean 0 and variance 1, then scale and bias",
    EW_GROUP_NORM_OP,
    .onnx = {.type = "GroupNormalization", .since = 18, .rename = renames, .export = export_node},
};
