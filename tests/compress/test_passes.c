/* SPDX-License-Identifier: Apache-2.0 */
/* Every pass leaves the outputs of every network of the zoo unchanged, and has its intended
 * effect. */
#include "compress/pass.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "edgewise.h"
#include "ew_test.h"
#include "graph/layout.h"
#include "op/conv.h"
#include "op/norm.h"
#include "plan/plan.h"
#include "run_graph.h"

static struct ew_graph *build(const char *name)
{
    struct ew_graph *g = ew_small_network(name);
    if (!EW_EXPECT(g))
        return NULL;
    /* Running statistics other than the initial ones, so that folding has an effect. */
    for (int v = 0; v < g->n_values; v++) {
        const struct ew_value *s = &g->values[v];
        for (int64_t i = 0; s->kind == EW_VALUE_STATE && i < ew_tensor_count(&s->t); i++)
            ((float *)s->t.data)[i] += 0.3f * sinf((float)i) * sinf((float)i);
    }
    return g;
}

/* Folding changes the order of roundings: 1e-4 of the largest output. */
static void expect_same_output(struct ew_plan *a, struct ew_plan *b, int i)
{
    const struct ew_tensor *x = ew_plan_output(a, i), *y = ew_plan_output(b, i);
    double most = 0;
    for (int64_t k = 0; k < ew_tensor_count(x); k++)
        most = fmax(most, fabs(ew_tensor_get(x, k)));
    EW_EXPECT_CLOSE((const float *)y->data, (const float *)x->data, (size_t)ew_tensor_count(x), 0,
                    1e-4 * most);
}

static void expect_same(struct ew_plan *a, struct ew_plan *b)
{
    expect_same_output(a, b, 0);
}

static int count(const struct ew_graph *g, const char *op)
{
    int n = 0;
    for (int k = 0; k < g->n_nodes; k++)
        n += strcmp(g->nodes[k].op->name, op) == 0;
    return n;
}

/* x, padded by `pads` (NHWC), into a 3x3 convolution with stride 2; through a transpose from NCHW
 * if `turned`. */
static struct ew_graph *padded(const int64_t *pads, bool turned, float value)
{
    struct ew_graph *g = NULL;
    const struct ew_shape in = {4, {2, turned ? 3 : 9, turned ? 9 : 8, turned ? 8 : 3}};
    const struct ew_shape filters = {4, {4, 3, 3, 3}};
    static float w[4 * 27];
    int64_t p[8];
    int ids[4], y;
    for (int i = 0; i < 4 * 27; i++)
        w[i] = cosf((float)i);
    static const int axis[] = {0, 3, 1, 2}; /* NHWC axis of each NCHW axis */
    for (int i = 0; i < 4; i++) {
        p[i] = pads[turned ? axis[i] : i];
        p[i + 4] = pads[4 + (turned ? axis[i] : i)];
    }
    EW_EXPECT_OK(ew_graph_new("padded", &g));
    EW_EXPECT_OK(ew_graph_input(g, "x", EW_F32, &in, &ids[0]));
    EW_EXPECT_OK(ew_graph_const_ints(g, "pads", p, 8, &ids[1]));
    EW_EXPECT_OK(ew_graph_const_float(g, "value", value, &ids[2]));
    EW_EXPECT_OK(ew_graph_add(g, ew_op_find("pad"), "pad", NULL, ew_inputs(ids, 3), &y));
    const struct ew_transpose_attr to_last = {.perm = {4, {0, 2, 3, 1}}};
    if (turned)
        EW_EXPECT_OK(ew_graph_add(g, ew_op_find("transpose"), "t", &to_last, EW_INPUTS(y), &y));
    const struct ew_tensor t = {.dtype = EW_F32, .shape = filters, .data = w};
    ids[0] = y;
    EW_EXPECT_OK(ew_graph_const(g, "w", EW_VALUE_PARAM, &t, true, &ids[1]));
    const struct ew_conv_attr conv = {.win = {.stride = {2, {2, 2}}, .pad = {4, {0, 1, 0, 0}}},
                                      .groups = 1};
    EW_EXPECT_OK(ew_graph_add(g, ew_op_find("conv"), "c", &conv, ew_inputs(ids, 2), &y));
    EW_EXPECT_OK(ew_graph_output(g, y));
    return g;
}

/* Regression: a MobileNetV2 from TensorFlow took 20 times as long to train as the zoo's, since its
 * pads had no kernel. */
static void pads_become_the_convolutions_own(void)
{
    static const struct {
        int64_t pads[8];
        float value;
        bool goes;
    } cases[] = {{{0, 0, 0, 0, 0, 1, 1, 0}, 0, true},
                 {{0, 2, 1, 0, 0, 1, 3, 0}, 0, true},
                 {{0, 1, 1, 0, 0, 1, 1, 0}, 1, false},
                 {{0, -1, 0, 0, 0, 0, 0, 0}, 0, false},
                 {{1, 0, 0, 0, 0, 0, 0, 0}, 0, false}};
    for (size_t i = 0; i < EW_COUNT(cases); i++)
        for (int turned = 0; turned < 2; turned++) {
            struct ew_graph *a = padded(cases[i].pads, turned, cases[i].value);
            struct ew_graph *b = padded(cases[i].pads, turned, cases[i].value);
            EW_EXPECT_OK(ew_pass_fold_pad(b));
            EW_EXPECT_INT(count(b, "pad"), !cases[i].goes);
            struct ew_plan *p = ew_run_sine(a, true), *q = ew_run_sine(b, true);
            if (p && q)
                expect_same(p, q);
            ew_plan_free(p);
            ew_plan_free(q);
            ew_graph_free(a);
            ew_graph_free(b);
        }
}

/* A convolution, then a product, a sum and a product with constants of shape `row`.  `shared`: a
 * second convolution reads the filters. */
static struct ew_graph *scaled(const struct ew_shape *row, bool bias, bool shared)
{
    struct ew_graph *g = NULL;
    const struct ew_shape in = {4, {2, 5, 6, 3}}, filters = {4, {4, 3, 3, 3}}, four = {1, {4}};
    float w[4 * 27], r[5 * 6 * 4];
    int ids[3], x, y, c, d = -1;
    for (int i = 0; i < 4 * 27; i++)
        w[i] = cosf((float)i);
    for (int i = 0; i < 5 * 6 * 4; i++)
        r[i] = 1.5F + sinf((float)i);
    EW_EXPECT_OK(ew_graph_new("scaled", &g));
    EW_EXPECT_OK(ew_graph_input(g, "x", EW_F32, &in, &x));
    const struct ew_tensor t = {.dtype = EW_F32, .shape = filters, .data = w};
    const struct ew_tensor b = {.dtype = EW_F32, .shape = four, .data = r + 7};
    ids[0] = x;
    EW_EXPECT_OK(ew_graph_const(g, "w", EW_VALUE_PARAM, &t, true, &ids[1]));
    EW_EXPECT_OK(ew_graph_const(g, "b", EW_VALUE_PARAM, &b, true, &ids[2]));
    const struct ew_conv_attr conv = {.win = {.pad = {4, {1, 1, 1, 1}}}, .groups = 1};
    const int n_in = bias ? 3 : 2;
    EW_EXPECT_OK(ew_graph_add(g, ew_op_find("conv"), "c", &conv, ew_inputs(ids, n_in), &y));
    if (shared)
        EW_EXPECT_OK(ew_graph_add(g, ew_op_find("conv"), "d", &conv, ew_inputs(ids, 2), &d));
    const struct ew_tensor s = {.dtype = EW_F32, .shape = *row, .data = r};
    EW_EXPECT_OK(ew_graph_const(g, "s", EW_VALUE_PARAM, &s, true, &c));
    ids[0] = y;
    ids[1] = c;
    EW_EXPECT_OK(ew_graph_add(g, ew_op_find("mul"), "m", NULL, ew_inputs(ids, 2), &ids[1]));
    ids[0] = c;
    EW_EXPECT_OK(ew_graph_add(g, ew_op_find("add"), "a", NULL, ew_inputs(ids, 2), &ids[0]));
    ids[1] = c;
    EW_EXPECT_OK(ew_graph_add(g, ew_op_find("mul"), "n", NULL, ew_inputs(ids, 2), &y));
    EW_EXPECT_OK(ew_graph_output(g, y));
    if (shared)
        EW_EXPECT_OK(ew_graph_output(g, d));
    return g;
}

static void scales_go_into_filters(void)
{
    static const struct {
        struct ew_shape row;
        bool goes;
    } cases[] = {{{0, {0}}, true},          {{1, {1}}, true},          {{1, {4}}, true},
                 {{4, {1, 1, 1, 4}}, true}, {{4, {1, 1, 1, 1}}, true}, {{3, {5, 1, 1}}, false},
                 {{3, {5, 6, 4}}, false},   {{2, {6, 1}}, false}};
    for (size_t i = 0; i < EW_COUNT(cases); i++)
        for (int k = 0; k < 4; k++) {
            struct ew_graph *a = scaled(&cases[i].row, k & 1, k & 2);
            struct ew_graph *b = scaled(&cases[i].row, k & 1, k & 2);
            EW_EXPECT_OK(ew_pass_fold_scale(b));
            EW_EXPECT_INT(count(b, "mul") + count(b, "add"), cases[i].goes ? 0 : 3);
            struct ew_plan *p = ew_run_sine(a, true), *q = ew_run_sine(b, true);
            for (int o = 0; p && q && o < a->n_outputs; o++)
                expect_same_output(p, q, o);
            ew_plan_free(p);
            ew_plan_free(q);
            ew_graph_free(a);
            ew_graph_free(b);
        }
}

/* A norm with `entries` of scale and bias, then a product and a sum with [4]. */
static struct ew_graph *scaled_norm(const char *op, int64_t groups, int64_t entries)
{
    struct ew_graph *g = NULL;
    const struct ew_shape in = {4, {2, 5, 6, 4}}, each = {1, {entries}}, four = {1, {4}};
    float r[] = {1.5F, -2, 0.25F, 3, 0.5F, -1, 2};
    const struct ew_tensor s = {.dtype = EW_F32, .shape = each, .data = r};
    const struct ew_tensor row = {.dtype = EW_F32, .shape = four, .data = r + 2};
    const struct ew_group_norm_attr attr = {.eps = 1e-3, .groups = groups};
    int ids[3], c, y;
    EW_EXPECT_OK(ew_graph_new("scaled", &g));
    EW_EXPECT_OK(ew_graph_input(g, "x", EW_F32, &in, &ids[0]));
    EW_EXPECT_OK(ew_graph_const(g, "s", EW_VALUE_PARAM, &s, true, &ids[1]));
    EW_EXPECT_OK(ew_graph_const(g, "b", EW_VALUE_PARAM, &s, true, &ids[2]));
    EW_EXPECT_OK(ew_graph_add(g, ew_op_find(op), "norm", &attr, ew_inputs(ids, 3), &y));
    EW_EXPECT_OK(ew_graph_const(g, "row", EW_VALUE_PARAM, &row, true, &c));
    EW_EXPECT_OK(ew_graph_add(g, ew_op_find("mul"), "m", NULL, EW_INPUTS(c, y), &y));
    EW_EXPECT_OK(ew_graph_add(g, ew_op_find("add"), "a", NULL, EW_INPUTS(y, c), &y));
    EW_EXPECT_OK(ew_graph_output(g, y));
    return g;
}

/* Exporters write group norms with ones and zeros for each group, and the weights behind. */
static void scales_go_into_norms(void)
{
    static const struct {
        const char *op;
        int64_t groups, entries;
    } cases[] = {{"group_norm", 2, 2}, {"group_norm", 2, 4}, {"instance_norm", 4, 4}};
    for (size_t i = 0; i < EW_COUNT(cases); i++) {
        struct ew_graph *a = scaled_norm(cases[i].op, cases[i].groups, cases[i].entries);
        struct ew_graph *b = scaled_norm(cases[i].op, cases[i].groups, cases[i].entries);
        EW_EXPECT_OK(ew_pass_fold_scale(b));
        EW_EXPECT_INT(b->n_nodes, 1);
        struct ew_plan *p = ew_run_sine(a, true), *q = ew_run_sine(b, true);
        if (p && q)
            expect_same(p, q);
        ew_plan_free(p);
        ew_plan_free(q);
        ew_graph_free(a);
        ew_graph_free(b);
    }
}

/* As after a run of all passes, which give the convolution an activation. */
static void scales_after_activations_stay(void)
{
    const struct ew_shape row = {1, {4}};
    struct ew_graph *g = scaled(&row, true, false);
    struct ew_conv_attr relu = *(const struct ew_conv_attr *)g->nodes[0].attr;
    relu.end.act = EW_ACT_RELU;
    g->nodes[0].attr = &relu;
    EW_EXPECT_OK(ew_pass_fold_scale(g));
    EW_EXPECT_INT(count(g, "mul") + count(g, "add"), 3);
    ew_graph_free(g);
}

static struct ew_graph *transposed(const struct ew_conv_transpose_attr *attr, int kernel,
                                   int outputs)
{
    struct ew_graph *g = NULL;
    const struct ew_shape in = {4, {2, 5, 6, 3}}, filters = {4, {3, kernel, kernel, outputs}};
    float w[3 * 9 * 9 * 4];
    int ids[3], y;
    for (size_t i = 0; i < EW_COUNT(w); i++)
        w[i] = cosf((float)i);
    EW_EXPECT_OK(ew_graph_new("transposed", &g));
    EW_EXPECT_OK(ew_graph_input(g, "x", EW_F32, &in, &ids[0]));
    const struct ew_tensor t = {.dtype = EW_F32, .shape = filters, .data = w};
    const struct ew_tensor b = {.dtype = EW_F32, .shape = {1, {outputs}}, .data = w + 3};
    EW_EXPECT_OK(ew_graph_const(g, "w", EW_VALUE_PARAM, &t, true, &ids[1]));
    EW_EXPECT_OK(ew_graph_const(g, "b", EW_VALUE_PARAM, &b, true, &ids[2]));
    EW_EXPECT_OK(ew_graph_add(g, ew_op_find("conv_transpose"), "t", attr,
                              ew_inputs(ids, outputs == 1 ? 2 : 3), &y));
    EW_EXPECT_OK(ew_graph_output(g, y));
    return g;
}

static void transposed_convolutions_become_convolutions(void)
{
    static const struct {
        int kernel, stride, outputs;
        int64_t pads[4], more[2]; /* output_padding */
        bool goes;
        int64_t dilation;
    } cases[] = {{9, 2, 1, {4, 4, 4, 4}, {1, 1}, true},    {2, 2, 3, {0, 0, 0, 0}, {0, 0}, true},
                 {4, 2, 1, {1, 1, 1, 1}, {0, 0}, true},    {4, 2, 4, {1, 1, 1, 1}, {0, 0}, false},
                 {5, 2, 2, {2, 1, 1, 2}, {0, 0}, true},    {6, 3, 1, {1, 0, 2, 3}, {0, 0}, true},
                 {8, 4, 1, {2, 2, 2, 2}, {0, 0}, true},    {3, 2, 1, {1, 1, 1, 1}, {0, 0}, false},
                 {3, 1, 1, {1, 1, 1, 1}, {0, 0}, false},   {7, 3, 2, {2, 2, 2, 2}, {0, 0}, true},
                 {8, 4, 1, {2, 2, 2, 2}, {1, 1}, false, 2}};
    for (size_t i = 0; i < EW_COUNT(cases); i++) {
        const int64_t *p = cases[i].pads, s = cases[i].stride;
        const int64_t d = cases[i].dilation ? cases[i].dilation : 1;
        const struct ew_conv_transpose_attr attr = {
            .win = {.stride = {2, {s, s}},
                    .dilation = {2, {d, d}},
                    .pad = {4, {p[0], p[1], p[2], p[3]}}},
            .groups = 1,
            .output_padding = {2, {cases[i].more[0], cases[i].more[1]}}};
        struct ew_graph *a = transposed(&attr, cases[i].kernel, cases[i].outputs);
        struct ew_graph *b = transposed(&attr, cases[i].kernel, cases[i].outputs);
        EW_EXPECT_OK(ew_pass_transposed_conv(b));
        EW_EXPECT_OK(ew_graph_check(b));
        EW_EXPECT_INT(count(b, "conv_transpose"), !cases[i].goes);
        EW_EXPECT_INT(count(b, "conv"), cases[i].goes);
        struct ew_plan *x = ew_run_sine(a, true), *y = ew_run_sine(b, true);
        if (x && y)
            expect_same(x, y);
        ew_plan_free(x);
        ew_plan_free(y);
        ew_graph_free(a);
        ew_graph_free(b);
    }
}

static ew_err equalize(struct ew_graph *g)
{
    return ew_pass_equalize(g, &(struct ew_equalize_opts){.rounds = 1});
}

static const struct {
    const char *name;
    ew_err (*run)(struct ew_graph *g);
} passes[] = {{"fold_constants", ew_pass_fold_constants},
              {"drop_identity", ew_pass_drop_identity},
              {"fold_batch_norm", ew_pass_fold_batch_norm},
              {"fold_flatten", ew_pass_fold_flatten},
              {"fold_scale", ew_pass_fold_scale},
              {"fuse_epilogue", ew_pass_fuse_epilogue},
              {"equalize", equalize},
              {"all", ew_pass_all}};

static void check_network(const char *name)
{
    struct ew_graph *g = build(name);
    struct ew_plan *want = g ? ew_run_sine(g, true) : NULL;
    for (size_t i = 0; want && i < EW_COUNT(passes); i++) {
        ew_test_begin("%s: %s", passes[i].name, name);
        struct ew_graph *copy = NULL;
        if (EW_EXPECT_OK(ew_graph_clone(g, &copy)) && EW_EXPECT_OK(passes[i].run(copy))) {
            EW_EXPECT_OK(ew_graph_check(copy));
            EW_EXPECT(copy->n_nodes <= g->n_nodes);
            struct ew_plan *got = ew_run_sine(copy, true);
            if (got)
                expect_same(want, got);
            ew_plan_free(got);
        }
        ew_graph_free(copy);
        ew_test_end();
    }
    ew_plan_free(want);
    ew_graph_free(g);
}

/* The remaining nodes of a ResNet: convolutions with fused epilogues, two pools, the dense
 * layer. */
static void resnet_is_convolutions(void)
{
    struct ew_graph *g = build("resnet18");
    if (!g || !EW_EXPECT_OK(ew_pass_all(g)))
        return;
    EW_EXPECT_INT(count(g, "conv"), 20);
    EW_EXPECT_INT(count(g, "batch_norm"), 0);
    EW_EXPECT_INT(count(g, "relu"), 0);
    EW_EXPECT_INT(count(g, "add"), 0);
    EW_EXPECT_INT(g->n_nodes, 20 + 4);
    ew_graph_free(g);
}

static void mobilenet_has_no_activation_left(void)
{
    struct ew_graph *g = build("mobilenet_v2");
    if (!g || !EW_EXPECT_OK(ew_pass_all(g)))
        return;
    EW_EXPECT_INT(count(g, "clip"), 0);
    EW_EXPECT_INT(count(g, "add"), 0);
    EW_EXPECT_INT(count(g, "dropout"), 0);
    ew_graph_free(g);
}

/* A batch norm before a convolution cannot be folded, but its activation is fused. */
static void densenet_has_no_activation_left(void)
{
    struct ew_graph *g = build("densenet121");
    if (!g || !EW_EXPECT_OK(ew_pass_all(g)))
        return;
    EW_EXPECT(count(g, "batch_norm") > 0);
    EW_EXPECT_INT(count(g, "relu"), 0);
    ew_graph_free(g);
}

static void vgg_has_no_transpose_left(void)
{
    struct ew_graph *g = build("vgg11");
    if (!g || !EW_EXPECT_OK(ew_pass_all(g)))
        return;
    EW_EXPECT_INT(count(g, "transpose"), 0);
    ew_graph_free(g);
}

/* SqueezeNet's parallel 1x1 and 3x3 convolutions are joined if the added zeros may cost that much,
 * else not. */
static void branches_become_one_convolution(void)
{
    struct ew_graph *g = build("squeezenet1_1"), *kept = NULL, *joined = NULL;
    struct ew_plan *want = g ? ew_run_sine(g, true) : NULL;
    if (want && EW_EXPECT_OK(ew_graph_clone(g, &kept)) && EW_EXPECT_OK(ew_pass_all(kept)) &&
        EW_EXPECT_OK(ew_graph_clone(kept, &joined))) {
        EW_EXPECT_OK(ew_pass_join_convs(kept, 0));
        EW_EXPECT_INT(count(kept, "concat"), 8);
        EW_EXPECT_INT(count(kept, "conv"), 26);
        EW_EXPECT_OK(ew_pass_join_convs(joined, INT64_MAX));
        EW_EXPECT_OK(ew_graph_check(joined));
        EW_EXPECT_INT(count(joined, "concat"), 0);
        EW_EXPECT_INT(count(joined, "conv"), 18);
        struct ew_plan *got = ew_run_sine(joined, true);
        if (got)
            expect_same(want, got);
        ew_plan_free(got);
    }
    ew_plan_free(want);
    ew_graph_free(joined);
    ew_graph_free(kept);
    ew_graph_free(g);
}

/* At 32x32 the last stage works on one pixel: only the centres of its 3x3 filters remain. */
static void one_pixel_leaves_one_tap(void)
{
    struct ew_model_opts o = {.size = sizeof(o), .height = 32, .width = 32};
    struct ew_graph *g = NULL;
    if (!EW_EXPECT_OK(ew_model_build("resnet18", &o, &g)) ||
        !EW_EXPECT_OK(ew_model_init("resnet18", 1, g)) || !EW_EXPECT_OK(ew_pass_all(g)))
        return;
    int64_t most = 0, weights = 0;
    for (int k = 0; k < g->n_nodes; k++) {
        if (strcmp(g->nodes[k].op->name, "conv") != 0)
            continue;
        const struct ew_shape *w = &g->values[g->nodes[k].in[1]].t.shape;
        const int64_t pixels = g->values[g->nodes[k].in[0]].t.shape.dim[1];
        most = pixels == 1 && w->dim[1] > most ? w->dim[1] : most;
        weights += ew_shape_count(w);
    }
    EW_EXPECT_INT(most, 1);
    EW_EXPECT(weights < 5000000); /* of 11 million */
    ew_graph_free(g);
}

/* Ratio of largest to smallest peak of the channels that the second convolution of VGG reads. */
static double spread(const struct ew_graph *g, int conv)
{
    int seen = 0;
    for (int k = 0; k < g->n_nodes; k++) {
        if (strcmp(g->nodes[k].op->name, "conv") != 0 || seen++ != conv)
            continue;
        const struct ew_tensor *w = &g->values[g->nodes[k].in[1]].t;
        const int64_t n = w->shape.dim[0], each = ew_tensor_count(w) / n;
        double least = INFINITY, most = 0;
        for (int64_t o = 0; o < n; o++) {
            double top = 0;
            for (int64_t i = 0; i < each; i++)
                top = fmax(top, fabs(ew_tensor_get(w, o * each + i)));
            least = fmin(least, top);
            most = fmax(most, top);
        }
        return most / least;
    }
    return 0;
}

/* Filters whose magnitudes differ by 100 are within a factor of about ten afterwards: half of the
 * difference, on a logarithmic scale, moves to the filters that read them. */
static void equalize_shares_the_difference(void)
{
    struct ew_graph *g = build("vgg11_cifar");
    if (!g || !EW_EXPECT_OK(ew_pass_fold_batch_norm(g)))
        return;
    const struct ew_tensor *w = NULL;
    for (int k = 0; k < g->n_nodes && !w; k++)
        if (strcmp(g->nodes[k].op->name, "conv") == 0)
            w = &g->values[g->nodes[k].in[1]].t;
    if (!EW_EXPECT(w))
        return;
    const int64_t n = w->shape.dim[0], each = ew_tensor_count(w) / n;
    for (int64_t o = 0; o < n; o += 2)
        for (int64_t i = 0; i < each; i++)
            ((float *)w->data)[o * each + i] *= 100;
    EW_EXPECT(spread(g, 0) > 50);
    EW_EXPECT_OK(ew_pass_equalize(g, &(struct ew_equalize_opts){.rounds = 1}));
    EW_EXPECT(spread(g, 0) < 30);
    ew_graph_free(g);
}

/* Regression: an output behind an identity was renamed to the identity's input: engines and int8
 * files did not find "logits".  Two outputs with one value keep both names. */
static void outputs_keep_their_names(void)
{
    static const char *const names[] = {"logits", "copy"};
    const struct ew_shape shape = {2, {1, 4}};
    struct ew_graph *g = NULL;
    int x, y, z;
    EW_EXPECT_OK(ew_graph_new("named", &g));
    EW_EXPECT_OK(ew_graph_input(g, "x", EW_F32, &shape, &x));
    EW_EXPECT_OK(ew_graph_add(g, ew_op_find("relu"), "r", NULL, EW_INPUTS(x), &y));
    for (int i = 0; i < 2; i++) {
        EW_EXPECT_OK(ew_graph_add(g, ew_op_find("identity"), names[i], NULL, EW_INPUTS(y), &z));
        EW_EXPECT_OK(ew_graph_rename(g, z, names[i]));
        EW_EXPECT_OK(ew_graph_output(g, z));
    }
    EW_EXPECT_OK(ew_pass_drop_identity(g));
    EW_EXPECT_INT(g->n_nodes, 2);
    for (int i = 0; i < 2; i++)
        EW_EXPECT_STR(g->values[g->outputs[i]].name, names[i]);
    ew_graph_free(g);
}

/* x [2, 5, 6] times a matrix, plus a row, gelu, plus x after another product: as in a transformer
 * block.  `left`: the row is the left operand. */
static struct ew_graph *perceptron(bool left)
{
    const struct ew_shape xs = {3, {2, 5, 6}}, rows[] = {{3, {1, 1, 8}}, {1, {6}}};
    const struct ew_shape mats[] = {{2, {6, 8}}, {2, {8, 6}}};
    static float w[48];
    struct ew_graph *g = NULL;
    int x, y, in[2];
    for (int i = 0; i < 48; i++)
        w[i] = cosf((float)i);
    EW_EXPECT_OK(ew_graph_new("perceptron", &g));
    EW_EXPECT_OK(ew_graph_input(g, "x", EW_F32, &xs, &x));
    y = x;
    for (int i = 0; i < 2; i++) {
        const struct ew_tensor m = {.dtype = EW_F32, .shape = mats[i], .data = w};
        const struct ew_tensor b = {.dtype = EW_F32, .shape = rows[i], .data = w + 3};
        in[0] = y;
        EW_EXPECT_OK(ew_graph_const(g, "w", EW_VALUE_PARAM, &m, true, &in[1]));
        EW_EXPECT_OK(ew_graph_add(g, ew_op_find("matmul"), "m", NULL, ew_inputs(in, 2), &in[left]));
        EW_EXPECT_OK(ew_graph_const(g, "b", EW_VALUE_PARAM, &b, true, &in[!left]));
        EW_EXPECT_OK(ew_graph_add(g, ew_op_find("add"), "a", NULL, ew_inputs(in, 2), &y));
        if (i == 0)
            EW_EXPECT_OK(ew_graph_add(g, ew_op_find("gelu"), "g", NULL, EW_INPUTS(y), &y));
    }
    EW_EXPECT_OK(ew_graph_add(g, ew_op_find("add"), "r", NULL, EW_INPUTS(x, y), &y));
    EW_EXPECT_OK(ew_graph_rename(g, y, "logits"));
    EW_EXPECT_OK(ew_graph_output(g, y));
    return g;
}

static void a_perceptron_is_two_convolutions(void)
{
    for (int left = 0; left < 2; left++) {
        struct ew_graph *a = perceptron(left), *b = perceptron(left);
        EW_EXPECT_OK(ew_pass_all(b));
        EW_EXPECT_INT(b->n_nodes, 2);
        EW_EXPECT_INT(count(b, "conv"), 2);
        EW_EXPECT_STR(b->values[b->outputs[0]].name, "logits");
        struct ew_plan *p = ew_run_sine(a, true), *q = ew_run_sine(b, true);
        struct ew_plan *fast = ew_run_sine(a, false);
        if (p && q && fast) {
            expect_same(p, q);
            expect_same(p, fast);
        }
        ew_plan_free(p);
        ew_plan_free(q);
        ew_plan_free(fast);
        ew_graph_free(a);
        ew_graph_free(b);
    }
}

static const struct ew_test tests[] = {EW_TEST(equalize_shares_the_difference),
                                       EW_TEST(resnet_is_convolutions),
                                       EW_TEST(mobilenet_has_no_activation_left),
                                       EW_TEST(densenet_has_no_activation_left),
                                       EW_TEST(vgg_has_no_transpose_left),
                                       EW_TEST(one_pixel_leaves_one_tap),
                                       EW_TEST(pads_become_the_convolutions_own),
                                       EW_TEST(scales_go_into_filters),
                                       EW_TEST(scales_go_into_norms),
                                       EW_TEST(scales_after_activations_stay),
                                       EW_TEST(transposed_convolutions_become_convolutions),
                                       EW_TEST(outputs_keep_their_names),
                                       EW_TEST(a_perceptron_is_two_convolutions),
                                       EW_TEST(branches_become_one_convolution)};

int main(int argc, char **argv)
{
    for (size_t i = 0; i < EW_COUNT(tests); i++) {
        ew_test_begin("%s", tests[i].name);
        tests[i].run();
        ew_test_end();
    }
    /* One network of each family, and those that a pass affects most. */
    static const char *const names[] = {"lenet5",
                                        "alexnet",
                                        "vgg11",
                                        "resnet18",
                                        "resnext50_32x4d",
                                        "preact_resnet18",
                                        "squeezenet1_1",
                                        "densenet121",
                                        "shufflenet_v2_x0_5",
                                        "mobilenet_v2",
                                        "mobilenet_v3_small",
                                        "vgg11_cifar",
                                        "mobilenet_v2_cifar"};
    const bool quick = ew_test_quick(); /* two stand for all */
    for (size_t i = 0; i < EW_COUNT(names); i++)
        if (!quick || strcmp(names[i], "lenet5") == 0 ||
            strcmp(names[i], "mobilenet_v3_small") == 0)
            check_network(names[i]);
    (void)argc;
    (void)argv;
    return ew_test_status();
}
