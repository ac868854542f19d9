/* SPDX-License-Identifier: Apache-2.0 */
/* Generates random graphs.  Every node is valid by construction: a choice that does not fit the
 * drawn value adds nothing. */
#include "random_graph.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "graph/layout.h"
#include "op/conv.h"
#include "op/math_attr.h"
#include "op/norm.h"
#include "op/pooling.h"
#include "op/quant.h"
#include "op/resize.h"
#include "op/shape_attr.h"

#define MOST_VALUES   64
#define MOST_ELEMENTS 20000 /* per value, since the references are slow */
#define CLASSES       5

struct builder {
    struct ew_graph *g;
    struct ew_rng rng;
    const struct ew_random_graph *o;
    int values[MOST_VALUES]; /* float32 [N, H, W, C], candidates for inputs */
    int n_values;
    int filters[MOST_VALUES]; /* of convolutions, candidates for sharing */
    int n_filters;
};

static int64_t draw(struct builder *m, int64_t least, int64_t most)
{
    return least + (int64_t)ew_rng_next_below(&m->rng, (uint64_t)(most - least + 1));
}

static bool chance(struct builder *m, int one_in)
{
    return draw(m, 1, one_in) == 1;
}

/* Usually one of the latest values, so graphs get deep; sometimes an older one, which is then
 * shared. */
static int pick(struct builder *m)
{
    const int64_t back = chance(m, 3) ? draw(m, 0, m->n_values - 1) : draw(m, 0, m->n_values > 2);
    return m->values[m->n_values - 1 - (int)back];
}

static const struct ew_shape *shape_of(const struct builder *m, int value)
{
    return &m->g->values[value].t.shape;
}

static ew_err keep(struct builder *m, int value)
{
    if (m->n_values == MOST_VALUES) {
        m->n_values--;
        memmove(&m->values[1], &m->values[2], (MOST_VALUES - 2) * sizeof(int));
    }
    m->values[m->n_values++] = value;
    return EW_OK;
}

static ew_err add(struct builder *m, const char *op, const void *attr, const int *in, int n_in)
{
    int out;
    EW_TRY(ew_graph_add(m->g, ew_op_find(op), NULL, attr, ew_inputs(in, n_in), &out));
    return keep(m, out);
}

/* Normally distributed values times `scale`, plus `shift`. */
static ew_err weights(struct builder *m, enum ew_value_kind kind, struct ew_shape shape,
                      const double scale_shift[2], int *out)
{
    const int64_t n = ew_shape_count(&shape);
    float *data = ew_arena_array(&m->g->arena, (size_t)n + 1, sizeof(*data));
    EW_CHECK(data, EW_ERR_MEMORY, "no memory for weights");
    for (int64_t i = 0; i < n; i++)
        data[i] = (float)(scale_shift[0] * ew_rng_next_normal(&m->rng) + scale_shift[1]);
    for (int64_t i = 0; kind == EW_VALUE_STATE && i < n; i++)
        data[i] = fabsf(data[i]);
    const struct ew_tensor t = {.dtype = EW_F32, .shape = shape, .data = data};
    return ew_graph_const(m->g, NULL, kind, &t, false, out);
}

/* ---- Layers ---- */

/* Filters of this shape, sometimes those of another layer. */
static ew_err filters(struct builder *m, const struct ew_shape *s, int *out)
{
    const int64_t taps = ew_shape_span(s, 1, s->rank);
    for (int i = 0; i < m->n_filters && chance(m, 2); i++)
        if (ew_shape_equal(shape_of(m, m->filters[i]), s)) {
            *out = m->filters[i];
            return EW_OK;
        }
    EW_TRY(weights(m, EW_VALUE_PARAM, *s, (double[]){1 / sqrt((double)taps + 1), 0}, out));
    if (m->n_filters < MOST_VALUES)
        m->filters[m->n_filters++] = *out;
    return EW_OK;
}

static int64_t divisor(struct builder *m, int64_t n)
{
    const int64_t d = draw(m, 1, n);
    return n % d == 0 ? d : 1;
}

static ew_err add_conv(struct builder *m)
{
    const int x = pick(m);
    const struct ew_shape *s = shape_of(m, x);
    struct ew_conv_attr a = {.win = {.stride = {.n = 2}, .pad = {.n = 4}, .dilation = {.n = 2}},
                             .groups = chance(m, 3) ? s->dim[3] : divisor(m, s->dim[3])};
    struct ew_shape w = {4,
                         {a.groups * draw(m, 1, chance(m, 2) ? 8 : 2), 1, 1, s->dim[3] / a.groups}};
    if (chance(m, 2))
        a.groups = 1, w.dim[0] = draw(m, 1, 33), w.dim[3] = s->dim[3];
    const int64_t side = chance(m, 3) ? 1 : draw(m, 1, 5);
    for (int i = 0; i < 2; i++) {
        w.dim[1 + i] = chance(m, 5) ? draw(m, 1, 7) : side;
        a.win.stride.v[i] = chance(m, 2) ? 1 : draw(m, 1, 3);
        a.win.dilation.v[i] = chance(m, 4) ? 2 : 1;
        const int64_t span = (w.dim[1 + i] - 1) * a.win.dilation.v[i] + 1;
        a.win.pad.v[i] = chance(m, 3) ? draw(m, 0, span - 1) : span / 2;
        a.win.pad.v[i + 2] = chance(m, 3) ? draw(m, 0, span - 1) : span / 2;
        if (s->dim[1 + i] + a.win.pad.v[i] + a.win.pad.v[i + 2] < span)
            return EW_OK;
    }
    int in[] = {x, -1, -1};
    EW_TRY(filters(m, &w, &in[1]));
    const bool bias = chance(m, 2);
    if (bias)
        EW_TRY(weights(m, EW_VALUE_PARAM, (struct ew_shape){1, {w.dim[0]}}, (double[]){0.3, 0},
                       &in[2]));
    return add(m, "conv", &a, in, bias ? 3 : 2);
}

static ew_err add_norm(struct builder *m)
{
    const int x = pick(m);
    const struct ew_shape each = {1, {shape_of(m, x)->dim[3]}};
    int in[] = {x, -1, -1, -1, -1};
    for (int i = 1; i < 5; i++) {
        const double factors[2] = {i == 1 || i == 4 ? 0.2 : 0.3, i == 1 || i == 4 ? 1 : 0};
        EW_TRY(weights(m, i < 3 ? EW_VALUE_PARAM : EW_VALUE_STATE, each, factors, &in[i]));
    }
    return add(m, "batch_norm", NULL, in, 5);
}

static ew_err add_activation(struct builder *m)
{
    static const char *const names[] = {"relu",       "relu",    "relu",         "leaky_relu",
                                        "hard_swish", "sigmoid", "hard_sigmoid", "tanh",
                                        "silu",       "identity"};
    const int x = pick(m);
    if (chance(m, 4)) {
        int in[] = {x, -1, -1};
        EW_TRY(ew_graph_const_float(m->g, NULL, chance(m, 2) ? 0 : -0.7f, &in[1]));
        EW_TRY(ew_graph_const_float(m->g, NULL, chance(m, 2) ? 6 : 0.9f, &in[2]));
        return add(m, "clip", NULL, in, 3);
    }
    return add(m, names[draw(m, 0, (int64_t)EW_COUNT(names) - 1)], NULL, &x, 1);
}

static ew_err add_pool(struct builder *m)
{
    const int x = pick(m);
    const struct ew_shape *s = shape_of(m, x);
    struct ew_pool_attr a = {
        .win = {.kernel = {.n = 2}, .stride = {.n = 2}, .pad = {.n = 4}, .dilation = {2, {1, 1}}},
        .ceil_mode = chance(m, 4),
        .count_include_pad = chance(m, 3)};
    if (chance(m, 5))
        return add(m, chance(m, 2) ? "global_average_pool" : "global_max_pool", NULL, &x, 1);
    const bool max = chance(m, 2);
    const int64_t side = draw(m, 1, 3), stride = draw(m, 1, 3);
    for (int i = 0; i < 2; i++) {
        a.win.kernel.v[i] = chance(m, 4) ? draw(m, 1, 4) : side;
        a.win.stride.v[i] = stride;
        a.win.pad.v[i] = a.win.pad.v[i + 2] = chance(m, 3) ? (a.win.kernel.v[i] - 1) / 2 : 0;
        if (s->dim[1 + i] + 2 * a.win.pad.v[i] < a.win.kernel.v[i])
            return EW_OK;
        /* A last window entirely beyond the input does not exist, but ONNX's shape inference counts
         * it. */
        a.ceil_mode = a.ceil_mode && a.win.kernel.v[i] >= stride;
    }
    return add(m, max ? "max_pool" : "average_pool", &a, &x, 1);
}

static ew_err add_dense_part(struct builder *m)
{
    const int x = pick(m);
    int in[] = {x, -1};
    const struct ew_gemm_attr a = {.alpha = 1, .beta = 1, .trans_b = true};
    const struct ew_flatten_attr flat = {.axis = 1};
    const struct ew_transpose_attr turn = {.perm = {4, {0, 3, 1, 2}}};
    const struct ew_shape *s = shape_of(m, x);
    const int64_t k = ew_shape_span(s, 1, 4);
    if (chance(m, 2))
        EW_TRY(ew_graph_add(m->g, ew_op_find("transpose"), NULL, &turn, ew_inputs(in, 1), in));
    EW_TRY(ew_graph_add(m->g, ew_op_find("flatten"), NULL, &flat, ew_inputs(in, 1), in));
    EW_TRY(weights(m, EW_VALUE_PARAM, (struct ew_shape){2, {CLASSES, k}},
                   (double[]){1 / sqrt((double)k + 1), 0}, &in[1]));
    EW_TRY(ew_graph_add(m->g, ew_op_find("gemm"), NULL, &a, ew_inputs(in, 2), in));
    return ew_graph_output(m->g, in[0]);
}

/* ---- Several inputs ---- */

/* A constant that broadcasts with the value. */
static ew_err constant_for(struct builder *m, int x, int *out)
{
    struct ew_shape s = *shape_of(m, x);
    s.dim[0] = 1;
    if (chance(m, 3))
        s = (struct ew_shape){1, {s.dim[3]}};
    else if (chance(m, 2))
        s.dim[1] = s.dim[2] = 1;
    return weights(m, m->o->trainable ? EW_VALUE_PARAM : EW_VALUE_CONST, s, (double[]){0.5, 0.2},
                   out);
}

static ew_err add_pair(struct builder *m)
{
    static const char *const names[] = {"add", "add", "add", "mul", "sub"};
    int in[] = {pick(m), -1};
    for (int tries = 0; tries < 12 && in[1] < 0; tries++) {
        const int y = m->values[draw(m, 0, m->n_values - 1)];
        const struct ew_shape *a = shape_of(m, in[0]), *b = shape_of(m, y);
        bool fits = true;
        for (int i = 0; i < 4; i++)
            fits &= a->dim[i] == b->dim[i] || (i > 0 && b->dim[i] == 1);
        if (fits)
            in[1] = y;
    }
    if (in[1] < 0 || chance(m, 4))
        EW_TRY(constant_for(m, in[0], &in[1]));
    if (chance(m, 3)) {
        const int other = in[0];
        in[0] = in[1];
        in[1] = other;
    }
    return add(m, names[draw(m, 0, (int64_t)EW_COUNT(names) - 1)], NULL, in, 2);
}

static ew_err add_concat(struct builder *m)
{
    int in[4] = {pick(m)}, n = 1;
    const struct ew_concat_attr a = {.axis = chance(m, 2) ? 3 : -1};
    for (int tries = 0; tries < 12 && n < 4; tries++) {
        const int y = m->values[draw(m, 0, m->n_values - 1)];
        const struct ew_shape *s = shape_of(m, in[0]), *t = shape_of(m, y);
        if (s->dim[0] == t->dim[0] && s->dim[1] == t->dim[1] && s->dim[2] == t->dim[2] &&
            chance(m, 2))
            in[n++] = y;
    }
    return add(m, "concat", &a, in, n);
}

/* A same-size convolution, usually followed by an activation. */
static ew_err branch_conv(struct builder *m, int x, int64_t channels, int64_t side, int *out)
{
    const struct ew_conv_attr a = {.win = {.pad = {4, {side / 2, side / 2, side / 2, side / 2}}},
                                   .groups = 1};
    int in[] = {x, -1};
    EW_TRY(
        filters(m, &(struct ew_shape){4, {channels, side, side, shape_of(m, x)->dim[3]}}, &in[1]));
    EW_TRY(ew_graph_add(m->g, ew_op_find("conv"), NULL, &a, ew_inputs(in, 2), out));
    if (chance(m, 3))
        return EW_OK;
    const int y = *out;
    const char *name = chance(m, 2) ? "silu" : "relu";
    return ew_graph_add(m->g, ew_op_find(name), NULL, NULL, EW_INPUTS(y), out);
}

/* Branches of one value that are read only by their concatenation, as in detection networks, with
 * additions whose operands have no other use. */
static ew_err add_branches(struct builder *m)
{
    const int x = pick(m), n = (int)draw(m, 2, 3);
    int part[3], more;
    for (int i = 0; i < n; i++) {
        const int64_t channels = draw(m, 1, 17);
        EW_TRY(branch_conv(m, x, channels, 1, &part[i]));
        if (chance(m, 2))
            continue;
        const int from = part[i];
        EW_TRY(branch_conv(m, from, channels, chance(m, 2) ? 1 : 3, &more));
        const struct ew_inputs both = chance(m, 2) ? EW_INPUTS(from, more) : EW_INPUTS(more, from);
        EW_TRY(ew_graph_add(m->g, ew_op_find("add"), NULL, NULL, both, &part[i]));
    }
    return add(m, "concat", &(struct ew_concat_attr){.axis = -1}, part, n);
}

/* ---- Data movement ---- */

static ew_err add_resize(struct builder *m)
{
    static const int modes[] = {EW_RESIZE_NEAREST, EW_RESIZE_LINEAR, EW_RESIZE_CUBIC};
    static const int coordinates[] = {EW_RESIZE_HALF_PIXEL, EW_RESIZE_ASYMMETRIC,
                                      EW_RESIZE_ALIGN_CORNERS, EW_RESIZE_PYTORCH_HALF_PIXEL};
    int in[] = {pick(m), -1, -1, -1};
    const struct ew_shape *s = shape_of(m, in[0]);
    const struct ew_resize_attr a = {.mode = modes[draw(m, 0, chance(m, 4) ? 2 : 1)],
                                     .coordinate = coordinates[draw(m, 0, 3)],
                                     .round = EW_RESIZE_FLOOR,
                                     .cubic_a = -0.75};
    const int64_t sizes[] = {s->dim[0], draw(m, 1, 2 * s->dim[1]), draw(m, 1, 2 * s->dim[2]),
                             s->dim[3]};
    const struct ew_resize_attr some = {.mode = a.mode,
                                        .coordinate = a.coordinate,
                                        .round = a.round,
                                        .cubic_a = a.cubic_a,
                                        .axes = {2, {1, 2}}};
    /* Independent of the batch.  Nearest neighbours at ratios like 1/3 depend on the last bit of a
     * float. */
    if (chance(m, 2) && a.mode != EW_RESIZE_NEAREST) {
        EW_TRY(ew_graph_const_ints(m->g, NULL, &sizes[1], 2, &in[3]));
        return add(m, "resize", &some, in, 4);
    }
    /* Implementations disagree on the corners of a fractional size. */
    if (a.coordinate == EW_RESIZE_ALIGN_CORNERS)
        return EW_OK;
    float scales[] = {1, (float)draw(m, 1, 4) / 2, (float)draw(m, 1, 4) / 2, 1};
    if ((float)s->dim[1] * scales[1] < 1 || (float)s->dim[2] * scales[2] < 1)
        return EW_OK;
    const struct ew_tensor t = {.dtype = EW_F32, .shape = {1, {4}}, .data = scales};
    EW_TRY(ew_graph_const(m->g, NULL, EW_VALUE_CONST, &t, true, &in[2]));
    return add(m, "resize", &a, in, 3);
}

static ew_err add_transpose(struct builder *m)
{
    static const struct ew_transpose_attr perms[] = {{.perm = {4, {0, 2, 1, 3}}},
                                                     {.perm = {4, {0, 3, 1, 2}}},
                                                     {.perm = {4, {0, 2, 3, 1}}},
                                                     {.perm = {4, {0, 1, 3, 2}}}};
    const int x = pick(m);
    return add(m, "transpose", &perms[draw(m, 0, 3)], &x, 1);
}

static ew_err add_pad(struct builder *m)
{
    int in[] = {pick(m), -1};
    int64_t pads[8] = {0};
    for (int i = 1; i < 3; i++) {
        pads[i] = draw(m, 0, 2);
        pads[i + 4] = draw(m, 0, 2);
    }
    EW_TRY(ew_graph_const_ints(m->g, NULL, pads, 8, &in[1]));
    return add(m, "pad", NULL, in, 2);
}

static ew_err add_slice(struct builder *m)
{
    int in[] = {pick(m), -1, -1, -1, -1};
    const int64_t axis = draw(m, 1, 3), size = shape_of(m, in[0])->dim[axis];
    const int64_t start = draw(m, 0, size - 1), end = draw(m, start + 1, size);
    EW_TRY(ew_graph_const_ints(m->g, NULL, &start, 1, &in[1]));
    EW_TRY(ew_graph_const_ints(m->g, NULL, &end, 1, &in[2]));
    EW_TRY(ew_graph_const_ints(m->g, NULL, &axis, 1, &in[3]));
    EW_TRY(ew_graph_const_ints(m->g, NULL, &(int64_t){draw(m, 1, 2)}, 1, &in[4]));
    return add(m, "slice", NULL, in, 5);
}

static ew_err add_gather(struct builder *m)
{
    int in[] = {pick(m), -1};
    const struct ew_gather_attr a = {.axis = draw(m, 1, 3)};
    const int64_t size = shape_of(m, in[0])->dim[a.axis];
    int64_t list[6];
    const int n = (int)draw(m, 1, 6);
    for (int i = 0; i < n; i++)
        list[i] = draw(m, 0, size - 1);
    EW_TRY(ew_graph_const_ints(m->g, NULL, list, n, &in[1]));
    return add(m, "gather", &a, in, 2);
}

static ew_err add_quantiser(struct builder *m)
{
    int in[] = {pick(m), -1, -1};
    const enum ew_dtype dtype = chance(m, 2) ? EW_U8 : EW_S8;
    const int64_t zero = dtype == EW_U8 ? draw(m, 96, 160) : draw(m, -32, 32);
    uint8_t byte = 0;
    struct ew_tensor t = {.dtype = dtype, .data = &byte};
    ew_tensor_store_int(&t, 0, 1, &zero);
    const struct ew_quant_attr a = {.axis = 1, .dtype = (int)dtype};
    EW_TRY(ew_graph_const_float(m->g, NULL, 0.03f, &in[1]));
    EW_TRY(ew_graph_const(m->g, NULL, EW_VALUE_CONST, &t, true, &in[2]));
    EW_TRY(ew_graph_add(m->g, ew_op_find("quantize_linear"), NULL, &a, ew_inputs(in, 3), in));
    return add(m, "dequantize_linear", &a, in, 3);
}

/* ---- Graph ---- */

static ew_err add_something(struct builder *m)
{
    static ew_err (*const kinds[])(struct builder *) = {
        add_conv, add_conv,  add_conv,   add_norm,      add_activation, add_activation,
        add_pool, add_pair,  add_pair,   add_concat,    add_branches,   add_resize,
        add_pad,  add_slice, add_gather, add_transpose, add_quantiser};
    ew_err (*const kind)(struct builder *) = kinds[draw(m, 0, (int64_t)EW_COUNT(kinds) - 1)];
    if (kind == add_quantiser && (m->o->no_quant || m->o->trainable))
        return EW_OK;
    const int before = m->n_values;
    EW_TRY(kind(m));
    /* Values that are too large may be outputs, but are not read on. */
    if (m->n_values > before &&
        ew_shape_count(shape_of(m, m->values[m->n_values - 1])) > MOST_ELEMENTS)
        m->n_values--;
    return EW_OK;
}

static ew_err add_outputs(struct builder *m)
{
    if (m->o->trainable)
        return add_dense_part(m);
    EW_TRY(ew_graph_output(m->g, m->values[m->n_values - 1]));
    for (int i = (int)draw(m, 0, 3); i > 0; i--) {
        const int v = pick(m);
        bool again = m->g->values[v].kind != EW_VALUE_ACT;
        for (int k = 0; k < m->g->n_outputs; k++)
            again |= m->g->outputs[k] == v;
        if (!again)
            EW_TRY(ew_graph_output(m->g, v));
    }
    return chance(m, 4) ? add_dense_part(m) : EW_OK;
}

static ew_err make(struct builder *m)
{
    const int nodes = m->o->nodes ? m->o->nodes : (int)draw(m, 1, 30);
    const struct ew_shape s = {
        4, {draw(m, 1, 5), draw(m, 1, 13), draw(m, 1, 13), draw(m, 1, chance(m, 2) ? 4 : 20)}};
    int x;
    EW_TRY(ew_graph_input(m->g, "x", EW_F32, &s, &x));
    m->g->values[x].dynamic = 1;
    EW_TRY(keep(m, x));
    if (chance(m, 4)) {
        EW_TRY(ew_graph_input(m->g, "z", EW_F32, &s, &x));
        m->g->values[x].dynamic = 1;
        EW_TRY(keep(m, x));
    }
    EW_TRY(add_conv(m));
    while (m->g->n_nodes < nodes)
        EW_TRY(add_something(m));
    EW_TRY(m->n_values > 1 ? EW_OK : add_activation(m));
    EW_TRY(add_outputs(m));
    EW_TRY(ew_graph_sweep(m->g));
    return ew_graph_infer(m->g);
}

ew_err ew_random_graph(const struct ew_random_graph *o, struct ew_graph **out)
{
    struct builder m = {.o = o, .rng = {.seed = o->seed}};
    EW_TRY(ew_graph_new("random", &m.g));
    const ew_err e = make(&m);
    if (e != EW_OK)
        ew_graph_free(m.g);
    else
        *out = m.g;
    return e;
}

bool ew_random_graph_quantises(const struct ew_graph *g)
{
    for (int k = 0; k < g->n_nodes; k++)
        if (strcmp(g->nodes[k].op->name, "quantize_linear") == 0)
            return true;
    return false;
}

void ew_random_graph_print(const struct ew_graph *g, FILE *to)
{
    char text[EW_SHAPE_TEXT];
    for (int k = 0; k < g->n_nodes; k++) {
        const struct ew_node *n = &g->nodes[k];
        fprintf(to, "  %s (", n->op->name);
        for (int i = 0; i < n->n_in; i++)
            fprintf(to, "%s%s %s", i ? ", " : "", n->in[i] < 0 ? "-" : g->values[n->in[i]].name,
                    n->in[i] < 0 ? "" : ew_shape_text(&g->values[n->in[i]].t.shape, text));
        fprintf(to, ") -> %s %s\n", g->values[n->out[0]].name,
                ew_shape_text(&g->values[n->out[0]].t.shape, text));
    }
    for (int i = 0; i < g->n_outputs; i++)
        fprintf(to, "  output %s\n", g->values[g->outputs[i]].name);
}
