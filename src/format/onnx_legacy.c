/* SPDX-License-Identifier: Apache-2.0 */
/* Upgrades nodes of opsets before 7 to opset 7: broadcasting by attributes, and attributes that
 * were removed. */
#include <stdio.h>
#include <string.h>

#include "format/onnx_import.h"
#include "graph/ops.h"

/* Operators that have the semantics of opset 7 only since a later opset than 1. */
static const struct {
    const char *type;
    int since;
} changed[] = {{"Pad", 2},      {"Split", 2}, {"LpPool", 2}, {"Concat", 4},
               {"Reshape", 5},  {"Cast", 6},  {"Tile", 6},   {"RNN", 7},
               {"Upsample", 7}, {"GRU", 7},   {"LSTM", 7}};

static const char *const broadcasting[] = {"Add", "Sub", "Mul",   "Div",     "Pow", "And",
                                           "Or",  "Xor", "Equal", "Greater", "Less"};

static bool is_broadcasting(const char *type)
{
    for (size_t i = 0; i < EW_COUNT(broadcasting); i++)
        if (strcmp(broadcasting[i], type) == 0)
            return true;
    return false;
}

/* Appends dimensions of 1 to in[slot], so that its first axis aligns with `axis` of rank `rank`. */
static ew_err widen(struct ew_onnx_import *im, struct ew_onnx_node *n, int *in, int64_t axis,
                    int rank)
{
    const struct ew_value v = im->g->values[in[1]];
    if (axis < 0)
        axis += rank;
    const int64_t ones = rank - axis - v.t.shape.rank;
    EW_CHECK(axis >= 0 && ones >= 0, EW_ERR_SHAPE, "axis %lld does not fit", (long long)axis);
    int64_t dims[EW_MAX_RANK];
    const int n_dims = v.t.shape.rank + (int)ones;
    for (int i = 0; i < n_dims; i++)
        dims[i] = i < v.t.shape.rank ? v.t.shape.dim[i] : 1;
    if (ones == 0)
        return EW_OK;
    if (v.kind == EW_VALUE_CONST) {
        struct ew_tensor t = v.t;
        t.shape.rank = n_dims;
        memcpy(t.shape.dim, dims, sizeof(dims));
        return ew_graph_const(im->g, v.name, v.kind, &t, false, &in[1]);
    }
    int shape;
    char name[EW_ONNX_LABEL + 8];
    snprintf(name, sizeof(name), "%s_shape", n->name);
    EW_TRY(ew_graph_const_ints(im->g, name, dims, n_dims, &shape));
    return ew_graph_add(im->g, &ew_op_reshape, NULL, NULL, EW_INPUTS(in[1], shape), &in[1]);
}

ew_err ew_onnx_upgrade(struct ew_onnx_import *im, struct ew_onnx_node *n, int *in)
{
    if (n->opset >= 7 || *n->domain)
        return EW_OK;
    for (size_t i = 0; i < EW_COUNT(changed); i++)
        EW_CHECK(strcmp(changed[i].type, n->type) != 0 || n->opset >= changed[i].since,
                 EW_ERR_UNSUPPORTED, "operator %s of opset %d is not supported, only %d and later",
                 n->type, n->opset, changed[i].since);
    const int rank = n->n_in > 0 && in[0] >= 0 ? im->g->values[in[0]].t.shape.rank : 0;
    const bool two = n->n_in == 2 && in[0] >= 0 && in[1] >= 0;
    if (two && is_broadcasting(n->type)) {
        const struct ew_onnx_attr *axis = ew_onnx_attr(n, "axis");
        if (axis && ew_onnx_int(n, "broadcast", 0))
            EW_TRY(widen(im, n, in, axis->i, rank));
        ew_onnx_drop(n, "axis");
        ew_onnx_drop(n, "broadcast");
    }
    /* per-channel slopes, which later opsets broadcast */
    if (two && strcmp(n->type, "PRelu") == 0 && rank > 1 && im->g->values[in[1]].t.shape.rank == 1)
        EW_TRY(widen(im, n, in, 1, rank));
    if (strcmp(n->type, "Gemm") == 0)
        ew_onnx_drop(n, "broadcast");
    if (strcmp(n->type, "BatchNormalization") == 0 && ew_onnx_int(n, "is_test", 0))
        n->n_out = 1;
    ew_onnx_drop(n, "is_test");
    ew_onnx_drop(n, "consumed_inputs");
    n->opset = 7;
    return EW_OK;
}
