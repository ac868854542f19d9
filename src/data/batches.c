/* SPDX-License-Identifier: Apache-2.0 */
/* The public interface to data sets and batches (edgewise_data.h), on top of data/loader.h. */
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/sized.h"
#include "data/loader.h"
#include "edgewise_data.h"

#define USUAL_BATCH 32

EW_API ew_err ew_dataset_facts(const struct ew_dataset *d, struct ew_dataset_facts *out)
{
    EW_C_LOCALE;
    EW_NEED(d);
    EW_NEED(out);
    const struct ew_dataset_info *i = ew_dataset_info(d);
    EW_TRY(ew_sized_check(out));
    const struct ew_dataset_facts f = {.name = i->name,
                                       .path = i->path,
                                       .format = i->format,
                                       .classes = i->classes,
                                       .height = i->h,
                                       .width = i->w,
                                       .channels = i->c,
                                       .frames = i->frames,
                                       .train = i->count[EW_SPLIT_TRAIN],
                                       .test = i->count[EW_SPLIT_TEST]};
    ew_sized_export(&f, sizeof(f), out);
    return EW_OK;
}

struct ew_batches {
    struct ew_loader *loader;
    const struct ew_batch *held; /* NULL: none */
    int64_t h, w, c;
};

static struct ew_preprocess preprocess(const struct ew_batches_opts *o)
{
    struct ew_preprocess p = {.normalised = true};
    _Static_assert(sizeof(p.mean) == sizeof(o->mean), "channels");
    memcpy(p.mean, o->mean, sizeof(p.mean));
    memcpy(p.std, o->std, sizeof(p.std));
    return p;
}

EW_API ew_err ew_batches_open(const struct ew_dataset *d, const struct ew_batches_opts *opts,
                              struct ew_batches **out)
{
    EW_C_LOCALE;
    EW_NEED(out);
    *out = NULL;
    EW_NEED(d);
    struct ew_batches_opts o;
    const struct ew_dataset_info *i = ew_dataset_info(d);
    EW_TRY(ew_sized_import(opts, &o, sizeof(o)));
    EW_CHECK(o.batch >= 0 && o.workers >= 0 && o.height >= 0 && o.width >= 0, EW_ERR_ARG,
             "batch %lld, workers %lld, %lld x %lld pixels: negative", (long long)o.batch,
             (long long)o.workers, (long long)o.height, (long long)o.width);
    struct ew_batches *b = calloc(1, sizeof(*b));
    EW_CHECK(b, EW_ERR_MEMORY, "no memory for batches");
    b->h = o.height ? o.height : i->h;
    b->w = o.width ? o.width : i->w;
    b->c = i->c;
    const struct ew_loader_opts l = {.data = d,
                                     .split = o.test ? EW_SPLIT_TEST : EW_SPLIT_TRAIN,
                                     .batch = o.batch ? o.batch : USUAL_BATCH,
                                     .workers = o.workers,
                                     .seed = o.seed,
                                     .shuffle = o.shuffle != 0,
                                     .h = b->h,
                                     .w = b->w,
                                     .c = b->c,
                                     .frames = i->frames,
                                     .prep = preprocess(&o)};
    const ew_err e = ew_loader_open(&l, &b->loader);
    if (e != EW_OK)
        ew_batches_close(b);
    else
        *out = b;
    return e;
}

EW_API void ew_batches_close(struct ew_batches *b)
{
    if (!b)
        return;
    ew_loader_close(b->loader);
    free(b);
}

EW_API ew_err ew_batches_start(struct ew_batches *b, int64_t epoch)
{
    EW_NEED(b);
    b->held = NULL;
    return ew_loader_start(b->loader, epoch, 0);
}

EW_API ew_err ew_batches_next(struct ew_batches *b, struct ew_batch_view *out)
{
    EW_NEED(b);
    EW_NEED(out);
    *out = (struct ew_batch_view){.height = b->h, .width = b->w, .channels = b->c};
    if (b->held)
        ew_loader_release(b->loader, b->held);
    b->held = NULL;
    EW_TRY(ew_loader_next(b->loader, &b->held));
    if (!b->held)
        return EW_OK;
    out->images = b->held->images;
    out->labels = b->held->labels;
    out->index = b->held->index;
    out->n = b->held->n;
    return EW_OK;
}
