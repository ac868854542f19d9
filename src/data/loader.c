/* SPDX-License-Identifier: Apache-2.0 */
/* The loader: a ring buffer of batches between workers and caller.
 *
 * Batch b of an epoch is in slot b % slots.  Workers take batch numbers in order, once the slot's
 * previous batch has been released; the caller takes batches in order, each when its slot is ready.
 * A batch's contents depend on its number alone (batch_builder.c), so scheduling has no effect on
 * results.
 */
#include "data/loader.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/process.h"
#include "data/batch_builder.h"
#include "data/streams.h"

#define MAX_WORKERS 256
#define MAX_SIDE    (1 << 20) /* so that a product of three is a size */

struct worker {
    struct ew_loader *loader;
    struct ew_batch_builder *builder;
    pthread_t thread;
    bool running;
};

struct ew_loader {
    struct ew_batch_shared shared; /* order and epoch change only while no worker is busy */
    int64_t *members;
    int64_t batches; /* in an epoch */
    struct ew_batch_slot *slots;
    int64_t n_slots;
    struct worker *workers;            /* o.workers */
    struct ew_batch_builder *builders; /* one per worker; inline, one per thread of o.pool */
    int64_t n_builders;
    struct ew_loader_counts counts;
    int64_t want;   /* next batch of the caller */
    int64_t held;   /* number of batches before it that the caller holds */
    unsigned forks; /* fork count of the process that has the workers */

    pthread_mutex_t lock; /* guards all below, and the slots' `ready` */
    pthread_cond_t work, done;
    int64_t next;     /* next batch to make */
    int64_t released; /* batches below this may be overwritten */
    int busy;
    bool quit;
};

/* ---- Workers --------------------------------------------------------------------------------- */

static struct ew_batch_slot *slot_of(struct ew_loader *l, int64_t number)
{
    return &l->slots[number % l->n_slots];
}

/* With the lock held. */
static bool may_take(const struct ew_loader *l)
{
    return l->next < l->batches && l->next < l->released + l->n_slots;
}

static void *work(void *arg)
{
    (void)ew_locale_enter();
    struct worker *w = arg;
    struct ew_loader *l = w->loader;
    pthread_mutex_lock(&l->lock);
    for (;;) {
        while (!l->quit && !may_take(l))
            pthread_cond_wait(&l->work, &l->lock);
        if (l->quit)
            break;
        const int64_t number = l->next++;
        struct ew_batch_slot *s = slot_of(l, number);
        l->busy++;
        pthread_mutex_unlock(&l->lock);
        ew_batch_build(w->builder, number, s);
        pthread_mutex_lock(&l->lock);
        s->ready = true;
        l->busy--;
        pthread_cond_signal(&l->done);
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

static ew_err new_builders(struct ew_loader *l)
{
    const struct ew_loader_opts *o = &l->shared.o;
    const int64_t n = o->workers ? o->workers : ew_pool_threads(o->pool);
    l->builders = calloc((size_t)n, sizeof(*l->builders));
    EW_CHECK(l->builders, EW_ERR_MEMORY, "no memory for %lld workers", (long long)n);
    for (; l->n_builders < n; l->n_builders++)
        EW_TRY(ew_batch_builder_init(&l->builders[l->n_builders], &l->shared));
    return EW_OK;
}

static ew_err start_workers(struct ew_loader *l)
{
    const int64_t n = l->shared.o.workers;
    EW_TRY(new_builders(l));
    l->workers = calloc((size_t)n + 1, sizeof(*l->workers));
    EW_CHECK(l->workers, EW_ERR_MEMORY, "no memory for %lld workers", (long long)n);
    for (int64_t i = 0; i < n; i++) {
        struct worker *w = &l->workers[i];
        w->loader = l;
        w->builder = &l->builders[i];
        const int failed = pthread_create(&w->thread, NULL, work, w);
        EW_CHECK(!failed, EW_ERR_MEMORY, "worker %lld of %lld: %s", (long long)i, (long long)n,
                 strerror(failed));
        w->running = true;
    }
    return EW_OK;
}

/* True in a forked child, which has no workers, and where the lock may be held forever. */
static bool lost_workers(const struct ew_loader *l)
{
    return l->shared.o.workers > 0 && l->forks != ew_process_forks();
}

static ew_err check_workers(const struct ew_loader *l)
{
    EW_CHECK(!lost_workers(l), EW_ERR_ARG,
             "%s: its loader was opened before a fork, and its workers stayed there",
             ew_dataset_info(l->shared.o.data)->name);
    return EW_OK;
}

/* Cancels the rest of the epoch and waits until no worker is busy. */
static void calm(struct ew_loader *l)
{
    pthread_mutex_lock(&l->lock);
    l->next = l->batches;
    while (l->busy > 0)
        pthread_cond_wait(&l->done, &l->lock);
    pthread_mutex_unlock(&l->lock);
}

/* ---- Opening --------------------------------------------------------------------------------- */

static ew_err resolve(const struct ew_loader_opts *from, struct ew_loader_opts *o)
{
    *o = *from;
    const struct ew_dataset_info *d = ew_dataset_info(o->data);
    o->h = o->h ? o->h : d->h;
    o->w = o->w ? o->w : d->w;
    o->c = o->c ? o->c : d->c;
    o->prefetch = o->prefetch ? o->prefetch : 2;
    o->hold = ew_max_i64(o->hold, 1);
    EW_CHECK(o->h > 0 && o->w > 0, EW_ERR_SHAPE,
             "%s: its images differ in size, so a size must be given", d->name);
    EW_CHECK(o->h <= MAX_SIDE && o->w <= MAX_SIDE && o->c <= MAX_SIDE, EW_ERR_LIMIT,
             "images of %lldx%lldx%lld are too large", (long long)o->h, (long long)o->w,
             (long long)o->c);
    EW_CHECK(o->batch > 0 && o->batch <= 1 << 20, EW_ERR_ARG, "a batch of %lld",
             (long long)o->batch);
    if (!o->slice)
        o->slice = o->batch - o->slice_first;
    EW_CHECK(o->slice_first >= 0 && o->slice > 0 && o->slice_first + o->slice <= o->batch &&
                 (o->slice == o->batch || o->drop_last),
             EW_ERR_ARG, "samples %lld to %lld of a batch of %lld", (long long)o->slice_first,
             (long long)(o->slice_first + o->slice), (long long)o->batch);
    EW_CHECK(o->workers >= 0 && o->workers <= MAX_WORKERS, EW_ERR_ARG,
             "%lld workers, there may be %d", (long long)o->workers, MAX_WORKERS);
    EW_CHECK(o->prefetch > 0 && o->prefetch <= 1 << 12, EW_ERR_ARG, "%lld batches prefetched",
             (long long)o->prefetch);
    EW_CHECK(o->split < EW_SPLIT_COUNT && d->count[o->split] > 0, EW_ERR_NOT_FOUND,
             "%s: there are no %s samples", d->name,
             o->split < EW_SPLIT_COUNT ? ew_split_name(o->split) : "such");
    return EW_OK;
}

/* Lists the samples of an epoch, unshuffled. */
static ew_err list_members(struct ew_loader *l)
{
    const struct ew_loader_opts *o = &l->shared.o;
    const int64_t all = ew_dataset_info(o->data)->count[o->split];
    const int64_t n = o->subset ? o->n_subset : all;
    l->members = calloc((size_t)ew_max_i64(n, 1), sizeof(*l->members));
    l->shared.order = calloc((size_t)ew_max_i64(n, 1), sizeof(*l->shared.order));
    EW_CHECK(l->members && l->shared.order, EW_ERR_MEMORY,
             "no memory for the order of %lld samples", (long long)n);
    for (int64_t i = 0; i < n; i++) {
        l->members[i] = o->subset ? o->subset[i] : i;
        EW_CHECK(l->members[i] >= 0 && l->members[i] < all, EW_ERR_ARG,
                 "sample %lld of %lld is asked for", (long long)l->members[i], (long long)all);
    }
    l->shared.members = l->members;
    l->shared.n = n;
    l->batches = o->drop_last ? n / o->batch : (n + o->batch - 1) / o->batch;
    return EW_OK;
}

/* Allocates images and labels with the caller's allocator. */
static ew_err take_memory(const struct ew_loader *l, size_t bytes, void **out)
{
    const struct ew_loader_memory *m = &l->shared.o.memory;
    return m->take ? m->take(m->owner, bytes, out) : ew_aligned_new(bytes, out);
}

static void give_memory(const struct ew_loader *l, void *p)
{
    const struct ew_loader_memory *m = &l->shared.o.memory;
    if (m->take && p)
        m->give(m->owner, p);
    else
        free(p);
}

static ew_err new_slots(struct ew_loader *l)
{
    const struct ew_loader_opts *o = &l->shared.o;
    /* prefetched batches and those that the caller holds */
    const int64_t most = ew_max_i64(o->workers * o->prefetch, 0) + o->hold;
    l->n_slots = ew_min_i64(most, ew_max_i64(l->batches, 1) + o->hold);
    l->slots = calloc((size_t)l->n_slots, sizeof(*l->slots));
    EW_CHECK(l->slots, EW_ERR_MEMORY, "no memory for %lld batches", (long long)l->n_slots);
    const size_t n = (size_t)o->slice;
    size_t bytes;
    EW_CHECK(ew_mul_size(n, (size_t)(o->h * o->w * o->c) * sizeof(float), &bytes), EW_ERR_LIMIT,
             "a batch of %zu images of %lldx%lldx%lld is too large", n, (long long)o->h,
             (long long)o->w, (long long)o->c);
    for (int64_t i = 0; i < l->n_slots; i++) {
        void *images = NULL, *labels = NULL, *index = NULL;
        EW_TRY(take_memory(l, bytes, &images));
        l->slots[i].images = images;
        EW_TRY(take_memory(l, n * sizeof(int64_t), &labels));
        l->slots[i].labels = labels;
        EW_TRY(ew_aligned_new(n * sizeof(int64_t), &index));
        l->slots[i].index = index;
    }
    return EW_OK;
}

static ew_err open_parts(struct ew_loader *l, const struct ew_loader_opts *o)
{
    EW_TRY(resolve(o, &l->shared.o));
    EW_TRY(list_members(l));
    l->shared.o.subset = NULL; /* copied */
    EW_TRY(new_slots(l));
    const struct ew_dataset_info *d = ew_dataset_info(o->data);
    if (o->storage.mb_per_s > 0)
        EW_TRY(ew_medium_new(&o->storage, d->count[o->split], &l->shared.medium));
    l->next = l->batches; /* nothing to do before an epoch is started */
    l->want = l->batches;
    return start_workers(l);
}

int64_t ew_subsample_index(int64_t i, int64_t count, int64_t all)
{
    const int64_t first = i * all / count, next = (i + 1) * all / count;
    const uint64_t drawn = ew_rng_u64(0, ew_data_stream(EW_STREAM_SPREAD, 0), (uint64_t)i);
    return first + (int64_t)(drawn % (uint64_t)(next - first));
}

ew_err ew_loader_subsample(struct ew_loader_opts *o, int64_t count, int64_t **subset)
{
    const int64_t all = ew_dataset_info(o->data)->count[o->split];
    *subset = NULL;
    if (count == 0 || count >= all)
        return EW_OK;
    *subset = malloc((size_t)count * sizeof(**subset));
    EW_CHECK(*subset, EW_ERR_MEMORY, "no memory for %lld samples", (long long)count);
    for (int64_t i = 0; i < count; i++)
        (*subset)[i] = ew_subsample_index(i, count, all);
    o->subset = *subset;
    o->n_subset = count;
    return EW_OK;
}

void ew_loader_fit(struct ew_loader_opts *o, const struct ew_shape *input)
{
    const int64_t *const d = input->dim + (input->rank == 5);
    o->frames = input->rank == 5 ? input->dim[1] : 0;
    o->h = d[1] * (o->frames ? o->frames : 1);
    o->w = d[2];
    o->c = d[3];
}

ew_err ew_loader_open(const struct ew_loader_opts *o, struct ew_loader **out)
{
    EW_CHECK(o->frames || !o->augment.time, EW_ERR_USAGE, "--augment time is for clips");
    struct ew_loader *l = calloc(1, sizeof(*l));
    EW_CHECK(l, EW_ERR_MEMORY, "no memory for a loader");
    l->forks = ew_process_forks();
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->work, NULL);
    pthread_cond_init(&l->done, NULL);
    pthread_mutex_init(&l->shared.bad.lock, NULL);
    const ew_err err = open_parts(l, o);
    if (err != EW_OK) {
        ew_loader_close(l);
        return err;
    }
    *out = l;
    return EW_OK;
}

static void end_workers(struct ew_loader *l)
{
    if (!lost_workers(l)) {
        pthread_mutex_lock(&l->lock);
        l->quit = true;
        pthread_cond_broadcast(&l->work);
        pthread_mutex_unlock(&l->lock);
        for (int64_t i = 0; l->workers && i < l->shared.o.workers; i++)
            if (l->workers[i].running)
                pthread_join(l->workers[i].thread, NULL);
    }
    free(l->workers);
    for (int64_t i = 0; i < l->n_builders; i++)
        ew_batch_builder_fini(&l->builders[i]);
    free(l->builders);
}

void ew_loader_close(struct ew_loader *l)
{
    if (!l)
        return;
    end_workers(l);
    for (int64_t i = 0; l->slots && i < l->n_slots; i++) {
        give_memory(l, l->slots[i].images);
        give_memory(l, l->slots[i].labels);
        free(l->slots[i].index);
    }
    free(l->slots);
    free(l->shared.order);
    free(l->members);
    ew_medium_free(l->shared.medium);
    pthread_mutex_destroy(&l->shared.bad.lock);
    if (!lost_workers(l)) {
        pthread_cond_destroy(&l->done);
        pthread_cond_destroy(&l->work);
        pthread_mutex_destroy(&l->lock);
    }
    free(l);
}

/* ---- An epoch -------------------------------------------------------------------------------- */

void ew_loader_drop_cache(struct ew_loader *l)
{
    if (!l || !l->shared.medium || lost_workers(l))
        return;
    calm(l);
    ew_medium_drop_cache(l->shared.medium);
}

ew_err ew_loader_start(struct ew_loader *l, int64_t epoch, int64_t first)
{
    EW_CHECK(first >= 0 && first <= l->batches, EW_ERR_ARG, "batch %lld of %lld", (long long)first,
             (long long)l->batches);
    EW_TRY(check_workers(l));
    calm(l);
    struct ew_batch_shared *x = &l->shared;
    x->epoch = epoch;
    memcpy(x->order, l->members, (size_t)x->n * sizeof(*x->order));
    if (x->o.shuffle) {
        struct ew_rng r = {.seed = ew_data_seed(x->o.seed),
                           .stream = ew_data_stream(EW_STREAM_ORDER, epoch)};
        ew_rng_shuffle(&r, x->order, (size_t)x->n);
    }
    l->want = first;
    l->held = 0;
    pthread_mutex_lock(&l->lock);
    for (int64_t i = 0; i < l->n_slots; i++)
        l->slots[i].ready = false;
    l->released = l->next = first;
    pthread_cond_broadcast(&l->work);
    pthread_mutex_unlock(&l->lock);
    return EW_OK;
}

static void add_up(struct ew_loader_counts *c, const struct ew_batch_slot *s)
{
    const struct ew_batch *b = &s->batch;
    c->batches++;
    c->samples += b->n;
    c->bad += b->bad;
    c->fetch_ns += b->fetch_ns;
    c->decode_ns += b->decode_ns;
    c->augment_ns += b->augment_ns;
    c->stall_ns += b->stall_ns;
    c->bytes_read += b->bytes_read;
    c->ops_read += b->ops_read;
    c->emulated_ns += s->emulated_ns;
}

ew_err ew_loader_next(struct ew_loader *l, const struct ew_batch **out)
{
    *out = NULL;
    EW_CHECK(l->held < l->shared.o.hold, EW_ERR_ARG, "the loader's last batch was not released");
    if (l->want >= l->batches)
        return EW_OK;
    EW_TRY(check_workers(l));
    const int64_t start = ew_clock_ns();
    struct ew_batch_slot *s = slot_of(l, l->want);
    if (l->shared.o.workers == 0) {
        ew_batch_build_parallel(l->builders, l->want, s);
    } else {
        pthread_mutex_lock(&l->lock);
        while (!s->ready)
            pthread_cond_wait(&l->done, &l->lock);
        s->ready = false;
        pthread_mutex_unlock(&l->lock);
    }
    if (s->err != EW_OK) {
        l->want = l->batches; /* ends the epoch */
        calm(l);
        return ew_fail(s->err, "%s", s->message);
    }
    s->batch.stall_ns = ew_clock_ns() - start;
    add_up(&l->counts, s);
    l->want++;
    l->held++;
    *out = &s->batch;
    return EW_OK;
}

void ew_loader_release(struct ew_loader *l, const struct ew_batch *b)
{
    if (!l->held || b->number != l->want - l->held)
        return;
    l->held--;
    if (lost_workers(l))
        return;
    pthread_mutex_lock(&l->lock);
    l->released = l->want - l->held;
    /* several batches later, since waking workers costs as much as a sample or two */
    if (l->next - l->want <= l->n_slots / 2)
        pthread_cond_broadcast(&l->work);
    pthread_mutex_unlock(&l->lock);
}

/* ---- Facts ----------------------------------------------------------------------------------- */

int64_t ew_loader_batches(const struct ew_loader *l)
{
    return l->batches;
}

int64_t ew_loader_samples(const struct ew_loader *l)
{
    return ew_min_i64(l->batches * l->shared.o.batch, l->shared.n);
}

struct ew_loader_counts ew_loader_counts(const struct ew_loader *l)
{
    return l->counts;
}
