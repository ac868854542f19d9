/* SPDX-License-Identifier: Apache-2.0 */
/* Selection of channels: importance, shares, targets. */
#include "prune/prune.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ew_test.h"
#include "model/objective.h"
#include "plan/plan.h"
#include "prune/prune_run.h"

static struct ew_graph *build(const char *name, double scale)
{
    const struct ew_model_opts o = {.size = sizeof(o), .scale = scale};
    struct ew_graph *g = NULL;
    EW_EXPECT_OK(ew_model_build(name, &o, &g));
    EW_EXPECT_OK(ew_model_init(name, 5, g));
    return g;
}

static int left_in(const struct ew_channel_group *k, const bool *gone)
{
    int n = 0;
    for (int i = 0; i < k->n; i++)
        n += !gone[k->units[i]];
    return n;
}

/* Sets element i of the value called `name` to of(i). */
static void fill(struct ew_graph *g, const char *name, float (*of)(int64_t i))
{
    struct ew_tensor *t = &g->values[ew_graph_find(g, name)].t;
    const int64_t inner = ew_tensor_count(t) / t->shape.dim[0];
    for (int64_t i = 0; i < ew_tensor_count(t); i++)
        ((float *)t->data)[i] = of(i / inner) * (i % 2 ? -1.0f : 1.0f);
}

static float rising(int64_t i)
{
    return (float)(i + 1);
}

static const struct ew_channel_group *group(const struct ew_channels *c, const char *name)
{
    for (int i = 0; i < c->n_groups; i++)
        if (strcmp(c->groups[i].name, name) == 0)
            return &c->groups[i];
    EW_EXPECT_STR(name, "a group");
    return NULL;
}

/* ---- Choosing ---- */

static void least_important_go_first(void)
{
    struct ew_graph *g = build("vgg11_cifar", 0.25);
    struct ew_channels c;
    fill(g, "features.0.weight", rising);
    fill(g, "features.5.weight", rising); /* the batch norm of the second convolution */
    EW_EXPECT_OK(ew_channels_find(g, &c));
    double *scores = calloc((size_t)c.n_units, sizeof(*scores));
    bool *gone = calloc((size_t)c.n_units, sizeof(*gone));
    const struct ew_prune_rule rule = {.align = 1};
    const struct ew_channel_group *first = group(&c, "features.0");
    for (int kind = EW_IMPORTANCE_L1; kind <= EW_IMPORTANCE_L2; kind++) {
        EW_EXPECT_OK(ew_importance_of_weights(g, &c, (enum ew_importance)kind, 1, scores));
        EW_EXPECT_OK(ew_prune_choose(&c, scores, 0.5, &rule, gone));
        EW_EXPECT_INT(left_in(first, gone), 8);
        for (int i = 0; i < 16; i++)
            EW_EXPECT_INT(gone[first->units[i]], i < 8);
    }
    const struct ew_channel_group *second = group(&c, "features.4");
    EW_EXPECT_OK(ew_importance_of_weights(g, &c, EW_IMPORTANCE_BN, 1, scores));
    EW_EXPECT_OK(ew_prune_choose(&c, scores, 0.25, &rule, gone));
    for (int i = 0; i < 32; i++)
        EW_EXPECT_INT(gone[second->units[i]], i < 24);
    free(gone);
    free(scores);
    ew_channels_fini(&c);
    ew_graph_free(g);
}

static void shares_and_multiples(void)
{
    struct ew_graph *g = build("resnet18", 0.25);
    struct ew_channels c;
    EW_EXPECT_OK(ew_channels_find(g, &c));
    double *scores = calloc((size_t)c.n_units, sizeof(*scores));
    bool *gone = calloc((size_t)c.n_units, sizeof(*gone)), *other = calloc((size_t)c.n_units, 1);
    EW_EXPECT_OK(ew_importance_of_weights(g, &c, EW_IMPORTANCE_RANDOM, 1, scores));
    EW_EXPECT_OK(ew_prune_choose(&c, scores, 0.3, &(struct ew_prune_rule){.align = 8}, gone));
    int total = 0, left = 0;
    for (int i = 0; i < c.n_groups; i++) {
        EW_EXPECT_INT(left_in(&c.groups[i], gone) % 8, 0);
        total += c.groups[i].n;
    }
    EW_EXPECT_OK(ew_prune_choose(&c, scores, 0.3, &(struct ew_prune_rule){0}, gone));
    for (int i = 0; i < c.n_groups; i++) {
        const int n = c.groups[i].n, exact = (int)ceil(0.3 * n);
        EW_EXPECT_INT(left_in(&c.groups[i], gone), n < 64 ? exact : (exact + 7) / 8 * 8);
    }
    EW_EXPECT_OK(ew_prune_choose(&c, scores, 0.6,
                                 &(struct ew_prune_rule){.global = true, .align = 1}, gone));
    for (int i = 0; i < c.n_groups; i++)
        left += left_in(&c.groups[i], gone);
    EW_EXPECT_INT(left, (int)ceil(0.6 * total));
    EW_EXPECT_OK(
        ew_prune_choose(&c, scores, 0, &(struct ew_prune_rule){.global = true, .align = 1}, gone));
    for (int i = 0; i < c.n_groups; i++)
        EW_EXPECT_INT(left_in(&c.groups[i], gone), 1); /* no layer may vanish */
    EW_EXPECT_OK(ew_importance_of_weights(g, &c, EW_IMPORTANCE_RANDOM, 2, scores));
    EW_EXPECT_OK(ew_prune_choose(&c, scores, 0.6,
                                 &(struct ew_prune_rule){.global = true, .align = 1}, other));
    EW_EXPECT(memcmp(gone, other, (size_t)c.n_units) != 0);
    free(gone);
    free(other);
    free(scores);
    ew_channels_fini(&c);
    ew_graph_free(g);
}

/* ---- Targets ---- */

static void targets_are_met(void)
{
    static const struct {
        enum ew_prune_by by;
        double share, near; /* requested share; minimum that must be reached */
    } all[] = {
        {EW_PRUNE_MACS, 0.5, 0.97}, {EW_PRUNE_PARAMS, 0.3, 0.97}, {EW_PRUNE_BYTES, 0.6, 0.9}};
    struct ew_graph *g = build("preact_resnet18", 0.5);
    struct ew_channels c;
    EW_EXPECT_OK(ew_channels_find(g, &c));
    double *scores = calloc((size_t)c.n_units, sizeof(*scores)), base, after;
    bool *gone = calloc((size_t)c.n_units, sizeof(*gone));
    struct ew_prune_found found;
    EW_EXPECT_OK(ew_importance_of_weights(g, &c, EW_IMPORTANCE_L1, 1, scores));
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        struct ew_graph *copy = NULL;
        EW_EXPECT_OK(ew_prune_measure(g, all[i].by, 1, &base));
        const struct ew_prune_job j = {.g = g,
                                       .channels = &c,
                                       .scores = scores,
                                       .by = all[i].by,
                                       .target = all[i].share * base,
                                       .rule = {.global = i == 1}};
        EW_EXPECT_OK(ew_prune_search(&j, gone, &found));
        EW_EXPECT_OK(ew_graph_clone(g, &copy));
        EW_EXPECT_OK(ew_channels_remove(copy, &c, gone, false));
        EW_EXPECT_OK(ew_prune_measure(copy, all[i].by, 1, &after));
        EW_EXPECT_NEAR(after, found.value, 0);
        EW_EXPECT(after <= j.target && after >= all[i].near * j.target);
        ew_graph_free(copy);
    }
    const struct ew_prune_job never = {
        .g = g, .channels = &c, .scores = scores, .by = EW_PRUNE_MACS, .target = 10};
    EW_EXPECT_ERR(ew_prune_search(&never, gone, &found), EW_ERR_LIMIT,
                  "MACs with the fewest channels that can stay, over 10");
    free(gone);
    free(scores);
    ew_channels_fini(&c);
    ew_graph_free(g);
}

/* ---- Taylor ---- */

/* Converts weights, statistics and images to float64, in which the references then compute. */
static void to_double(struct ew_graph *g)
{
    for (int v = 0; v < g->n_values; v++) {
        struct ew_tensor *t = &g->values[v].t;
        if (g->values[v].kind == EW_VALUE_ACT || t->dtype != EW_F32)
            continue;
        const struct ew_tensor was = *t;
        t->dtype = EW_F64;
        if (!was.data)
            continue;
        t->data = ew_arena_alloc(&g->arena, ew_tensor_bytes(t));
        for (int64_t i = 0; t->data && i < ew_tensor_count(t); i++)
            ((double *)t->data)[i] = (double)((const float *)was.data)[i];
    }
}

/* Scales one channel of the norm's scale and shift, or of a layer's filter and bias. */
static void scale_channel(struct ew_graph *g, const char *layer, int64_t i, double by)
{
    for (int part = 0; part < 2; part++) {
        char name[64];
        snprintf(name, sizeof(name), "%s.%s", layer, part ? "bias" : "weight");
        struct ew_tensor *t = &g->values[ew_graph_find(g, name)].t;
        const int64_t inner = ew_tensor_count(t) / t->shape.dim[0];
        for (int64_t k = 0; k < inner; k++)
            ((double *)t->data)[i * inner + k] *= by;
    }
}

static void feed(struct ew_plan *p, const struct ew_loader_opts *lo)
{
    struct ew_loader *l = NULL;
    const struct ew_batch *b = NULL;
    EW_EXPECT_OK(ew_loader_open(lo, &l));
    EW_EXPECT_OK(ew_loader_start(l, 0, 0));
    EW_EXPECT_OK(ew_loader_next(l, &b));
    const struct ew_tensor *x = ew_plan_input(p, 0);
    for (int64_t i = 0; i < ew_tensor_count(x); i++)
        ((double *)x->data)[i] = (double)b->images[i];
    memcpy(ew_plan_input(p, 1)->data, b->labels, ew_tensor_bytes(ew_plan_input(p, 1)));
    ew_loader_release(l, b);
    ew_loader_close(l);
}

/* Loss of one batch in training mode, in float64, with one channel scaled. */
static double loss_of(const struct ew_graph *net, const struct ew_loader_opts *lo,
                      const char *layer, int64_t i, double by)
{
    struct ew_graph *g = NULL;
    struct ew_plan *p = NULL;
    const struct ew_plan_opts o = {.mode = EW_PLAN_TRAIN,
                                   .backend = {.threads = 1, .reference = true}};
    double loss = NAN;
    EW_EXPECT_OK(ew_graph_clone(net, &g));
    EW_EXPECT_OK(ew_graph_set_batch(g, lo->batch));
    to_double(g);
    scale_channel(g, layer, i, by);
    EW_EXPECT_OK(ew_graph_infer(g));
    EW_EXPECT_OK(ew_objective_add(g));
    EW_EXPECT_OK(ew_graph_infer(g));
    if (EW_EXPECT_OK(ew_plan_compile(g, &o, &p))) {
        feed(p, lo);
        EW_EXPECT_OK(ew_plan_run(p));
        loss = ew_tensor_get(ew_plan_output(p, 0), 0);
    }
    ew_plan_free(p);
    ew_graph_free(g);
    return loss;
}

/* The score is the squared change of the loss when the channel is scaled. */
static void expect_slope(const struct ew_graph *g, const struct ew_loader_opts *lo,
                         const char *layer, int64_t i, double score)
{
    const double step = 1e-6; /* too small to cross a ReLU's kink */
    const double up = loss_of(g, lo, layer, i, 1 + step);
    const double down = loss_of(g, lo, layer, i, 1 - step);
    const double slope = (up - down) / (2 * step);
    EW_EXPECT_NEAR(sqrt(score), fabs(slope), 1e-3 * fabs(slope) + 1e-6);
}

static void taylor_is_the_slope_of_the_loss(void)
{
    struct ew_graph *g = build("vgg11_cifar", 0.1), *plain = build("lenet5", 1);
    struct ew_dataset *data = NULL, *digits = NULL;
    struct ew_channels c, d;
    EW_EXPECT_OK(ew_dataset_open("synthetic:kind=shapes,train=64,test=16", &data));
    EW_EXPECT_OK(ew_dataset_open("synthetic:train=64,test=16", &digits));
    struct ew_taylor_opts o = {
        .loader = {.data = data, .batch = 16, .shuffle = true, .seed = 3, .drop_last = true},
        .batches = 1,
        .threads = 1};
    EW_EXPECT_OK(ew_channels_find(g, &c));
    double *scores = calloc((size_t)c.n_units, sizeof(*scores));
    EW_EXPECT_OK(ew_importance_taylor(g, &c, &o, scores));
    for (int i = 0; i < 3; i++)
        expect_slope(g, &o.loader, "features.5", i, scores[group(&c, "features.4")->units[i]]);
    free(scores);
    o.loader.data = digits;
    EW_EXPECT_OK(ew_channels_find(plain, &d));
    scores = calloc((size_t)d.n_units, sizeof(*scores));
    EW_EXPECT_OK(ew_importance_taylor(plain, &d, &o, scores));
    const char *layer = d.groups[0].name;
    for (int i = 0; i < 3; i++)
        expect_slope(plain, &o.loader, layer, i, scores[d.groups[0].units[i]]);
    free(scores);
    ew_channels_fini(&c);
    ew_channels_fini(&d);
    ew_dataset_close(data);
    ew_dataset_close(digits);
    ew_graph_free(g);
    ew_graph_free(plain);
}

static double *taylor_of(struct ew_graph *g, const char *set, int64_t batch)
{
    struct ew_dataset *data = NULL;
    struct ew_channels c;
    EW_EXPECT_OK(ew_dataset_open(set, &data));
    EW_EXPECT_OK(ew_channels_find(g, &c));
    const struct ew_taylor_opts o = {
        .loader = {.data = data, .batch = batch, .seed = 3}, .batches = 1, .threads = 1};
    double *scores = calloc((size_t)c.n_units + 1, sizeof(*scores));
    EW_EXPECT_OK(ew_importance_taylor(g, &c, &o, scores));
    ew_channels_fini(&c);
    ew_dataset_close(data);
    return scores;
}

/* Regression: labels were written to the input that an autoencoder does not have, and images read
 * beyond the batch where that of the network is fixed. */
static void taylor_of_other_networks(void)
{
    const char *digits = "synthetic:train=64,test=16";
    struct ew_graph *clips = build("video_autoencoder", 0.25), *g = build("lenet5", 0.5);
    double *of_clips = taylor_of(clips, "synthetic:kind=motion,classes=2,train=2,test=1", 1);
    EW_EXPECT(of_clips[0] > 0);
    double *open = taylor_of(g, digits, 32);
    EW_EXPECT_OK(ew_graph_set_batch(g, 32));
    g->values[g->inputs[0]].dynamic = 0;
    double *fixed = taylor_of(g, digits, 16);
    for (int i = 0; i < 8; i++)
        EW_EXPECT_NEAR(fixed[i], open[i], 1e-12);
    free(of_clips);
    free(open);
    free(fixed);
    ew_graph_free(clips);
    ew_graph_free(g);
}

/* Regression: fine-tuning trained all weights in spite of --freeze. */
static void frozen_weights_stay(void)
{
    struct ew_dataset *data = NULL;
    struct ew_graph *nets[2];
    EW_EXPECT_OK(ew_dataset_open("synthetic:train=64,test=16", &data));
    for (int i = 0; i < 2; i++) { /* with and without an epoch after the cut */
        const struct ew_train_opts tune = {
            .epochs = 1, .batch = 16, .lr = 0.1, .threads = 1, .freeze = "conv*"};
        const struct ew_loader_opts train = {.data = data, .batch = 16};
        const struct ew_prune_run_job job = {.net = nets[i] = build("lenet5", 0.5),
                                             .train = &train,
                                             .opts = {.by = EW_PRUNE_KEEP, .target = 0.7},
                                             .fine_tune = i ? &tune : NULL};
        struct ew_pruned r;
        EW_EXPECT_OK(ew_prune_run(&job, &r));
        ew_pruned_fini(&r);
    }
    for (int v = 0; v < nets[0]->n_values; v++) {
        const struct ew_value *a = &nets[0]->values[v], *b = &nets[1]->values[v];
        const bool same = a->kind == EW_VALUE_PARAM && ew_shape_equal(&a->t.shape, &b->t.shape) &&
                          memcmp(a->t.data, b->t.data, ew_tensor_bytes(&a->t)) == 0;
        if (a->kind == EW_VALUE_PARAM)
            EW_EXPECT(same == (strncmp(a->name, "conv", 4) == 0));
    }
    ew_graph_free(nets[0]);
    ew_graph_free(nets[1]);
    ew_dataset_close(data);
}

EW_TEST_MAIN(EW_TEST(least_important_go_first), EW_TEST(shares_and_multiples),
             EW_TEST(targets_are_met), EW_TEST(frozen_weights_stay),
             EW_TEST(taylor_is_the_slope_of_the_loss), EW_TEST(taylor_of_other_networks))
