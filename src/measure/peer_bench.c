/* SPDX-License-Identifier: Apache-2.0 */
/* Runs Edgewise and ONNX Runtime alternately on one file. */
#include "measure/peer_bench.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/order_stats.h"
#include "base/pool.h"
#include "base/text.h"
#include "bench/onnxruntime.h"
#include "bench/quiet.h"
#include "engine/engine.h"

#define PAUSE_NS 30000000L /* between turns: threads of the other library spin for a while */

struct peer_run {
    struct ew_plan *plan;
    struct ew_ort *ort;
    int64_t *ns[EW_PEER_SIDES]; /* times of all runs */
    int64_t n;                  /* runs of each side so far */
    double ratio[EW_PEER_TURNS];
    struct ew_peer_result *out;
};

/* ---- Running ---- */

static ew_err run_side(struct peer_run *d, int side)
{
    return side == EW_PEER_OURS ? ew_plan_run(d->plan) : ew_ort_run(d->ort);
}

static ew_err turn(struct peer_run *d, int side, int64_t runs)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    nanosleep(&pause, NULL);
    EW_TRY(run_side(d, side)); /* warm up the caches */
    for (int64_t i = 0; i < runs; i++) {
        const int64_t t = ew_clock_ns();
        EW_TRY(run_side(d, side));
        d->ns[side][d->n + i] = ew_clock_ns() - t;
    }
    return EW_OK;
}

static ew_err compare_outputs(struct peer_run *d)
{
    const struct ew_tensor *ours = ew_plan_output(d->plan, 0);
    const float *theirs;
    size_t n;
    EW_TRY(ew_ort_output(d->ort, &theirs, &n));
    EW_CHECK((size_t)ew_tensor_count(ours) == n, EW_ERR_SHAPE,
             "onnxruntime's output has %zu values, ours %lld", n, (long long)ew_tensor_count(ours));
    for (size_t i = 0; i < n; i++) {
        d->out->worst =
            fmax(d->out->worst, fabs(ew_tensor_get(ours, (int64_t)i) - (double)theirs[i]));
        d->out->largest = fmax(d->out->largest, fabs((double)theirs[i]));
    }
    return EW_OK;
}

static ew_err run_turns(struct peer_run *d, const struct ew_bench_opts *o)
{
    const int64_t total = o->iters * o->trials,
                  runs = total / EW_PEER_TURNS > 0 ? total / EW_PEER_TURNS : 1;
    for (int s = 0; s < EW_PEER_SIDES; s++) {
        d->ns[s] = calloc((size_t)(runs * EW_PEER_TURNS), sizeof(*d->ns[s]));
        EW_CHECK(d->ns[s], EW_ERR_MEMORY, "no memory for the times");
        for (int64_t i = 0; i < o->warmup; i++)
            EW_TRY(run_side(d, s));
    }
    EW_TRY(run_side(d, EW_PEER_OURS));
    EW_TRY(run_side(d, EW_PEER_THEIRS));
    EW_TRY(compare_outputs(d));
    const struct ew_cpu_use begin = ew_cpu_use_now();
    for (int t = 0; t < EW_PEER_TURNS; t++) {
        for (int k = 0; k < EW_PEER_SIDES; k++)
            EW_TRY(turn(d, (t + k) % EW_PEER_SIDES, runs));
        for (int s = 0; s < EW_PEER_SIDES; s++)
            ew_sort_i64(d->ns[s] + d->n, runs);
        d->ratio[t] = ew_median_i64(d->ns[EW_PEER_THEIRS] + d->n, runs) /
                      ew_median_i64(d->ns[EW_PEER_OURS] + d->n, runs);
        d->n += runs;
    }
    const struct ew_cpu_use end = ew_cpu_use_now();
    d->out->others = ew_cpu_use_others(&begin, &end, ew_pool_cpus());
    for (int s = 0; s < EW_PEER_SIDES; s++)
        ew_bench_stats(d->ns[s], d->n, &d->out->time[s]);
    return EW_OK;
}

/* ---- Opening ---- */

static ew_err run_duel(struct peer_run *d, const struct ew_peer_opts *o, struct ew_network *n,
                       const char *file)
{
    const struct ew_plan_opts po = {.mode = EW_PLAN_INFER,
                                    .optimize = true,
                                    .tuner = o->tuner,
                                    .backend = {.threads = o->threads}};
    EW_TRY(ew_plan_compile(n->graph, &po, &d->plan));
    d->out->threads = ew_backend_info(ew_plan_backend(d->plan))->threads;
    ew_bench_fill(d->plan, n->graph, 2, 1);
    EW_TRY(ew_ort_open(file, d->out->threads, &d->ort));
    EW_TRY(ew_ort_bind(d->ort, ew_plan_input(d->plan, 0)));
    EW_TRY(run_turns(d, &o->bench));
    snprintf(d->out->peer_version, sizeof(d->out->peer_version), "%s", ew_ort_version(d->ort));
    d->out->runs = d->n;
    d->out->speed_up = ew_median(d->ratio, EW_PEER_TURNS);
    d->out->speed_up_min = d->out->time[EW_PEER_THEIRS].min_ms / d->out->time[EW_PEER_OURS].min_ms;
    return EW_OK;
}

static ew_err duel_on(const struct ew_peer_opts *o, struct ew_network *n, const char *file,
                      struct ew_peer_result *out)
{
    struct peer_run d = {.out = out};
    EW_CHECK(n->graph->n_inputs == 1, EW_ERR_UNSUPPORTED,
             "%s has %d inputs: --compare-with takes networks of one", file, n->graph->n_inputs);
    const ew_err e = run_duel(&d, o, n, file);
    ew_ort_close(d.ort);
    ew_plan_free(d.plan);
    free(d.ns[EW_PEER_OURS]);
    free(d.ns[EW_PEER_THEIRS]);
    return e;
}

static ew_err duel_file(const struct ew_peer_opts *o, const char *file, struct ew_peer_result *out)
{
    struct ew_network_opts net = {.batch = o->net.batch, .width = 1};
    const struct ew_network_open_opts how = {.opts = net, .seed = 1};
    struct ew_network n = {0};
    ew_err e = ew_network_open(file, &how, &n);
    if (e == EW_OK)
        e = duel_on(o, &n, file, out);
    ew_network_close(&n);
    return e;
}

ew_err ew_peer_bench(const char *name, const struct ew_peer_opts *o, struct ew_peer_result *out)
{
    *out = (struct ew_peer_result){0};
    if (ew_ends_with(name, ".onnx"))
        return duel_file(o, name, out);
    EW_CHECK(
        !ew_engine_file_is(name), EW_ERR_USAGE,
        "%s: is a compiled engine; --compare-with needs the ONNX file that it was compiled from",
        name);
    char file[] = "/tmp/edgewise-peer-XXXXXX.onnx";
    const struct ew_network_open_opts how = {.opts = o->net, .seed = 1};
    struct ew_network n = {0};
    const int fd = mkstemps(file, 5);
    EW_CHECK(fd >= 0, EW_ERR_IO, "no temporary file in /tmp");
    close(fd);
    ew_err e = ew_network_open(name, &how, &n);
    if (e == EW_OK)
        e = ew_onnx_save(n.graph, file, NULL);
    ew_network_close(&n);
    if (e == EW_OK)
        e = duel_file(o, file, out);
    unlink(file);
    return e;
}
