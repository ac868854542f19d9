/* SPDX-License-Identifier: Apache-2.0 */
/* A plan that may consume the graph's weights keeps a single copy of them.  Large ones are moved
 * into the plan's copy of the graph; regression: weights folded by a pass stayed there beside their
 * replacements. */
#include "edgewise.h"
#include "ew_test.h"
#include "graph/graph.h"
#include "graph/ops.h"
#include "plan/plan.h"

/* CHANNELS^2 float32 are 17 MiB, above the 16 MiB from which weights are moved. */
#define CHANNELS 2100

/* A 1x1 convolution followed by a batch norm. */
static struct ew_graph *build(void)
{
    const struct ew_shape x = {4, {1, 1, 1, CHANNELS}}, w = {4, {CHANNELS, 1, 1, CHANNELS}};
    const struct ew_shape each = {1, {CHANNELS}};
    struct ew_graph *g = NULL;
    int in[6], y = 0;
    bool ok = EW_EXPECT_OK(ew_graph_new("large", &g)) &&
              EW_EXPECT_OK(ew_graph_input(g, "x", EW_F32, &x, &in[0]));
    struct ew_tensor t = {.dtype = EW_F32, .shape = w};
    ok = ok && EW_EXPECT_OK(ew_graph_const(g, "w", EW_VALUE_PARAM, &t, false, &in[1]));
    ok = ok && EW_EXPECT_OK(ew_graph_add(g, &ew_op_conv, "conv", NULL, ew_inputs(in, 2), &y));
    in[0] = y;
    t.shape = each;
    for (int i = 1; ok && i <= 4; i++)
        ok = EW_EXPECT_OK(
            ew_graph_const(g, NULL, i < 3 ? EW_VALUE_PARAM : EW_VALUE_STATE, &t, false, &in[i]));
    ok = ok &&
         EW_EXPECT_OK(ew_graph_add(g, &ew_op_batch_norm, "norm", NULL, ew_inputs(in, 5), &y)) &&
         EW_EXPECT_OK(ew_graph_output(g, y)) && EW_EXPECT_OK(ew_graph_alloc_weights(g));
    if (ok)
        return g;
    ew_graph_free(g);
    return NULL;
}

int main(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    ew_test_begin("folded weights are released");
    struct ew_graph *g = build();
    struct ew_plan *p = NULL;
    const struct ew_plan_opts o = {
        .mode = EW_PLAN_INFER, .optimize = true, .consume = true, .backend = {.threads = 1}};
    if (g && EW_EXPECT_OK(ew_plan_compile(g, &o, &p))) {
        struct ew_plan_stats s;
        ew_plan_stats(p, &s);
        EW_EXPECT(s.packed_bytes >= (size_t)CHANNELS * CHANNELS * sizeof(float));
        EW_EXPECT(s.weight_bytes < (size_t)1 << 20);
        EW_EXPECT_OK(ew_plan_run(p));
    }
    ew_plan_free(p);
    ew_graph_free(g);
    ew_test_end();
    return ew_test_status();
}
