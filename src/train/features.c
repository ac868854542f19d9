/* SPDX-License-Identifier: Apache-2.0 */
/* Features of frozen layers, computed once. */
#include "train/features.h"

#include <stdlib.h>
#include <string.h>

#include "base/progress.h"
#include "base/rng.h"

#define ORDER_STREAM 0x66656174 /* "feat", and the epoch above it */

static ew_err allocate(const struct ew_learner *l, size_t limit, struct ew_features *f)
{
    size_t all = 0;
    bool fits = true;
    f->n = l->n_features;
    for (int i = 0; i < f->n; i++) {
        f->bytes[i] = ew_tensor_bytes(ew_plan_output(l->features, i)) / (size_t)l->batch;
        size_t rows;
        fits &= ew_mul_size(f->bytes[i], (size_t)f->count, &rows) &&
                !__builtin_add_overflow(all, rows, &all);
    }
    EW_CHECK(fits && all <= limit, EW_ERR_LIMIT,
             "features of %lld samples take %.1f MB, more than the %.1f MB that are there; train "
             "without --cache-features, or freeze more",
             (long long)f->count, (double)all / 1e6, (double)limit / 1e6);
    for (int i = 0; i < f->n; i++) {
        void *rows;
        EW_TRY(ew_aligned_new(f->bytes[i] * (size_t)f->count, &rows));
        f->rows[i] = rows;
        EW_TRY(ew_aligned_new(f->bytes[i] * (size_t)f->batch_size, &f->batch[i]));
    }
    f->labels = malloc((size_t)f->count * sizeof(*f->labels));
    f->order = malloc((size_t)f->count * sizeof(*f->order));
    f->batch_labels = malloc((size_t)f->batch_size * sizeof(*f->batch_labels));
    EW_CHECK(f->labels && f->order && f->batch_labels, EW_ERR_MEMORY,
             "no memory for the labels of %lld samples", (long long)f->count);
    return EW_OK;
}

static ew_err fill(struct ew_learner *l, struct ew_loader *loader, struct ew_progress *bar,
                   struct ew_features *f)
{
    int64_t at = 0;
    EW_TRY(ew_loader_start(loader, 0, 0));
    for (;;) {
        const struct ew_batch *b;
        const void *features[EW_LEARNER_INPUTS];
        EW_TRY(ew_loader_next(loader, &b));
        if (!b)
            break;
        EW_TRY(ew_learner_features(l, b->images, features));
        for (int i = 0; i < f->n; i++)
            memcpy(f->rows[i] + (size_t)at * f->bytes[i], features[i], (size_t)b->n * f->bytes[i]);
        memcpy(f->labels + at, b->labels, (size_t)b->n * sizeof(*f->labels));
        at += b->n;
        ew_loader_release(loader, b);
        ew_progress_update(bar, at);
    }
    f->count = at; /* without unreadable samples */
    return EW_OK;
}

ew_err ew_features_make(struct ew_learner *l, const struct ew_loader_opts *loader, size_t limit,
                        FILE *talk, struct ew_features *out)
{
    struct ew_loader *source;
    struct ew_progress bar;
    *out = (struct ew_features){
        .batch_size = l->batch, .seed = loader->seed, .shuffle = loader->shuffle};
    EW_CHECK(l->features, EW_ERR_USAGE,
             "--cache-features: no layer is frozen before the first that is trained");
    struct ew_loader_opts o = *loader;
    o.shuffle = o.drop_last = o.refill = false;
    o.batch = l->batch;
    EW_TRY(ew_loader_open(&o, &source));
    out->count = ew_loader_samples(source);
    ew_err e = allocate(l, limit, out);
    ew_progress_begin(&bar, talk, "frozen features", out->count);
    if (e == EW_OK)
        e = fill(l, source, &bar, out);
    ew_progress_end(&bar);
    ew_loader_close(source);
    if (e != EW_OK)
        ew_features_fini(out);
    else
        ew_features_start(out, 0);
    return e;
}

void ew_features_fini(struct ew_features *f)
{
    for (int i = 0; i < f->n; i++) {
        free(f->rows[i]);
        free(f->batch[i]);
    }
    free(f->labels);
    free(f->order);
    free(f->batch_labels);
    *f = (struct ew_features){0};
}

size_t ew_features_bytes(const struct ew_features *f)
{
    size_t bytes = 0;
    for (int i = 0; i < f->n; i++)
        bytes += f->bytes[i] * (size_t)(f->count + f->batch_size);
    return bytes;
}

void ew_features_start(struct ew_features *f, int64_t epoch)
{
    for (int64_t i = 0; i < f->count; i++)
        f->order[i] = i;
    struct ew_rng r = {.seed = f->seed, .stream = ORDER_STREAM + ((uint64_t)epoch << 32)};
    if (f->shuffle)
        ew_rng_shuffle(&r, f->order, (size_t)f->count);
}

void ew_features_gather(struct ew_features *f, int64_t number, int64_t *n)
{
    const int64_t first = number * f->batch_size;
    *n = first < f->count ? ew_min_i64(f->batch_size, f->count - first) : 0;
    for (int64_t i = 0; i < *n; i++) {
        const size_t row = (size_t)f->order[first + i];
        for (int k = 0; k < f->n; k++)
            memcpy((char *)f->batch[k] + (size_t)i * f->bytes[k], f->rows[k] + row * f->bytes[k],
                   f->bytes[k]);
        f->batch_labels[i] = f->labels[row];
    }
}
