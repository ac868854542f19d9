/* SPDX-License-Identifier: Apache-2.0 */
/* Simulated epochs of training on another board. */
#include "measure/simulated_training.h"

#include <string.h>

#include "model/objective.h"
#include "train/trainer.h"

/* Seconds of one worker per sample, from the page cache, on an AGX Xavier.  From TRAIN's stalls
 * without workers: 9 s for 60,000 images of MNIST, 12 s for 50,000 of CIFAR-10, 272 s for 23,080
 * photographs, decoded and resized to 224 x 224. */
#define READ_S       2e-4
#define DECODE_S     1.18e-2
#define DECODE_BYTES (224.0 * 224 * 3)

/* Additional time for a sample that is not cached: one request at a time. */
static double medium_s(const struct ew_storage *m, double input_bytes)
{
    return m->mb_per_s > 0 ? m->latency_us * 1e-6 + input_bytes / (m->mb_per_s * 1e6) : 0;
}

static double fetch_s(const struct ew_dataset_info *d, double input_bytes)
{
    return strcmp(d->format, "folder") == 0 ? READ_S + DECODE_S * input_bytes / DECODE_BYTES
                                            : READ_S;
}

/* Simulates the training step of one batch. */
static ew_err plan_step(struct ew_simulated *board, const struct ew_graph *net,
                        struct ew_simulated_training *t)
{
    struct ew_graph *g;
    EW_TRY(ew_graph_clone(net, &g));
    ew_err e = ew_graph_set_batch(g, t->opts->batch);
    if (e == EW_OK)
        e = ew_objective_add(g);
    if (e == EW_OK)
        e = ew_simulated_plan(board, g, true, &t->step);
    ew_graph_free(g);
    return e;
}

ew_err ew_simulated_training_begin(struct ew_simulated *board, const struct ew_graph *net,
                                   const struct ew_dataset *data, const struct ew_train_opts *o,
                                   struct ew_simulated_training *out)
{
    const struct ew_dataset_info *d = ew_dataset_info(data);
    int64_t validation;
    *out = (struct ew_simulated_training){.board = board, .opts = o};
    EW_TRY(plan_step(board, net, out));
    ew_train_divide(d, o, &out->images, &validation);
    const int64_t batches = out->images / o->batch;
    EW_CHECK(batches > 0, EW_ERR_ARG, "%s: a batch of %lld exceeds its %lld samples", d->name,
             (long long)o->batch, (long long)out->images);
    out->images = batches * o->batch;
    ew_sim_work_of(&out->step.load, EW_SIM_TRAIN, &out->work);
    ew_sim_work_times(&out->work, (double)batches);
    const double input =
        out->step.load.input_bytes / (4.0 * (double)o->batch); /* the input as bytes, not float32 */
    out->work.fetch_s = (double)out->images * fetch_s(d, input);
    struct ew_storage medium;
    EW_TRY(ew_storage_parse(o->load.storage, &medium));
    out->medium_s = (double)out->images * medium_s(&medium, input);
    ew_sim_heat_begin(board->board, &out->heat);
    return EW_OK;
}

static void epoch_row(const struct ew_simulated_training *t, const struct ew_sim_epoch *e,
                      struct ew_epoch_row *row)
{
    ew_record_clear(EW_RECORD_EPOCH, row);
    row->epoch = t->epochs;
    row->start_s = t->seconds;
    row->wall_s = e->epoch_s;
    row->compute_s = e->compute_s;
    row->stall_s = e->stall_s;
    row->overhead_s = e->epoch_s - e->compute_s - e->stall_s;
    row->images = t->images;
    row->batches = t->images / t->opts->batch;
    row->images_per_s = (double)t->images / e->epoch_s;
    row->power_w = e->power_w;
    row->base_power_w = e->base_w;
    row->energy_j = e->energy_j;
    row->temp_c = e->temp_c;
    row->quality = EW_QUALITY_SIMULATED;
}

ew_err ew_simulated_training_epoch(struct ew_simulated_training *t, struct ew_sim_epoch *e,
                                   struct ew_epoch_row *row)
{
    t->epochs++;
    const struct ew_sim_setting setting = {.mode = t->board->mode,
                                           .workers = (int)t->opts->load.workers,
                                           .seed = (uint64_t)(t->opts->seed * 1000003 + t->epochs)};
    struct ew_sim_work work = t->work;
    if (t->epochs == 1 || t->opts->load.cold == EW_COLD_EVERY_EPOCH)
        work.fetch_s += t->medium_s;
    EW_TRY(ew_simulate(t->board->board, &work, &setting, e));
    ew_sim_heat_epoch(t->board->board, &t->heat, e);
    epoch_row(t, e, row);
    t->seconds += e->epoch_s;
    return EW_OK;
}
