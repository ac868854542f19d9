/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters, rounding and zero points of quantised numbers. */
#include "op/quant.h"

#include "graph/graph.h"
#include "graph/onnx.h"
#include "graph/ops.h"
#include "op/axis.h"

static ew_err resolve_blocks(const struct ew_shape *x, const struct ew_shape *scale, int axis,
                             struct ew_quant_grid *g)
{
    EW_CHECK(scale->rank == x->rank, EW_ERR_SHAPE, "blocks need scales of %d dimensions, not %d",
             x->rank, scale->rank);
    g->blocks = (g->entries + g->block - 1) / g->block;
    for (int i = 0; i < x->rank; i++) {
        const int64_t want = i == axis ? g->blocks : x->dim[i];
        EW_CHECK(scale->dim[i] == want, EW_ERR_SHAPE,
                 "dimension %d of the scales is %lld, must be %lld", i, (long long)scale->dim[i],
                 (long long)want);
    }
    g->blocked = true;
    return EW_OK;
}

ew_err ew_quant_resolve(const struct ew_quant_attr *a, const struct ew_tensor *x,
                        const struct ew_tensor *scale, const struct ew_tensor *zero,
                        struct ew_quant_grid *out)
{
    const struct ew_shape *s = &x->shape;
    *out = (struct ew_quant_grid){0};
    EW_CHECK(!zero || ew_tensor_count(zero) == ew_tensor_count(scale), EW_ERR_SHAPE,
             "%lld zero points for %lld scales", zero ? (long long)ew_tensor_count(zero) : 0,
             (long long)ew_tensor_count(scale));
    if (scale->shape.rank <= 1 && ew_tensor_count(scale) == 1)
        return EW_OK;
    int axis;
    EW_TRY(ew_shape_axis(a->axis, s->rank, &axis));
    out->inner = ew_shape_span(s, axis + 1, s->rank);
    out->entries = s->dim[axis];
    out->block = ew_max_i64(a->block_size, 1);
    if (a->block_size > 0)
        return resolve_blocks(s, &scale->shape, axis, out);
    EW_CHECK(scale->shape.rank == 1 && scale->shape.dim[0] == out->entries, EW_ERR_SHAPE,
             "%lld scales for an axis of %lld", (long long)ew_tensor_count(scale),
             (long long)out->entries);
    return EW_OK;
}

ew_err ew_quant_permute(struct ew_graph *g, int node, const int *perm, int *out_perm)
{
    const struct ew_tensor *scale = &g->values[g->nodes[node].in[1]].t;
    if (scale->shape.rank <= 1 && ew_tensor_count(scale) == 1)
        return EW_OK; /* a scalar scale: the axis is ignored and need not be valid */
    return ew_axis_permute(g, node, perm, out_perm);
}

ew_err ew_quant_export(const struct ew_graph *g, int node, struct ew_onnx_node *n)
{
    const struct ew_node *from = &g->nodes[node];
    const struct ew_quant_attr *a = from->attr;
    const enum ew_dtype x = g->values[from->in[0]].t.dtype, y = g->values[from->out[0]].t.dtype;
    const bool wide = x == EW_S16 || x == EW_U16 || y == EW_S16 || y == EW_U16;
    if (a->block_size == 0)
        ew_onnx_drop(n, "block_size");
    /* QONNX's tools would take the scale for per-channel */
    if (g->values[from->in[1]].t.shape.rank == 0)
        ew_onnx_drop(n, "axis");
    if (a->block_size > 0 || wide)
        n->opset = n->opset < 21 ? 21 : n->opset;
    return EW_OK;
}

static void range_of(enum ew_dtype t, int64_t *lo, int64_t *hi)
{
    const int bits = (int)ew_dtype_size(t) * 8;
    const bool is_signed = t == EW_S8 || t == EW_S16 || t == EW_S32;
    *lo = is_signed ? -((int64_t)1 << (bits - 1)) : 0;
    *hi = ((int64_t)1 << (is_signed ? bits - 1 : bits)) - 1;
}

int64_t ew_quant_round(double v, int64_t zero, enum ew_dtype dtype)
{
    int64_t lo, hi;
    range_of(dtype, &lo, &hi);
    const double q = rint(v) + (double)zero;
    if (isnan(q))
        return ew_max_i64(lo, ew_min_i64(zero, hi));
    return q <= (double)lo ? lo : q >= (double)hi ? hi : (int64_t)q;
}

void ew_fake_quant_range(const struct ew_call *c, double *lo, double *hi)
{
    const double scale = ew_tensor_get(c->in[1], 0);
    const int64_t zero = ew_tensor_get_int(c->in[2], 0);
    int64_t least, most;
    range_of(c->in[2]->dtype, &least, &most);
    *lo = (double)(least - zero) * scale;
    *hi = (double)(most - zero) * scale;
}

ew_err ew_fake_quant_pair(struct ew_graph *g, const int *in, const char *name, int *out)
{
    int slots[3] = {in[0], in[1], in[2]};
    const struct ew_quant_attr attr = {.axis = 1, .dtype = g->values[in[2]].t.dtype};
    EW_TRY(ew_graph_add(g, &ew_op_quantize_linear, NULL, &attr, ew_inputs(slots, 3), &slots[0]));
    return ew_graph_add(g, &ew_op_dequantize_linear, name, NULL, ew_inputs(slots, 3), out);
}

float ew_quant_ratio(double x_scale, double w_scale, double y_scale)
{
    const float product = (float)x_scale * (float)w_scale;
    return product / (float)y_scale;
}

int64_t ew_quant_sum(int32_t sum, float ratio, int64_t zero, enum ew_dtype dtype)
{
    const float scaled = (float)sum * ratio;
    return ew_quant_round((double)scaled, zero, dtype);
}

int64_t ew_quant_add(const struct ew_quant_binary *q, int64_t a, int64_t b)
{
    const float scaled_a = (float)a * q->a_ratio;
    const float scaled_b = (float)b * q->b_ratio;
    const float sum = scaled_a + scaled_b;
    return ew_quant_round((double)sum, q->zero, q->dtype);
}

ew_err ew_quant_check(const struct ew_call *c, int slot, int zero_slot, int64_t channels)
{
    const struct ew_tensor *zero = ew_call_in(c, zero_slot);
    EW_TRY(ew_types_check(c, slot, EW_TYPES_QUANT8));
    if (!zero)
        return EW_OK;
    EW_CHECK(zero->dtype == c->in[slot]->dtype, EW_ERR_TYPE, "input %d is %s, its zero point %s",
             slot, ew_dtype_name(c->in[slot]->dtype), ew_dtype_name(zero->dtype));
    EW_CHECK(ew_tensor_count(zero) == 1 || ew_tensor_count(zero) == channels, EW_ERR_SHAPE,
             "input %d has %lld zero points, must be 1 or %lld", slot,
             (long long)ew_tensor_count(zero), (long long)channels);
    return EW_OK;
}

ew_err ew_quant_check_scale(const struct ew_call *c, int slot, int64_t channels)
{
    EW_TRY(ew_types_check(c, slot, EW_TYPES_FLOAT));
    const int64_t n = ew_tensor_count(c->in[slot]);
    EW_CHECK(n == 1 || n == channels, EW_ERR_SHAPE, "input %d has %lld scales, must be 1 or %lld",
             slot, (long long)n, (long long)channels);
    return EW_OK;
}

void ew_quant_centre(const struct ew_tensor *t, const struct ew_tensor *zero, int64_t inner,
                     int32_t *out)
{
    const int64_t zeros = zero ? ew_tensor_count(zero) : 1;
    for (int64_t i = 0; i < ew_tensor_count(t); i++)
        out[i] = (int32_t)(ew_tensor_get_int(t, i) - ew_quant_zero(zero, i / inner % zeros));
}
