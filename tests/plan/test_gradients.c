/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of whole networks at the batch sizes of the benchmarks, at which the rules choose
 * kernels that smaller batches do not use: every instruction set of this machine against the
 * operators' references in double precision, with arbitrary initial weights.
 *
 * The measure is the distance of a parameter's gradient from the true one, relative to the true
 * one's length. Rounding leaves about 1e-4 after tens of layers.  An activation so close to its
 * kink that only one side passes it changes single elements: in ResNet-18's last layer, which has
 * one pixel here, one element of 8,192 is 1.6 % of the length. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "edgewise.h"
#include "ew_test.h"
#include "float_isa.h"
#include "model/objective.h"
#include "plan/plan.h"
#include "run_graph.h"

#define MOST 4e-2

static const struct {
    const char *name;
    int side, batch;
} nets[] = {{"lenet5", 28, 16},
            {"resnet18", 32, 16},
            {"mobilenet_v2", 32, 64},
            {"mobilenet_v3_small", 32, 64}};

static struct ew_graph *build(int i)
{
    const struct ew_model_opts o = {.size = sizeof(o),
                                    .classes = 10,
                                    .batch = nets[i].batch,
                                    .height = nets[i].side,
                                    .width = nets[i].side};
    struct ew_graph *g = NULL;
    if (EW_EXPECT_OK(ew_model_build(nets[i].name, &o, &g)) &&
        EW_EXPECT_OK(ew_model_init(nets[i].name, 1, g)) && EW_EXPECT_OK(ew_objective_add(g)))
        return g;
    ew_graph_free(g);
    return NULL;
}

static struct ew_plan *train(struct ew_graph *g, bool reference)
{
    struct ew_plan *p = NULL;
    const struct ew_plan_opts o = {
        .mode = EW_PLAN_TRAIN,
        .backend = {.device = "cpu", .threads = reference ? 1 : 2, .reference = reference}};
    if (!EW_EXPECT_OK(ew_plan_compile(g, &o, &p)))
        return NULL;
    struct ew_tensor *x = ew_plan_input(p, 0), *y = ew_plan_input(p, 1);
    for (int64_t i = 0; i < ew_tensor_count(x); i++) {
        /* Different images: batch norm over sixteen similar pixels amplifies rounding. */
        const float value = (float)ew_rng_normal(7, 0, (uint64_t)i);
        if (x->dtype == EW_F64)
            ((double *)x->data)[i] = (double)value;
        else
            ((float *)x->data)[i] = value;
    }
    for (int64_t i = 0; i < ew_tensor_count(y); i++)
        ((int64_t *)y->data)[i] = i % 10;
    EW_EXPECT_OK(ew_plan_run(p));
    return p;
}

static double length(const struct ew_tensor *a, const struct ew_tensor *b)
{
    double sum = 0;
    for (int64_t i = 0; i < ew_tensor_count(a); i++) {
        const double d = ew_tensor_get(a, i) - (b ? ew_tensor_get(b, i) : 0);
        sum += d * d;
    }
    return sqrt(sum);
}

/* Gradients that are only rounding, such as of a bias before a batch norm, are skipped: they are
 * below a millionth of the longest. */
static void compare(const struct ew_graph *g, struct ew_plan *want, struct ew_plan *got)
{
    double longest = 0;
    int compared = 0;
    for (int v = 0; v < g->n_values; v++)
        if (g->values[v].kind == EW_VALUE_PARAM)
            longest = fmax(longest, length(ew_plan_grad(want, v), NULL));
    for (int v = 0; v < g->n_values; v++) {
        if (g->values[v].kind != EW_VALUE_PARAM)
            continue;
        const struct ew_tensor *a = ew_plan_grad(want, v), *b = ew_plan_grad(got, v);
        if (!EW_EXPECT(a && b) || length(a, NULL) < 1e-6 * longest)
            continue;
        const double off = length(a, b) / length(a, NULL);
        compared++;
        if (!(off < MOST))
            EW_FAIL("gradient of %s is off by %g of its length", g->values[v].name, off);
    }
    EW_EXPECT(compared > 5);
    EW_EXPECT_NEAR(ew_tensor_get(ew_plan_output(got, 0), 0),
                   ew_tensor_get(ew_plan_output(want, 0), 0), 1e-4);
}

static void check(int i)
{
    struct ew_graph *exact = build(i);
    struct ew_plan *want = exact && EW_EXPECT_OK(ew_graph_widen(exact)) ? train(exact, true) : NULL;
    for (int k = 0; want && ew_float_isa_at(k); k++) {
        setenv("EW_ISA", ew_float_isa_at(k)->isa, 1);
        struct ew_graph *g = build(i);
        struct ew_plan *got = g ? train(g, false) : NULL;
        ew_test_begin("%s at batch %d, %s", nets[i].name, nets[i].batch, ew_float_isa_at(k)->isa);
        if (EW_EXPECT(got))
            compare(g, want, got);
        ew_test_end();
        ew_plan_free(got);
        ew_graph_free(g);
    }
    unsetenv("EW_ISA");
    ew_plan_free(want);
    ew_graph_free(exact);
}

int main(int argc, char **argv)
{
    const int n = ew_test_quick() ? 1 : (int)EW_COUNT(nets);
    for (int i = 0; i < n; i++)
        if (argc < 2 || strcmp(argv[1], nets[i].name) == 0)
            check(i);
    return ew_test_status();
}
