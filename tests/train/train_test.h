/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the tests of training: a small job on synthetic data. */
#ifndef EW_TRAIN_TEST_H
#define EW_TRAIN_TEST_H

#include "ew_test.h"
#include "train/trainer.h"

#define TEST_DATA "synthetic:train=320,test=64,classes=10"

/* LeNet-5 at a third of its width; 10 batches per epoch. */
static inline struct ew_train_opts small_opts(void)
{
    return (struct ew_train_opts){.epochs = 3,
                                  .batch = 32,
                                  .lr = 0.05,
                                  .momentum = 0.9,
                                  .schedule = EW_SCHEDULE_COSINE,
                                  .seed = 5,
                                  .threads = 1,
                                  .shuffle = true,
                                  .checkpoint_every = 1e9,
                                  .load = {.workers = 1, .prefetch = 2, .augment = "crop=2,flip"}};
}

static inline struct ew_graph *small_net(void)
{
    struct ew_graph *g = NULL;
    const struct ew_model_opts o = {.size = sizeof(o), .scale = 0.34};
    EW_EXPECT_OK(ew_model_build("lenet5", &o, &g));
    EW_EXPECT_OK(ew_model_init("lenet5", 3, g));
    return g;
}

/* Trains to the end, or `batches` batches if that is positive. */
static inline ew_err train_some(struct ew_trainer *t, int64_t batches)
{
    enum ew_train_event event = EW_TRAIN_BATCH;
    for (int64_t n = 0; event != EW_TRAIN_DONE && (batches <= 0 || n < batches);) {
        EW_EXPECT(ew_trainer_step(t, &event) == EW_OK);
        n += event == EW_TRAIN_BATCH;
    }
    return EW_OK;
}

#endif
