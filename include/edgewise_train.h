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

/* Opens a network: a name of the zoo (randomly initialised from the seed), the name of a trained
 * network, FILE.onnx, or a checkpoint of a training run.  Its input is [N, H, W, C], its output
 * logits without a final softmax, as the functions below expect.  The caller frees *out with
 * ew_graph_free. */
EW_API ew_err ew_network_graph(const char *what, uint64_t seed, struct ew_graph **out);

/* The same for a data set: a zoo network is built for its image size, if possible, and number of
 * classes; a network from a file gets a new, randomly initialised last layer if its number of
 * classes differs.  The caller frees *out with ew_graph_free. */
EW_API ew_err ew_network_for_data(const char *what, const struct ew_dataset *data, uint64_t seed,
                                  struct ew_graph **out);

/* ---- Training -------------------------------------------------------------------------------- */

/* A training run.  One thread calls. */
struct ew_training;

/* Zero the struct, set `size` and the fields that you need; 0: the default of `edgewise train`. */
struct ew_training_opts {
    size_t size; /* sizeof(struct ew_training_opts) */
    int64_t epochs, batch;
    double lr;
    int64_t threads;      /* 0: one for each CPU */
    int64_t memory_limit; /* bytes of a training step, met by recomputation and micro-batches at a
                           * cost in time; 0: none */
    uint64_t seed;        /* of shuffling, augmentation and dropout; 0: 1 */
    const char *options;  /* all other options of `edgewise train`, as lines "name = value":
                           * "optimizer = adam\nval-split = 0.1"; they override the fields above */
    const char *folder;   /* run folder, for checkpoints and per-epoch records; NULL: nothing is
                           * written */
};

/* Starts training an image classifier on the training split.  The graph, which must have weights,
 * is updated in place and must not be used otherwise until the training is closed; the data set
 * must outlive it.  Images are normalised as stored in the network, else by mean and standard
 * deviation of the data, which are then stored in the graph.  At the end the graph has the last
 * epoch's weights; with a folder, best.ckpt has the best epoch's.  `opts` may be NULL.  The caller
 * closes *out. */
EW_API ew_err ew_training_open(struct ew_graph *net, const struct ew_dataset *data,
                               const struct ew_training_opts *opts, struct ew_training **out);
EW_API void ew_training_close(struct ew_training *t); /* NULL is fine; at any time */

/* Resumes an interrupted run of ew_training_open or `edgewise train` from the last checkpoint in
 * its folder, with the same data; the result is bitwise that of an uninterrupted run.  These
 * options may differ from the first run: epochs and threads (0: unchanged), and as text workers,
 * prefetch, checkpoint-every and on-bad-sample; others are EW_ERR_ARG.  `opts` may be NULL. The
 * caller closes *out. */
EW_API ew_err ew_training_resume(const char *folder, const struct ew_dataset *data,
                                 const struct ew_training_opts *opts, struct ew_training **out);

/* The network in training: the caller's, or after ew_training_resume one that the training owns. */
EW_API struct ew_graph *ew_training_graph(struct ew_training *t);

enum ew_training_event {
    EW_TRAINING_BATCH, /* one optimiser step was done */
    EW_TRAINING_EVAL,  /* an evaluation began, or a batch of it was evaluated */
    EW_TRAINING_EPOCH, /* an epoch ended: it is validated and, with a folder, saved */
    EW_TRAINING_DONE   /* training ended, and the result was tested */
};

/* Does the next step; *event, an enum ew_training_event, says what it was. */
EW_API ew_err ew_training_step(struct ew_training *t, int *event);

struct ew_training_state {
    size_t size;            /* sizeof(struct ew_training_state), set before the call */
    int64_t epoch, epochs;  /* epoch: the current one, from 1 */
    int64_t batch, batches; /* batches done and in all, of the epoch or of the evaluation that is
                             * running */
    double loss;            /* moving mean over the last batches */
    double accuracy;        /* on the training data, over the epoch so far; 0 to 1 */
    double validation_accuracy, validation_loss; /* of the last completed epoch; nan: none yet */
    double test_accuracy; /* after EW_TRAINING_DONE, nan before: of the best epoch's weights with a
                           * folder, of the last epoch's without */
    double images_per_s, seconds_left; /* seconds_left < 0: not known yet */
};

/* Progress.  Fails on a wrong out->size. */
EW_API ew_err ew_training_state(const struct ew_training *t, struct ew_training_state *out);

/* Writes a checkpoint of the present state to the folder, from which ew_training_resume continues.
 * EW_ERR_ARG without a folder, EW_ERR_IO if it cannot be written. */
EW_API ew_err ew_training_save(struct ew_training *t);

/* ---- Evaluation ------------------------------------------------------------------------------ */

/* Zero the struct, set `size` and the fields that you need. */
struct ew_evaluate_opts {
    size_t size; /* sizeof(struct ew_evaluate_opts) */
    int train;   /* 1: the training split; 0: the test split.  The other one, where it is empty */
    int64_t batch, workers, threads; /* 0: 32, none, one for each CPU */
    int64_t samples;                 /* evenly spaced subset of the split; 0: all */
};

/* precision, recall and f1 are macro averages; shares are 0 to 1. */
struct ew_evaluation {
    size_t size; /* sizeof(struct ew_evaluation), set before the call */
    double accuracy, top5_accuracy, precision, recall, f1, loss;
    int64_t samples, unreadable;
};

/* Evaluates a network, or a context's engine at its current batch, on a split, with the network's
 * own preprocessing.  EW_ERR_USAGE if its normalisation is not known, EW_ERR_ARG if it has fewer
 * classes than the data, EW_ERR_UNSUPPORTED if it gives back its input.  `opts` may be NULL. */
EW_API ew_err ew_evaluate_graph(const struct ew_graph *net, const struct ew_dataset *data,
                                const struct ew_evaluate_opts *opts, struct ew_evaluation *out);
EW_API ew_err ew_evaluate_context(struct ew_context *c, const struct ew_dataset *data,
                                  const struct ew_evaluate_opts *opts, struct ew_evaluation *out);

/* ---- Quantising ------------------------------------------------------------------------------ */

/* Zero the struct, set `size` and the fields that you need. */
struct ew_quantization_opts {
    size_t size;        /* sizeof(struct ew_quantization_opts) */
    int64_t images;     /* calibration images, from the training split; 0: 1000 */
    double max_drop;    /* percentage points of test accuracy that may be lost: layers stay float32
                         * until it is met; 0: accuracy is not evaluated */
    double min_sqnr_db; /* a layer whose quantisation alone gives a lower SQNR of the logits stays
                         * float32; 0: 10 */
    int power_of_two;   /* 1: power-of-two scales, for accelerators without floating point */
    int64_t threads;    /* 0: one for each CPU */
};

struct ew_quantization {
    size_t size;                          /* sizeof(struct ew_quantization), set before the call */
    double sqnr_db;                       /* signal-to-quantisation-noise ratio of the logits */
    double float_accuracy, int8_accuracy; /* nan if accuracy was not evaluated */
    int64_t layers, float_layers;         /* number of layers, and of those left in float32 */
    int64_t float_bytes, int8_bytes;      /* of weights */
};

/* Quantises a trained classifier to int8; *out, in QDQ form, is for ew_engine_compile or
 * ew_onnx_save.  *out borrows weights of `net`, which is unchanged and must outlive it; the caller
 * frees it with ew_graph_free.  `opts` and `report` may be NULL.  EW_ERR_LIMIT if max_drop cannot
 * be met; *out is NULL then. */
EW_API ew_err ew_quantize_graph(const struct ew_graph *net, const struct ew_dataset *data,
                                const struct ew_quantization_opts *opts,
                                struct ew_quantization *report, struct ew_graph **out);

#ifdef __cplusplus
}
#endif

#endif
