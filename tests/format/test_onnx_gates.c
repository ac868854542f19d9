/* SPDX-License-Identifier: Apache-2.0 */
/* Activations written as "x times a gate of x" are imported as one operator, and a gate with
 * another use is kept. */
#include <math.h>
#include <string.h>

#include "ew_test.h"
#include "graph/graph.h"

static struct ew_graph *graph_of_input(int *x)
{
    struct ew_graph *g = NULL;
    const struct ew_shape s = {2, {2, 5}};
    EW_EXPECT_OK(ew_graph_new("gates", &g));
    EW_EXPECT_OK(ew_graph_input(g, "x", EW_F32, &s, x));
    return g;
}

static struct ew_graph *through_file(struct ew_graph *g)
{
    const char *path = ew_test_path("gates.onnx");
    struct ew_graph *back = NULL;
    if (EW_EXPECT_OK(ew_onnx_save(g, path, NULL)))
        EW_EXPECT_OK(ew_onnx_load(path, NULL, &back));
    ew_graph_free(g);
    return back;
}

static void come_back(void)
{
    static const char *const names[] = {"silu", "hard_swish", "mish"};
    for (size_t i = 0; i < EW_COUNT(names); i++) {
        int x, y;
        struct ew_graph *g = graph_of_input(&x);
        EW_EXPECT_OK(ew_graph_add(g, ew_op_find(names[i]), "act", NULL, EW_INPUTS(x), &y));
        EW_EXPECT_OK(ew_graph_output(g, y));
        g = through_file(g);
        if (!EW_EXPECT(g))
            return;
        EW_EXPECT_INT(g->n_nodes, 1);
        EW_EXPECT_STR(g->nodes[0].op->name, names[i]);
        ew_graph_free(g);
    }
}

static void keep_a_shared_gate(void)
{
    int in[2], y;
    struct ew_graph *g = graph_of_input(&in[0]);
    EW_EXPECT_OK(ew_graph_add(g, ew_op_find("sigmoid"), "gate", NULL, ew_inputs(in, 1), &in[1]));
    EW_EXPECT_OK(ew_graph_add(g, ew_op_find("mul"), "act", NULL, ew_inputs(in, 2), &y));
    EW_EXPECT_OK(ew_graph_output(g, y));
    EW_EXPECT_OK(ew_graph_output(g, in[1]));
    g = through_file(g);
    if (!EW_EXPECT(g))
        return;
    EW_EXPECT_INT(g->n_nodes, 2);
    EW_EXPECT_STR(g->nodes[0].op->name, "sigmoid");
    EW_EXPECT_STR(g->nodes[1].op->name, "silu");
    EW_EXPECT_INT(g->n_outputs, 2);
    ew_graph_free(g);
}

/* Another slope, or a gate of another value, remains a product. */
static void leave_other_products(void)
{
    const double other[2] = {0.2, 0.5}; /* alpha, beta */
    int in[2], y;
    struct ew_graph *g = graph_of_input(&in[0]);
    EW_EXPECT_OK(
        ew_graph_add(g, ew_op_find("hard_sigmoid"), "gate", other, ew_inputs(in, 1), &in[1]));
    EW_EXPECT_OK(ew_graph_add(g, ew_op_find("mul"), "act", NULL, ew_inputs(in, 2), &y));
    EW_EXPECT_OK(ew_graph_output(g, y));
    g = through_file(g);
    if (!EW_EXPECT(g))
        return;
    EW_EXPECT_INT(g->n_nodes, 2);
    EW_EXPECT_STR(g->nodes[1].op->name, "mul");
    ew_graph_free(g);
}

/* Adds the node op(a, b); returns its output. */
static int product(struct ew_graph *g, const char *op, int a, int b)
{
    int y = -1;
    EW_EXPECT_OK(ew_graph_add(g, ew_op_find(op), op, NULL, EW_INPUTS(a, b), &y));
    return y;
}

static int number(struct ew_graph *g, double v)
{
    int id = -1;
    EW_EXPECT_OK(ew_graph_const_float(g, "n", (float)v, &id));
    return id;
}

enum order { HALF_X, HALF_LAST, HALF_GATE };

/* x / 2 (1 + erf(x root)), in one of the orders that exporters write. */
static struct ew_graph *written_gelu(enum order order, double root, bool divided)
{
    int x, gate, y = -1;
    struct ew_graph *g = graph_of_input(&x);
    const int z =
        divided ? product(g, "div", x, number(g, 1 / root)) : product(g, "mul", number(g, root), x);
    EW_EXPECT_OK(ew_graph_add(g, ew_op_find("erf"), "erf", NULL, EW_INPUTS(z), &gate));
    gate = product(g, "add", gate, number(g, 1));
    if (order == HALF_X)
        y = product(g, "mul", product(g, "mul", x, number(g, 0.5)), gate);
    else if (order == HALF_LAST)
        y = product(g, "mul", product(g, "mul", x, gate), number(g, 0.5));
    else
        y = product(g, "mul", product(g, "mul", number(g, 0.5), gate), x);
    EW_EXPECT_OK(ew_graph_output(g, y));
    return through_file(g);
}

static void gelu_is_one_operator(void)
{
    for (int i = 0; i < 6; i++) {
        struct ew_graph *g = written_gelu((enum order)(i / 2), sqrt(0.5), i % 2);
        if (!EW_EXPECT(g))
            return;
        EW_EXPECT_INT(g->n_nodes, 1);
        EW_EXPECT_STR(g->nodes[0].op->name, "gelu");
        ew_graph_free(g);
        g = written_gelu((enum order)(i / 2), 0.7, i % 2); /* another function */
        EW_EXPECT_INT(g->n_nodes, 5);
        EW_EXPECT_STR(g->nodes[4].op->name, "mul");
        ew_graph_free(g);
    }
}

EW_TEST_MAIN(EW_TEST(come_back), EW_TEST(keep_a_shared_gate), EW_TEST(leave_other_products),
             EW_TEST(gelu_is_one_operator))
