/* SPDX-License-Identifier: Apache-2.0 */
/* Pad: extends (or, by negative pads, crops) the ends of each axis: with a constant, or the input's
 * own elements mirrored, repeated or wrapped. */
#include <string.h>

#include "graph/onnx.h"
#include "op/axis.h"
#include "op/move.h"
#include "op/pad.h"
#include "op/types.h"
#include "op/walk.h"

extern const struct ew_op ew_op_pad;

static const char *const modes[] = {"constant", "reflect", "edge", "wrap", NULL};

static const struct ew_field attrs[] = {{.name = "mode",
                                         .type = EW_FIELD_ENUM,
                                         .offset = offsetof(struct ew_pad_attr, mode),
                                         .def = "constant",
                                         .choices = modes,
                                         .help = "what the new elements are"},
                                        EW_FIELD_END};

ew_err ew_pads_read(const struct ew_call *c, struct ew_pads *out)
{
    const int rank = c->in[EW_PAD_DATA]->shape.rank;
    struct ew_ints pads, axes;
    EW_TRY(ew_tensor_ints(c->in[EW_PAD_PADS], "pads", &pads));
    EW_TRY(ew_axes_read(ew_call_in(c, EW_PAD_AXES), rank, rank, &axes));
    EW_CHECK(pads.n == 2 * axes.n, EW_ERR_SHAPE, "%d pads for %d axes", pads.n, axes.n);
    memset(out, 0, sizeof(*out));
    for (int i = 0; i < axes.n; i++) {
        out->before[axes.v[i]] = pads.v[i];
        out->after[axes.v[i]] = pads.v[i + axes.n];
    }
    return EW_OK;
}

static ew_err infer(const struct ew_call *c)
{
    const struct ew_pad_attr *a = c->attr;
    const struct ew_shape *in = &c->in[EW_PAD_DATA]->shape;
    const struct ew_tensor *value = ew_call_in(c, EW_PAD_VALUE);
    struct ew_pads p;
    EW_TRY(ew_pads_read(c, &p));
    EW_CHECK(!value || ew_tensor_count(value) == 1, EW_ERR_SHAPE, "the pad value is not a scalar");
    EW_TRY(ew_types_same(c, EW_PAD_VALUE));
    c->out[0]->shape.rank = in->rank;
    for (int i = 0; i < in->rank; i++) {
        const int64_t limit = (int64_t)1 << 40;
        EW_CHECK(p.before[i] > -limit && p.before[i] < limit && p.after[i] > -limit &&
                     p.after[i] < limit,
                 EW_ERR_LIMIT, "pads of axis %d are absurd", i);
        const int64_t d = in->dim[i] + p.before[i] + p.after[i];
        EW_CHECK(d >= 0, EW_ERR_SHAPE, "pads take %lld elements from an axis of %lld",
                 (long long)-(p.before[i] + p.after[i]), (long long)in->dim[i]);
        EW_CHECK(a->mode == EW_PAD_CONSTANT || in->dim[i] > 0 || d == 0, EW_ERR_SHAPE,
                 "axis %d is empty: there is nothing to repeat", i);
        c->out[0]->shape.dim[i] = d;
    }
    return EW_OK;
}

int64_t ew_pad_source(int mode, int64_t i, int64_t d)
{
    if (i >= 0 && i < d)
        return i;
    switch (mode) {
    case EW_PAD_EDGE:
        return i < 0 ? 0 : d - 1;
    case EW_PAD_WRAP:
        return (i % d + d) % d;
    case EW_PAD_REFLECT: {
        if (d == 1)
            return 0;
        const int64_t period = 2 * (d - 1), at = (i % period + period) % period;
        return at < d ? at : period - at;
    }
    default:
        return -1;
    }
}

/* The source element for the walk's position, or -1. */
static int64_t source_element(const struct ew_walk *w, int mode, const struct ew_pads *p,
                              const struct ew_shape *in)
{
    int64_t at = 0;
    for (int k = 0; k < in->rank; k++) {
        const int64_t i = ew_pad_source(mode, w->at[k] - p->before[k], in->dim[k]);
        if (i < 0)
            return -1;
        at = at * in->dim[k] + i;
    }
    return at;
}

/* The part of the input that is copied unchanged. */
static struct ew_move kept(const struct ew_pads *p, const struct ew_shape *in,
                           const struct ew_shape *out)
{
    struct ew_move m = ew_move_box(in, in, out);
    for (int k = 0; k < in->rank; k++) {
        const int64_t cut = ew_max_i64(0, -p->before[k]), cut_after = ew_max_i64(0, -p->after[k]);
        m.box.dim[k] = ew_max_i64(0, in->dim[k] - cut - cut_after);
        m.src_at += cut * m.src[k];
        m.dst_at += ew_max_i64(0, p->before[k]) * m.dst[k];
    }
    return m;
}

ew_err ew_pad_move(const struct ew_call *c, struct ew_move *out)
{
    struct ew_pads p;
    EW_TRY(ew_pads_read(c, &p));
    *out = kept(&p, &c->in[EW_PAD_DATA]->shape, &c->out[0]->shape);
    return EW_OK;
}

static void fill(struct ew_tensor *out, const struct ew_tensor *value)
{
    if (!value) {
        memset(out->data, 0, ew_tensor_bytes(out));
        return;
    }
    for (int64_t i = 0; i < ew_tensor_count(out); i++)
        ew_element_copy(value, 0, out, i);
}

static ew_err forward(const struct ew_call *c)
{
    const struct ew_pad_attr *a = c->attr;
    const struct ew_shape *in = &c->in[EW_PAD_DATA]->shape;
    struct ew_pads p;
    EW_TRY(ew_pads_read(c, &p));
    const int64_t count = ew_tensor_count(c->out[0]);
    if (a->mode == EW_PAD_CONSTANT) {
        const struct ew_move m = kept(&p, in, &c->out[0]->shape);
        if (count)
            fill(c->out[0], ew_call_in(c, EW_PAD_VALUE));
        ew_move_copy(&m, c->in[EW_PAD_DATA], c->out[0]);
        return EW_OK;
    }
    struct ew_walk w = ew_walk_begin(&c->out[0]->shape);
    for (int64_t i = 0; i < count; i++, ew_walk_next(&w))
        ew_element_copy(c->in[EW_PAD_DATA], source_element(&w, a->mode, &p, in), c->out[0], i);
    return EW_OK;
}

static ew_err backward(const struct ew_call *c)
{
    const struct ew_pad_attr *a = c->attr;
    const struct ew_shape *in = &c->in[EW_PAD_DATA]->shape;
    const struct ew_tensor *dy = c->dout[0];
    struct ew_tensor *dvalue = c->n_in > EW_PAD_VALUE ? c->din[EW_PAD_VALUE] : NULL;
    if (!dy)
        return EW_OK;
    struct ew_pads p;
    EW_TRY(ew_pads_read(c, &p));
    struct ew_walk w = ew_walk_begin(&dy->shape);
    for (int64_t i = 0; i < ew_tensor_count(dy); i++, ew_walk_next(&w)) {
        const int64_t from = source_element(&w, a->mode, &p, in);
        if (from >= 0 && c->din[EW_PAD_DATA])
            ew_element_add(dy, i, c->din[EW_PAD_DATA], from);
        else if (from < 0 && dvalue)
            ew_element_add(dy, i, dvalue, 0);
    }
    return EW_OK;
}

static ew_err permute(struct ew_graph *g, int node, const int *perm, int *out_perm)
{
    return ew_axes_input_permute(g, node, EW_PAD_AXES, -1, perm);
}

/* Before opset 11 pads and value are attributes. */
static ew_err import(struct ew_graph *g, const struct ew_onnx_node *n, int *out)
{
    static const char *const ignore[] = {"pads", "value", NULL};
    int in[EW_PAD_INPUTS] = {n->in[EW_PAD_DATA], -1, -1, -1};
    struct ew_pad_attr attr;
    EW_TRY(ew_onnx_fill(&ew_op_pad, n, ignore, &attr));
    EW_TRY(ew_onnx_input_or_attr(g, n, EW_PAD_PADS, "pads", &in[EW_PAD_PADS]));
    EW_CHECK(in[EW_PAD_PADS] >= 0, EW_ERR_FORMAT, "needs pads");
    for (int i = EW_PAD_VALUE; i < n->n_in && i < EW_PAD_INPUTS; i++)
        in[i] = n->in[i];
    const struct ew_onnx_attr *value = ew_onnx_attr(n, "value");
    if (value && in[EW_PAD_VALUE] < 0) {
        const double v = (double)value->f;
        double room = 0;
        struct ew_tensor t = {.dtype = g->values[in[EW_PAD_DATA]].t.dtype, .data = &room};
        ew_tensor_store(&t, 0, 1, &v);
        EW_TRY(ew_graph_const(g, NULL, EW_VALUE_CONST, &t, true, &in[EW_PAD_VALUE]));
    }
    const int n_in = in[EW_PAD_AXES] >= 0    ? EW_PAD_INPUTS
                     : in[EW_PAD_VALUE] >= 0 ? EW_PAD_AXES
                                             : EW_PAD_VALUE;
    const struct ew_onnx_node own = ew_onnx_with_inputs(n, in, n_in);
    return ew_onnx_import_default(g, &ew_op_pad, &own, &attr, out);
}

/* Before opset 18 there is no `axes` input: constant pads are written for all axes. */
static ew_err export_node(const struct ew_graph *g, int node, struct ew_onnx_node *n)
{
    const struct ew_node *from = &g->nodes[node];
    const struct ew_pad_attr *a = from->attr;
    if (a->mode == EW_PAD_WRAP)
        n->opset = n->opset < 19 ? 19 : n->opset;
    if (from->n_in <= EW_PAD_AXES || from->in[EW_PAD_AXES] < 0 || n->opset >= 18)
        return EW_OK;
    if (g->values[from->in[EW_PAD_PADS]].kind != EW_VALUE_CONST) {
        n->opset = 18;
        return EW_OK;
    }
    struct ew_tensor *slots[EW_PAD_INPUTS + 1];
    struct ew_call c;
    struct ew_pads p;
    int64_t list[2 * EW_MAX_RANK];
    ew_graph_call(g, from, slots, &c);
    EW_TRY(ew_pads_read(&c, &p));
    const int rank = c.in[EW_PAD_DATA]->shape.rank;
    for (int i = 0; i < rank; i++) {
        list[i] = p.before[i];
        list[i + rank] = p.after[i];
    }
    n->n_in = EW_PAD_AXES;
    return ew_onnx_set_input_ints(n, EW_PAD_PADS, list, 2 * rank);
}

#define INTS(count, text)                                                                          \
    {                                                                                              \
        count, EW_S64, EW_FILL_VALUES, .values = text, .constant = true                            \
    }

static const struct ew_op_case cases[] = {
    {.name = "zeros", .in = {{"2x3"}, INTS("4", "1,0,2,1")}, .n_in = 2, .out_shape = "5x4"},
    {.name = "value", .in = {{"2x3"}, INTS("4", "0,2,1,0"), {""}}, .n_in = 3, .out_shape = "3x5"},
    {.name = "axes",
     .in = {{"2x3x4"}, INTS("4", "1,2,1,0"), {NULL}, INTS("2", "-1,1")},
     .n_in = 4,
     .out_shape = "2x5x6"},
    {.name = "cut", .in = {{"5x4"}, INTS("4", "-1,1,-2,-1"), {""}}, .n_in = 3, .out_shape = "2x4"},
    {.name = "reflect",
     .attrs = "mode=reflect",
     .in = {{"2x4"}, INTS("4", "1,3,1,2")},
     .n_in = 2,
     .out_shape = "4x9"},
    {.name = "reflect, image",
     .attrs = "mode=reflect",
     .in = {{"2x4x5x3"}, INTS("8", "0,2,1,0,0,1,3,0")},
     .n_in = 2,
     .out_shape = "2x7x9x3"},
    {.name = "edge",
     .attrs = "mode=edge",
     .in = {{"2x3"}, INTS("4", "1,2,1,4")},
     .n_in = 2,
     .out_shape = "4x9"},
    {.name = "wrap",
     .attrs = "mode=wrap",
     .in = {{"2x3"}, INTS("4", "3,2,1,4")},
     .n_in = 2,
     .out_shape = "6x9"},
    {.name = "wrap and cut",
     .attrs = "mode=wrap",
     .in = {{"4x3"}, INTS("4", "-1,2,-1,1")},
     .n_in = 2,
     .out_shape = "2x6"},
    {.name = "bytes",
     .in = {{"3", EW_S8}, INTS("2", "1,1"), {"", EW_S8}},
     .n_in = 3,
     .out_shape = "5"},
};

const struct ew_op ew_op_pad = {
    .name = "pad",
    .help = "more elements at the ends of each axis",
    .min_in = 2,
    .max_in = EW_PAD_INPUTS,
    .known_in = 1 << EW_PAD_PADS | 1 << EW_PAD_AXES,
    .attr_size = sizeof(struct ew_pad_attr),
    .attrs = attrs,
    .infer = infer,
    .cost = ew_move_cost,
    .forward = forward,
    .backward = backward,
    .permute = permute,
    .onnx = {.type = "Pad", .import = import, .export = export_node},
    EW_OP_CASES(cases),
};
