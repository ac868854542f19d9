/* SPDX-License-Identifier: Apache-2.0 */
/* AffineGrid: sampling positions for grid_sample from an affine map. */
#include "op/types.h"

struct ew_affine_grid_attr {
    bool align_corners;
};

/* clang-format off */
static const struct ew_field attrs[] = {
    {.name = "align_corners", .type = EW_FIELD_BOOL,
     .offset = offsetof(struct ew_affine_grid_attr, align_corners),
     .help = "-1 and 1 are the centres of the corner pixels, instead of their outer edges"},
    EW_FIELD_END};
/* clang-format on */

/* in[1] is the shape of grid_sample's output in ONNX's order [N, C, d...]. */
static ew_err read_size(const struct ew_call *c, struct ew_ints *size)
{
    const struct ew_shape *theta = &c->in[0]->shape;
    EW_TRY(ew_tensor_ints(c->in[1], "size", size));
    const int dims = size->n - 2;
    EW_CHECK(dims == 2 || dims == 3, EW_ERR_SHAPE, "size has %d entries, 4 or 5 are needed",
             (int)size->n);
    EW_CHECK(theta->rank == 3 && theta->dim[0] == size->v[0] && theta->dim[1] == dims &&
                 theta->dim[2] == dims + 1,
             EW_ERR_SHAPE, "theta must be %lldx%dx%d", (long long)size->v[0], dims, dims + 1);
    for (int i = 0; i < size->n; i++)
        EW_CHECK(size->v[i] >= 0 && size->v[i] <= (int64_t)1 << 40, EW_ERR_SHAPE,
                 "size has an entry of %lld", (long long)size->v[i]);
    return EW_OK;
}

static ew_err infer(const struct ew_call *c)
{
    struct ew_ints size;
    EW_TRY(ew_types_check(c, 0, EW_TYPES_FLOAT));
    EW_TRY(read_size(c, &size));
    struct ew_shape *y = &c->out[0]->shape;
    y->rank = size.n;
    y->dim[0] = size.v[0];
    for (int i = 2; i < size.n; i++)
        y->dim[i - 1] = size.v[i];
    y->dim[size.n - 1] = size.n - 2;
    return EW_OK;
}

static void cost(const struct ew_call *c, struct ew_cost *out)
{
    out->flops += 2 * c->in[0]->shape.dim[1] * ew_tensor_count(c->out[0]);
}

/* Position i of n between -1 and 1. */
static double base(bool align_corners, int64_t i, int64_t n)
{
    if (align_corners)
        return n > 1 ? -1 + 2 * (double)i / (double)(n - 1) : 0;
    return -1 + (2 * (double)i + 1) / (double)n;
}

static ew_err forward(const struct ew_call *c)
{
    const struct ew_affine_grid_attr *a = c->attr;
    const struct ew_shape *y = &c->out[0]->shape;
    const int dims = y->rank - 2;
    const int64_t outs = ew_shape_span(y, 1, y->rank - 1);
    for (int64_t p = 0; p < y->dim[0] * outs; p++) {
        double at[4] = {0}, map[12], to[3];
        int64_t rest = p % outs;
        for (int d = 0; d < dims; d++) { /* the last dimension is the first coordinate */
            const int64_t n = y->dim[dims - d];
            at[d] = base(a->align_corners, rest % n, n);
            rest /= n;
        }
        at[dims] = 1;
        ew_tensor_load(c->in[0], p / outs * dims * (dims + 1), dims * (dims + 1), map);
        for (int i = 0; i < dims; i++) {
            to[i] = 0;
            for (int k = 0; k <= dims; k++)
                to[i] += map[i * (dims + 1) + k] * at[k];
        }
        ew_tensor_store(c->out[0], p * dims, dims, to);
    }
    return EW_OK;
}

/* clang-format off */
#define SIZE(n, text) {n, EW_S64, EW_FILL_VALUES, .values = text, .constant = true}
static const struct ew_op_case cases[] = {
    {.name = "2-D", .in = {{"2x2x3"}, SIZE("4", "2,3,4,5")}, .n_in = 2, .out_shape = "2x4x5x2"},
    {.name = "3-D, corners", .attrs = "align_corners=true",
     .in = {{"1x3x4"}, SIZE("5", "1,2,2,3,1")}, .n_in = 2, .out_shape = "1x2x3x1x3"},
};
/* clang-format on */

const struct ew_op ew_op_affine_grid = {
    .name = "affine_grid",
    .help = "the positions that an affine map gives for grid_sample",
    .min_in = 2,
    .max_in = 2,
    .known_in = 1 << 1,
    .attr_size = sizeof(struct ew_affine_grid_attr),
    .attrs = attrs,
    .infer = infer,
    .cost = cost,
    .forward = forward,
    .onnx = {.type = "AffineGrid", .since = 20},
    EW_OP_CASES(cases),
};
