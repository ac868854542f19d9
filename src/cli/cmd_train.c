/* SPDX-License-Identifier: Apache-2.0 */
/* edgewise train: trains a network on a data set. */
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "cli/device_opt.h"
#include "cli/rank_cmd.h"
#include "cli/simulated.h"
#include "cli/train_board.h"
#include "cli/train_run.h"
#include "cli/train_simulated.h"
#include "compress/pass.h"
#include "format/onnx_replace.h"

static const char *const qat_names[] = {"off", "int8", "pow2", NULL};

/* clang-format off */
const struct ew_field ew_train_cmd_fields[] = {
    EW_TRAIN_FIELDS(struct ew_train_cmd, train),
    EW_NETWORK_SIZE_FIELDS(struct ew_train_cmd, net),
    {.name = "init", .type = EW_FIELD_STR, .offset = offsetof(struct ew_train_cmd, init),
     .metavar = "FILE",
     .help = "initial weights: FILE.onnx, a checkpoint or the name of a trained network; without "
     "a network argument also the network itself"},
    {.name = "find-batch", .type = EW_FIELD_BOOL, .offset = offsetof(struct ew_train_cmd, find_batch),
     .help = "use the largest batch that fits into --memory-limit or this machine's memory"},
    {.name = "output", .type = EW_FIELD_STR, .offset = offsetof(struct ew_train_cmd, output),
     .metavar = "DIR",
     .help = "folder of the run; default: runs/NETWORK-DATA-TIME", .letter = 'o'},
    {.name = "resume", .type = EW_FIELD_STR, .offset = offsetof(struct ew_train_cmd, resume),
     .metavar = "DIR|CKPT", .help = "continue a run that was interrupted"},
    {.name = "loss-every", .type = EW_FIELD_INT, .offset = offsetof(struct ew_train_cmd, loss_every),
     .def = "0", .min = 0, .max = 1e12, .metavar = "N",
     .help = "print the loss every N batches; 0: only after each epoch"},
    {.name = "idle", .type = EW_FIELD_FLOAT, .offset = offsetof(struct ew_train_cmd, idle),
     .def = "0", .min = 0, .max = 86400, .metavar = "SECONDS",
     .help = "first measure the idle power for this long, in the current power mode"},
    {.name = "power-from", .type = EW_FIELD_STR, .offset = offsetof(struct ew_train_cmd, power_from),
     .metavar = "CMD|FILE|-",
     .help = "external power meter: a command or file that gives lines of [timestamp] watts"},
    {.name = "carbon", .type = EW_FIELD_FLOAT, .offset = offsetof(struct ew_train_cmd, carbon),
     .def = "0", .min = 0, .max = 10000, .metavar = "G/KWH",
     .help = "also report energy as CO2e, for a grid of this carbon intensity"},
    {.name = "qat", .type = EW_FIELD_ENUM, .offset = offsetof(struct ew_train_cmd, qat),
     .def = "off", .choices = qat_names, .metavar = "int8|pow2",
     .help = "quantisation-aware training: weights and activations are rounded in every step as "
     "`quantize` would; pow2: as its --scheme pow2"},
    {.name = "calib", .type = EW_FIELD_INT, .offset = offsetof(struct ew_train_cmd, calib),
     .def = "1000", .min = 1, .max = 1e9, .metavar = "N",
     .help = "qat: number of training images for the initial ranges"},
    {.name = "teach", .type = EW_FIELD_STR, .offset = offsetof(struct ew_train_cmd, teach),
     .metavar = "FILE",
     .help = "knowledge distillation: the teacher network, FILE.onnx or a checkpoint"},
    {.name = "teach-share", .type = EW_FIELD_FLOAT,
     .offset = offsetof(struct ew_train_cmd, teach_share), .def = "0.5", .min = 0, .max = 1,
     .metavar = "SHARE",
     .help = "weight of the distillation loss; the rest is the loss on the labels"},
    {.name = "temperature", .type = EW_FIELD_FLOAT,
     .offset = offsetof(struct ew_train_cmd, temperature), .def = "4", .min = 0.01, .max = 1000,
     .metavar = "T", .help = "distillation: temperature of both softmaxes"},
    {.name = "tensorboard", .type = EW_FIELD_STR,
     .offset = offsetof(struct ew_train_cmd, tensorboard), .metavar = "DIR",
     .help = "also write the curves for TensorBoard"},
    {.name = "compress", .type = EW_FIELD_ENUM, .offset = offsetof(struct ew_train_cmd, compress),
     .def = "none", .choices = ew_exchange_forms, .metavar = "fp16|topk",
     .help = "several ranks: compress the exchanged gradients to float16 or to the largest "
     "values; the error is fed back"},
    {.name = "compress-share", .type = EW_FIELD_FLOAT,
     .offset = offsetof(struct ew_train_cmd, compress_share), .def = "0.01", .min = 1e-6, .max = 1,
     .metavar = "SHARE", .help = "topk: fraction of the gradients sent in each step"},
    {.name = "bucket", .type = EW_FIELD_SIZE, .offset = offsetof(struct ew_train_cmd, bucket),
     .def = "1M", .min = 1, .max = 1e12, .metavar = "BYTES",
     .help = "several ranks: size of the gradient buckets, each exchanged as soon as it is "
     "complete"},
    {.name = "sync-bn", .type = EW_FIELD_BOOL, .offset = offsetof(struct ew_train_cmd, sync_bn),
     .help = "several ranks: batch norm statistics over the whole batch instead of each rank's "
     "part"},
    {.name = "elastic", .type = EW_FIELD_BOOL, .offset = offsetof(struct ew_train_cmd, elastic),
     .help = "several ranks: no effect, always on: if a rank is lost the job ends and names it, "
     "and --resume continues from the last checkpoint with any number of ranks"},
    {.name = "dry", .type = EW_FIELD_BOOL, .offset = offsetof(struct ew_train_cmd, dry),
     .help = "with --simulate: train nothing (--simulate implies it)"},
    EW_DEVICE_FIELD(struct ew_train_cmd),
    EW_PRECISION_FIELD(struct ew_train_cmd),
    EW_FAST_FIELD(struct ew_train_cmd),
    EW_SIMULATE_FIELD(struct ew_train_cmd),
    EW_RECORDING_FIELD(struct ew_train_cmd),
    EW_FIELD_END};
/* clang-format on */

/* SIGINT or SIGTERM stops after the current batch; a second one ends the program. */
static volatile int asked_to_stop;

static void on_signal(int signal)
{
    asked_to_stop = signal;
}

static void catch_signals(struct sigaction before[2])
{
    struct sigaction a = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
    asked_to_stop = 0;
    sigaction(SIGINT, &a, &before[0]);
    sigaction(SIGTERM, &a, &before[1]);
}

/* Adds the epoch's figures to the TensorBoard curves. */
static ew_err put_curves(struct ew_tensorboard *t, const struct ew_epoch_row *e)
{
    const struct {
        const char *tag;
        double value;
    } all[] = {{"loss/train", e->train_loss},
               {"loss/validation", e->loss},
               {"accuracy/train", e->train_accuracy},
               {"accuracy/validation", e->accuracy},
               {"f1/validation", e->f1},
               {"learning_rate", e->learning_rate},
               {"images_per_s", e->images_per_s},
               {"seconds/epoch", e->wall_s},
               {"seconds/stall", e->stall_s},
               {"energy_j", e->energy_j}};
    for (size_t i = 0; t->f && i < EW_COUNT(all); i++)
        EW_TRY(ew_tensorboard_scalar(t, all[i].tag, e->epoch, all[i].value));
    EW_CHECK(!t->f || fflush(t->f) == 0, EW_ERR_IO, "%s: cannot be written", t->path);
    return EW_OK;
}

/* Only rank 0 prints and writes files. */
static bool first_rank(const struct ew_train_run *r)
{
    return ew_ranks_rank(r->job.ranks) == 0;
}

/* All ranks stop after the same batch, also if only one got the signal. */
static bool stops(const struct ew_train_run *r, const struct ew_trainer *t)
{
    return r->job.ranks ? ew_trainer_stops(t) : asked_to_stop;
}

static ew_err record_epoch(void *ctx, const struct ew_epoch_row *row)
{
    const struct ew_train_run *r = ctx;
    return ew_recording_put(r->rec, EW_RECORD_EPOCH, row);
}

static ew_err follow(struct ew_train_run *r, struct ew_trainer *t, struct ew_train_view *v,
                     bool *stopped)
{
    enum ew_train_event event = EW_TRAIN_BATCH;
    ew_err e = EW_OK;
    while (e == EW_OK && event != EW_TRAIN_DONE && !stops(r, t)) {
        e = ew_trainer_step(t, &event);
        if (r->job.ranks && !first_rank(r))
            continue;
        if (e == EW_OK && event == EW_TRAIN_EPOCH) {
            ew_train_show_epoch(v, t);
            e = put_curves(&r->curves, ew_trainer_epoch(t));
            if (e == EW_OK)
                e = ew_run_watch_put(&r->watch);
        } else if (e == EW_OK && event != EW_TRAIN_DONE) {
            const struct ew_train_status s = ew_trainer_status(t);
            ew_train_show_step(v, &s);
            ew_watch_drain(r->watch.watch);
        }
    }
    ew_train_show_wipe(v);
    *stopped = e == EW_OK && event != EW_TRAIN_DONE;
    return e;
}

/* ---- Its end ---- */

/* Metrics of the whole run; those of its epochs are aggregated by the recording. */
static ew_err record(struct ew_train_run *r, const struct ew_train_result *x)
{
    const double absent = NAN;
    const struct {
        const char *name, *unit;
        double value;
        enum ew_better better;
    } all[] = {
        {"train_s", "s", x->times.wall_s, EW_BETTER_LOWER},
        {"best_epoch", NULL, (double)x->best_epoch, EW_BETTER_NEITHER},
        {"test_accuracy", NULL, x->test.accuracy, EW_BETTER_HIGHER},
        {"test_precision", NULL, x->test.precision, EW_BETTER_HIGHER},
        {"test_recall", NULL, x->test.recall, EW_BETTER_HIGHER},
        {"test_f1", NULL, x->test.f1, EW_BETTER_HIGHER},
        {"planned_bytes", "B", (double)x->planned_bytes, EW_BETTER_LOWER},
        {"total_energy_j", "J", x->energy_j >= 0 ? x->energy_j : absent, EW_BETTER_LOWER},
    };
    for (size_t i = 0; i < EW_COUNT(all); i++)
        if (!isnan(all[i].value))
            EW_TRY(
                ew_recording_metric(r->rec, all[i].name, all[i].value, all[i].unit, all[i].better));
    return EW_OK;
}

/* Records the confusion matrix of the last evaluation as metrics "confusion:TRUE:PREDICTED", up to
 * MOST_CLASSES classes; `eval` shows larger ones. */
#define MOST_CLASSES 64
static ew_err record_confusion(struct ew_train_run *r, const struct ew_trainer *t)
{
    const struct ew_confusion *c = ew_trainer_confusion(t);
    if (!r->rec->store || !c || c->classes > MOST_CLASSES)
        return EW_OK;
    EW_TRY(ew_store_begin(r->rec->store));
    ew_err e = EW_OK;
    for (int64_t i = 0; e == EW_OK && i < c->classes * c->classes; i++) {
        char name[256];
        if (!c->count[i])
            continue;
        snprintf(name, sizeof(name), "confusion:%s:%s", ew_dataset_class(r->data, i / c->classes),
                 ew_dataset_class(r->data, i % c->classes));
        e = ew_recording_metric(r->rec, name, (double)c->count[i], NULL, EW_BETTER_NEITHER);
    }
    const ew_err ended = ew_store_end(r->rec->store, e == EW_OK);
    return e == EW_OK ? ended : e;
}

static ew_err stopped_early(struct ew_cmd_call *c, const struct ew_train_run *r,
                            struct ew_trainer *t)
{
    const struct ew_train_status s = ew_trainer_status(t);
    ew_trainer_save(t);
    EW_CHECK(!ew_trainer_result(t).checkpoint_failed, EW_ERR_IO,
             "%s: the checkpoint could not be written", r->o.output);
    if (!first_rank(r))
        return EW_OK;
    ew_cmd_hint(c, "edgewise train --resume %.160s continues it", r->o.output);
    return ew_fail(EW_ERR_SKIPPED, "stopped in epoch %lld of %lld, %s %lld of %lld",
                   (long long)s.epoch, (long long)s.epochs,
                   s.evaluating ? "validation's batch" : "batch", (long long)s.batch,
                   (long long)s.batches);
}

static ew_err write_result(const struct ew_train_run *r, const struct ew_train_result *x)
{
    char path[EW_RUNDIR_PATH];
    snprintf(path, sizeof(path), "%s/result.json", r->o.output);
    struct ew_file_out out;
    EW_TRY(ew_file_out_replace(path, &out));
    const ew_err e = ew_train_print_json(out.f, r, x);
    if (e == EW_OK)
        return ew_file_out_commit(&out);
    ew_file_out_abort(&out);
    return ew_fail_in(e, "%s", path);
}

/* Writes the best epoch as an integer network, as `quantize` does. */
static ew_err write_int8(const struct ew_train_run *r)
{
    char path[EW_RUNDIR_PATH];
    struct ew_checkpoint best;
    snprintf(path, sizeof(path), "%s/best.ckpt", r->o.output);
    EW_TRY(ew_checkpoint_read(path, &best));
    snprintf(path, sizeof(path), "%s/int8.onnx", r->o.output);
    ew_err e = ew_graph_set_batch(best.graph, 1);
    if (e == EW_OK)
        e = ew_pass_convert_fake_quant(best.graph);
    if (e == EW_OK)
        e = ew_onnx_replace(best.graph, path);
    ew_checkpoint_fini(&best);
    if (e == EW_OK)
        EW_INFO("%s: the best epoch as integers, in QDQ form", path);
    return e;
}

static ew_err finish(struct ew_train_run *r, const struct ew_trainer *t)
{
    const struct ew_train_result x = ew_trainer_result(t);
    EW_TRY(record(r, &x));
    EW_TRY(record_confusion(r, t));
    EW_TRY(r->json ? ew_train_print_json(stdout, r, &x) : ew_train_print(r, &x));
    if (write_result(r, &x) != EW_OK)
        EW_WARN("%s", ew_error_message());
    EW_CHECK(!x.checkpoint_failed, EW_ERR_IO, "%s: the last checkpoint could not be written",
             r->o.output);
    return r->o.qat == EW_TRAIN_QAT_OFF ? EW_OK : write_int8(r);
}

/* Starts sampling the board's sensors; with --idle, first measures the power at rest.  Without a
 * store the samples only give the energy of epochs. */
static ew_err watch_board(struct ew_train_run *r)
{
    const bool power = r->board && (r->board->total.power >= 0 || r->board->total.energy >= 0);
    r->watch = (struct ew_run_watch){
        .store = r->rec->store, .run = r->rec->run, .start_ns = r->rec->start_ns};
    if (!r->board || (!power && !r->rec->store))
        return EW_OK;
    EW_TRY(ew_watch_start(r->board, &r->watch.watch));
    r->job.watch = r->watch.watch;
    if (!(r->o.idle > 0))
        return EW_OK;
    if (!power) {
        EW_WARN("--idle: no sensor here measures the power of the whole board");
        return EW_OK;
    }
    const int64_t from = ew_clock_ns(), to = from + (int64_t)(r->o.idle * (double)EW_NS_PER_S);
    while (ew_clock_ns() < to && !asked_to_stop) {
        const struct timespec step = {.tv_nsec = EW_NS_PER_S / 20};
        nanosleep(&step, NULL);
        ew_watch_drain(r->watch.watch);
    }
    r->job.base_power_w = ew_watch_energy(r->watch.watch, from, to).mean_w;
    return EW_OK;
}

/* A rank failed: training can resume from the last checkpoint, with any number of ranks. */
static ew_err lost(struct ew_cmd_call *c, struct ew_train_run *r, struct ew_trainer *t, ew_err e)
{
    const struct ew_train_status s = ew_trainer_status(t);
    char why[512];
    snprintf(why, sizeof(why), "%s", ew_error_message());
    ew_trainer_close(t);
    ew_cmd_hint(c, "mpirun -np N edgewise train --resume %.120s continues from its last checkpoint",
                r->o.output);
    return ew_fail(e, "epoch %lld, batch %lld: %s", (long long)s.epoch, (long long)s.batch, why);
}

/* Saves what was trained; if that fails too, only the first error is reported. */
static void failed(struct ew_cmd_call *c, const struct ew_train_run *r, struct ew_trainer *t,
                   ew_err e)
{
    char why[512];
    snprintf(why, sizeof(why), "%s", ew_error_message());
    ew_trainer_save(t);
    ew_fail(e, "%s", why);
    ew_cmd_hint(c, "edgewise train --resume %.120s continues it%s", r->o.output,
                ew_trainer_result(t).checkpoint_failed ? " once there is room"
                : ew_sample_is_bad(e) ? "; --on-bad-sample skip leaves out what cannot be read"
                                      : "");
}

static ew_err train(struct ew_cmd_call *c, struct ew_train_run *r)
{
    struct ew_trainer *t;
    struct ew_train_view view;
    struct sigaction before[2];
    bool stopped = false;
    EW_TRY(ew_train_board_open(&r->arena, r->o.power_from, &r->board, &r->job.machine));
    EW_TRY(watch_board(r));
    r->job.stop = &asked_to_stop;
    r->job.record = record_epoch;
    r->job.record_ctx = r;
    EW_TRY(ew_trainer_open(&r->job, &t));
    if (first_rank(r))
        ew_train_show_begin(&view, r, t);
    else
        view = (struct ew_train_view){0};
    if (r->job.resume && ew_trainer_result(t).epochs == r->o.train.epochs)
        EW_INFO("its %lld epochs are done; --epochs N continues to N",
                (long long)r->o.train.epochs);
    catch_signals(before);
    ew_err e = r->o.tensorboard ? ew_tensorboard_open(r->o.tensorboard, &r->curves) : EW_OK;
    if (e == EW_OK)
        e = follow(r, t, &view, &stopped);
    const ew_err closed = ew_tensorboard_close(&r->curves);
    e = e == EW_OK ? closed : e;
    if (e == EW_OK)
        e = ew_run_watch_end(&r->watch);
    if (e != EW_OK && r->job.ranks)
        return lost(c, r, t, e);
    if (e == EW_OK)
        e = stopped ? stopped_early(c, r, t) : first_rank(r) ? finish(r, t) : EW_OK;
    else if (e != EW_ERR_ARG) /* unless it diverged (EW_ERR_ARG), the weights are worth saving */
        failed(c, r, t, e);
    sigaction(SIGINT, &before[0], NULL);
    sigaction(SIGTERM, &before[1], NULL);
    ew_trainer_close(t);
    return e;
}

static ew_err run(struct ew_cmd_call *c)
{
    const struct ew_train_cmd *o = c->opts;
    EW_CHECK(
        !o->dry || o->simulate, EW_ERR_USAGE,
        "--dry needs --simulate BOARD; 'edgewise info NET' prints the memory that training takes");
    struct ew_train_run *r = calloc(1, sizeof(*r));
    EW_CHECK(r, EW_ERR_MEMORY, "no memory");
    struct ew_recording rec = {0};
    struct ew_ranks *ranks = NULL;
    ew_err e = ew_cmd_join_ranks(&asked_to_stop, &ranks);
    const bool first = ew_ranks_rank(ranks) == 0;
    if (e == EW_OK)
        e = ew_cmd_record(c, first ? o->db : NULL, &rec);
    r->job.ranks = ranks;
    if (e == EW_OK)
        e = ew_train_setup(c, r);
    r->rec = &rec;
    if (e == EW_OK)
        e = o->simulate ? ew_train_simulated(r) : train(c, r);
    e = ew_recording_end(&rec, e);
    ew_train_fini(r);
    ew_cmd_leave_ranks(ranks, c, e);
    free(r);
    return e;
}

const struct ew_cmd ew_cmd_train = {
    .name = "train",
    .group = EW_CMD_TRAIN,
    .summary = "train a network, from scratch or by transfer learning",
    .args = "[NAME|FILE.onnx|CKPT]",
    .about = "A zoo network starts from random weights and is built for the size of the data "
             "set's images where possible; a network from a file starts from its own weights.\n"
             "If the number of classes differs, or --classes is given, the last layer of a file's "
             "network is replaced.\n"
             "The network is validated after each epoch; the best epoch by macro F1 is kept as "
             "best.ckpt.\n"
             "--qat does quantisation-aware training from a trained network: validation runs on "
             "integers, and DIR/int8.onnx is what `quantize` would write.\n"
             "Ctrl-C writes a checkpoint and ends; --resume continues, bit for bit as if there "
             "had been no interruption.",
    .examples = "train lenet5 --data mnist --batch 16 --epochs 5\n"
                "train resnet9 --data cifar10 --augment standard --schedule cosine --warmup 2 "
                "--optimizer nesterov --lr 0.2 --batch 128\n"
                "train --init mobilenet_v2.onnx --freeze backbone --classes 10 --data photos/\n"
                "train best.ckpt --qat int8 --data cifar10 --epochs 3 --lr 0.001\n"
                "train --resume runs/lenet5-mnist-20261115-081000",
    .min_args = 0,
    .max_args = 1,
    .opts_size = sizeof(struct ew_train_cmd),
    .opts = ew_train_cmd_fields,
    .run = run,
    .samples = true,
};
