/* SPDX-License-Identifier: Apache-2.0 */
/* QDQ form for FPGA tools: int8, one power-of-two scale per tensor, explicit zero points; and QCDQ,
 * with a clip to the integers' range between quantiser and dequantiser, from which QONNX's tools
 * read the bit width. */
#include "compress/pass.h"
#include "compress/pow2.h"
#include "compress/quant_view.h"
#include "graph/ops.h"

/* Makes an omitted zero point explicit; fails on anything but int8 with a power-of-two scale. */
static ew_err make_explicit(struct ew_graph *g, int node)
{
    const struct ew_node *n = &g->nodes[node];
    const struct ew_tensor *scale = &g->values[n->in[1]].t;
    const bool to = ew_qview_is(g, node, &ew_op_quantize_linear);
    const enum ew_dtype dtype = g->values[to ? n->out[0] : n->in[0]].t.dtype;
    const int zero = n->n_in > 2 ? n->in[2] : -1;
    int position;
    EW_CHECK(scale->data && ew_tensor_count(scale) == 1 && dtype == EW_S8 &&
                 ew_pow2_position(ew_tensor_get(scale, 0), &position) &&
                 (zero < 0 || ew_tensor_get_int(&g->values[zero].t, 0) == 0),
             EW_ERR_UNSUPPORTED,
             "%s: is not int8 with one power-of-two scale and zero point 0: quantize with --scheme "
             "pow2",
             n->name);
    if (zero >= 0)
        return EW_OK;
    const struct ew_shape one = {0};
    struct ew_node again = *n;
    int in[3] = {n->in[0], n->in[1]}, out;
    const int first = g->n_nodes;
    EW_TRY(ew_qview_const(g, NULL, EW_S8, &one, &in[2]));
    again.in = in;
    again.n_in = 3;
    EW_TRY(ew_graph_add_node(g, &again, &out));
    return ew_graph_splice(g, node, first, &out);
}

ew_err ew_pass_explicit_pow2(struct ew_graph *g)
{
    bool any = false;
    for (int k = 0; k < g->n_nodes; k++) {
        if (!ew_qview_is(g, k, &ew_op_quantize_linear) &&
            !ew_qview_is(g, k, &ew_op_dequantize_linear))
            continue;
        any = true;
        EW_TRY(make_explicit(g, k));
    }
    EW_CHECK(any, EW_ERR_UNSUPPORTED,
             "%s: nothing in it is quantised: quantize with --scheme pow2 first", g->name);
    return ew_graph_infer(g);
}

/* Inserts a clip after quantiser `node`. */
static ew_err add_clip(struct ew_graph *g, int node)
{
    static const int64_t bounds[] = {INT8_MIN, INT8_MAX};
    const struct ew_shape one = {0};
    const struct ew_node n = g->nodes[node];
    const int first = g->n_nodes;
    int in[3], out;
    EW_TRY(ew_graph_add_node(g, &n, &in[0]));
    for (int i = 0; i < 2; i++) {
        EW_TRY(ew_qview_const(g, NULL, EW_S8, &one, &in[1 + i]));
        ew_tensor_store_int(&g->values[in[1 + i]].t, 0, 1, &bounds[i]);
    }
    EW_TRY(ew_graph_add(g, &ew_op_clip, NULL, NULL, ew_inputs(in, 3), &out));
    return ew_graph_splice(g, node, first, &out);
}

ew_err ew_pass_qcdq(struct ew_graph *g)
{
    EW_TRY(ew_pass_explicit_pow2(g));
    for (int k = 0; k < g->n_nodes; k++)
        if (ew_qview_is(g, k, &ew_op_quantize_linear)) {
            EW_TRY(add_clip(g, k));
            k++;
        }
    return ew_graph_infer(g);
}
