/* SPDX-License-Identifier: Apache-2.0 */
/* Benchmark of one network. */
#include "measure/single_bench.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/pool.h"
#include "model/objective.h"

#define PROFILE_RUNS 20
#define POLL_NS      100000000LL /* between readings of the power meter */

/* ---- Opening ---- */

/* Threads per stream: as requested, or the machine's divided among all. */
static int stream_threads(const struct ew_single_opts *o)
{
    const int all = (o->streams ? o->streams : 1) + ew_beside_count(o->beside);
    if (o->threads > 0 || all == 1)
        return o->threads;
    const int each = ew_pool_cpus() / all;
    return each > 1 ? each : 1;
}

static ew_err compile(const struct ew_single_opts *o, int streams, struct ew_single_bench *b)
{
    const bool optimize = !o->reference && !o->plain;
    const struct ew_plan_opts po = {
        .tuner = o->tuner,
        .mode = o->train ? EW_PLAN_TRAIN : EW_PLAN_INFER,
        .dry = o->dry,
        .optimize = optimize,
        .consume = optimize && !o->train && !o->keep_weights && streams == 1,
        .update = o->train,
        .optimizer = {.kind = EW_OPTIMIZER_SGD, .lr = 1e-4, .momentum = 0.9},
        .memory_limit = o->memory_limit,
        .backend = {.threads = stream_threads(o), .reference = o->reference}};
    for (; b->n < streams; b->n++)
        EW_TRY(ew_plan_compile(b->g, &po, &b->plans[b->n]));
    return EW_OK;
}

static ew_err open_network(const char *what, const struct ew_single_opts *o, int streams,
                           struct ew_single_bench *b)
{
    const struct ew_network_open_opts how = {.opts = o->net, .seed = 1};
    EW_TRY(ew_network_open(what, &how, &b->network));
    b->g = b->network.graph;
    if (o->train)
        EW_TRY(ew_objective_add(b->g));
    return compile(o, streams, b);
}

/* The first stream is the side's context; the others are additional contexts. */
static ew_err open_engine(const char *what, const struct ew_single_opts *o, int streams,
                          struct ew_single_bench *b)
{
    const struct ew_side_opts so = {
        .net = o->net, .threads = stream_threads(o), .plain = o->plain, .reference = o->reference};
    b->is_engine = true;
    EW_TRY(ew_side_load(what, &so, &b->side));
    b->g = b->side.g;
    b->plans[b->n++] = b->side.p;
    for (; b->n < streams; b->n++) {
        struct ew_context **x = &b->contexts[b->n];
        EW_TRY(ew_context_new(b->side.network.engine, stream_threads(o), x));
        if (b->side.batch > 1)
            EW_TRY(ew_context_set_batch(*x, b->side.batch));
        b->plans[b->n] = ew_context_plan(*x);
    }
    return EW_OK;
}

static ew_err open_beside(const struct ew_single_opts *o, struct ew_single_bench *b)
{
    const struct ew_side_opts so = {.net = {.width = 1, .batch = o->net.batch},
                                    .threads = stream_threads(o)};
    return o->beside ? ew_beside_open(o->beside, &so, &b->beside) : EW_OK;
}

ew_err ew_single_bench_open(const char *what, const struct ew_single_opts *o,
                            struct ew_single_bench *out)
{
    const int streams = o->streams ? o->streams : 1;
    *out = (struct ew_single_bench){0};
    EW_CHECK(streams >= 1 && streams <= EW_BENCH_STREAMS, EW_ERR_ARG, "%d streams: at most %d",
             streams, EW_BENCH_STREAMS);
    EW_TRY(open_beside(o, out));
    if (!ew_engine_file_is(what))
        return open_network(what, o, streams, out);
    EW_CHECK(!o->train && !o->tuner && !o->memory_limit, EW_ERR_USAGE,
             "%s: is a compiled engine: --train, --tune and --memory-limit do not apply", what);
    return open_engine(what, o, streams, out);
}

void ew_single_bench_close(struct ew_single_bench *b)
{
    for (int i = 0; i < EW_BENCH_STREAMS; i++) {
        if (b->contexts[i])
            ew_context_free(b->contexts[i]);
        else if (!b->is_engine)
            ew_plan_free(b->plans[i]);
    }
    ew_beside_close(&b->beside);
    if (b->is_engine)
        ew_side_fini(&b->side);
    else
        ew_network_close(&b->network);
}

/* ---- Running ---- */

/* On a device with separate memory: the time of the steps without copies. */
static ew_err time_steps(struct ew_single_bench *b, int64_t iters, struct ew_single_result *r)
{
    const struct ew_bench_opts again = {.iters = iters, .trials = 1, .steps_only = true};
    struct ew_bench_stats t;
    if (ew_backend_info(ew_plan_backend(b->plans[0]))->shares_host || b->n > 1 ||
        r->plan.micro_batches > 1)
        return EW_OK;
    EW_TRY(ew_bench_run(b->plans[0], &again, NULL, NULL, &t));
    r->steps_ms = t.median_ms;
    return EW_OK;
}

static ew_err profile(struct ew_plan *p, int64_t iters, struct ew_single_result *r)
{
    struct ew_peaks peaks;
    r->step_ns = calloc((size_t)ew_plan_step_count(p) + 1, sizeof(*r->step_ns));
    EW_CHECK(r->step_ns, EW_ERR_MEMORY, "no memory for the profile");
    EW_TRY(ew_bench_profile(p, ew_min_i64(iters, PROFILE_RUNS), r->step_ns));
    EW_TRY(ew_backend_peaks(ew_plan_backend(p), &peaks));
    r->peak_flops = peaks.flops;
    return EW_OK;
}

static ew_err run_load(struct ew_single_bench *b, const struct ew_load_opts *load,
                       ew_bench_tick *tick, void *ctx, struct ew_load_result *out)
{
    struct ew_load_opts lo = *load;
    struct ew_plan *plans[EW_BENCH_STREAMS + EW_BENCH_BESIDE];
    for (int i = 0; i < b->n; i++) {
        ew_bench_fill(b->plans[i], b->g, 2, 1);
        plans[i] = b->plans[i];
    }
    for (int i = 0; i < b->beside.n; i++)
        plans[b->n + i] = b->beside.sides[i].p;
    lo.beside = b->beside.n;
    return ew_bench_load(plans, b->n + b->beside.n, &lo, tick, ctx, out);
}

ew_err ew_single_bench_run(struct ew_single_bench *b, const struct ew_single_runs *runs,
                           struct ew_single_result *r)
{
    struct ew_plan *p = b->plans[0];
    const struct ew_device_info *device = ew_backend_info(ew_plan_backend(p));
    *r = (struct ew_single_result){
        .threads = device->threads, .isa = device->label, .streams = b->n};
    r->power.absent = "not asked for";
    r->batch = ew_graph_images(b->g);
    EW_TRY(run_load(b, &runs->load, runs->tick, runs->ctx, &r->load));
    EW_TRY(ew_load_stats(&r->load, &r->time));
    ew_plan_stats(p, &r->plan);
    EW_TRY(time_steps(b, runs->load.iters, r));
    r->images_per_s = b->n == 1 && runs->load.qps <= 0
                          ? 1e3 * (double)r->batch / r->time.median_ms
                          : (double)(r->batch * r->load.n) / r->load.wall_s;
    r->resident = ew_bench_resident();
    r->resident_peak = ew_bench_resident_peak();
    return runs->profile ? profile(p, runs->load.iters, r) : EW_OK;
}

/* ---- Power ---- */

struct polling {
    struct ew_power_meter *meter;
    int64_t last_ns;
};

static void poll_meter(void *ctx, int64_t done, int64_t total)
{
    struct polling *p = ctx;
    const int64_t now = ew_clock_ns();
    if (now - p->last_ns < POLL_NS)
        return;
    ew_power_meter_poll(p->meter);
    p->last_ns = now;
}

ew_err ew_single_bench_power(struct ew_single_bench *b, const struct ew_load_opts *load,
                             const char *power_from, double seconds, struct ew_single_result *r)
{
    const struct ew_load_opts again = {
        .warmup = load->warmup, .iters = 1, .duration_s = seconds, .qps = load->qps};
    struct ew_load_result done = {0};
    EW_TRY(ew_power_meter_open(power_from, seconds, &r->meter, &r->power.absent));
    if (!r->meter)
        return EW_OK;
    struct polling p = {.meter = r->meter};
    ew_power_meter_begin(r->meter);
    ew_err e = run_load(b, &again, poll_meter, &p, &done);
    if (e == EW_OK)
        e = ew_power_meter_end(r->meter, &r->power);
    if (e == EW_OK)
        r->power.images_per_s = (double)(r->batch * done.n) / done.wall_s;
    ew_load_result_fini(&done);
    return e;
}

void ew_single_result_fini(struct ew_single_result *r)
{
    ew_power_meter_close(r->meter);
    ew_load_result_fini(&r->load);
    free(r->step_ns);
    *r = (struct ew_single_result){0};
}
