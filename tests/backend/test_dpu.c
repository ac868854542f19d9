/* SPDX-License-Identifier: Apache-2.0 */
/* The emulated DPU: its fast kernels against the reference rules, bit by bit, at all limits of
 * shifts and saturation, and in whole networks. */
#include <stdlib.h>
#include <string.h>

#include "backend/cpu/isa.h"
#include "backend/dpu/dpu_arch.h"
#include "compress/pass.h"
#include "edgewise.h"
#include "ew_test.h"
#include "graph/ops.h"
#include "op/dpu.h"
#include "op/math_attr.h"
#include "op_case.h"
#include "plan/plan.h"
#include "quant_graph.h"

static struct ew_plan *compile(struct ew_graph *g, bool optimize, bool reference, int threads)
{
    struct ew_plan *p = NULL;
    const struct ew_plan_opts o = {
        .optimize = optimize,
        .backend = {.device = "dpu", .threads = threads, .reference = reference}};
    EW_EXPECT_OK(ew_plan_compile(g, &o, &p));
    return p;
}

static bool same_bits(struct ew_plan *a, struct ew_plan *b)
{
    const struct ew_tensor *x = ew_plan_output(a, 0), *y = ew_plan_output(b, 0);
    return ew_tensor_bytes(x) == ew_tensor_bytes(y) &&
           memcmp(x->data, y->data, ew_tensor_bytes(x)) == 0;
}

/* ---- Rules for single values ---- */

static void rules(void)
{
    const struct ew_quant_clamp all = {-128, 127};
    EW_EXPECT_INT(ew_dpu_shift(3, 1), 2);   /* 1.5 up */
    EW_EXPECT_INT(ew_dpu_shift(-3, 1), -1); /* -1.5 up */
    EW_EXPECT_INT(ew_dpu_shift(-5, 1), -2);
    EW_EXPECT_INT(ew_dpu_shift(-6, 2), -1);
    EW_EXPECT_INT(ew_dpu_shift(-7, 2), -2);
    EW_EXPECT_INT(ew_dpu_shift(-3, -2), -12);
    EW_EXPECT_INT(ew_dpu_store(255, 1, &all), 127);   /* 127.5 */
    EW_EXPECT_INT(ew_dpu_store(-257, 1, &all), -128); /* -128.5 */
    EW_EXPECT_INT(ew_dpu_store(-100000, 3, &all), -128);
    EW_EXPECT_INT(ew_dpu_align(7, 4, 1), 3); /* 28 / 8, truncated */
    EW_EXPECT_INT(ew_dpu_align(-7, 4, 1), -4);
    EW_EXPECT_INT(ew_dpu_shift(-5, 100), 0);
    EW_EXPECT_INT(ew_dpu_store(-5, -100, &all), -128);
    EW_EXPECT_INT(ew_dpu_align(-1, 64, -64), -1);
    const struct ew_dpu_mean seven = ew_dpu_mean(7, 7), two = ew_dpu_mean(2, 2);
    EW_EXPECT_INT(seven.factor, 21);
    EW_EXPECT_INT(seven.shift, 10);
    EW_EXPECT_INT(two.factor, 1);
    EW_EXPECT_INT(two.shift, 2);
    EW_EXPECT_INT(ew_dpu_mean(13, 13).shift, 14); /* 97 / 2^14; less than ceil(log2(128 * 169)) =
                                                   * 15 */
    EW_EXPECT_INT(ew_dpu_mean(13, 13).factor, 97);
    EW_EXPECT_INT(ew_dpu_hard_sigmoid(0, 4, 7), 64);
    EW_EXPECT_INT(ew_dpu_hard_sigmoid(48, 4, 7), 127);
    EW_EXPECT_INT(ew_dpu_hard_sigmoid(-48, 4, 7), 0);
    EW_EXPECT_INT(ew_dpu_hard_sigmoid(-1, -2, 7), 0);
    EW_EXPECT_INT(ew_dpu_hard_swish(16, 4, 4), 11); /* 1 * 4 / 6 = 10.67 */
    EW_EXPECT_INT(ew_dpu_hard_swish(-127, 4, 4), 0);
}

/* ---- Test cases of the operators ---- */

static void run_case(const struct ew_op *op, const struct ew_op_case *k)
{
    struct ew_graph *g = NULL;
    struct ew_plan *want = NULL, *p = NULL;
    if (!EW_EXPECT_OK(ew_case_graph(op, k, false, &g)))
        return;
    want = compile(g, false, true, 1);
    for (int threads = 1; want && threads <= 2; threads++) {
        p = compile(g, false, false, threads);
        for (int i = 0; p && i < g->n_inputs; i++) {
            const int slot = atoi(g->values[g->inputs[i]].name + 2);
            ew_case_fill(k, slot, ew_plan_input(want, i));
            ew_case_fill(k, slot, ew_plan_input(p, i));
        }
        EW_EXPECT(p && EW_EXPECT_OK(ew_plan_run(want)) && EW_EXPECT_OK(ew_plan_run(p)) &&
                  same_bits(want, p));
        ew_plan_free(p);
    }
    ew_plan_free(want);
    ew_graph_free(g);
}

static void all_cases(void)
{
    int n = 0;
    for (int i = 0; i < ew_op_count(); i++) {
        const struct ew_op *op = ew_op_at(i);
        for (int k = 0; strncmp(op->name, "dpu_", 4) == 0 && k < op->n_cases; k++, n++)
            for (int isa = 0; ew_isa_at(isa); isa++) {
                setenv("EW_ISA", ew_isa_at(isa)->isa, 1);
                run_case(op, &op->cases[k]);
            }
    }
    unsetenv("EW_ISA");
    EW_EXPECT(n >= 25);
}

/* ---- Sums at and next to every tie ---- */

enum { DEPTH = 257, MOST = 127 * 127 * 255, PIXELS = 3 * 400 };

/* 255 channels in steps of 127 * 255, one in steps of 127, one in steps of 1: any sum up to
 * MOST. */
static void set_pixel(int8_t *x, int64_t sum)
{
    const int64_t coarse = (sum + (sum < 0 ? -1 : 1) * 127 * 255 / 2) / (127 * 255);
    const int64_t rest = sum - coarse * 127 * 255;
    const int64_t middle = (rest + (rest < 0 ? -63 : 63)) / 127;
    memset(x, (int)coarse, 255);
    x[255] = (int8_t)middle;
    x[256] = (int8_t)(rest - middle * 127);
}

static void ties(int shift)
{
    int8_t w[DEPTH];
    int64_t sums[PIXELS];
    memset(w, 127, sizeof(w));
    w[DEPTH - 1] = 1;
    const struct ew_shape x_shape = {4, {1, 1, PIXELS, DEPTH}}, w_shape = {4, {1, 1, 1, DEPTH}};
    const struct ew_tensor wt = {.dtype = EW_S8, .shape = w_shape, .data = w};
    const struct ew_dpu_conv_attr attr = {
        .conv = {.groups = 1}, .clamp = {-128, 255}, .shift = shift};
    struct ew_graph *g = NULL;
    int in[2], out;
    if (!EW_EXPECT_OK(ew_graph_new("ties", &g)) ||
        !EW_EXPECT_OK(ew_graph_input(g, "x", EW_S8, &x_shape, &in[0])) ||
        !EW_EXPECT_OK(ew_graph_const(g, "w", EW_VALUE_CONST, &wt, true, &in[1])) ||
        !EW_EXPECT_OK(
            ew_graph_add(g, ew_op_find("dpu_conv"), "conv", &attr, ew_inputs(in, 2), &out)) ||
        !EW_EXPECT_OK(ew_graph_output(g, out)))
        return;
    struct ew_plan *p = compile(g, false, false, 1);
    int8_t *x = p ? ew_plan_input(p, 0)->data : NULL;
    for (int i = 0; x && i < PIXELS; i++) {
        const int64_t sum = (int64_t)(i / 3 - 200) * (1 << shift) + (1 << shift) / 2 + i % 3 - 1;
        sums[i] = sum > MOST ? MOST : (sum < -MOST ? -MOST : sum);
        set_pixel(x + (int64_t)i * DEPTH, sums[i]);
    }
    if (EW_EXPECT(x && EW_EXPECT_OK(ew_plan_run(p)))) {
        const int8_t *y = ew_plan_output(p, 0)->data;
        int wrong = 0;
        for (int i = 0; i < PIXELS; i++) { /* floor(sum / 2^shift + 1 / 2), computed
                                            * independently */
            const int64_t up = sums[i] + (shift ? (int64_t)1 << (shift - 1) : 0), one = 1 << shift;
            int64_t q = up / one - (up % one < 0);
            q = q > 127 ? 127 : (q < -128 ? -128 : q);
            wrong += y[i] != q;
        }
        EW_EXPECT_INT(wrong, 0);
    }
    ew_plan_free(p);
    ew_graph_free(g);
}

static void ties_go_up(void)
{
    for (int i = 0; ew_isa_at(i); i++) {
        setenv("EW_ISA", ew_isa_at(i)->isa, 1);
        for (int shift = 0; shift <= 16; shift++)
            ties(shift);
    }
    unsetenv("EW_ISA");
}

/* ---- Whole networks ---- */

static int count(const struct ew_graph *g, const char *op)
{
    int n = 0;
    for (int k = 0; k < g->n_nodes; k++)
        n += strcmp(g->nodes[k].op->name, op) == 0;
    return n;
}

static void nothing_is_left(struct ew_graph *g, int layers)
{
    static const char *const gone[] = {"conv",       "gemm",         "relu",
                                       "clip",       "add",          "mul",
                                       "hard_swish", "hard_sigmoid", "quantize_linear"};
    struct ew_graph *low = NULL;
    if (EW_EXPECT_OK(ew_graph_clone(g, &low)) && EW_EXPECT_OK(ew_pass_lower_dpu(low))) {
        for (size_t i = 0; i < EW_COUNT(gone); i++)
            EW_EXPECT_INT(count(low, gone[i]), 0);
        EW_EXPECT_INT(count(low, "dpu_conv"), layers);
        EW_EXPECT_INT(count(low, "dpu_input"), 1);
        EW_EXPECT_INT(count(low, "dequantize_linear"), 1);
    }
    ew_graph_free(low);
}

/* Fast kernels and rules give the same bits, close to the floats of the QDQ file. */
static void networks(void)
{
    static const struct {
        const char *name;
        int size, layers;
    } nets[] = {{"lenet5", 0, 5},
                {"resnet18", 32, 21},
                {"squeezenet1_1", 48, 26},
                {"mobilenet_v2", 32, 53},
                {"mobilenet_v3_small", 32, 54}};
    const size_t n = ew_test_quick() ? 1 : EW_COUNT(nets);
    for (size_t i = 0; i < n; i++) {
        struct ew_graph *g = ew_quant_graph_pow2(nets[i].name, nets[i].size);
        if (!g)
            continue;
        nothing_is_left(g, nets[i].layers);
        struct ew_plan *want = compile(g, true, true, 1), *p = compile(g, true, false, 2);
        if (EW_EXPECT(want && p)) {
            ew_quant_input(ew_plan_input(want, 0), 1);
            ew_quant_input(ew_plan_input(p, 0), 1);
            if (!(EW_EXPECT_OK(ew_plan_run(want)) && EW_EXPECT_OK(ew_plan_run(p)) &&
                  same_bits(want, p)))
                EW_FAIL("%s: other bits than the rules'", nets[i].name);
        }
        ew_plan_free(want);
        ew_plan_free(p);
        ew_graph_free(g);
    }
}

/* Global average pools written as ReduceMean, as by several exporters. */
static bool pools_as_means(struct ew_graph *g, bool keepdims)
{
    const int64_t space[] = {1, 2};
    const struct ew_reduce_attr attr = {.keepdims = keepdims};
    for (int k = 0; k < g->n_nodes; k++) {
        const int first = g->n_nodes;
        int in[2] = {g->nodes[k].in[0]}, out;
        if (g->nodes[k].op == &ew_op_global_average_pool &&
            !(EW_EXPECT_OK(ew_graph_const_ints(g, "axes", space, 2, &in[1])) &&
              EW_EXPECT_OK(
                  ew_graph_add(g, &ew_op_reduce_mean, NULL, &attr, ew_inputs(in, 2), &out)) &&
              EW_EXPECT_OK(ew_graph_splice(g, k, first, &out))))
            return false;
    }
    return EW_EXPECT_OK(ew_graph_infer(g));
}

/* Regression: they ran on the host, in float32. */
static void means_over_space_are_the_dpus(void)
{
    for (int keepdims = 0; keepdims < 2; keepdims++) {
        struct ew_graph *pools = ew_quant_graph_pow2("mobilenet_v2", 64), *low = NULL,
                        *means = NULL;
        if (!pools || !EW_EXPECT_OK(ew_graph_clone(pools, &means)) ||
            !pools_as_means(means, keepdims) || !EW_EXPECT_OK(ew_graph_clone(means, &low)))
            break;
        EW_EXPECT_INT(count(means, "reduce_mean"), 1);
        if (EW_EXPECT_OK(ew_pass_lower_dpu(low))) {
            EW_EXPECT_INT(count(low, "reduce_mean"), 0);
            EW_EXPECT_INT(count(low, "dpu_average_pool"), 1);
        }
        struct ew_plan *want = compile(pools, true, false, 1), *p = compile(means, true, false, 1);
        if (EW_EXPECT(want && p)) {
            ew_quant_input(ew_plan_input(want, 0), 1);
            ew_quant_input(ew_plan_input(p, 0), 1);
            EW_EXPECT(ew_plan_run(want) == EW_OK && ew_plan_run(p) == EW_OK && same_bits(want, p));
        }
        ew_plan_free(want);
        ew_plan_free(p);
        ew_graph_free(pools);
        ew_graph_free(means);
        ew_graph_free(low);
    }
}

/* Regression: ONNX's default hard sigmoid, 0.2 x + 0.5, was computed as x/6 + 0.5. */
static void other_slopes_stay_with_the_host(void)
{
    struct ew_graph *g = ew_quant_graph_pow2("mobilenet_v3_small", 32);
    if (!g)
        return;
    int changed = 0;
    for (int k = 0; k < g->n_nodes; k++)
        if (g->nodes[k].op == &ew_op_hard_sigmoid) {
            ((struct ew_scale_attr *)g->nodes[k].attr)->alpha = 0.2;
            changed++;
        }
    EW_EXPECT(changed > 0);
    if (EW_EXPECT_OK(ew_pass_lower_dpu(g)))
        EW_EXPECT_INT(count(g, "hard_sigmoid"), changed);
    ew_graph_free(g);
}

/* ---- Device names ---- */

static void devices_have_names(void)
{
    struct ew_dpu_config c;
    char text[96];
    EW_EXPECT_OK(ew_dpu_config_parse("", &c));
    EW_EXPECT_STR(c.arch->name, "B4096");
    EW_EXPECT_INT(c.cores, 2);
    EW_EXPECT_OK(ew_dpu_config_parse("kv260,clock=250", &c));
    EW_EXPECT_INT(c.cores, 1);
    EW_EXPECT_OK(ew_dpu_config_parse("b1152,cores=3", &c));
    ew_dpu_config_text(&c, text, sizeof(text));
    EW_EXPECT_STR(text, "B1152 x 3 at 300 MHz (zcu104)");
    EW_EXPECT_ERR(ew_dpu_config_parse("B4097", &c), EW_ERR_USAGE, "B4097");
    EW_EXPECT_ERR(ew_dpu_config_parse("cores=0", &c), EW_ERR_USAGE, "cores=0");
    EW_EXPECT_ERR(ew_dpu_config_parse("clock=3e2x", &c), EW_ERR_USAGE, "clock=3e2x");
    EW_EXPECT_ERR(ew_dpu_config_parse("cores=1,kv260", &c), EW_ERR_USAGE, "kv260 comes first");
}

EW_TEST_MAIN(EW_TEST(rules), EW_TEST(all_cases), EW_TEST(ties_go_up), EW_TEST(networks),
             EW_TEST(means_over_space_are_the_dpus), EW_TEST(other_slopes_stay_with_the_host),
             EW_TEST(devices_have_names))
