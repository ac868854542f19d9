/* SPDX-License-Identifier: Apache-2.0 */
/* The loader: batches of a data set, in an order and with an augmentation that (seed, epoch) fix,
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
 * One thread calls; the workers are the loader's own.  A batch holds until it is released; as many
 * are held at a time as opts.hold says. */
#ifndef EW_DATA_LOADER_H
#define EW_DATA_LOADER_H

#include "base/pool.h"
#include "data/augment.h"
#include "data/data.h"
#include "data/storage.h"
#include "graph/tensor.h"

enum ew_on_bad { EW_ON_BAD_STOP, EW_ON_BAD_SKIP };

/* Who has the memory of batches, where that is not plain memory: a device that copies from it. */
struct ew_loader_memory {
    ew_err (*take)(void *owner, size_t bytes, void **out); /* NULL: plain memory */
    void (*give)(void *owner, void *p);
    void *owner; /* outlives the loader */
};

struct ew_loader_opts {
    const struct ew_dataset *data; /* borrowed until close */
    enum ew_split split;
    const int64_t *subset; /* only these samples of the split, copied; NULL: all */
    int64_t n_subset;
    int64_t batch;
    int64_t slice_first, slice; /* of each batch only these samples; slice 0: all */
    int64_t workers;            /* threads; 0: inline, in ew_loader_next */
    struct ew_pool *pool; /* whose threads share inline loading, borrowed until close; NULL: none */
    int64_t prefetch;     /* batches kept ready per worker; 0: 2 */
    int64_t hold;         /* batches that the caller holds at a time; 0: 1 */
    uint64_t seed;
    bool shuffle;
    bool drop_last;  /* leave out a last batch that is not full; slices need it */
    int64_t h, w, c; /* of the images; 0: the data set's (fails where they differ) */
    int64_t frames;  /* that lie in h; 0: it is an image */
    struct ew_preprocess prep;
    struct ew_augment augment; /* all zero: none */
    enum ew_on_bad on_bad;
    bool refill; /* EW_ON_BAD_SKIP: another sample, drawn by (seed, epoch, index), takes the place
                    of a bad one, so that batches stay full; false: the batch gets shorter */
    struct ew_storage storage;      /* emulated medium; all zero: as fast as it comes */
    struct ew_loader_memory memory; /* of images and labels */
};

/* Sets h, w and c to what an input of this shape takes: [N, H, W, C], or [N, T, H, W, C] of clips,
 * whose frames lie one below the other. */
void ew_loader_fit(struct ew_loader_opts *o, const struct ew_shape *input);

/* Sample i of `count` that are spread over `all`: one of each of `count` equal parts, at a place in
 * it that i fixes.  Every kth one would be of few classes where those take turns. */
int64_t ew_spread_sample(int64_t i, int64_t count, int64_t all);

/* Leaves `count` samples of the split, spread evenly over it; 0, or more than there are: all.
 * *subset, which the options then point to, is for free(); NULL: all. */
ew_err ew_loader_spread(struct ew_loader_opts *o, int64_t count, int64_t **subset);

struct ew_batch {
    const float *images;   /* [n, h, w, c] */
    const int64_t *labels; /* [n] */
    const int64_t *index;  /* [n]: numbers of the samples in their split */
    int64_t n;             /* at most opts.batch; 0 where all of its samples were bad */
    int64_t epoch, number; /* number: from 0 in its epoch */
    int64_t bad;           /* samples that were skipped */
    int64_t fetch_ns, decode_ns, augment_ns; /* spent on making it, by whichever thread */
    int64_t stall_ns; /* that ew_loader_next kept the caller waiting for it */
    int64_t bytes_read, ops_read;
};

/* Sums since open. */
struct ew_loader_counts {
    int64_t batches, samples, bad;
    int64_t fetch_ns, decode_ns, augment_ns, stall_ns;
    int64_t bytes_read, ops_read;
    int64_t emulated_ns; /* waited for the emulated medium */
};

struct ew_loader;

ew_err ew_loader_open(const struct ew_loader_opts *o, struct ew_loader **out);
void ew_loader_close(struct ew_loader *l); /* NULL is fine; also in the middle of an epoch */

/* Where the medium is emulated nothing counts as cached any more.  Between epochs; NULL is fine. */
void ew_loader_forget(struct ew_loader *l);

/* Begins an epoch at batch `first`: what comes then is what came then when the epoch was read from
 * its beginning.  May be called at any time; a batch still held is released. */
ew_err ew_loader_start(struct ew_loader *l, int64_t epoch, int64_t first);

/* The next batch, in order; *out = NULL after the last one.  Fails on a bad sample unless they are
 * skipped; the message names it. */
ew_err ew_loader_next(struct ew_loader *l, const struct ew_batch **out);

/* Gives the batch back to be filled again: the oldest of those that are held. */
void ew_loader_release(struct ew_loader *l, const struct ew_batch *b);

int64_t ew_loader_batches(const struct ew_loader *l); /* in an epoch */
int64_t ew_loader_samples(const struct ew_loader *l); /* in an epoch, dropped ones left out */
struct ew_loader_counts ew_loader_counts(const struct ew_loader *l);

/* Bad samples so far, each once, as "train sample 17: reason"; at most the first 100 are kept. */
int ew_loader_bad_count(struct ew_loader *l);
const char *ew_loader_bad_text(struct ew_loader *l, int i);

#endif
