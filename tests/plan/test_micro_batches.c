/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers of micro-batches.  Regression: all micro-batches of a step dropped the same
 * elements. */
#include "ew_test.h"
#include "model/objective.h"
#include "op/math_attr.h"
#include "plan/plan.h"

#define FEATURES 512
#define CLASSES  3

/* Inputs of ones, half of them dropped, and a dense layer. */
static struct ew_graph *network(void)
{
    struct ew_graph *g = NULL;
    const struct ew_shape in = {2, {2, FEATURES}};
    const struct ew_dropout_attr half = {.ratio = 0.5};
    static const float zeros[FEATURES * CLASSES];
    const struct ew_tensor t = {
        .dtype = EW_F32, .shape = {2, {FEATURES, CLASSES}}, .data = (void *)(uintptr_t)zeros};
    int x, w, v;
    EW_EXPECT_OK(ew_graph_new("dropped", &g));
    EW_EXPECT_OK(ew_graph_input(g, "x", EW_F32, &in, &x));
    EW_EXPECT_OK(ew_graph_const(g, "w", EW_VALUE_PARAM, &t, true, &w));
    EW_EXPECT_OK(ew_graph_add(g, ew_op_find("dropout"), "drop", &half, EW_INPUTS(x), &v));
    const int dropped = v;
    EW_EXPECT_OK(ew_graph_add(g, ew_op_find("matmul"), "dense", NULL, EW_INPUTS(dropped, w), &v));
    EW_EXPECT_OK(ew_graph_output(g, v));
    EW_EXPECT_OK(ew_objective_add(g));
    EW_EXPECT_OK(ew_graph_infer(g));
    return g;
}

/* Features that no sample of the batch has kept have no gradient. */
static int never_kept(struct ew_graph *g, struct ew_plan *p, uint64_t step)
{
    int n = 0;
    float *x = ew_plan_input(p, 0)->data;
    for (int i = 0; i < 2 * FEATURES; i++)
        x[i] = 1;
    ew_tensor_store(ew_plan_input(p, 1), 0, 2, (const double[]){0, 0});
    ew_plan_set_step(p, step);
    EW_EXPECT_OK(ew_plan_run(p));
    const struct ew_tensor *grad = ew_plan_grad(p, ew_graph_find(g, "w"));
    for (int i = 0; i < FEATURES; i++)
        n += !(ew_tensor_get(grad, (int64_t)i * CLASSES) < 0);
    return n;
}

static void drop_other_elements(void)
{
    struct ew_graph *g = network();
    struct ew_plan *p = NULL;
    const struct ew_plan_opts o = {.mode = EW_PLAN_TRAIN,
                                   .memory_limit = (size_t)1 << 30,
                                   .micro_batches = 2,
                                   .backend = {.threads = 1}};
    if (EW_EXPECT_OK(ew_plan_compile(g, &o, &p))) {
        const int first = never_kept(g, p, 5);
        EW_EXPECT(first > FEATURES / 8 && first < 3 * FEATURES / 8); /* a quarter, not half */
        EW_EXPECT_INT(never_kept(g, p, 5), first);
    }
    ew_plan_free(p);
    ew_graph_free(g);
}

EW_TEST_MAIN(EW_TEST(drop_other_elements))
