/* SPDX-License-Identifier: Apache-2.0 */
/* The sampler thread. */
#include "device/sampler.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/num.h"
#include "base/process.h"

#define DEFAULT_FRAMES 64

struct ew_sampler {
    struct ew_board *board;
    int64_t interval_ns, start_ns;
    int capacity; /* frames in the ring buffer */
    int64_t *times;
    struct ew_sample_value *values; /* capacity x n_channels */
    struct ew_sample_value *spare;  /* receives frames while the ring is full */

    /* head: written by the thread; tail: by the consumer.  The ring holds head - tail frames. */
    _Atomic uint64_t head, tail;

    pthread_t thread;
    pthread_mutex_t lock; /* guards `stop` */
    pthread_cond_t wake;
    bool stop, joined;
    unsigned forks; /* ew_process_forks() when the thread was started */

    /* Written by the thread only. */
    _Atomic int64_t frames, missed, dropped, cpu_ns, end_ns, read_ns, read_max_ns;
};

/* ---- The thread ------------------------------------------------------------------------------ */

static int64_t thread_cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * EW_NS_PER_S + t.tv_nsec;
}

static void read_frame(struct ew_sampler *s)
{
    const uint64_t head = atomic_load_explicit(&s->head, memory_order_relaxed);
    const uint64_t tail = atomic_load_explicit(&s->tail, memory_order_acquire);
    const bool full = head - tail >= (uint64_t)s->capacity;
    const size_t slot = (size_t)(head % (uint64_t)s->capacity);
    struct ew_sample_value *values =
        full ? s->spare : s->values + slot * (size_t)s->board->n_channels;
    const int64_t begin = ew_clock_ns();
    ew_board_read(s->board, values);
    const int64_t end = ew_clock_ns();
    if (full) {
        atomic_fetch_add_explicit(&s->dropped, 1, memory_order_relaxed);
    } else {
        s->times[slot] = begin + (end - begin) / 2;
        atomic_store_explicit(&s->head, head + 1, memory_order_release);
    }
    atomic_fetch_add_explicit(&s->frames, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&s->read_ns, end - begin, memory_order_relaxed);
    if (end - begin > atomic_load_explicit(&s->read_max_ns, memory_order_relaxed))
        atomic_store_explicit(&s->read_max_ns, end - begin, memory_order_relaxed);
    atomic_store_explicit(&s->cpu_ns, thread_cpu_ns(), memory_order_relaxed);
    atomic_store_explicit(&s->end_ns, end, memory_order_relaxed);
}

/* Waits for the deadline; false: stop. */
static bool wait_until(struct ew_sampler *s, int64_t deadline)
{
    const struct timespec at = {.tv_sec = (time_t)(deadline / EW_NS_PER_S),
                                .tv_nsec = (long)(deadline % EW_NS_PER_S)};
    pthread_mutex_lock(&s->lock);
    int result = 0;
    while (!s->stop && result != ETIMEDOUT)
        result = pthread_cond_timedwait(&s->wake, &s->lock, &at);
    const bool go_on = !s->stop;
    pthread_mutex_unlock(&s->lock);
    return go_on;
}

static void *run(void *arg)
{
    (void)ew_locale_enter();
    struct ew_sampler *s = arg;
    int64_t deadline = s->start_ns;
    do {
        read_frame(s);
        deadline += s->interval_ns;
        const int64_t late = ew_clock_ns() - deadline;
        if (late >= 0) { /* keep the grid of deadlines: missed ones are counted, not repeated */
            const int64_t n = late / s->interval_ns + 1;
            atomic_fetch_add_explicit(&s->missed, n, memory_order_relaxed);
            deadline += n * s->interval_ns;
        }
    } while (wait_until(s, deadline));
    read_frame(s);
    return NULL;
}

/* ---- Life ------------------------------------------------------------------------------------ */

static ew_err allocate(struct ew_sampler *s)
{
    const size_t n = (size_t)s->board->n_channels, frames = (size_t)s->capacity;
    size_t total;
    EW_CHECK(ew_mul_size(frames, n, &total), EW_ERR_LIMIT, "%zu frames of %zu channels", frames, n);
    s->times = calloc(frames, sizeof(*s->times));
    s->values = calloc(total + 1, sizeof(*s->values));
    s->spare = calloc(n + 1, sizeof(*s->spare));
    EW_CHECK(s->times && s->values && s->spare, EW_ERR_MEMORY, "no memory for %zu frames", frames);
    return EW_OK;
}

static ew_err start_thread(struct ew_sampler *s)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&s->wake, &attr);
    pthread_condattr_destroy(&attr);
    pthread_mutex_init(&s->lock, NULL);
    /* Blocks all signals in the thread; others handle them. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int failed = pthread_create(&s->thread, NULL, run, s);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    s->joined = failed != 0;
    EW_CHECK(!failed, EW_ERR_IO, "no thread for the sampler: %s", strerror(failed));
    return EW_OK;
}

ew_err ew_sampler_start(struct ew_board *board, int64_t interval_ns, int frames,
                        struct ew_sampler **out)
{
    EW_CHECK(interval_ns >= EW_NS_PER_S / 10000, EW_ERR_ARG, "a sampling interval of %lld ns",
             (long long)interval_ns);
    struct ew_sampler *s = calloc(1, sizeof(*s));
    EW_CHECK(s, EW_ERR_MEMORY, "no memory for the sampler");
    s->board = board;
    s->interval_ns = interval_ns;
    s->capacity = frames > 0 ? frames : DEFAULT_FRAMES;
    s->start_ns = ew_clock_ns();
    s->forks = ew_process_forks();
    s->joined = true; /* until the thread is created */
    ew_err err = allocate(s);
    if (err == EW_OK)
        err = start_thread(s);
    if (err != EW_OK) {
        ew_sampler_free(s);
        return err;
    }
    *out = s;
    return EW_OK;
}

bool ew_sampler_next(struct ew_sampler *s, int64_t *t_ns, struct ew_sample_value *values)
{
    const uint64_t tail = atomic_load_explicit(&s->tail, memory_order_relaxed);
    if (tail == atomic_load_explicit(&s->head, memory_order_acquire))
        return false;
    const size_t slot = (size_t)(tail % (uint64_t)s->capacity);
    const size_t n = (size_t)s->board->n_channels;
    *t_ns = s->times[slot];
    memcpy(values, s->values + slot * n, n * sizeof(*values));
    atomic_store_explicit(&s->tail, tail + 1, memory_order_release);
    return true;
}

void ew_sampler_stop(struct ew_sampler *s)
{
    if (s->joined || s->forks != ew_process_forks()) /* a forked child has no thread */
        return;
    pthread_mutex_lock(&s->lock);
    s->stop = true;
    pthread_cond_signal(&s->wake);
    pthread_mutex_unlock(&s->lock);
    pthread_join(s->thread, NULL);
    s->joined = true;
    pthread_cond_destroy(&s->wake);
    pthread_mutex_destroy(&s->lock);
}

struct ew_sampler_stats ew_sampler_stats(const struct ew_sampler *s)
{
    const double ns = 1e-9;
    const int64_t frames = atomic_load(&s->frames);
    return (struct ew_sampler_stats){
        .frames = frames,
        .missed = atomic_load(&s->missed),
        .dropped = atomic_load(&s->dropped),
        .cpu_s = (double)atomic_load(&s->cpu_ns) * ns,
        .wall_s = (double)(atomic_load(&s->end_ns) - s->start_ns) * ns,
        .read_mean_s = frames ? (double)atomic_load(&s->read_ns) * ns / (double)frames : 0,
        .read_max_s = (double)atomic_load(&s->read_max_ns) * ns,
    };
}

void ew_sampler_free(struct ew_sampler *s)
{
    if (!s)
        return;
    ew_sampler_stop(s);
    free(s->times);
    free(s->values);
    free(s->spare);
    free(s);
}
