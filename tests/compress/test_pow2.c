/* SPDX-License-Identifier: Apache-2.0 */
/* Power-of-two quantisation: binary point positions, and how hardware limits round layers. */
#include "compress/pow2.h"

#include <stdlib.h>
#include <string.h>

#include "compress/quant_view.h"
#include "edgewise.h"
#include "ew_test.h"
#include "quant_graph.h"

static void first_positions_clip_nothing(void)
{
    EW_EXPECT_INT(ew_pow2_first(0, 127.5f), 0); /* still rounds to 127 */
    EW_EXPECT_INT(ew_pow2_first(0, 127.6f), -1);
    EW_EXPECT_INT(ew_pow2_first(-128.5f, 0), 0);
    EW_EXPECT_INT(ew_pow2_first(-128.6f, 0), -1);
    EW_EXPECT_INT(ew_pow2_first(-1, 1), 6);
    EW_EXPECT_INT(ew_pow2_first(-1, 0.9f), 7);
    EW_EXPECT_INT(ew_pow2_first(0, 1e-6f), EW_POW2_MOST);
    EW_EXPECT_INT(ew_pow2_first(0, 0), EW_POW2_MOST);
    EW_EXPECT_INT(ew_pow2_first(0, 1e30f), EW_POW2_LEAST);
}

/* A single outlier among many small values is clipped, but by at most four positions. */
static void best_position_clips_outliers(void)
{
    float x[1003];
    for (int i = 0; i < 1003; i++)
        x[i] = (float)(i % 101 - 50) / 50;
    EW_EXPECT_INT(ew_pow2_best(x, 1003), 7); /* 1 becomes 127/128, which costs less than the others
                                              * gain */
    x[7] = 2.1f;
    EW_EXPECT_INT(ew_pow2_first(-1, 2.1f), 5);
    EW_EXPECT_INT(ew_pow2_best(x, 1003), 6);
    for (int i = 0; i < 1003; i++)
        x[i] /= 1000;
    x[7] = 0.016f;
    EW_EXPECT_INT(ew_pow2_best(x, 1003), 12);
    x[7] = 100;
    EW_EXPECT_INT(ew_pow2_best(x, 1003), 0);
}

static void weights_round_away_from_zero(void)
{
    EW_EXPECT_INT(ew_pow2_round(0.5f, 0), 1);
    EW_EXPECT_INT(ew_pow2_round(-0.5f, 0), -1);
    EW_EXPECT_INT(ew_pow2_round(-0.25f, 1), -1);
    EW_EXPECT_INT(ew_pow2_round(200, 0), 127);
    EW_EXPECT_INT(ew_pow2_round(-200, 0), -128);
}

/* Training rounds whole arrays by vectors, with the same results as the scalar function of
 * quantised networks. */
static void rounds_runs_alike(void)
{
    float x[4099], y[EW_COUNT(x)];
    const float odd[] = {0.49999997f, -0.49999997f, 127.5f, -128.5f, 1e30f, -1e30f, 1e-40f, NAN};
    for (int position = EW_POW2_LEAST; position <= EW_POW2_MOST; position++) {
        for (size_t i = 0; i < EW_COUNT(x); i++) /* quarters of a step, including ties */
            x[i] = ldexpf((float)i - 2049, -2 - position);
        for (size_t i = 0; i < EW_COUNT(odd); i++)
            x[i * 5] = ldexpf(odd[i], -position);
        ew_pow2_there_and_back(x, EW_COUNT(x), position, y);
        for (size_t i = 0; i < EW_COUNT(x); i++)
            EW_EXPECT_NEAR((double)y[i], ldexp((double)ew_pow2_round(x[i], position), -position),
                           0);
    }
}

static void positions_of_scales(void)
{
    int p = 99;
    EW_EXPECT(ew_pow2_position(0.25, &p));
    EW_EXPECT_INT(p, 2);
    EW_EXPECT(ew_pow2_position(8, &p));
    EW_EXPECT_INT(p, -3);
    EW_EXPECT(!ew_pow2_position(0.3, &p));
    EW_EXPECT(!ew_pow2_position(0, &p));
    EW_EXPECT(!ew_pow2_position(-1, &p));
    EW_EXPECT(!ew_pow2_position(0x1p-13, &p));
}

static int position(const struct ew_graph *g, int value, int *q)
{
    struct ew_qview v;
    int p = -1000;
    if (EW_EXPECT(ew_qview_weights(g, value, 0, &v) || ew_qview_of(g, value, &v)) &&
        EW_EXPECT(ew_pow2_position(ew_qview_scale(g, &v), &p))) {
        EW_EXPECT_INT(ew_qview_zero(g, &v), 0);
        EW_EXPECT_INT(g->values[v.q].t.dtype, EW_S8);
        EW_EXPECT_INT(ew_tensor_count(&g->values[v.scale].t), 1);
    }
    *q = v.q;
    return p;
}

/* The value after the single consumers of `value`, up to a dequantiser's. */
static int dequantized(const struct ew_graph *g, int value)
{
    for (int k = 0; k < g->n_nodes; k++)
        if (g->nodes[k].n_in && g->nodes[k].in[0] == value) {
            value = g->nodes[k].out[0];
            if (strcmp(g->nodes[k].op->name, "dequantize_linear") == 0)
                return value;
        }
    return -1;
}

static int check_layer(const struct ew_graph *g, const struct ew_node *n)
{
    int q;
    const int in = position(g, n->in[0], &q), w = position(g, n->in[1], &q);
    const int to = dequantized(g, n->out[0]);
    if (!EW_EXPECT(to >= 0))
        return 0;
    const int shift = in + w - position(g, to, &q);
    EW_EXPECT(shift >= 0 && shift <= EW_POW2_SHIFT);
    if (n->n_in > 2 && n->in[2] >= 0) {
        const int bias = in + w - position(g, n->in[2], &q);
        EW_EXPECT(bias >= 0 && bias <= EW_POW2_BIAS_SHIFT);
    }
    return 1;
}

static void layers_keep_to_limits(void)
{
    static const struct {
        const char *name;
        int size, layers;
    } nets[] = {{"lenet5", 0, 5},
                {"resnet18", 32, 21},
                {"squeezenet1_1", 48, 26},
                {"densenet121", 32, 121},
                {"mobilenet_v2", 32, 53},
                {"mobilenet_v3_small", 32, 54},
                {"shufflenet_v2_x0_5", 32, 57}};
    for (size_t i = 0; i < EW_COUNT(nets); i++) {
        struct ew_graph *g = ew_quant_graph_pow2(nets[i].name, nets[i].size);
        int layers = 0;
        for (int k = 0; g && k < g->n_nodes; k++) {
            const char *op = g->nodes[k].op->name;
            if (strcmp(op, "conv") == 0 || strcmp(op, "gemm") == 0)
                layers += check_layer(g, &g->nodes[k]);
        }
        if (layers != nets[i].layers)
            EW_FAIL("%s: %d layers with a place in int8, not %d", nets[i].name, layers,
                    nets[i].layers);
        ew_graph_free(g);
    }
}

EW_TEST_MAIN(EW_TEST(first_positions_clip_nothing), EW_TEST(best_position_clips_outliers),
             EW_TEST(weights_round_away_from_zero), EW_TEST(rounds_runs_alike),
             EW_TEST(positions_of_scales), EW_TEST(layers_keep_to_limits))
