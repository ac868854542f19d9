/* SPDX-License-Identifier: Apache-2.0 */
/* The first losses of training are PyTorch's.
 *
 * PyTorch (bench/peers/nets.py has its networks) trained from our first weights, cut to bfloat16 so
 * that they travel exactly, on batches that a formula makes, in float64.  bench/peers/run losses
 * does the same where PyTorch is installed, with more steps. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ew_test.h"
#include "graph/graph.h"
#include "train/learner.h"

#define STEPS   5
#define BATCH   16
#define CLASSES 10
#define FIRST   2e-6 /* of the first loss, before any update: float32 against float64 */

/* Each step moves the loss by far more than its tolerance.  float32 parts from float64 where an
 * input of a ReLU lies within rounding of 0, as one of layer2.0 of resnet18 does in the first batch
 * (our references, which compute in double, are within 1e-6 of PyTorch in three steps); PyTorch's
 * own float32 is off by 9e-4 in the third step of mobilenet_v2_cifar.  So these two are compared
 * over fewer steps. */
static const struct golden {
    const char *network;
    int64_t side, channels;
    double lr, tolerance; /* of the losses after the first */
    int steps;
    double loss[STEPS];
} golden[] = {
    /* clang-format off */
    {"lenet5", 28, 1, 0.05, 1e-6, 5, {2.298850682, 2.299177241, 2.298045921, 2.297314390, 2.309985122}},
    {"resnet18", 32, 3, 0.001, 1e-3, 2, {2.509390903, 2.401360658}},
    {"mobilenet_v2_cifar", 32, 3, 0.001, 1e-3, 3, {2.237432164, 2.358161433, 2.325099723}},
    /* clang-format on */
};

/* Coarse patterns of 4 x 4 squares, the one of its class brighter. */
static void make_batches(const struct golden *k, float *images, int64_t *labels)
{
    uint32_t s = 12345;
    const int64_t square = k->side / 4;
    for (int64_t i = 0; i < STEPS * BATCH; i++) {
        labels[i] = (i * 7 + 3) % CLASSES;
        float *image = images + i * k->side * k->side * k->channels;
        for (int64_t c = 0; c < k->channels; c++) {
            for (int64_t q = 0; q < 16; q++) {
                s = s * 1664525u + 1013904223u;
                const double v = (double)((s >> 16) % 200 + (q == labels[i] ? 55 : 0));
                for (int64_t p = 0; p < square * square; p++) {
                    const int64_t y = q / 4 * square + p / square, x = q % 4 * square + p % square;
                    image[(y * k->side + x) * k->channels + c] = (float)((v / 255 - 0.5) / 0.25);
                }
            }
        }
    }
}

/* Cuts weights to their upper 16 bits. */
static void to_bfloat16(struct ew_graph *g)
{
    for (int v = 0; v < g->n_values; v++) {
        const struct ew_tensor *t = &g->values[v].t;
        if (g->values[v].kind != EW_VALUE_PARAM || t->dtype != EW_F32 || !t->data)
            continue;
        for (int64_t i = 0; i < ew_tensor_count(t); i++) {
            uint32_t bits;
            memcpy(&bits, (char *)t->data + 4 * i, sizeof(bits));
            bits &= 0xffff0000u;
            memcpy((char *)t->data + 4 * i, &bits, sizeof(bits));
        }
    }
}

static void train(const struct golden *k, struct ew_graph *g, const float *images,
                  const int64_t *labels)
{
    const struct ew_learner_opts o = {
        .optimizer = {.kind = EW_OPTIMIZER_SGD, .lr = k->lr, .momentum = 0.9, .weight_decay = 5e-4},
        .batch = BATCH,
        .threads = 1,
        .seed = 1};
    struct ew_learner l = {0};
    const int64_t image = k->side * k->side * k->channels;
    bool ok = EW_EXPECT_OK(ew_learner_open(g, &o, &l));
    for (int64_t i = 0; ok && i < k->steps; i++) {
        const void *features[EW_LEARNER_INPUTS];
        ok = EW_EXPECT_OK(ew_learner_features(&l, images + i * BATCH * image, features)) &&
             EW_EXPECT_OK(ew_learner_step(&l, features, labels + i * BATCH, k->lr, i));
        const double loss = ew_learner_loss(&l);
        if (ok && !(fabs(loss - k->loss[i]) <= (i ? k->tolerance : FIRST)))
            EW_FAIL("%s, step %d: %.9f, PyTorch has %.9f", k->network, (int)i + 1, loss,
                    k->loss[i]);
    }
    ew_learner_close(&l);
}

static void check(const struct golden *k)
{
    const struct ew_model_opts o = {.size = sizeof(o),
                                    .height = k->side,
                                    .width = k->side,
                                    .channels = k->channels,
                                    .classes = CLASSES};
    const size_t pixels = (size_t)(STEPS * BATCH * k->side * k->side * k->channels);
    float *images = malloc(pixels * sizeof(*images));
    int64_t labels[STEPS * BATCH];
    struct ew_graph *g = NULL;
    if (EW_EXPECT(images) && EW_EXPECT_OK(ew_model_build(k->network, &o, &g)) &&
        EW_EXPECT_OK(ew_model_init(k->network, 1, g))) {
        to_bfloat16(g);
        make_batches(k, images, labels);
        train(k, g, images, labels);
    }
    ew_graph_free(g);
    free(images);
}

int main(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    for (size_t i = 0; i < EW_COUNT(golden) - ew_test_quick(); i++) {
        ew_test_begin("%s", golden[i].network);
        check(&golden[i]);
        ew_test_end();
    }
    return ew_test_status();
}
