/* SPDX-License-Identifier: Apache-2.0 */
/* Resuming a training, pruning, widths and federated learning through the public headers only. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "edgewise_federate.h"
#include "edgewise_results.h"
#include "edgewise_shrink.h"
#include "edgewise_train.h"
#include "ew_test.h"

#define DATA "synthetic:train=160,test=64,classes=10"

static struct ew_dataset *data(void)
{
    struct ew_dataset *d = NULL;
    EW_EXPECT_OK(ew_dataset_open(DATA, &d));
    return d;
}

static struct ew_graph *network(const struct ew_dataset *d)
{
    struct ew_graph *g = NULL;
    EW_EXPECT_OK(ew_network_for_data("lenet5", d, 3, &g));
    return g;
}

/* ---- Resuming ---- */

static const struct ew_training_opts usual = {.size = sizeof(usual),
                                              .epochs = 3,
                                              .batch = 16,
                                              .lr = 0.05,
                                              .threads = 1,
                                              .options = "workers = 0\nval-split = 0\n"};

/* Trains up to batch `stop` (0: to the end), and saves if there is a folder. */
static double follow(struct ew_training *t, int stop, bool save)
{
    struct ew_training_state s = {.size = sizeof(s)};
    int event = EW_TRAINING_BATCH, n = 0;
    while (event != EW_TRAINING_DONE && (!stop || n < stop) &&
           EW_EXPECT_OK(ew_training_step(t, &event)))
        n += event == EW_TRAINING_BATCH;
    EW_EXPECT_OK(ew_training_state(t, &s));
    if (save)
        EW_EXPECT_OK(ew_training_save(t));
    ew_training_close(t);
    return s.validation_loss;
}

/* Stopped in the middle of the second epoch and resumed, it ends with the same bits. */
static void resumes(void)
{
    struct ew_dataset *d = data();
    struct ew_graph *whole = network(d), *begun = network(d);
    struct ew_training_opts o = usual, more = {.size = sizeof(more)};
    struct ew_training *t = NULL;
    EW_EXPECT_OK(ew_training_open(whole, d, &o, &t));
    EW_EXPECT(ew_training_graph(t) == whole);
    const double want = follow(t, 0, false);
    o.folder = ew_test_path("stopped");
    EW_EXPECT_OK(ew_training_open(begun, d, &o, &t));
    follow(t, 14, true);
    more.lr = 0.1;
    EW_EXPECT_ERR(ew_training_resume(o.folder, d, &more, &t), EW_ERR_ARG, "epochs and threads");
    more.lr = 0;
    more.options = "momentum = 0.5";
    EW_EXPECT_ERR(ew_training_resume(o.folder, d, &more, &t), EW_ERR_ARG, "momentum");
    EW_EXPECT(t == NULL);
    if (EW_EXPECT_OK(ew_training_resume(o.folder, d, NULL, &t))) {
        EW_EXPECT(ew_training_graph(t) != NULL && ew_training_graph(t) != begun);
        const double got = follow(t, 0, false);
        EW_EXPECT(memcmp(&got, &want, sizeof(want)) == 0);
    }
    EW_EXPECT_ERR(ew_training_resume(ew_test_path("nothing"), d, NULL, &t), EW_ERR_NOT_FOUND,
                  "last.ckpt");
    ew_graph_free(whole);
    ew_graph_free(begun);
    ew_dataset_close(d);
}

/* ---- Pruning ---- */

static void prunes(void)
{
    struct ew_dataset *d = data();
    struct ew_graph *g = network(d);
    struct ew_pruning_opts o = {.size = sizeof(o), .of = "macs", .keep = 0.5};
    struct ew_pruning p = {.size = sizeof(p)};
    EW_EXPECT_OK(ew_prune_graph(g, NULL, &o, &p));
    EW_EXPECT(2 * p.macs <= p.macs_before && 5 * p.macs > p.macs_before);
    EW_EXPECT(p.params < p.params_before && p.layers > 1);
    const int64_t left = p.macs;
    o = (struct ew_pruning_opts){.size = sizeof(o), .keep = 0.8};
    o.importance = "taylor";
    EW_EXPECT_ERR(ew_prune_graph(g, NULL, &o, &p), EW_ERR_ARG, "need training data");
    EW_EXPECT_ERR(ew_prune_graph(g, d, &o, &p), EW_ERR_USAGE, "normalised");
    o.importance = "l2";
    EW_EXPECT_OK(ew_prune_graph(g, NULL, &o, &p));
    EW_EXPECT_INT(p.macs_before, left);
    o.keep = 1.5;
    EW_EXPECT_ERR(ew_prune_graph(g, NULL, &o, NULL), EW_ERR_ARG, "keep");
    o.keep = 0.5;
    o.of = "weight";
    EW_EXPECT_ERR(ew_prune_graph(g, NULL, &o, NULL), EW_ERR_ARG, "weight");
    o.size = 1;
    EW_EXPECT_ERR(ew_prune_graph(g, NULL, &o, NULL), EW_ERR_ARG, "bytes");
    ew_graph_free(g);
    ew_dataset_close(d);
}

/* ---- Widths ---- */

static void widths(void)
{
    const struct ew_model_opts full = {.size = sizeof(full), .classes = 10};
    struct ew_width_opts o = {.size = sizeof(o), .ratio = 0.5};
    int32_t base[256], half[256], small[256], law[256];
    int n = 0, m = 0;
    EW_EXPECT_OK(ew_model_filters("vgg11_cifar", &full, base, 256, &n));
    EW_EXPECT_OK(ew_scale_filters("vgg11_cifar", &full, &o, half, 256, &m));
    EW_EXPECT_INT(m, n);
    for (int i = 0; i < n; i++)
        EW_EXPECT_INT(half[i], base[i] / 2);
    o.records = "published"; /* as many parameters, distributed differently */
    EW_EXPECT_OK(ew_scale_filters("vgg11_cifar", &full, &o, law, 256, &m));
    EW_EXPECT(memcmp(law, half, (size_t)n * sizeof(*law)) != 0);
    o = (struct ew_width_opts){.size = sizeof(o), .macs = 1e7};
    EW_EXPECT_OK(ew_scale_filters("vgg11_cifar", &full, &o, small, 256, &m));
    EW_EXPECT(small[0] < half[0]);
    EW_EXPECT_ERR(ew_scale_filters("vgg11_cifar", &full, &o, small, 3, &m), EW_ERR_LIMIT, "room");
    o.params = 1e6;
    EW_EXPECT_ERR(ew_scale_filters("vgg11_cifar", &full, &o, small, 256, &m), EW_ERR_ARG, "one of");
    /* Regression: the enormous width was converted to int, which is undefined. */
    o = (struct ew_width_opts){.size = sizeof(o), .ratio = 1e300};
    EW_EXPECT_ERR(ew_scale_filters("squeezenet1_1", NULL, &o, small, 256, &m), EW_ERR_LIMIT,
                  "elements");
}

/* Regression: the network's options were copied with the library's size, not with the caller's. */
static void widths_of_every_release(void)
{
    const struct ew_width_opts half = {.size = sizeof(half), .ratio = 0.5};
    int32_t filters[256];
    int n = 0;
    for (size_t size = 16; size <= sizeof(struct ew_model_opts) + 64; size += 8) {
        struct ew_model_opts *base = calloc(1, size); /* its end is the block's */
        if (!EW_EXPECT(base))
            return;
        memcpy(base, &size, sizeof(size));
        EW_EXPECT_OK(ew_scale_filters("vgg11_cifar", base, &half, filters, 256, &n));
        EW_EXPECT(n > 0 && filters[0] == 32);
        free(base);
    }
}

/* ---- Federated ---- */

static double rounds(const struct ew_dataset *d, uint64_t seed)
{
    const struct ew_federated_opts o = {.size = sizeof(o),
                                        .clients = 8,
                                        .share = 0.5,
                                        .threads = 1,
                                        .seed = seed,
                                        .options = "local-epochs = 2\nlr = 0.1\n"};
    struct ew_graph *g = network(d);
    struct ew_federated *f = NULL;
    struct ew_federated_round r = {.size = sizeof(r)};
    if (EW_EXPECT_OK(ew_federated_open(g, d, &o, &f)))
        for (int i = 1; i <= 3; i++) {
            EW_EXPECT_OK(ew_federated_round(f, &r));
            EW_EXPECT_INT(r.round, i);
            EW_EXPECT_INT(r.asked, 4);
            EW_EXPECT(r.answered == 4 && isnan(r.simulated_s));
        }
    ew_federated_close(f);
    struct ew_evaluation e = {.size = sizeof(e)}; /* the weights are the network's */
    EW_EXPECT_OK(ew_evaluate_graph(g, d, NULL, &e));
    EW_EXPECT(fabs(e.accuracy - r.accuracy) < 1e-9);
    ew_graph_free(g);
    return r.loss;
}

static void federates(void)
{
    struct ew_dataset *d = data();
    struct ew_graph *g = network(d);
    struct ew_federated *f = NULL;
    struct ew_federated_opts o = {.size = sizeof(o), .options = "spin = 1"};
    const double a = rounds(d, 1), b = rounds(d, 1), c = rounds(d, 2);
    EW_EXPECT(a > 0 && memcmp(&a, &b, sizeof(a)) == 0 && memcmp(&a, &c, sizeof(a)) != 0);
    EW_EXPECT_ERR(ew_federated_open(g, d, &o, &f), EW_ERR_ARG, "spin");
    o.options = "deadline = 5";
    EW_EXPECT_ERR(ew_federated_open(g, d, &o, &f), EW_ERR_ARG, "fleet");
    EW_EXPECT(f == NULL);
    ew_graph_free(g);
    ew_dataset_close(d);
}

static void no_results(void)
{
    struct ew_result_list *l = NULL;
    EW_EXPECT(ew_result_list_open(ew_test_path("none.db"), NULL, NULL, &l) != EW_OK && !l);
    EW_EXPECT_OK(ew_result_list_close(NULL));
}

EW_TEST_MAIN(EW_TEST(resumes), EW_TEST(prunes), EW_TEST(widths), EW_TEST(widths_of_every_release),
             EW_TEST(federates), EW_TEST(no_results))
