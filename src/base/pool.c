/* SPDX-License-Identifier: Apache-2.0 */
/* The thread pool, with work stealing.
 *
 * Each thread owns a range of the loop and claims a part of its remainder at a time; a thread that
 * has finished claims from others.  So a thread that is not scheduled delays nobody: the caller
 * works too.
 *
 * `epoch` is odd while a loop is open.  The caller writes the loop, opens it, works until nothing
 * is left to claim, closes it and waits for the threads still inside (`active`).  A thread
 * increments `active` and then reads `epoch`; the caller closes and then reads `active`.  With
 * sequential consistency at least one of them sees the other: a late thread leaves without touching
 * the loop, which the caller may be rewriting.
 *
 * Both sides spin for a while, since the next loop of a plan usually follows within microseconds,
 * and then block.  A thread that finds itself on the caller's CPU yields instead, since it would
 * delay what it waits for.  The flags `asleep` and `waiting` save the lock and the system call
 * while nobody blocks, by the same protocol: the sleeper writes its flag and then reads the
 * counter, the waker the other way round. */
#include "base/pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/cpu_quota.h"
#include "base/flush.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/process.h"

#define MAX_THREADS 1024
#define SPIN_NS     300000 /* longer than a small layer */

struct worker {
    struct ew_pool *pool;
    pthread_t thread;
    int index;
    /* its range; `end` is written by the caller while no loop is open */
    _Alignas(EW_ALIGN) atomic_int_least64_t next;
    int64_t end;
};

struct ew_pool {
    int threads;
    unsigned forks; /* fork count of the process that has the threads; a forked child has only the
                     * caller */
    bool spin; /* false if threads outnumber CPUs, where spinning delays the thread that is waited
                * for */

    /* the loop: written by the caller before it opens, read by threads inside */
    ew_pool_fn *fn;
    void *ctx;
    bool quit;

    atomic_flag busy;
    _Alignas(EW_ALIGN) atomic_uint epoch;
    atomic_int cpu; /* the caller's CPU at its last wake-up; -1: none yet */
    _Alignas(EW_ALIGN)
        atomic_int active; /* threads inside the loop or checking whether it is open */
    atomic_bool waiting;   /* the caller blocks or is about to */
    _Alignas(EW_ALIGN) atomic_bool asleep; /* some thread blocks or is about to */

    pthread_mutex_t lock; /* guards nothing but the two waits */
    pthread_cond_t start, done;
    struct worker workers[]; /* [threads]; the first is the caller's */
};

int ew_pool_cpus(void)
{
    cpu_set_t set;
    struct ew_root root;
    int n = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
    if (ew_root_open("/", &root) == EW_OK) {
        const int quota = ew_cpu_quota(&root);
        n = quota < n ? quota : n;
        ew_root_close(&root);
    }
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

/* Start of range r of T, without overflow. */
static int64_t range_start(int64_t n, int r, int threads)
{
    return n / threads * r + ew_min_i64(n % threads, r);
}

/* Claims a quarter of the rest of a range: guided scheduling, with small chunks at the end. */
static bool claim(struct worker *w, int64_t *begin, int64_t *end)
{
    int64_t at = atomic_load_explicit(&w->next, memory_order_relaxed);
    do {
        if (at >= w->end)
            return false;
        *begin = at;
        *end = at + (w->end - at + 3) / 4;
    } while (!atomic_compare_exchange_weak_explicit(&w->next, &at, *end, memory_order_relaxed,
                                                    memory_order_relaxed));
    return true;
}

/* Runs all chunks that thread `index` can claim, its own range first. */
static void work(struct ew_pool *p, int index)
{
    for (int i = 0; i < p->threads; i++) {
        struct worker *owner = &p->workers[(index + i) % p->threads];
        int64_t begin, end;
        while (claim(owner, &begin, &end))
            p->fn(p->ctx, begin, end, index);
    }
}

/* ---- Threads --------------------------------------------------------------------------------- */

/* True if a loop is open that is newer than `seen`, the thread's last one. */
static bool is_new(struct ew_pool *p, unsigned seen)
{
    const unsigned epoch = atomic_load(&p->epoch);
    return (epoch & 1) && epoch != seen;
}

static bool spin_for_loop(struct ew_pool *p, unsigned seen)
{
    const int64_t until = p->spin ? ew_clock_ns() + SPIN_NS : 0;
    while (p->spin && ew_clock_ns() < until) {
        for (int i = 0; i < 32; i++) {
            if (is_new(p, seen))
                return true;
            relax();
        }
        if (sched_getcpu() == atomic_load_explicit(&p->cpu, memory_order_relaxed))
            sched_yield();
    }
    return is_new(p, seen);
}

/* a woken thread spins again: it may have missed the loop, but the next follows soon */
static void wait_for_loop(struct ew_pool *p, unsigned seen)
{
    while (!spin_for_loop(p, seen)) {
        pthread_mutex_lock(&p->lock);
        atomic_store(&p->asleep, true);
        if (!is_new(p, seen))
            pthread_cond_wait(&p->start, &p->lock);
        pthread_mutex_unlock(&p->lock);
    }
}

static void leave(struct ew_pool *p)
{
    if (atomic_fetch_sub(&p->active, 1) != 1 || !atomic_load(&p->waiting))
        return;
    pthread_mutex_lock(&p->lock);
    pthread_cond_signal(&p->done);
    pthread_mutex_unlock(&p->lock);
}

static void *thread_main(void *arg)
{
    (void)ew_locale_enter();
    const struct worker *w = arg;
    struct ew_pool *p = w->pool;
    ew_flush_begin(); /* permanently: the thread belongs to the pool */
    for (unsigned seen = 0;;) {
        wait_for_loop(p, seen);
        atomic_fetch_add(&p->active, 1);
        const unsigned epoch = atomic_load(&p->epoch);
        const bool open = epoch & 1;
        if (open && p->quit)
            return NULL;
        if (open) {
            work(p, w->index);
            seen = epoch;
        }
        leave(p);
    }
}

/* ---- The caller ------------------------------------------------------------------------------ */

static void open_loop(struct ew_pool *p)
{
    atomic_fetch_add(&p->epoch, 1);
    if (!atomic_load(&p->asleep))
        return;
    atomic_store_explicit(&p->cpu, sched_getcpu(), memory_order_relaxed);
    pthread_mutex_lock(&p->lock);
    atomic_store(&p->asleep, false);
    pthread_cond_broadcast(&p->start);
    pthread_mutex_unlock(&p->lock);
}

static void close_loop(struct ew_pool *p)
{
    atomic_fetch_add(&p->epoch, 1);
    const int64_t until = p->spin ? ew_clock_ns() + SPIN_NS : 0;
    while (p->spin && ew_clock_ns() < until)
        for (int i = 0; i < 32; i++) {
            if (atomic_load(&p->active) == 0)
                return;
            relax();
        }
    pthread_mutex_lock(&p->lock);
    atomic_store(&p->waiting, true);
    while (atomic_load(&p->active) != 0)
        pthread_cond_wait(&p->done, &p->lock);
    atomic_store(&p->waiting, false);
    pthread_mutex_unlock(&p->lock);
}

static void run(struct ew_pool *p, int64_t n, ew_pool_fn *fn, void *ctx)
{
    const bool alone = ew_pool_threads(p) == 1 || n == 1 || p->forks != ew_process_forks();
    if (alone || atomic_flag_test_and_set_explicit(&p->busy, memory_order_acquire)) {
        fn(ctx, 0, n, 0);
        return;
    }
    p->fn = fn;
    p->ctx = ctx;
    for (int r = 0; r < p->threads; r++) {
        atomic_store_explicit(&p->workers[r].next, range_start(n, r, p->threads),
                              memory_order_relaxed);
        p->workers[r].end = range_start(n, r + 1, p->threads);
    }
    open_loop(p);
    work(p, 0);
    close_loop(p);
    atomic_flag_clear_explicit(&p->busy, memory_order_release);
}

void ew_pool_run(struct ew_pool *p, int64_t n, ew_pool_fn *fn, void *ctx)
{
    if (n <= 0)
        return;
    const uint64_t mode = ew_flush_begin(); /* like the threads */
    run(p, n, fn, ctx);
    ew_flush_end(mode);
}

/* ---- Life ------------------------------------------------------------------------------------ */

static ew_err start_threads(struct ew_pool *p, int threads)
{
    for (int i = 1; i < threads; i++) {
        struct worker *w = &p->workers[i];
        w->pool = p;
        w->index = i;
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
    p->forks = ew_process_forks();
    p->spin = n <= ew_pool_cpus();
    atomic_init(&p->cpu, -1);
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
    /* a forked child has no threads to join, and the lock may be held forever */
    if (p->forks != ew_process_forks()) {
        free(p);
        return;
    }
    p->quit = true;
    open_loop(p);
    for (int i = 1; i < p->threads; i++)
        pthread_join(p->workers[i].thread, NULL);
    pthread_cond_destroy(&p->done);
    pthread_cond_destroy(&p->start);
    pthread_mutex_destroy(&p->lock);
    free(p);
}
