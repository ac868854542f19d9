/* SPDX-License-Identifier: Apache-2.0 */
/* Local training.  Regression: step i of every client in every round dropped the same elements. */
#include <string.h>

#include "ew_test.h"
#include "federate/local_trainer.h"
#include "op/math_attr.h"

#define SIDE    8
#define CLASSES 2
#define WEIGHTS (SIDE * SIDE * 3 * CLASSES)

/* An image of which half is dropped, and a dense layer. */
static struct ew_graph *network(void)
{
    struct ew_graph *g = NULL;
    const struct ew_shape in = {4, {1, SIDE, SIDE, 3}};
    const struct ew_dropout_attr half = {.ratio = 0.5};
    static float zeros[WEIGHTS];
    const struct ew_tensor t = {
        .dtype = EW_F32, .shape = {2, {WEIGHTS / CLASSES, CLASSES}}, .data = zeros};
    int x, w, drop, flat, out;
    EW_EXPECT_OK(ew_graph_new("dropped", &g));
    EW_EXPECT_OK(ew_graph_input(g, "x", EW_F32, &in, &x));
    g->values[x].dynamic = 1;
    g->values[x].channels_last = true;
    EW_EXPECT_OK(ew_graph_const(g, "w", EW_VALUE_PARAM, &t, true, &w));
    EW_EXPECT_OK(ew_graph_add(g, ew_op_find("dropout"), "drop", &half, EW_INPUTS(x), &drop));
    EW_EXPECT_OK(ew_graph_add(g, ew_op_find("flatten"), "flat", NULL, EW_INPUTS(drop), &flat));
    EW_EXPECT_OK(ew_graph_add(g, ew_op_find("matmul"), "dense", NULL, EW_INPUTS(flat, w), &out));
    EW_EXPECT_OK(ew_graph_output(g, out));
    return g;
}

static void one_step(struct ew_local_trainer *c, uint64_t stream, float *answer)
{
    static const float zeros[WEIGHTS];
    static const int64_t first = 0;
    double loss;
    int64_t steps;
    const struct ew_local_task t = {
        .samples = &first, .n = 1, .lr = 0.1, .stream = stream, .server = zeros};
    EW_EXPECT_INT(c->weights.size, WEIGHTS);
    EW_EXPECT_OK(ew_local_trainer_run(c, &t, answer, &loss, &steps));
}

static void streams_drop_other_elements(void)
{
    static float a[WEIGHTS], b[WEIGHTS], again[WEIGHTS];
    struct ew_dataset *data = NULL;
    struct ew_graph *g = network();
    struct ew_local_trainer c;
    EW_EXPECT_OK(ew_dataset_open("synthetic:train=4,test=2,classes=2,size=8", &data));
    const struct ew_local_opts o = {
        .batch = 1, .epochs = 1, .threads = 1, .seed = 1, .data = data, .prep.std = {1, 1, 1, 1}};
    if (EW_EXPECT_OK(ew_local_trainer_open(&o, g, &c))) {
        one_step(&c, 1, a);
        one_step(&c, 2, b);
        one_step(&c, 1, again);
        EW_EXPECT(memcmp(a, b, sizeof(a)) != 0);
        EW_EXPECT_INT(memcmp(a, again, sizeof(a)), 0);
        ew_local_trainer_close(&c);
    }
    ew_dataset_close(data);
    ew_graph_free(g);
}

EW_TEST_MAIN(EW_TEST(streams_drop_other_elements))
