/* SPDX-License-Identifier: Apache-2.0 */
/* Preparation for per-layer scales: equalisation across a ReLU6, weights of unused channels. */
#include <math.h>
#include <string.h>

#include "compress/pass.h"
#include "compress/pow2.h"
#include "edgewise.h"
#include "ew_test.h"
#include "op/conv.h"
#include "plan/plan.h"

#define CHANNELS 4

static int constant(struct ew_graph *g, const float *x, int64_t filters, int64_t each)
{
    struct ew_tensor t = {.dtype = EW_F32, .shape = {4, {filters, 1, 1, each}}};
    int v = -1;
    t.data = (void *)(uintptr_t)x; /* copied */
    EW_EXPECT_OK(ew_graph_const(g, NULL, EW_VALUE_PARAM, &t, true, &v));
    return v;
}

/* 1x1 convolution, ReLU6, depthwise convolution.  Channels 0 and 1 reach 6, 2 reaches 1.5, 3 is
 * always 0. */
static struct ew_graph *make(int *first, int *second, int *clipped)
{
    static const float w[CHANNELS * 2] = {8, 0, 0, 8, 0.5f, 0.25f, -1, -1};
    static const float d[CHANNELS] = {1, 0.5f, 30, 500};
    const struct ew_shape in = {4, {1, 2, 2, 2}};
    struct ew_conv_attr conv = {.groups = 1}, depthwise = {.groups = CHANNELS};
    struct ew_graph *g = NULL;
    int x[3], y;
    EW_EXPECT_OK(ew_graph_new("pair", &g));
    EW_EXPECT_OK(ew_graph_input(g, "x", EW_F32, &in, &x[0]));
    x[1] = constant(g, w, CHANNELS, 2);
    EW_EXPECT_OK(ew_graph_add(g, ew_op_find("conv"), "first", &conv, ew_inputs(x, 2), &x[0]));
    EW_EXPECT_OK(ew_graph_const_float(g, NULL, 0, &x[1]));
    EW_EXPECT_OK(ew_graph_const_float(g, NULL, 6, &x[2]));
    EW_EXPECT_OK(ew_graph_add(g, ew_op_find("clip"), "relu6", NULL, ew_inputs(x, 3), &y));
    *clipped = y;
    const int in2[] = {y, constant(g, d, CHANNELS, 1)};
    EW_EXPECT_OK(ew_graph_add(g, ew_op_find("conv"), "second", &depthwise, ew_inputs(in2, 2), &y));
    EW_EXPECT_OK(ew_graph_output(g, y));
    *first = 0;
    *second = 2;
    return g;
}

static const float reach[CHANNELS] = {6, 6, 1.5f, 0};

static void run(struct ew_graph *g, float *out)
{
    struct ew_plan *p = NULL;
    const struct ew_plan_opts o = {.backend = {.threads = 1}};
    if (!EW_EXPECT_OK(ew_plan_compile(g, &o, &p)))
        return;
    struct ew_tensor *x = ew_plan_input(p, 0);
    for (int64_t i = 0; i < ew_tensor_count(x); i++)
        ((float *)x->data)[i] = (float)(i + 1) / 4;
    EW_EXPECT_OK(ew_plan_run(p));
    memcpy(out, ew_plan_output(p, 0)->data, ew_tensor_bytes(ew_plan_output(p, 0)));
    ew_plan_free(p);
}

static const float *weights(const struct ew_graph *g, int node)
{
    return g->values[g->nodes[node].in[1]].t.data;
}

/* The network's outputs are unchanged; channels at the bound keep their weights, those below it
 * grow at most until they would reach it. */
static void relu6_leaves_room(void)
{
    int first, second, clipped;
    struct ew_graph *g = make(&first, &second, &clipped);
    const float *peaks[64] = {NULL};
    float before[16], after[16];
    if (!EW_EXPECT(g->n_values <= 64))
        return;
    peaks[clipped] = reach;
    run(g, before);
    EW_EXPECT_OK(ew_pass_equalize(g, &(struct ew_equalize_opts){.reach = peaks, .rounds = 4}));
    run(g, after);
    EW_EXPECT_CLOSE(after, before, 16, 1e-5, 1e-5);
    EW_EXPECT_CLOSE(weights(g, first), ((const float[]){8, 0, 0, 8}), 4, 0, 0);
    EW_EXPECT(weights(g, first)[4] > 0.5f); /* the third grows, and its consumer shrinks */
    EW_EXPECT(weights(g, first)[4] <= 0.5f * 6 / 1.5f);
    EW_EXPECT(weights(g, second)[2] < 30);
    EW_EXPECT_CLOSE(&weights(g, second)[3], ((const float[]){500}), 1, 0, 0);
    ew_graph_free(g);
    g = make(&first, &second, &clipped);
    EW_EXPECT_OK(ew_pass_equalize(g, &(struct ew_equalize_opts){.rounds = 4}));
    EW_EXPECT_CLOSE(weights(g, second), ((const float[]){1, 0.5f, 30, 500}), 4, 0, 0);
    ew_graph_free(g);
}

/* Regression: the weight of a dead channel determined the scale of all: 500 leaves steps of 4. */
static void dead_channels_have_no_vote(void)
{
    int first, second, clipped;
    struct ew_graph *g = make(&first, &second, &clipped);
    const float *peaks[64] = {NULL};
    float before[16], after[16];
    if (!EW_EXPECT(g->n_values <= 64))
        return;
    peaks[clipped] = reach;
    run(g, before);
    EW_EXPECT_INT(ew_pow2_first(0, 500), -2);
    EW_EXPECT_OK(ew_pass_clip_weights(g, peaks));
    const float *w = weights(g, second);
    EW_EXPECT_INT(ew_pow2_best(w, CHANNELS), 1); /* only 0.5 and 30 count */
    EW_EXPECT_CLOSE(w, ((const float[]){1, 0.5f, 30, 63.5f}), 4, 0, 0);
    run(g, after);
    EW_EXPECT_CLOSE(after, before, 16, 0, 0);
    ew_graph_free(g);
}

EW_TEST_MAIN(EW_TEST(relu6_leaves_room), EW_TEST(dead_channels_have_no_vote))
