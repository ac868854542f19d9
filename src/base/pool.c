/* SPDX-License-Identifier: Apache-2.0 */
/* The thread pool.
 *
 * The caller writes the loop, then adds one to `epoch`; each thread does its range and takes one
 * from `pending`.  Both sides spin for a while, since the next loop of a plan mostly follows within
 * microseconds, and then block.  The flags `asleep` and `waiting` spare the lock and the system
 * call while nobody blocks: the sleeper writes its flag and then reads the counter, the waker the
 * other way round, all sequentially consistent, so at least one of them sees the other. */
#include "base/pool.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"

#define MAX_THREADS 1024
#define SPIN_NS     50000 /* longer than a small layer, shorter than anybody notices */

struct worker {
    struct ew_pool *pool;
    pthread_t thread;
    int index;
};

struct ew_pool {
    int threads;
    bool spin; /* not where threads outnumber CPUs: a spinner would hold up the one it waits for */

    /* The loop: written by the caller before epoch, read by threads after it. */
    int64_t n;
    ew_pool_fn *fn;
    void *ctx;
    bool quit;

    atomic_flag busy;
    _Alignas(EW_ALIGN) atomic_uint epoch;
    _Alignas(EW_ALIGN) atomic_int pending;
    atomic_int asleep;   /* threads that block or are about to */
    atomic_bool waiting; /* the caller blocks or is about to */

    pthread_mutex_t lock; /* guards nothing but the two waits */
    pthread_cond_t start, done;
    struct worker workers[]; /* threads - 1; worker 0 is the caller */
};

int ew_pool_cpus(void)
{
    cpu_set_t set;
    const int n = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
    return n > 0 ? n : 1;
}

int ew_pool_threads(const struct ew_pool *p)
{
    return p ? p->threads : 1;
}

static void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Where range r of T begins, without overflow. */
static int64_t range_start(int64_t n, int r, int threads)
{
    return n / threads * r + ew_min_i64(n % threads, r);
}

static void run_range(struct ew_pool *p, int r)
{
    const int64_t begin = range_start(p->n, r, p->threads);
    const int64_t end = range_start(p->n, r + 1, p->threads);
    if (begin < end)
        p->fn(p->ctx, begin, end, r);
}

/* ---- Threads --------------------------------------------------------------------------------- */

static void wait_for_loop(struct ew_pool *p, unsigned seen)
{
    const int64_t until = p->spin ? ew_clock_ns() + SPIN_NS : 0;
    while (p->spin && ew_clock_ns() < until)
        for (int i = 0; i < 32; i++) {
            if (atomic_load_explicit(&p->epoch, memory_order_acquire) != seen)
                return;
            relax();
        }
    pthread_mutex_lock(&p->lock);
    atomic_fetch_add(&p->asleep, 1);
    while (atomic_load(&p->epoch) == seen)
        pthread_cond_wait(&p->start, &p->lock);
    atomic_fetch_sub(&p->asleep, 1);
    pthread_mutex_unlock(&p->lock);
}

static void finish_range(struct ew_pool *p)
{
    if (atomic_fetch_sub(&p->pending, 1) != 1 || !atomic_load(&p->waiting))
        return;
    pthread_mutex_lock(&p->lock);
    pthread_cond_signal(&p->done);
    pthread_mutex_unlock(&p->lock);
}

static void *thread_main(void *arg)
{
    const struct worker *w = arg;
    struct ew_pool *p = w->pool;
    for (unsigned seen = 0;; seen++) {
        wait_for_loop(p, seen);
        if (p->quit)
            return NULL;
        run_range(p, w->index);
        finish_range(p);
    }
}

/* ---- The caller ------------------------------------------------------------------------------ */

static void start_loop(struct ew_pool *p)
{
    atomic_fetch_add(&p->epoch, 1);
    if (atomic_load(&p->asleep) == 0)
        return;
    pthread_mutex_lock(&p->lock);
    pthread_cond_broadcast(&p->start);
    pthread_mutex_unlock(&p->lock);
}

static void wait_for_threads(struct ew_pool *p)
{
    const int64_t until = p->spin ? ew_clock_ns() + SPIN_NS : 0;
    while (p->spin && ew_clock_ns() < until)
        for (int i = 0; i < 32; i++) {
            if (atomic_load_explicit(&p->pending, memory_order_acquire) == 0)
                return;
            relax();
        }
    pthread_mutex_lock(&p->lock);
    atomic_store(&p->waiting, true);
    while (atomic_load(&p->pending) != 0)
        pthread_cond_wait(&p->done, &p->lock);
    atomic_store(&p->waiting, false);
    pthread_mutex_unlock(&p->lock);
}

void ew_pool_run(struct ew_pool *p, int64_t n, ew_pool_fn *fn, void *ctx)
{
    if (n <= 0)
        return;
    const bool alone = ew_pool_threads(p) == 1 || n == 1;
    if (alone || atomic_flag_test_and_set_explicit(&p->busy, memory_order_acquire)) {
        fn(ctx, 0, n, 0);
        return;
    }
    p->n = n;
    p->fn = fn;
    p->ctx = ctx;
    atomic_store_explicit(&p->pending, p->threads - 1, memory_order_relaxed);
    start_loop(p);
    run_range(p, 0);
    wait_for_threads(p);
    atomic_flag_clear_explicit(&p->busy, memory_order_release);
}

/* ---- Life ------------------------------------------------------------------------------------ */

static ew_err start_threads(struct ew_pool *p, int threads)
{
    for (int i = 1; i < threads; i++) {
        struct worker *w = &p->workers[i - 1];
        *w = (struct worker){.pool = p, .index = i};
        const int e = pthread_create(&w->thread, NULL, thread_main, w);
        EW_CHECK(e == 0, EW_ERR_LIMIT, "thread %d of %d: %s", i + 1, threads, strerror(e));
        p->threads = i + 1;
    }
    return EW_OK;
}

ew_err ew_pool_new(int threads, struct ew_pool **out)
{
    EW_CHECK(threads >= 0 && threads <= MAX_THREADS, EW_ERR_ARG,
             "threads: %d is not between 0 and %d", threads, MAX_THREADS);
    const int n = threads ? threads : ew_pool_cpus();
    void *mem;
    EW_TRY(ew_aligned_new(sizeof(struct ew_pool) + (size_t)n * sizeof(struct worker), &mem));
    struct ew_pool *p = mem;
    p->threads = 1;
    p->spin = n <= ew_pool_cpus();
    atomic_flag_clear(&p->busy);
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->start, NULL);
    pthread_cond_init(&p->done, NULL);
    const ew_err err = start_threads(p, n);
    if (err != EW_OK) {
        ew_pool_free(p);
        return err;
    }
    *out = p;
    return EW_OK;
}

void ew_pool_free(struct ew_pool *p)
{
    if (!p)
        return;
    p->quit = true;
    start_loop(p);
    for (int i = 1; i < p->threads; i++)
        pthread_join(p->workers[i - 1].thread, NULL);
    pthread_cond_destroy(&p->done);
    pthread_cond_destroy(&p->start);
    pthread_mutex_destroy(&p->lock);
    free(p);
}
