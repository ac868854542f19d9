/* SPDX-License-Identifier: Apache-2.0 */
/* Transfer learning: preparing files for training, replacing heads, separating frozen parts. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/objective.h"
#include "op/norm.h"
#include "op/resize.h"
#include "train/adapt.h"
#include "train/features.h"
#include "train/find_batch.h"
#include "train/learner.h"
#include "train_test.h"

static struct ew_graph *network(const char *name, int64_t side, double scale)
{
    struct ew_graph *g = NULL;
    const struct ew_model_opts o = {
        .size = sizeof(o), .height = side, .width = side, .classes = 7, .scale = scale};
    EW_EXPECT_OK(ew_model_build(name, &o, &g));
    EW_EXPECT_OK(ew_model_init(name, 3, g));
    return g;
}

static int count_ops(const struct ew_graph *g, const char *op)
{
    int n = 0;
    for (int k = 0; k < g->n_nodes; k++)
        n += strcmp(g->nodes[k].op->name, op) == 0;
    return n;
}

/* Scores of the network for synthetic images [N, H, W, C]; release with free(). */
static float *scores(struct ew_graph *g, int64_t batch)
{
    struct ew_plan *p;
    EW_EXPECT_OK(ew_graph_set_batch(g, batch));
    if (!EW_EXPECT_OK(ew_plan_compile(g, &(struct ew_plan_opts){.backend = {.threads = 1}}, &p)))
        return NULL;
    float *x = ew_plan_input(p, 0)->data;
    for (int64_t i = 0; i < ew_tensor_count(ew_plan_input(p, 0)); i++)
        x[i] = (float)((i * 37) % 101) / 50 - 1;
    EW_EXPECT_OK(ew_plan_run(p));
    const struct ew_tensor *y = ew_plan_output(p, 0);
    float *out = malloc(ew_tensor_bytes(y));
    memcpy(out, y->data, ew_tensor_bytes(y));
    ew_plan_free(p);
    return out;
}

/* ---- Images and heads ---- */

static void takes_images_as_the_loader_gives_them(void)
{
    static const char *const names[] = {"squeezenet1_1", "mobilenet_v3_small",
                                        "shufflenet_v2_x0_5"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct ew_graph *g = network(names[i], 64, 0.25), *read = NULL;
        const char *path = ew_test_path("net.onnx");
        EW_EXPECT_OK(ew_onnx_save(
            g, path,
            &(struct ew_onnx_save_opts){.size = sizeof(struct ew_onnx_save_opts), .batch = 1}));
        if (!EW_EXPECT_OK(ew_onnx_load(path, NULL, &read)))
            return;
        EW_EXPECT_INT(read->values[read->inputs[0]].t.shape.dim[1], 3);
        EW_EXPECT_OK(ew_adapt_images(read));
        const struct ew_value *in = &read->values[read->inputs[0]];
        EW_EXPECT(in->channels_last && in->t.shape.dim[3] == 3);
        EW_EXPECT_INT(count_ops(read, "transpose"), count_ops(g, "transpose"));
        float *a = scores(g, 2), *b = scores(read, 2); /* a file's batch of 1 does not limit us */
        if (a && b)
            EW_EXPECT_CLOSE(a, b, 14, 1e-4, 1e-5);
        free(a);
        free(b);
        ew_graph_free(g);
        ew_graph_free(read);
    }
}

/* Regression: images [N, H, W, C] in a file were taken for [N, C, H, W]. */
static void takes_images_of_channels_last_files(void)
{
    struct ew_graph *g = network("mobilenet_v3_small", 64, 0.25), *read = NULL;
    struct ew_value *in = &g->values[g->inputs[0]];
    const char *path = ew_test_path("last.onnx");
    in->channels_last = false; /* written as it is in memory */
    EW_EXPECT_OK(ew_onnx_save(g, path, NULL));
    in->channels_last = true;
    if (!EW_EXPECT_OK(ew_onnx_load(path, NULL, &read)))
        return;
    EW_EXPECT_INT(read->values[read->inputs[0]].t.shape.dim[3], 3);
    EW_EXPECT_OK(ew_adapt_images(read));
    in = &read->values[read->inputs[0]];
    EW_EXPECT(in->channels_last && in->t.shape.dim[3] == 3);
    EW_EXPECT_INT(count_ops(read, "transpose"), count_ops(g, "transpose"));
    float *a = scores(g, 2), *b = scores(read, 2);
    if (a && b)
        EW_EXPECT_CLOSE(a, b, 14, 1e-4, 1e-5);
    free(a);
    free(b);
    ew_graph_free(g);
    ew_graph_free(read);
}

/* Regression: older files reshape to [1, features] before a dense layer (the model zoo's MNIST
 * network); nothing else in them depends on the batch, but they could not be evaluated. */
static void opens_a_batch_that_a_shape_fixes(void)
{
    struct ew_graph *g = NULL;
    const struct ew_shape in = {4, {1, 2, 3, 3}};
    static const int64_t flat[] = {1, 18}, wrong[] = {2, 9};
    for (int bad = 0; bad < 2; bad++) {
        int x, y, shape, out;
        EW_EXPECT_OK(ew_graph_new("fixed", &g));
        EW_EXPECT_OK(ew_graph_input(g, "x", EW_F32, &in, &x));
        g->values[x].dynamic = 0;
        EW_EXPECT_OK(ew_graph_add(g, ew_op_find("relu"), "r", NULL, EW_INPUTS(x), &y));
        EW_EXPECT_OK(ew_graph_const_ints(g, "shape", bad ? wrong : flat, 2, &shape));
        EW_EXPECT_OK(
            ew_graph_add(g, ew_op_find("reshape"), "flat", NULL, EW_INPUTS(y, shape), &out));
        EW_EXPECT_OK(ew_graph_output(g, out));
        if (bad) {
            EW_EXPECT_ERR(ew_adapt_images(g), EW_ERR_UNSUPPORTED, "fixed at 1");
        } else {
            EW_EXPECT_OK(ew_adapt_images(g));
            EW_EXPECT_OK(ew_graph_set_batch(g, 5));
            EW_EXPECT_INT(g->values[g->outputs[0]].t.shape.dim[0], 5);
            EW_EXPECT_INT(g->values[g->outputs[0]].t.shape.dim[1], 18);
        }
        ew_graph_free(g);
    }
}

/* Regression: exporters of a fixed batch write the sizes of all axes of an upsampling, in the order
 * of `axes`, or in theirs. */
static void opens_a_batch_that_sizes_fix(void)
{
    const struct ew_shape in = {4, {2, 3, 3, 4}};
    static const int64_t sizes[][4] = {{2, 6, 6, 4}, {2, 4, 6, 6}, {4, 6, 6, 4}};
    struct ew_resize_attr attr = {.coordinate = EW_RESIZE_ASYMMETRIC, .round = EW_RESIZE_FLOOR};
    for (int i = 0; i < 3; i++) {
        struct ew_graph *g = NULL;
        int list[EW_RESIZE_INPUTS] = {-1, -1, -1, -1}, out;
        attr.axes = (struct ew_ints){i == 1 ? 4 : 0, {0, 3, 1, 2}};
        EW_EXPECT_OK(ew_graph_new("sizes", &g));
        EW_EXPECT_OK(ew_graph_input(g, "x", EW_F32, &in, &list[EW_RESIZE_X]));
        g->values[list[EW_RESIZE_X]].dynamic = 0;
        g->values[list[EW_RESIZE_X]].channels_last = true;
        EW_EXPECT_OK(ew_graph_const_ints(g, "sizes", sizes[i], 4, &list[EW_RESIZE_SIZES]));
        EW_EXPECT_OK(ew_graph_add(g, ew_op_find("resize"), "up", &attr,
                                  ew_inputs(list, EW_RESIZE_INPUTS), &out));
        EW_EXPECT_OK(ew_graph_output(g, out));
        if (i == 2) {
            EW_EXPECT_ERR(ew_adapt_images(g), EW_ERR_UNSUPPORTED, "fixed at 2");
        } else {
            const struct ew_shape want = {4, {5, 6, 6, 4}};
            EW_EXPECT_OK(ew_adapt_images(g));
            EW_EXPECT_OK(ew_graph_set_batch(g, 5));
            EW_EXPECT(ew_shape_equal(&g->values[g->outputs[0]].t.shape, &want));
        }
        ew_graph_free(g);
    }
}

/* Files exported for training: batch statistics are for training runs, unless the new running ones
 * are read. */
static void batch_norms_of_training_files(void)
{
    static const struct ew_batch_norm_attr attr = {
        .eps = 1e-5, .momentum = 0.9, .training_mode = true};
    for (int read = 0; read < 2; read++) {
        struct ew_graph *g = NULL;
        const struct ew_shape image = {4, {2, 3, 3, 4}};
        float ones[] = {1, 1, 1, 1};
        const struct ew_tensor t = {EW_F32, {1, {4}}, ones};
        int in[5], out[3];
        EW_EXPECT_OK(ew_graph_new("norm", &g));
        EW_EXPECT_OK(ew_graph_input(g, "x", EW_F32, &image, &in[0]));
        g->values[in[0]].channels_last = true;
        for (int i = 1; i < 5; i++)
            EW_EXPECT_OK(
                ew_graph_const(g, NULL, i < 3 ? EW_VALUE_PARAM : EW_VALUE_STATE, &t, true, &in[i]));
        struct ew_batch_norm_attr own = attr;
        const struct ew_node n = {
            .op = ew_op_find("batch_norm"), .attr = &own, .n_in = 5, .n_out = 3, .in = in};
        EW_EXPECT_OK(ew_graph_add_node(g, &n, out));
        EW_EXPECT_OK(ew_graph_output(g, out[0]));
        if (read)
            EW_EXPECT_OK(ew_graph_output(g, out[1]));
        EW_EXPECT_OK(ew_adapt_images(g));
        EW_EXPECT_OK(ew_graph_check(g));
        EW_EXPECT_INT(g->nodes[0].n_out, read ? 3 : 1);
        const struct ew_batch_norm_attr *a = g->nodes[0].attr;
        EW_EXPECT(a->training_mode == (read > 0));
        ew_graph_free(g);
    }
}

static void replaces_the_head(void)
{
    static const char *const names[] = {"lenet5", "resnet18", "squeezenet1_1", "densenet121"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct ew_graph *g = network(names[i], i ? 64 : 28, 0.5);
        EW_EXPECT_OK(ew_adapt_head(g, 7, 1, false)); /* it has 7 classes already */
        EW_EXPECT_OK(ew_adapt_head(g, 3, 1, false));
        const struct ew_shape *s = &g->values[g->outputs[0]].t.shape;
        EW_EXPECT(s->rank == 2 && s->dim[1] == 3);
        int n;
        EW_EXPECT_OK(ew_adapt_freeze(g, "backbone", &n));
        int trainable = 0;
        for (int k = 0; k < g->n_values; k++)
            trainable += g->values[k].kind == EW_VALUE_PARAM && !g->values[k].frozen;
        EW_EXPECT_INT(trainable, 2); /* weight and bias */
        float *y = scores(g, 1);
        EW_EXPECT(y && isfinite(y[0]));
        free(y);
        ew_graph_free(g);
    }
}

static void names_what_it_cannot_do(void)
{
    struct ew_graph *g = network("lenet5", 28, 1), *other = network("resnet18", 32, 0.1);
    int n;
    EW_EXPECT_ERR(ew_adapt_freeze(g, "nothing.*", &n), EW_ERR_USAGE, "nothing.*");
    EW_EXPECT_OK(ew_adapt_freeze(g, "conv1.*,conv2.bias", &n));
    EW_EXPECT_INT(n, 3);
    EW_EXPECT_ERR(ew_adapt_copy(g, other, &n), EW_ERR_ARG, "has no weight");
    for (int i = 0; i < g->n_values; i++)
        g->values[i].frozen = g->values[i].kind == EW_VALUE_PARAM;
    struct ew_graph *frozen, *trainable;
    EW_EXPECT_ERR(ew_adapt_cut(g, &frozen, &trainable), EW_ERR_USAGE, "all of it is frozen");
    ew_graph_free(g);
    ew_graph_free(other);
}

static void copies_weights_by_name(void)
{
    struct ew_graph *a = network("lenet5", 28, 1), *b = NULL;
    const struct ew_model_opts o = {.size = sizeof(o), .classes = 4};
    EW_EXPECT_OK(ew_model_build("lenet5", &o, &b));
    EW_EXPECT_OK(ew_model_init("lenet5", 9, b));
    int n;
    EW_EXPECT_OK(ew_adapt_copy(b, a, &n));
    EW_EXPECT_INT(n, 8); /* all but the head, whose shape differs */
    const struct ew_tensor *x = &a->values[ew_graph_find(a, "fc1.weight")].t,
                           *y = &b->values[ew_graph_find(b, "fc1.weight")].t;
    EW_EXPECT(memcmp(x->data, y->data, ew_tensor_bytes(x)) == 0);
    ew_graph_free(a);
    ew_graph_free(b);
}

/* ---- Cutting ---- */

#define BATCH 8

static const struct ew_learner_opts learner_opts = {
    .optimizer = {.kind = EW_OPTIMIZER_SGD, .lr = 0.05, .momentum = 0.9},
    .batch = BATCH,
    .threads = 1};

/* Losses of a few steps by a plain plan, in which frozen weights only lack gradients. */
static void plain_losses(struct ew_graph *g, const float *x, const int64_t *labels, double *out)
{
    struct ew_plan *p;
    const struct ew_plan_opts o = {.mode = EW_PLAN_TRAIN,
                                   .update = true,
                                   .optimizer = learner_opts.optimizer,
                                   .backend = {.threads = 1}};
    EW_EXPECT_OK(ew_graph_set_batch(g, BATCH));
    EW_EXPECT_OK(ew_objective_add(g));
    if (!EW_EXPECT_OK(ew_plan_compile(g, &o, &p)))
        return;
    memcpy(ew_plan_input(p, 0)->data, x, ew_tensor_bytes(ew_plan_input(p, 0)));
    memcpy(ew_plan_input(p, 1)->data, labels, BATCH * sizeof(*labels));
    for (int i = 0; i < 5; i++) {
        EW_EXPECT_OK(ew_plan_run(p));
        out[i] = ew_tensor_get(ew_plan_output(p, 0), 0);
    }
    ew_plan_free(p);
}

static void cut_losses(struct ew_graph *g, const float *x, const int64_t *labels, double *out)
{
    struct ew_learner l;
    const void *features[EW_LEARNER_INPUTS];
    if (!EW_EXPECT_OK(ew_learner_open(g, &learner_opts, &l)))
        return;
    EW_EXPECT(l.frozen && l.features);
    EW_EXPECT_INT(count_ops(l.frozen, "conv"), 2);
    EW_EXPECT_INT(count_ops(l.trainable, "conv"), 0);
    for (int i = 0; i < 5; i++) {
        EW_EXPECT_OK(ew_learner_features(&l, x, features));
        EW_EXPECT_OK(ew_learner_step(&l, features, labels, 0.05, i));
        out[i] = ew_learner_loss(&l);
    }
    EW_EXPECT_OK(ew_plan_pull(l.train));
    ew_learner_close(&l);
}

static void cut_learns_what_the_whole_learns(void)
{
    static const int64_t labels[BATCH] = {0, 1, 2, 3, 4, 5, 6, 0};
    struct ew_graph *a = network("lenet5", 28, 1), *b = network("lenet5", 28, 1);
    double whole[5], cut[5];
    float *x = malloc(BATCH * 784 * sizeof(*x));
    int n;
    for (int i = 0; i < BATCH * 784; i++)
        x[i] = (float)((i * 31) % 97) / 48 - 1;
    EW_EXPECT_OK(ew_adapt_freeze(a, "conv*", &n));
    EW_EXPECT_OK(ew_adapt_freeze(b, "conv*", &n));
    plain_losses(a, x, labels, whole);
    cut_losses(b, x, labels, cut);
    EW_EXPECT_CLOSE(cut, whole, 5, 1e-5, 1e-6);
    EW_EXPECT(cut[4] < cut[0]);
    struct ew_graph *fresh = network("lenet5", 28, 1);
    const int conv = ew_graph_find(b, "conv1.weight"), dense = ew_graph_find(b, "fc1.weight");
    const struct ew_tensor *c = &b->values[conv].t, *d = &b->values[dense].t;
    EW_EXPECT(memcmp(c->data, fresh->values[conv].t.data, ew_tensor_bytes(c)) == 0);
    EW_EXPECT(memcmp(d->data, fresh->values[dense].t.data, ew_tensor_bytes(d)) != 0);
    free(x);
    ew_graph_free(a);
    ew_graph_free(b);
    ew_graph_free(fresh);
}

/* Batch norms of the frozen part keep their statistics; dropout remains in the trained part. */
static void frozen_parts_stay_as_they_are(void)
{
    struct ew_graph *g = network("mobilenet_v2", 32, 0.25);
    struct ew_learner l;
    int n;
    EW_EXPECT_OK(ew_adapt_freeze(g, "backbone", &n));
    if (!EW_EXPECT_OK(ew_learner_open(g, &learner_opts, &l)))
        return;
    EW_EXPECT_INT(count_ops(l.trainable, "batch_norm"), 0);
    EW_EXPECT_INT(count_ops(l.trainable, "dropout"), 1);
    EW_EXPECT_INT(count_ops(l.trainable, "gemm"), 1);
    ew_learner_close(&l);
    ew_graph_free(g);
}

/* ---- Through the trainer ---- */

static double train_frozen(bool cache, int64_t *planned)
{
    struct ew_dataset *data;
    struct ew_train_opts o = small_opts();
    struct ew_trainer *t;
    struct ew_train_job job = {
        .opts = o, .options = "", .prep.std = {1, 1, 1, 1}, .net = small_net()};
    int n;
    EW_EXPECT_OK(ew_dataset_open(TEST_DATA, &data));
    EW_EXPECT_OK(ew_adapt_freeze(job.net, "conv*", &n));
    job.data = data;
    job.opts.load.augment = "none";
    job.opts.shuffle = false;
    job.opts.cache_features = cache;
    if (!EW_EXPECT_OK(ew_trainer_open(&job, &t)))
        return 0;
    train_some(t, 0);
    const struct ew_train_result r = ew_trainer_result(t);
    EW_EXPECT((r.cache_features_s > 0) == cache);
    EW_EXPECT_INT(r.test.samples, 64);
    const double loss = ew_trainer_epoch(t)->train_loss + r.last.loss;
    *planned = r.planned_bytes;
    ew_trainer_close(t);
    ew_graph_free(job.net);
    ew_dataset_close(data);
    return loss;
}

/* The frozen layers run in both, so caching only adds to the memory.  Regression: with a cache the
 * plan that computes it was missing, and a run that planned 183 MiB took 526. */
static void features_computed_once_give_the_same(void)
{
    int64_t with, without;
    EW_EXPECT_NEAR(train_frozen(true, &with), train_frozen(false, &without), 1e-5);
    EW_EXPECT(with > without);
}

/* Regression: with `time` each clip's random position was drawn once, for all epochs. */
static void features_computed_once_are_not_augmented(void)
{
    static const char *const kinds[] = {"crop=1",    "flip",     "rotate=5",
                                        "erase=0.5", "zoom=0.5", "time"};
    struct ew_dataset *data = NULL;
    struct ew_trainer *t = NULL;
    struct ew_train_job job = {.opts = small_opts(), .options = "", .net = small_net()};
    int n;
    EW_EXPECT_OK(ew_dataset_open(TEST_DATA, &data));
    job.data = data;
    EW_EXPECT_OK(ew_adapt_freeze(job.net, "conv*", &n));
    job.opts.cache_features = true;
    for (size_t i = 0; i < EW_COUNT(kinds); i++) {
        job.opts.load.augment = kinds[i];
        EW_EXPECT_ERR(ew_trainer_open(&job, &t), EW_ERR_USAGE, "features are computed once");
    }
    ew_graph_free(job.net);
    ew_dataset_close(data);
}

static void finds_the_largest_batch(void)
{
    struct ew_graph *g = small_net();
    struct ew_train_opts o = small_opts();
    struct ew_batch_found f, g2;
    EW_EXPECT_OK(ew_find_batch(g, &o, (size_t)8 << 20, 1 << 16, &f));
    EW_EXPECT(f.batch > 1 && f.bytes <= (size_t)8 << 20 && f.next_bytes > (size_t)8 << 20);
    EW_EXPECT_OK(ew_find_batch(g, &o, (size_t)8 << 20, 4, &g2));
    EW_EXPECT(g2.batch == 4 && g2.next_bytes == 0);
    EW_EXPECT_ERR(ew_find_batch(g, &o, 1000, 4, &f), EW_ERR_LIMIT, "a batch of 1 needs");
    ew_graph_free(g);
}

EW_TEST_MAIN(EW_TEST(takes_images_as_the_loader_gives_them),
             EW_TEST(takes_images_of_channels_last_files),
             EW_TEST(opens_a_batch_that_a_shape_fixes), EW_TEST(opens_a_batch_that_sizes_fix),
             EW_TEST(batch_norms_of_training_files), EW_TEST(replaces_the_head),
             EW_TEST(names_what_it_cannot_do), EW_TEST(copies_weights_by_name),
             EW_TEST(cut_learns_what_the_whole_learns), EW_TEST(frozen_parts_stay_as_they_are),
             EW_TEST(features_computed_once_give_the_same),
             EW_TEST(features_computed_once_are_not_augmented), EW_TEST(finds_the_largest_batch))
