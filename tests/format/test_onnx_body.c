/* SPDX-License-Identifier: Apache-2.0 */
/* Functions, branches and loops of ONNX files: conditions that are known at import are resolved;
 * others, and endless loops, are refused. */
#include <stdlib.h>
#include <string.h>

#include "ew_test.h"
#include "graph/graph.h"
#include "onnx_build.h"
#include "run_graph.h"

static struct ew_graph *load(struct ew_build *b)
{
    struct ew_graph *g = NULL;
    EW_EXPECT_OK(ew_onnx_load(ew_build_file(b, "body.onnx"), NULL, &g));
    ew_build_fini(b);
    return g;
}

/* Element i of output o for the input 1, 2, 3, ...; frees the graph. */
static double run_at(struct ew_graph *g, int o, int64_t i)
{
    struct ew_plan *p = NULL;
    double v = -1;
    if (!g)
        return v;
    struct ew_tensor x = g->values[g->inputs[0]].t;
    const struct ew_tensor *in = &x;
    x.data = calloc(1, ew_tensor_bytes(&x));
    for (int64_t k = 0; k < ew_tensor_count(&x); k++)
        ew_tensor_store(&x, k, 1, &(double){(double)k + 1});
    if (EW_EXPECT_OK(ew_run_graph(g, &in, &p)))
        v = ew_tensor_get(ew_plan_output(p, o), i);
    ew_plan_free(p);
    free(x.data);
    ew_graph_free(g);
    return v;
}

/* Sets a graph as an attribute of a node. */
static void set_body(struct ew_build *b, Ew__OnnxNode *n, const char *name, struct ew_build *body)
{
    Ew__OnnxAttr *a = ew_build_attr(b, n, name, EW_PB_ATTR_GRAPH);
    a->has_g = true;
    a->g.len = ew__onnx_graph__get_packed_size(&body->graph);
    a->g.data = ew_arena_alloc(&b->arena, a->g.len);
    ew__onnx_graph__pack(&body->graph, a->g.data);
    ew_build_fini(body);
}

static void one_node(struct ew_build *b, const char *type, const char *in, const char *out)
{
    ew_build_init(b);
    ew_build_node(b, type, in, out);
    ew_build_output(b, out);
}

/* ---- Functions ---- */

struct functions {
    Ew__OnnxFunction f[2], *list[2];
    char *in[2], *out[1], *out2[1];
    Ew__OnnxNode *node[2];
};

/* Moves the builder's first two nodes into the bodies of my:Scale(a, b) and my:Twice(a). */
static void take_functions(struct ew_build *b, struct functions *m, int n)
{
    for (int i = 0; i < n; i++) {
        ew__onnx_function__init(&m->f[i]);
        m->f[i].name = ew_build_text(b, i ? "Twice" : "Scale");
        m->f[i].domain = ew_build_text(b, "my");
        m->f[i].n_opset_import = b->model.n_opset_import;
        m->f[i].opset_import = b->model.opset_import;
        m->f[i].n_node = 1;
        m->f[i].node = &m->node[i];
        m->node[i] = b->graph.node[i];
        m->f[i].n_input = i ? 1 : 2;
        m->f[i].input = m->in;
        m->f[i].n_output = 1;
        m->f[i].output = i ? m->out2 : m->out;
        m->list[i] = &m->f[i];
    }
    m->in[0] = ew_build_text(b, "a");
    m->in[1] = ew_build_text(b, "b");
    m->out[0] = ew_build_text(b, "c");
    m->out2[0] = ew_build_text(b, "d");
    b->graph.node += n;
    b->graph.n_node -= (size_t)n;
    b->model.functions = m->list;
    b->model.n_functions = (size_t)n;
}

/* Twice(a) = Scale(a, a); Scale(a, b) = LeakyRelu(a + b) with the call's slope. */
static void functions(void)
{
    struct ew_build b;
    struct functions m;
    ew_build_init(&b);
    ew_build_opset(&b, "my", 1);
    ew_build_input(&b, "x", EW_PB_FLOAT, "3");
    ew_build_node(&b, "Mul", "a,b", "c");
    ew_build_node(&b, "Scale", "a,a", "d")->domain = ew_build_text(&b, "my");
    ew_build_node(&b, "Twice", "x", "t")->domain = ew_build_text(&b, "my");
    ew_build_node(&b, "Scale", "t,x", "y")->domain = ew_build_text(&b, "my");
    ew_build_output(&b, "y");
    take_functions(&b, &m, 2);
    EW_EXPECT_NEAR(run_at(load(&b), 0, 2), 27, 0); /* (3 * 3) * 3 */
}

/* An attribute of the call is passed to the node that refers to it; without one the default
 * holds. */
static void function_attributes(void)
{
    struct ew_build b;
    struct functions m;
    ew_build_init(&b);
    ew_build_opset(&b, "my", 1);
    ew_build_input(&b, "x", EW_PB_FLOAT, "2,3");
    Ew__OnnxNode *n = ew_build_node(&b, "Concat", "a,b", "c");
    Ew__OnnxAttr *a = ew_build_attr(&b, n, "axis", EW_PB_ATTR_INT);
    a->ref_attr_name = ew_build_text(&b, "along");
    n = ew_build_node(&b, "Scale", "x,x", "y");
    n->domain = ew_build_text(&b, "my");
    a = ew_build_attr(&b, n, "along", EW_PB_ATTR_INT);
    a->has_i = true;
    a->i = 1;
    ew_build_output(&b, "y");
    take_functions(&b, &m, 1);
    struct ew_graph *g = load(&b);
    if (g)
        EW_EXPECT_INT(g->values[g->outputs[0]].t.shape.dim[1], 6);
    ew_graph_free(g);
}

static void function_that_calls_itself(void)
{
    struct ew_build b;
    struct functions m;
    struct ew_graph *g;
    ew_build_init(&b);
    ew_build_opset(&b, "my", 1);
    ew_build_input(&b, "x", EW_PB_FLOAT, "3");
    ew_build_node(&b, "Scale", "a,b", "c")->domain = ew_build_text(&b, "my");
    ew_build_node(&b, "Scale", "x,x", "y")->domain = ew_build_text(&b, "my");
    ew_build_output(&b, "y");
    take_functions(&b, &m, 1);
    EW_EXPECT_ERR(ew_onnx_load(ew_build_file(&b, "self.onnx"), NULL, &g), EW_ERR_UNSUPPORTED,
                  "a function calls itself");
    ew_build_fini(&b);
}

/* ---- Branches ---- */

/* y = x + x if the condition holds, else x * x. */
static void build_if(struct ew_build *b, const char *cond)
{
    struct ew_build body;
    Ew__OnnxNode *n = ew_build_node(b, "If", cond, "y");
    one_node(&body, "Add", "x,x", "t");
    set_body(b, n, "then_branch", &body);
    one_node(&body, "Mul", "x,x", "t");
    set_body(b, n, "else_branch", &body);
    ew_build_output(b, "y");
}

static void branches(void)
{
    for (int yes = 0; yes < 2; yes++) {
        struct ew_build b;
        ew_build_init(&b);
        ew_build_input(&b, "x", EW_PB_FLOAT, "3");
        Ew__OnnxTensor *t = ew_build_init_tensor(&b, "cond", 9, ""); /* bool */
        t->raw_data.data[0] = (uint8_t)yes;
        build_if(&b, "cond");
        EW_EXPECT_NEAR(run_at(load(&b), 0, 2), yes ? 6 : 9, 0);
    }
}

/* A condition on the batch is resolved for one batch only, which is then fixed; one on another
 * dimension, as PyTorch writes for squeeze(1), holds at all of them. */
static void branch_by_shape(void)
{
    for (int dim = 0; dim < 2; dim++) {
        struct ew_build b;
        ew_build_init(&b);
        ew_build_input(&b, "x", EW_PB_FLOAT, "-1,3");
        ew_build_init_tensor(&b, "dim", EW_PB_INT64, "")->raw_data.data[0] = (uint8_t)dim;
        ew_build_init_tensor(&b, "seven", EW_PB_INT64, "")->raw_data.data[0] = 7;
        ew_build_node(&b, "Shape", "x", "s");
        ew_build_node(&b, "Gather", "s,dim", "size");
        ew_build_node(&b, "Equal", "size,seven", "is_seven");
        ew_build_node(&b, "Not", "is_seven", "cond");
        build_if(&b, "cond");
        struct ew_graph *g = load(&b);
        if (!g)
            continue;
        EW_EXPECT_INT((int)g->values[g->inputs[0]].dynamic, dim);
        EW_EXPECT_INT((int)g->values[g->inputs[0]].t.shape.dim[0], 1);
        EW_EXPECT_NEAR(run_at(g, 0, 2), 6, 0);
    }
}

static void branch_by_data(void)
{
    struct ew_build b;
    struct ew_graph *g;
    ew_build_init(&b);
    ew_build_input(&b, "x", EW_PB_FLOAT, "1");
    Ew__OnnxTensor *t = ew_build_init_tensor(&b, "one", EW_PB_FLOAT, "1");
    t->raw_data.data[0] = 0;
    ew_build_node(&b, "Greater", "x,one", "cond");
    build_if(&b, "cond");
    EW_EXPECT_ERR(ew_onnx_load(ew_build_file(&b, "data.onnx"), NULL, &g), EW_ERR_UNSUPPORTED,
                  "(If): its condition depends on the data");
    ew_build_fini(&b);
}

/* ---- Loops ---- */

/* Carries v = v + x and outputs v of every iteration; x comes from the enclosing graph. */
static void build_loop(struct ew_build *b, const char *in)
{
    struct ew_build body;
    ew_build_init(&body);
    ew_build_input(&body, "i", EW_PB_INT64, "");
    ew_build_input(&body, "go", 9, "");
    ew_build_input(&body, "v", EW_PB_FLOAT, "3");
    ew_build_node(&body, "Identity", "go", "go_on");
    ew_build_node(&body, "Add", "v,x", "w");
    ew_build_node(&body, "Identity", "w", "scan");
    ew_build_output(&body, "go_on");
    ew_build_output(&body, "w");
    ew_build_output(&body, "scan");
    set_body(b, ew_build_node(b, "Loop", in, "last,all"), "body", &body);
    ew_build_output(b, "last");
    ew_build_output(b, "all");
}

static void loop(void)
{
    for (int o = 0; o < 2; o++) {
        struct ew_build b;
        ew_build_init(&b);
        ew_build_input(&b, "x", EW_PB_FLOAT, "3");
        ew_build_init_tensor(&b, "trips", EW_PB_INT64, "")->raw_data.data[0] = 4;
        build_loop(&b, "trips,,x");
        /* v after 4 iterations is 5 x; of all iterations, element 1 * 3 + 2 is that of the
         * second */
        EW_EXPECT_NEAR(run_at(load(&b), o, o ? 5 : 2), o ? 9 : 15, 0);
    }
}

static void loop_without_end(void)
{
    struct ew_build b;
    struct ew_graph *g;
    ew_build_init(&b);
    ew_build_input(&b, "x", EW_PB_FLOAT, "3");
    build_loop(&b, ",,x");
    EW_EXPECT_ERR(ew_onnx_load(ew_build_file(&b, "endless.onnx"), NULL, &g), EW_ERR_UNSUPPORTED,
                  "it has more than 1000 rounds");
    ew_build_fini(&b);
}

EW_TEST_MAIN(EW_TEST(functions), EW_TEST(function_attributes), EW_TEST(function_that_calls_itself),
             EW_TEST(branches), EW_TEST(branch_by_shape), EW_TEST(branch_by_data), EW_TEST(loop),
             EW_TEST(loop_without_end))
