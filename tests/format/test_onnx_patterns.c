/* SPDX-License-Identifier: Apache-2.0 */
/* What exporters write as several slow steps runs as the operator that it stands for: einsums of
 * two stacks of matrices, layer norms in single steps, dropouts with a mask that nobody reads. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compress/pass.h"
#include "ew_test.h"
#include "onnx_build.h"
#include "run_graph.h"

static void constant(struct ew_build *b, const char *name, const char *dims)
{
    Ew__OnnxTensor *t = ew_build_init_tensor(b, name, EW_PB_FLOAT, dims);
    float *v = (float *)(void *)t->raw_data.data;
    for (size_t i = 0; i < t->raw_data.len / sizeof(*v); i++)
        v[i] = (float)((int)(i * 7 % 11) - 4) * 0.1f;
}

static void scalar(struct ew_build *b, const char *name, float value)
{
    Ew__OnnxTensor *t = ew_build_init_tensor(b, name, EW_PB_FLOAT, "");
    memcpy(t->raw_data.data, &value, sizeof(value));
}

static void begin(struct ew_build *b, const char *input, const char *dims)
{
    ew_build_init(b);
    b->model.opset_import[0]->version = 17;
    ew_build_input(b, input, EW_PB_FLOAT, dims);
}

static struct ew_graph *load(struct ew_build *b)
{
    struct ew_graph *g = NULL;
    EW_EXPECT_OK(ew_onnx_load(ew_build_file(b, "pattern.onnx"), NULL, &g));
    ew_build_fini(b);
    return g;
}

static int count(const struct ew_graph *g, const char *op)
{
    int n = 0;
    for (int k = 0; k < g->n_nodes; k++)
        n += strcmp(g->nodes[k].op->name, op) == 0;
    return n;
}

/* After the passes for inference. */
static int count_optimised(const struct ew_graph *g, const char *op)
{
    struct ew_graph *copy = NULL;
    int n = -1;
    if (EW_EXPECT_OK(ew_graph_clone(g, &copy)) && EW_EXPECT_OK(ew_pass_all(copy)) &&
        EW_EXPECT_OK(ew_graph_check(copy)))
        n = count(copy, op);
    ew_graph_free(copy);
    return n;
}

/* Runs the graph, and compares its two outputs. */
static void outputs_agree(struct ew_graph *g)
{
    struct ew_tensor x = g->values[g->inputs[0]].t;
    const struct ew_tensor *in = &x;
    struct ew_plan *p = NULL;
    x.data = calloc(1, ew_tensor_bytes(&x));
    for (int64_t k = 0; k < ew_tensor_count(&x); k++)
        ew_tensor_store(&x, k, 1, &(double){(double)(k * 5 % 13) * 0.5 - 3});
    if (EW_EXPECT_OK(ew_run_graph(g, &in, &p)))
        EW_EXPECT_OK(ew_tensors_agree(ew_plan_output(p, 0), ew_plan_output(p, 1), 1e-5, 1e-5));
    ew_plan_free(p);
    free(x.data);
}

/* ---- Einsum ---- */

static void add_einsum(struct ew_build *b, const char *in, const char *equation, const char *out)
{
    Ew__OnnxNode *n = ew_build_node(b, "Einsum", in, out);
    Ew__OnnxAttr *a = ew_build_attr(b, n, "equation", EW_PB_ATTR_STRING);
    a->has_s = true;
    a->s.data = (uint8_t *)ew_build_text(b, equation);
    a->s.len = strlen(equation);
}

/* A third factor of 1 keeps the operator. */
static void einsums_become_products(void)
{
    static const struct {
        const char *x, *w, *equation, *three;
        bool product;
    } cases[] = {
        {"2,3,4,5", "2,3,6,5", "bhid,bhjd->bhij", "bhid,bhjd,->bhij", true},
        {"2,3,4,5", "2,3,5,6", "b h i d, b h d j -> b h i j", "bhid,bhdj,->bhij", true},
        {"2,4,3,5", "2,6,3,5", "bihd,bjhd->bhij", "bihd,bjhd,->bhij", true},
        {"2,3,4,6", "2,6,3,5", "bhij,bjhd->bihd", "bhij,bjhd,->bihd", true},
        {"4,5", "6,5", "IK,JK->JI", "IK,JK,->JI", true},
        {"2,4,5", "2,5,6", "aij,ajk->aki", "aij,ajk,->aki", true},
        {"2,4,5", "2,4,5", "aij,aij->aij", "aij,aij,->aij", false},
        {"2,4,5", "5,6,7", "aij,jkl->aikl", "aij,jkl,->aikl", false},
        {"2,4,5", "2,4,5", "aij,aij->a", "aij,aij,->a", false},
        {"2,4,5", "2,5", "aij,aj->ai", "aij,aj,->ai", false},
        {"4,4", "4,5", "ii,ij->ij", "ii,ij,->ij", false},
        {"1,4,5", "3,5,6", "aij,ajk->aik", "aij,ajk,->aik", true},
        {"2,4,5", "2,1,6", "aij,ajk->aik", "aij,ajk,->aik", false},
    };
    for (size_t i = 0; i < EW_COUNT(cases); i++) {
        struct ew_build b;
        begin(&b, "x", cases[i].x);
        constant(&b, "w", cases[i].w);
        scalar(&b, "one", 1);
        add_einsum(&b, "x,w", cases[i].equation, "y");
        add_einsum(&b, "x,w,one", cases[i].three, "z");
        ew_build_output(&b, "y");
        ew_build_output(&b, "z");
        struct ew_graph *g = load(&b);
        if (g) {
            EW_EXPECT_INT(count(g, "einsum"), cases[i].product ? 1 : 2);
            EW_EXPECT_INT(count(g, "matmul"), cases[i].product);
            outputs_agree(g);
        }
        ew_graph_free(g);
    }
}

/* MatMul has fewer types than Einsum. */
static void einsums_of_bytes_stay(void)
{
    struct ew_build b;
    ew_build_init(&b);
    b.model.opset_import[0]->version = 17;
    ew_build_input(&b, "x", 2, "2,3,4"); /* UINT8 */
    ew_build_input(&b, "w", 2, "2,4,5");
    add_einsum(&b, "x,w", "bij,bjk->bik", "y");
    ew_build_output(&b, "y");
    struct ew_graph *g = load(&b);
    EW_EXPECT_INT(g ? count(g, "einsum") : -1, 1);
    ew_graph_free(g);
}

/* ---- Layer norms ---- */

struct steps {
    const char *dims;
    const char *axes, *axes_of_square;
    const char *scale, *bias; /* dimensions; NULL: none */
    const char *square;       /* the operator */
    const char *standard;     /* dimensions of the standard operator's scale and bias; NULL: not a
                               * layer norm */
    const char *axis;         /* its first axis */
};

static void add_mean(struct ew_build *b, const char *in, const char *axes, const char *out)
{
    ew_build_ints(b, ew_build_node(b, "ReduceMean", in, out), "axes", axes);
}

/* The steps as PyTorch writes them; the last value is "y". */
static void add_steps(struct ew_build *b, const struct steps *s)
{
    scalar(b, "two", 2);
    scalar(b, "eps", 1e-3f);
    add_mean(b, "x", s->axes, "mean");
    ew_build_node(b, "Sub", "x,mean", "d");
    ew_build_node(b, s->square, strcmp(s->square, "Pow") == 0 ? "d,two" : "d,d", "dd");
    add_mean(b, "dd", s->axes_of_square, "variance");
    ew_build_node(b, "Add", "variance,eps", "sum");
    ew_build_node(b, "Sqrt", "sum", "deviation");
    ew_build_node(b, "Div", "d,deviation", "n");
    if (s->scale)
        constant(b, "scale", s->scale);
    if (s->bias)
        constant(b, "bias", s->bias);
    ew_build_node(b, s->scale ? "Mul" : "Identity", s->scale ? "n,scale" : "n", "m");
    ew_build_node(b, s->bias ? "Add" : "Identity", s->bias ? "bias,m" : "m", "y");
}

/* The standard operator with the same scale and bias. */
static void add_standard(struct ew_build *b, const struct steps *s)
{
    constant(b, "standard_scale", s->standard);
    constant(b, "standard_bias", s->standard);
    if (!s->scale) {
        Ew__OnnxTensor *t = ew_build_init_tensor(b, "ones", EW_PB_FLOAT, s->standard);
        for (size_t i = 0; i < t->raw_data.len / sizeof(float); i++)
            memcpy(t->raw_data.data + i * sizeof(float), &(float){1}, sizeof(float));
    }
    const char *in = s->scale && s->bias ? "x,standard_scale,standard_bias"
                     : s->scale          ? "x,standard_scale"
                     : s->bias           ? "x,ones,standard_bias"
                                         : "x,ones";
    Ew__OnnxNode *n = ew_build_node(b, "LayerNormalization", in, "z");
    Ew__OnnxAttr *a = ew_build_attr(b, n, "axis", EW_PB_ATTR_INT);
    a->has_i = true;
    a->i = atoi(s->axis);
    a = ew_build_attr(b, n, "epsilon", EW_PB_ATTR_FLOAT);
    a->has_f = true;
    a->f = 1e-3f;
    ew_build_output(b, "z");
}

static void layer_norms_are_found(void)
{
    static const struct steps cases[] = {
        {"2,3,40", "-1", "-1", "40", "40", "Pow", "40", "-1"},
        {"2,3,40", "2", "-1", "40", NULL, "Mul", "40", "-1"},
        {"2,3,40", "-1", "2", NULL, NULL, "Pow", "40", "-1"},
        {"2,3,40", "-1", "2", NULL, "1,1,40", "Pow", "40", "-1"},
        {"2,3,5,8", "2,3", "-1,-2", "5,8", "1,5,8", "Pow", "5,8", "2"},
        {"2,3,40", "-1", "-2", "40", "40", "Pow", NULL, NULL},
        {"2,3,40", "-2", "-2", NULL, NULL, "Pow", NULL, NULL},
        {"2,40", "0,1", "0,1", NULL, NULL, "Pow", NULL, NULL},
        {"2,3,40", "-1", "-1", "3,1", NULL, "Pow", "", "-1"},
        {"2,3,40", "-1", "1,2", NULL, NULL, "Pow", NULL, NULL},
    };
    for (size_t i = 0; i < EW_COUNT(cases); i++) {
        const struct steps *s = &cases[i];
        struct ew_build b;
        begin(&b, "x", s->dims);
        add_steps(&b, s);
        ew_build_output(&b, "y");
        if (s->standard && *s->standard)
            add_standard(&b, s);
        struct ew_graph *g = load(&b);
        if (g && s->standard && *s->standard) {
            EW_EXPECT_INT(count_optimised(g, "layer_norm"), 2);
            EW_EXPECT_INT(count_optimised(g, "reduce_mean"), 0);
            outputs_agree(g);
        } else if (g) {
            EW_EXPECT_INT(count_optimised(g, "layer_norm"), s->standard != NULL);
            EW_EXPECT_INT(count_optimised(g, "pow"), 0);
        }
        ew_graph_free(g);
    }
}

static void powers_of_nan_stay(void)
{
    struct ew_build b;
    begin(&b, "x", "2,3");
    scalar(&b, "nan", NAN);
    ew_build_node(&b, "Pow", "x,nan", "y");
    ew_build_output(&b, "y");
    struct ew_graph *g = load(&b);
    EW_EXPECT_INT(g ? count_optimised(g, "pow") : -1, 1);
    ew_graph_free(g);
}

/* Group norms whose first reshape is to `shape`. */
static int group_norms(const char *shape)
{
    struct ew_build b;
    begin(&b, "x", "-1,6,3,5");
    constant(&b, "scale", "3");
    constant(&b, "bias", "3");
    ew_build_ints(&b, ew_build_node(&b, "Constant", "", "apart"), "value_ints", shape);
    ew_build_ints(&b, ew_build_node(&b, "Constant", "", "whole"), "value_ints", "-1,6,3,5");
    ew_build_node(&b, "Reshape", "x,apart", "groups");
    ew_build_node(&b, "InstanceNormalization", "groups,scale,bias", "normed");
    ew_build_node(&b, "Reshape", "normed,whole", "y");
    ew_build_output(&b, "y");
    struct ew_graph *g = load(&b);
    const int n = g ? count(g, "group_norm") : -1;
    ew_graph_free(g);
    return n;
}

/* [1, g, -1] of several images is one with all their elements. */
static void group_norms_keep_images_apart(void)
{
    EW_EXPECT_INT(group_norms("0,3,-1"), 1);
    EW_EXPECT_INT(group_norms("-1,3,30"), 1);
    EW_EXPECT_INT(group_norms("1,3,-1"), 0);
}

/* Norms over the channels of an image, as ConvNeXt has them: the last axis on the device. */
static void norms_over_channels_are_found(void)
{
    const struct steps s = {"2,24,5,3", "1", "1", "24,1,1", "24,1,1", "Pow", NULL, NULL};
    struct ew_build b;
    begin(&b, "image", s.dims);
    constant(&b, "filters", "24,24,1,1");
    ew_build_node(&b, "Conv", "image,filters", "x");
    add_steps(&b, &s);
    ew_build_node(&b, "Conv", "y,filters", "c");
    ew_build_output(&b, "c");
    struct ew_graph *g = load(&b);
    EW_EXPECT_INT(g ? count_optimised(g, "layer_norm") : 0, 1);
    ew_graph_free(g);
}

/* The mask is an output of the node, as old versions of PyTorch write it. */
static void dropouts_go(void)
{
    struct ew_build b;
    begin(&b, "x", "2,3,4");
    ew_build_node(&b, "Dropout", "x", "d,mask");
    ew_build_node(&b, "Relu", "d", "y");
    ew_build_output(&b, "y");
    struct ew_graph *g = load(&b);
    EW_EXPECT_INT(g ? count_optimised(g, "dropout") : -1, 0);
    ew_graph_free(g);
}

EW_TEST_MAIN(EW_TEST(einsums_become_products), EW_TEST(einsums_of_bytes_stay),
             EW_TEST(layer_norms_are_found), EW_TEST(powers_of_nan_stay),
             EW_TEST(group_norms_keep_images_apart), EW_TEST(norms_over_channels_are_found),
             EW_TEST(dropouts_go))
