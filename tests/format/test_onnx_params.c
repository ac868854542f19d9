/* SPDX-License-Identifier: Apache-2.0 */
/* Which constants of an ONNX file are trained: its weights, not the numbers of its formulas. */
#include <string.h>

#include "ew_test.h"
#include "graph/graph.h"
#include "onnx_build.h"

static void begin(struct ew_build *b, const char *dims)
{
    ew_build_init(b);
    ew_build_input(b, "x", EW_PB_FLOAT, dims);
    ew_build_output(b, "y");
}

static struct ew_graph *load(struct ew_build *b)
{
    struct ew_graph *g = NULL;
    EW_EXPECT_OK(ew_onnx_load(ew_build_file(b, "params.onnx"), NULL, &g));
    ew_build_fini(b);
    return g;
}

/* A Constant node with a list of n equal numbers. */
static void literal(struct ew_build *b, const char *name, int n, float v)
{
    Ew__OnnxAttr *a =
        ew_build_attr(b, ew_build_node(b, "Constant", "", name), "value_floats", EW_PB_ATTR_FLOATS);
    a->floats = ew_arena_array(&b->arena, (size_t)n, sizeof(*a->floats));
    a->n_floats = (size_t)n;
    for (int i = 0; i < n; i++)
        a->floats[i] = v;
}

static void weight(struct ew_build *b, const char *name, const char *dims)
{
    ew_build_init_tensor(b, name, EW_PB_FLOAT, dims);
}

static int trained(const struct ew_graph *g)
{
    int n = 0;
    for (int v = 0; v < g->n_values; v++)
        n += g->values[v].kind == EW_VALUE_PARAM;
    return n;
}

static bool trains(const struct ew_graph *g, const char *name)
{
    const int v = ew_graph_find(g, name);
    return v >= 0 && g->values[v].kind == EW_VALUE_PARAM;
}

/* PyTorch writes a dense layer over tokens as bias + x * weights. */
static void bias_in_front(void)
{
    struct ew_build b;
    begin(&b, "2,5,4");
    weight(&b, "w", "4,3");
    weight(&b, "bias", "3");
    ew_build_node(&b, "MatMul", "x,w", "p");
    ew_build_node(&b, "Add", "bias,p", "q");
    weight(&b, "gamma", "3");
    ew_build_node(&b, "Mul", "gamma,q", "y");
    struct ew_graph *g = load(&b);
    if (!g)
        return;
    EW_EXPECT_INT(trained(g), 3);
    EW_EXPECT(trains(g, "w") && trains(g, "bias") && trains(g, "gamma"));
    ew_graph_free(g);
}

/* Numbers of formulas: the eps of a norm in single steps, a scale as an initialiser. */
static void numbers(void)
{
    struct ew_build b;
    begin(&b, "2,5,4");
    weight(&b, "w", "4,4");
    weight(&b, "half", "");
    literal(&b, "eps", 1, 1e-5F);
    literal(&b, "all", 4, 2);
    ew_build_node(&b, "MatMul", "x,w", "p");
    ew_build_node(&b, "Mul", "half,p", "h");
    ew_build_node(&b, "Add", "h,eps", "e");
    ew_build_node(&b, "Sub", "e,all", "y");
    struct ew_graph *g = load(&b);
    if (!g)
        return;
    EW_EXPECT_INT(trained(g), 1);
    EW_EXPECT(trains(g, "w"));
    ew_graph_free(g);
}

/* Some exporters write every weight as a Constant node. */
static void all_literals(void)
{
    struct ew_build b;
    begin(&b, "1,4,4,2");
    literal(&b, "flat", 8, 0.5F);
    ew_build_ints(&b, ew_build_node(&b, "Constant", "", "to"), "value_ints", "2,4");
    ew_build_node(&b, "Reshape", "flat,to", "w");
    literal(&b, "bias", 4, 1);
    ew_build_node(&b, "MatMul", "x,w", "p");
    ew_build_node(&b, "Add", "p,bias", "y");
    struct ew_graph *g = load(&b);
    if (!g)
        return;
    EW_EXPECT_INT(trained(g), 2);
    ew_graph_free(g);
}

/* A matrix that the file transposes, of any size. */
static void transposed(void)
{
    for (int large = 0; large < 2; large++) {
        struct ew_build b;
        begin(&b, large ? "2,150" : "2,5");
        weight(&b, "w", large ? "100,150" : "3,5");
        ew_build_ints(&b, ew_build_node(&b, "Transpose", "w", "t"), "perm", "1,0");
        ew_build_node(&b, "MatMul", "x,t", "y");
        struct ew_graph *g = load(&b);
        if (!g)
            return;
        EW_EXPECT_INT(trained(g), 1);
        ew_graph_free(g);
    }
}

/* A filter that the file reshapes, of any size. */
static void reshaped(void)
{
    for (int large = 0; large < 2; large++) {
        struct ew_build b;
        begin(&b, large ? "2,64,3,3" : "2,4,3,3");
        weight(&b, "w", large ? "72,64" : "6,4");
        ew_build_ints(&b, ew_build_node(&b, "Constant", "", "to"), "value_ints",
                      large ? "72,64,1,1" : "6,4,1,1");
        ew_build_node(&b, "Reshape", "w,to", "f");
        ew_build_node(&b, "Conv", "x,f", "y");
        struct ew_graph *g = load(&b);
        if (!g)
            return;
        EW_EXPECT_INT(trained(g), 1);
        ew_graph_free(g);
    }
}

/* Weights of several layers stay one, also where the file reshapes them for each, and where the
 * layers see images channels-last. */
static void shared(void)
{
    struct ew_build b;
    begin(&b, "2,4,4,4");
    weight(&b, "w", "4,4,1,1");
    weight(&b, "slope", "4");
    weight(&b, "gamma", "4,1,1");
    weight(&b, "m", "4,4");
    ew_build_ints(&b, ew_build_node(&b, "Constant", "", "axes0"), "value_ints", "1,2");
    ew_build_ints(&b, ew_build_node(&b, "Constant", "", "axes1"), "value_ints", "1,2");
    ew_build_node(&b, "Unsqueeze", "slope,axes0", "slope0");
    ew_build_node(&b, "Unsqueeze", "slope,axes1", "slope1");
    ew_build_node(&b, "Conv", "x,w", "a");
    ew_build_node(&b, "PRelu", "a,slope0", "c");
    ew_build_node(&b, "Mul", "c,gamma", "d");
    ew_build_node(&b, "Conv", "d,w", "e");
    ew_build_node(&b, "PRelu", "e,slope1", "f");
    ew_build_node(&b, "Mul", "f,gamma", "h");
    ew_build_ints(&b, ew_build_node(&b, "Transpose", "m", "m0"), "perm", "1,0");
    ew_build_ints(&b, ew_build_node(&b, "Transpose", "m", "m1"), "perm", "1,0");
    ew_build_node(&b, "MatMul", "h,m0", "i");
    ew_build_node(&b, "MatMul", "i,m1", "y");
    struct ew_graph *g = load(&b);
    if (!g)
        return;
    EW_EXPECT_INT(trained(g), 4);
    ew_graph_free(g);
}

/* PyTorch's group norm: ones and zeros for the groups, then weights for the channels. */
static void group_norm(void)
{
    for (int named = 0; named < 2; named++) {
        struct ew_build b;
        begin(&b, "2,6,4,4");
        weight(&b, "gamma", "6,1,1");
        if (named) {
            Ew__OnnxTensor *ones = ew_build_init_tensor(&b, "ones", EW_PB_FLOAT, "2");
            Ew__OnnxTensor *zeros = ew_build_init_tensor(&b, "zeros", EW_PB_FLOAT, "2");
            memcpy(ones->raw_data.data, (const float[]){1, 1}, 8);
            memset(zeros->raw_data.data, 0, 8);
        } else {
            literal(&b, "ones", 2, 1);
            literal(&b, "zeros", 2, 0);
        }
        ew_build_ints(&b, ew_build_node(&b, "Constant", "", "groups"), "value_ints", "0,2,-1");
        ew_build_ints(&b, ew_build_node(&b, "Constant", "", "image"), "value_ints", "2,6,4,4");
        ew_build_node(&b, "Reshape", "x,groups", "g");
        ew_build_node(&b, "InstanceNormalization", "g,ones,zeros", "n");
        ew_build_node(&b, "Reshape", "n,image", "i");
        ew_build_node(&b, "Mul", "i,gamma", "y");
        struct ew_graph *g = load(&b);
        if (!g)
            return;
        EW_EXPECT_INT(trained(g), 1);
        ew_graph_free(g);
    }
}

/* Regression: the mean that a formula subtracts from a filter was trained, and not the filter. */
static void formula(void)
{
    struct ew_build b;
    begin(&b, "2,64,3,3");
    weight(&b, "w", "72,64,1,1");
    weight(&b, "bias", "72");
    ew_build_ints(&b, ew_build_node(&b, "ReduceMean", "w", "m"), "axes", "1,2,3");
    ew_build_node(&b, "Sub", "w,m", "s");
    ew_build_node(&b, "Conv", "x,s,bias", "y");
    struct ew_graph *g = load(&b);
    if (!g)
        return;
    EW_EXPECT_INT(trained(g), 1);
    EW_EXPECT(trains(g, "bias"));
    ew_graph_free(g);
}

/* Regression: filters that a file quantises as it runs, as after quantisation-aware training,
 * stayed float32 if they were large, so that their layer was not computed in 8 bits. */
static void quantised(void)
{
    for (int large = 0; large < 2; large++) {
        struct ew_build b;
        begin(&b, large ? "2,64,3,3" : "2,4,3,3");
        weight(&b, "w", large ? "72,64,3,3" : "6,4,3,3");
        const float scale = 0.01f;
        memcpy(ew_build_init_tensor(&b, "scale", EW_PB_FLOAT, "")->raw_data.data, &scale,
               sizeof(scale));
        ew_build_init_tensor(&b, "zero", EW_PB_INT8, "");
        ew_build_node(&b, "QuantizeLinear", "w,scale,zero", "q");
        ew_build_node(&b, "DequantizeLinear", "q,scale,zero", "f");
        ew_build_node(&b, "Conv", "x,f", "y");
        struct ew_graph *g = load(&b);
        if (!g)
            return;
        EW_EXPECT_INT(g->n_nodes, 4); /* transposes at both ends */
        int filters = 0;
        for (int v = 0; v < g->n_values; v++)
            filters += g->values[v].kind == EW_VALUE_CONST && g->values[v].t.dtype == EW_S8 &&
                       g->values[v].t.shape.rank == 4;
        EW_EXPECT_INT(filters, 1);
        ew_graph_free(g);
    }
}

EW_TEST_MAIN(EW_TEST(quantised), EW_TEST(bias_in_front), EW_TEST(numbers), EW_TEST(all_literals),
             EW_TEST(transposed), EW_TEST(reshaped), EW_TEST(shared), EW_TEST(group_norm),
             EW_TEST(formula))
