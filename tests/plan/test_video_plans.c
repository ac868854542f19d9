/* SPDX-License-Identifier: Apache-2.0 */
/* Networks for clips with fast kernels against the references: convolutions within frames run as on
 * images (Winograd), those over time and space by implicit GEMM; inference and a training step,
 * every instruction set of this machine. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cpu/isa.h"
#include "edgewise.h"
#include "ew_test.h"
#include "model/objective.h"
#include "plan/plan.h"
#include "run_graph.h"

/* Narrow and small, so that the references finish. */
static struct ew_graph *build(const char *name, bool train)
{
    struct ew_model_opts o = {.size = sizeof(o), .batch = 2, .classes = 5, .scale = 0.125};
    struct ew_graph *g = NULL;
    o.height = o.width = train ? 32 : 16; /* batch norms over few values amplify rounding */
    if (EW_EXPECT_OK(ew_model_build(name, &o, &g)) && EW_EXPECT_OK(ew_model_init(name, 5, g)) &&
        (!train || EW_EXPECT_OK(ew_objective_add(g))))
        return g;
    ew_graph_free(g);
    return NULL;
}

static struct ew_plan *run(struct ew_graph *g, bool train, bool reference)
{
    struct ew_plan *p = NULL;
    const struct ew_plan_opts o = {.mode = train ? EW_PLAN_TRAIN : EW_PLAN_INFER,
                                   .optimize = !reference,
                                   .backend = {.threads = 2, .reference = reference}};
    if (!g || !EW_EXPECT_OK(ew_plan_compile(g, &o, &p)))
        return NULL;
    struct ew_tensor *x = ew_plan_input(p, 0);
    for (int64_t i = 0; i < ew_tensor_count(x); i++)
        ((float *)x->data)[i] = sinf((float)i * 0.37f);
    if (train && g->n_inputs > 1)
        memcpy(ew_plan_input(p, 1)->data, (const int64_t[]){1, 4}, 2 * sizeof(int64_t));
    EW_EXPECT_OK(ew_plan_run(p));
    return p;
}

/* Root of the sum of squared differences, relative to that of the values. */
static double rms_distance(const struct ew_tensor *a, const struct ew_tensor *b)
{
    double all = 1e-30, off = 0;
    for (int64_t i = 0; i < ew_tensor_count(a); i++) {
        const double x = ew_tensor_get(a, i), y = ew_tensor_get(b, i);
        all += x * x;
        off += (x - y) * (x - y);
    }
    return sqrt(off / all);
}

/* The worst of all parameters' gradients. */
static double gradients(const struct ew_graph *g, struct ew_plan *want, struct ew_plan *got,
                        double *rms)
{
    double worst = 0;
    *rms = 0;
    for (int v = 0; v < g->n_values; v++) {
        const struct ew_tensor *a = ew_plan_grad(want, v), *b = ew_plan_grad(got, v);
        double most = 0;
        if (g->values[v].kind != EW_VALUE_PARAM || !EW_EXPECT(a && b))
            continue;
        for (int64_t i = 0; i < ew_tensor_count(a); i++)
            most = fmax(most, fabs(ew_tensor_get(a, i)));
        if (most < 1e-4) /* only rounding: a bias before batch norm */
            continue;
        worst = fmax(worst, ew_tensor_distance(a, b));
        *rms = fmax(*rms, rms_distance(a, b));
    }
    return worst;
}

static void check(const char *name, const char *isa, bool train)
{
    ew_test_begin("%s: %s, %s", name, train ? "training" : "inference", isa);
    struct ew_graph *g = build(name, train), *h = build(name, train);
    struct ew_plan *want = run(g, train, true), *got = run(h, train, false);
    if (EW_EXPECT(want && got)) {
        const double d = ew_tensor_distance(ew_plan_output(want, 0), ew_plan_output(got, 0));
        if (!EW_EXPECT(d < 1e-3))
            EW_FAIL("the output differs by %g of its largest", d);
        double rms = 0;
        const double worst = train ? gradients(g, want, got, &rms) : 0;
        /* A ReLU's input within rounding of zero may differ in sign. */
        if (!EW_EXPECT(worst < 0.1))
            EW_FAIL("a gradient differs by %g of its largest", worst);
        if (!EW_EXPECT(rms < 3e-2))
            EW_FAIL("a gradient differs by %g of its root mean square", rms);
    }
    ew_plan_free(want);
    ew_plan_free(got);
    ew_graph_free(g);
    ew_graph_free(h);
    ew_test_end();
}

/* ---- Memory of training: recomputation by default ---- */

static size_t planned(const struct ew_plan *p)
{
    struct ew_plan_stats s;
    ew_plan_stats(p, &s);
    return s.arena_bytes + s.weight_bytes;
}

/* A step with four clips takes at most half of the memory measured for PyTorch's process
 * (docs/video.md). */
static void half_of_peer(const char *name, size_t peer)
{
    struct ew_model_opts m = {.size = sizeof(m), .batch = 4};
    const struct ew_plan_opts o = {.mode = EW_PLAN_TRAIN,
                                   .dry = true,
                                   .update = true,
                                   .optimizer = {.lr = 0.1, .momentum = 0.9},
                                   .backend = {.threads = 1}};
    struct ew_graph *g = NULL;
    struct ew_plan *p = NULL;
    ew_test_begin("%s: memory of a training step", name);
    if (EW_EXPECT_OK(ew_model_build(name, &m, &g)) && EW_EXPECT_OK(ew_objective_add(g)) &&
        EW_EXPECT_OK(ew_plan_compile(g, &o, &p)))
        EW_EXPECT(planned(p) <= peer / 2);
    ew_plan_free(p);
    ew_graph_free(g);
    ew_test_end();
}

/* Values so large that residual sums are recomputed: the gradients equal those of a plan that must
 * save more. */
static void computed_again(void)
{
    struct ew_model_opts m = {
        .size = sizeof(m), .batch = 8, .classes = 5, .height = 112, .width = 112};
    struct ew_plan_opts o = {.mode = EW_PLAN_TRAIN, .backend = {.threads = 2}};
    struct ew_graph *g = NULL;
    struct ew_plan *p[2] = {NULL};
    ew_test_begin("resnet18: gradients of values that are computed again");
    bool ok = EW_EXPECT_OK(ew_model_build("resnet18", &m, &g)) &&
              EW_EXPECT_OK(ew_model_init("resnet18", 5, g)) && EW_EXPECT_OK(ew_objective_add(g));
    for (int k = 0; k < 2 && ok; k++) {
        o.memory_limit = k ? planned(p[0]) * 9 / 10 : 0;
        ok = EW_EXPECT_OK(ew_plan_compile(g, &o, &p[k]));
        for (int64_t i = 0; ok && i < ew_tensor_count(ew_plan_input(p[k], 0)); i++)
            ((float *)ew_plan_input(p[k], 0)->data)[i] = sinf((float)i * 0.37f);
        for (int i = 0; ok && i < 8; i++)
            ((int64_t *)ew_plan_input(p[k], 1)->data)[i] = i % 5;
        ok = ok && EW_EXPECT_OK(ew_plan_run(p[k]));
    }
    for (int v = 0; ok && v < g->n_values; v++)
        if (g->values[v].kind == EW_VALUE_PARAM)
            EW_EXPECT(ew_tensor_distance(ew_plan_grad(p[0], v), ew_plan_grad(p[1], v)) < 1e-4);
    ew_plan_free(p[0]);
    ew_plan_free(p[1]);
    ew_graph_free(g);
    ew_test_end();
}

int main(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    static const char *const names[] = {"mc3_18", "r2plus1d_18", "resnet18_frames", "c3d_small",
                                        "video_autoencoder"};
    for (int i = 0; ew_isa_at(i); i++) {
        const char *isa = ew_isa_at(i)->isa;
        setenv("EW_ISA", isa, 1);
        for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++)
            check(names[k], isa, false);
        check("r2plus1d_18", isa, true);
        check("video_autoencoder", isa, true);
    }
    unsetenv("EW_ISA");
    half_of_peer("r3d_18", 1631000000);
    half_of_peer("mc3_18", 1574000000);
    half_of_peer("r2plus1d_18", 3079000000);
    if (!ew_test_quick())
        computed_again();
    return ew_test_status();
}
