/* SPDX-License-Identifier: Apache-2.0 */
/* Building batches: fetch, decode, augment, and handling of bad samples. */
#include "data/batch_builder.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "data/streams.h"

#define REFILLS 16 /* replacements tried for a bad sample */

/* Bytes of images decoded per request.  A request costs as much as decoding 2 KB; more pixels than
 * fit the caches would slow augmentation down. */
#define TOGETHER_BYTES ((size_t)64 << 10)

/* ---- Bad samples ----------------------------------------------------------------------------- */

/* Logs the thread's error message, once per sample. */
static void log_bad(struct ew_bad_list *b, int64_t index)
{
    pthread_mutex_lock(&b->lock);
    bool known = b->n == EW_BAD_LOGGED;
    for (int i = 0; i < b->n; i++)
        known = known || b->index[i] == index;
    if (!known)
        b->index[b->n++] = index;
    pthread_mutex_unlock(&b->lock);
    if (!known)
        EW_WARN("skipped: %s", ew_error_message());
}

/* ---- Samples --------------------------------------------------------------------------------- */

static int64_t frames_of(const struct ew_loader_opts *o)
{
    return o->frames ? o->frames : 1;
}

ew_err ew_batch_builder_init(struct ew_batch_builder *f, struct ew_batch_shared *shared)
{
    const struct ew_loader_opts *o = &shared->o;
    const struct ew_image_spec spec = {.h = o->h / frames_of(o),
                                       .w = o->w,
                                       .c = o->c,
                                       .prep = o->prep,
                                       .augment = o->augment,
                                       .seed = o->seed};
    *f = (struct ew_batch_builder){.shared = shared};
    return ew_augmenter_new(&spec, &f->augmenter);
}

void ew_batch_builder_fini(struct ew_batch_builder *f)
{
    ew_augmenter_free(f->augmenter);
    for (int i = 0; i < EW_IMAGE_JOBS; i++)
        ew_sample_fini(&f->samples[i]);
}

/* Augments an image, or each frame of a clip with the same random draws. */
static ew_err augment(struct ew_batch_builder *f, const struct ew_sample *p, int64_t index,
                      float *to)
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

/* Samples in the epoch's order, and the slot position of the first. */
struct span {
    const int64_t *index;
    int64_t n, at;
};

/* Fetches the first sample of the span and those decoded together with it; returns their number. If
 * one of the others fails it is left out, to be the first of the next call. */
static int fetch_some(struct ew_batch_builder *f, const struct span *w, struct ew_batch_slot *s,
                      ew_err *err)
{
    const struct ew_batch_shared *x = f->shared;
    const struct ew_loader_opts *o = &x->o;
    const int64_t most = x->medium || f->alone > 0 ? 1 : ew_min_i64(w->n, EW_IMAGE_JOBS);
    size_t bytes = 0;
    int k = 0;
    for (bool more = true; more && k < most;) {
        struct ew_sample *p = &f->samples[k];
        *err = ew_dataset_fetch(o->data, o->split, w->index[k], p);
        if (*err != EW_OK)
            break;
        if (x->medium)
            s->emulated_ns += ew_medium_wait(x->medium, w->index[k], p);
        p->place = o->augment.time ? ew_augment_place(o->seed, x->epoch, w->index[k]) : 0;
        bytes += p->raw.size;
        more = p->encoded && bytes < TOGETHER_BYTES;
        k++;
    }
    if (k > 0)
        *err = EW_OK;
    return k;
}

/* Decodes and augments the samples into the slot. */
static ew_err finish_some(struct ew_batch_builder *f, const struct span *w, int k,
                          struct ew_batch_slot *s)
{
    const struct ew_loader_opts *o = &f->shared->o;
    for (int i = 0; i < k; i++) {
        EW_TRY(
            augment(f, &f->samples[i], w->index[i], s->images + (w->at + i) * o->h * o->w * o->c));
        s->labels[w->at + i] = f->samples[i].label;
        s->index[w->at + i] = w->index[i];
    }
    return EW_OK;
}

static void count_reads(const struct ew_batch_builder *f, int k, struct ew_batch *b)
{
    for (int i = 0; i < k; i++) {
        b->bytes_read += f->samples[i].bytes_read;
        b->ops_read += f->samples[i].ops_read;
    }
}

/* Processes the first samples of the span: *done of them, 0 if the first is bad.  *now is the
 * current time, updated. */
static ew_err some(struct ew_batch_builder *f, const struct span *w, struct ew_batch_slot *s,
                   int64_t *now, int *done)
{
    const struct ew_loader_opts *o = &f->shared->o;
    struct ew_batch *b = &s->batch;
    ew_err err = EW_OK;
    const int k = fetch_some(f, w, s, &err);
    const int64_t fetched = ew_clock_ns();
    int64_t decoded = fetched;
    if (k > 0 && !f->samples[0].pixels) {
        err = k == 1 ? ew_dataset_decode(o->data, f->samples)
                     : ew_dataset_decode_all(o->data, f->samples, k);
        decoded = ew_clock_ns();
    }
    const bool again = err != EW_OK && k > 1;
    if (err == EW_OK && k > 0)
        err = finish_some(f, w, k, s);
    if (!again)
        count_reads(f, k, b);
    if (err != EW_OK && k == 1)
        err = ew_fail_in(err, "%s: %s sample %lld", ew_dataset_info(o->data)->name,
                         ew_split_name(o->split), (long long)w->index[0]);
    b->fetch_ns += fetched - *now;
    b->decode_ns += decoded - fetched;
    *now = ew_clock_ns();
    b->augment_ns += *now - decoded;
    *done = err == EW_OK ? k : 0;
    f->alone = again ? k : f->alone > 0 ? f->alone - 1 : 0;
    return again ? some(f, w, s, now, done) : err;
}

static bool skips(const struct ew_batch_builder *f, ew_err err)
{
    return ew_sample_is_bad(err) && f->shared->o.on_bad == EW_ON_BAD_SKIP;
}

/* Handles the unreadable sample `index`: records it and, if wanted, puts a replacement in its place
 * (*got). */
static ew_err other(struct ew_batch_builder *f, int64_t index, ew_err err, struct ew_batch_slot *s,
                    int64_t *now, int *got)
{
    struct ew_batch_shared *x = f->shared;
    struct ew_rng r = {.seed = ew_data_seed(x->o.seed),
                       .stream = ew_data_stream(EW_STREAM_REFILL, x->epoch),
                       .index = (uint64_t)index << 8};
    for (int t = 0; skips(f, err); t++) {
        log_bad(&x->bad, index);
        s->batch.bad++;
        *got = 0;
        if (!x->o.refill)
            return EW_OK;
        if (t >= REFILLS)
            return ew_fail_in(EW_ERR_FORMAT, "%d samples in a row could not be read, the last", t);
        index = x->members[ew_rng_next_below(&r, (uint64_t)x->n)];
        err = some(f, &(struct span){&index, 1, s->batch.n}, s, now, got);
    }
    return err;
}

static void begin(const struct ew_batch_shared *x, int64_t number, struct ew_batch_slot *s)
{
    s->batch = (struct ew_batch){.images = s->images,
                                 .labels = s->labels,
                                 .index = s->index,
                                 .epoch = x->epoch,
                                 .number = number};
    s->emulated_ns = 0;
    s->err = EW_OK;
}

void ew_batch_build(struct ew_batch_builder *f, int64_t number, struct ew_batch_slot *s)
{
    const struct ew_batch_shared *x = f->shared;
    const int64_t first = number * x->o.batch + x->o.slice_first,
                  end = ew_min_i64(first + x->o.slice, x->n);
    begin(x, number, s);
    int64_t now = ew_clock_ns();
    for (int64_t i = first; i < end && s->err == EW_OK;) {
        int done = 0;
        s->err = some(f, &(struct span){x->order + i, end - i, s->batch.n}, s, &now, &done);
        i += done ? done : 1;
        if (s->err != EW_OK)
            s->err = other(f, x->order[i - 1], s->err, s, &now, &done);
        s->batch.n += done;
    }
    if (s->err != EW_OK)
        snprintf(s->message, sizeof(s->message), "%s", ew_error_message());
}

/* ---- By several threads ---------------------------------------------------------------------- */

struct sharing {
    struct ew_batch_builder *builders;
    struct ew_batch_slot *s;
    const int64_t *order; /* of the batch */
};

/* Builds samples [first, end) of the batch; times are summed in the builder. */
static void fill_some(void *ctx, int64_t first, int64_t end, int worker)
{
    const struct sharing *p = ctx;
    struct ew_batch_builder *f = &p->builders[worker];
    struct ew_batch_slot mine = {
        .images = p->s->images, .labels = p->s->labels, .index = p->s->index};
    int64_t now = ew_clock_ns();
    for (int64_t i = first; i < end;) {
        int done = 0;
        f->failed =
            some(f, &(struct span){p->order + i, end - i, i}, &mine, &now, &done) != EW_OK ||
            f->failed;
        i += done ? done : 1;
    }
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
        const struct ew_batch *c = &p->builders[i].cost;
        failed = failed || p->builders[i].failed;
        b->fetch_ns += c->fetch_ns;
        b->decode_ns += c->decode_ns;
        b->augment_ns += c->augment_ns;
        b->bytes_read += c->bytes_read;
        b->ops_read += c->ops_read;
    }
    return !failed;
}

/* If a sample is bad, one thread starts over, so that bad samples are reported in order. */
void ew_batch_build_parallel(struct ew_batch_builder *builders, int64_t number,
                             struct ew_batch_slot *s)
{
    const struct ew_batch_shared *x = builders[0].shared;
    const int threads = ew_pool_threads(x->o.pool);
    const int64_t first = number * x->o.batch + x->o.slice_first,
                  n = ew_min_i64(x->o.slice, x->n - first);
    if (threads == 1 || x->medium) {
        ew_batch_build(&builders[0], number, s);
        return;
    }
    struct sharing p = {builders, s, x->order + first};
    begin(x, number, s);
    for (int i = 0; i < threads; i++) {
        builders[i].cost = (struct ew_batch){0};
        builders[i].failed = false;
    }
    ew_pool_run(x->o.pool, n, fill_some, &p);
    s->batch.n = n;
    if (!add_costs(&p, threads))
        ew_batch_build(&builders[0], number, s);
}
