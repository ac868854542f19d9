/* SPDX-License-Identifier: Apache-2.0 */
/* edgewise demo: the main functions in about a minute, on any machine. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "bench/bench.h"
#include "cli/cmd.h"
#include "cli/demo_study.h"
#include "cli/device_opt.h"
#include "data/get.h"
#include "graph/facts.h"
#include "report/text_table.h"
#include "train/trainer.h"

struct opts {
    const char *device;
    const char *network, *output;
    int64_t threads;
};

/* clang-format off */
static const struct ew_field table[] = {
    {.name = "network", .type = EW_FIELD_STR, .offset = offsetof(struct opts, network),
     .def = "mobilenet_v2", .metavar = "NAME", .help = "the zoo network to show"},
    EW_DEVICE_FIELD(struct opts),
    {.name = "threads", .type = EW_FIELD_INT, .offset = offsetof(struct opts, threads), .def = "0",
     .min = 0, .max = 256, .metavar = "N", .help = "number of threads; 0: one per CPU"},
    {.name = "output", .type = EW_FIELD_STR, .offset = offsetof(struct opts, output),
     .def = "edgewise-demo", .metavar = "DIR", .letter = 'o',
     .help = "folder for the trained network, the results and the report"},
    EW_FIELD_END};
/* clang-format on */

/* Results of the steps, for --json. */
struct demo_results {
    const struct opts *o;
    struct ew_graph *g, *read; /* as built; as read back from ONNX */
    int64_t file_bytes;
    struct ew_facts facts;
    struct ew_bench_stats slow, fast;
    struct ew_plan_stats plan;
    double
        difference; /* largest absolute difference of the outputs, relative to the largest output */
    char data[32];  /* name of the data set */
    struct ew_train_result trained;
    struct ew_demo_study study;
};

#define NETWORK_FILE "network.onnx"
#define TRAIN_FOLDER "trained"
#define TRAIN_BATCH  16
#define TRAIN_EPOCHS 2

/* ---- Steps ---- */

static ew_err build(struct demo_results *s)
{
    EW_TRY(ew_model_build(s->o->network, NULL, &s->g));
    EW_TRY(ew_model_init(s->o->network, 1, s->g));
    return ew_graph_facts(s->g, &s->facts);
}

static ew_err exchange(struct demo_results *s)
{
    EW_TRY(ew_onnx_save(s->g, NETWORK_FILE, NULL));
    struct stat st;
    if (stat(NETWORK_FILE, &st) == 0)
        s->file_bytes = (int64_t)st.st_size;
    return ew_onnx_load(NETWORK_FILE, NULL, &s->read);
}

static ew_err compile(const struct demo_results *s, struct ew_graph *g, bool reference,
                      struct ew_plan **out)
{
    const struct ew_plan_opts o = {
        .optimize = !reference,
        .backend = {.threads = reference ? 1 : (int)s->o->threads, .reference = reference}};
    return ew_plan_compile(g, &o, out);
}

/* Times both plans, and compares the outputs of the optimised ONNX network with the reference. */
static ew_err compare(struct demo_results *s, struct ew_plan *slow, struct ew_plan *fast)
{
    ew_bench_fill(slow, s->g, 1, 7);
    /* The ONNX network takes NCHW, the built one NHWC. */
    const struct ew_tensor *x = ew_plan_input(slow, 0);
    struct ew_tensor *y = ew_plan_input(fast, 0);
    const int64_t h = x->shape.dim[1], w = x->shape.dim[2], c = x->shape.dim[3];
    for (int64_t i = 0; i < h * w; i++)
        for (int64_t k = 0; k < c; k++)
            ((float *)y->data)[k * h * w + i] = ((const float *)x->data)[i * c + k];
    const struct ew_bench_opts once = {.iters = 1, .trials = 1};
    const struct ew_bench_opts many = {.warmup = 5, .iters = 30, .trials = 1};
    EW_TRY(ew_bench_run(slow, &once, NULL, NULL, &s->slow));
    EW_TRY(ew_bench_run(fast, &many, NULL, NULL, &s->fast));
    ew_plan_stats(fast, &s->plan);
    const float *a = ew_plan_output(slow, 0)->data, *b = ew_plan_output(fast, 0)->data;
    double worst = 0, most = 1e-30;
    for (int64_t i = 0; i < ew_tensor_count(ew_plan_output(slow, 0)); i++) {
        worst = fmax(worst, fabs((double)a[i] - (double)b[i]));
        most = fmax(most, fabs((double)a[i]));
    }
    s->difference = worst / most;
    return EW_OK;
}

static ew_err run_both(struct demo_results *s)
{
    struct ew_plan *slow = NULL, *fast = NULL;
    ew_err e = compile(s, s->g, true, &slow);
    if (e == EW_OK)
        e = compile(s, s->read, false, &fast);
    if (e == EW_OK)
        e = compare(s, slow, fast);
    ew_plan_free(slow);
    ew_plan_free(fast);
    return e;
}

/* MNIST if it is stored or can be downloaded, else generated digits. */
static ew_err open_digits(struct demo_results *s, struct ew_dataset **out)
{
    struct ew_get_result got = {0};
    snprintf(s->data, sizeof(s->data), "mnist");
    if (ew_dataset_open("mnist", out) == EW_OK)
        return EW_OK;
    fprintf(stderr, "fetching MNIST ...\n");
    const ew_err e = ew_dataset_get("mnist", NULL, NULL, &got);
    free(got.path);
    if (e == EW_OK && ew_dataset_open("mnist", out) == EW_OK)
        return EW_OK;
    fprintf(stderr, "MNIST cannot be fetched (%s): digits are drawn instead\n", ew_error_message());
    snprintf(s->data, sizeof(s->data), "synthetic digits");
    return ew_dataset_open("synthetic", out);
}

static ew_err learn(struct demo_results *s, struct ew_graph *g, const struct ew_dataset *data)
{
    struct ew_train_job job = {
        .net = g, .data = data, .options = "", .prep.std = {1, 1, 1, 1}, .folder = TRAIN_FOLDER};
    job.opts = (struct ew_train_opts){.epochs = TRAIN_EPOCHS,
                                      .batch = TRAIN_BATCH,
                                      .lr = 0.01,
                                      .momentum = 0.9,
                                      .checkpoint_every = 60,
                                      .schedule = EW_SCHEDULE_COSINE,
                                      .seed = 1,
                                      .shuffle = true,
                                      .threads = s->o->threads,
                                      .load = {.workers = 1}};
    struct ew_trainer *t;
    enum ew_train_event event = EW_TRAIN_BATCH;
    EW_TRY(ew_trainer_open(&job, &t));
    ew_err e = EW_OK;
    while (e == EW_OK && event != EW_TRAIN_DONE)
        e = ew_trainer_step(t, &event);
    s->trained = ew_trainer_result(t);
    ew_trainer_close(t);
    return e;
}

static ew_err train(struct demo_results *s)
{
    struct ew_graph *g = NULL;
    struct ew_dataset *data = NULL;
    ew_err e = open_digits(s, &data);
    if (e == EW_OK)
        e = ew_model_build("lenet5", NULL, &g);
    if (e == EW_OK)
        e = ew_model_init("lenet5", 1, g);
    if (e == EW_OK)
        e = learn(s, g, data);
    ew_graph_free(g);
    ew_dataset_close(data);
    return e;
}

static ew_err sweep(struct demo_results *s)
{
    s->study.data = strcmp(s->data, "mnist") == 0 ? "mnist" : "synthetic";
    return ew_demo_sweep(&s->study);
}

static ew_err shrink(struct demo_results *s)
{
    return ew_demo_shrink(&s->study, TRAIN_FOLDER "/best.ckpt");
}

static ew_err report(struct demo_results *s)
{
    return ew_demo_report(&s->study);
}

/* ---- Output ---- */

static void tell_network(const struct demo_results *s)
{
    char a[EW_TEXT_CHARS], b[EW_TEXT_CHARS];
    printf("1  built     %s: %s parameters, %s multiply-accumulates, longest path %lld operators\n",
           s->o->network, ew_text_count(s->facts.params, a), ew_text_count(s->facts.macs, b),
           (long long)s->facts.cdl);
}

static void tell_file(const struct demo_results *s)
{
    char a[EW_TEXT_CHARS];
    printf("2  exported  %s of ONNX, and read it back\n", ew_text_bytes(s->file_bytes, a));
}

static void tell_run(const struct demo_results *s)
{
    char a[EW_TEXT_CHARS], b[EW_TEXT_CHARS];
    printf("3  ran       one image in %.2f ms (plain reference kernels: %.0f ms), "
           "same output within %.1e\n",
           s->fast.median_ms, s->slow.median_ms, s->difference);
    printf("             activations in %s of planned memory instead of %s\n",
           ew_text_bytes((int64_t)(s->plan.arena_bytes - s->plan.packed_bytes), a),
           ew_text_bytes((int64_t)(s->plan.unshared_bytes - s->plan.packed_bytes), b));
}

static void tell_training(const struct demo_results *s)
{
    const struct ew_train_result *t = &s->trained;
    char a[EW_TEXT_CHARS], b[EW_TEXT_CHARS], c[EW_TEXT_CHARS];
    printf("4  trained   lenet5 on %s: %.1f%% of %s test images after %d epochs of %.1f s\n",
           s->data, 100 * t->test.accuracy, ew_text_count(t->test.samples, a), TRAIN_EPOCHS,
           t->epoch_s);
    printf("             %s images/s, %.1f%% of the time waiting for data, %s of planned memory\n",
           ew_text_count((int64_t)t->images_per_s, b), 100 * t->times.stall_s / t->times.wall_s,
           ew_text_bytes(t->planned_bytes, c));
}

static void tell_sweeps(const struct demo_results *s)
{
    printf("5  swept     loader threads and batch sizes of lenet5, in %.0f s\n", s->study.sweeps_s);
}

static void tell_int8(const struct demo_results *s)
{
    char a[EW_TEXT_CHARS], b[EW_TEXT_CHARS];
    printf("6  shrank    lenet5 to int8 where that is faster: %s of ONNX, an engine of %s\n",
           ew_text_bytes(s->study.int8_bytes, a), ew_text_bytes(s->study.engine_bytes, b));
}

static void tell_report(const struct demo_results *s)
{
    printf("7  reported  %s/report.html: open it in a browser\n", s->o->output);
}

static ew_err tell_json(const struct demo_results *s)
{
    struct ew_json j;
    ew_json_init(&j, stdout);
    ew_json_object(&j, NULL);
    ew_json_str(&j, "network", s->o->network);
    ew_json_int(&j, "params", s->facts.params);
    ew_json_int(&j, "macs", s->facts.macs);
    ew_json_int(&j, "onnx_bytes", s->file_bytes);
    ew_json_num(&j, "median_ms", s->fast.median_ms);
    ew_json_num(&j, "reference_ms", s->slow.median_ms);
    ew_json_num(&j, "difference", s->difference);
    ew_json_str(&j, "train_data", s->data);
    ew_json_num(&j, "test_accuracy", s->trained.test.accuracy);
    ew_json_num(&j, "epoch_s", s->trained.epoch_s);
    ew_json_num(&j, "stall_s", s->trained.times.stall_s);
    ew_json_num(&j, "images_per_s", s->trained.images_per_s);
    ew_json_int(&j, "train_planned_bytes", s->trained.planned_bytes);
    ew_json_num(&j, "sweeps_s", s->study.sweeps_s);
    ew_json_int(&j, "int8_bytes", s->study.int8_bytes);
    ew_json_int(&j, "engine_bytes", s->study.engine_bytes);
    ew_json_str(&j, "folder", s->o->output);
    ew_json_end(&j);
    return ew_json_finish(&j);
}

static ew_err tell(struct demo_results *s, bool json)
{
    static const struct {
        ew_err (*act)(struct demo_results *s);
        void (*tell)(const struct demo_results *s);
    } acts[] = {{build, tell_network},  {exchange, tell_file}, {run_both, tell_run},
                {train, tell_training}, {sweep, tell_sweeps},  {shrink, tell_int8},
                {report, tell_report}};
    for (size_t i = 0; i < EW_COUNT(acts); i++) {
        EW_TRY(acts[i].act(s));
        if (!json)
            acts[i].tell(s);
        fflush(stdout);
    }
    EW_CHECK(s->difference < 1e-3, EW_ERR_INTERNAL,
             "the exported file computes other outputs: they differ by %g", s->difference);
    if (json)
        return tell_json(s);
    printf("\nnext, with a network of your own (in a source tree with ./run for edgewise):\n"
           "       edgewise info net.onnx                                   what it is made of\n"
           "       edgewise bench net.onnx --profile                        where the time goes\n"
           "       edgewise run net.onnx photo.jpg --mean imagenet          what it sees\n"
           "       edgewise quantize net.onnx --calib images/ -o int8.onnx  smaller and faster\n"
           "or with one of `edgewise models`.\n");
    return EW_OK;
}

static ew_err run(struct ew_cmd_call *c)
{
    const struct opts *o = c->opts;
    struct demo_results s = {.o = o};
    EW_CHECK(mkdir(o->output, 0777) == 0 || errno == EEXIST, EW_ERR_IO, "%s: %s", o->output,
             strerror(errno));
    /* The remaining commands write to the current folder. */
    EW_CHECK(chdir(o->output) == 0, EW_ERR_IO, "%s: %s", o->output, strerror(errno));
    const ew_err e = tell(&s, c->json);
    ew_graph_free(s.g);
    ew_graph_free(s.read);
    return e;
}

const struct ew_cmd ew_cmd_demo = {
    .name = "demo",
    .group = EW_CMD_GENERAL,
    .summary = "build, export, train, shrink, compile and report in about a minute",
    .about = "Builds a network, writes and reads it as ONNX, runs it with reference and optimised "
             "kernels and compares the outputs, and trains LeNet-5 on MNIST (or on synthetic "
             "digits if it cannot be downloaded).\n"
             "Then it sweeps loader threads and batch sizes, quantises and compiles the trained "
             "network, and writes a report.\n"
             "All files stay in a folder to look at.",
    .opts_size = sizeof(struct opts),
    .opts = table,
    .run = run,
};
