/* SPDX-License-Identifier: Apache-2.0 */
/* Asynchronous runs: in order, each with its own inputs, rates and outputs, on a device that
 * executes nothing before a wait ("poison:late") and on synchronous ones. */
#include <string.h>

#include "edgewise.h"
#include "ew_test.h"
#include "model/objective.h"
#include "plan/plan.h"
#include "poison_backend.h"

#define BATCH 4
#define STEPS 6

static struct ew_graph *network(bool train)
{
    struct ew_graph *g = NULL;
    const struct ew_model_opts o = {.size = sizeof(o), .batch = BATCH, .classes = 10};
    if (!EW_EXPECT_OK(ew_model_build("lenet5", &o, &g)) ||
        !EW_EXPECT_OK(ew_model_init("lenet5", 1, g)))
        return NULL;
    if (train)
        EW_EXPECT_OK(ew_objective_add(g));
    return g;
}

static struct ew_plan *compile(struct ew_graph *g, bool train, const char *device)
{
    const struct ew_plan_opts o = {
        .mode = train ? EW_PLAN_TRAIN : EW_PLAN_INFER,
        .update = train,
        .optimizer = {.kind = EW_OPTIMIZER_SGD, .lr = 0.05, .momentum = 0.9},
        .backend = {.device = device, .threads = 1, .reference = strcmp(device, "cpu") == 0}};
    struct ew_plan *p = NULL;
    return EW_EXPECT_OK(ew_plan_compile(g, &o, &p)) ? p : NULL;
}

/* Inputs of a step in the backend's host memory, one set per run in flight. */
struct places {
    void *x[2], *labels[2];
    size_t bytes;
};

static void take_places(struct ew_plan *p, struct places *out)
{
    struct ew_backend *be = ew_plan_backend(p);
    out->bytes = ew_tensor_bytes(ew_plan_input(p, 0));
    for (int i = 0; i < 2; i++) {
        EW_EXPECT_OK(ew_backend_host_alloc(be, out->bytes, &out->x[i]));
        EW_EXPECT_OK(ew_backend_host_alloc(be, BATCH * sizeof(int64_t), &out->labels[i]));
    }
}

static void give_places(struct ew_plan *p, struct places *k)
{
    for (int i = 0; i < 2; i++) {
        ew_backend_host_free(ew_plan_backend(p), k->x[i]);
        ew_backend_host_free(ew_plan_backend(p), k->labels[i]);
    }
}

static void start_step(struct ew_plan *p, const struct places *k, int step, bool train)
{
    float *x = k->x[step % 2];
    int64_t *labels = k->labels[step % 2];
    for (size_t i = 0; i < k->bytes / sizeof(*x); i++)
        x[i] = (float)((i * 31 + (size_t)step * 7) % 97) / 48 - 1;
    for (int i = 0; i < BATCH; i++)
        labels[i] = (i + step) % 10;
    ew_plan_bind_input(p, 0, x);
    if (train) {
        ew_plan_bind_input(p, 1, labels);
        ew_plan_optimizer(p)->lr = 0.05 / (1 + step);
    }
    EW_EXPECT_OK(ew_plan_start(p));
}

/* Runs some steps, with the given number in flight: the first output of each, finally a weight. */
static void run_steps(const char *device, bool train, int depth, float *out)
{
    struct ew_graph *g = network(train);
    struct ew_plan *p = g ? compile(g, train, device) : NULL;
    struct places k;
    if (!p)
        return;
    EW_EXPECT_INT(ew_plan_depth(p), depth);
    take_places(p, &k);
    for (int started = 0, done = 0; done < STEPS; done++) {
        while (started < STEPS && started < done + depth)
            start_step(p, &k, started++, train);
        EW_EXPECT_OK(ew_plan_wait(p, NULL));
        out[done] = ((const float *)ew_plan_output(p, 0)->data)[0];
    }
    EW_EXPECT_OK(ew_plan_pull(p));
    out[STEPS] = ((const float *)g->values[ew_graph_find(g, "conv1.weight")].t.data)[3];
    give_places(p, &k);
    ew_plan_free(p);
    ew_graph_free(g);
}

static void runs_keep_their_order_and_values(void)
{
    EW_EXPECT_OK(ew_poison_register());
    for (int train = 0; train < 2; train++) {
        float want[STEPS + 1] = {0}, got[STEPS + 1] = {0};
        run_steps("cpu", train, 1, want);
        run_steps("poison:late", train, 2, got);
        for (int i = 0; i <= STEPS; i++)
            EW_EXPECT_NEAR(got[i], want[i], 0);
        EW_EXPECT(want[0] < want[1] || want[0] > want[1]); /* or the order would not show */
    }
}

static void refuses_what_would_mix_runs_up(void)
{
    EW_EXPECT_OK(ew_poison_register());
    struct ew_graph *g = network(false);
    struct ew_plan *p = compile(g, false, "poison:late");
    if (!p)
        return;
    EW_EXPECT_ERR(ew_plan_wait(p, NULL), EW_ERR_ARG, "no run is under way");
    EW_EXPECT_OK(ew_plan_start(p));
    EW_EXPECT_ERR(ew_plan_run(p), EW_ERR_ARG, "not waited for");
    EW_EXPECT_OK(ew_plan_start(p));
    EW_EXPECT_ERR(ew_plan_start(p), EW_ERR_ARG, "2 runs are under way");
    EW_EXPECT_OK(ew_plan_wait(p, NULL));
    EW_EXPECT_OK(ew_plan_start(p)); /* the source is freed while runs are in flight */
    ew_plan_free(p);
    ew_graph_free(g);
}

EW_TEST_MAIN(EW_TEST(runs_keep_their_order_and_values), EW_TEST(refuses_what_would_mix_runs_up))
