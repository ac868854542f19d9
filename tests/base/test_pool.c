/* SPDX-License-Identifier: Apache-2.0 */
/* The thread pool and the bounded queue: every index once, same bits for any number of threads.
 * Run under the thread sanitizer by `./run tsan`. */
#include "base/pool.h"

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/queue.h"
#include "base/rng.h"
#include "ew_test.h"

enum { N = 1000, BLOCK = 64 };

struct marks {
    int threads;
    int64_t n;
    int seen[N];
    _Atomic int worker_busy[64];
    _Atomic int clashes;
};

static void mark(void *ctx, int64_t begin, int64_t end, int worker)
{
    struct marks *m = ctx;
    if (worker < 0 || worker >= m->threads || atomic_exchange(&m->worker_busy[worker], 1))
        atomic_fetch_add(&m->clashes, 1);
    for (int64_t i = begin; i < end; i++)
        m->seen[i]++;
    atomic_store(&m->worker_busy[worker], 0);
}

static void each_index_once(void)
{
    static const int64_t sizes[] = {0, 1, 2, 3, 7, 64, 999, N};
    for (int threads = 1; threads <= 5; threads++) {
        struct ew_pool *p = NULL;
        if (!EW_EXPECT_OK(ew_pool_new(threads, &p)))
            return;
        EW_EXPECT_INT(ew_pool_threads(p), threads);
        for (size_t s = 0; s < EW_COUNT(sizes); s++) {
            struct marks m = {.threads = threads, .n = sizes[s]};
            ew_pool_run(p, sizes[s], mark, &m);
            for (int64_t i = 0; i < N; i++)
                if (m.seen[i] != (i < sizes[s]))
                    EW_FAIL("%d threads, n %lld: index %lld done %d times", threads,
                            (long long)sizes[s], (long long)i, m.seen[i]);
            EW_EXPECT_INT(m.clashes, 0);
        }
        ew_pool_free(p);
    }
}

/* Sums in single precision depend on their order; slots per block fix it. */
struct sum {
    float block[(N + BLOCK - 1) / BLOCK];
};

static void add_blocks(void *ctx, int64_t begin, int64_t end, int worker)
{
    (void)worker;
    struct sum *s = ctx;
    for (int64_t b = begin; b < end; b++) {
        float total = 0;
        for (int64_t i = b * BLOCK; i < ew_min_i64(N, (b + 1) * BLOCK); i++)
            total += (float)ew_rng_normal(1, 0, (uint64_t)i);
        s->block[b] = total;
    }
}

static void same_bits_for_any_threads(void)
{
    float first = 0;
    for (int threads = 1; threads <= 4; threads++) {
        struct ew_pool *p = NULL;
        if (!EW_EXPECT_OK(ew_pool_new(threads, &p)))
            return;
        struct sum s = {{0}};
        ew_pool_run(p, EW_COUNT(s.block), add_blocks, &s);
        float total = 0;
        for (size_t b = 0; b < EW_COUNT(s.block); b++)
            total += s.block[b];
        if (threads == 1)
            first = total;
        EW_EXPECT(memcmp(&total, &first, sizeof(total)) == 0);
        ew_pool_free(p);
    }
}

static void add_one(void *ctx, int64_t begin, int64_t end, int worker)
{
    (void)worker;
    int *counts = ctx;
    for (int64_t i = begin; i < end; i++)
        counts[i]++;
}

/* Many short loops with pauses in which threads go to sleep: a lost wake-up hangs here. */
static void many_loops(void)
{
    struct ew_pool *p = NULL;
    if (!EW_EXPECT_OK(ew_pool_new(2, &p)))
        return;
    int counts[8] = {0};
    const int loops = 3000;
    const int64_t start = ew_clock_ns();
    for (int i = 0; i < loops; i++) {
        ew_pool_run(p, EW_COUNT(counts), add_one, counts);
        if (i % 100 == 0)
            usleep(200);
    }
    printf("%.2f us a loop with 2 threads\n", (double)(ew_clock_ns() - start) / 1e3 / loops);
    for (size_t i = 0; i < EW_COUNT(counts); i++)
        EW_EXPECT_INT(counts[i], loops);
    ew_pool_free(p);
}

struct nest {
    struct ew_pool *pool;
    int counts[4][8];
};

static void inner(void *ctx, int64_t begin, int64_t end, int worker)
{
    (void)worker;
    struct nest *s = ctx;
    for (int64_t i = begin; i < end; i++)
        ew_pool_run(s->pool, EW_COUNT(s->counts[i]), add_one, s->counts[i]);
}

static void loops_within_loops(void)
{
    struct nest s = {0};
    if (!EW_EXPECT_OK(ew_pool_new(3, &s.pool)))
        return;
    ew_pool_run(s.pool, EW_COUNT(s.counts), inner, &s);
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 8; k++)
            EW_EXPECT_INT(s.counts[i][k], 1);
    ew_pool_free(s.pool);
}

/* A thread that is delayed in its first part: the caller must take over the rest of its range. */
struct delay {
    _Atomic int done;
    _Atomic int late;
};

enum { DELAY_N = 64, DELAY_PART = DELAY_N / 2 / 4 };

static void hold_up(void *ctx, int64_t begin, int64_t end, int worker)
{
    struct delay *d = ctx;
    const int64_t until = ew_clock_ns() + 5000000000;
    while (worker == 1 && atomic_load(&d->done) < DELAY_N - DELAY_PART)
        if (ew_clock_ns() > until) {
            atomic_store(&d->late, 1);
            break;
        }
    atomic_fetch_add(&d->done, (int)(end - begin));
}

static void nobody_waits_for_work_not_begun(void)
{
    struct ew_pool *p = NULL;
    if (!EW_EXPECT_OK(ew_pool_new(2, &p)))
        return;
    struct delay d = {0};
    ew_pool_run(p, DELAY_N, hold_up, &d);
    EW_EXPECT_INT(d.done, DELAY_N);
    EW_EXPECT_INT(d.late, 0);
    ew_pool_free(p);
}

static void *run_often(void *arg)
{
    struct nest *s = arg;
    int counts[8] = {0};
    for (int i = 0; i < 200; i++)
        ew_pool_run(s->pool, EW_COUNT(counts), add_one, counts);
    for (int k = 0; k < 8; k++)
        s->counts[0][k] += counts[k];
    return NULL;
}

static void two_callers(void)
{
    struct nest s[2] = {{0}};
    struct ew_pool *p = NULL;
    pthread_t other;
    if (!EW_EXPECT_OK(ew_pool_new(2, &p)))
        return;
    s[0].pool = s[1].pool = p;
    EW_EXPECT_INT(pthread_create(&other, NULL, run_often, &s[1]), 0);
    run_often(&s[0]);
    pthread_join(other, NULL);
    for (int k = 0; k < 8; k++) {
        EW_EXPECT_INT(s[0].counts[0][k], 200);
        EW_EXPECT_INT(s[1].counts[0][k], 200);
    }
    ew_pool_free(p);
}

static void bad_counts(void)
{
    struct ew_pool *p = NULL;
    EW_EXPECT_ERR(ew_pool_new(-1, &p), EW_ERR_ARG, "threads: -1");
    EW_EXPECT_ERR(ew_pool_new(100000, &p), EW_ERR_ARG, "threads: 100000");
    EW_EXPECT_SAME(p, NULL);
    EW_EXPECT_OK(ew_pool_new(0, &p));
    EW_EXPECT_INT(ew_pool_threads(p), ew_pool_cpus());
    ew_pool_free(p);
    ew_pool_free(NULL);
    EW_EXPECT_INT(ew_pool_threads(NULL), 1);
    int counts[4] = {0};
    ew_pool_run(NULL, 4, add_one, counts);
    EW_EXPECT_INT(counts[3], 1);
}

/* ---- Queue ----------------------------------------------------------------------------------- */

enum { ITEMS = 5000 };

static int numbers[ITEMS];

static void *produce(void *arg)
{
    struct ew_queue *q = arg;
    for (int i = 0; i < ITEMS; i++) {
        numbers[i] = i;
        ew_queue_push(q, &numbers[i]);
    }
    ew_queue_close(q);
    return NULL;
}

static void halve_some(void *ctx, int64_t begin, int64_t end, int worker)
{
    volatile float *v = ctx;
    for (int64_t i = begin; i < end; i++)
        v[i] = v[i] * 0.5f;
}

static void denormals_are_zeros(void)
{
    static float v[4096];
    volatile float tiny = 1.2e-38f;
    for (int threads = 1; threads <= 3; threads++) {
        struct ew_pool *p = NULL;
        EW_EXPECT_OK(ew_pool_new(threads, &p));
        for (int i = 0; i < 4096; i++)
            v[i] = tiny;
        ew_pool_run(p, 4096, halve_some, v);
        int wrong = 0;
        for (int i = 0; i < 4096; i++)
            wrong += fpclassify(v[i]) != FP_ZERO;
        EW_EXPECT_INT(wrong, 0);
        const float half = tiny * 0.5f; /* the caller's floating-point mode is restored */
        EW_EXPECT_INT(fpclassify(half), FP_SUBNORMAL);
        ew_pool_free(p);
    }
}

static void queue_keeps_order(void)
{
    struct ew_queue q;
    pthread_t t;
    EW_EXPECT_OK(ew_queue_init(&q, 3));
    EW_EXPECT_INT(pthread_create(&t, NULL, produce, &q), 0);
    int n = 0, wrong = 0;
    for (void *item; ew_queue_pop(&q, &item); n++)
        wrong += *(int *)item != n;
    pthread_join(t, NULL);
    EW_EXPECT_INT(n, ITEMS);
    EW_EXPECT_INT(wrong, 0);
    ew_queue_fini(&q);
}

static void closed_queue_drains(void)
{
    struct ew_queue q;
    int a = 1;
    void *item = NULL;
    EW_EXPECT_ERR(ew_queue_init(&q, 0), EW_ERR_ARG, "0 slots");
    EW_EXPECT_OK(ew_queue_init(&q, 2));
    EW_EXPECT(!ew_queue_try_pop(&q, &item));
    EW_EXPECT(ew_queue_push(&q, &a));
    ew_queue_close(&q);
    EW_EXPECT(!ew_queue_push(&q, &a));
    EW_EXPECT(ew_queue_pop(&q, &item));
    EW_EXPECT_SAME(item, &a);
    EW_EXPECT(!ew_queue_pop(&q, &item));
    ew_queue_fini(&q);
}

static void add(void *ctx, int64_t begin, int64_t end, int thread)
{
    atomic_fetch_add((atomic_long *)ctx, end - begin);
}

/* Ends when `threads` threads are inside. */
struct meeting {
    atomic_int inside;
    int threads;
};

static void meet(void *ctx, int64_t begin, int64_t end, int thread)
{
    struct meeting *m = ctx;
    atomic_fetch_add(&m->inside, 1);
    while (atomic_load(&m->inside) < m->threads)
        sched_yield();
}

/* Regression: in a forked process, as by Python's multiprocessing, the threads do not exist.
 * Freeing the pool waited for them forever, and so did a loop, depending on the moment of the
 * fork. */
static void after_fork(void)
{
    struct ew_pool *p;
    atomic_long sum = 0;
    if (getenv("EW_TEST_EMULATED"))
        EW_SKIP("qemu-user 7.2 ends where a copy of a process with threads makes a thread");
#ifdef __SANITIZE_THREAD__
    EW_SKIP("the thread sanitizer ends a copy of a process with threads that makes one");
#endif
    EW_EXPECT_OK(ew_pool_new(3, &p));
    /* A thread that the address sanitizer is still starting holds its locks, also in the copy. */
    struct meeting m = {.threads = 3};
    ew_pool_run(p, 3, meet, &m);
    for (int round = 0; round < 50; round++) {
        ew_pool_run(p, 1000, add, &sum);
        int status = 0;
        const pid_t pid = fork();
        if (pid == 0) {
            alarm(30);
            atomic_store(&sum, 0);
            for (int i = 0; i < 10; i++)
                ew_pool_run(p, 1000, add, &sum);
            ew_pool_free(p);
            struct ew_pool *own;
            const bool well = ew_pool_new(2, &own) == EW_OK;
            ew_pool_run(own, 1000, add, &sum);
            ew_pool_free(own);
            _exit(well && sum == 11000 ? 0 : 1);
        }
        EW_EXPECT(waitpid(pid, &status, 0) == pid);
        if (!EW_EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0))
            break;
    }
    ew_pool_free(p);
    EW_EXPECT_INT(sum, 50000);
}

EW_TEST_MAIN(EW_TEST(after_fork), EW_TEST(each_index_once), EW_TEST(same_bits_for_any_threads),
             EW_TEST(many_loops), EW_TEST(loops_within_loops),
             EW_TEST(nobody_waits_for_work_not_begun), EW_TEST(two_callers), EW_TEST(bad_counts),
             EW_TEST(denormals_are_zeros), EW_TEST(queue_keeps_order), EW_TEST(closed_queue_drains))
