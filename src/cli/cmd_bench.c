/* SPDX-License-Identifier: Apache-2.0 */
/* edgewise bench: time and memory of inference or training steps, and a profile. */
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/log.h"
#include "base/progress.h"
#include "cli/bench_against.h"
#include "cli/bench_cmd.h"
#include "cli/bench_dpu.h"
#include "cli/bench_peer.h"
#include "cli/bench_show.h"
#include "cli/bench_why.h"
#include "cli/cmd.h"
#include "cli/device_opt.h"
#include "cli/recorded.h"
#include "cli/simulated.h"
#include "cli/status_line.h"
#include "graph/facts.h"
#include "model/objective.h"

enum { PROTOCOL_NONE, PROTOCOL_ENGINE, PROTOCOL_SCALE };
static const char *const protocols[] = {"none", "engine", "scale", NULL};
enum { PEER_NONE, PEER_ONNXRUNTIME };
static const char *const peers[] = {"none", "onnxruntime", NULL};

/* clang-format off */
static const struct ew_field table[] = {
    EW_NETWORK_FIELDS(struct ew_bench_args, net),
    {.name = "train", .type = EW_FIELD_BOOL, .offset = offsetof(struct ew_bench_args, train),
     .help = "time training steps: forward, backward and SGD update"},
    EW_DEVICE_FIELD(struct ew_bench_args),
    EW_PRECISION_FIELD(struct ew_bench_args),
    EW_FAST_FIELD(struct ew_bench_args),
    {.name = "threads", .type = EW_FIELD_INT, .offset = offsetof(struct ew_bench_args, threads), .def = "0",
     .min = 0, .max = 256, .metavar = "N", .help = "number of threads; 0: one per CPU"},
    {.name = "warmup", .type = EW_FIELD_INT, .offset = offsetof(struct ew_bench_args, warmup), .def = "20",
     .min = 0, .max = 1000000, .metavar = "N", .help = "untimed runs before the measurement"},
    {.name = "iters", .type = EW_FIELD_INT, .offset = offsetof(struct ew_bench_args, iters), .def = "80",
     .min = 1, .max = 1000000, .metavar = "N", .help = "timed runs"},
    {.name = "trials", .type = EW_FIELD_INT, .offset = offsetof(struct ew_bench_args, trials), .def = "1",
     .min = 1, .max = 1000, .metavar = "N",
     .help = "several networks: rounds of warm-up and timed runs; one network: N times the runs"},
    {.name = "duration", .type = EW_FIELD_FLOAT, .offset = offsetof(struct ew_bench_args, duration),
     .def = "0", .min = 0, .max = 86400, .metavar = "S",
     .help = "one network: keep running for at least this many seconds, beyond --iters"},
    {.name = "streams", .type = EW_FIELD_INT, .offset = offsetof(struct ew_bench_args, streams), .def = "1",
     .min = 1, .max = 64, .metavar = "N",
     .help = "one network: number of concurrent instances; the threads are divided among them"},
    {.name = "beside", .type = EW_FIELD_STR, .offset = offsetof(struct ew_bench_args, beside),
     .metavar = "NAME,...",
     .help = "one network: run these at the same time on the same device, untimed, as background "
     "load; the threads are divided among all"},
    {.name = "qps", .type = EW_FIELD_FLOAT, .offset = offsetof(struct ew_bench_args, qps), .def = "0",
     .min = 0, .max = 1e6, .metavar = "R",
     .help = "one network: requests arrive at this rate, and queueing counts as latency; 0: back "
     "to back"},
    {.name = "percentiles", .type = EW_FIELD_STR, .offset = offsetof(struct ew_bench_args, percentiles),
     .metavar = "P,...", .help = "one network: latency percentiles to print, as 50,95,99.9"},
    {.name = "csv", .type = EW_FIELD_STR, .offset = offsetof(struct ew_bench_args, csv), .metavar = "FILE",
     .help = "one network: write the time of every run"},
    {.name = "memory-limit", .type = EW_FIELD_SIZE, .offset = offsetof(struct ew_bench_args, memory_limit),
     .min = 0, .max = 1e15, .metavar = "BYTES",
     .help = "fit into this much memory, weights included, and print how and at what cost"},
    {.name = "reference", .type = EW_FIELD_BOOL, .offset = offsetof(struct ew_bench_args, reference),
     .help = "unoptimised reference kernels and no fusion, for comparison"},
    {.name = "tune", .type = EW_FIELD_BOOL, .offset = offsetof(struct ew_bench_args, tune),
     .help = "choose kernels by measuring them here, instead of by rules; the result is "
     "remembered"},
    {.name = "profile", .type = EW_FIELD_BOOL, .offset = offsetof(struct ew_bench_args, profile),
     .help = "table of all steps: time, share, GFLOP/s, percentage of the float32 peak, kernel"},
    {.name = "html", .type = EW_FIELD_STR, .offset = offsetof(struct ew_bench_args, html),
     .metavar = "FILE",
     .help = "write an interactive page of the graph with the time of every layer"},
    {.name = "why", .type = EW_FIELD_STR, .offset = offsetof(struct ew_bench_args, why), .metavar = "STEP",
     .help = "instead of timing: candidate kernels of this step (a name or number of --profile), "
     "their estimates, with --tune their times, and why one was chosen"},
    {.name = "plain", .type = EW_FIELD_BOOL, .offset = offsetof(struct ew_bench_args, plain),
     .help = "run the graph as it is: one step per operator, nothing folded or fused"},
    {.name = "protocol", .type = EW_FIELD_ENUM, .offset = offsetof(struct ew_bench_args, protocol),
     .def = "none", .choices = protocols,
     .help = "follow a study's protocol: networks before and after compiling (engine), or at "
     "four widths (scale)"},
    {.name = "compare-with", .type = EW_FIELD_ENUM, .offset = offsetof(struct ew_bench_args, peer),
     .def = "none", .choices = peers,
     .help = "one network: time the same file in another runtime in interleaved rounds; its "
     "library must be installed ($EW_ONNXRUNTIME names the file)"},
    {.name = "quick", .type = EW_FIELD_BOOL, .offset = offsetof(struct ew_bench_args, quick),
     .help = "few runs and no tuning, for a quick check"},
    {.name = "sweep", .type = EW_FIELD_BOOL, .offset = offsetof(struct ew_bench_args, sweep),
     .help = "--device dpu: Pareto-optimal sizes, core counts, clocks and memories, modelled"},
    {.name = "picture", .type = EW_FIELD_STR, .offset = offsetof(struct ew_bench_args, picture),
     .metavar = "FILE.svg",
     .help = "--sweep: plot images/s against DSP slices, and images/J against latency"},
    {.name = "eval", .type = EW_FIELD_STR, .offset = offsetof(struct ew_bench_args, eval),
     .metavar = "DATA[:N]", .help = "several networks: also measure accuracy on this data set"},
    EW_PREPROCESS_FIELDS(struct ew_bench_args, images),
    {.name = "power-seconds", .type = EW_FIELD_FLOAT,
     .offset = offsetof(struct ew_bench_args, power_seconds), .def = "3", .min = 0, .max = 3600,
     .metavar = "S",
     .help = "how long the idle machine and each network are measured for power and energy, where "
     "there is a power sensor; 0: not measured"},
    {.name = "power-from", .type = EW_FIELD_STR, .offset = offsetof(struct ew_bench_args, power_from),
     .metavar = "CMD|FILE|-", .help = "external meter: lines of [timestamp] watts"},
    {.name = "against", .type = EW_FIELD_STR, .offset = offsetof(struct ew_bench_args, against),
     .metavar = "FILE",
     .help = "one network: compare with its newest run in this database that had the same options "
     "(see --db)"},
    {.name = "max-slowdown", .type = EW_FIELD_FLOAT,
     .offset = offsetof(struct ew_bench_args, max_slowdown), .def = "0", .min = 0, .max = 1e6,
     .metavar = "PERCENT",
     .help = "--against, for scripts: exit with status 1 if the shortest run took this much longer "
     "than the baseline's; 0: only print"},
    EW_SIMULATE_FIELD(struct ew_bench_args),
    EW_RECORDING_FIELD(struct ew_bench_args),
    EW_FIELD_END};
/* clang-format on */

/* The numbers of runs and trials: by default those of the study. */
static struct ew_bench_opts bench_opts(const struct ew_bench_args *o)
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

/* ---- The store ---- */

static ew_err record_power(struct ew_recording *rec, const struct ew_bench_power *p)
{
    if (p->absent)
        return EW_OK;
    EW_TRY(ew_recording_metric(rec, "power_w", p->mean_w, "W", EW_BETTER_LOWER));
    EW_TRY(ew_recording_derived(rec, "dynamic_w", p->mean_w - p->idle_w, "W", EW_BETTER_LOWER));
    EW_TRY(ew_recording_derived(rec, "images_per_s_per_w", p->images_per_s / p->mean_w, "1/J",
                                EW_BETTER_HIGHER));
    return ew_recording_derived(rec, "image_j", p->mean_w / p->images_per_s, "J", EW_BETTER_LOWER);
}

static ew_err record(struct ew_recording *rec, const struct ew_graph *g,
                     const struct ew_single_result *r)
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
    EW_TRY(record_power(rec, &r->power));
    return ew_facts_record(rec, g, (double)(r->plan.arena_bytes + r->plan.weight_bytes));
}

/* ---- The command ---- */

/* Trials separate networks in comparisons; a single network runs them in one series. */
static ew_err measure(const struct ew_cmd_call *c, struct ew_single_bench *b,
                      struct ew_single_result *r)
{
    const struct ew_bench_args *o = c->opts;
    const struct ew_bench_opts n = bench_opts(o);
    struct ew_progress bar;
    const struct ew_single_runs runs = {.load = {.warmup = n.warmup,
                                                 .iters = n.iters * n.trials,
                                                 .duration_s = o->duration,
                                                 .qps = o->qps},
                                        .profile = o->profile || o->html,
                                        .tick = show_tick,
                                        .ctx = &bar};
    ew_progress_begin(&bar, stderr, "bench", runs.load.iters);
    const ew_err e = ew_single_bench_run(b, &runs, r);
    ew_progress_end(&bar);
    if (o->quick)
        r->power.absent = "not measured with --quick";
    if (e != EW_OK || o->power_seconds <= 0 || o->quick)
        return e;
    ew_status_line("measuring power of %s ...", c->args[0]);
    const ew_err measured =
        ew_single_bench_power(b, &runs.load, o->power_from, o->power_seconds, r);
    ew_status_clear();
    return measured;
}

/* Where a single benchmark goes, and what it is compared with. */
struct output {
    struct ew_recording rec;
    struct ew_baseline baseline;
};

static ew_err bench_plans(const struct ew_cmd_call *c, struct ew_single_bench *b,
                          struct output *out)
{
    const struct ew_bench_args *o = c->opts;
    struct ew_plan *p = b->plans[0];
    struct ew_bench_shown shown = {.name = c->args[0], .o = o, .p = p, .baseline = out->baseline};
    struct ew_single_result *r = &shown.r;
    EW_TRY(ew_percentiles_parse(o->percentiles ? o->percentiles : "", &shown.percentiles));
    ew_err e = measure(c, b, r);
    if (e == EW_OK)
        e = record(&out->rec, b->g, r);
    if (e == EW_OK && o->csv)
        e = ew_times_write_csv(&r->load, o->csv);
    if (e == EW_OK && o->html)
        e = ew_times_write_page(b->g, p, r->step_ns, o->html);
    if (e == EW_OK)
        e = c->json ? ew_bench_print_json(&shown) : ew_bench_print(&shown);
    if (e == EW_OK && o->html)
        EW_INFO("%s: written", o->html);
    if (e == EW_OK && o->csv)
        EW_INFO("%s: written", o->csv);
    if (e == EW_OK)
        ew_times_warn(&r->load, &r->time);
    if (e == EW_OK && o->max_slowdown > 0) /* the run is recorded as done, whatever the result */
        e = ew_recording_end(&out->rec, EW_OK);
    if (e == EW_OK)
        e = ew_baseline_check(&shown);
    ew_single_result_fini(r);
    return e;
}

/* ---- Several, and protocols ---- */

static ew_err run_several(struct ew_cmd_call *c, struct ew_tuner *tuner)
{
    const struct ew_bench_args *o = c->opts;
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
    const struct ew_bench_args *o = c->opts;
    EW_CHECK(
        !o->train && !o->profile && !o->why && !o->memory_limit && !o->simulate && !o->html,
        EW_ERR_USAGE,
        "--train, --profile, --html, --why, --memory-limit and --simulate are for one network");
    EW_CHECK(o->peer == PEER_NONE, EW_ERR_USAGE, "--compare-with is for one network");
    EW_CHECK(o->duration <= 0 && o->qps <= 0 && o->streams == 1 && !o->percentiles && !o->csv &&
                 !o->beside && !o->against,
             EW_ERR_USAGE,
             "--duration, --qps, --streams, --beside, --percentiles, --csv and --against are for "
             "one network");
    EW_CHECK(!o->db || o->protocol == PROTOCOL_NONE, EW_ERR_USAGE,
             "--db records networks, not protocols; 'edgewise study' records those");
    EW_CHECK(o->protocol == PROTOCOL_NONE || (!o->plain && !o->reference && !o->eval), EW_ERR_USAGE,
             "--plain, --reference and --eval exclude --protocol, which sets what runs");
    return EW_OK;
}

/* ---- One ---- */

static ew_err bench_network(const struct ew_cmd_call *c, struct ew_tuner *tuner, struct output *out)
{
    const struct ew_bench_args *o = c->opts;
    const struct ew_single_opts so = {.net = o->net,
                                      .train = o->train,
                                      .reference = o->reference,
                                      .plain = o->plain,
                                      .keep_weights = o->why || o->html,
                                      .dry =
                                          o->why && o->train && !o->tune, /* passes need weights */
                                      .streams = (int)o->streams,
                                      .threads = (int)o->threads,
                                      .beside = o->beside,
                                      .memory_limit = (size_t)o->memory_limit,
                                      .tuner = tuner};
    struct ew_single_bench b;
    EW_CHECK(o->train || !o->memory_limit || !(o->tune || o->reference), EW_ERR_USAGE,
             "--memory-limit chooses kernels by their memory: not with --tune or --reference");
    ew_status_line(o->tune ? "measuring kernels for %s ..." : "compiling %s ...", c->args[0]);
    ew_err e = ew_single_bench_open(c->args[0], &so, &b);
    ew_status_clear();
    if (e == EW_OK)
        e = o->why ? ew_bench_why(b.plans[0], o->why, o->tune, c->json) : bench_plans(c, &b, out);
    ew_single_bench_close(&b);
    return e;
}

/* Predicts times from shapes; nothing is executed. */
static ew_err bench_simulated(const struct ew_cmd_call *c, struct ew_recording *rec)
{
    const struct ew_bench_args *o = c->opts;
    const struct ew_network_open_opts how = {.opts = o->net, .seed = 1, .shapes = true};
    struct ew_simulated s;
    struct ew_simulated_run r;
    struct ew_network n = {0};
    ew_err e = ew_fail_in(ew_simulated_init(&s, o->simulate), "--simulate");
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
    const struct ew_bench_args *o = c->opts;
    const struct ew_peer_opts po = {
        .net = o->net, .bench = bench_opts(o), .threads = (int)o->threads, .tuner = tuner};
    EW_CHECK(!o->train && !o->profile && !o->html && !o->why && !o->simulate && !o->memory_limit &&
                 !o->db && !o->against && !o->csv && !o->percentiles && o->streams == 1 &&
                 o->qps <= 0 && o->duration <= 0,
             EW_ERR_USAGE, "--compare-with takes --threads, --batch, --warmup, --iters and --tune");
    return ew_bench_peer(c, &po);
}

static ew_err run_one(struct ew_cmd_call *c, struct ew_tuner *tuner)
{
    const struct ew_bench_args *o = c->opts;
    struct output out;
    if (o->peer == PEER_ONNXRUNTIME)
        return run_peer(c, tuner);
    EW_CHECK(!o->why || !o->db, EW_ERR_USAGE, "--why has no result that --db could record");
    EW_CHECK((o->streams == 1 && !o->beside) || !o->train, EW_ERR_USAGE,
             "--streams and --beside are for inference");
    EW_CHECK(!o->eval, EW_ERR_USAGE, "--eval is for several networks; edgewise eval is for one");
    EW_CHECK(!o->html || (!o->train && !o->why), EW_ERR_USAGE, "--html is for inference");
    EW_CHECK(
        !o->simulate || (!o->why && !o->profile && !o->html && !o->tune && !o->memory_limit),
        EW_ERR_USAGE,
        "--simulate runs nothing: not with --why, --profile, --html, --tune or --memory-limit");
    EW_CHECK(!o->against || (!o->simulate && !o->why), EW_ERR_USAGE,
             "--against compares measured times: not with --simulate or --why");
    EW_CHECK(!o->simulate || (o->duration <= 0 && o->qps <= 0 && o->streams == 1 && !o->beside),
             EW_ERR_USAGE,
             "--simulate runs nothing: not with --duration, --qps, --streams or --beside");
    EW_TRY(ew_baseline_find(c, &out.baseline));
    EW_TRY(ew_cmd_record(c, o->db, &out.rec));
    ew_err e = EW_OK;
    if (o->simulate)
        e = bench_simulated(c, &out.rec);
    else
        e = bench_network(c, tuner, &out);
    return ew_recording_end(&out.rec, e);
}

/* On a DPU times are modelled, except with a profile, which measures the emulation. */
static bool is_modelled(const struct ew_bench_args *o)
{
    return ew_dpu_device() && !o->train && !o->profile && !o->html && !o->why && !o->plain &&
           !o->reference && !o->tune;
}

static ew_err dpu_protocol(const struct ew_cmd_call *c)
{
    const struct ew_bench_args *o = c->opts;
    if (o->eval)
        return ew_bench_dpu_accuracy(c, ew_dpu_device(), o->eval, o->db);
    EW_CHECK(!o->db, EW_ERR_USAGE,
             "--db: the protocol only prints a table; `edgewise study scale --only dpu` records "
             "its runs");
    return ew_bench_dpu_scale(c, ew_dpu_device());
}

static ew_err run(struct ew_cmd_call *c)
{
    const struct ew_bench_args *o = c->opts;
    EW_CHECK((!o->sweep && !o->picture) || ew_dpu_device(), EW_ERR_USAGE,
             "--sweep and --picture are for --device dpu");
    EW_CHECK(!o->picture || o->sweep, EW_ERR_USAGE, "--picture needs --sweep");
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
    char path[EW_TUNE_PATH];
    if (o->tune)
        EW_TRY(ew_tuner_open(ew_tuner_default_path(path), &tuner));
    const ew_err e = several ? run_several(c, tuner) : run_one(c, tuner);
    ew_tuner_close(tuner);
    return e;
}

const struct ew_cmd ew_cmd_bench = {
    .name = "bench",
    .group = EW_CMD_MEASURE,
    .summary = "latency, throughput, memory and layer times of a network",
    .args = "[NAME|FILE.onnx|CKPT|FILE.ewe...]",
    .about = "Times the network on random inputs and prints the latency distribution, throughput, "
             "memory as planned and as the system reports it, and power and energy per image "
             "where there is a sensor.\n"
             "Several networks are timed in interleaved rounds and compared: latency, file size, "
             "memory, accuracy, power.\n"
             "--protocol engine prints the table of the ENGINE study, --protocol scale that of "
             "the SCALE study.\n"
             "With --device dpu the times come from a model of the FPGA accelerator, layer by "
             "layer; --profile times the emulation itself.",
    .examples = "bench resnet50 --threads 1\n"
                "bench mobilenet_v2 --batch 8 --profile\n"
                "bench mobilenet_v2 --html where-the-time-goes.html\n"
                "bench net.ewe --streams 2 --qps 100 --duration 30 --percentiles 50,99,99.9\n"
                "bench net.ewe --beside mobilenet_v2,squeezenet1_1\n"
                "bench net.onnx --compare-with onnxruntime --threads 1\n"
                "bench net.onnx --db baseline.db\n"
                "bench net.onnx --against baseline.db --max-slowdown 10\n"
                "bench resnet18 --why layer1.0.conv1 --tune\n"
                "bench net.onnx net.ewe net-int8.ewe --eval cifar10:1000\n"
                "bench --protocol engine\n"
                "bench resnet50 --device dpu:kv260\n"
                "bench resnet50 --device dpu --sweep --picture sweep.svg\n"
                "bench resnet18 --train --batch 16 --memory-limit 300M\n"
                "bench mobilenet_v2 --simulate jetson-nano",
    .min_args = 0,
    .max_args = -1,
    .opts_size = sizeof(struct ew_bench_args),
    .opts = table,
    .run = run,
};
