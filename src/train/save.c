/* SPDX-License-Identifier: Apache-2.0 */
/* Saving a trainer to a checkpoint, and restoring it. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "train/trainer_impl.h"

/* Lists the optimiser state by parameter. */
ew_err ew_trainer_collect_states(struct ew_trainer *t)
{
    const struct ew_graph *g = t->learner.trainable;
    t->states = calloc((size_t)g->n_values * EW_UPDATE_STATES + 1, sizeof(*t->states));
    EW_CHECK(t->states, EW_ERR_MEMORY, "no memory for the optimiser's state");
    for (int i = 0; i < g->n_values; i++)
        for (int k = 0; k < EW_UPDATE_STATES; k++) {
            const struct ew_tensor *s = ew_plan_state(t->learner.train, i, k);
            if (s)
                t->states[t->n_states++] = (struct ew_checkpoint_state){g->values[i].name, k, *s};
        }
    return EW_OK;
}

static ew_err restore_states(struct ew_trainer *t, const struct ew_checkpoint *c)
{
    int own = 0; /* residuals of the exchange may follow */
    while (own < c->n_states && c->states[own].slot < EW_UPDATE_STATES)
        own++;
    EW_CHECK(own == t->n_states, EW_ERR_FORMAT,
             "the checkpoint has %d states of an optimiser, this run has %d", own, t->n_states);
    for (int i = 0; i < own; i++) {
        const struct ew_checkpoint_state *from = &c->states[i];
        const int value = ew_graph_find(t->learner.trainable, from->param);
        struct ew_tensor *to =
            value >= 0 ? ew_plan_state(t->learner.train, value, (int)from->slot) : NULL;
        EW_CHECK(to && to->dtype == from->t.dtype && ew_shape_equal(&to->shape, &from->t.shape),
                 EW_ERR_FORMAT, "the checkpoint's state of %s does not fit", from->param);
        memcpy(to->data, from->t.data, ew_tensor_bytes(to));
    }
    if (t->exchange)
        EW_TRY(ew_exchange_set_residuals(t->exchange, c->states + own, c->n_states - own));
    ew_plan_optimizer(t->learner.train)->step = t->at.step;
    const struct ew_loss_scale scale = {t->at.loss_scale, t->at.loss_scale_good};
    if (scale.scale > 0)
        EW_TRY(ew_backend_set_loss_scale(ew_plan_backend(t->learner.train), &scale));
    return ew_plan_refresh(t->learner.train);
}

#define MOST ((int64_t)1 << 53) /* sums of counts stay far below the range */

static ew_err check_counts(const struct ew_train_position *at)
{
    for (const struct ew_field *f = ew_train_position_fields; f->name; f++) {
        if (f->type != EW_FIELD_INT)
            continue;
        const int64_t n = *(const int64_t *)(const void *)((const char *)at + f->offset);
        EW_CHECK(n >= 0 && n <= MOST, EW_ERR_FORMAT, "the checkpoint's %s is %lld", f->name,
                 (long long)n);
    }
    return EW_OK;
}

ew_err ew_trainer_read_position(struct ew_trainer *t, const struct ew_checkpoint *c)
{
    EW_CLEANUP(ew_free_ptr) char *text = strdup(c->progress);
    EW_CHECK(text, EW_ERR_MEMORY, "no memory");
    EW_TRY(ew_fields_from_text(ew_train_position_fields, text, "progress", &t->at));
    EW_TRY(check_counts(&t->at));
    const int64_t parts = t->at.parts, batch = t->job.opts.batch;
    EW_CHECK(parts == 0 || batch % parts == 0, EW_ERR_FORMAT,
             "the checkpoint's %lld parts of a batch do not fit %lld images", (long long)parts,
             (long long)batch);
    const struct ew_dataset_info *info = ew_dataset_info(t->job.data);
    const int64_t had = t->at.data_samples, has = info->count[EW_SPLIT_TRAIN];
    EW_CHECK(had == 0 || had == has, EW_ERR_ARG,
             "%s: has %lld training samples, the data of the run had %lld: a run is resumed with "
             "the same data",
             info->name, (long long)has, (long long)had);
    return EW_OK;
}

ew_err ew_trainer_restore(struct ew_trainer *t, const struct ew_checkpoint *c)
{
    if (t->loss) { /* absent values are not written */
        t->at.best = ew_scores_of_loss(t->at.best.loss, t->at.best.samples);
        t->at.last = ew_scores_of_loss(t->at.last.loss, t->at.last.samples);
    }
    /* Checkpoints of older versions lack it: every epoch was validated then. */
    if (t->at.best_epoch && t->at.validations == 0)
        t->at.validations = t->at.epoch;
    const struct ew_train_position *p = &t->at;
    EW_CHECK(p->batch <= t->batches, EW_ERR_FORMAT,
             "the checkpoint's position, epoch %lld, batch %lld, does not fit", (long long)p->epoch,
             (long long)p->batch);
    return restore_states(t, c);
}

/* Downloads weights, optimiser state and loss scale from the device. */
static ew_err pull(struct ew_trainer *t)
{
    struct ew_loss_scale scale;
    EW_TRY(ew_plan_pull(t->learner.train));
    EW_TRY(ew_backend_loss_scale(ew_plan_backend(t->learner.train), &scale));
    t->at.loss_scale = scale.scale;
    t->at.loss_scale_good = scale.good;
    return EW_OK;
}

/* Collects the optimiser state and, for a checkpoint to resume from, residuals of the exchange
 * (collective). */
static ew_err all_states(struct ew_trainer *t, bool goes_on, struct ew_checkpoint *c,
                         struct ew_checkpoint_state **list)
{
    const struct ew_checkpoint_state *residuals;
    int n = 0;
    c->states = t->states;
    c->n_states = t->n_states;
    if (goes_on)
        EW_TRY(ew_exchange_residuals(t->exchange, &residuals, &n));
    if (n == 0)
        return EW_OK;
    *list = calloc((size_t)(t->n_states + n), sizeof(**list));
    EW_CHECK(*list, EW_ERR_MEMORY, "no memory for %d states", t->n_states + n);
    memcpy(*list, t->states, (size_t)t->n_states * sizeof(**list));
    memcpy(*list + t->n_states, residuals, (size_t)n * sizeof(**list));
    c->states = *list;
    c->n_states += n;
    return EW_OK;
}

bool ew_trainer_write(struct ew_trainer *t, const char *name)
{
    EW_CLEANUP(ew_free_ptr) struct ew_checkpoint_state *list = NULL;
    struct ew_checkpoint c = {.graph = t->net,
                              .options = t->job.options,
                              .classes = t->classes,
                              .n_classes = (int)ew_dataset_info(t->job.data)->classes,
                              .prep = t->job.prep};
    t->saved_ns = ew_clock_ns();
    if (all_states(t, strcmp(name, "best.ckpt") != 0, &c, &list) != EW_OK) {
        EW_WARN("checkpoint: %s", ew_error_message());
        return false;
    }
    if (!*t->dir.path)
        return false;
    ew_rundir_flush(&t->dir);
    for (int i = 0; i < EW_ROWS_COUNT; i++)
        t->at.rows_bytes[i] = t->dir.rows[i].good;
    t->at.parts = t->exchange ? 0 : t->learner.micro_batches;
    EW_CLEANUP(ew_free_ptr) char *progress = NULL;
    if (pull(t) != EW_OK || ew_fields_text(ew_train_position_fields, &t->at, &progress) != EW_OK) {
        EW_WARN("checkpoint: %s", ew_error_message());
        return false;
    }
    c.progress = progress;
    ew_rundir_checkpoint(&t->dir, name, &c);
    t->saved_ns = ew_clock_ns();
    return !t->dir.checkpoint_failed;
}

void ew_trainer_save(struct ew_trainer *t)
{
    if (ew_trainer_drain(t) == EW_OK) {
        ew_trainer_write(t, "last.ckpt");
        return;
    }
    EW_WARN("checkpoint: %s", ew_error_message());
    t->dir.checkpoint_failed = true;
}
