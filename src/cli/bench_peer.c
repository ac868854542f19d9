/* SPDX-License-Identifier: Apache-2.0 */
/* Edgewise and ONNX Runtime on one file, in turns. */
#include "cli/bench_peer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/order_stats.h"
#include "base/pool.h"
#include "bench/onnxruntime.h"
#include "bench/quiet.h"
#include "cli/bench_times.h"
#include "engine/engine.h"
#include "report/text_table.h"

#define TURNS    8
#define PAUSE_NS 30000000L /* between turns: the other side's threads spin on for a while */

enum { OURS, THEIRS, SIDES };

struct duel {
    struct ew_plan *plan;
    struct ew_ort *ort;
    int64_t *ns[SIDES]; /* of every run */
    int64_t n;          /* runs of each side so far */
    double ratio[TURNS];
    struct ew_bench_stats time[SIDES];
    double worst, largest; /* of the outputs: difference, and value */
    double others;
    int threads;
};

/* ---- Running ---- */

static ew_err run_side(struct duel *d, int side)
{
    return side == OURS ? ew_plan_run(d->plan) : ew_ort_run(d->ort);
}

static ew_err turn(struct duel *d, int side, int64_t runs)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    nanosleep(&pause, NULL);
    EW_TRY(run_side(d, side)); /* what the other one left in the caches */
    for (int64_t i = 0; i < runs; i++) {
        const int64_t t = ew_clock_ns();
        EW_TRY(run_side(d, side));
        d->ns[side][d->n + i] = ew_clock_ns() - t;
    }
    return EW_OK;
}

static ew_err compare_outputs(struct duel *d)
{
    const struct ew_tensor *ours = ew_plan_output(d->plan, 0);
    const float *theirs;
    size_t n;
    EW_TRY(ew_ort_output(d->ort, &theirs, &n));
    EW_CHECK((size_t)ew_tensor_count(ours) == n, EW_ERR_SHAPE,
             "onnxruntime's output has %zu values, ours %lld", n, (long long)ew_tensor_count(ours));
    for (size_t i = 0; i < n; i++) {
        d->worst = fmax(d->worst, fabs(ew_tensor_get(ours, (int64_t)i) - (double)theirs[i]));
        d->largest = fmax(d->largest, fabs((double)theirs[i]));
    }
    return EW_OK;
}

static ew_err run_turns(struct duel *d, const struct ew_bench_opts *o)
{
    const int64_t total = o->iters * o->trials, runs = total / TURNS > 0 ? total / TURNS : 1;
    for (int s = 0; s < SIDES; s++) {
        d->ns[s] = calloc((size_t)(runs * TURNS), sizeof(*d->ns[s]));
        EW_CHECK(d->ns[s], EW_ERR_MEMORY, "no memory for the times");
        for (int64_t i = 0; i < o->warmup; i++)
            EW_TRY(run_side(d, s));
    }
    EW_TRY(run_side(d, OURS));
    EW_TRY(run_side(d, THEIRS));
    EW_TRY(compare_outputs(d));
    const struct ew_cpu_use begin = ew_cpu_use_now();
    for (int t = 0; t < TURNS; t++) {
        for (int k = 0; k < SIDES; k++)
            EW_TRY(turn(d, (t + k) % SIDES, runs));
        for (int s = 0; s < SIDES; s++)
            ew_sort_i64(d->ns[s] + d->n, runs);
        d->ratio[t] =
            ew_median_i64(d->ns[THEIRS] + d->n, runs) / ew_median_i64(d->ns[OURS] + d->n, runs);
        d->n += runs;
    }
    const struct ew_cpu_use end = ew_cpu_use_now();
    d->others = ew_cpu_use_others(&begin, &end, ew_pool_cpus());
    for (int s = 0; s < SIDES; s++)
        ew_bench_stats(d->ns[s], d->n, &d->time[s]);
    return EW_OK;
}

/* ---- Showing ---- */

static void table_row(struct ew_table *t, const char *what, double ours, double theirs)
{
    ew_table_cell(t, "%s", what);
    ew_table_cell(t, "%.3f ms", ours);
    ew_table_cell(t, "%.3f ms", theirs);
}

static ew_err show_text(const struct ew_cmd_call *c, const struct duel *d, double ratio)
{
    const struct ew_bench_stats *a = &d->time[OURS], *b = &d->time[THEIRS];
    struct ew_table t;
    ew_table_init(&t, "lrr");
    ew_table_cell(&t, "%s", c->args[0]);
    ew_table_cell(&t, "edgewise %s", ew_version());
    ew_table_cell(&t, "onnxruntime %s", ew_ort_version(d->ort));
    table_row(&t, "time, median", a->median_ms, b->median_ms);
    table_row(&t, "  min", a->min_ms, b->min_ms);
    table_row(&t, "  p99", a->p99_ms, b->p99_ms);
    EW_TRY(ew_table_print(&t, stdout));
    printf(
        "edgewise takes %.2f of its time (%.2f times as fast): median of %d turns, %lld runs each, "
        "%d thread%s\n",
        1 / ratio, ratio, TURNS, (long long)d->n, d->threads, d->threads == 1 ? "" : "s");
    printf("outputs differ by at most %.3g, the largest value is %.3g\n", d->worst, d->largest);
    return EW_OK;
}

static ew_err show_json(const struct ew_cmd_call *c, const struct duel *d, double ratio)
{
    struct ew_json j;
    ew_json_init(&j, stdout);
    ew_json_object(&j, NULL);
    ew_json_str(&j, "name", c->args[0]);
    ew_json_str(&j, "peer", "onnxruntime");
    ew_json_str(&j, "peer_version", ew_ort_version(d->ort));
    ew_json_int(&j, "threads", d->threads);
    ew_json_int(&j, "runs", d->n);
    ew_json_num(&j, "median_ms", d->time[OURS].median_ms);
    ew_json_num(&j, "min_ms", d->time[OURS].min_ms);
    ew_json_num(&j, "peer_median_ms", d->time[THEIRS].median_ms);
    ew_json_num(&j, "peer_min_ms", d->time[THEIRS].min_ms);
    ew_json_num(&j, "speed_up", ratio);
    ew_json_num(&j, "output_difference", d->worst);
    ew_json_num(&j, "output_largest", d->largest);
    ew_json_num(&j, "others_cpu_share", d->others);
    ew_json_end(&j);
    return ew_json_finish(&j);
}

/* ---- Opening ---- */

static ew_err duel_on(struct ew_cmd_call *c, const struct ew_peer_opts *o, struct ew_network *n,
                      const char *file)
{
    const struct ew_plan_opts po = {.mode = EW_PLAN_INFER,
                                    .optimize = true,
                                    .tuner = o->tuner,
                                    .backend = {.threads = o->threads}};
    struct duel d = {0};
    double ratios[TURNS];
    EW_CHECK(n->graph->n_inputs == 1, EW_ERR_UNSUPPORTED,
             "%s has %d inputs: --compare-with takes networks of one", file, n->graph->n_inputs);
    ew_err e = ew_plan_compile(n->graph, &po, &d.plan);
    if (e == EW_OK) {
        d.threads = ew_backend_info(ew_plan_backend(d.plan))->threads;
        ew_bench_fill(d.plan, n->graph, 2, 1);
        e = ew_ort_open(file, d.threads, &d.ort);
    }
    if (e == EW_OK)
        e = ew_ort_bind(d.ort, ew_plan_input(d.plan, 0));
    if (e == EW_OK)
        e = run_turns(&d, &o->bench);
    memcpy(ratios, d.ratio, sizeof(ratios));
    const double ratio = ew_median(ratios, TURNS);
    if (e == EW_OK)
        e = c->json ? show_json(c, &d, ratio) : show_text(c, &d, ratio);
    if (e == EW_OK)
        ew_times_warn_busy(d.others);
    ew_ort_close(d.ort);
    ew_plan_free(d.plan);
    free(d.ns[OURS]);
    free(d.ns[THEIRS]);
    return e;
}

static ew_err duel_file(struct ew_cmd_call *c, const struct ew_peer_opts *o, const char *file)
{
    struct ew_network_opts net = {.batch = o->net.batch, .width = 1};
    const struct ew_network_how how = {.opts = net, .seed = 1};
    struct ew_network n = {0};
    ew_err e = ew_network_open(file, &how, &n);
    if (e == EW_OK)
        e = duel_on(c, o, &n, file);
    ew_network_close(&n);
    return e;
}

static bool is_onnx(const char *name)
{
    const size_t n = strlen(name);
    return n > 5 && strcmp(name + n - 5, ".onnx") == 0;
}

ew_err ew_bench_peer(struct ew_cmd_call *c, const struct ew_peer_opts *o)
{
    const char *name = c->args[0];
    if (is_onnx(name))
        return duel_file(c, o, name);
    EW_CHECK(!ew_engine_file_is(name), EW_ERR_USAGE,
             "%s: is compiled; --compare-with needs the ONNX file that it was made of", name);
    char file[] = "/tmp/edgewise-peer-XXXXXX.onnx";
    const struct ew_network_how how = {.opts = o->net, .seed = 1};
    struct ew_network n = {0};
    const int fd = mkstemps(file, 5);
    EW_CHECK(fd >= 0, EW_ERR_IO, "no temporary file in /tmp");
    close(fd);
    ew_err e = ew_network_open(name, &how, &n);
    if (e == EW_OK)
        e = ew_onnx_save(n.graph, file, NULL);
    ew_network_close(&n);
    if (e == EW_OK)
        e = duel_file(c, o, file);
    unlink(file);
    return e;
}
