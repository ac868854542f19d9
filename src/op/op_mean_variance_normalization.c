/* SPDX-License-Identifier: Apache-2.0 */
/* MeanVarianceNormalization: (x - mean) / (std + 1e-9) over a set of axes.  No gradient: networks
 * use it on their input. */
#include <math.h>
#include <string.h>

#include "graph/graph.h"
#include "op/norm.h"
#include "op/types.h"

#define EPSILON 1e-9 /* of ONNX's definition */

struct ew_mvn_attr {
    struct ew_ints axes;
};

/* clang-format off */
static const struct ew_field attrs[] = {
    {.name = "axes", .type = EW_FIELD_INTS, .offset = offsetof(struct ew_mvn_attr, axes),
     .def = "0,2,3", .help = "axes over which mean and deviation are taken"},
    EW_FIELD_END};
/* clang-format on */

static ew_err infer(const struct ew_call *c)
{
    const struct ew_mvn_attr *a = c->attr;
    unsigned axes;
    EW_TRY(ew_types_check(c, 0, EW_TYPES_FLOAT));
    c->out[0]->shape = c->in[0]->shape;
    return ew_norm_axes(&a->axes, c->in[0]->shape.rank, &axes);
}

static void cost(const struct ew_call *c, struct ew_cost *out)
{
    out->flops += 6 * ew_tensor_count(c->in[0]);
}

/* Strides by which position in x leads to its set: 0 along the axes. */
static ew_err set_strides(const struct ew_call *c, int64_t *stride, int64_t *sets)
{
    const struct ew_mvn_attr *a = c->attr;
    const struct ew_shape *x = &c->in[0]->shape;
    unsigned axes;
    EW_TRY(ew_norm_axes(&a->axes, x->rank, &axes));
    *sets = 1;
    for (int d = x->rank - 1; d >= 0; d--) {
        stride[d] = axes >> d & 1 ? 0 : *sets;
        *sets *= axes >> d & 1 ? 1 : x->dim[d];
    }
    return EW_OK;
}

/* Mean and variance of each set. */
static size_t scratch(const struct ew_call *c)
{
    int64_t stride[EW_MAX_RANK], sets;
    return set_strides(c, stride, &sets) == EW_OK ? 2 * (size_t)sets * sizeof(double) : 0;
}

static int64_t set_of(const struct ew_shape *x, const int64_t *stride, int64_t i)
{
    int64_t set = 0;
    for (int d = x->rank - 1; d >= 0; d--) {
        set += i % x->dim[d] * stride[d];
        i /= x->dim[d];
    }
    return set;
}

static ew_err forward(const struct ew_call *c)
{
    const struct ew_shape *x = &c->in[0]->shape;
    const int64_t count = ew_tensor_count(c->in[0]);
    int64_t stride[EW_MAX_RANK], sets;
    EW_TRY(set_strides(c, stride, &sets));
    double *mean = c->scratch, *square = mean + sets;
    memset(mean, 0, 2 * (size_t)sets * sizeof(*mean));
    const double share = count ? (double)sets / (double)count : 0;
    for (int64_t i = 0; i < count; i++)
        mean[set_of(x, stride, i)] += ew_tensor_get(c->in[0], i) * share;
    for (int64_t i = 0; i < count; i++) {
        const int64_t s = set_of(x, stride, i);
        const double d = ew_tensor_get(c->in[0], i) - mean[s];
        square[s] += d * d * share;
    }
    for (int64_t i = 0; i < count; i++) {
        const int64_t s = set_of(x, stride, i);
        const double y = (ew_tensor_get(c->in[0], i) - mean[s]) / (sqrt(square[s]) + EPSILON);
        ew_tensor_store(c->out[0], i, 1, &y);
    }
    return EW_OK;
}

static ew_err permute(struct ew_graph *g, int node, const int *perm, int *out_perm)
{
    struct ew_mvn_attr *a = g->nodes[node].attr;
    const int rank = g->values[g->nodes[node].in[0]].t.shape.rank;
    unsigned axes;
    EW_TRY(ew_norm_axes(&a->axes, rank, &axes));
    a->axes.n = 0;
    for (int i = 0; i < rank; i++)
        if (axes >> perm[i] & 1)
            a->axes.v[a->axes.n++] = i;
    return EW_OK;
}

/* clang-format off */
static const struct ew_op_case cases[] = {
    {.name = "default", .in = {{"2x3x4x5"}}, .n_in = 1, .out_shape = "2x3x4x5"},
    {.name = "one axis", .attrs = "axes=-1", .in = {{"3x7"}}, .n_in = 1, .out_shape = "3x7"},
};
/* clang-format on */

const struct ew_op ew_op_mean_variance_normalization = {
    .name = "mean_variance_normalization",
    .help = "(x - mean) / standard deviation over a set of axes",
    .min_in = 1,
    .max_in = 1,
    .attr_size = sizeof(struct ew_mvn_attr),
    .attrs = attrs,
    .infer = infer,
    .cost = cost,
    .scratch = scratch,
    .forward = forward,
    .permute = permute,
    .onnx = {.type = "MeanVarianceNormalization", .since = 9},
    EW_OP_CASES(cases),
};
