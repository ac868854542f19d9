/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions: groups of elements, and the common loops.  The operators' files contain only the
 * formulas. */
#ifndef EW_OP_REDUCE_H
#define EW_OP_REDUCE_H

#include <math.h>

#include "graph/graph.h"
#include "graph/onnx.h"
#include "op/math_attr.h"
#include "op/types.h"

/* in[0]: data; in[1]: axes, a known list; absent or empty: all.  out[0] has one element per group
 * of elements of in[0]. */
struct ew_groups {
    int64_t count; /* number of groups: elements of the output */
    int64_t size;  /* elements in each */
    bool noop;     /* noop_with_empty_axes: groups of one element */
    int n_kept, n_reduced;
    int64_t kept_dim[EW_MAX_RANK], kept_stride[EW_MAX_RANK];
    int64_t reduced_dim[EW_MAX_RANK], reduced_stride[EW_MAX_RANK];
};

extern const struct ew_field ew_reduce_attrs[];

ew_err ew_groups_of(const struct ew_call *c, struct ew_groups *out);
/* Elements [at, at + n) of a group, n <= EW_CHUNK. */
void ew_group_load(const struct ew_groups *r, const struct ew_tensor *t, int64_t group, int64_t at,
                   int64_t n, double *v);
void ew_group_accumulate(const struct ew_groups *r, struct ew_tensor *t, int64_t group, int64_t at,
                         int64_t n, const double *v);

/* A reduction as a fold: start, step for each element, end. */
struct ew_fold {
    double start;
    double (*step)(double acc, double x);
    double (*end)(double acc, int64_t n);        /* NULL: acc itself */
    int64_t (*step_int)(int64_t acc, int64_t x); /* NULL: integers go through double */
    int64_t start_int;
    uint64_t (*step_u64)(uint64_t acc, uint64_t x); /* NULL: step_int on the same bits */
};

ew_err ew_reduce_infer(const struct ew_call *c);
ew_err ew_reduce_infer_order(const struct ew_call *c); /* bool too */
void ew_reduce_cost(const struct ew_call *c, struct ew_cost *out);
ew_err ew_reduce_forward(const struct ew_call *c, const struct ew_fold *f);
/* dx += dy df(x, y, n) for each element x of the group of n whose result is y; x and y are 0 unless
 * the operator saves them. */
ew_err ew_reduce_backward(const struct ew_call *c, double (*df)(double x, double y, int64_t n));

/* For max and min: equal elements share the gradient. */
ew_err ew_reduce_backward_extreme(const struct ew_call *c);

/* Rewrites in[1] for permuted data. */
ew_err ew_reduce_permute(struct ew_graph *g, int node, const int *perm, int *out_perm);
/* Permutation of the output of a reduction that drops the axes in `mask`. */
void ew_reduce_out_perm(unsigned mask, int rank, const int *perm, int *out_perm);

/* Axes are an attribute in older opsets. */
ew_err ew_reduce_import(struct ew_graph *g, const struct ew_onnx_node *n, int *out);
ew_err ew_reduce_export(const struct ew_graph *g, int node, struct ew_onnx_node *n);

#define EW_REDUCE_FORWARD(...)                                                                     \
    static ew_err forward(const struct ew_call *c)                                                 \
    {                                                                                              \
        static const struct ew_fold fold = {__VA_ARGS__};                                          \
        return ew_reduce_forward(c, &fold);                                                        \
    }
#define EW_REDUCE_BACKWARD(df)                                                                     \
    static ew_err backward(const struct ew_call *c)                                                \
    {                                                                                              \
        return ew_reduce_backward(c, df);                                                          \
    }

/* Common cases of reductions: on data with this fill, and on integers. */
/* clang-format off */
#define EW_REDUCE_AXES(count, text)                                                                \
    {count, EW_S64, EW_FILL_VALUES, .values = text, .constant = true}
#define EW_REDUCE_CASES(fill)                                                                      \
    {.name = "all", .in = {{"2x3x4", EW_F32, fill}}, .n_in = 1, .out_shape = "1x1x1"},             \
    {.name = "middle", .attrs = "keepdims=false",                                                  \
     .in = {{"2x5x3", EW_F32, fill}, EW_REDUCE_AXES("1", "1")}, .n_in = 2, .out_shape = "2x3"},    \
    {.name = "two axes", .in = {{"2x3x4x3", EW_F32, fill}, EW_REDUCE_AXES("2", "-1,1")},           \
     .n_in = 2, .out_shape = "2x1x4x1"},                                                           \
    {.name = "long", .attrs = "keepdims=false",                                                    \
     .in = {{"2x300", EW_F32, fill}, EW_REDUCE_AXES("1", "1")}, .n_in = 2, .out_shape = "2"}
#define EW_REDUCE_CASE_INT                                                                         \
    {.name = "int", .in = {{"2x3", EW_S32}, EW_REDUCE_AXES("1", "1")}, .n_in = 2,                  \
     .out_shape = "2x1"}
/* clang-format on */

/* Common fields of the descriptors of reductions. */
#define EW_REDUCE_OP(onnx_type, infer_by)                                                          \
    .min_in = 1, .max_in = 2, .known_in = 1 << 1, .attr_size = sizeof(struct ew_reduce_attr),      \
    .attrs = ew_reduce_attrs, .infer = infer_by, .cost = ew_reduce_cost,                           \
    .permute = ew_reduce_permute,                                                                  \
    .onnx = {.type = onnx_type, .import = ew_reduce_import, .export = ew_reduce_export}

#endif
