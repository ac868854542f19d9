/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs: names, inference and constant folding, sweeping, cloning, and layout conversion. */
#include "graph/graph.h"

#include <stdlib.h>
#include <string.h>

#include "ew_test.h"
#include "graph/layout.h"
#include "graph/readers.h"
#include "plan/plan.h"

#define N 2
#define C 3
#define H 4
#define W 5

/* ---- An operator that depends on the channel axis: y = x * (channel + 1), channels last ---- */

static ew_err by_channel(const struct ew_call *c)
{
    const float *x = c->in[0]->data;
    float *y = c->out[0]->data;
    const int64_t channels = c->in[0]->shape.dim[c->in[0]->shape.rank - 1];
    for (int64_t i = 0; i < ew_tensor_count(c->in[0]); i++)
        y[i] = x[i] * (float)(i % channels + 1);
    return EW_OK;
}

static const struct ew_op by_channel_op = {
    .name = "by_channel", .flags = EW_OP_SPATIAL, .min_in = 1, .max_in = 1, .forward = by_channel};

/* ---- Helpers ---- */

static struct ew_graph *new_graph(void)
{
    struct ew_graph *g = NULL;
    EW_EXPECT_OK(ew_graph_new("test", &g));
    return g;
}

static int add(struct ew_graph *g, const char *op, const int *in, int n_in)
{
    int out = -1;
    EW_EXPECT_OK(ew_graph_add(g, ew_op_find(op), NULL, NULL, ew_inputs(in, n_in), &out));
    return out;
}

static int add_first(struct ew_graph *g, int in)
{
    int out = -1;
    const struct ew_node n = {
        .op = &by_channel_op, .n_in = 1, .in = &in, .n_out = 1, .channels_first = true};
    EW_EXPECT_OK(ew_graph_add_node(g, &n, &out));
    return out;
}

static int count_op(const struct ew_graph *g, const char *name)
{
    int n = 0;
    for (int k = 0; k < g->n_nodes; k++)
        n += strcmp(g->nodes[k].op->name, name) == 0;
    return n;
}

static int image_input(struct ew_graph *g)
{
    const struct ew_shape s = {4, {N, C, H, W}};
    int x = -1;
    EW_EXPECT_OK(ew_graph_input(g, "x", EW_F32, &s, &x));
    return x;
}

/* ---- Names ---- */

static void names_stay_unique(void)
{
    struct ew_graph *g = new_graph();
    const struct ew_shape s = {1, {1}};
    int a = -1, b = -1;
    EW_EXPECT_OK(ew_graph_input(g, "x", EW_F32, &s, &a));
    EW_EXPECT_OK(ew_graph_input(g, "x", EW_F32, &s, &b));
    EW_EXPECT(strcmp(g->values[a].name, g->values[b].name) != 0);
    EW_EXPECT_OK(ew_graph_rename(g, b, "y"));
    EW_EXPECT_INT(ew_graph_find(g, "x"), a);
    EW_EXPECT_INT(ew_graph_find(g, "y"), b);
    EW_EXPECT_INT(ew_graph_find(g, "z"), -1);
    for (int i = 0; i < 2000; i++) {
        int v;
        EW_EXPECT_OK(ew_graph_input(g, "many", EW_F32, &s, &v));
        EW_EXPECT_INT(ew_graph_find(g, g->values[v].name), v);
    }
    ew_graph_free(g);
}

/* ---- Inference ---- */

static void errors_name_the_node(void)
{
    struct ew_graph *g = new_graph();
    const struct ew_shape a = {1, {3}}, b = {1, {4}};
    int in[2], out;
    EW_EXPECT_OK(ew_graph_input(g, "a", EW_F32, &a, &in[0]));
    EW_EXPECT_OK(ew_graph_input(g, "b", EW_F32, &b, &in[1]));
    EW_EXPECT_ERR(ew_graph_add(g, ew_op_find("add"), "sum", NULL, ew_inputs(in, 2), &out),
                  EW_ERR_SHAPE, "node sum (add)");
    EW_EXPECT_ERR(ew_graph_add(g, ew_op_find("add"), "sum", NULL, ew_inputs(in, 1), &out),
                  EW_ERR_ARG, "takes 2");
    const struct ew_shape absurd = {3, {1 << 30, 1 << 30, 1 << 30}};
    EW_EXPECT_ERR(ew_graph_input(g, "huge", EW_F32, &absurd, &out), EW_ERR_LIMIT, "huge");
    ew_graph_free(g);
}

static void constants_are_computed_early(void)
{
    struct ew_graph *g = new_graph();
    const int64_t two[] = {2, 3}, five[] = {5, 7};
    int in[2];
    EW_EXPECT_OK(ew_graph_const_ints(g, "two", two, 2, &in[0]));
    EW_EXPECT_OK(ew_graph_const_ints(g, "five", five, 2, &in[1]));
    const int sum = add(g, "add", in, 2);
    const struct ew_tensor *t = &g->values[sum].t;
    if (EW_EXPECT(t->data)) {
        EW_EXPECT_INT(ew_tensor_get_int(t, 0), 7);
        EW_EXPECT_INT(ew_tensor_get_int(t, 1), 10);
    }
    ew_graph_free(g);
}

/* A sum of constants is a constant; one that depends on an input's shape changes with it. */
static void known_values_become_constants(void)
{
    struct ew_graph *g = new_graph();
    const int64_t two[] = {2, 3, 4, 5};
    int in[2];
    EW_EXPECT_OK(ew_graph_const_ints(g, "two", two, 4, &in[0]));
    in[1] = in[0];
    const int fixed = add(g, "add", in, 2);
    const int x = image_input(g);
    in[1] = add(g, "shape", &x, 1);
    const int follows = add(g, "add", in, 2);
    EW_EXPECT_OK(ew_graph_output(g, fixed));
    EW_EXPECT_OK(ew_graph_output(g, follows));
    EW_EXPECT_OK(ew_graph_keep_known(g));
    EW_EXPECT_OK(ew_graph_sweep(g));
    EW_EXPECT_INT(g->n_nodes, 2); /* the shape and the sum that depends on it */
    EW_EXPECT_INT(g->values[g->outputs[0]].kind, EW_VALUE_CONST);
    EW_EXPECT_OK(ew_graph_set_batch(g, 9));
    EW_EXPECT_INT(ew_tensor_get_int(&g->values[g->outputs[0]].t, 0), 4);
    EW_EXPECT_INT(ew_tensor_get_int(&g->values[g->outputs[1]].t, 0), 11);
    ew_graph_free(g);
}

static void batch_changes_every_shape(void)
{
    struct ew_graph *g = new_graph();
    const int x = image_input(g);
    const int y = add(g, "relu", &x, 1);
    EW_EXPECT_OK(ew_graph_output(g, y));
    EW_EXPECT_OK(ew_graph_set_batch(g, 9));
    EW_EXPECT_INT(g->values[y].t.shape.dim[0], 9);
    EW_EXPECT_ERR(ew_graph_set_batch(g, 0), EW_ERR_ARG, "batch is 0");
    ew_graph_free(g);
}

/* ---- Sweep and clone ---- */

static void sweep_drops_what_no_output_needs(void)
{
    struct ew_graph *g = new_graph();
    const int x = image_input(g);
    const int kept = add(g, "relu", &x, 1);
    const int dead = add(g, "transpose", &kept, 1);
    add(g, "relu", &dead, 1);
    EW_EXPECT_OK(ew_graph_output(g, kept));
    EW_EXPECT_OK(ew_graph_sweep(g));
    EW_EXPECT_INT(g->n_nodes, 1);
    EW_EXPECT_INT(g->n_values, 2);
    EW_EXPECT_OK(ew_graph_check(g));
    EW_EXPECT_INT(ew_graph_find(g, "x"), g->inputs[0]);
    ew_graph_free(g);
}

static void clone_is_independent(void)
{
    struct ew_graph *g = new_graph(), *c = NULL;
    const int x = image_input(g);
    EW_EXPECT_OK(ew_graph_output(g, add(g, "relu", &x, 1)));
    if (EW_EXPECT_OK(ew_graph_clone(g, &c))) {
        EW_EXPECT_OK(ew_graph_set_batch(c, 7));
        EW_EXPECT_INT(g->values[g->outputs[0]].t.shape.dim[0], N);
        EW_EXPECT_STR(c->values[c->outputs[0]].name, g->values[g->outputs[0]].name);
        EW_EXPECT_OK(ew_graph_check(c));
    }
    ew_graph_free(g);
    ew_graph_free(c);
}

/* ---- Layout ---- */

/* x -> by_channel -> relu -> + bias[C, 1, 1] -> by_channel, all in ONNX's layout. */
static struct ew_graph *channels_first_net(void)
{
    static float bias[C] = {0.5f, -2, 3};
    struct ew_graph *g = new_graph();
    const struct ew_tensor t = {EW_F32, {3, {C, 1, 1}}, bias};
    const int x = add_first(g, image_input(g));
    int sum[2] = {add(g, "relu", &x, 1), -1};
    EW_EXPECT_OK(ew_graph_const(g, "bias", EW_VALUE_PARAM, &t, true, &sum[1]));
    const int y = add_first(g, add(g, "add", sum, 2));
    EW_EXPECT_OK(ew_graph_output(g, y));
    EW_EXPECT_OK(ew_graph_rename(g, y, "y"));
    return g;
}

static float wanted(float x, int c)
{
    static const float bias[C] = {0.5f, -2, 3};
    const float scaled = x * (float)(c + 1);
    return ((scaled > 0 ? scaled : 0) + bias[c]) * (float)(c + 1);
}

static void channels_last_leaves_two_transposes(void)
{
    struct ew_graph *g = channels_first_net();
    struct ew_plan *p = NULL;
    if (!EW_EXPECT_OK(ew_graph_channels_last(g)))
        return;
    EW_EXPECT_OK(ew_graph_sweep(g));
    EW_EXPECT_OK(ew_graph_check(g));
    EW_EXPECT_INT(count_op(g, "transpose"), 2); /* at the boundary only */
    EW_EXPECT_INT(ew_graph_find(g, "y"), g->outputs[0]);
    if (EW_EXPECT_OK(ew_plan_compile(g, &(struct ew_plan_opts){.mode = EW_PLAN_INFER}, &p))) {
        float *x = ew_plan_input(p, 0)->data;
        for (int i = 0; i < N * C * H * W; i++)
            x[i] = (float)(i % 7) - 3;
        EW_EXPECT_OK(ew_plan_run(p));
        const float *y = ew_plan_output(p, 0)->data;
        float want[N * C * H * W];
        for (int i = 0; i < N * C * H * W; i++)
            want[i] = wanted(x[i], i / (H * W) % C);
        EW_EXPECT_CLOSE(y, want, (size_t)N * C * H * W, 1e-6, 1e-6);
    }
    ew_plan_free(p);
    ew_graph_free(g);
}

static void and_back_leaves_none(void)
{
    struct ew_graph *g = channels_first_net();
    EW_EXPECT_OK(ew_graph_channels_last(g));
    EW_EXPECT_OK(ew_graph_channels_first(g));
    EW_EXPECT_OK(ew_graph_sweep(g));
    EW_EXPECT_INT(count_op(g, "transpose"), 0);
    EW_EXPECT_INT(g->n_nodes, 4);
    EW_EXPECT(g->nodes[0].channels_first);
    ew_graph_free(g);
}

/* Both branches of a residual are permuted: the addition must not reintroduce a transpose. */
static void residuals_pass(void)
{
    struct ew_graph *g = new_graph();
    const int x = add_first(g, image_input(g));
    const int sum[2] = {add_first(g, add(g, "relu", &x, 1)), x};
    EW_EXPECT_OK(ew_graph_output(g, add_first(g, add(g, "add", sum, 2))));
    EW_EXPECT_OK(ew_graph_channels_last(g));
    EW_EXPECT_OK(ew_graph_sweep(g));
    EW_EXPECT_INT(count_op(g, "transpose"), 2);
    ew_graph_free(g);
}

/* A network built here takes channels-last images; its file takes channels-first ones. */
static void own_inputs_turn_channels_first(void)
{
    struct ew_graph *g = new_graph();
    const struct ew_shape nhwc = {4, {N, H, W, C}};
    int x = -1, y = -1;
    EW_EXPECT_OK(ew_graph_input(g, "x", EW_F32, &nhwc, &x));
    g->values[x].channels_last = true;
    EW_EXPECT_OK(ew_graph_add(g, &by_channel_op, NULL, NULL, EW_INPUTS(x), &y));
    const struct ew_transpose_attr to_first = {.perm = {4, {0, 3, 1, 2}}};
    EW_EXPECT_OK(ew_graph_add(g, ew_op_find("transpose"), NULL, &to_first, EW_INPUTS(y), &y));
    EW_EXPECT_OK(ew_graph_output(g, y));
    EW_EXPECT_OK(ew_graph_channels_first(g));
    EW_EXPECT_INT(g->n_nodes, 1);
    EW_EXPECT_INT(g->values[g->inputs[0]].t.shape.dim[1], C);
    ew_graph_free(g);
}

/* ---- Rewriting ---- */

/* relu, relu, ... of one input: node n - 1 reads the last value. */
static struct ew_graph *relu_chain(int n)
{
    struct ew_graph *g = new_graph();
    int x;
    EW_EXPECT_OK(ew_graph_input(g, "x", EW_F32, &(struct ew_shape){1, {4}}, &x));
    for (int k = 0; k < n; k++)
        EW_EXPECT_OK(ew_graph_add(g, ew_op_find("relu"), NULL, NULL, EW_INPUTS(x), &x));
    EW_EXPECT_OK(ew_graph_output(g, x));
    return g;
}

/* Replaces every node, except each third, by neg(abs()) or by nothing, in one rewrite. */
static ew_err replace_some(struct ew_graph *g)
{
    const int n = g->n_nodes;
    EW_TRY(ew_graph_rewrite_begin(g));
    for (int k = 0; k < n; k++) {
        int v = g->nodes[k].in[0];
        const int first = g->n_nodes;
        if (k % 3 == 0)
            continue;
        if (k % 3 == 1) {
            EW_TRY(ew_graph_add(g, ew_op_find("abs"), NULL, NULL, EW_INPUTS(v), &v));
            EW_TRY(ew_graph_add(g, ew_op_find("neg"), NULL, NULL, EW_INPUTS(v), &v));
        }
        EW_TRY(ew_graph_splice(g, k, first, &v));
        EW_EXPECT(ew_readers_count(ew_graph_readers(g), v) == 1);
    }
    return ew_graph_rewrite_end(g);
}

static void many_nodes_are_replaced_in_one_rewrite(void)
{
    static const char *const expect[] = {"relu", "abs", "neg"};
    enum { BLOCKS = 20000 }; /* takes seconds if each splice walks the graph */
    struct ew_graph *g = relu_chain(3 * BLOCKS);
    EW_EXPECT_OK(replace_some(g));
    EW_EXPECT_INT(g->n_nodes, 3 * BLOCKS);
    int wrong = 0;
    for (int k = 0; k < g->n_nodes; k++) {
        const struct ew_node *n = &g->nodes[k];
        wrong += strcmp(n->op->name, expect[k % 3]) != 0 || g->values[n->out[0]].producer != k ||
                 g->values[n->in[0]].producer != k - 1;
    }
    EW_EXPECT_INT(wrong, 0);
    EW_EXPECT_INT(g->values[g->outputs[0]].producer, g->n_nodes - 1);
    ew_graph_free(g);
}

static void a_rewrite_that_is_given_up_leaks_nothing(void)
{
    struct ew_graph *g = relu_chain(3);
    EW_EXPECT_OK(ew_graph_rewrite_begin(g));
    int v = g->nodes[1].in[0];
    EW_EXPECT_OK(ew_graph_splice(g, 1, g->n_nodes, &v));
    ew_graph_free(g);
}

EW_TEST_MAIN(EW_TEST(names_stay_unique), EW_TEST(errors_name_the_node),
             EW_TEST(constants_are_computed_early), EW_TEST(known_values_become_constants),
             EW_TEST(batch_changes_every_shape), EW_TEST(sweep_drops_what_no_output_needs),
             EW_TEST(clone_is_independent), EW_TEST(channels_last_leaves_two_transposes),
             EW_TEST(and_back_leaves_none), EW_TEST(residuals_pass),
             EW_TEST(own_inputs_turn_channels_first),
             EW_TEST(many_nodes_are_replaced_in_one_rewrite),
             EW_TEST(a_rewrite_that_is_given_up_leaks_nothing))
