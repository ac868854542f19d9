/* SPDX-License-Identifier: Apache-2.0 */
/* The data loader: batches of a data set, with order and augmentation determined by (seed, epoch),
 * whatever the number of workers.
 *
 *   EW_TRY(ew_loader_open(&opts, &l));
 *   for (epoch ...) {
 *       EW_TRY(ew_loader_start(l, epoch, 0));
 *       for (;;) {
 *           const struct ew_batch *b;
 *           EW_TRY(ew_loader_next(l, &b));
 *           if (!b)
 *               break;
 *           ... b->images, b->labels, b->n ...
 *           ew_loader_release(l, b);
 *       }
 *   }
 *   ew_loader_close(l);
 *
 * One thread calls; workers belong to the loader.  A batch is valid until it is released; at most
 * opts.hold batches are held at a time. */
#ifndef EW_DATA_LOADER_H
#define EW_DATA_LOADER_H

#include "base/pool.h"
#include "data/augment.h"
#include "data/data.h"
#include "data/storage.h"
#include "graph/tensor.h"

enum ew_on_bad { EW_ON_BAD_STOP, EW_ON_BAD_SKIP };

/* Allocator of batches: pinned memory of a device, for example. */
struct ew_loader_memory {
    ew_err (*take)(void *owner, size_t bytes, void **out); /* NULL: plain memory */
    void (*give)(void *owner, void *p);
    void *owner; /* outlives the loader */
};

struct ew_loader_opts {
    const struct ew_dataset *data; /* borrowed until close */
    enum ew_split split;
    const int64_t *subset; /* subset of the split, copied; NULL: all */
    int64_t n_subset;
    int64_t batch;
    int64_t slice_first, slice; /* samples of each batch that are loaded; slice 0: all */
    int64_t workers;            /* threads; 0: inline, in ew_loader_next */
    struct ew_pool *pool; /* threads that share inline loading, borrowed until close; NULL: none */
    int64_t prefetch;     /* batches kept ready per worker; 0: 2 */
    int64_t hold;         /* batches that the caller holds at a time; 0: 1 */
    uint64_t seed;
    bool shuffle;
    bool drop_last;  /* drop a last batch that is not full; required with slices */
    int64_t h, w, c; /* of the images; 0: the data set's (fails if images differ) */
    int64_t frames;  /* frames stacked along h; 0: images */
    struct ew_preprocess prep;
    struct ew_augment augment; /* all zero: none */
    enum ew_on_bad on_bad;
    bool refill; /* with EW_ON_BAD_SKIP: replace a bad sample by another, drawn by (seed, epoch,
                  * index), so that batches stay full; false: shorter batches */
    struct ew_storage storage;      /* emulated medium; all zero: none */
    struct ew_loader_memory memory; /* of images and labels */
};

/* Sets h, w and c for an input of shape [N, H, W, C], or [N, T, H, W, C] of clips, whose frames are
 * stacked along the height. */
void ew_loader_fit(struct ew_loader_opts *o, const struct ew_shape *input);

/* Sample i of `count` spread over `all`: one from each of `count` equal intervals, at a position
 * determined by i.  (Every k-th sample could be of few classes, if these alternate.) */
int64_t ew_subsample_index(int64_t i, int64_t count, int64_t all);

/* Restricts the options to `count` evenly spread samples; 0, or more than there are: all.  *subset,
 * to which the options then point, is freed by the caller; NULL: all. */
ew_err ew_loader_subsample(struct ew_loader_opts *o, int64_t count, int64_t **subset);

struct ew_batch {
    const float *images;                     /* [n, h, w, c] */
    const int64_t *labels;                   /* [n] */
    const int64_t *index;                    /* [n]: sample numbers in their split */
    int64_t n;                               /* at most opts.batch; 0 if all samples were bad */
    int64_t epoch, number;                   /* number: from 0 in its epoch */
    int64_t bad;                             /* skipped samples */
    int64_t fetch_ns, decode_ns, augment_ns; /* CPU time of making it, over all threads */
    int64_t stall_ns;                        /* time that ew_loader_next waited for it */
    int64_t bytes_read, ops_read;
};

/* Sums since open. */
struct ew_loader_counts {
    int64_t batches, samples, bad;
    int64_t fetch_ns, decode_ns, augment_ns, stall_ns;
    int64_t bytes_read, ops_read;
    int64_t emulated_ns; /* spent waiting for the emulated medium */
};

struct ew_loader;

ew_err ew_loader_open(const struct ew_loader_opts *o, struct ew_loader **out);
void ew_loader_close(struct ew_loader *l); /* NULL is fine; also in the middle of an epoch */

/* Empties the emulated medium's cache.  Between epochs; NULL is fine. */
void ew_loader_drop_cache(struct ew_loader *l);

/* Begins an epoch at batch `first`; batches are the same as when the epoch is read from the start.
 * May be called at any time; held batches are released. */
ew_err ew_loader_start(struct ew_loader *l, int64_t epoch, int64_t first);

/* The next batch, in order; *out = NULL after the last.  Fails on a bad sample, naming it, unless
 * these are skipped. */
ew_err ew_loader_next(struct ew_loader *l, const struct ew_batch **out);

/* Returns the oldest held batch for reuse. */
void ew_loader_release(struct ew_loader *l, const struct ew_batch *b);

int64_t ew_loader_batches(const struct ew_loader *l); /* in an epoch */
int64_t ew_loader_samples(const struct ew_loader *l); /* per epoch, without dropped ones */
struct ew_loader_counts ew_loader_counts(const struct ew_loader *l);

#endif
