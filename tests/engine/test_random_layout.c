/* SPDX-License-Identifier: Apache-2.0 */
/* Random graphs in file layout, in all configurations, against the same graph node by node
 * (random_seeds.h). */
#include "all_configs.h"
#include "ew_test.h"
#include "op/conv.h"
#include "random_graph.h"
#include "random_layout.h"
#include "random_seeds.h"

#define GRAPHS     160
#define MOST_BATCH 3

/* Other orders of sums.  Quantised values may differ by a step, which later layers amplify. */
#define TOLERANCE       2e-4
#define QUANT_TOLERANCE 0.1

static ew_err check(uint64_t seed, int nodes, bool print)
{
    struct ew_graph *file = NULL, *plain = NULL;
    const struct ew_random_layout made = {.seed = seed, .nodes = nodes, .any_batch = seed % 2 == 0};
    EW_TRY(ew_random_layout(&made, &file, &plain));
    const struct ew_all_configs o = {.seed = seed,
                                     .tolerance = ew_random_graph_quantises(plain) ? QUANT_TOLERANCE
                                                                                   : TOLERANCE,
                                     .files = true,
                                     .must_run = true,
                                     .by = plain,
                                     .most_batch = made.any_batch ? MOST_BATCH : 0};
    const ew_err e = ew_run_all_configs(file, &o);
    if (e != EW_OK && print)
        ew_random_graph_print(plain, stderr);
    ew_graph_free(file);
    ew_graph_free(plain);
    return e;
}

static void results_agree(void)
{
    ew_random_seeds(check, GRAPHS, 0);
}

/* ---- Regressions ---- */

static void expect_all_configs(struct ew_graph *g, const int *outputs, int n)
{
    const struct ew_all_configs o = {.seed = 1,
                                     .tolerance = TOLERANCE,
                                     .files = true,
                                     .must_run = true,
                                     .one_thread = true,
                                     .most_batch = MOST_BATCH};
    for (int i = 0; i < n; i++)
        EW_EXPECT_OK(ew_graph_output(g, outputs[i]));
    EW_EXPECT_OK(ew_graph_infer(g));
    EW_EXPECT_OK(ew_run_all_configs(g, &o));
    ew_graph_free(g);
}

/* x [2, 7, 2], of any batch. */
static int begin(struct ew_graph **g)
{
    int x = -1;
    const struct ew_shape s = {3, {2, 7, 2}};
    EW_EXPECT_OK(ew_graph_new("once", g));
    EW_EXPECT_OK(ew_graph_input(*g, "x", EW_F32, &s, &x));
    (*g)->values[x].dynamic = 1;
    return x;
}

/* A product with few columns uses another kernel if it has at least as many rows as a vector has
 * lanes, with another packed layout of the same size. */
static void packed_weights_of_batches(void)
{
    static float weights[2 * 8];
    struct ew_graph *g;
    int in[2] = {begin(&g)}, y;
    for (int i = 0; i < 16; i++)
        weights[i] = (float)(i + 1) / 16;
    const struct ew_tensor w = {.dtype = EW_F32, .shape = {2, {2, 8}}, .data = weights};
    EW_EXPECT_OK(ew_graph_const(g, NULL, EW_VALUE_PARAM, &w, false, &in[1]));
    EW_EXPECT_OK(ew_graph_add(g, ew_op_find("matmul"), NULL, NULL, ew_inputs(in, 2), &y));
    expect_all_configs(g, &y, 1);
}

/* An input that is an output twice gets two names in a file. */
static void outputs_have_their_own_names(void)
{
    struct ew_graph *g;
    const int x = begin(&g);
    int y;
    EW_EXPECT_OK(ew_graph_add(g, ew_op_find("relu"), NULL, NULL, EW_INPUTS(x), &y));
    expect_all_configs(g, (const int[]){y, x, x, y, y}, 5);
}

/* Transposed convolutions have one phase per stride position, most of them empty with huge strides:
 * a loop over 2^58 of them would not end. */
static void strides_beyond_the_end(void)
{
    static float weights[3 * 3 * 3 * 4];
    const struct ew_shape s = {4, {2, 1, 1, 3}};
    const struct ew_conv_transpose_attr a = {.win = {.stride = {2, {1 << 29, 1 << 29}}},
                                             .groups = 1};
    struct ew_graph *g;
    int in[2], y;
    for (size_t i = 0; i < EW_COUNT(weights); i++)
        weights[i] = (float)(i + 1) / 64;
    const struct ew_tensor w = {.dtype = EW_F32, .shape = {4, {3, 3, 3, 4}}, .data = weights};
    EW_EXPECT_OK(ew_graph_new("once", &g));
    EW_EXPECT_OK(ew_graph_input(g, "x", EW_F32, &s, &in[0]));
    g->values[in[0]].dynamic = 1;
    EW_EXPECT_OK(ew_graph_const(g, NULL, EW_VALUE_PARAM, &w, false, &in[1]));
    EW_EXPECT_OK(ew_graph_add(g, ew_op_find("conv_transpose"), NULL, &a, ew_inputs(in, 2), &y));
    expect_all_configs(g, &y, 1);
}

EW_TEST_MAIN(EW_TEST(results_agree), EW_TEST(strides_beyond_the_end),
             EW_TEST(packed_weights_of_batches), EW_TEST(outputs_have_their_own_names))
