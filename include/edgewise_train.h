/* SPDX-License-Identifier: Apache-2.0 */
/* Training step by step, evaluation, and post-training quantisation. */
#ifndef EDGEWISE_TRAIN_H
#define EDGEWISE_TRAIN_H

#include "edgewise.h"
#include "edgewise_data.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Networks -------------------------------------------------------------------------------- */

/* Opens a network by name: one of the zoo, with random weights from the seed, a trained one,
 * FILE.onnx, or a checkpoint that training wrote.  Its input is [N, H, W, C], its output logits
 * without a final softmax, as the functions below expect.  The caller frees *out with
 * ew_graph_free. */
EW_API ew_err ew_network_graph(const char *what, uint64_t seed, struct ew_graph **out);

/* The same for a data set: a zoo network is built for the size of its images, where possible, and
 * its number of classes; a file's network gets a new last layer with random weights if its number
 * of classes differs.  The caller frees *out with ew_graph_free. */
EW_API ew_err ew_network_for_data(const char *what, const struct ew_dataset *data, uint64_t seed,
                                  struct ew_graph **out);

/* ---- Training -------------------------------------------------------------------------------- */

/* A training run.  One thread calls. */
struct ew_training;

/* Zero it, set `size` and whatever is wanted; 0: as `edgewise train` has it. */
struct ew_training_opts {
    size_t size; /* sizeof(struct ew_training_opts) */
    int64_t epochs, batch;
    double lr;
    int64_t threads;      /* 0: one for each CPU */
    int64_t memory_limit; /* bytes; the step is made to fit, at a cost in time; 0: none */
    uint64_t seed;        /* of order, augmentation and dropout; 0: 1 */
    const char *options;  /* all else: lines "name = value" of `edgewise train`'s options, such as
                           * "optimizer = adam\nval-split = 0.1"; they win over those above */
    const char *folder;   /* for checkpoints and rows of each epoch; NULL: nothing is written */
};

/* Starts training an image classifier on the training split.  The graph, which must have weights,
 * is updated in place and must not be used otherwise until the training is closed; the data set
 * must outlive it.  Images are normalised as stored in the network, else by mean and deviation of
 * the data, which are then stored in the graph.  At the end the graph has the last epoch's weights;
 * with a folder, best.ckpt has the best epoch's.  `opts` may be NULL.  The caller closes *out. */
EW_API ew_err ew_training_open(struct ew_graph *net, const struct ew_dataset *data,
                               const struct ew_training_opts *opts, struct ew_training **out);
EW_API void ew_training_close(struct ew_training *t); /* NULL is fine; also in the middle */

/* Resumes an interrupted run of ew_training_open or `edgewise train` from the last checkpoint in
 * its folder, with the same data; the result is bit for bit that of an uninterrupted run.  Of the
 * options epochs and threads may differ from then (0: as they were), and as text workers, prefetch,
 * checkpoint-every and on-bad-sample; EW_ERR_ARG where others are given.  `opts` may be NULL.  The
 * caller closes *out. */
EW_API ew_err ew_training_resume(const char *folder, const struct ew_dataset *data,
                                 const struct ew_training_opts *opts, struct ew_training **out);

/* The network that is trained: the caller's, or after ew_training_resume the training's own, which
 * is freed with it. */
EW_API struct ew_graph *ew_training_graph(struct ew_training *t);

enum ew_training_event {
    EW_TRAINING_BATCH, /* one update was done */
    EW_TRAINING_EVAL,  /* an evaluation began, or a batch of it was done */
    EW_TRAINING_EPOCH, /* an epoch is over, validated and, with a folder, saved */
    EW_TRAINING_DONE   /* all epochs are over, and the result has been tested */
};

/* The next step; *event, an enum ew_training_event, says what it was. */
EW_API ew_err ew_training_step(struct ew_training *t, int *event);

struct ew_training_state {
    size_t size;            /* sizeof(struct ew_training_state), set before the call */
    int64_t epoch, epochs;  /* the one under way, from 1 */
    int64_t batch, batches; /* done of the epoch, or of the evaluation where that is under way */
    double loss;            /* mean of the last batches */
    double accuracy;        /* on the training data, of the epoch so far; 0 to 1 */
    double validation_accuracy, validation_loss; /* of the last epoch that ended; nan: none yet */
    double test_accuracy; /* after EW_TRAINING_DONE: of the best epoch's weights where there is a
                           * folder to keep them, else of the last's; nan before */
    double images_per_s, seconds_left; /* seconds_left below 0: not known yet */
};

/* How far it has come.  Fails on a wrong size. */
EW_API ew_err ew_training_state(const struct ew_training *t, struct ew_training_state *out);

/* Writes a checkpoint of this moment to the folder; ew_training_resume goes on from it.
 * EW_ERR_ARG without a folder, EW_ERR_IO where it could not be written. */
EW_API ew_err ew_training_save(struct ew_training *t);

/* ---- Evaluation ------------------------------------------------------------------------------ */

/* Zero it, set `size` and whatever is wanted. */
struct ew_evaluate_opts {
    size_t size;                     /* sizeof(struct ew_evaluate_opts) */
    int train;                       /* 1: the training split; 0: the test split */
    int64_t batch, workers, threads; /* 0: 32, none, one for each CPU */
    int64_t samples;                 /* spread evenly over the split; 0: all */
};

/* Averages over classes are macro; shares from 0 to 1. */
struct ew_evaluation {
    size_t size; /* sizeof(struct ew_evaluation), set before the call */
    double accuracy, top5_accuracy, precision, recall, f1, loss;
    int64_t samples, unreadable;
};

/* Runs a network, or a context's engine at its present batch, over a split, with images as it says
 * they are made.  EW_ERR_ARG where it does not say how they are normalised.  `opts` may be NULL. */
EW_API ew_err ew_evaluate_graph(const struct ew_graph *net, const struct ew_dataset *data,
                                const struct ew_evaluate_opts *opts, struct ew_evaluation *out);
EW_API ew_err ew_evaluate_context(struct ew_context *c, const struct ew_dataset *data,
                                  const struct ew_evaluate_opts *opts, struct ew_evaluation *out);

/* ---- Quantising ------------------------------------------------------------------------------ */

/* Zero it, set `size` and whatever is wanted. */
struct ew_quantization_opts {
    size_t size;        /* sizeof(struct ew_quantization_opts) */
    int64_t images;     /* to measure ranges on, of the training split; 0: 1000 */
    double max_drop;    /* of accuracy on the test split, in points: layers stay float32 until it is
                         * met; 0: accuracy is not looked at */
    double min_sqnr_db; /* a layer that alone leaves the scores with less stays float32; 0: 10 */
    int power_of_two;   /* 1: scales for accelerators without floating point */
    int64_t threads;    /* 0: one for each CPU */
};

struct ew_quantization {
    size_t size;                          /* sizeof(struct ew_quantization), set before the call */
    double sqnr_db;                       /* signal to noise of the scores */
    double float_accuracy, int8_accuracy; /* nan where they were not looked at */
    int64_t layers, float_layers;         /* in all; those that stay float32 */
    int64_t float_bytes, int8_bytes;      /* of weights */
};

/* Quantises a trained classifier to int8; *out, in QDQ form, is for ew_engine_compile or
 * ew_onnx_save.  It borrows weights of `net`, which is left as it is and must outlive it; the
 * caller frees it with ew_graph_free.  `opts` and `report` may be NULL.  EW_ERR_LIMIT where
 * max_drop cannot be met: *out is NULL then. */
EW_API ew_err ew_quantize_graph(const struct ew_graph *net, const struct ew_dataset *data,
                                const struct ew_quantization_opts *opts,
                                struct ew_quantization *report, struct ew_graph **out);

#ifdef __cplusplus
}
#endif

#endif
