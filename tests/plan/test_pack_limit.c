/* SPDX-License-Identifier: Apache-2.0 */
/* Inference within a memory limit: kernels that pack less are chosen until it fits, results stay
 * the same, and limits that cannot be met are reported. */
#include <math.h>
#include <string.h>

#include "edgewise.h"
#include "ew_test.h"
#include "graph/graph.h"
#include "plan/plan.h"
#include "quant_graph.h"

/* 3x3 layers with many channels: Winograd's packed filters are several times larger. */
static struct ew_graph *network(void)
{
    struct ew_graph *g = NULL;
    const struct ew_model_opts o = {.size = sizeof(o), .height = 64, .width = 64, .scale = 0.5};
    EW_EXPECT_OK(ew_model_build("resnet18", &o, &g));
    EW_EXPECT_OK(ew_model_init("resnet18", 1, g));
    return g;
}

static size_t weight_bytes(const struct ew_graph *g)
{
    size_t bytes = 0;
    for (int i = 0; i < g->n_values; i++)
        if (g->values[i].kind != EW_VALUE_ACT && g->values[i].kind != EW_VALUE_INPUT)
            bytes += ew_tensor_bytes(&g->values[i].t);
    return bytes;
}

static struct ew_plan *compile(struct ew_graph *g, size_t limit, bool dry, ew_err *e)
{
    const struct ew_plan_opts o = {.mode = EW_PLAN_INFER,
                                   .optimize = true,
                                   .dry = dry,
                                   .memory_limit = limit,
                                   .backend = {.device = "cpu", .threads = 1}};
    struct ew_plan *p = NULL;
    *e = ew_plan_compile(g, &o, &p);
    return *e == EW_OK ? p : NULL;
}

static size_t planned(const struct ew_plan *p)
{
    struct ew_plan_stats s;
    ew_plan_stats(p, &s);
    return s.arena_bytes;
}

static void run(struct ew_plan *p)
{
    struct ew_tensor *x = ew_plan_input(p, 0);
    for (int64_t i = 0; i < ew_tensor_count(x); i++)
        ((float *)x->data)[i] = (float)(i % 17) * 0.1f - 0.8f;
    EW_EXPECT_OK(ew_plan_run(p));
}

/* A limit between the rules' choice and the minimum is met by some substitutions, and outputs agree
 * up to the error of Winograd's transforms. */
static void limit_is_met(void)
{
    ew_err e;
    struct ew_graph *g = network();
    struct ew_plan *rules = compile(g, 0, false, &e);
    struct ew_plan *wide = compile(g, (size_t)1 << 40, true, &e);
    struct ew_plan_stats s;
    if (!EW_EXPECT(rules && wide))
        return;
    ew_plan_stats(wide, &s);
    EW_EXPECT(s.swapped == 0);
    ew_plan_stats(rules, &s);
    const size_t less = s.packed_bytes / 8;
    struct ew_plan *p = compile(g, planned(rules) + weight_bytes(g) - less, false, &e);
    if (EW_EXPECT_OK(e)) {
        ew_plan_stats(p, &s);
        EW_EXPECT(planned(p) + less <= planned(rules));
        EW_EXPECT(s.swapped > 0 && s.slower >= 0);
        run(rules);
        run(p);
        const struct ew_tensor *a = ew_plan_output(rules, 0), *b = ew_plan_output(p, 0);
        for (int64_t i = 0; i < ew_tensor_count(a); i++)
            EW_EXPECT(fabs(ew_tensor_get(a, i) - ew_tensor_get(b, i)) < 1e-3);
    }
    ew_plan_free(p);
    ew_plan_free(wide);
    ew_plan_free(rules);
    ew_graph_free(g);
}

static void too_little_is_refused(void)
{
    ew_err e;
    struct ew_graph *g = network();
    struct ew_plan *p = compile(g, 1 << 20, true, &e);
    EW_EXPECT(!p && e == EW_ERR_LIMIT);
    EW_EXPECT(strstr(ew_error_message(), "more than the limit of 1048576"));
    ew_graph_free(g);
}

/* The search plans the graph that the device runs (the emulated DPU's has other steps), so what it
 * accepts is within the limit. */
static void the_graph_of_the_device(void)
{
    struct ew_graph *g = ew_quant_graph_pow2("resnet18", 64);
    struct ew_plan_opts o = {.optimize = true, .backend = {.device = "dpu", .threads = 1}};
    struct ew_plan *p = NULL;
    if (!g || !EW_EXPECT_OK(ew_plan_compile(g, &o, &p)))
        return;
    const size_t all = planned(p) + weight_bytes(g);
    ew_plan_free(p);
    o.memory_limit = all - all / 32;
    EW_EXPECT_ERR(ew_plan_compile(g, &o, &p), EW_ERR_LIMIT, "more than the limit");
    o.memory_limit = all + all / 32;
    if (EW_EXPECT_OK(ew_plan_compile(g, &o, &p))) {
        EW_EXPECT(planned(p) + weight_bytes(g) <= o.memory_limit);
        ew_plan_free(p);
    }
    ew_graph_free(g);
}

int main(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    ew_test_begin("limit_is_met");
    limit_is_met();
    ew_test_end();
    ew_test_begin("too_little_is_refused");
    too_little_is_refused();
    ew_test_end();
    ew_test_begin("the_graph_of_the_device");
    the_graph_of_the_device();
    ew_test_end();
    return ew_test_status();
}
