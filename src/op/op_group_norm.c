/* SPDX-License-Identifier: Apache-2.0 */
/* GroupNormalization: normalises groups of channels of each image to mean 0 and variance 1, then
 * scale and bias, which have an entry per channel (opset 21) or per group (opset 18). */
#include "graph/onnx.h"
#include "graph/ops.h"
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

/* n equal numbers of a type. */
static ew_err equal_numbers(struct ew_graph *g, enum ew_dtype type, int64_t n, double v, int *out)
{
    struct ew_tensor t = {.dtype = type, .shape = {1, {n}}};
    t.data = ew_arena_alloc(&g->arena, ew_tensor_bytes(&t));
    EW_CHECK(t.data, EW_ERR_MEMORY, "no memory for a group norm");
    for (int64_t i = 0; i < n; i++)
        ew_tensor_store(&t, i, 1, &v);
    return ew_graph_const(g, NULL, EW_VALUE_CONST, &t, false, out);
}

/* Scale or bias [C] as [C, 1, ...], for images of this rank in ONNX's layout. */
static ew_err widen(struct ew_graph *g, int value, int rank, int *out)
{
    const struct ew_value v = g->values[value];
    struct ew_tensor t = v.t;
    int in[2] = {value};
    t.shape.rank = rank - 1;
    for (int i = 1; i < t.shape.rank; i++)
        t.shape.dim[i] = 1;
    if (ew_value_is_weight(&v) && t.data) {
        EW_TRY(ew_graph_const(g, NULL, v.kind, &t, false, out));
        return ew_graph_claim_name(g, *out, v.name);
    }
    EW_TRY(ew_graph_const_ints(g, NULL, t.shape.dim, t.shape.rank, &in[1]));
    return ew_graph_add(g, &ew_op_reshape, NULL, NULL, ew_inputs(in, 2), out);
}

static ew_err add_instance_norm(struct ew_graph *g, double eps, const char *name, int *in, int *out)
{
    struct ew_group_norm_attr a = {.eps = eps};
    const struct ew_node n = {.op = &ew_op_instance_norm,
                              .name = name,
                              .attr = &a,
                              .n_in = 3,
                              .n_out = 1,
                              .in = in,
                              .channels_first = true};
    return ew_graph_add_node(g, &n, out);
}

/* Reshape-InstanceNormalization-Reshape, as PyTorch writes it, and a scale and a bias per channel:
 * every opset has these, and other runtimes compute them without the cancellation of
 * GroupNormalization's mean of squares. */
static ew_err expand(struct ew_graph *g, int node, int *out)
{
    const struct ew_node n = g->nodes[node];
    const struct ew_group_norm_attr *a = n.attr;
    const struct ew_shape s = g->values[n.in[0]].t.shape;
    const enum ew_dtype type = g->values[n.in[1]].t.dtype;
    const bool per_group = g->values[n.in[1]].t.shape.dim[0] == a->groups;
    if (s.rank >= 3 && s.dim[1] == a->groups)
        return add_instance_norm(g, a->eps, n.name, n.in, out);
    struct ew_shape whole = s;
    whole.dim[0] = 0;
    const int64_t apart[3] = {0, a->groups, ew_shape_span(&s, 1, s.rank) / a->groups};
    int in[3] = {n.in[0], n.in[1], n.in[2]}, shape[2];
    EW_TRY(ew_graph_const_ints(g, NULL, apart, 3, &shape[0]));
    EW_TRY(ew_graph_const_ints(g, NULL, whole.dim, whole.rank, &shape[1]));
    if (!per_group) {
        EW_TRY(equal_numbers(g, type, a->groups, 1, &in[1]));
        EW_TRY(equal_numbers(g, type, a->groups, 0, &in[2]));
    }
    EW_TRY(ew_graph_add(g, &ew_op_reshape, NULL, NULL, EW_INPUTS(in[0], shape[0]), &in[0]));
    EW_TRY(add_instance_norm(g, a->eps, per_group ? NULL : n.name, in, &in[0]));
    EW_TRY(ew_graph_add(g, &ew_op_reshape, per_group ? n.name : NULL, NULL,
                        EW_INPUTS(in[0], shape[1]), out));
    if (per_group)
        return EW_OK;
    EW_TRY(widen(g, n.in[1], s.rank, &in[1]));
    EW_TRY(widen(g, n.in[2], s.rank, &in[2]));
    EW_TRY(ew_graph_add(g, &ew_op_mul, NULL, NULL, EW_INPUTS(*out, in[1]), out));
    return ew_graph_add(g, &ew_op_add, NULL, NULL, EW_INPUTS(*out, in[2]), out);
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
    .onnx = {.type = "GroupNormalization", .since = 18, .rename = renames, .expand = expand},
};
