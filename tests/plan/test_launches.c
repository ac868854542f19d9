/* SPDX-License-Identifier: Apache-2.0 */
/* Launches of plans on a CUDA card, by a module that records them (cuda_stub.c); needs no card. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/library.h"
#include "edgewise.h"
#include "ew_test.h"
#include "model/objective.h"
#include "plan/plan.h"

static const char *(*said)(void);

static bool has_stub(void)
{
    void *library;
    const char *path = getenv("EDGEWISE_CUDA_MODULE");
    if (path && strstr(path, "ew_cuda_stub") &&
        EW_EXPECT_OK(ew_module_open("the stub", "EDGEWISE_CUDA_MODULE", &library)))
        return ew_library_find(library, "ew_cuda_stub_said", &said);
    ew_test_skip("EDGEWISE_CUDA_MODULE does not name the module that notes launches");
    return false;
}

static struct ew_plan *compile(const char *name, bool train, int batch, const char *device,
                               struct ew_graph **g)
{
    const struct ew_model_opts m = {.size = sizeof(m), .batch = batch};
    const struct ew_plan_opts o = {.mode = train ? EW_PLAN_TRAIN : EW_PLAN_INFER,
                                   .update = train,
                                   .optimize = !train,
                                   .optimizer = {.lr = 0.1, .momentum = 0.9},
                                   .backend = {.device = device, .threads = 1}};
    struct ew_plan *p = NULL;
    *g = NULL;
    if (EW_EXPECT_OK(ew_model_build(name, &m, g)) && EW_EXPECT_OK(ew_model_init(name, 1, *g)) &&
        (!train || EW_EXPECT_OK(ew_objective_add(*g))))
        EW_EXPECT_OK(ew_plan_compile(*g, &o, &p));
    said();
    return p;
}

static void expect_launches(const char *name, bool train, int batch, const char *device,
                            const char *want)
{
    struct ew_graph *g;
    struct ew_plan *p = compile(name, train, batch, device, &g);
    if (p && EW_EXPECT_OK(ew_plan_run(p)))
        EW_EXPECT_STR(said(), want);
    /* The second run is captured, later ones replay it; the rates are set already. */
    char captured[256];
    const char *first = strncmp(want, "set_rates ", 10) == 0 ? strchr(want, ' ') + 1 : want;
    snprintf(captured, sizeof(captured), "capture_begin %scapture_end graph_launch ", first);
    if (p && EW_EXPECT_OK(ew_plan_run(p)))
        EW_EXPECT_STR(said(), captured);
    if (p && EW_EXPECT_OK(ew_plan_run(p)))
        EW_EXPECT_STR(said(), "graph_launch ");
    ew_plan_free(p);
    ew_graph_free(g);
}

static void small_networks_run_whole(void)
{
    if (!has_stub())
        return;
    expect_launches("lenet5", true, 16, "cuda", "set_rates net net_weights update ");
    expect_launches("lenet5", true, 16, "cuda:0,tf32", "set_rates net net_weights update ");
    expect_launches("lenet5", false, 64, "cuda", "net ");
    expect_launches("lenet5", false, 1, "cuda", "net ");
    struct ew_graph *g;
    struct ew_plan *half = compile("lenet5", false, 64, "cuda:0,bf16", &g);
    if (half && EW_EXPECT_OK(ew_plan_run(half)))
        EW_EXPECT_STR(said(), "cast net cast "); /* inputs and outputs are float32 */
    ew_plan_free(half);
    ew_graph_free(g);
}

/* Batches that fill the card, training in half types and networks that are not chains run layer by
 * layer. */
static void others_run_by_layers(void)
{
    static const struct {
        const char *name, *device;
        bool train;
        int batch;
    } others[] = {{"lenet5", "cuda", true, 256},
                  {"lenet5", "cuda:0,fp16", true, 16},
                  {"resnet9", "cuda", true, 2}};
    if (!has_stub())
        return;
    for (size_t i = 0; i < EW_COUNT(others); i++) {
        struct ew_graph *g;
        struct ew_plan *p =
            compile(others[i].name, others[i].train, others[i].batch, others[i].device, &g);
        if (p && EW_EXPECT_OK(ew_plan_run(p)))
            EW_EXPECT(!strstr(said(), "net "));
        ew_plan_free(p);
        ew_graph_free(g);
    }
}

/* The next batch is transferred while a step is in flight: on a stream of its own, for which the
 * step's stream then waits. */
static void two_steps_are_under_way(void)
{
    struct ew_graph *g;
    if (!has_stub())
        return;
    struct ew_plan *p = compile("resnet9", true, 64, "cuda:0,bf16", &g);
    if (p && EW_EXPECT_INT(ew_plan_depth(p), 2)) {
        EW_EXPECT_OK(ew_plan_start(p));
        EW_EXPECT(strncmp(said(), "cast set_rates ", 15) == 0);
        EW_EXPECT_OK(ew_plan_start(p));
        EW_EXPECT(strncmp(said(), "event_hold event_hold cast capture_begin ", 41) == 0);
        EW_EXPECT_OK(ew_plan_wait(p, NULL));
        EW_EXPECT_OK(ew_plan_wait(p, NULL));
        said();
        EW_EXPECT_OK(ew_plan_start(p)); /* nothing in flight: copied directly */
        EW_EXPECT(strncmp(said(), "cast graph_launch ", 18) == 0);
        EW_EXPECT_OK(ew_plan_wait(p, NULL));
    }
    ew_plan_free(p);
    ew_graph_free(g);
}

/* Device memory of a training step of resnet50: less than half of the 4.5 and 11.7 GB that PyTorch
 * 2.11 takes for it.  No convolution is repeated in full float32, as arithmetic is slow there, nor
 * where activations are few. */
static void training_keeps_what_is_costly(void)
{
    static const struct {
        const char *network, *device;
        int batch;
        double most_gb, recompute_share;
    } cases[] = {{"resnet50", "cuda:0,bf16", 64, 2.1, 0.15},
                 {"resnet50", "cuda:0,tf32", 64, 4.0, 0.15},
                 {"resnet50", "cuda", 64, 5.0, 0.01},
                 {"mobilenet_v3_large", "cuda:0,bf16", 16, 0.4, 0.01}};
    if (!has_stub())
        return;
    for (size_t i = 0; i < EW_COUNT(cases); i++) {
        const struct ew_model_opts m = {.size = sizeof(m), .batch = cases[i].batch};
        const struct ew_plan_opts o = {.mode = EW_PLAN_TRAIN,
                                       .dry = true,
                                       .update = true,
                                       .optimizer = {.lr = 0.1, .momentum = 0.9},
                                       .backend = {.device = cases[i].device, .threads = 1}};
        struct ew_graph *g = NULL;
        struct ew_plan *p = NULL;
        struct ew_plan_stats s = {0};
        if (EW_EXPECT_OK(ew_model_build(cases[i].network, &m, &g)) &&
            EW_EXPECT_OK(ew_objective_add(g)) && EW_EXPECT_OK(ew_plan_compile(g, &o, &p)))
            ew_plan_stats(p, &s);
        EW_EXPECT(s.arena_bytes > 0 && (double)s.arena_bytes < cases[i].most_gb * 1e9);
        EW_EXPECT(s.recompute_share <= cases[i].recompute_share);
        ew_plan_free(p);
        ew_graph_free(g);
    }
}

EW_TEST_MAIN(EW_TEST(small_networks_run_whole), EW_TEST(others_run_by_layers),
             EW_TEST(two_steps_are_under_way), EW_TEST(training_keeps_what_is_costly))
