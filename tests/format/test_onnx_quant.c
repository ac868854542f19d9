/* SPDX-License-Identifier: Apache-2.0 */
/* QDQ networks: written, read back, and lowered to the same integers. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "compress/pass.h"
#include "edgewise.h"
#include "ew_test.h"
#include "graph/layout.h"
#include "onnx_build.h"
#include "plan/plan.h"
#include "quant_graph.h"
#include "run_graph.h"

static struct ew_plan *compile(struct ew_graph *g)
{
    struct ew_plan *p = NULL;
    const struct ew_plan_opts o = {.optimize = true, .backend = {.threads = 1}};
    EW_EXPECT_OK(ew_plan_compile(g, &o, &p));
    return p;
}

static int count(const struct ew_graph *g, const char *op)
{
    int n = 0;
    for (int k = 0; k < g->n_nodes; k++)
        n += strcmp(g->nodes[k].op->name, op) == 0;
    return n;
}

static void same_outputs(struct ew_graph *g, struct ew_graph *back)
{
    static const int to_first[] = {0, 3, 1, 2};
    struct ew_plan *ours = compile(g), *file = compile(back);
    if (ours && file) {
        ew_quant_input(ew_plan_input(ours, 0), 1);
        ew_tensor_permute(ew_plan_input(ours, 0), to_first, ew_plan_input(file, 0));
        EW_EXPECT_OK(ew_plan_run(ours));
        EW_EXPECT_OK(ew_plan_run(file));
        const struct ew_tensor *a = ew_plan_output(ours, 0), *b = ew_plan_output(file, 0);
        EW_EXPECT_INT((long long)ew_tensor_bytes(a), (long long)ew_tensor_bytes(b));
        EW_EXPECT_INT(memcmp(a->data, b->data, ew_tensor_bytes(a)), 0);
    }
    ew_plan_free(ours);
    ew_plan_free(file);
}

/* Integer filters are written in the file's layout: no transpose follows them. */
static void round_trip(const char *name, int size, bool is_signed)
{
    const char *path = ew_test_path("quant.onnx");
    struct ew_graph *g = ew_quant_graph(name, size, is_signed), *back = NULL;
    ew_test_begin("%s%s", name, is_signed ? ", int8" : "");
    if (g && EW_EXPECT_OK(ew_onnx_save(g, path, NULL)) &&
        EW_EXPECT_OK(ew_onnx_load(path, NULL, &back))) {
        EW_EXPECT(count(back, "transpose") <= 2);
        EW_EXPECT_INT(count(back, "dequantize_linear"), count(g, "dequantize_linear"));
        same_outputs(g, back);
        EW_EXPECT_OK(ew_pass_all(back));
        EW_EXPECT_INT(count(back, "conv"), 0);
    }
    ew_graph_free(back);
    ew_graph_free(g);
    ew_test_end();
}

/* ---- ONNX Runtime's contrib operators ---- */

static Ew__OnnxNode *own_node(struct ew_build *b, const char *type, const char *in, const char *out)
{
    Ew__OnnxNode *n = ew_build_node(b, type, in, out);
    n->domain = ew_build_text(b, "com.microsoft");
    return n;
}

/* A scale or zero point. */
static void add_scalar(struct ew_build *b, const char *name, int type, float value)
{
    Ew__OnnxTensor *t = ew_build_init_tensor(b, name, type, "");
    if (type == EW_PB_FLOAT)
        memcpy(t->raw_data.data, &value, sizeof(value));
    else
        t->raw_data.data[0] = (uint8_t)value;
}

enum { PB_UINT8 = 2 };

static void build_functions(struct ew_build *b)
{
    ew_build_opset(b, "com.microsoft", 1);
    ew_build_input(b, "x", PB_UINT8, "1,2,3,3");
    add_scalar(b, "s", EW_PB_FLOAT, 0.05f);
    add_scalar(b, "z", PB_UINT8, 9);
    add_scalar(b, "t", EW_PB_FLOAT, 0.03f); /* avoids ties between two integers */
    own_node(b, "QLinearSigmoid", "x,s,z,s,z", "a");
    Ew__OnnxNode *leaky = own_node(b, "QLinearLeakyRelu", "x,s,z,t,z", "b");
    Ew__OnnxAttr *alpha = ew_build_attr(b, leaky, "alpha", EW_PB_ATTR_FLOAT);
    alpha->has_f = true;
    alpha->f = 0.2f;
    Ew__OnnxNode *concat = own_node(b, "QLinearConcat", "t,z,a,s,z,b,t,z", "y");
    Ew__OnnxAttr *axis = ew_build_attr(b, concat, "axis", EW_PB_ATTR_INT);
    axis->has_i = true;
    axis->i = 1;
    ew_build_output(b, "y");
}

/* The result of (q - 9) * s through f, requantised to (q - 9) * t. */
static double requantized(double real, double scale)
{
    return fmin(fmax(rint(real / scale) + 9, 0), 255);
}

static void check_functions(struct ew_plan *p)
{
    struct ew_tensor *x = ew_plan_input(p, 0);
    for (int i = 0; i < 18; i++)
        ((uint8_t *)x->data)[i] = (uint8_t)(i * 14);
    if (!EW_EXPECT_OK(ew_plan_run(p)))
        return;
    const uint8_t *y = ew_plan_output(p, 0)->data;
    for (int i = 0; i < 18; i++) {
        const double real = (i * 14 - 9) * 0.05;
        const double sigmoid = requantized(1 / (1 + exp(-real)), 0.05);
        EW_EXPECT_INT(y[i], (int)requantized((sigmoid - 9) * 0.05, 0.03));
        EW_EXPECT_INT(y[18 + i], (int)requantized(real < 0 ? real * 0.2 : real, 0.03));
    }
}

static void functions_become_tables(void)
{
    struct ew_build b;
    struct ew_graph *g = NULL;
    ew_test_begin("functions of quantised tensors");
    ew_build_init(&b);
    build_functions(&b);
    if (EW_EXPECT_OK(ew_onnx_load(ew_build_file(&b, "functions.onnx"), NULL, &g))) {
        struct ew_plan *p = compile(g);
        if (p)
            check_functions(p);
        ew_plan_free(p);
        EW_EXPECT_OK(ew_pass_all(g));
        EW_EXPECT_INT(count(g, "dequantize_linear") + count(g, "quantize_linear"), 0);
        EW_EXPECT(count(g, "lookup") >= 2);
    }
    ew_graph_free(g);
    ew_build_fini(&b);
    ew_test_end();
}

/* ---- Blocks ---- */

enum { PB_INT8 = 3 };

static void set_int(struct ew_build *b, Ew__OnnxNode *n, const char *name, int64_t value)
{
    Ew__OnnxAttr *a = ew_build_attr(b, n, name, EW_PB_ATTR_INT);
    a->has_i = true;
    a->i = value;
}

static float *add_floats(struct ew_build *b, const char *name, const char *dims)
{
    return (float *)(void *)ew_build_init_tensor(b, name, EW_PB_FLOAT, dims)->raw_data.data;
}

/* Filters [O, I, kh, kw] with a scale for each output and each `block` inputs, and as floats; the
 * graph has an output of each. */
static void build_blocks(struct ew_build *b, const int *d, int block)
{
    char dims[64], scales[64];
    const int blocks = (d[1] + block - 1) / block, taps = d[2] * d[3];
    snprintf(dims, sizeof(dims), "%d,%d,%d,%d", d[0], d[1], d[2], d[3]);
    snprintf(scales, sizeof(scales), "%d,%d,%d,%d", d[0], blocks, d[2], d[3]);
    ew_build_input(b, "x", EW_PB_FLOAT, "1,3,5,5");
    uint8_t *q = ew_build_init_tensor(b, "q", PB_INT8, dims)->raw_data.data;
    float *s = add_floats(b, "s", scales), *w = add_floats(b, "w", dims);
    for (int i = 0; i < d[0] * blocks * taps; i++)
        s[i] = 0.01f * (float)(i + 1);
    for (int i = 0; i < d[0] * d[1] * taps; i++) {
        const int o = i / taps / d[1], c = i / taps % d[1], tap = i % taps;
        w[i] = (float)(int8_t)q[i] * s[(o * blocks + c / block) * taps + tap];
    }
    Ew__OnnxNode *n = ew_build_node(b, "DequantizeLinear", "q,s", "v");
    set_int(b, n, "axis", 1);
    set_int(b, n, "block_size", block);
    ew_build_node(b, "Conv", "x,v", "y");
    ew_build_node(b, "Conv", "x,w", "z");
    ew_build_output(b, "y");
    ew_build_output(b, "z");
}

static void check_blocks(struct ew_graph *g)
{
    struct ew_plan *p = compile(g);
    if (!p)
        return;
    ew_quant_input(ew_plan_input(p, 0), 1);
    if (EW_EXPECT_OK(ew_plan_run(p)))
        EW_EXPECT_OK(ew_tensors_agree(ew_plan_output(p, 0), ew_plan_output(p, 1), 1e-6, 1e-6));
    ew_plan_free(p);
}

/* Scales of blocks go with the filters into the layout of the device, also where a wrong order has
 * the same shape. */
static void blocks_of_filters(void)
{
    static const int dims[][4] = {{4, 3, 3, 2}, {3, 3, 3, 3}};
    for (size_t i = 0; i < EW_COUNT(dims); i++)
        for (int block = 1; block <= 2; block++) {
            struct ew_build b;
            struct ew_graph *g = NULL;
            ew_test_begin("blocks of %d of %dx3x%dx%d filters", block, dims[i][0], dims[i][2],
                          dims[i][3]);
            ew_build_init(&b);
            b.model.opset_import[0]->version = 21;
            build_blocks(&b, dims[i], block);
            if (EW_EXPECT_OK(ew_onnx_load(ew_build_file(&b, "blocks.onnx"), NULL, &g)))
                check_blocks(g);
            ew_graph_free(g);
            ew_build_fini(&b);
            ew_test_end();
        }
}

int main(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    blocks_of_filters();
    functions_become_tables();
    round_trip("lenet5", 0, false);
    round_trip("resnet18", 32, true);
    round_trip("mobilenet_v3_small", 32, false);
    round_trip("shufflenet_v2_x0_5", 32, true);
    return ew_test_status();
}
