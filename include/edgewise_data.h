/* SPDX-License-Identifier: Apache-2.0 */
/* Data sets of labelled images, and batches of them. */
#ifndef EDGEWISE_DATA_H
#define EDGEWISE_DATA_H

#include "edgewise.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Data sets ------------------------------------------------------------------------------- */

/* A data set with a training and a test split.  Several threads may read it at once. */
struct ew_dataset;

/* Opens a folder or file in one of the layouts of docs/data.md, a name under which `edgewise data
 * get` has stored a data set, or "synthetic[:key=value,...]".  The message of EW_ERR_NOT_FOUND
 * lists where it was looked for.  The caller closes *out. */
EW_API ew_err ew_dataset_open(const char *what, struct ew_dataset **out);
EW_API void ew_dataset_close(struct ew_dataset *d); /* NULL is fine */

/* Facts about a data set; strings live as long as it does. */
struct ew_dataset_facts {
    size_t size; /* sizeof(struct ew_dataset_facts), set before the call */
    const char *name, *path, *format;
    int64_t classes;
    int64_t height, width; /* of every image; 0: images differ in size */
    int64_t channels;
    int64_t frames; /* of a clip, stacked along the height; 0: images */
    int64_t train, test;
};

/* Fails on a wrong size.  Any thread. */
EW_API ew_err ew_dataset_facts(const struct ew_dataset *d, struct ew_dataset_facts *out);
/* The name of class k, or its number if it has none; lives as long as the data set. */
EW_API const char *ew_dataset_class(const struct ew_dataset *d, int64_t k);

/* ---- Batches --------------------------------------------------------------------------------- */

/* A data loader: batches of a split, in an order that depends on (seed, epoch) alone, whatever the
 * number of workers.  One thread calls. */
struct ew_batches;

/* Zero the struct, set `size` and the fields that you need. */
struct ew_batches_opts {
    size_t size;     /* sizeof(struct ew_batches_opts) */
    int test;        /* 1: the test split; 0: the training split */
    int64_t batch;   /* images; 0: 32 */
    int64_t workers; /* prefetching threads; 0: batches are made synchronously */
    int shuffle;     /* 1: a new order every epoch */
    uint64_t seed;
    int64_t height, width;  /* of the images delivered; 0: the data set's.  Images of another size
                             * are resized to cover it with an eighth to spare, and the centre is
                             * taken, as in evaluations */
    double mean[4], std[4]; /* (pixel / 255 - mean) / std; std all 0: pixel / 255 */
};

/* Pixels are float32 [n, height, width, channels]; valid until the next call. */
struct ew_batch_view {
    const float *images;
    const int64_t *labels; /* [n] */
    const int64_t *index;  /* indices of the samples in their split */
    int64_t n;
    int64_t height, width, channels;
};

/* The data set must outlive the batches; `opts` may be NULL.  The caller closes *out. */
EW_API ew_err ew_batches_open(const struct ew_dataset *d, const struct ew_batches_opts *opts,
                              struct ew_batches **out);
EW_API void ew_batches_close(struct ew_batches *b); /* NULL is fine */

/* Begins an epoch; required before the first ew_batches_next. */
EW_API ew_err ew_batches_start(struct ew_batches *b, int64_t epoch);
/* The next batch; the last of an epoch may be shorter, and after it out->n is 0.  An image that
 * cannot be read is an error that names it. */
EW_API ew_err ew_batches_next(struct ew_batches *b, struct ew_batch_view *out);

#ifdef __cplusplus
}
#endif

#endif
