/* SPDX-License-Identifier: Apache-2.0 */
/* Epochs of training on a board that is not here: the plan's steps, the loader's work, the board's
 * model. */
#include "cli/train_simulated.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/simulated.h"
#include "data/data.h"
#include "model/objective.h"

/* Seconds of one worker for a sample, from the page cache, on an AGX Xavier: TRAIN's stalls without
 * workers are 9 s for 60,000 of MNIST, 12 s for 50,000 of CIFAR-10, 272 s for 23,080 photographs
 * that are decoded and brought to 224 x 224. */
#define READ_S       2e-4
#define DECODE_S     1.18e-2
#define DECODE_BYTES (224.0 * 224 * 3)

static double fetch_s(const struct ew_dataset_info *d, double input_bytes)
{
    return strcmp(d->format, "folder") == 0 ? READ_S + DECODE_S * input_bytes / DECODE_BYTES
                                            : READ_S;
}

static ew_err work_of(const struct ew_train_run *r, struct ew_simulated *s,
                      struct ew_simulated_run *step, struct ew_sim_work *out, int64_t *images)
{
    int64_t validation;
    struct ew_graph *g;
    EW_TRY(ew_graph_clone(r->net, &g));
    ew_err e = ew_graph_set_batch(g, r->o.train.batch);
    if (e == EW_OK)
        e = ew_objective_add(g);
    if (e == EW_OK)
        e = ew_simulated_plan(s, g, true, step);
    ew_graph_free(g);
    EW_TRY(e);
    const struct ew_dataset_info *d = ew_dataset_info(r->data);
    ew_train_divide(d, &r->o.train, images, &validation);
    const int64_t batches = *images / r->o.train.batch;
    EW_CHECK(batches > 0, EW_ERR_ARG, "%s: a batch of %lld is more than its %lld samples", d->name,
             (long long)r->o.train.batch, (long long)*images);
    *images = batches * r->o.train.batch;
    ew_sim_work_of(&step->load, EW_SIM_TRAIN, out);
    ew_sim_work_times(out, (double)batches);
    const double input = step->load.input_bytes / (4.0 * (double)r->o.train.batch); /* as bytes */
    out->fetch_s = (double)*images * fetch_s(d, input);
    return EW_OK;
}

static void epoch_row(const struct ew_sim_epoch *e, int64_t number, int64_t images, int64_t batch,
                      struct ew_epoch_row *row)
{
    ew_record_clear(EW_RECORD_EPOCH, row);
    row->epoch = number;
    row->start_s = (double)(number - 1) * e->epoch_s;
    row->wall_s = e->epoch_s;
    row->compute_s = e->compute_s;
    row->stall_s = e->stall_s;
    row->overhead_s = e->epoch_s - e->compute_s - e->stall_s;
    row->images = images;
    row->batches = images / batch;
    row->images_per_s = (double)images / e->epoch_s;
    row->power_w = e->power_w;
    row->base_power_w = e->base_w;
    row->energy_j = e->energy_j;
    row->temp_c = e->temp_c;
    row->quality = EW_QUALITY_SIMULATED;
}

static void print_epoch(int64_t number, const struct ew_sim_epoch *e)
{
    printf("epoch %lld: %.2f s (compute %.2f, stall %.2f), %.2f W, %.1f J", (long long)number,
           e->epoch_s, e->compute_s, e->stall_s, e->power_w, e->energy_j);
    if (isfinite(e->temp_c))
        printf(", %.0f C%s", e->temp_c, e->hot ? " (throttled)" : "");
    printf("; simulated\n");
}

static ew_err epochs(const struct ew_train_run *r, struct ew_simulated *s)
{
    struct ew_simulated_run step;
    struct ew_sim_work work;
    struct ew_sim_epoch e;
    struct ew_epoch_row row;
    struct ew_sim_heat heat;
    int64_t images;
    double total = 0;
    EW_TRY(work_of(r, s, &step, &work, &images));
    EW_TRY(ew_simulated_mark(r->rec));
    ew_sim_heat_begin(s->board, &heat);
    for (int64_t i = 1; i <= r->o.train.epochs; i++) {
        const struct ew_sim_setting setting = {.mode = s->mode,
                                               .workers = (int)r->o.train.load.workers,
                                               .seed = (uint64_t)(r->o.train.seed * 1000003 + i)};
        EW_TRY(ew_simulate(s->board, &work, &setting, &e));
        ew_sim_heat_epoch(s->board, &heat, &e);
        epoch_row(&e, i, images, r->o.train.batch, &row);
        row.start_s = total;
        total += e.epoch_s;
        EW_TRY(ew_recording_put(r->rec, EW_RECORD_EPOCH, &row));
        if (!r->json)
            print_epoch(i, &e);
    }
    EW_TRY(ew_simulated_metric(r->rec, "train_s", total, "s", EW_BETTER_LOWER));
    EW_TRY(ew_simulated_metric(r->rec, "planned_bytes", (double)step.load.memory_bytes, "B",
                               EW_BETTER_LOWER));
    return ew_simulated_show(s, &step, r->net->name, r->json);
}

ew_err ew_train_simulated(const struct ew_train_run *r)
{
    struct ew_simulated s;
    ew_err e = ew_fail_in(ew_simulated_init(&s, r->o.simulate), "--simulate");
    if (e == EW_OK)
        e = epochs(r, &s);
    ew_simulated_fini(&s);
    return e;
}
