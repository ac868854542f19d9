/* SPDX-License-Identifier: Apache-2.0 */
/* InstanceNormalization: normalises each channel of each image to mean 0 and variance 1, then scale
 * and bias. */
#include "op/norm.h"
#include "op/types.h"

/* clang-format off */
static const struct ew_field attrs[] = {
    {.name = "eps", .type = EW_FIELD_FLOAT, .offset = offsetof(struct ew_group_norm_attr, eps),
     .def = "1e-5", .help = "added to the variance"},
    EW_FIELD_END};
/* clang-format on */

static struct ew_norm_sets sets(const struct ew_call *c)
{
    const struct ew_group_norm_attr *a = c->attr;
    const struct ew_shape *x = &c->in[0]->shape;
    return (struct ew_norm_sets){.outer = x->dim[0],
                                 .rows = ew_shape_span(x, 1, x->rank - 1),
                                 .inner = x->dim[x->rank - 1],
                                 .run = 1,
                                 .eps = a->eps};
}

static ew_err infer(const struct ew_call *c)
{
    const struct ew_shape *x = &c->in[0]->shape;
    for (int i = 0; i < c->n_in; i++)
        EW_TRY(ew_types_check(c, i, EW_TYPES_FLOAT));
    EW_CHECK(x->rank >= 3, EW_ERR_SHAPE, "the input has %d dimensions, 3 or more are needed",
             x->rank);
    for (int i = 1; i <= 2; i++)
        EW_CHECK(c->in[i]->shape.rank == 1 && c->in[i]->shape.dim[0] == x->dim[x->rank - 1],
                 EW_ERR_SHAPE, "%s does not have one entry for each of %lld channels",
                 i == 1 ? "scale" : "bias", (long long)x->dim[x->rank - 1]);
    c->out[0]->shape = *x;
    return EW_OK;
}

EW_NORM_HOOKS(sets)

static const char *const renames[] = {"eps", "epsilon", NULL};

/* clang-format off */
static const struct ew_op_case cases[] = {
    {.name = "2-D", .in = {{"2x3x4x3"}, {"3"}, {"3"}}, .n_in = 3, .out_shape = "2x3x4x3"},
    {.name = "many rows", .in = {{"1x18x17x3"}, {"3"}, {"3"}}, .n_in = 3,
     .out_shape = "1x18x17x3"},
    {.name = "1-D", .attrs = "eps=1e-2", .in = {{"3x5x2"}, {"2"}, {"2"}}, .n_in = 3,
     .out_shape = "3x5x2"},
    {.name = "3-D", .in = {{"1x2x3x2x2"}, {"2"}, {"2"}}, .n_in = 3, .out_shape = "1x2x3x2x2"},
};
/* clang-format on */

const struct ew_op ew_op_instance_norm = {
    .name = "instance_norm",
    .help = "each channel of each image to mean 0 and variance 1, then scale and bias",
    EW_GROUP_NORM_OP,
    .onnx = {.type = "InstanceNormalization", .since = 6, .rename = renames},
};
