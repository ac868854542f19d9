/* SPDX-License-Identifier: Apache-2.0 */
/* The pruner against NeuralScale's, driven by synthetic gradients; gates in networks. */
#include <stdlib.h>
#include <string.h>

#include "data/data.h"
#include "ew_test.h"
#include "poison_backend.h"
#include "scale/search.h"

/* Gradient of unit u of gate l in minibatch s, in integer arithmetic, so the same everywhere. */
static double gradient(int s, int l, int u)
{
    static const double scale[] = {1.0, 0.8, 0.6, 1.4};
    const uint64_t seed = (uint64_t)s * 7919 + (uint64_t)l * 104729 + (uint64_t)u * 1299709;
    const uint64_t x = (1103515245 * seed + 12345) % ((uint64_t)1 << 31);
    return ((double)((u * 37 + l * 11) % 101 + 1) / 101 + 0.5 * (double)x / 2147483648.0) *
           scale[l];
}

struct made {
    int32_t widths[4];
    double fraction;
    int every, batches, rows;
    int32_t want[4][4];
};

static void check(const struct made *m)
{
    struct ew_pruner p;
    const struct ew_pruner_opts o = {m->fraction, 10, m->every};
    if (!EW_EXPECT_OK(ew_pruner_open(m->widths, 4, &o, &p)))
        return;
    double *g = calloc((size_t)p.units, sizeof(*g));
    int s = 0;
    for (; !p.done && s < 100000; s++) {
        for (int l = 0; l < 4; l++)
            for (int u = p.first[l]; u < p.first[l + 1]; u++)
                g[u] = gradient(s, l, u - p.first[l]);
        EW_EXPECT_OK(ew_pruner_batch(&p, g));
    }
    EW_EXPECT_INT(s - 1, m->batches);
    EW_EXPECT_INT(p.rows.n, m->rows);
    for (int r = 0; r < p.rows.n && r < 4; r++)
        for (int l = 0; l < 4; l++)
            EW_EXPECT_INT(p.rows.counts[r * 4 + l], m->want[r][l]);
    free(g);
    ew_pruner_close(&p);
}

static void records_are_its(void)
{
    static const struct made all[] = {
        {{24, 40, 32, 16},
         0.95,
         50,
         400,
         4,
         {{18, 25, 14, 15}, {16, 22, 10, 14}, {15, 18, 6, 13}, {12, 14, 3, 13}}},
        {{24, 40, 32, 16},
         0.95,
         100,
         800,
         4,
         {{18, 25, 14, 15}, {17, 21, 10, 14}, {15, 18, 6, 13}, {12, 14, 3, 13}}},
        {{64, 64, 3, 64}, 0.95, 50, 300, 3, {{54, 46, 2, 63}, {51, 42, 2, 60}, {47, 39, 1, 58}}},
        {{24, 40, 32, 16}, 0.5, 50, 301, 3, {{18, 25, 14, 15}, {16, 22, 10, 14}, {15, 19, 8, 14}}},
        {{30, 5, 7, 90}, 0.95, 50, 200, 3, {{26, 3, 4, 89}, {23, 3, 3, 83}, {20, 3, 1, 78}}},
    };
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        check(&all[i]);
}

/* Each adjustable width has a gate with as many channels, and gates of ones change nothing. */
static void networks_have_their_gates(void)
{
    static const char *const names[] = {"vgg11_cifar", "mobilenet_v2_cifar", "mobilenet_v2_tiny",
                                        "preact_resnet18", "preact_resnet18_tiny"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const struct ew_model_opts o = {.size = sizeof(o), .scale = 0.5};
        struct ew_graph *g = NULL;
        int32_t widths[EW_MAX_GATES];
        int n = 0;
        EW_EXPECT_OK(ew_model_filters(names[i], &o, widths, EW_MAX_GATES, &n));
        EW_EXPECT_OK(ew_model_build(names[i], &o, &g));
        if (EW_EXPECT_OK(ew_gates_insert(g, names[i], n)))
            for (int k = 0; k < n; k++)
                EW_EXPECT_INT(ew_tensor_count(&g->values[ew_gate_value(g, k)].t), widths[k]);
        ew_graph_free(g);
    }
    struct ew_graph *g = NULL;
    EW_EXPECT_OK(ew_model_build("lenet5", NULL, &g));
    EW_EXPECT_ERR(ew_gates_insert(g, "lenet5", 4), EW_ERR_UNSUPPORTED, "gates are not known");
    ew_graph_free(g);
}

/* Regression: on a card no filter was ever pruned, since its steps did not see the host's gates. */
static void devices_with_memory_of_their_own_are_refused(void)
{
    const struct ew_model_opts o = {.size = sizeof(o), .scale = 0.1};
    const char *before = getenv("EW_DEVICE");
    struct ew_scaling s;
    struct ew_dataset *data = NULL;
    struct ew_search_result r;
    int64_t *subset = NULL;
    EW_EXPECT_OK(ew_poison_register());
    EW_EXPECT_OK(ew_scaling_open("vgg11_cifar", &o, &s));
    EW_EXPECT_OK(ew_dataset_open("synthetic:kind=shapes,train=16,test=16", &data));
    struct ew_search_job job = {.net = &s,
                                .opts = {.iterations = 1,
                                         .max_epochs = 1,
                                         .prune = {.fraction = 0.5, .per_step = 10, .every = 1},
                                         .lr = 0.1,
                                         .momentum = 0.5,
                                         .threads = 1},
                                .folder = ew_test_path("search"),
                                .options = ""};
    const struct ew_search_images images = {.data = data, .batch = 8, .augment = "none"};
    EW_EXPECT_OK(ew_search_images(&images, &job, &subset));
    char *kept = before ? strdup(before) : NULL;
    setenv("EW_DEVICE", "poison", 1);
    EW_EXPECT_ERR(ew_search_run(&job, &r), EW_ERR_UNSUPPORTED, "runs on the CPU, not on poison");
    if (kept)
        setenv("EW_DEVICE", kept, 1);
    else
        unsetenv("EW_DEVICE");
    free(kept);
    free(subset);
    ew_dataset_close(data);
}

EW_TEST_MAIN(EW_TEST(records_are_its), EW_TEST(networks_have_their_gates),
             EW_TEST(devices_with_memory_of_their_own_are_refused))
