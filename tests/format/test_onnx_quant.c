/* SPDX-License-Identifier: Apache-2.0 */
/* Networks in QDQ form: written, read back, and lowered to the same integers. */
#include <string.h>

#include "compress/pass.h"
#include "edgewise.h"
#include "ew_test.h"
#include "graph/layout.h"
#include "plan/plan.h"
#include "quant_graph.h"

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

/* Filters are written in the file's order as integers: no transpose stands behind them. */
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

int main(void)
{
    round_trip("lenet5", 0, false);
    round_trip("resnet18", 32, true);
    round_trip("mobilenet_v3_small", 32, false);
    round_trip("shufflenet_v2_x0_5", 32, true);
    return ew_test_status();
}
