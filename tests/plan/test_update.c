/* SPDX-License-Identifier: Apache-2.0 */
/* Training with fused updates: gradients are applied to parameters as they are computed, and the
 * result is the optimiser's with the gradients of a plan that keeps them; one thread and two give
 * the same bits. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cpu/kernel.h"
#include "edgewise.h"
#include "ew_test.h"
#include "float_isa.h"
#include "model/objective.h"
#include "plan/plan.h"

#define RATE  0.01
#define DECAY 0.1

static const struct {
    const char *name;
    int size, batch;
} nets[] = {{"lenet5", 28, 19},       {"resnet18", 32, 3},           {"squeezenet1_1", 72, 2},
            {"mobilenet_v2", 32, 16}, {"mobilenet_v3_small", 64, 2}, {"alexnet", 64, 2}};

static struct ew_graph *build(const char *name, int size, int batch)
{
    struct ew_model_opts o = {
        .size = sizeof(o), .classes = 7, .batch = batch, .height = size, .width = size};
    if (strcmp(name, "alexnet") == 0) /* 57 million weights only cost time */
        o.scale = 0.5;
    struct ew_graph *g = NULL;
    if (EW_EXPECT_OK(ew_model_build(name, &o, &g)) && EW_EXPECT_OK(ew_model_init(name, 3, g)) &&
        EW_EXPECT_OK(ew_objective_add(g)))
        return g;
    ew_graph_free(g);
    return NULL;
}

static struct ew_plan *train(struct ew_graph *g, bool update, int threads, double decay)
{
    struct ew_plan *p = NULL;
    const struct ew_plan_opts o = {
        .mode = EW_PLAN_TRAIN,
        .update = update,
        .optimizer = {.kind = EW_OPTIMIZER_SGD, .lr = RATE, .momentum = 0.9, .weight_decay = decay},
        .backend = {.threads = threads}};
    if (!EW_EXPECT_OK(ew_plan_compile(g, &o, &p)))
        return NULL;
    struct ew_tensor *x = ew_plan_input(p, 0), *y = ew_plan_input(p, 1);
    for (int64_t i = 0; i < ew_tensor_count(x); i++)
        ((float *)x->data)[i] = sinf((float)i * 0.37f);
    for (int64_t i = 0; i < ew_tensor_count(y); i++)
        ((int64_t *)y->data)[i] = i % 7;
    EW_EXPECT_OK(ew_plan_run(p));
    EW_EXPECT_OK(ew_plan_pull(p));
    return p;
}

/* The first step: m = g + decay w, w -= rate m. */
static void expect_updated(const struct ew_graph *old, struct ew_plan *grads,
                           const struct ew_graph *now)
{
    for (int v = 0; v < old->n_values; v++) {
        const struct ew_tensor *g = ew_plan_grad(grads, v);
        if (old->values[v].kind != EW_VALUE_PARAM || !EW_EXPECT(g))
            continue;
        double worst = 0;
        for (int64_t i = 0; i < ew_tensor_count(g); i++) {
            const double w = ew_tensor_get(&old->values[v].t, i);
            const double want = w - RATE * (ew_tensor_get(g, i) + DECAY * w);
            worst = fmax(worst, fabs(ew_tensor_get(&now->values[v].t, i) - want));
        }
        if (!(worst < 1e-6))
            EW_FAIL("%s is off by %g", old->values[v].name, worst);
    }
}

static void expect_same_weights(const struct ew_graph *a, const struct ew_graph *b)
{
    for (int v = 0; v < a->n_values; v++)
        if (a->values[v].kind == EW_VALUE_PARAM)
            EW_EXPECT_INT(
                memcmp(a->values[v].t.data, b->values[v].t.data, ew_tensor_bytes(&a->values[v].t)),
                0);
}

static void check(int i, const char *isa)
{
    struct ew_graph *g[3];
    struct ew_plan *p[3] = {NULL};
    for (int k = 0; k < 3; k++)
        g[k] = build(nets[i].name, nets[i].size, nets[i].batch);
    ew_test_begin("%s, %s", nets[i].name, isa);
    if (EW_EXPECT(g[0] && g[1] && g[2])) {
        for (int k = 0; k < 3; k++)
            p[k] = train(g[k], k > 0, k == 2 ? 2 : 1, DECAY);
        if (EW_EXPECT(p[0] && p[1] && p[2])) {
            expect_updated(g[0], p[0], g[1]);
            EW_EXPECT_OK(ew_plan_run(p[1]));
            EW_EXPECT_OK(ew_plan_run(p[2]));
            expect_same_weights(g[1], g[2]);
        }
    }
    ew_test_end();
    for (int k = 0; k < 3; k++) {
        ew_plan_free(p[k]);
        ew_graph_free(g[k]);
    }
}

/* Without decay and momentum, taps that only meet padding stay unchanged; with nonzero momentum
 * they move. */
static void unmet_taps(void)
{
    struct ew_graph *g = build("resnet18", 32, 3);
    struct ew_plan *p = NULL;
    const int v = g ? ew_graph_find(g, "layer4.1.conv2.weight") : -1; /* 3x3 on single pixels */
    ew_test_begin("taps that meet no pixel");
    if (EW_EXPECT(v >= 0) && EW_EXPECT(p = train(g, true, 1, 0))) {
        const int64_t unmet = 5;
        const double w = ew_tensor_get(&g->values[v].t, unmet);
        EW_EXPECT_OK(ew_plan_run(p));
        EW_EXPECT_NEAR(ew_tensor_get(&g->values[v].t, unmet), w, 0);
        float *m = ew_plan_state(p, v, 0)->data;
        EW_EXPECT_NEAR(m[unmet], 0, 0);
        m[unmet] = 1;
        EW_EXPECT_OK(ew_plan_run(p));
        EW_EXPECT_OK(ew_plan_run(p));
        EW_EXPECT_NEAR(m[unmet], 0.81, 1e-6);
        EW_EXPECT_NEAR(ew_tensor_get(&g->values[v].t, unmet), w - RATE * (0.9 + 0.81), 1e-6);
    }
    ew_test_end();
    ew_plan_free(p);
    ew_graph_free(g);
}

/* Regression: the list of steps was reallocated while the last step's fused calls were searched for
 * updates, so a network with many batch norms did not compile. */
static void many_norms(void)
{
    struct ew_graph *g = build("densenet121", 64, 2);
    struct ew_plan *p = NULL;
    const struct ew_plan_opts o = {.mode = EW_PLAN_TRAIN, .update = true, .dry = true};
    struct ew_plan_stats stats = {0};
    ew_test_begin("updates of many fused batch norms");
    if (g && EW_EXPECT_OK(ew_plan_compile(g, &o, &p)))
        ew_plan_stats(p, &stats);
    EW_EXPECT(stats.steps > 121);
    ew_test_end();
    ew_plan_free(p);
    ew_graph_free(g);
}

int main(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    const bool quick = ew_test_quick();
    for (int i = 0; ew_float_isa_at(i); i++) {
        setenv("EW_ISA", ew_float_isa_at(i)->isa, 1);
        for (int k = 0; k < (int)EW_COUNT(nets); k++)
            if (k == 0 || (!quick && (i == 0 || k == 1)))
                check(k, ew_float_isa_at(i)->isa);
    }
    unsetenv("EW_ISA");
    many_norms();
    if (!quick)
        unmet_taps();
    return ew_test_status();
}
