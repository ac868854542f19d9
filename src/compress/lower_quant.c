/* SPDX-License-Identifier: Apache-2.0 */
/* Lowering from QDQ form to integer nodes.
 *
 * A quantised network comes as float nodes between dequantize_linear (DQ) and quantize_linear (Q).
 * Four sweeps lower it:
 * - DQ moves behind nodes that only move elements or select the largest: they then move bytes;
 * - each Q, with the float nodes between it and the previous DQs, becomes an integer node;
 * - convolutions and dense layers after a DQ and without a Q become integer nodes with float32
 *   output;
 * - additions and tables after an integer convolution are fused into it.
 * What does not match stays in float32.  The nodes are in lower_layers.c and lower_unweighted.c. */
#include "compress/lower_quant.h"

#include <stdlib.h>
#include <string.h>

#include "graph/ops.h"
#include "graph/readers.h"
#include "op/qlinear.h"

/* ---- Preparation ---- */

/* Makes an omitted zero point explicit: 0, of the known type. */
static ew_err complete_zero(struct ew_graph *g, int node)
{
    const bool to = ew_qview_is(g, node, &ew_op_quantize_linear);
    if (!to && !ew_qview_is(g, node, &ew_op_dequantize_linear))
        return EW_OK;
    const struct ew_node *n = &g->nodes[node];
    if (n->n_in > 2 && n->in[2] >= 0)
        return EW_OK;
    int in[] = {n->in[0], n->in[1], -1};
    const enum ew_dtype dtype = g->values[to ? n->out[0] : in[0]].t.dtype;
    const struct ew_shape shape = g->values[in[1]].t.shape;
    EW_TRY(ew_qview_const(g, "zero", dtype, &shape, &in[2]));
    return ew_readers_set_all(ew_graph_readers(g), node, in, 3);
}

/* True if every use of a quantiser's output is a DQ with the same parameters. */
static bool only_read_back(const struct ew_graph *g, int value, const struct ew_qview *to)
{
    struct ew_qview v;
    int node, slot;
    for (int at = -1; ew_readers_next(ew_graph_readers(g), value, &at, &node, &slot);)
        if (node < 0 || slot != 0 || !ew_qview_of(g, g->nodes[node].out[0], &v) || v.q != value ||
            !ew_qview_same(g, &v, to))
            return false;
    return true;
}

/* Turns int8 activations into uint8, with zero points 128 higher, which kernels read without
 * conversion. */
static ew_err make_unsigned(struct ew_graph *g, int node)
{
    struct ew_qview to;
    if (!ew_qview_quantizer(g, node, &to) || ew_qview_dtype(g, &to) != EW_S8)
        return EW_OK;
    const int value = g->nodes[node].out[0];
    if (!only_read_back(g, value, &to))
        return EW_OK;
    const struct ew_shape shape = g->values[to.zero].t.shape;
    int zero;
    EW_TRY(ew_qview_const(g, "zero", EW_U8, &shape, &zero));
    *(uint8_t *)g->values[zero].t.data = (uint8_t)(ew_qview_zero(g, &to) + 128);
    struct ew_readers *readers = ew_graph_readers(g);
    EW_TRY(ew_readers_set(readers, node, 2, zero));
    int reader, slot;
    for (int at = -1; ew_readers_next(readers, value, &at, &reader, &slot);)
        EW_TRY(ew_readers_set(readers, reader, 2, zero));
    return EW_OK;
}

/* ---- DQ behind data movement ---- */

static bool only_moves(const struct ew_graph *g, const struct ew_node *n)
{
    static const struct ew_op *const ops[] = {
        &ew_op_transpose, &ew_op_channel_shuffle, &ew_op_split,          &ew_op_slice,
        &ew_op_max_pool,  &ew_op_global_max_pool, &ew_op_depth_to_space, &ew_op_space_to_depth};
    if (n->op->flags & EW_OP_VIEW)
        return true;
    for (size_t i = 0; i < EW_COUNT(ops); i++)
        if (n->op == ops[i])
            return n->op != &ew_op_max_pool || n->n_out == 1;
    return false;
}

/* Moves the DQ behind node `node`. */
static ew_err push_down(struct ew_graph *g, int node)
{
    struct ew_node n = g->nodes[node];
    const int first = g->n_nodes;
    struct ew_qview x;
    if (n.n_in < 1 || !only_moves(g, &n) || !ew_qview_of(g, n.in[0], &x))
        return EW_OK;
    EW_CLEANUP(ew_free_ptr) int *slots = calloc((size_t)(n.n_in + n.n_out) + 1, sizeof(*slots));
    EW_CHECK(slots, EW_ERR_MEMORY, "%s: no memory to lower it", n.name);
    int *const out = slots + n.n_in;
    memcpy(slots, n.in, (size_t)n.n_in * sizeof(*slots));
    slots[0] = x.q;
    n.in = slots;
    EW_TRY(ew_graph_add_node(g, &n, out));
    for (int i = 0; i < n.n_out; i++) {
        const int in[] = {out[i], x.scale, x.zero};
        EW_TRY(ew_graph_add(g, &ew_op_dequantize_linear, NULL, NULL, ew_inputs(in, 3), &out[i]));
    }
    return ew_graph_splice(g, node, first, out);
}

/* ---- Q and the nodes before it ---- */

ew_err ew_lower_first(struct ew_graph *g, int node, ew_lower_fn *const *kinds, size_t n)
{
    struct ew_lowering l = {.g = g, .node = node, .clamp = {-128, 255}};
    if (!ew_qview_quantizer(g, node, &l.to))
        return EW_OK;
    l.value = ew_qview_peel_clamp(g, g->nodes[node].in[0], &l.to, &l.clamp);
    bool done = false;
    for (size_t i = 0; i < n && !done; i++)
        EW_TRY(kinds[i](&l, &done));
    return EW_OK;
}

static ew_err lower(struct ew_graph *g, int node)
{
    static ew_lower_fn *const kinds[] = {ew_lower_function, ew_lower_conv,    ew_lower_gemm,
                                         ew_lower_binary,   ew_lower_average, ew_lower_concat,
                                         ew_lower_norm};
    return ew_lower_first(g, node, kinds, EW_COUNT(kinds));
}

static ew_err lower_float(struct ew_graph *g, int node)
{
    bool done;
    EW_TRY(ew_lower_conv_float(g, node, &done));
    return done ? EW_OK : ew_lower_gemm_float(g, node, &done);
}

/* ---- Fusing into a convolution ---- */

static int input_of(const struct ew_node *n, int slot)
{
    return slot < n->n_in ? n->in[slot] : -1;
}

/* The convolution that produces `value` as 8 bits for a single use; -1: none. */
static int sole_conv(const struct ew_graph *g, int value)
{
    const int from = ew_qview_sole(g, value);
    if (!ew_qview_is(g, from, &ew_op_qlinear_conv))
        return -1;
    const struct ew_node *n = &g->nodes[from];
    return input_of(n, EW_QCONV_Y_SCALE) >= 0 && input_of(n, EW_QCONV_TABLE) < 0 ? from : -1;
}

/* Replaces `node` by the convolution with further inputs. */
static ew_err replace(struct ew_graph *g, int node, int conv, const int *in,
                      const struct ew_quant_clamp *clamp)
{
    const struct ew_node *n = &g->nodes[conv];
    struct ew_qconv_attr attr = *(const struct ew_qconv_attr *)n->attr;
    const int first = g->n_nodes;
    int out;
    attr.clamp = *clamp;
    EW_TRY(ew_graph_add(g, n->op, n->name, &attr, ew_inputs(in, EW_QCONV_INPUTS), &out));
    return ew_graph_splice(g, node, first, &out);
}

static void copy_inputs(const struct ew_node *conv, int *in)
{
    for (int i = 0; i < EW_QCONV_INPUTS; i++)
        in[i] = input_of(conv, i);
}

static ew_err fuse_table(struct ew_graph *g, int node)
{
    const int conv = ew_qview_is(g, node, &ew_op_lookup) ? sole_conv(g, g->nodes[node].in[0]) : -1;
    if (conv < 0)
        return EW_OK;
    int in[EW_QCONV_INPUTS];
    copy_inputs(&g->nodes[conv], in);
    in[EW_QCONV_TABLE] = g->nodes[node].in[EW_LOOKUP_TABLE];
    const struct ew_qconv_attr *a = g->nodes[conv].attr;
    return replace(g, node, conv, in, &a->clamp);
}

/* True if input `slot` of the addition is a convolution that can absorb it. */
static bool takes_add(const struct ew_graph *g, const struct ew_node *add, int slot)
{
    const int conv = sole_conv(g, add->in[slot]);
    if (conv < 0)
        return false;
    const struct ew_node *n = &g->nodes[conv];
    const struct ew_qconv_attr *a = n->attr;
    const struct ew_shape *out = &g->values[add->out[0]].t.shape;
    return input_of(n, EW_QCONV_ADD) < 0 && ew_quant_clamps_nothing(&a->clamp) &&
           ew_shape_equal(&g->values[add->in[EW_QBINARY_A]].t.shape, out) &&
           ew_shape_equal(&g->values[add->in[EW_QBINARY_B]].t.shape, out);
}

static ew_err fuse_add(struct ew_graph *g, int node)
{
    if (!ew_qview_is(g, node, &ew_op_qlinear_add))
        return EW_OK;
    const struct ew_node *add = &g->nodes[node];
    const bool a = takes_add(g, add, EW_QBINARY_A), b = takes_add(g, add, EW_QBINARY_B);
    if (!a && !b)
        return EW_OK;
    /* of two candidates the later, whose sums are still cached */
    const bool second = b && (!a || g->values[add->in[EW_QBINARY_B]].producer >
                                        g->values[add->in[EW_QBINARY_A]].producer);
    const int conv = g->values[add->in[second ? EW_QBINARY_B : EW_QBINARY_A]].producer;
    const int other = second ? EW_QBINARY_A : EW_QBINARY_B;
    const struct ew_qbinary_attr *attr = add->attr;
    int in[EW_QCONV_INPUTS];
    copy_inputs(&g->nodes[conv], in);
    for (int i = 0; i < 3; i++)
        in[EW_QCONV_ADD + i] = add->in[other + i];
    in[EW_QCONV_SUM_SCALE] = add->in[EW_QBINARY_Y_SCALE];
    in[EW_QCONV_SUM_ZERO] = add->in[EW_QBINARY_Y_ZERO];
    return replace(g, node, conv, in, &attr->clamp);
}

/* ---- The pass ---- */

ew_err ew_lower_sweep(struct ew_graph *g, ew_lower_step *step)
{
    const int n_nodes = g->n_nodes;
    EW_TRY(ew_graph_rewrite_begin(g));
    for (int k = 0; k < n_nodes; k++)
        EW_TRY(step(g, k));
    EW_TRY(ew_graph_rewrite_end(g));
    EW_TRY(ew_graph_sweep(g)); /* dead nodes must not count as readers */
    return ew_graph_infer(g);  /* types have changed with zero points */
}

ew_err ew_lower_prepare(struct ew_graph *g)
{
    EW_TRY(ew_lower_sweep(g, complete_zero));
    return ew_lower_sweep(g, push_down);
}

static bool has_quantizers(const struct ew_graph *g)
{
    for (int k = 0; k < g->n_nodes; k++)
        if (ew_qview_is(g, k, &ew_op_quantize_linear) ||
            ew_qview_is(g, k, &ew_op_dequantize_linear))
            return true;
    return false;
}

ew_err ew_pass_lower_quant(struct ew_graph *g)
{
    static ew_lower_step *const steps[] = {complete_zero, make_unsigned, push_down, lower,
                                           lower_float,   fuse_add,      fuse_table};
    if (!has_quantizers(g))
        return EW_OK;
    for (size_t i = 0; i < EW_COUNT(steps); i++)
        EW_TRY(ew_lower_sweep(g, steps[i]));
    return EW_OK;
}
