/* SPDX-License-Identifier: Apache-2.0 */
/* Federated learning, simulated in one process or by several ranks: a server and clients that each
 * have a part of the data; in every round some clients train the server's weights on their data,
 * and the server aggregates the results.
 *
 *   EW_TRY(ew_federation_open(&job, &f));
 *   while (round < job.opts.rounds)
 *       EW_TRY(ew_federation_round(f, &row));     the weights are in job.net
 *   ew_federation_close(f);
 *
 * The seed determines everything: partition, selection, failures and the order in which each client
 * sees its samples. */
#ifndef EW_FEDERATE_FEDERATION_H
#define EW_FEDERATE_FEDERATION_H

#include "base/field.h"
#include "data/data.h"
#include "data/preprocess.h"
#include "federate/aggregator.h"
#include "federate/fleet.h"
#include "federate/partition.h"
#include "format/checkpoint.h"
#include "graph/graph.h"
#include "train/ranks.h"

/* clang-format off */
#define EW_FEDERATION_MAP(X)                                                                       \
    X(FEDAVG, "fedavg")     /* McMahan et al., AISTATS 2017 */                                     \
    X(FEDPROX, "fedprox")   /* a pull towards the server's weights: Li et al., MLSys 2020 */       \
    X(SCAFFOLD, "scaffold") /* control variates, option II: Karimireddy et al., ICML 2020 */
/* clang-format on */

enum ew_federation_method {
#define EW_FEDERATION_ENUM(id, name) EW_FEDERATION_##id,
    EW_FEDERATION_MAP(EW_FEDERATION_ENUM)
#undef EW_FEDERATION_ENUM
        EW_FEDERATION_COUNT
};

extern const char *const ew_federation_methods[]; /* NULL at the end */

struct ew_federation_opts {
    int method;  /* enum ew_federation_method */
    int split;   /* enum ew_partition_kind */
    int combine; /* enum ew_aggregate_kind */
    int64_t rounds, clients, local_epochs, batch, shards;
    double share;               /* share of the clients that is selected in a round */
    double lr, lr_decay;        /* the rate, and its factor from round to round */
    double momentum, mu, alpha; /* mu: fedprox's pull; alpha: of the Dirichlet split */
    double trim;
    double drop;                   /* probability that a selected client does not answer */
    int64_t nonsense;              /* clients that answer with noise */
    double deadline_s;             /* simulated seconds after which a round ends; 0: none */
    bool avoid_late;               /* select only clients that will meet the deadline */
    int64_t samples, eval_samples; /* 0: all */
    int64_t seed, threads;
};

/* clang-format off */
/* Rows of an option table for `part`, a struct ew_federation_opts in struct `owner`. */
#define EW_FEDERATION_FIELDS(owner, part)                                                          \
    {.name = "rounds", .type = EW_FIELD_INT, .offset = offsetof(owner, part.rounds), .def = "20", .min = 1,\
     .max = 1e9, .metavar = "N", .help = "number of rounds"},                                      \
    {.name = "clients", .type = EW_FIELD_INT, .offset = offsetof(owner, part.clients), .def = "100", .min = 1,\
     .max = 1e6, .metavar = "N", .help = "number of clients"},                                     \
    {.name = "share", .type = EW_FIELD_FLOAT, .offset = offsetof(owner, part.share), .def = "0.1", .min = 0, .max = 1,\
     .metavar = "C", .help = "fraction of the clients that takes part in each round"},             \
    {.name = "local-epochs", .type = EW_FIELD_INT, .offset = offsetof(owner, part.local_epochs), .def = "5", .min = 1,\
     .max = 1e6, .metavar = "E", .help = "epochs that a client trains on its own data"},           \
    {.name = "batch", .type = EW_FIELD_INT, .offset = offsetof(owner, part.batch), .def = "10", .min = 1,\
     .max = 1048576, .metavar = "B", .letter = 'b', .help = "batch size of a client"},             \
    {.name = "lr", .type = EW_FIELD_FLOAT, .offset = offsetof(owner, part.lr), .def = "0.05", .min = 1e-12, .max = 1000,\
     .metavar = "R", .help = "learning rate of the clients"},                                      \
    {.name = "lr-decay", .type = EW_FIELD_FLOAT, .offset = offsetof(owner, part.lr_decay), .def = "1", .min = 0.01,\
     .max = 1, .metavar = "G", .help = "factor of the learning rate from round to round"},         \
    {.name = "momentum", .type = EW_FIELD_FLOAT, .offset = offsetof(owner, part.momentum), .def = "0", .min = 0,\
     .max = 1, .metavar = "M", .help = "momentum of the clients (fedavg only)"},                   \
    {.name = "method", .type = EW_FIELD_ENUM, .offset = offsetof(owner, part.method), .def = "fedavg",\
     .choices = ew_federation_methods, .metavar = "NAME", .help = "algorithm of the clients"},     \
    {.name = "mu", .type = EW_FIELD_FLOAT, .offset = offsetof(owner, part.mu), .def = "0.01", .min = 0, .max = 1000,\
     .metavar = "M", .help = "fedprox: weight of the proximal term"},                              \
    {.name = "split", .type = EW_FIELD_ENUM, .offset = offsetof(owner, part.split), .def = "even", \
     .choices = ew_partition_names, .metavar = "NAME",                                             \
     .help = "how samples are partitioned among clients"},                                         \
    {.name = "alpha", .type = EW_FIELD_FLOAT, .offset = offsetof(owner, part.alpha), .def = "1", .min = 1e-3,\
     .max = 1e6, .metavar = "A",                                                                   \
     .help = "dirichlet: concentration; smaller values give each client fewer classes"},           \
    {.name = "shards", .type = EW_FIELD_INT, .offset = offsetof(owner, part.shards), .def = "2", .min = 1, .max = 1e6,\
     .metavar = "N", .help = "shards: shards of the sorted data per client"},                      \
    {.name = "combine", .type = EW_FIELD_ENUM, .offset = offsetof(owner, part.combine), .def = "mean",\
     .choices = ew_aggregate_names, .metavar = "NAME",                                               \
     .help = "aggregation on the server; median and trimmed tolerate malicious clients"},          \
    {.name = "trim", .type = EW_FIELD_FLOAT, .offset = offsetof(owner, part.trim), .def = "0.2", .min = 0, .max = 0.5,\
     .metavar = "SHARE", .help = "trimmed: fraction removed at each end"},                         \
    {.name = "drop", .type = EW_FIELD_FLOAT, .offset = offsetof(owner, part.drop), .def = "0", .min = 0, .max = 1,\
     .metavar = "P", .help = "probability that a selected client does not answer"},                \
    {.name = "nonsense", .type = EW_FIELD_INT, .offset = offsetof(owner, part.nonsense), .def = "0", .min = 0,\
     .max = 1e6, .metavar = "N", .help = "number of clients that return noise"},                   \
    {.name = "deadline", .type = EW_FIELD_FLOAT, .offset = offsetof(owner, part.deadline_s), .def = "0", .min = 0,\
     .max = 1e9, .metavar = "S", .help = "with a fleet: simulated seconds after which a round ends; "\
     "0: none"},                                                                                   \
    {.name = "avoid-late", .type = EW_FIELD_BOOL, .offset = offsetof(owner, part.avoid_late),      \
     .help = "select only clients that will meet the deadline"},                                   \
    {.name = "samples", .type = EW_FIELD_INT, .offset = offsetof(owner, part.samples), .def = "0", .min = 0,\
     .max = 1e15, .metavar = "N", .help = "partition only the first N samples; 0: all"},           \
    {.name = "eval-samples", .type = EW_FIELD_INT, .offset = offsetof(owner, part.eval_samples), .def = "0", .min = 0,\
     .max = 1e15, .metavar = "N",                                                                  \
     .help = "test on N samples, one of each Nth of the split; 0: all"},                           \
    {.name = "seed", .type = EW_FIELD_INT, .offset = offsetof(owner, part.seed), .def = "1", .min = 0, .max = 1e15,\
     .metavar = "N", .help = "random seed of weights, partition, selection and order"},            \
    {.name = "threads", .type = EW_FIELD_INT, .offset = offsetof(owner, part.threads), .def = "0", .min = 0,\
     .max = 1024, .metavar = "N", .help = "number of threads; 0: one per CPU", .letter = 't'}
/* clang-format on */

struct ew_federation_job {
    struct ew_federation_opts opts;
    struct ew_graph *net;          /* ends in scores; its weights are the server's */
    const struct ew_dataset *data; /* borrowed, as all below */
    struct ew_preprocess prep;
    const char *keys;             /* a file of keys.h, for the split by key; else NULL */
    const struct ew_fleet *fleet; /* NULL: times and energies are not simulated */
    struct ew_ranks *ranks;       /* that simulate the clients; NULL: this process alone */
    /* Asked between clients: true ends the round without a result. */
    bool (*stop)(void *ctx);
    void *ctx;
};

/* One round, whose simulated figures are nan without a fleet. */
struct ew_federation_row {
    int64_t round; /* from 1 */
    int64_t asked, answered, dropped, late, refused;
    int64_t samples; /* trained on, repetitions counted */
    double loss;     /* mean of the clients' last epochs */
    double test_loss, accuracy, f1;
    double wall_s, sim_s, sim_j; /* sim_s: until the last answer or the deadline */
    char slowest[EW_FLEET_NAME]; /* kind of the client that the round waited for */
};

struct ew_federation;

ew_err ew_federation_open(const struct ew_federation_job *job, struct ew_federation **out);
void ew_federation_close(struct ew_federation *f); /* NULL is fine */

ew_err ew_federation_round(struct ew_federation *f, struct ew_federation_row *row);

/* Smallest and largest number of samples of a client; returns the number of clients. */
int64_t ew_federation_sizes(const struct ew_federation *f, int64_t *least, int64_t *most);

/* State for checkpoints beside the weights, valid as long as the federation; and restoring it
 * before the first round, after `rounds` rounds. */
void ew_federation_states(struct ew_federation *f, const struct ew_checkpoint_state **states,
                          int *n);
ew_err ew_federation_resume(struct ew_federation *f, const struct ew_checkpoint *c, int64_t rounds);

#endif
