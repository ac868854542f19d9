/* SPDX-License-Identifier: Apache-2.0 */
/* Host steps, for devices without a kernel for some node: results, transfers, residency of
 * weights. */
#include <string.h>

#include "edgewise.h"
#include "ew_test.h"
#include "model/objective.h"
#include "plan/plan.h"
#include "poison_backend.h"

#define BATCH 4

static struct ew_graph *network(const char *name, bool with_loss)
{
    struct ew_graph *g = NULL;
    struct ew_model_opts o = {.size = sizeof(o), .batch = BATCH, .classes = 10};
    if (strcmp(name, "lenet5") != 0)
        o.height = o.width = 32, o.scale = strcmp(name, "resnet18") == 0 ? 0.125 : 1;
    if (!EW_EXPECT_OK(ew_model_build(name, &o, &g)) || !EW_EXPECT_OK(ew_model_init(name, 1, g)))
        return NULL;
    if (with_loss)
        EW_EXPECT_OK(ew_objective_add(g));
    return g;
}

static void fill_inputs(struct ew_plan *p, bool train)
{
    struct ew_tensor *x = ew_plan_input(p, 0);
    for (int64_t i = 0; i < ew_tensor_count(x); i++)
        ((float *)x->data)[i] = (float)((i * 31) % 97) / 48 - 1;
    for (int i = 0; train && i < BATCH; i++)
        ((int64_t *)ew_plan_input(p, 1)->data)[i] = i;
}

static struct ew_plan *compile(struct ew_graph *g, bool train, const char *device, bool reference)
{
    const struct ew_plan_opts o = {
        .mode = train ? EW_PLAN_TRAIN : EW_PLAN_INFER,
        .update = train,
        .optimizer = {.kind = EW_OPTIMIZER_SGD, .lr = 0.05, .momentum = 0.9},
        .backend = {.device = device, .threads = 1, .reference = reference}};
    struct ew_plan *p = NULL;
    if (!EW_EXPECT_OK(ew_plan_compile(g, &o, &p)))
        return NULL;
    fill_inputs(p, train);
    return p;
}

static size_t total(const struct ew_graph *g, const int *list, int n)
{
    size_t bytes = 0;
    for (int i = 0; i < n; i++)
        bytes += ew_tensor_bytes(&g->values[list[i]].t);
    return bytes;
}

/* The transferred bytes are exactly those that the plan announces. */
static void copies_what_the_plan_says(void)
{
    EW_EXPECT_OK(ew_poison_register());
    struct ew_graph *g = network("lenet5", false);
    struct ew_plan *p = compile(g, false, "poison", false), *q = compile(g, false, "cpu", false);
    struct ew_plan_stats s;
    ew_plan_stats(p, &s);
    EW_EXPECT(s.host_steps > 0 && s.copied_bytes > 0 && s.resident_bytes > 0);
    const struct ew_poison_counts before = ew_poison_counts(ew_plan_backend(p));
    EW_EXPECT_OK(ew_plan_run(p));
    EW_EXPECT_OK(ew_plan_run(q));
    const struct ew_poison_counts after = ew_poison_counts(ew_plan_backend(p));
    const int64_t crossed =
        after.read_bytes - before.read_bytes + after.written_bytes - before.written_bytes;
    EW_EXPECT_INT(crossed, s.copied_bytes + total(g, g->inputs, g->n_inputs) +
                               total(g, g->outputs, g->n_outputs));
    EW_EXPECT_INT(after.runs, 0);
    const struct ew_tensor *a = ew_plan_output(p, 0), *b = ew_plan_output(q, 0);
    EW_EXPECT(memcmp(a->data, b->data, ew_tensor_bytes(a)) == 0);
    int on_host = 0;
    for (int k = 0; k < ew_plan_step_count(p); k++) {
        struct ew_step_info info;
        ew_plan_step_info(p, k, &info);
        on_host += info.on_host;
        EW_EXPECT(info.on_host == (info.copied_bytes > 0));
    }
    EW_EXPECT_INT(on_host, s.host_steps);
    ew_plan_free(p);
    ew_plan_free(q);
    ew_graph_free(g);
}

/* Training changes the device's weights; after a pull the graph's weights equal those of the
 * references. */
static void pulls_what_it_has_learnt(const char *device)
{
    struct ew_graph *ours = network("lenet5", true), *theirs = network("lenet5", true);
    struct ew_graph *fresh = network("lenet5", true);
    struct ew_plan *p = compile(ours, true, device, true);
    struct ew_plan *q = compile(theirs, true, "cpu", true);
    for (int i = 0; i < 3; i++) {
        EW_EXPECT_OK(ew_plan_run(p));
        EW_EXPECT_OK(ew_plan_run(q));
        EW_EXPECT_NEAR(ew_tensor_get(ew_plan_output(p, 0), 0),
                       ew_tensor_get(ew_plan_output(q, 0), 0), 0);
    }
    for (int pulled = 0; pulled < 2; pulled++) {
        for (int v = 0; v < ours->n_values; v++)
            if (ours->values[v].kind == EW_VALUE_PARAM)
                EW_EXPECT_INT(memcmp(ours->values[v].t.data,
                                     (pulled ? theirs : fresh)->values[v].t.data,
                                     ew_tensor_bytes(&ours->values[v].t)),
                              0);
        EW_EXPECT_OK(ew_plan_pull(p));
    }
    const int w = ew_graph_find(ours, "fc1.weight");
    const struct ew_tensor *m = ew_plan_state(p, w, 0), *n = ew_plan_state(q, w, 0);
    if (EW_EXPECT(m && n))
        EW_EXPECT_INT(memcmp(m->data, n->data, ew_tensor_bytes(m)), 0);
    ew_plan_free(p);
    ew_plan_free(q);
    ew_graph_free(ours);
    ew_graph_free(theirs);
    ew_graph_free(fresh);
}

static void trains_without_kernels(void)
{
    EW_EXPECT_OK(ew_poison_register());
    pulls_what_it_has_learnt("poison");
}

static void trains_with_some_kernels(void)
{
    EW_EXPECT_OK(ew_poison_register());
    pulls_what_it_has_learnt("poison:some");
}

static void trains_with_all_kernels(void)
{
    EW_EXPECT_OK(ew_poison_register());
    pulls_what_it_has_learnt("poison:all");
}

/* A device that stores activations as float16: about the same results with about half the memory;
 * the host sees float32, and unchanged weights. */
static void stores_halves(void)
{
    static const char *const names[] = {"lenet5", "shufflenet_v2_x0_5"};
    EW_EXPECT_OK(ew_poison_register());
    for (int k = 0; k < 2; k++) {
        struct ew_graph *ours = network(names[k], true), *theirs = network(names[k], true);
        struct ew_plan *p = compile(ours, true, "poison:half", false);
        struct ew_plan *q = compile(theirs, true, "poison", false);
        struct ew_plan_stats half, whole;
        ew_plan_stats(p, &half);
        ew_plan_stats(q, &whole);
        EW_EXPECT(half.resident_bytes == whole.resident_bytes);
        EW_EXPECT(ew_plan_input(p, 0)->dtype == EW_F32 && ew_plan_output(p, 0)->dtype == EW_F32);
        /* Batch norms over four pixels amplify rounding: only one step of those. */
        for (int i = 0; i < (k ? 1 : 3); i++) {
            EW_EXPECT_OK(ew_plan_run(p));
            EW_EXPECT_OK(ew_plan_run(q));
            const double want = ew_tensor_get(ew_plan_output(q, 0), 0);
            EW_EXPECT_NEAR(ew_tensor_get(ew_plan_output(p, 0), 0), want, k ? 0.1 : 5e-3);
        }
        /* Updates come last. */
        struct ew_step_info last;
        ew_plan_step_info(p, ew_plan_step_count(p) - 1, &last);
        EW_EXPECT(last.phase == EW_PHASE_UPDATE);
        ew_plan_free(p);
        ew_plan_free(q);
        ew_graph_free(ours);
        ew_graph_free(theirs);
    }
}

/* A residual block's addition and relu fused into its batch norm: fewer steps, the same weights
 * after training. */
static void adds_in_batch_norms(void)
{
    EW_EXPECT_OK(ew_poison_register());
    struct ew_graph *ours = network("resnet18", true), *theirs = network("resnet18", true);
    struct ew_plan *p = compile(ours, true, "poison:fused", true);
    struct ew_plan *q = compile(theirs, true, "poison:all", true);
    int sums[2] = {0}, relus[2] = {0};
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < ew_plan_step_count(k ? q : p); i++) {
            struct ew_step_info info;
            ew_plan_step_info(k ? q : p, i, &info);
            sums[k] += info.op && strcmp(info.op, "add") == 0;
            relus[k] += info.op && strcmp(info.op, "relu") == 0;
        }
    EW_EXPECT_INT(sums[0], 0);
    EW_EXPECT_INT(sums[1], 16); /* eight blocks, forward and backward */
    EW_EXPECT_INT(relus[0], 0);
    EW_EXPECT(relus[1] > 16);
    EW_EXPECT_OK(ew_plan_run(p));
    EW_EXPECT_OK(ew_plan_run(q));
    EW_EXPECT_NEAR(ew_tensor_get(ew_plan_output(p, 0), 0), ew_tensor_get(ew_plan_output(q, 0), 0),
                   1e-5);
    EW_EXPECT_OK(ew_plan_pull(p));
    EW_EXPECT_OK(ew_plan_pull(q));
    for (int v = 0; v < ours->n_values; v++)
        if (ours->values[v].kind == EW_VALUE_PARAM || ours->values[v].kind == EW_VALUE_STATE)
            EW_EXPECT_CLOSE((const float *)ours->values[v].t.data,
                            (const float *)theirs->values[v].t.data,
                            ew_tensor_count(&ours->values[v].t), 1e-3, 1e-4);
    ew_plan_free(p);
    ew_plan_free(q);
    ew_graph_free(ours);
    ew_graph_free(theirs);
}

/* The same with two micro-batches. */
static void adds_in_batch_norms_of_parts(void)
{
    EW_EXPECT_OK(ew_poison_register());
    static const char *const devices[] = {"poison:fused", "poison:all"};
    double loss[2] = {0};
    for (int k = 0; k < 2; k++) {
        struct ew_graph *g = network("mobilenet_v2", true);
        const struct ew_plan_opts o = {
            .mode = EW_PLAN_TRAIN,
            .memory_limit = (size_t)1 << 30,
            .micro_batches = 2,
            .backend = {.device = devices[k], .threads = 1, .reference = true}};
        struct ew_plan *p = NULL;
        if (EW_EXPECT_OK(ew_plan_compile(g, &o, &p))) {
            fill_inputs(p, true);
            EW_EXPECT_OK(ew_plan_run(p));
            loss[k] = ew_tensor_get(ew_plan_output(p, 0), 0);
        }
        ew_plan_free(p);
        ew_graph_free(g);
    }
    EW_EXPECT(loss[1] > 0);
    EW_EXPECT_NEAR(loss[0], loss[1], 1e-5);
}

static void infers_with_halves(void)
{
    EW_EXPECT_OK(ew_poison_register());
    struct ew_graph *g = network("shufflenet_v2_x0_5", false);
    struct ew_plan *p = compile(g, false, "poison:half", false);
    struct ew_plan *q = compile(g, false, "poison", false);
    struct ew_plan_stats half, whole;
    ew_plan_stats(p, &half);
    ew_plan_stats(q, &whole);
    EW_EXPECT(half.block_bytes * 2 < whole.block_bytes + 4096);
    EW_EXPECT_OK(ew_plan_run(p));
    EW_EXPECT_OK(ew_plan_run(q));
    const struct ew_tensor *a = ew_plan_output(p, 0), *b = ew_plan_output(q, 0);
    EW_EXPECT(a->dtype == EW_F32);
    EW_EXPECT_CLOSE((const float *)a->data, (const float *)b->data, ew_tensor_count(a), 1e-2, 1e-2);
    EW_EXPECT(memcmp(a->data, b->data, ew_tensor_bytes(a)) != 0); /* it has rounded */
    ew_plan_free(p);
    ew_plan_free(q);
    ew_graph_free(g);
}

/* Programs are loaded once: a device that records them does so at the first run. */
static void repeats_programs(void)
{
    EW_EXPECT_OK(ew_poison_register());
    struct ew_graph *g = network("lenet5", true);
    struct ew_plan *p = compile(g, true, "poison:some", true);
    EW_EXPECT_OK(ew_plan_run(p));
    const struct ew_poison_counts first = ew_poison_counts(ew_plan_backend(p));
    EW_EXPECT_OK(ew_plan_run(p));
    const struct ew_poison_counts second = ew_poison_counts(ew_plan_backend(p));
    EW_EXPECT(first.recordings > 1);
    EW_EXPECT_INT(first.recordings, first.runs);
    EW_EXPECT_INT(second.recordings, first.recordings);
    EW_EXPECT_INT(second.runs, 2 * first.runs);
    ew_plan_free(p);
    ew_graph_free(g);
}

static void unknown_devices_are_named(void)
{
    struct ew_backend *be = NULL;
    EW_EXPECT_ERR(ew_backend_open(&(struct ew_backend_opts){.device = "abacus:7"}, &be),
                  EW_ERR_USAGE, "no backend abacus");
    EW_EXPECT_ERR(ew_backend_open(&(struct ew_backend_opts){.device = "cpu:7"}, &be), EW_ERR_USAGE,
                  "device cpu:7");
}

EW_TEST_MAIN(EW_TEST(copies_what_the_plan_says), EW_TEST(trains_without_kernels),
             EW_TEST(trains_with_some_kernels), EW_TEST(trains_with_all_kernels),
             EW_TEST(stores_halves), EW_TEST(adds_in_batch_norms),
             EW_TEST(adds_in_batch_norms_of_parts), EW_TEST(infers_with_halves),
             EW_TEST(repeats_programs), EW_TEST(unknown_devices_are_named))
