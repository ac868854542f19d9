/* SPDX-License-Identifier: Apache-2.0 */
/* Additions of a residual: written in place if the residual has no later use; a layer whose input
 * is also its residual gets a separate output; outputs equal the references'. */
#include <string.h>

#include "compress/pass.h"
#include "edgewise.h"
#include "ew_test.h"
#include "model/build.h"
#include "plan/plan.h"
#include "run_graph.h"

#define SIDE     24
#define CHANNELS 32

static int layer(struct ew_builder *b, const char *name, int x)
{
    return ew_b_conv_bias(b, name, x, CHANNELS, ew_win(3, 1, 1));
}

/* A residual block of two layers. */
static int two_layers(struct ew_builder *b, int x)
{
    x = ew_b_relu(b, layer(b, "a", x));
    return ew_b_relu(b, ew_b_add(b, layer(b, "c", ew_b_relu(b, layer(b, "b", x))), x));
}

static int one_layer(struct ew_builder *b, int x)
{
    x = ew_b_relu(b, layer(b, "a", x));
    return ew_b_relu(b, ew_b_add(b, layer(b, "b", x), x));
}

/* The residual has another use. */
static int read_again(struct ew_builder *b, int x)
{
    x = ew_b_relu(b, layer(b, "a", x));
    const int y = ew_b_add(b, layer(b, "c", ew_b_relu(b, layer(b, "b", x))), x);
    return ew_b_add(b, layer(b, "d", ew_b_relu(b, y)), x);
}

static struct ew_graph *build(int (*net)(struct ew_builder *, int))
{
    struct ew_builder b = {.scale = 1};
    const struct ew_shape s = {.rank = 4, .dim = {2, SIDE, SIDE, CHANNELS}};
    int x = -1;
    if (!EW_EXPECT_OK(ew_graph_new("residual", &b.g)) ||
        !EW_EXPECT_OK(ew_graph_input(b.g, "input", EW_F32, &s, &x)))
        return NULL;
    b.g->values[x].channels_last = true;
    const int y = net(&b, x);
    EW_EXPECT(b.err == EW_OK);
    EW_EXPECT_OK(ew_graph_output(b.g, y));
    EW_EXPECT_OK(ew_graph_infer(b.g));
    EW_EXPECT_OK(ew_model_init("lenet5", 3, b.g));
    return b.g;
}

/* Runs and compares; returns the memory of activations in feature maps, input and output
 * included. */
static double maps_of(int (*net)(struct ew_builder *, int))
{
    struct ew_graph *g = build(net);
    struct ew_plan *want = g ? ew_run_sine(g, true) : NULL, *got = NULL;
    const struct ew_plan_opts o = {.optimize = true, .backend = {.threads = 2}};
    struct ew_plan_stats s = {0};
    if (want && EW_EXPECT_OK(ew_plan_compile(g, &o, &got))) {
        const struct ew_tensor *x = ew_plan_input(want, 0);
        memcpy(ew_plan_input(got, 0)->data, x->data, ew_tensor_bytes(x));
        EW_EXPECT_OK(ew_plan_run(got));
        EW_EXPECT(ew_tensor_distance(ew_plan_output(want, 0), ew_plan_output(got, 0)) < 1e-4);
        ew_plan_stats(got, &s);
    }
    const size_t map = sizeof(float) * 2 * SIDE * SIDE * CHANNELS;
    const double maps = (double)s.block_bytes / (double)map;
    ew_plan_free(want);
    ew_plan_free(got);
    ew_graph_free(g);
    return maps;
}

static void outputs_are_right(void)
{
    EW_EXPECT(maps_of(one_layer) > 0);
    EW_EXPECT(maps_of(read_again) > 0);
    EW_EXPECT(maps_of(two_layers) > 0);
}

/* Of mc3_18's maps of 16x56x56x64 only two are alive at a time, not three. */
static void a_map_less(void)
{
    const struct ew_plan_opts o = {.dry = true, .backend = {.device = "cpu", .threads = 1}};
    const struct ew_model_opts m = {.size = sizeof(m)};
    const size_t map = sizeof(float) * 16 * 56 * 56 * 64,
                 input = sizeof(float) * 16 * 112 * 112 * 3;
    struct ew_graph *g = NULL;
    struct ew_plan *p = NULL;
    struct ew_plan_stats s;
    if (EW_EXPECT_OK(ew_model_build("mc3_18", &m, &g)) &&
        EW_EXPECT_OK(ew_model_init("mc3_18", 1, g)) && EW_EXPECT_OK(ew_pass_all(g)) &&
        EW_EXPECT_OK(ew_plan_compile(g, &o, &p))) {
        ew_plan_stats(p, &s);
        EW_EXPECT(s.block_bytes < 5 * map / 2 + input);
    }
    ew_plan_free(p);
    ew_graph_free(g);
}

EW_TEST_MAIN(EW_TEST(outputs_are_right), EW_TEST(a_map_less))
