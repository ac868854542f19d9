/* SPDX-License-Identifier: Apache-2.0 */
/* The batches of an epoch, and their time:
 *
 *   mark            ask      got          learnt      counted = next mark
 *   |-- overhead --|- stall -|- compute ---|- overhead -|
 *
 * Time spent on communication with other ranks is `comm`, and subtracted from compute.  Writing
 * rows, checkpoints and the caller's display fall before the next `ask`, so every nanosecond of an
 * epoch is in one of them.  What is written between epochs is in `checkpoint_s`.
 *
 * With an asynchronous device a step runs while the host counts the one before it and fetches the
 * next.  Compute is then the device's own time, and stall the host's wait for the loader, as far as
 * the device was idle meanwhile. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "train/trainer_impl.h"

#define RECENT 0.02 /* weight of a batch in the moving average of the loss */

/* Share of the training data in the page cache; nan: unknown. */
static double cached_share(const struct ew_trainer *t)
{
    double share;
    const ew_err e = ew_dataset_resident(t->job.data, EW_SPLIT_TRAIN, &share);
    return e == EW_OK && share >= 0 ? share : (double)NAN;
}

ew_err ew_trainer_begin_epoch(struct ew_trainer *t)
{
    if (t->at.batch == 0) {
        t->at.now = (struct ew_train_times){0};
        t->at.loss_sum = 0;
        t->at.right = t->at.counted = t->at.images = 0;
        t->at.read_bytes = t->at.read_ops = 0;
    }
    if (t->job.opts.load.cold == EW_COLD_EVERY_EPOCH) {
        EW_TRY(ew_dataset_drop_cache(t->job.data, EW_SPLIT_TRAIN));
        ew_loader_drop_cache(t->loader);
    }
    t->cache_before = cached_share(t);
    if (t->cached)
        ew_features_start(&t->features, t->at.epoch);
    else
        EW_TRY(ew_loader_start(t->loader, t->at.epoch, t->at.batch));
    t->phase = EW_DOING_TRAINING;
    t->mark_ns = ew_clock_ns();
    t->whole = t->at.batch == 0;
    t->epoch_ns = t->mark_ns;
    ew_watch_forget(t->job.watch, t->epoch_ns);
    return EW_OK;
}

/* ---- One batch ---- */

/* Nanoseconds of a batch. */
struct batch_times {
    int64_t got; /* when the batch arrived */
    int64_t stall, compute;
    int64_t comm; /* communication with other ranks */
};

static void add_times(struct ew_train_times *sum, const struct ew_batch_row *row)
{
    sum->wall_s += row->wall_s;
    sum->compute_s += row->compute_s;
    sum->stall_s += row->stall_s;
    sum->overhead_s += row->overhead_s;
    if (!isnan(row->comm_s))
        sum->comm_s += row->comm_s;
    sum->fetch_s += row->fetch_s;
    sum->decode_s += row->decode_s;
    sum->augment_s += row->augment_s;
}

static void fill_row(struct ew_trainer *t, const struct ew_batch *b, const struct batch_times *s,
                     struct ew_batch_row *row)
{
    const int64_t now = ew_clock_ns(), wall = now - t->mark_ns;
    /* the device's clock differs from the host's: clamp to the wall time */
    const int64_t compute = ew_min_i64(s->compute, wall - s->comm);
    const int64_t stall = ew_min_i64(s->stall, wall - s->comm - compute);
    t->mark_ns = now;
    ew_record_clear(EW_RECORD_BATCH, row);
    row->epoch = t->at.epoch + 1;
    row->batch = t->at.batch + 1;
    row->images = t->exchange ? t->job.opts.batch : b->n;
    row->wall_s = (double)wall / 1e9;
    row->stall_s = (double)stall / 1e9;
    row->compute_s = (double)compute / 1e9;
    if (t->exchange)
        row->comm_s = (double)s->comm / 1e9;
    row->overhead_s = (double)(wall - stall - compute - s->comm) / 1e9;
    row->fetch_s = (double)b->fetch_ns / 1e9;
    row->decode_s = (double)b->decode_ns / 1e9;
    row->augment_s = (double)b->augment_ns / 1e9;
    row->read_bytes = b->bytes_read;
}

static void count_batch(struct ew_trainer *t, const struct ew_batch *b, struct ew_batch_row *row)
{
    const int64_t n = row->images;
    add_times(&t->at.now, row);
    t->at.images += n;
    t->at.read_bytes += b->bytes_read;
    t->at.read_ops += b->ops_read;
    t->at.bad += b->bad;
    t->at.loss_sum += row->loss;
    t->recent_loss =
        !(t->recent_loss > 0) ? row->loss : (1 - RECENT) * t->recent_loss + RECENT * row->loss;
    t->at.batch++;
    t->at.step++;
}

static ew_err learn(struct ew_trainer *t, const struct ew_batch *b)
{
    const void *made[EW_LEARNER_INPUTS], *const *features = made;
    const int64_t step = t->at.step + t->n_flight;
    const double lr = ew_schedule_rate(&t->schedule, step);
    if (t->cached)
        features = (const void *const *)t->features.batch;
    else
        EW_TRY(ew_learner_features(&t->learner, b->images, made));
    EW_TRY(ew_learner_teach(&t->learner, b->images));
    return ew_learner_start(&t->learner, features, b->labels, lr, step);
}

/* Counts a finished batch: loss, accuracy, times, its row. */
static ew_err use_batch(struct ew_trainer *t, const struct ew_batch *b, struct batch_times *s)
{
    int64_t device_ns, counted, right;
    EW_TRY(ew_learner_finish(&t->learner, &device_ns));
    int64_t learnt = ew_clock_ns();
    right = ew_learner_correct(&t->learner, b->labels, &counted);
    double loss = ew_learner_loss(&t->learner);
    if (t->exchange) {
        EW_TRY(ew_trainer_sum_batch(t, &loss, &right, &counted, &s->comm));
        learnt = ew_clock_ns();
    }
    s->compute = t->depth > 1 ? device_ns : learnt - s->got - s->comm;
    t->at.right += right;
    t->at.counted += counted;
    struct ew_batch_row row;
    fill_row(t, b, s, &row);
    row.loss = loss;
    if (counted)
        row.accuracy = (double)right / (double)counted;
    EW_CHECK(isfinite(row.loss), EW_ERR_ARG,
             "the loss is %g at epoch %lld, batch %lld: it has diverged; a lower learning rate may "
             "help",
             row.loss, (long long)row.epoch, (long long)row.batch);
    count_batch(t, b, &row);
    ew_rundir_batch(&t->dir, &row);
    return EW_OK;
}

/* Fetches the next batch from the loader or the cached features. */
static ew_err next_batch(struct ew_trainer *t, struct ew_flight *f)
{
    struct ew_batch *cached = &f->cached;
    if (!t->cached)
        return ew_loader_next(t->loader, &f->batch);
    *cached = (struct ew_batch){.labels = t->features.batch_labels, .number = t->at.batch};
    ew_features_gather(&t->features, t->at.batch, &cached->n);
    f->batch = cached->n == t->learner.batch ? cached : NULL;
    return EW_OK;
}

/* Fetches the next batch and starts its step; *last: there was none. */
static ew_err begin_batch(struct ew_trainer *t, struct batch_times *s, bool *last)
{
    struct ew_flight *f = &t->flight[t->n_flight];
    const int64_t ask = ew_clock_ns();
    EW_TRY(next_batch(t, f));
    s->got = ew_clock_ns();
    s->stall += s->got - ask;
    *last = !f->batch;
    if (*last)
        return EW_OK;
    const struct ew_batch *b = f->batch;
    EW_CHECK(b->n == t->learner.batch, EW_ERR_INTERNAL, "batch %lld has %lld samples, not %lld",
             (long long)b->number, (long long)b->n, (long long)t->learner.batch);
    EW_TRY(learn(t, b));
    t->n_flight++;
    return EW_OK;
}

/* Waits for the oldest step in flight. */
static ew_err end_batch(struct ew_trainer *t, struct batch_times *s)
{
    const struct ew_batch *b = t->flight[0].batch;
    const ew_err e = use_batch(t, b, s);
    if (!t->cached)
        ew_loader_release(t->loader, b);
    t->n_flight--;
    memmove(t->flight, t->flight + 1, (size_t)t->n_flight * sizeof(t->flight[0]));
    return e;
}

ew_err ew_trainer_drain(struct ew_trainer *t)
{
    while (t->n_flight) {
        struct batch_times s = {.got = t->mark_ns};
        EW_TRY(end_batch(t, &s));
    }
    return EW_OK;
}

bool ew_trainer_save_due(const struct ew_trainer *t)
{
    return (double)(ew_clock_ns() - t->saved_ns) * 1e-9 >= t->job.opts.checkpoint_every;
}

ew_err ew_trainer_batch(struct ew_trainer *t, bool *over)
{
    struct batch_times s = {0};
    bool last = false;
    /* before a checkpoint no further step may be in flight */
    const int most = !t->exchange && ew_trainer_save_due(t) ? 1 : t->depth;
    while (t->n_flight < most && !last)
        EW_TRY(begin_batch(t, &s, &last));
    *over = t->n_flight == 0;
    if (*over)
        return EW_OK;
    EW_TRY(end_batch(t, &s));
    ew_watch_drain(t->job.watch);
    if (t->n_flight == 0 && (t->exchange ? t->saves : ew_trainer_save_due(t)))
        ew_trainer_write(t, "last.ckpt");
    return EW_OK;
}

/* ---- End of an epoch ---- */

static int64_t peak_rss(void)
{
    struct rusage use;
    return getrusage(RUSAGE_SELF, &use) == 0 ? 1024LL * use.ru_maxrss : 0;
}

/* Resident memory now; absent if unknown. */
static int64_t rss(void)
{
    long long all, resident;
    FILE *f = fopen("/proc/self/statm", "re");
    const bool told = f && fscanf(f, "%lld %lld", &all, &resident) == 2;
    if (f)
        fclose(f);
    return told ? resident * sysconf(_SC_PAGESIZE) : EW_INT_ABSENT;
}

static void fill_scores(struct ew_epoch_row *row, const struct ew_scores *scores)
{
    const struct ew_scores none = ew_scores_of_loss((double)NAN, 0);
    const struct ew_scores *s = scores->samples ? scores : &none;
    row->loss = s->loss;
    row->accuracy = s->accuracy;
    row->precision = s->precision;
    row->recall = s->recall;
    row->f1 = s->f1;
}

/* Sensor readings of the epoch's training, without validation.  If another process began the epoch
 * its energy is unknown. */
static void fill_readings(struct ew_trainer *t)
{
    struct ew_epoch_row *row = &t->row;
    const struct ew_energy e = ew_watch_energy(t->job.watch, t->epoch_ns, t->eval_ns);
    const struct ew_watch_means m = ew_watch_means(t->job.watch, t->epoch_ns, t->eval_ns);
    row->cpu_load = m.cpu_load;
    row->gpu_load = m.gpu_load;
    row->temp_c = m.temp_c;
    if (e.absent != EW_ABSENT_NOT || !t->whole)
        return;
    row->energy_j = e.joules;
    row->energy_error_j = e.error_j;
    row->power_w = e.mean_w;
    if (t->job.base_power_w > 0)
        row->base_power_w = t->job.base_power_w;
    t->at.energy_j += e.joules;
    t->at.energy_epochs++;
}

/* Fills the epoch's row; `s` NULL: not validated. */
static void fill_epoch(struct ew_trainer *t, const struct ew_scores *s)
{
    struct ew_epoch_row *row = &t->row;
    const struct ew_train_times *now = &t->at.now;
    ew_record_clear(EW_RECORD_EPOCH, row);
    row->epoch = t->at.epoch + 1;
    row->wall_s = now->wall_s;
    row->compute_s = now->compute_s;
    row->stall_s = now->stall_s;
    row->overhead_s = now->overhead_s;
    if (t->exchange)
        row->comm_s = now->comm_s;
    row->fetch_s = now->fetch_s;
    row->decode_s = now->decode_s;
    row->augment_s = now->augment_s;
    row->images = t->at.images;
    row->batches = t->at.batch;
    row->images_per_s = now->wall_s > 0 ? (double)t->at.images / now->wall_s : 0;
    row->learning_rate = ew_schedule_rate(&t->schedule, t->at.step > 0 ? t->at.step - 1 : 0);
    if (t->at.batch)
        row->train_loss = t->at.loss_sum / (double)t->at.batch;
    if (t->at.counted)
        row->train_accuracy = (double)t->at.right / (double)t->at.counted;
    row->read_bytes = t->at.read_bytes;
    row->read_ops = t->at.read_ops;
    row->cache_before = t->cache_before;
    row->cache_after = cached_share(t);
    row->rss_bytes = rss();
    row->rss_peak_bytes = ew_max_i64(peak_rss(), row->rss_bytes); /* the kernel's counts lag */
    row->quality = t->emulated ? EW_QUALITY_EMULATED : EW_QUALITY_MEASURED;
    if (s) {
        row->eval_s = (double)(ew_clock_ns() - t->eval_ns) * 1e-9;
        t->at.eval_s += row->eval_s;
        fill_scores(row, s);
    }
    fill_readings(t);
}

/* Tracks the best epoch: by validation F1, without classes by the loss; the first of equals. */
static bool note_best(struct ew_trainer *t, const struct ew_scores *s)
{
    t->at.last = *s;
    t->at.validations++;
    const bool lower = s->loss < t->at.best.loss || isnan(t->at.best.loss);
    const bool better = t->loss ? lower : s->f1 > t->at.best.f1;
    if (t->at.best_epoch && !better)
        return false;
    t->at.best_epoch = t->at.epoch + 1;
    t->at.best = *s;
    return true;
}

static ew_err write_epoch(struct ew_trainer *t, const struct ew_scores *s)
{
    const bool best = s && note_best(t, s);
    struct ew_train_times *all = &t->at.all;
    const struct ew_train_times *now = &t->at.now;
    all->wall_s += now->wall_s;
    all->compute_s += now->compute_s;
    all->stall_s += now->stall_s;
    all->overhead_s += now->overhead_s;
    all->comm_s += now->comm_s;
    all->fetch_s += now->fetch_s;
    all->decode_s += now->decode_s;
    all->augment_s += now->augment_s;
    t->at.images_all += t->at.images;
    t->at.epoch++;
    t->at.batch = 0;
    ew_rundir_epoch(&t->dir, &t->row);
    if (t->exchange)
        EW_TRY(ew_trainer_rank_rows(t));
    if (t->job.record && ew_ranks_rank(t->job.ranks) == 0)
        EW_TRY(t->job.record(t->job.record_ctx, &t->row));
    if (!s && !t->exchange && !ew_trainer_save_due(t))
        return EW_OK;
    const bool written = best && ew_trainer_write(t, "best.ckpt");
    /* best.ckpt is a hard link to last.ckpt, except with ranks, whose last.ckpt has more state */
    if (!written || t->exchange || !ew_rundir_same(&t->dir, "best.ckpt", "last.ckpt"))
        ew_trainer_write(t, "last.ckpt");
    return EW_OK;
}

ew_err ew_trainer_end_epoch(struct ew_trainer *t, const struct ew_scores *s)
{
    fill_epoch(t, s);
    const int64_t start = ew_clock_ns();
    const ew_err e = write_epoch(t, s);
    t->at.checkpoint_s += (double)(ew_clock_ns() - start) * 1e-9;
    return e;
}
