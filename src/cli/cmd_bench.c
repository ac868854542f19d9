/* SPDX-License-Identifier: Apache-2.0 */
/* edgewise bench: how fast a network runs or trains here, and where the time goes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/pool.h"
#include "base/progress.h"
#include "bench/bench.h"
#include "cli/bench_beside.h"
#include "cli/bench_cmd.h"
#include "cli/bench_dpu.h"
#include "cli/bench_peer.h"
#include "cli/bench_times.h"
#include "cli/bench_why.h"
#include "cli/cmd.h"
#include "cli/device_opt.h"
#include "cli/recorded.h"
#include "cli/simulated.h"
#include "cli/status_line.h"
#include "engine/engine.h"
#include "graph/facts.h"
#include "model/objective.h"
#include "report/text_table.h"

struct opts {
    const char *device;
    int precision;
    bool fast;
    struct ew_network_opts net;
    bool train, profile, reference, plain, tune, quick, sweep;
    int64_t threads, warmup, iters, trials, memory_limit, streams;
    double power_seconds, duration, qps;
    int protocol, peer;
    const char *db, *eval, *power_from, *why, *simulate, *percentiles, *csv, *picture, *html;
    const char *beside;
    struct ew_image_opts images;
};

#define EW_BENCH_STREAMS 64

enum { PROTOCOL_NONE, PROTOCOL_ENGINE, PROTOCOL_SCALE };
static const char *const protocols[] = {"none", "engine", "scale", NULL};
enum { PEER_NONE, PEER_ONNXRUNTIME };
static const char *const peers[] = {"none", "onnxruntime", NULL};

/* clang-format off */
static const struct ew_field table[] = {
    EW_NETWORK_FIELDS(struct opts, net),
    {.name = "train", .type = EW_FIELD_BOOL, .offset = offsetof(struct opts, train),
     .help = "time whole training steps: forward, backward, SGD update"},
    EW_DEVICE_FIELD(struct opts),
    EW_PRECISION_FIELD(struct opts),
    EW_FAST_FIELD(struct opts),
    {.name = "threads", .type = EW_FIELD_INT, .offset = offsetof(struct opts, threads), .def = "0",
     .min = 0, .max = 256, .metavar = "N", .help = "threads; 0: one for each CPU"},
    {.name = "warmup", .type = EW_FIELD_INT, .offset = offsetof(struct opts, warmup), .def = "20",
     .min = 0, .max = 1000000, .metavar = "N", .help = "runs before the clock starts"},
    {.name = "iters", .type = EW_FIELD_INT, .offset = offsetof(struct opts, iters), .def = "80",
     .min = 1, .max = 1000000, .metavar = "N", .help = "runs that are timed"},
    {.name = "trials", .type = EW_FIELD_INT, .offset = offsetof(struct opts, trials), .def = "1",
     .min = 1, .max = 1000, .metavar = "N", .help = "repetitions of warm-up and runs, side by side; one network: N times the runs"},
    {.name = "duration", .type = EW_FIELD_FLOAT, .offset = offsetof(struct opts, duration),
     .def = "0", .min = 0, .max = 86400, .metavar = "S",
     .help = "one network: keep running for at least this many seconds, beyond --iters"},
    {.name = "streams", .type = EW_FIELD_INT, .offset = offsetof(struct opts, streams), .def = "1",
     .min = 1, .max = 64, .metavar = "N",
     .help = "one network: this many run at the same time; the threads are divided among them"},
    {.name = "beside", .type = EW_FIELD_STR, .offset = offsetof(struct opts, beside),
     .metavar = "NAME,...", .help = "one network: these run on the device at the same time, one "
     "after the other and untimed; the threads are divided among all"},
    {.name = "qps", .type = EW_FIELD_FLOAT, .offset = offsetof(struct opts, qps), .def = "0",
     .min = 0, .max = 1e6, .metavar = "R", .help = "one network: requests come R times a second, "
     "and waiting counts as latency; 0: one after the other"},
    {.name = "percentiles", .type = EW_FIELD_STR, .offset = offsetof(struct opts, percentiles),
     .metavar = "P,...", .help = "one network: of the latency, as 50,95,99.9"},
    {.name = "csv", .type = EW_FIELD_STR, .offset = offsetof(struct opts, csv), .metavar = "FILE",
     .help = "one network: write the time of every run"},
    {.name = "memory-limit", .type = EW_FIELD_SIZE, .offset = offsetof(struct opts, memory_limit),
     .min = 0, .max = 1e15, .metavar = "BYTES",
     .help = "make it fit, weights included, saying how and at what cost"},
    {.name = "reference", .type = EW_FIELD_BOOL, .offset = offsetof(struct opts, reference),
     .help = "plain reference kernels and no fusing, for comparison"},
    {.name = "tune", .type = EW_FIELD_BOOL, .offset = offsetof(struct opts, tune),
     .help = "measure kernels here and remember the fastest, instead of choosing by rules"},
    {.name = "profile", .type = EW_FIELD_BOOL, .offset = offsetof(struct opts, profile),
     .help = "a table of all steps: time, share, GFLOP/s, share of the peak, kernel"},
    {.name = "html", .type = EW_FIELD_STR, .offset = offsetof(struct opts, html),
     .metavar = "FILE", .help = "write a page of the graph with the time of every layer, to zoom "
     "and search"},
    {.name = "why", .type = EW_FIELD_STR, .offset = offsetof(struct opts, why), .metavar = "STEP",
     .help = "instead of timing: the kernels that could run this step (a name or number of "
             "--profile), their estimates, with --tune their times, and why one was chosen"},
    {.name = "plain", .type = EW_FIELD_BOOL, .offset = offsetof(struct opts, plain),
     .help = "the graph as it is: a step for every operator, nothing folded or fused"},
    {.name = "protocol", .type = EW_FIELD_ENUM, .offset = offsetof(struct opts, protocol),
     .def = "none", .choices = protocols,
     .help = "a study's own: networks before and after compiling, or at four widths"},
    {.name = "compare-with", .type = EW_FIELD_ENUM, .offset = offsetof(struct opts, peer),
     .def = "none", .choices = peers, .help = "one network: run the same file in turns by another "
     "program's library, where that is installed ($EW_ONNXRUNTIME names the file)"},
    {.name = "quick", .type = EW_FIELD_BOOL, .offset = offsetof(struct opts, quick),
     .help = "few runs and no tuning: to see that it works"},
    {.name = "sweep", .type = EW_FIELD_BOOL, .offset = offsetof(struct opts, sweep),
     .help = "--device dpu: sizes, cores, clocks and memories that no other one beats, modelled"},
    {.name = "picture", .type = EW_FIELD_STR, .offset = offsetof(struct opts, picture),
     .metavar = "FILE.svg", .help = "of the sweep: images a second over DSP slices"},
    {.name = "eval", .type = EW_FIELD_STR, .offset = offsetof(struct opts, eval),
     .metavar = "DATA[:N]", .help = "several networks: accuracy on this data set too"},
    EW_PREPROCESS_FIELDS(struct opts, images),
    {.name = "power-seconds", .type = EW_FIELD_FLOAT,
     .offset = offsetof(struct opts, power_seconds), .def = "3", .min = 0, .max = 3600,
     .metavar = "S", .help = "several networks: how long each runs for its power; 0: not measured"},
    {.name = "power-from", .type = EW_FIELD_STR, .offset = offsetof(struct opts, power_from),
     .metavar = "CMD|FILE|-", .help = "external meter: lines of [timestamp] watts"},
    EW_SIMULATE_FIELD(struct opts),
    EW_RECORDING_FIELD(struct opts),
    EW_FIELD_END};
/* clang-format on */

/* The plans that run at the same time; the first is the one that is described. */
struct streams {
    struct ew_plan *plans[EW_BENCH_STREAMS];
    struct ew_context *contexts[EW_BENCH_STREAMS]; /* of an engine's; NULL: none */
    int n;
    struct ew_beside beside; /* what keeps the device busy meanwhile */
};

struct result {
    struct ew_bench_stats time;
    struct ew_load_result load;
    struct ew_percentiles percentiles;
    struct ew_plan_stats plan;
    double images_per_s, peak_flops;
    double steps_ms; /* median without copies to and from the device; 0: there are none */
    int64_t resident, resident_peak, *step_ns;
    const char *isa;
    int threads, streams;
};

/* The study's own numbers of runs and trials, unless others are asked for. */
static struct ew_bench_opts bench_opts(const struct opts *o)
{
    struct ew_bench_opts b = {.warmup = o->warmup, .iters = o->iters, .trials = o->trials};
    if (o->protocol == PROTOCOL_SCALE && b.trials == 1)
        b.trials = 50;
    if (o->quick)
        b = (struct ew_bench_opts){.warmup = 2, .iters = 5, .trials = 2};
    return b;
}

static void show_tick(void *ctx, int64_t done, int64_t total)
{
    struct ew_progress *bar = ctx;
    bar->total = total;
    ew_progress_update(bar, done);
}

/* The runs themselves.  Trials are for comparisons; one network's are one after the other. */
static ew_err time_runs(const struct opts *o, struct ew_graph *g, const struct streams *s,
                        struct result *r)
{
    const struct ew_bench_opts b = bench_opts(o);
    const struct ew_load_opts lo = {.warmup = b.warmup,
                                    .iters = b.iters * b.trials,
                                    .duration_s = o->duration,
                                    .qps = o->qps,
                                    .beside = s->beside.n};
    struct ew_plan *plans[EW_BENCH_STREAMS + EW_BENCH_BESIDE];
    struct ew_progress bar;
    for (int i = 0; i < s->n; i++) {
        ew_bench_fill(s->plans[i], g, 2, 1);
        plans[i] = s->plans[i];
    }
    for (int i = 0; i < s->beside.n; i++)
        plans[s->n + i] = s->beside.sides[i].p;
    ew_progress_begin(&bar, stderr, "bench", lo.iters);
    const ew_err e = ew_bench_load(plans, s->n + s->beside.n, &lo, show_tick, &bar, &r->load);
    ew_progress_end(&bar);
    EW_TRY(e);
    return ew_load_stats(&r->load, &r->time);
}

/* On a device with memory of its own: how long the steps take without copies. */
static ew_err time_steps(const struct opts *o, const struct streams *s, struct result *r)
{
    const struct ew_bench_opts b = bench_opts(o);
    const struct ew_bench_opts again = {.iters = b.iters, .trials = 1, .steps_only = true};
    struct ew_bench_stats t;
    if (ew_backend_info(ew_plan_backend(s->plans[0]))->shares_host || s->n > 1 || r->plan.parts > 1)
        return EW_OK;
    EW_TRY(ew_bench_run(s->plans[0], &again, NULL, NULL, &t));
    r->steps_ms = t.median_ms;
    return EW_OK;
}

static ew_err measure(const struct opts *o, struct ew_graph *g, const struct streams *s,
                      struct result *r)
{
    int64_t batch = 1;
    struct ew_plan *p = s->plans[0];
    EW_TRY(ew_graph_batch(g, &batch));
    EW_TRY(time_runs(o, g, s, r));
    ew_plan_stats(p, &r->plan);
    EW_TRY(time_steps(o, s, r));
    r->streams = s->n;
    r->images_per_s = s->n == 1 && o->qps <= 0 ? 1e3 * (double)batch / r->time.median_ms
                                               : (double)(batch * r->load.n) / r->load.wall_s;
    r->resident = ew_bench_resident();
    r->resident_peak = ew_bench_resident_peak();
    const struct ew_device_info *device = ew_backend_info(ew_plan_backend(p));
    struct ew_peaks peaks;
    r->threads = device->threads;
    r->isa = device->target;
    if (!o->profile && !o->html)
        return EW_OK;
    r->step_ns = calloc((size_t)ew_plan_step_count(p) + 1, sizeof(*r->step_ns));
    EW_CHECK(r->step_ns, EW_ERR_MEMORY, "no memory for the profile");
    EW_TRY(ew_bench_profile(p, o->iters < 20 ? o->iters : 20, r->step_ns));
    EW_TRY(ew_backend_peaks(ew_plan_backend(p), &peaks));
    r->peak_flops = peaks.flops;
    return EW_OK;
}

/* ---- Output ---- */

static const char *phase_name(const struct ew_step_info *s)
{
    static const char *const names[] = {"forward", "backward", "update"};
    return s->again ? "again" : names[s->phase];
}

static ew_err print_profile(const struct ew_plan *p, const struct result *r)
{
    struct ew_table t;
    char shape[EW_SHAPE_TEXT];
    double total = 0;
    for (int k = 0; k < ew_plan_step_count(p); k++)
        total += (double)r->step_ns[k];
    ew_table_init(&t, "llllrrrrl");
    static const char *const head[] = {"step",  "operator", "phase", "output", "us",
                                       "share", "GFLOP/s",  "peak",  "kernel"};
    for (size_t i = 0; i < EW_COUNT(head); i++)
        ew_table_cell(&t, "%s", head[i]);
    for (int k = 0; k < ew_plan_step_count(p); k++) {
        struct ew_step_info s;
        ew_plan_step_info(p, k, &s);
        const double ns = (double)r->step_ns[k];
        const double rate = ns > 0 ? s.flops / ns : 0;
        ew_table_cell(&t, "%s", s.name);
        ew_table_cell(&t, "%s", s.op ? s.op : "");
        ew_table_cell(&t, "%s", phase_name(&s));
        ew_table_cell(&t, "%s", s.out.rank ? ew_shape_text(&s.out, shape) : "");
        ew_table_cell(&t, "%.1f", ns * 1e-3);
        ew_table_cell(&t, "%.1f%%", 100 * ns / total);
        ew_table_cell(&t, "%.1f", rate);
        ew_table_cell(&t, "%.0f%%", r->peak_flops > 0 ? 100 * rate * 1e9 / r->peak_flops : 0);
        ew_table_cell(&t, "%s%s", s.on_host ? "host: " : "", s.kernel);
    }
    EW_TRY(ew_table_print(&t, stdout));
    printf("peak measured beside it: %.1f GFLOP/s on %d thread%s\n", r->peak_flops * 1e-9,
           r->threads, r->threads == 1 ? "" : "s");
    return EW_OK;
}

/* What the device left to the host. */
static void print_host_steps(const struct ew_plan *p, const struct result *r)
{
    char bytes[EW_TEXT_CHARS];
    int64_t ns = 0;
    if (r->plan.host_steps == 0)
        return;
    printf("host:      %d of %d steps, for which %s has no kernel; %s copied each run",
           r->plan.host_steps, r->plan.steps, ew_backend_info(ew_plan_backend(p))->device,
           ew_text_bytes((int64_t)r->plan.copied_bytes, bytes));
    for (int k = 0; r->step_ns && k < r->plan.steps; k++) {
        struct ew_step_info s;
        ew_plan_step_info(p, k, &s);
        ns += s.copy_ns;
    }
    if (r->step_ns)
        printf(", in %.3f ms", (double)ns * 1e-6);
    printf("\n");
}

static void print_fit(const struct ew_plan_stats *s)
{
    if (s->swapped)
        printf("to fit:    %d layer%s by kernels that pack less, about %.0f%% more cycles\n",
               s->swapped, s->swapped == 1 ? "" : "s", 100 * s->slower);
    if (s->recompute_cheap)
        printf("to fit:    cheap operators computed again, %.0f%% of forward's arithmetic\n",
               100 * s->again_share);
    if (s->segments > 1)
        printf("to fit:    %d segments computed again, %.0f%% of forward's arithmetic\n",
               s->segments, 100 * s->again_share);
    if (s->parts > 1)
        printf("to fit:    batch in %d parts%s\n", s->parts,
               s->split_changes_statistics ? "; batch norm sees one part at a time, so its "
                                             "statistics differ from the whole batch's"
                                           : "");
}

static ew_err print_text(const char *name, const struct opts *o, const struct ew_plan *p,
                         const struct result *r)
{
    char a[EW_TEXT_CHARS], b[EW_TEXT_CHARS];
    const struct ew_bench_stats *t = &r->time;
    if (o->profile)
        EW_TRY(print_profile(p, r));
    printf("%s, %s, batch %lld, %d thread%s", name, o->train ? "training step" : "inference",
           (long long)o->net.batch, r->threads, r->threads == 1 ? "" : "s");
    if (r->streams > 1)
        printf(" in each of %d streams", r->streams);
    printf(", %s\n", r->isa);
    if (o->beside)
        printf("beside:    %s, %.1f runs/s\n", o->beside, (double)r->load.beside / r->load.wall_s);
    printf("time:      median %.3f ms, min %.3f, mean %.3f, p90 %.3f, p99 %.3f, sd %.3f (%lld "
           "run%s)\n",
           t->median_ms, t->min_ms, t->mean_ms, t->p90_ms, t->p99_ms, t->sd_ms, (long long)t->n,
           t->n == 1 ? "" : "s");
    ew_percentiles_print(&r->percentiles, &r->load);
    if (r->steps_ms > 0)
        printf("           median %.3f ms without copies of inputs and outputs\n", r->steps_ms);
    printf("speed:     %.1f images/s", r->images_per_s);
    if (o->qps > 0)
        printf(", asked for %g", o->qps * (double)o->net.batch);
    printf("\n");
    printf("memory:    planned %s, resident %s\n",
           ew_text_bytes((int64_t)(r->plan.arena_bytes + r->plan.weight_bytes), a),
           ew_text_bytes(r->resident, b));
    print_host_steps(p, r);
    print_fit(&r->plan);
    return EW_OK;
}

static void json_profile(struct ew_json *j, const struct ew_plan *p, const struct result *r)
{
    ew_json_num(j, "peak_gflops", r->peak_flops * 1e-9);
    ew_json_array(j, "steps");
    for (int k = 0; k < ew_plan_step_count(p); k++) {
        struct ew_step_info s;
        ew_plan_step_info(p, k, &s);
        ew_json_object(j, NULL);
        ew_json_str(j, "name", s.name);
        ew_json_str(j, "op", s.op);
        ew_json_str(j, "phase", phase_name(&s));
        ew_json_str(j, "kernel", s.kernel);
        ew_json_num(j, "us", (double)r->step_ns[k] * 1e-3);
        ew_json_num(j, "flops", s.flops);
        ew_json_end(j);
    }
    ew_json_end(j);
}

static ew_err print_json(const char *name, const struct opts *o, const struct ew_plan *p,
                         const struct result *r)
{
    struct ew_json j;
    const struct ew_bench_stats *t = &r->time;
    ew_json_init(&j, stdout);
    ew_json_object(&j, NULL);
    ew_json_str(&j, "name", name);
    ew_json_str(&j, "mode", o->train ? "train" : "infer");
    ew_json_int(&j, "batch", o->net.batch);
    ew_json_int(&j, "threads", r->threads);
    ew_json_str(&j, "isa", r->isa);
    ew_json_str(&j, "device", ew_backend_info(ew_plan_backend(p))->device);
    ew_json_int(&j, "host_steps", r->plan.host_steps);
    ew_json_int(&j, "copied_bytes", (int64_t)r->plan.copied_bytes);
    ew_json_int(&j, "runs", t->n);
    ew_json_num(&j, "median_ms", t->median_ms);
    if (r->steps_ms > 0)
        ew_json_num(&j, "steps_ms", r->steps_ms);
    ew_json_num(&j, "min_ms", t->min_ms);
    ew_json_num(&j, "mean_ms", t->mean_ms);
    ew_json_num(&j, "p90_ms", t->p90_ms);
    ew_json_num(&j, "p99_ms", t->p99_ms);
    ew_json_num(&j, "max_ms", t->max_ms);
    ew_json_num(&j, "sd_ms", t->sd_ms);
    ew_percentiles_json(&j, &r->percentiles, &r->load);
    ew_json_num(&j, "images_per_s", r->images_per_s);
    ew_json_int(&j, "streams", r->streams);
    if (o->beside)
        ew_json_num(&j, "beside_per_s", (double)r->load.beside / r->load.wall_s);
    ew_json_num(&j, "wall_s", r->load.wall_s);
    ew_json_int(&j, "slow_runs", ew_load_slow_runs(&r->load, t->median_ms));
    ew_json_num(&j, "others_cpu_share", r->load.others);
    ew_json_int(&j, "planned_bytes", (int64_t)(r->plan.arena_bytes + r->plan.weight_bytes));
    ew_json_int(&j, "arena_bytes", (int64_t)r->plan.arena_bytes);
    ew_json_int(&j, "weight_bytes", (int64_t)r->plan.weight_bytes);
    ew_json_int(&j, "packed_bytes", (int64_t)r->plan.packed_bytes);
    ew_json_int(&j, "rss_bytes", r->resident);
    ew_json_int(&j, "rss_peak_bytes", r->resident_peak);
    ew_json_bool(&j, "recompute_cheap", r->plan.recompute_cheap);
    ew_json_int(&j, "segments", r->plan.segments);
    ew_json_int(&j, "swapped_layers", r->plan.swapped);
    ew_json_num(&j, "slower_share", r->plan.slower);
    ew_json_int(&j, "parts", r->plan.parts);
    ew_json_num(&j, "again_share", r->plan.again_share);
    if (o->profile)
        json_profile(&j, p, r);
    ew_json_end(&j);
    return ew_json_finish(&j);
}

/* ---- The store ---- */

static ew_err record(struct ew_recording *rec, const struct ew_graph *g, const struct result *r)
{
    const struct ew_bench_stats *t = &r->time;
    struct ew_metric_row m;
    ew_record_clear(EW_RECORD_METRIC, &m);
    m.name = "median_ms";
    m.value = t->median_ms;
    m.unit = "ms";
    m.source = "monotonic clock";
    m.quality = EW_QUALITY_MEASURED;
    m.n = t->n;
    m.spread = t->sd_ms;
    m.lowest = t->min_ms;
    m.highest = t->max_ms;
    m.better = EW_BETTER_LOWER;
    EW_TRY(ew_recording_put(rec, EW_RECORD_METRIC, &m));
    const struct {
        const char *name, *unit;
        double value;
        enum ew_better better;
    } all[] = {
        {"mean_ms", "ms", t->mean_ms, EW_BETTER_LOWER},
        {"p90_ms", "ms", t->p90_ms, EW_BETTER_LOWER},
        {"p99_ms", "ms", t->p99_ms, EW_BETTER_LOWER},
        {"images_per_s", "1/s", r->images_per_s, EW_BETTER_HIGHER},
        {"planned_bytes", "B", (double)(r->plan.arena_bytes + r->plan.weight_bytes),
         EW_BETTER_LOWER},
        {"rss_peak_bytes", "B", (double)r->resident_peak, EW_BETTER_LOWER},
    };
    for (size_t i = 0; i < EW_COUNT(all); i++)
        EW_TRY(ew_recording_metric(rec, all[i].name, all[i].value, all[i].unit, all[i].better));
    return ew_facts_record(rec, g, (double)(r->plan.arena_bytes + r->plan.weight_bytes));
}

/* ---- The command ---- */

/* Threads of a stream: as asked for, or the machine's divided among them. */
static int stream_threads(const struct opts *o)
{
    const int streams = (int)o->streams + ew_beside_count(o->beside);
    if (o->threads > 0 || streams == 1)
        return (int)o->threads;
    const int each = ew_pool_cpus() / streams;
    return each > 1 ? each : 1;
}

static ew_err bench_plans(const struct ew_cmd_call *c, struct ew_graph *g, struct streams *s,
                          struct ew_recording *rec)
{
    const struct opts *o = c->opts;
    const struct ew_plan *p = s->plans[0];
    const struct ew_side_opts so = {.net = {.width = 1, .batch = o->net.batch},
                                    .threads = stream_threads(o)};
    struct result r = {0};
    ew_err e = ew_percentiles_parse(o->percentiles ? o->percentiles : "", &r.percentiles);
    if (e == EW_OK)
        e = ew_beside_open(o->beside, &so, &s->beside);
    if (e == EW_OK)
        e = measure(o, g, s, &r);
    if (e == EW_OK)
        e = record(rec, g, &r);
    if (e == EW_OK && o->csv)
        e = ew_times_write_csv(&r.load, o->csv);
    if (e == EW_OK && o->html)
        e = ew_times_write_page(g, p, r.step_ns, o->html);
    if (e == EW_OK)
        e = c->json ? print_json(c->args[0], o, p, &r) : print_text(c->args[0], o, p, &r);
    if (e == EW_OK && o->html)
        EW_INFO("%s: written", o->html);
    if (e == EW_OK && o->csv)
        EW_INFO("%s: written", o->csv);
    if (e == EW_OK)
        ew_times_warn(&r.load, &r.time);
    ew_load_result_fini(&r.load);
    ew_beside_close(&s->beside);
    free(r.step_ns);
    return e;
}

static ew_err bench_graph(const struct ew_cmd_call *c, struct ew_graph *g, struct ew_tuner *tuner,
                          struct ew_recording *rec)
{
    const struct opts *o = c->opts;
    const struct ew_plan_opts po = {
        .tuner = tuner,
        .mode = o->train ? EW_PLAN_TRAIN : EW_PLAN_INFER,
        /* Passes need weights, and --tune memory. */
        .dry = o->why && o->train && !o->tune,
        .optimize = !o->reference && !o->plain,
        .consume =
            !o->train && !o->why && !o->reference && !o->plain && o->streams == 1 && !o->html,
        .update = o->train,
        .optimizer = {.kind = EW_OPTIMIZER_SGD, .lr = 1e-4, .momentum = 0.9},
        .memory_limit = (size_t)o->memory_limit,
        .backend = {.threads = stream_threads(o), .reference = o->reference}};
    struct streams s = {0};
    ew_err e = EW_OK;
    ew_status_line(o->tune ? "measuring kernels for %s ..." : "compiling %s ...", c->args[0]);
    for (; e == EW_OK && s.n < (int)o->streams; s.n += e == EW_OK)
        e = ew_plan_compile(g, &po, &s.plans[s.n]);
    ew_status_clear();
    if (e == EW_OK)
        e = o->why ? ew_bench_why(s.plans[0], o->why, o->tune, c->json)
                   : bench_plans(c, g, &s, rec);
    for (int i = 0; i < s.n; i++)
        ew_plan_free(s.plans[i]);
    return e;
}

/* ---- Several, and protocols ---- */

static ew_err run_several(struct ew_cmd_call *c, struct ew_tuner *tuner)
{
    const struct opts *o = c->opts;
    const struct ew_compare_opts co = {.side = {.net = o->net,
                                                .threads = (int)o->threads,
                                                .plain = o->plain,
                                                .reference = o->reference,
                                                .tuner = tuner},
                                       .bench = bench_opts(o),
                                       .eval = o->eval,
                                       .images = o->images,
                                       .power_from = o->power_from,
                                       .power_s = o->quick ? 0 : o->power_seconds,
                                       .quick = o->quick,
                                       .talk = stderr};
    if (o->protocol == PROTOCOL_ENGINE)
        return ew_bench_protocol_engine(c, &co);
    if (o->protocol == PROTOCOL_SCALE)
        return ew_bench_protocol_scale(c, &co);
    return ew_bench_compare(c, &co, o->db);
}

static ew_err check_several(const struct ew_cmd_call *c)
{
    const struct opts *o = c->opts;
    EW_CHECK(
        !o->train && !o->profile && !o->why && !o->memory_limit && !o->simulate && !o->html,
        EW_ERR_USAGE,
        "--train, --profile, --html, --why, --memory-limit and --simulate are for one network");
    EW_CHECK(o->peer == PEER_NONE, EW_ERR_USAGE, "--compare-with is for one network");
    EW_CHECK(o->duration <= 0 && o->qps <= 0 && o->streams == 1 && !o->percentiles && !o->csv &&
                 !o->beside,
             EW_ERR_USAGE,
             "--duration, --qps, --streams, --beside, --percentiles and --csv are for one network");
    EW_CHECK(!o->db || o->protocol == PROTOCOL_NONE, EW_ERR_USAGE,
             "--db is for networks; 'edgewise study' keeps protocols");
    EW_CHECK(o->protocol == PROTOCOL_NONE || (!o->plain && !o->reference && !o->eval), EW_ERR_USAGE,
             "a protocol says itself what runs");
    return EW_OK;
}

/* ---- One ---- */

/* Streams of an engine share its weights: the first is the side's, the others are contexts more. */
static ew_err bench_contexts(const struct ew_cmd_call *c, struct ew_side *side,
                             struct ew_recording *rec)
{
    const struct opts *o = c->opts;
    struct streams s = {.plans = {side->p}, .n = 1};
    ew_err e = EW_OK;
    while (e == EW_OK && s.n < (int)o->streams) {
        struct ew_context **x = &s.contexts[s.n];
        e = ew_context_new(side->network.engine, stream_threads(o), x);
        if (e == EW_OK && side->batch > 1)
            e = ew_context_set_batch(*x, side->batch);
        s.plans[s.n] = e == EW_OK ? ew_context_plan(*x) : NULL;
        s.n++;
    }
    if (e == EW_OK)
        e = bench_plans(c, side->g, &s, rec);
    for (int i = 1; i < s.n; i++)
        ew_context_free(s.contexts[i]);
    return e;
}

/* The plan of an engine is there already. */
static ew_err bench_engine(const struct ew_cmd_call *c, struct ew_recording *rec)
{
    const struct opts *o = c->opts;
    const struct ew_side_opts so = {
        .net = o->net, .threads = stream_threads(o), .plain = o->plain, .reference = o->reference};
    struct ew_side s;
    EW_CHECK(!o->train && !o->tune && !o->memory_limit, EW_ERR_USAGE,
             "%s: is compiled: --train, --tune and --memory-limit are too late", c->args[0]);
    ew_err e = ew_side_load(c->args[0], &so, &s);
    if (e == EW_OK)
        e = o->why ? ew_bench_why(s.p, o->why, false, c->json) : bench_contexts(c, &s, rec);
    ew_side_fini(&s);
    return e;
}

static ew_err bench_network(const struct ew_cmd_call *c, struct ew_tuner *tuner,
                            struct ew_recording *rec)
{
    const struct opts *o = c->opts;
    const struct ew_network_how how = {.opts = o->net, .seed = 1};
    struct ew_network n;
    EW_CHECK(o->train || !o->memory_limit || !(o->tune || o->reference), EW_ERR_USAGE,
             "--memory-limit chooses kernels by what they pack: not with --tune or --reference");
    ew_status_line("loading %s ...", c->args[0]);
    ew_err e = ew_network_open(c->args[0], &how, &n);
    ew_status_clear();
    if (e == EW_OK && o->train)
        e = ew_objective_add(n.graph);
    if (e == EW_OK)
        e = bench_graph(c, n.graph, tuner, rec);
    ew_network_close(&n);
    return e;
}

/* Nothing runs: shapes are enough. */
static ew_err bench_simulated(const struct ew_cmd_call *c, struct ew_recording *rec)
{
    const struct opts *o = c->opts;
    const struct ew_network_how how = {.opts = o->net, .seed = 1, .shapes = true};
    struct ew_simulated s;
    struct ew_simulated_run r;
    struct ew_network n = {0};
    ew_err e = ew_simulated_init(&s, o->simulate);
    if (e == EW_OK)
        e = ew_network_open(c->args[0], &how, &n);
    if (e == EW_OK && o->train)
        e = ew_objective_add(n.graph);
    if (e == EW_OK)
        e = ew_simulated_plan(&s, n.graph, o->train, &r);
    if (e == EW_OK)
        e = ew_simulated_record(rec, &r);
    if (e == EW_OK)
        e = ew_facts_record(rec, n.graph, (double)r.load.memory_bytes);
    if (e == EW_OK)
        e = ew_simulated_show(&s, &r, c->args[0], c->json);
    ew_network_close(&n);
    ew_simulated_fini(&s);
    return e;
}

static ew_err run_peer(struct ew_cmd_call *c, struct ew_tuner *tuner)
{
    const struct opts *o = c->opts;
    const struct ew_peer_opts po = {
        .net = o->net, .bench = bench_opts(o), .threads = (int)o->threads, .tuner = tuner};
    EW_CHECK(!o->train && !o->profile && !o->html && !o->why && !o->simulate && !o->memory_limit &&
                 !o->db && !o->csv && !o->percentiles && o->streams == 1 && o->qps <= 0 &&
                 o->duration <= 0,
             EW_ERR_USAGE, "--compare-with takes --threads, --batch, --warmup, --iters and --tune");
    return ew_bench_peer(c, &po);
}

static ew_err run_one(struct ew_cmd_call *c, struct ew_tuner *tuner)
{
    const struct opts *o = c->opts;
    struct ew_recording rec;
    if (o->peer == PEER_ONNXRUNTIME)
        return run_peer(c, tuner);
    EW_CHECK(!o->why || !o->db, EW_ERR_USAGE, "--why measures nothing that --db could keep");
    EW_CHECK((o->streams == 1 && !o->beside) || !o->train, EW_ERR_USAGE,
             "--streams and --beside are for inference");
    EW_CHECK(!o->eval, EW_ERR_USAGE, "--eval is for several networks; edgewise eval is for one");
    EW_CHECK(!o->html || (!o->train && !o->why), EW_ERR_USAGE, "--html is for inference");
    EW_CHECK(!o->simulate || (!o->why && !o->profile && !o->html && !o->tune && !o->memory_limit),
             EW_ERR_USAGE,
             "--simulate runs nothing that --why, --profile, --html, --tune or --memory-limit "
             "could see");
    EW_CHECK(
        !o->simulate || (o->duration <= 0 && o->qps <= 0 && o->streams == 1 && !o->beside),
        EW_ERR_USAGE,
        "--simulate runs nothing: --duration, --qps, --streams and --beside do not go with it");
    EW_TRY(ew_cmd_record(c, o->db, &rec));
    ew_err e = EW_OK;
    if (o->simulate)
        e = bench_simulated(c, &rec);
    else if (ew_engine_file_is(c->args[0]))
        e = bench_engine(c, &rec);
    else
        e = bench_network(c, tuner, &rec);
    return ew_recording_end(&rec, e);
}

/* On a DPU times are modelled; a profile is of the emulation, which runs here. */
static bool is_modelled(const struct opts *o)
{
    return ew_dpu_device() && !o->train && !o->profile && !o->html && !o->why && !o->plain &&
           !o->reference && !o->tune;
}

static ew_err dpu_protocol(const struct ew_cmd_call *c)
{
    const struct opts *o = c->opts;
    if (o->eval)
        return ew_bench_dpu_accuracy(c, ew_dpu_device(), o->eval, o->db);
    EW_CHECK(!o->db, EW_ERR_USAGE,
             "--db: the protocol is a table; `edgewise study scale --only dpu` keeps its runs");
    return ew_bench_dpu_scale(c, ew_dpu_device());
}

static ew_err run(struct ew_cmd_call *c)
{
    const struct opts *o = c->opts;
    EW_CHECK((!o->sweep && !o->picture) || ew_dpu_device(), EW_ERR_USAGE,
             "--sweep and --picture are for --device dpu");
    EW_CHECK(!o->picture || o->sweep, EW_ERR_USAGE, "--picture is of --sweep");
    if (is_modelled(o) && o->protocol == PROTOCOL_SCALE)
        return dpu_protocol(c);
    if (is_modelled(o) && o->protocol == PROTOCOL_NONE && !o->eval) {
        const struct ew_dpu_opts d = {.device = ew_dpu_device(),
                                      .net = o->net,
                                      .sweep = o->sweep,
                                      .picture = o->picture,
                                      .db = o->db};
        return ew_bench_dpu(c, &d);
    }
    const bool several = c->n_args > 1 || o->protocol != PROTOCOL_NONE;
    EW_CHECK(several || c->n_args == 1, EW_ERR_USAGE, "bench needs a network");
    if (several)
        EW_TRY(check_several(c));
    struct ew_tuner *tuner = NULL;
    char path[512];
    if (o->tune)
        EW_TRY(ew_tuner_open(ew_tuner_default_path(path), &tuner));
    const ew_err e = several ? run_several(c, tuner) : run_one(c, tuner);
    const ew_err closed = ew_tuner_close(tuner);
    return e == EW_OK ? closed : e;
}

const struct ew_cmd ew_cmd_bench = {
    .name = "bench",
    .group = EW_CMD_MEASURE,
    .summary = "how fast a network runs or trains here, and where the time goes",
    .args = "[NAME|FILE.onnx|CKPT|FILE.ewe...]",
    .about =
        "Runs the network on random inputs and weights and prints the distribution of its times,\n"
        "its speed, and its memory as planned and as the system sees it.\n"
        "Several are run in turns and compared: times, sizes, memory, accuracy, power.\n"
        "--protocol engine is the engine study's table, --protocol scale the scaling study's.\n"
        "On --device dpu times are those of a model of the FPGA accelerator, layer by layer; with\n"
        "--profile the emulation itself is timed.",
    .examples = "bench resnet50 --threads 1\n"
                "bench mobilenet_v2 --batch 8 --profile\n"
                "bench mobilenet_v2 --html where-the-time-goes.html\n"
                "bench net.ewe --streams 2 --qps 100 --duration 30 --percentiles 50,99,99.9\n"
                "bench net.ewe --beside mobilenet_v2,squeezenet1_1\n"
                "bench net.onnx --compare-with onnxruntime --threads 1\n"
                "bench resnet18 --why layer1.0.conv1 --tune\n"
                "bench net.onnx net.ewe net-int8.ewe --eval cifar10:1000\n"
                "bench --protocol engine\n"
                "bench resnet50 --device dpu:kv260\n"
                "bench resnet50 --device dpu --sweep --picture sweep.svg\n"
                "bench resnet18 --train --batch 16 --memory-limit 300M\n"
                "bench mobilenet_v2 --simulate jetson-nano",
    .min_args = 0,
    .max_args = -1,
    .opts_size = sizeof(struct opts),
    .opts = table,
    .run = run,
};
