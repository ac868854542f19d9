/* SPDX-License-Identifier: Apache-2.0 */
/* Matching in graphs in QDQ form. */
#include "compress/quant_view.h"

#include "graph/ops.h"
#include "graph/readers.h"

static bool is_byte(enum ew_dtype t)
{
    return t == EW_U8 || t == EW_S8;
}

bool ew_qview_is(const struct ew_graph *g, int node, const struct ew_op *op)
{
    return node >= 0 && g->nodes[node].op == op;
}

/* Reads scale and zero point of a quantiser or dequantiser; both must be constant. */
static bool parameters(const struct ew_graph *g, const struct ew_node *n, struct ew_qview *out)
{
    const struct ew_quant_attr *a = n->attr;
    out->scale = n->in[1];
    out->zero = n->n_in > 2 ? n->in[2] : -1;
    return a->block_size == 0 && ew_pass_is_constant(g, out->scale) &&
           g->values[out->scale].t.dtype == EW_F32 && ew_pass_is_constant(g, out->zero);
}

static bool has_one(const struct ew_graph *g, const struct ew_qview *v)
{
    return ew_tensor_count(&g->values[v->scale].t) == 1 &&
           ew_tensor_count(&g->values[v->zero].t) == 1;
}

/* True if the scale is a positive scalar, so that larger integers are larger numbers, as maxima and
 * bounds require. */
static bool keeps_order(const struct ew_graph *g, const struct ew_qview *v)
{
    return has_one(g, v) && ew_qview_scale(g, v) > 0;
}

bool ew_qview_of(const struct ew_graph *g, int value, struct ew_qview *out)
{
    const int from = value < 0 ? -1 : g->values[value].producer;
    if (!ew_qview_is(g, from, &ew_op_dequantize_linear))
        return false;
    const struct ew_node *n = &g->nodes[from];
    out->q = n->in[0];
    return is_byte(g->values[out->q].t.dtype) && parameters(g, n, out) && keeps_order(g, out);
}

bool ew_qview_weights(const struct ew_graph *g, int value, int axis, struct ew_qview *out)
{
    const int from = value < 0 ? -1 : g->values[value].producer;
    if (!ew_qview_is(g, from, &ew_op_dequantize_linear))
        return false;
    const struct ew_node *n = &g->nodes[from];
    const struct ew_quant_attr *a = n->attr;
    const struct ew_tensor *t = &g->values[n->in[0]].t;
    out->q = n->in[0];
    if (!ew_pass_is_constant(g, out->q) || !parameters(g, n, out))
        return false;
    return has_one(g, out) || (a->axis < 0 ? a->axis + t->shape.rank : a->axis) == axis;
}

bool ew_qview_quantizer(const struct ew_graph *g, int node, struct ew_qview *out)
{
    if (!ew_qview_is(g, node, &ew_op_quantize_linear))
        return false;
    const struct ew_node *n = &g->nodes[node];
    out->q = -1;
    return g->values[n->in[0]].t.dtype == EW_F32 && is_byte(g->values[n->out[0]].t.dtype) &&
           parameters(g, n, out) && keeps_order(g, out);
}

double ew_qview_scale(const struct ew_graph *g, const struct ew_qview *v)
{
    return ew_tensor_get(&g->values[v->scale].t, 0);
}

int64_t ew_qview_zero(const struct ew_graph *g, const struct ew_qview *v)
{
    return ew_tensor_get_int(&g->values[v->zero].t, 0);
}

enum ew_dtype ew_qview_dtype(const struct ew_graph *g, const struct ew_qview *v)
{
    return g->values[v->zero].t.dtype;
}

bool ew_qview_same(const struct ew_graph *g, const struct ew_qview *a, const struct ew_qview *b)
{
    const double sa = ew_qview_scale(g, a), sb = ew_qview_scale(g, b);
    return !(sa < sb) && !(sa > sb) && ew_qview_zero(g, a) == ew_qview_zero(g, b) &&
           ew_qview_dtype(g, a) == ew_qview_dtype(g, b);
}

int64_t ew_qview_round(const struct ew_graph *g, const struct ew_qview *v, double real)
{
    const float ratio =
        (float)real / (float)ew_qview_scale(g, v); /* in float32, like quantize_linear */
    return ew_quant_round((double)ratio, ew_qview_zero(g, v), ew_qview_dtype(g, v));
}

int ew_qview_sole(const struct ew_graph *g, int value)
{
    return value < 0 ? -1 : ew_readers_sole_producer(ew_graph_readers(g), value);
}

int ew_qview_peel_clamp(const struct ew_graph *g, int value, const struct ew_qview *to,
                        struct ew_quant_clamp *clamp)
{
    for (int from; (from = ew_qview_sole(g, value)) >= 0;) {
        struct ew_epilogue_attr act = {0};
        if (!ew_act_of_node(g, from, &act) || (act.act != EW_ACT_RELU && act.act != EW_ACT_CLIP))
            break;
        const int64_t lo = ew_qview_round(g, to, act.act == EW_ACT_RELU ? 0 : act.lo);
        const int64_t hi = act.act == EW_ACT_RELU ? clamp->hi : ew_qview_round(g, to, act.hi);
        if (lo > clamp->hi || hi < clamp->lo)
            break; /* the intervals are disjoint */
        clamp->lo = ew_max_i64(clamp->lo, lo);
        clamp->hi = ew_min_i64(clamp->hi, hi);
        value = g->nodes[from].in[0];
    }
    return value;
}

ew_err ew_qview_const(struct ew_graph *g, const char *name, enum ew_dtype dtype,
                      const struct ew_shape *shape, int *out)
{
    struct ew_tensor t = {.dtype = dtype, .shape = *shape};
    t.data = ew_arena_alloc(&g->arena, ew_tensor_bytes(&t));
    EW_CHECK(t.data, EW_ERR_MEMORY, "%s: no memory for it as integers", name);
    return ew_graph_const(g, name, EW_VALUE_CONST, &t, false, out);
}
