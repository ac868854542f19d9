/* SPDX-License-Identifier: Apache-2.0 */
/* Quantisation-aware training: it starts from post-training quantisation, computes what the
 * integers will compute, and its gradients update float32 weights. */
#include "quant/quant_learn.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compress/fake_quant.h"
#include "compress/pass.h"
#include "compress/pow2.h"
#include "train/adapt.h"
#include "train/learner.h"
#include "train/train_test.h"

/* Number of test images. */
static int images(void)
{
    return ew_test_quick() ? 200 : 1000;
}

static bool open_data(const char *name, struct ew_dataset **data)
{
    char all[80];
    snprintf(all, sizeof(all), "%s,test=%d", name, images());
    return EW_EXPECT_OK(ew_dataset_open(all, data));
}

static struct ew_graph *trained(const char *name, double scale, const struct ew_dataset *data)
{
    const int64_t side = strcmp(name, "lenet5") == 0 ? 28 : 32;
    const struct ew_model_opts o = {
        .size = sizeof(o), .scale = scale, .height = side, .width = side, .classes = 10};
    struct ew_train_job job = {.data = data, .opts = small_opts(), .options = ""};
    struct ew_trainer *t = NULL;
    EW_EXPECT_OK(ew_model_build(name, &o, &job.net));
    EW_EXPECT_OK(ew_model_init(name, 3, job.net));
    job.opts.load.augment = NULL;
    job.opts.epochs = 20;
    job.opts.lr = 0.05;
    if (EW_EXPECT_OK(ew_trainer_open(&job, &t)))
        train_some(t, 80);
    ew_trainer_close(t);
    EW_EXPECT_OK(ew_graph_set_batch(job.net, 1));
    return job.net;
}

/* Changes biases by wave * sin(i), the first of each layer by `first`. */
static void move_biases(struct ew_graph *g, float wave, float first)
{
    int found = 0;
    for (int v = 0; v < g->n_values; v++) {
        const struct ew_tensor *t = &g->values[v].t;
        if (!t->data || t->dtype != EW_F32 || !strstr(g->values[v].name, ".bias"))
            continue;
        for (int64_t i = 0; i < ew_tensor_count(t); i++)
            ((float *)t->data)[i] += i ? wave * sinf((float)i) : first;
        found++;
    }
    EW_EXPECT(found >= 4);
}

static struct ew_quant_job job_of(const struct ew_graph *net, const struct ew_dataset *data,
                                  enum ew_quantize_scheme scheme)
{
    return (struct ew_quant_job){.net = net,
                                 .calibration = {.data = data, .split = EW_SPLIT_TRAIN},
                                 .opts = {.scheme = scheme, .threads = 1, .min_sqnr_db = -1000}};
}

enum way { INTEGERS, KERNELS, REFERENCE };

/* Scores of all test images, by integers or as in training.  Winograd's transforms are not exact,
 * and other machines may choose them where this one does not: under emulators references are
 * used. */
static float *scores_of(struct ew_graph *g, const struct ew_dataset *data, enum way way)
{
    const bool reference = way == REFERENCE || (way == KERNELS && ew_test_quick());
    const struct ew_plan_opts po = {.optimize = way == INTEGERS,
                                    .backend = {.threads = 1, .reference = reference}};
    const struct ew_shape in = g->values[g->inputs[0]].t.shape;
    const struct ew_loader_opts lo = {.data = data,
                                      .split = EW_SPLIT_TEST,
                                      .batch = 20,
                                      .h = in.dim[1],
                                      .w = in.dim[2],
                                      .c = in.dim[3]};
    struct ew_plan *p = NULL;
    struct ew_loader *l = NULL;
    const struct ew_batch *b = NULL;
    float *out = calloc((size_t)images() * 10, sizeof(*out)), *at = out;
    EW_EXPECT_OK(ew_graph_set_batch(g, 20));
    if (!EW_EXPECT_OK(ew_plan_compile(g, &po, &p)) || !EW_EXPECT_OK(ew_loader_open(&lo, &l)))
        return out;
    EW_EXPECT_OK(ew_loader_start(l, 0, 0));
    while (EW_EXPECT_OK(ew_loader_next(l, &b)) && b) {
        memcpy(ew_plan_input(p, 0)->data, b->images, ew_tensor_bytes(ew_plan_input(p, 0)));
        EW_EXPECT_OK(ew_plan_run(p));
        memcpy(at, ew_plan_output(p, 0)->data, ew_tensor_bytes(ew_plan_output(p, 0)));
        at += ew_tensor_count(ew_plan_output(p, 0));
        ew_loader_release(l, b);
    }
    EW_EXPECT_INT(at - out, images() * 10);
    ew_loader_close(l);
    ew_plan_free(p);
    EW_EXPECT_OK(ew_graph_set_batch(g, 1));
    return out;
}

static int best(const float *scores)
{
    int at = 0;
    for (int i = 1; i < 10; i++)
        at = scores[i] > scores[at] ? i : at;
    return at;
}

static int count_different(const float *a, const float *b)
{
    int n = 0;
    for (int i = 0; i < images(); i++)
        n += best(a + i * 10) != best(b + i * 10);
    return n;
}

static int count_classes(const float *scores)
{
    bool seen[10] = {false};
    int n = 0;
    for (int i = 0; i < images(); i++) {
        bool *is = &seen[best(scores + i * 10)];
        n += !*is;
        *is = true;
    }
    return n;
}

/* Some training steps at a small rate. */
static void learn(struct ew_graph *g, const struct ew_dataset *data)
{
    struct ew_train_job job = {.net = g, .data = data, .opts = small_opts(), .options = ""};
    struct ew_trainer *t = NULL;
    job.opts.lr = 0.002;
    job.opts.load.augment = NULL;
    if (EW_EXPECT_OK(ew_trainer_open(&job, &t)))
        train_some(t, 15);
    ew_trainer_close(t);
}

/* Rounds values as in training steps; returns their number.  Scales are computed from unrounded
 * values. */
static int round_values(struct ew_graph *g)
{
    struct ew_fake_quant_weight *values = NULL;
    int n = 0;
    EW_EXPECT_OK(ew_fake_quant_weights(g, &values, &n));
    float **to = calloc((size_t)n + 1, sizeof(*to));
    for (int i = 0; i < n; i++) {
        const struct ew_tensor *t = &g->values[values[i].value].t;
        to[i] = malloc(ew_tensor_bytes(t));
        ew_weight_round(t, values[i].other < 0 ? NULL : &g->values[values[i].other].t,
                        &values[i].how, to[i]);
    }
    for (int i = 0; i < n; i++) {
        const struct ew_tensor *t = &g->values[values[i].value].t;
        memcpy(t->data, to[i], ew_tensor_bytes(t));
        free(to[i]);
    }
    free(to);
    free(values);
    return n;
}

/* Initially equal to post-training quantisation, bit for bit. */
static void check_start(const struct ew_quant_job *job, struct ew_graph *learning)
{
    const struct ew_dataset *data = job->calibration.data;
    struct ew_quant_result post = {0};
    EW_EXPECT_OK(ew_quant_run(job, &post));
    float *a = scores_of(post.graph, data, INTEGERS), *b = scores_of(learning, data, INTEGERS);
    EW_EXPECT(memcmp(a, b, (size_t)images() * 10 * sizeof(*a)) == 0);
    free(a);
    free(b);
    ew_quant_result_fini(&post);
}

/* Training and integers give the same values.  With power-of-two scales sums are exact in float32,
 * so all bits are equal; with per-channel scales a value next to a tie may be rounded
 * differently. */
static void check(const struct ew_graph *net, const struct ew_dataset *data,
                  enum ew_quantize_scheme scheme, enum way seen_by)
{
    struct ew_graph *learning = NULL;
    const struct ew_quant_job job = job_of(net, data, scheme);
    EW_EXPECT_OK(ew_quant_learn(&job, &learning));
    check_start(&job, learning);
    learn(learning, data);
    float *integers = scores_of(learning, data, INTEGERS);
    EW_EXPECT(round_values(learning) >= 4);
    float *seen = scores_of(learning, data, seen_by);
    EW_EXPECT(count_classes(integers) >= 8); /* predictions of a single class would hide
                                              * differences */
    EW_EXPECT(count_different(seen, integers) <=
              (scheme == EW_QUANTIZE_POW2 ? 0 : images() / 1000));
    if (scheme == EW_QUANTIZE_POW2)
        EW_EXPECT(memcmp(seen, integers, (size_t)images() * 10 * sizeof(*seen)) == 0);
    free(seen);
    free(integers);
    ew_graph_free(learning);
}

static void digits(void)
{
    struct ew_dataset *data = NULL;
    if (!open_data("synthetic:train=640", &data))
        return;
    struct ew_graph *net = trained("lenet5", 0.5, data);
    check(net, data, EW_QUANTIZE_CHANNEL, KERNELS);
    check(net, data, EW_QUANTIZE_POW2, KERNELS);
    /* Regression: training used float32 biases where the integers have 8 bits.  One of each layer
     * is far from all others: with a power-of-two scale that covers it, half of the others become
     * zero at 2^-1. */
    move_biases(net, 0.4f, -50);
    check(net, data, EW_QUANTIZE_POW2, KERNELS);
    ew_graph_free(net);
    ew_dataset_close(data);
}

/* Folded batch norms, residual additions, depthwise filters.  Regression: with per-channel scales a
 * narrow MobileNetV2 gave 49 of 1,000 images another class, since training used float32 biases. */
static void shapes(void)
{
    struct ew_dataset *data = NULL;
    if (ew_test_quick())
        EW_SKIP("digits stand for it here");
    if (!open_data("synthetic:kind=shapes,train=160", &data))
        return;
    struct ew_graph *net = trained("mobilenet_v2_cifar", 0.15, data);
    check(net, data, EW_QUANTIZE_CHANNEL, KERNELS);
    check(net, data, EW_QUANTIZE_POW2, KERNELS);
    ew_graph_free(net);
    net = trained("resnet18", 0.1, data);
    check(net, data, EW_QUANTIZE_CHANNEL, REFERENCE);
    check(net, data, EW_QUANTIZE_POW2, REFERENCE);
    ew_graph_free(net);
    ew_dataset_close(data);
}

/* Binary positions are those of the start: a bias that was zero gets the range of the weights. */
static void biases_stay_at_their_positions(void)
{
    struct ew_dataset *data = NULL;
    struct ew_graph *net = small_net(), *g = NULL;
    open_data("synthetic:train=64", &data);
    const struct ew_quant_job job = job_of(net, data, EW_QUANTIZE_POW2);
    const struct ew_tensor *zeros = &net->values[ew_graph_find(net, "fc1.bias")].t;
    memset(zeros->data, 0, ew_tensor_bytes(zeros));
    EW_EXPECT_OK(ew_quant_learn(&job, &g));
    move_biases(g, 0.1f, 0);
    float *integers = scores_of(g, data, INTEGERS);
    round_values(g);
    float *seen = scores_of(g, data, KERNELS);
    EW_EXPECT(memcmp(seen, integers, (size_t)images() * 10 * sizeof(*seen)) == 0);
    const float *bias = g->values[ew_graph_find(g, "fc1.bias")].t.data;
    EW_EXPECT_NEAR(bias[1], 0.1 * sin(1), 0.01);
    free(seen);
    free(integers);
    ew_graph_free(g);
    ew_graph_free(net);
    ew_dataset_close(data);
}

/* Regression: the first layer after a frozen part used unrounded weights, since the fake_quant of
 * its input is in that part. */
static void behind_frozen_layers(void)
{
    const struct ew_learner_opts o = {.batch = 4, .threads = 1, .dry = true};
    struct ew_dataset *data = NULL;
    struct ew_graph *net = small_net(), *g = NULL;
    struct ew_learner l;
    int n;
    EW_EXPECT_OK(ew_dataset_open("synthetic:train=64,test=16", &data));
    const struct ew_quant_job job = job_of(net, data, EW_QUANTIZE_POW2);
    EW_EXPECT_OK(ew_quant_learn(&job, &g));
    EW_EXPECT_OK(ew_adapt_freeze(g, "conv*", &n));
    EW_EXPECT_INT(n, 4);
    if (EW_EXPECT_OK(ew_learner_open(g, &o, &l))) {
        EW_EXPECT(l.frozen);
        EW_EXPECT_INT(l.n_rounded, 6); /* weights and biases of three dense layers */
        for (int i = 0; i < l.n_rounded; i++)
            EW_EXPECT(strncmp(l.trainable->values[l.rounded[i].value].name, "fc", 2) == 0);
    }
    ew_learner_close(&l);
    ew_graph_free(g);
    ew_graph_free(net);
    ew_dataset_close(data);
}

/* Regression: filters into which a batch norm was folded were trained in spite of --freeze. */
static void folded_weights_stay_frozen(void)
{
    struct ew_dataset *data = NULL;
    struct ew_graph *net = NULL, *g = NULL;
    const struct ew_model_opts o = {
        .size = sizeof(o), .scale = 0.1, .height = 32, .width = 32, .classes = 10};
    int n, learn = 0, frozen = 0;
    EW_EXPECT_OK(ew_dataset_open("synthetic:train=64,test=16,size=32,channels=3", &data));
    EW_EXPECT_OK(ew_model_build("resnet9", &o, &net));
    EW_EXPECT_OK(ew_model_init("resnet9", 3, net));
    EW_EXPECT_OK(ew_adapt_freeze(net, "backbone", &n));
    const struct ew_quant_job job = job_of(net, data, EW_QUANTIZE_CHANNEL);
    if (EW_EXPECT_OK(ew_quant_learn(&job, &g)))
        for (int v = 0; v < g->n_values; v++)
            if (g->values[v].kind == EW_VALUE_PARAM) {
                frozen += g->values[v].frozen;
                learn += !g->values[v].frozen;
                EW_EXPECT(g->values[v].frozen == (strncmp(g->values[v].name, "linear", 6) != 0));
            }
    EW_EXPECT(learn == 2 && frozen == 16); /* filters and biases of eight convolutions */
    ew_graph_free(g);
    ew_graph_free(net);
    ew_dataset_close(data);
}

static void twice_is_refused(void)
{
    struct ew_dataset *data = NULL;
    struct ew_graph *g = NULL, *again = NULL;
    EW_EXPECT_OK(ew_dataset_open("synthetic:train=64,test=16", &data));
    struct ew_graph *net = trained("lenet5", 0.34, data);
    struct ew_quant_job job = job_of(net, data, EW_QUANTIZE_CHANNEL);
    EW_EXPECT_OK(ew_quant_learn(&job, &g));
    job.net = g;
    EW_EXPECT_ERR(ew_quant_learn(&job, &again), EW_ERR_ARG, "is quantised already");
    ew_graph_free(g);
    ew_graph_free(net);
    ew_dataset_close(data);
}

EW_TEST_MAIN(EW_TEST(digits), EW_TEST(shapes), EW_TEST(biases_stay_at_their_positions),
             EW_TEST(behind_frozen_layers), EW_TEST(folded_weights_stay_frozen),
             EW_TEST(twice_is_refused))
