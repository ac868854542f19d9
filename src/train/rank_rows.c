/* SPDX-License-Identifier: Apache-2.0 */
/* Communication of ranks beside gradients: agreement on the run, statistics of a batch, and the
 * times of an epoch by rank. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "train/trainer_impl.h"

#define FILE_LIMIT (64 << 20)

/* ---- Agreement ---- */

static void add_weights(const struct ew_graph *g, struct ew_hash_wide *h)
{
    for (int i = 0; i < g->n_values; i++) {
        const struct ew_value *v = &g->values[i];
        if (v->t.data && (v->kind == EW_VALUE_PARAM || v->kind == EW_VALUE_STATE))
            ew_hash_wide_add(h, v->t.data, ew_tensor_bytes(&v->t));
    }
}

ew_err ew_trainer_agree(struct ew_trainer *t)
{
    const struct ew_train_opts *o = &t->job.opts;
    const double rates[] = {o->lr, o->momentum, o->weight_decay, o->warmup, o->gamma};
    const struct ew_exchange_opts *x = &t->job.exchange;
    const int64_t numbers[] = {o->epochs,    o->batch,    o->seed,       o->optimizer,
                               o->schedule,  o->shuffle,  t->n_training, t->n_validation,
                               t->at.epoch,  t->at.batch, t->at.step,    x->form,
                               x->sync_norms};
    struct ew_hash_wide weights = {0};
    add_weights(t->net, &weights);
    const uint64_t sum = ew_hash_wide_sum(&weights);
    EW_TRY(ew_ranks_agree(t->job.ranks, numbers, sizeof(numbers), "options or data"));
    EW_TRY(ew_ranks_agree(t->job.ranks, rates, sizeof(rates), "options"));
    return ew_ranks_agree(t->job.ranks, &sum, sizeof(sum), "weights");
}

/* ---- A batch ---- */

ew_err ew_trainer_sum_batch(struct ew_trainer *t, double *loss, int64_t *right, int64_t *counted,
                            int64_t *comm_ns)
{
    enum { LOSS, RIGHT, COUNTED, STOP, SAVE, N };
    const bool writes = ew_ranks_rank(t->job.ranks) == 0;
    double all[N] = {*loss * (double)t->slice / (double)t->job.opts.batch, (double)*right,
                     (double)*counted, t->job.stop && *t->job.stop ? 1 : 0,
                     writes && ew_trainer_save_due(t) ? 1 : 0};
    EW_TRY(ew_exchange_numbers(t->exchange, all, N));
    *loss = all[LOSS];
    *right = (int64_t)all[RIGHT];
    *counted = (int64_t)all[COUNTED];
    t->stops = all[STOP] > 0;
    t->saves = all[SAVE] > 0;
    const struct ew_exchange_times x = ew_exchange_spent(t->exchange);
    *comm_ns = x.spent_ns;
    t->at.now.hidden_s += (double)x.hidden_ns * 1e-9;
    return EW_OK;
}

/* ---- An evaluation ---- */

#define PIECE 65536 /* counts summed per message */

static ew_err add_counts(struct ew_ranks *ranks, int64_t *counts, int64_t n)
{
    const int size = ew_ranks_size(ranks);
    EW_CLEANUP(ew_free_ptr)
    int64_t *all = calloc((size_t)(size * ew_min_i64(n, PIECE)), sizeof(*all));
    EW_CHECK(all, EW_ERR_MEMORY, "no memory for %d ranks", size);
    for (int64_t at = 0; at < n; at += PIECE) {
        const int64_t part = ew_min_i64(PIECE, n - at);
        EW_TRY(ew_ranks_allgather_own_comm(ranks, counts + at, all, (size_t)part * sizeof(*all)));
        memset(counts + at, 0, (size_t)part * sizeof(*all));
        for (int64_t i = 0; i < size * part; i++)
            counts[at + i % part] += all[i];
    }
    return EW_OK;
}

static ew_err add_loss(struct ew_ranks *ranks, double *loss)
{
    const int size = ew_ranks_size(ranks);
    EW_CLEANUP(ew_free_ptr) double *all = calloc((size_t)size, sizeof(*all));
    EW_CHECK(all, EW_ERR_MEMORY, "no memory for %d ranks", size);
    EW_TRY(ew_ranks_allgather_own_comm(ranks, loss, all, sizeof(*all)));
    *loss = 0;
    for (int i = 0; i < size; i++)
        *loss += all[i];
    return EW_OK;
}

ew_err ew_trainer_add_scores(const struct ew_trainer *t, struct ew_evaluator *e)
{
    struct ew_ranks *ranks = t->job.ranks;
    struct ew_confusion *c = &e->confusion;
    if (!t->exchange)
        return EW_OK;
    if (e->loss) {
        EW_TRY(add_counts(ranks, &e->compared, 1));
        return add_loss(ranks, &e->loss_sum);
    }
    EW_TRY(add_counts(ranks, c->count, ew_confusion_size(c)));
    EW_TRY(add_counts(ranks, &c->total, 1));
    EW_TRY(add_counts(ranks, &c->correct, 1));
    return add_loss(ranks, &c->loss_sum);
}

ew_err ew_trainer_broadcast_weights(const struct ew_trainer *t, struct ew_graph *g)
{
    const int size = ew_ranks_size(t->job.ranks);
    EW_CLEANUP(ew_free_ptr) char *all = t->exchange ? malloc((size_t)size * PIECE) : NULL;
    EW_CHECK(all || !t->exchange, EW_ERR_MEMORY, "no memory for %d ranks", size);
    for (int i = 0; t->exchange && i < g->n_values; i++) {
        const struct ew_value *v = &g->values[i];
        const bool sent = v->kind == EW_VALUE_PARAM || v->kind == EW_VALUE_STATE;
        char *data = v->t.data;
        const size_t bytes = sent && data ? ew_tensor_bytes(&v->t) : 0;
        for (size_t at = 0; at < bytes; at += PIECE) {
            const size_t part = bytes - at < PIECE ? bytes - at : PIECE;
            EW_TRY(ew_ranks_allgather_own_comm(t->job.ranks, data + at, all, part));
            memcpy(data + at, all, part);
        }
    }
    return EW_OK;
}

/* ---- An epoch ---- */

#define HEAD "epoch,rank,name,wall_s,compute_s,stall_s,comm_s,overhead_s,hidden_s\n"

/* Copies the lines of epochs before `epoch`; a resumed epoch is written anew. */
static void keep_before(FILE *out, char *text, int64_t epoch)
{
    char *save = NULL;
    fputs(HEAD, out);
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
        if (line[0] >= '0' && line[0] <= '9' && atoll(line) < epoch)
            fprintf(out, "%s\n", line);
}

static ew_err write_rows(struct ew_trainer *t, const struct ew_train_times *all)
{
    char path[EW_RUNDIR_PATH], *old = NULL, *text = NULL;
    size_t size;
    if (!*t->dir.path)
        return EW_OK;
    if (ew_file_read(ew_rundir_file(&t->dir, "ranks.csv", path), FILE_LIMIT, &old, &size) != EW_OK)
        old = strdup("");
    FILE *out = old ? open_memstream(&text, &size) : NULL;
    if (out)
        keep_before(out, old, t->at.epoch);
    for (int i = 0; out && i < ew_ranks_size(t->job.ranks); i++)
        fprintf(out, "%lld,%d,\"%s\",%.9g,%.9g,%.9g,%.9g,%.9g,%.9g\n", (long long)t->at.epoch, i,
                ew_ranks_name(t->job.ranks, i), all[i].wall_s, all[i].compute_s, all[i].stall_s,
                all[i].comm_s, all[i].overhead_s, all[i].hidden_s);
    free(old);
    EW_CHECK(out && ew_memstream_close(out, &text), EW_ERR_MEMORY, "no memory for rows");
    const ew_err err = ew_rundir_text(&t->dir, "ranks.csv", text);
    free(text);
    return err;
}

ew_err ew_trainer_rank_rows(struct ew_trainer *t)
{
    const int n = ew_ranks_size(t->job.ranks);
    struct ew_train_times *all = calloc((size_t)n, sizeof(*all));
    EW_CHECK(all, EW_ERR_MEMORY, "no memory for %d ranks", n);
    ew_err err = ew_ranks_allgather(t->job.ranks, &t->at.now, all, sizeof(*all));
    if (err == EW_OK)
        err = write_rows(t, all);
    free(all);
    return err;
}
