/* SPDX-License-Identifier: Apache-2.0 */
/* Rounds: selection of clients, local training, aggregation. */
#include "federate/federation.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/rng.h"
#include "federate/keys.h"
#include "federate/local_trainer.h"
#include "train/evaluate.h"

#define ASK_STREAM   0x61736b /* "ask", plus the round above it */
#define DROP_STREAM  0x64726f
#define NOISE_STREAM 0x6e6f69
#define EVAL_BATCH   64

const char *const ew_federation_methods[] = {
#define EW_FEDERATION_NAME(id, name) name,
    EW_FEDERATION_MAP(EW_FEDERATION_NAME)
#undef EW_FEDERATION_NAME
        NULL};

/* What a client returns beside its weights. */
struct reply {
    double loss;
    int64_t steps;
    int64_t stops; /* the rank that simulated it was asked to stop */
};

struct ew_federation {
    struct ew_federation_job job;
    struct ew_partition parts;
    struct ew_local_trainer client; /* simulates all clients, one after the other */
    struct ew_evaluator test;
    struct ew_aggregator weights;
    float *server, *answer;   /* the server's weights; a client's */
    float *control, *changes; /* scaffold: the server's variate; the sum of clients' changes */
    float **controls;         /* scaffold: each client's, NULL until it has answered */
    struct ew_checkpoint_state *states;
    int n_states;
    int64_t *order; /* of clients, in the order in which they are asked */
    int64_t round;
    int64_t losses;  /* of this round */
    bool *answering; /* by rank: whether its client answers */
    float *gathered; /* ranks: their answers, one after the other */
    struct reply *replies;
};

/* ---- Opening ---- */

static ew_err check_opts(const struct ew_federation_opts *o, const struct ew_dataset_info *info)
{
    EW_CHECK(info->count[EW_SPLIT_TRAIN] > 0, EW_ERR_ARG, "%s: has no training data", info->name);
    EW_CHECK(info->count[EW_SPLIT_TEST] > 0, EW_ERR_ARG,
             "%s: has no test split to measure the server's weights on", info->name);
    EW_CHECK(o->method == EW_FEDERATION_FEDAVG || !(o->momentum > 0), EW_ERR_USAGE,
             "%s is defined for steps without momentum; --momentum 0",
             ew_federation_methods[o->method]);
    EW_CHECK(o->method != EW_FEDERATION_SCAFFOLD || o->combine == EW_AGGREGATE_MEAN, EW_ERR_USAGE,
             "scaffold is defined for means; --combine mean");
    EW_CHECK(o->nonsense <= o->clients, EW_ERR_USAGE, "%lld of %lld clients cannot return noise",
             (long long)o->nonsense, (long long)o->clients);
    return EW_OK;
}

static ew_err read_labels(const struct ew_dataset *d, int64_t n, int32_t *labels)
{
    struct ew_sample s = {0};
    ew_err e = EW_OK;
    for (int64_t i = 0; i < n && e == EW_OK; i++) {
        e = ew_dataset_fetch(d, EW_SPLIT_TRAIN, i, &s);
        labels[i] = (int32_t)s.label;
    }
    ew_sample_fini(&s);
    return e;
}

static ew_err divide(struct ew_federation *f)
{
    struct ew_federation_opts *o = &f->job.opts;
    const struct ew_dataset_info *info = ew_dataset_info(f->job.data);
    const int64_t have = info->count[EW_SPLIT_TRAIN];
    const int64_t n = o->samples > 0 && o->samples < have ? o->samples : have;
    EW_CLEANUP(ew_free_ptr) int32_t *keys = NULL;
    EW_CHECK((o->split == EW_PARTITION_KEY) == (f->job.keys != NULL), EW_ERR_USAGE,
             "--split key needs --keys FILE, and --keys needs --split key");
    if (f->job.keys) /* one client for each key */
        EW_TRY(ew_keys_read(f->job.keys, n, &keys, &o->clients));
    const struct ew_partition_opts p = {.kind = (enum ew_partition_kind)o->split,
                                        .clients = o->clients,
                                        .alpha = o->alpha,
                                        .shards = o->shards,
                                        .keys = keys,
                                        .seed = (uint64_t)o->seed};
    EW_CLEANUP(ew_free_ptr) int32_t *labels = malloc((size_t)n * sizeof(*labels));
    EW_CHECK(labels, EW_ERR_MEMORY, "no memory for %lld labels", (long long)n);
    EW_TRY(read_labels(f->job.data, n, labels));
    return ew_partition_make(&p, labels, n, info->classes, &f->parts);
}

static ew_err open_test(struct ew_federation *f)
{
    const struct ew_federation_opts *o = &f->job.opts;
    const int64_t have = ew_dataset_info(f->job.data)->count[EW_SPLIT_TEST];
    const int64_t n = o->eval_samples > 0 && o->eval_samples < have ? o->eval_samples : have;
    EW_CLEANUP(ew_free_ptr) int64_t *list = malloc((size_t)n * sizeof(*list));
    EW_CHECK(list, EW_ERR_MEMORY, "no memory for %lld samples", (long long)n);
    for (int64_t i = 0; i < n; i++)
        list[i] = ew_subsample_index(i, n, have);
    const struct ew_loader_opts l = {.data = f->job.data,
                                     .split = EW_SPLIT_TEST,
                                     .subset = list,
                                     .n_subset = n,
                                     .batch = EVAL_BATCH,
                                     .prep = f->job.prep};
    EW_TRY(ew_evaluator_open(&l, f->job.net, (int)o->threads, &f->test));
    f->test.lender = ew_local_trainer_plan(&f->client);
    return EW_OK;
}

static float *new_floats(int64_t n)
{
    return calloc((size_t)n + 1, sizeof(float));
}

/* Allocates memory for the answers of all ranks. */
static ew_err take_rank_memory(struct ew_federation *f, int64_t size)
{
    const size_t n = (size_t)ew_ranks_size(f->job.ranks);
    f->answering = calloc(n, sizeof(*f->answering));
    f->replies = calloc(n, sizeof(*f->replies));
    if (f->job.ranks)
        f->gathered = new_floats(size * (int64_t)n);
    EW_CHECK(f->answering && f->replies && (!f->job.ranks || f->gathered), EW_ERR_MEMORY,
             "no memory for the answers of %zu ranks", n);
    return EW_OK;
}

static ew_err take_memory(struct ew_federation *f)
{
    const struct ew_federation_opts *o = &f->job.opts;
    const int64_t size = f->client.weights.size, learning = f->client.weights.learning;
    const bool scaffold = o->method == EW_FEDERATION_SCAFFOLD;
    f->server = new_floats(size);
    f->answer = new_floats(size);
    f->order = calloc((size_t)o->clients, sizeof(*f->order));
    f->controls = calloc((size_t)o->clients, sizeof(*f->controls));
    f->states = calloc((size_t)o->clients + 1, sizeof(*f->states));
    EW_TRY(take_rank_memory(f, size));
    if (scaffold) {
        f->control = new_floats(learning);
        f->changes = new_floats(learning);
    }
    EW_CHECK(f->server && f->answer && f->order && f->controls && f->states &&
                 (!scaffold || (f->control && f->changes)),
             EW_ERR_MEMORY, "no memory for %lld weights", (long long)size);
    return ew_aggregator_open((enum ew_aggregate_kind)o->combine, size, o->trim, &f->weights);
}

static ew_err open_all(struct ew_federation *f)
{
    const struct ew_federation_opts *o = &f->job.opts;
    EW_TRY(check_opts(o, ew_dataset_info(f->job.data)));
    EW_TRY(divide(f));
    const struct ew_local_opts c = {.batch = o->batch,
                                    .epochs = o->local_epochs,
                                    .threads = (int)o->threads,
                                    .momentum = o->momentum,
                                    .mu = o->method == EW_FEDERATION_FEDPROX ? o->mu : 0,
                                    .seed = (uint64_t)o->seed,
                                    .data = f->job.data,
                                    .prep = f->job.prep};
    EW_TRY(ew_local_trainer_open(&c, f->job.net, &f->client));
    EW_TRY(take_memory(f));
    EW_TRY(open_test(f));
    ew_weight_vector_read(&f->client.weights, f->server);
    return EW_OK;
}

ew_err ew_federation_open(const struct ew_federation_job *job, struct ew_federation **out)
{
    struct ew_federation *f = calloc(1, sizeof(*f));
    EW_CHECK(f, EW_ERR_MEMORY, "no memory for a federation");
    f->job = *job;
    const ew_err e = open_all(f);
    if (e != EW_OK)
        ew_federation_close(f);
    else
        *out = f;
    return e;
}

void ew_federation_close(struct ew_federation *f)
{
    if (!f)
        return;
    for (int64_t k = 0; f->controls && k < f->job.opts.clients; k++)
        free(f->controls[k]);
    free(f->controls);
    free(f->control);
    free(f->changes);
    free(f->server);
    free(f->answer);
    free(f->order);
    free(f->states);
    free(f->answering);
    free(f->gathered);
    free(f->replies);
    ew_evaluator_close(&f->test);
    ew_local_trainer_close(&f->client);
    ew_aggregator_close(&f->weights);
    ew_partition_free(&f->parts);
    free(f);
}

int64_t ew_federation_sizes(const struct ew_federation *f, int64_t *least, int64_t *most)
{
    *least = INT64_MAX;
    *most = 0;
    for (int64_t k = 0; k < f->parts.clients; k++) {
        const int64_t n = f->parts.first[k + 1] - f->parts.first[k];
        *least = n < *least ? n : *least;
        *most = n > *most ? n : *most;
    }
    return f->parts.clients;
}

/* ---- Simulated boards ---- */

static int64_t samples_of(const struct ew_federation *f, int64_t client)
{
    return f->parts.first[client + 1] - f->parts.first[client];
}

/* Simulated seconds that a client trains for; 0 without a fleet. */
static double seconds_of(const struct ew_federation *f, int64_t client)
{
    if (!f->job.fleet)
        return 0;
    return (double)(samples_of(f, client) * f->job.opts.local_epochs) /
           ew_fleet_client(f->job.fleet, client)->samples_per_s;
}

static bool is_late(const struct ew_federation *f, int64_t client)
{
    return f->job.opts.deadline_s > 0 && seconds_of(f, client) > f->job.opts.deadline_s;
}

/* Time and energy of one client's part in the round; a late client is stopped at the deadline.
 */
static void count_cost(const struct ew_federation *f, int64_t client, struct ew_federation_row *row)
{
    if (!f->job.fleet)
        return;
    const struct ew_fleet_kind *k = ew_fleet_client(f->job.fleet, client);
    const double s = is_late(f, client) ? f->job.opts.deadline_s : seconds_of(f, client);
    row->sim_j += s * k->power_w;
    if (s > row->sim_s) {
        row->sim_s = s;
        memcpy(row->slowest, k->name, sizeof(row->slowest));
    }
}

/* ---- A round ---- */

/* Selects the clients of the round: puts them first in `order` and returns their number. */
static int64_t choose(struct ew_federation *f)
{
    const struct ew_federation_opts *o = &f->job.opts;
    int64_t n = 0, asked = (int64_t)ceil(o->share * (double)o->clients - 1e-9);
    for (int64_t k = 0; k < o->clients; k++)
        if (!o->avoid_late || !is_late(f, k))
            f->order[n++] = k;
    struct ew_rng r = {.seed = (uint64_t)o->seed, .stream = ASK_STREAM | (uint64_t)f->round << 32};
    ew_rng_shuffle(&r, f->order, (size_t)n);
    asked = asked < 1 ? 1 : asked;
    return asked < n ? asked : n;
}

static bool drops_out(const struct ew_federation *f, int64_t client)
{
    const struct ew_federation_opts *o = &f->job.opts;
    return ew_rng_uniform((uint64_t)o->seed, DROP_STREAM | (uint64_t)f->round << 32,
                          (uint64_t)client) < o->drop;
}

/* The answer of a faulty client: noise of the weights' magnitude. */
static void make_nonsense(struct ew_federation *f, int64_t client)
{
    const uint64_t stream = NOISE_STREAM | (uint64_t)f->round << 32;
    const int64_t n = f->client.weights.size;
    for (int64_t i = 0; i < n; i++)
        f->answer[i] =
            (float)ew_rng_normal((uint64_t)f->job.opts.seed, stream, (uint64_t)(client * n + i));
}

/* Scaffold, option II: c_i' = c_i - c + (x - y) / (K lr). */
static ew_err learn_control(struct ew_federation *f, int64_t client, const float *answer,
                            double per_step)
{
    const int64_t n = f->client.weights.learning;
    if (!f->controls[client])
        f->controls[client] = new_floats(n);
    float *own = f->controls[client];
    EW_CHECK(own, EW_ERR_MEMORY, "no memory for the control variate of client %lld",
             (long long)client);
    for (int64_t i = 0; i < n; i++) {
        const float change = (f->server[i] - answer[i]) * (float)per_step - f->control[i];
        own[i] += change;
        f->changes[i] += change;
    }
    return EW_OK;
}

static double rate(const struct ew_federation *f)
{
    return f->job.opts.lr * pow(f->job.opts.lr_decay, (double)f->round);
}

/* Trains a client; its weights go to f->answer. */
static ew_err play(struct ew_federation *f, int64_t client, struct reply *out)
{
    const struct ew_federation_opts *o = &f->job.opts;
    if (client < o->nonsense) {
        make_nonsense(f, client);
        return EW_OK;
    }
    const struct ew_local_task task = {.samples = f->parts.samples + f->parts.first[client],
                                       .n = samples_of(f, client),
                                       .lr = rate(f),
                                       .stream = (uint64_t)(f->round * o->clients + client),
                                       .server = f->server,
                                       .control = f->control,
                                       .own = f->controls[client]};
    return ew_local_trainer_run(&f->client, &task, f->answer, &out->loss, &out->steps);
}

/* Whether a selected client answers. */
static bool answers(struct ew_federation *f, int64_t client, struct ew_federation_row *row)
{
    row->asked++;
    if (drops_out(f, client)) {
        row->dropped++;
        return false;
    }
    count_cost(f, client, row);
    row->late += is_late(f, client);
    return !is_late(f, client);
}

/* Hands an answer to the server, which refuses weights that are not finite. */
static ew_err take(struct ew_federation *f, int64_t client, const float *answer,
                   const struct reply *reply, struct ew_federation_row *row)
{
    const struct ew_federation_opts *o = &f->job.opts;
    const bool lies = client < o->nonsense, scaffold = o->method == EW_FEDERATION_SCAFFOLD;
    bool taken;
    const double weight = scaffold ? 1 : (double)samples_of(f, client);
    EW_TRY(ew_aggregator_add(&f->weights, answer, weight, &taken));
    if (scaffold && taken && !lies)
        EW_TRY(learn_control(f, client, answer, 1 / ((double)reply->steps * rate(f))));
    row->refused += !taken;
    row->answered += taken;
    row->samples += lies ? 0 : samples_of(f, client) * o->local_epochs;
    if (taken && !lies) {
        row->loss += reply->loss;
        f->losses++;
    }
    return EW_OK;
}

/* Trains one client on each rank; every rank then aggregates all answers in the order of selection,
 * so that all have the same server weights. */
static ew_err ask_wave(struct ew_federation *f, const int64_t *clients, int64_t n,
                       struct ew_federation_row *row)
{
    struct ew_ranks *ranks = f->job.ranks;
    const int64_t rank = ew_ranks_rank(ranks), size = f->client.weights.size;
    struct reply mine = {.stops = f->job.stop && f->job.stop(f->job.ctx)};
    EW_CHECK(ranks || !mine.stops, EW_ERR_SKIPPED, "stopped in round %lld of %lld",
             (long long)f->round + 1, (long long)f->job.opts.rounds);
    for (int64_t i = 0; i < n; i++)
        f->answering[i] = answers(f, clients[i], row);
    if (rank < n && f->answering[rank])
        EW_TRY(play(f, clients[rank], &mine));
    if (ranks) {
        EW_TRY(ew_ranks_allgather(ranks, &mine, f->replies, sizeof(mine)));
        EW_TRY(ew_ranks_allgather(ranks, f->answer, f->gathered, (size_t)size * sizeof(float)));
    }
    for (int64_t i = 0; ranks && i < ew_ranks_size(ranks); i++)
        EW_CHECK(!f->replies[i].stops, EW_ERR_SKIPPED, "stopped in round %lld of %lld",
                 (long long)f->round + 1, (long long)f->job.opts.rounds);
    for (int64_t i = 0; i < n; i++)
        if (f->answering[i])
            EW_TRY(take(f, clients[i], ranks ? f->gathered + i * size : f->answer,
                        ranks ? &f->replies[i] : &mine, row));
    return EW_OK;
}

static void aggregate(struct ew_federation *f, const struct ew_federation_row *row)
{
    if (row->answered == 0)
        return; /* the server's weights stay as they are */
    ew_aggregator_finish(&f->weights, f->server);
    for (int64_t i = 0; f->control && i < f->client.weights.learning; i++) {
        f->control[i] += f->changes[i] / (float)f->job.opts.clients;
        f->changes[i] = 0;
    }
}

static ew_err measure(struct ew_federation *f, struct ew_federation_row *row)
{
    struct ew_scores s;
    ew_weight_vector_write(&f->client.weights, f->server);
    EW_TRY(ew_evaluator_run(&f->test, f->job.net, &s));
    row->accuracy = s.accuracy;
    row->f1 = s.f1;
    row->test_loss = s.loss;
    return EW_OK;
}

ew_err ew_federation_round(struct ew_federation *f, struct ew_federation_row *row)
{
    const int64_t start = ew_clock_ns();
    const int64_t n = choose(f);
    *row = (struct ew_federation_row){.round = f->round + 1,
                                      .sim_s = f->job.fleet ? 0 : (double)NAN,
                                      .sim_j = f->job.fleet ? 0 : (double)NAN};
    EW_CHECK(n > 0, EW_ERR_ARG,
             "no client of this fleet answers within %g s; choose a later deadline",
             f->job.opts.deadline_s);
    const int64_t wave = ew_ranks_size(f->job.ranks);
    f->losses = 0;
    for (int64_t i = 0; i < n; i += wave)
        EW_TRY(ask_wave(f, f->order + i, ew_min_i64(wave, n - i), row));
    row->loss = f->losses ? row->loss / (double)f->losses : (double)NAN;
    aggregate(f, row);
    EW_TRY(measure(f, row));
    f->round++;
    row->wall_s = (double)(ew_clock_ns() - start) * 1e-9;
    return EW_OK;
}

/* ---- Checkpoints ---- */

static void add_state(struct ew_federation *f, int64_t slot, float *data)
{
    f->states[f->n_states++] = (struct ew_checkpoint_state){
        "control",
        slot,
        {.dtype = EW_F32, .shape = {1, {f->client.weights.learning}}, .data = data}};
}

void ew_federation_states(struct ew_federation *f, const struct ew_checkpoint_state **states,
                          int *n)
{
    f->n_states = 0;
    if (f->control)
        add_state(f, 0, f->control);
    for (int64_t k = 0; k < f->job.opts.clients; k++)
        if (f->controls[k])
            add_state(f, k + 1, f->controls[k]);
    *states = f->states;
    *n = f->n_states;
}

ew_err ew_federation_resume(struct ew_federation *f, const struct ew_checkpoint *c, int64_t rounds)
{
    const size_t bytes = (size_t)f->client.weights.learning * sizeof(float);
    for (int i = 0; i < c->n_states; i++) {
        const struct ew_checkpoint_state *s = &c->states[i];
        EW_CHECK(f->control && s->slot >= 0 && s->slot <= f->job.opts.clients &&
                     s->t.dtype == EW_F32 && ew_tensor_bytes(&s->t) == bytes,
                 EW_ERR_FORMAT, "the checkpoint's control variates do not fit");
        float **to = s->slot == 0 ? &f->control : &f->controls[s->slot - 1];
        if (!*to)
            *to = new_floats(f->client.weights.learning);
        EW_CHECK(*to, EW_ERR_MEMORY, "no memory for control variates");
        memcpy(*to, s->t.data, bytes);
    }
    f->round = rounds;
    return EW_OK;
}
