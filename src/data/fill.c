/* SPDX-License-Identifier: Apache-2.0 */
/* Filling batches: fetch, decode, augment, and what becomes of a bad sample. */
#include "data/fill.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "data/streams.h"

#define REFILLS 16 /* samples tried in the place of a bad one */

/* ---- Bad samples ----------------------------------------------------------------------------- */

void ew_bad_list_init(struct ew_bad_list *b)
{
    *b = (struct ew_bad_list){0};
    pthread_mutex_init(&b->lock, NULL);
}

void ew_bad_list_fini(struct ew_bad_list *b)
{
    pthread_mutex_destroy(&b->lock);
    for (int i = 0; i < b->n; i++)
        free(b->text[i]);
}

/* Keeps the thread's message, once for each sample, and says it. */
static void keep_bad(struct ew_bad_list *b, int64_t index)
{
    pthread_mutex_lock(&b->lock);
    bool known = b->n == EW_BAD_KEPT;
    for (int i = 0; i < b->n; i++)
        known = known || b->index[i] == index;
    if (!known) {
        b->index[b->n] = index;
        b->text[b->n] = strdup(ew_error_message());
        b->n += b->text[b->n] != NULL;
    }
    pthread_mutex_unlock(&b->lock);
    if (!known)
        EW_WARN("skipped: %s", ew_error_message());
}

/* ---- Samples --------------------------------------------------------------------------------- */

static int64_t frames_of(const struct ew_loader_opts *o)
{
    return o->frames ? o->frames : 1;
}

ew_err ew_filler_init(struct ew_filler *f, struct ew_fill *shared)
{
    const struct ew_loader_opts *o = &shared->o;
    const struct ew_image_spec spec = {.h = o->h / frames_of(o),
                                       .w = o->w,
                                       .c = o->c,
                                       .prep = o->prep,
                                       .augment = o->augment,
                                       .seed = o->seed};
    *f = (struct ew_filler){.shared = shared};
    return ew_augmenter_new(&spec, &f->augmenter);
}

void ew_filler_fini(struct ew_filler *f)
{
    ew_augmenter_free(f->augmenter);
    ew_sample_fini(&f->sample);
}

/* An image; of a clip each frame, with the same draws. */
static ew_err augment(struct ew_filler *f, const struct ew_sample *p, int64_t index, float *to)
{
    const struct ew_loader_opts *o = &f->shared->o;
    const int64_t n = frames_of(o), size = o->h * o->w * o->c / n;
    struct ew_sample frame = *p;
    frame.h = p->h / n;
    for (int64_t i = 0; i < n; i++) {
        frame.pixels = p->pixels + i * frame.h * p->sy;
        EW_TRY(ew_augmenter_run(f->augmenter, &frame, f->shared->epoch, index, to + i * size));
    }
    return EW_OK;
}

/* Puts sample `index` into place `at` of the slot.  *now is the time before and after. */
static ew_err one(struct ew_filler *f, int64_t index, struct ew_batch_slot *s, int64_t at,
                  int64_t *now)
{
    const struct ew_fill *x = f->shared;
    const struct ew_loader_opts *o = &x->o;
    struct ew_sample *p = &f->sample;
    struct ew_batch *b = &s->batch;
    ew_err err = ew_dataset_fetch(o->data, o->split, index, p);
    if (err == EW_OK && x->medium)
        s->emulated_ns += ew_medium_wait(x->medium, index, p);
    const int64_t fetched = ew_clock_ns();
    int64_t decoded = fetched;
    if (err == EW_OK) {
        b->bytes_read += p->bytes_read;
        b->ops_read += p->ops_read;
        p->place = o->augment.time ? ew_augment_place(o->seed, x->epoch, index) : 0;
        if (!p->pixels) {
            err = ew_dataset_decode(o->data, p);
            decoded = ew_clock_ns();
        }
        if (err == EW_OK)
            err = augment(f, p, index, s->images + at * o->h * o->w * o->c);
        if (err != EW_OK)
            err = ew_fail_in(err, "%s: %s sample %lld", ew_dataset_info(o->data)->name,
                             ew_split_name(o->split), (long long)index);
    }
    b->fetch_ns += fetched - *now;
    b->decode_ns += decoded - fetched;
    *now = ew_clock_ns();
    b->augment_ns += *now - decoded;
    s->labels[at] = p->label;
    s->index[at] = index;
    return err;
}

/* Running out of memory is no fault of the sample. */
static bool is_bad(const struct ew_filler *f, ew_err err)
{
    return err != EW_OK && err != EW_ERR_MEMORY && f->shared->o.on_bad == EW_ON_BAD_SKIP;
}

/* One of the samples, where wanted with another in its place.  *got tells whether there is one. */
static ew_err one_or_other(struct ew_filler *f, int64_t index, struct ew_batch_slot *s, bool *got,
                           int64_t *now)
{
    struct ew_fill *x = f->shared;
    struct ew_rng r = {.seed = ew_data_seed(x->o.seed),
                       .stream = ew_data_stream(EW_STREAM_REFILL, x->epoch),
                       .index = (uint64_t)index << 8};
    ew_err err = one(f, index, s, s->batch.n, now);
    for (int t = 0; is_bad(f, err); t++) {
        keep_bad(&x->bad, index);
        s->batch.bad++;
        *got = false;
        if (!x->o.refill)
            return EW_OK;
        EW_CHECK(t < REFILLS, EW_ERR_FORMAT, "%d samples in a row could not be read, the last: %s",
                 t, ew_error_message());
        index = x->members[ew_rng_next_below(&r, (uint64_t)x->n)];
        err = one(f, index, s, s->batch.n, now);
    }
    *got = err == EW_OK;
    return err;
}

static void begin(const struct ew_fill *x, int64_t number, struct ew_batch_slot *s)
{
    s->batch = (struct ew_batch){.images = s->images,
                                 .labels = s->labels,
                                 .index = s->index,
                                 .epoch = x->epoch,
                                 .number = number};
    s->emulated_ns = 0;
    s->err = EW_OK;
}

void ew_filler_run(struct ew_filler *f, int64_t number, struct ew_batch_slot *s)
{
    const struct ew_fill *x = f->shared;
    const int64_t first = number * x->o.batch + x->o.slice_first,
                  end = ew_min_i64(first + x->o.slice, x->n);
    begin(x, number, s);
    int64_t now = ew_clock_ns();
    for (int64_t i = first; i < end && s->err == EW_OK; i++) {
        bool got = false;
        s->err = one_or_other(f, x->order[i], s, &got, &now);
        s->batch.n += got;
    }
    if (s->err != EW_OK)
        snprintf(s->message, sizeof(s->message), "%s", ew_error_message());
}

/* ---- By several threads ---------------------------------------------------------------------- */

struct sharing {
    struct ew_filler *fillers;
    struct ew_batch_slot *s;
    const int64_t *order; /* of the batch */
};

/* Samples [first, end) of the batch, each to its place; what they cost is kept by the filler. */
static void fill_some(void *ctx, int64_t first, int64_t end, int worker)
{
    const struct sharing *p = ctx;
    struct ew_filler *f = &p->fillers[worker];
    struct ew_batch_slot mine = {
        .images = p->s->images, .labels = p->s->labels, .index = p->s->index};
    int64_t now = ew_clock_ns();
    for (int64_t i = first; i < end; i++)
        f->failed = one(f, p->order[i], &mine, i, &now) != EW_OK || f->failed;
    f->cost.fetch_ns += mine.batch.fetch_ns;
    f->cost.decode_ns += mine.batch.decode_ns;
    f->cost.augment_ns += mine.batch.augment_ns;
    f->cost.bytes_read += mine.batch.bytes_read;
    f->cost.ops_read += mine.batch.ops_read;
}

static bool add_costs(const struct sharing *p, int threads)
{
    bool failed = false;
    struct ew_batch *b = &p->s->batch;
    for (int i = 0; i < threads; i++) {
        const struct ew_batch *c = &p->fillers[i].cost;
        failed = failed || p->fillers[i].failed;
        b->fetch_ns += c->fetch_ns;
        b->decode_ns += c->decode_ns;
        b->augment_ns += c->augment_ns;
        b->bytes_read += c->bytes_read;
        b->ops_read += c->ops_read;
    }
    return !failed;
}

/* Where a sample is bad one thread starts over, since what is to be done about it is told in
 * order. */
void ew_fillers_run(struct ew_filler *fillers, int64_t number, struct ew_batch_slot *s)
{
    const struct ew_fill *x = fillers[0].shared;
    const int threads = ew_pool_threads(x->o.pool);
    const int64_t first = number * x->o.batch + x->o.slice_first,
                  n = ew_min_i64(x->o.slice, x->n - first);
    if (threads == 1 || x->medium) {
        ew_filler_run(&fillers[0], number, s);
        return;
    }
    struct sharing p = {fillers, s, x->order + first};
    begin(x, number, s);
    for (int i = 0; i < threads; i++) {
        fillers[i].cost = (struct ew_batch){0};
        fillers[i].failed = false;
    }
    ew_pool_run(x->o.pool, n, fill_some, &p);
    s->batch.n = n;
    if (!add_costs(&p, threads))
        ew_filler_run(&fillers[0], number, s);
}
