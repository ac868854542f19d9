/* SPDX-License-Identifier: Apache-2.0 */
/* Streams under load. */
#include "bench/bench_load.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/order_stats.h"
#include "base/pool.h"

#define SPIN_NS 100000 /* spin this long before a request is due, since sleeps end late */

struct load;

/* State of a stream, used only by its own worker during the run. */
struct stream {
    struct ew_plan *plan;
    struct ew_load_run *runs;
    int n, cap;
    ew_err err;
    char message[256];
};

struct load {
    struct stream *streams;
    const struct ew_load_opts *o;
    ew_bench_tick *tick;
    void *ctx;
    int64_t start_ns;
    int counted;        /* streams that serve requests; the others are background load */
    atomic_int serving; /* serving streams that have not ended */
    atomic_llong next;  /* next request */
    atomic_bool failed;
};

static void wait_until(int64_t at_ns)
{
    const int64_t left = at_ns - ew_clock_ns() - SPIN_NS;
    if (left > 0) {
        const struct timespec t = {.tv_sec = (time_t)(left / EW_NS_PER_S),
                                   .tv_nsec = (long)(left % EW_NS_PER_S)};
        nanosleep(&t, NULL);
    }
    while (ew_clock_ns() < at_ns)
        ;
}

/* Arrival time of request k (closed loop: now); false: no more requests. */
static bool arrives(const struct load *l, int64_t k, int64_t *at)
{
    const struct ew_load_opts *o = l->o;
    const double s = o->qps > 0 ? (double)k / o->qps : -1;
    *at = s >= 0 ? l->start_ns + (int64_t)(s * 1e9) : ew_clock_ns();
    return k < o->iters || (double)(*at - l->start_ns) * 1e-9 < o->duration_s;
}

/* Estimate of the total number of requests. */
static int64_t expected(const struct load *l, int64_t done, int64_t now)
{
    const double s = (double)(now - l->start_ns) * 1e-9;
    return ew_max_i64(l->o->iters, (int64_t)((double)done * l->o->duration_s / fmax(s, 1e-9)));
}

static ew_err serve(struct load *l, struct stream *s, int number)
{
    for (;;) {
        const int64_t k = atomic_fetch_add(&l->next, 1);
        int64_t at;
        if (atomic_load(&l->failed) || !arrives(l, k, &at))
            return EW_OK;
        if (l->o->qps > 0)
            wait_until(at);
        EW_TRY(ew_grow((void **)&s->runs, &s->cap, s->n + 1, sizeof(*s->runs)));
        const int64_t from = l->o->qps > 0 ? at : ew_clock_ns();
        EW_TRY(ew_plan_run(s->plan));
        const int64_t end = ew_clock_ns();
        s->runs[s->n++] = (struct ew_load_run){
            .start_ns = from - l->start_ns, .latency_ns = end - from, .stream = number};
        if (number == 0 && l->tick)
            l->tick(l->ctx, k, expected(l, k, end));
    }
}

/* A background stream. */
static ew_err run_beside(struct load *l, struct stream *s)
{
    do {
        EW_TRY(ew_plan_run(s->plan));
        s->n++;
    } while (atomic_load(&l->serving) > 0 && !atomic_load(&l->failed));
    return EW_OK;
}

static void note(struct load *l, struct stream *s, ew_err e)
{
    if (e == EW_OK)
        return;
    s->err = e;
    snprintf(s->message, sizeof(s->message), "%s", ew_error_message());
    atomic_store(&l->failed, true);
}

static void warm_up(void *ctx, int64_t begin, int64_t end, int worker)
{
    struct load *l = ctx;
    for (int64_t i = begin; i < end; i++) {
        ew_err e = EW_OK;
        for (int64_t k = 0; e == EW_OK && k < l->o->warmup; k++)
            e = ew_plan_run(l->streams[i].plan);
        note(l, &l->streams[i], e);
    }
}

static void measure(void *ctx, int64_t begin, int64_t end, int worker)
{
    struct load *l = ctx;
    for (int64_t i = begin; i < end; i++) {
        const bool counts = i < l->counted;
        struct stream *s = &l->streams[i];
        note(l, s, counts ? serve(l, s, (int)i) : run_beside(l, s));
        if (counts)
            atomic_fetch_sub(&l->serving, 1);
    }
}

static int by_start(const void *a, const void *b)
{
    const struct ew_load_run *x = a, *y = b;
    return x->start_ns < y->start_ns ? -1 : x->start_ns > y->start_ns;
}

static ew_err gather(const struct load *l, int streams, struct ew_load_result *out)
{
    int64_t n = 0;
    for (int i = 0; i < streams; i++) {
        const struct stream *s = &l->streams[i];
        EW_CHECK(s->err == EW_OK, s->err, "%s", s->message);
        *(i < l->counted ? &n : &out->beside) += s->n;
    }
    out->runs = calloc((size_t)n + 1, sizeof(*out->runs));
    EW_CHECK(out->runs, EW_ERR_MEMORY, "no memory for %lld durations", (long long)n);
    for (int i = 0; i < l->counted; i++) {
        const struct stream *s = &l->streams[i];
        if (s->n > 0)
            memcpy(out->runs + out->n, s->runs, (size_t)s->n * sizeof(*out->runs));
        out->n += s->n;
    }
    qsort(out->runs, (size_t)out->n, sizeof(*out->runs), by_start);
    return EW_OK;
}

static ew_err run(struct load *l, int streams, struct ew_load_result *out)
{
    struct ew_pool *pool;
    EW_TRY(ew_pool_new(streams, &pool));
    ew_pool_run(pool, streams, warm_up, l);
    const struct ew_cpu_use before = ew_cpu_use_now();
    l->start_ns = ew_clock_ns();
    ew_pool_run(pool, streams, measure, l);
    out->wall_s = (double)(ew_clock_ns() - l->start_ns) * 1e-9;
    const struct ew_cpu_use after = ew_cpu_use_now();
    out->others = ew_cpu_use_others(&before, &after, ew_pool_cpus());
    ew_pool_free(pool);
    return gather(l, streams, out);
}

ew_err ew_bench_load(struct ew_plan *const *plans, int streams, const struct ew_load_opts *o,
                     ew_bench_tick *tick, void *ctx, struct ew_load_result *out)
{
    struct load l = {.o = o, .tick = tick, .ctx = ctx, .counted = streams - o->beside};
    *out = (struct ew_load_result){0};
    EW_CHECK(l.counted >= 1 && o->beside >= 0 && o->iters >= 1, EW_ERR_ARG,
             "nothing to run: %d streams, %d of them beside, %lld runs", streams, o->beside,
             (long long)o->iters);
    atomic_init(&l.serving, l.counted);
    l.streams = calloc((size_t)streams, sizeof(*l.streams));
    EW_CHECK(l.streams, EW_ERR_MEMORY, "no memory for %d streams", streams);
    for (int i = 0; i < streams; i++)
        l.streams[i].plan = plans[i];
    const ew_err e = run(&l, streams, out);
    for (int i = 0; i < streams; i++)
        free(l.streams[i].runs);
    free(l.streams);
    return e;
}

void ew_load_result_fini(struct ew_load_result *r)
{
    free(r->runs);
    *r = (struct ew_load_result){0};
}

/* ---- Results ---- */

static ew_err latencies(const struct ew_load_result *r, int64_t **out)
{
    *out = calloc((size_t)r->n + 1, sizeof(**out));
    EW_CHECK(*out, EW_ERR_MEMORY, "no memory for %lld durations", (long long)r->n);
    for (int64_t i = 0; i < r->n; i++)
        (*out)[i] = r->runs[i].latency_ns;
    return EW_OK;
}

ew_err ew_load_stats(const struct ew_load_result *r, struct ew_bench_stats *out)
{
    EW_CLEANUP(ew_free_ptr) int64_t *ns = NULL;
    EW_TRY(latencies(r, &ns));
    ew_bench_stats(ns, r->n, out);
    return EW_OK;
}

double ew_load_percentile(const struct ew_load_result *r, double percent)
{
    EW_CLEANUP(ew_free_ptr) int64_t *ns = NULL;
    if (r->n == 0 || latencies(r, &ns) != EW_OK)
        return NAN;
    ew_sort_i64(ns, r->n);
    return 1e-6 * (double)ew_nearest_rank(ns, r->n, percent);
}

int64_t ew_load_slow_runs(const struct ew_load_result *r, double median_ms)
{
    int64_t n = 0;
    for (int64_t i = 0; i < r->n; i++)
        n += (double)r->runs[i].latency_ns * 1e-6 > EW_LOAD_SLOW * median_ms;
    return n;
}
