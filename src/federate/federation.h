/* SPDX-License-Identifier: Apache-2.0 */
/* Federated learning, simulated in one process or by several ranks: a server and clients that each
 * have a part of the data; in every round some clients train the server's weights on what they
 * have, and the server combines what comes back.
 *
 *   EW_TRY(ew_federation_open(&job, &f));
 *   while (round < job.opts.rounds)
 *       EW_TRY(ew_federation_round(f, &row));     the weights are in job.net
 *   ew_federation_close(f);
 *
 * Everything is fixed by the seed: who has what, who is asked, who fails, and in which order each
 * client sees its samples. */
#ifndef EW_FEDERATE_FEDERATION_H
#define EW_FEDERATE_FEDERATION_H

#include "data/data.h"
#include "data/preprocess.h"
#include "federate/combine.h"
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
    int combine; /* enum ew_combine_kind */
    int64_t rounds, clients, local_epochs, batch, shards;
    double share;               /* of the clients that is asked in a round */
    double lr, lr_decay;        /* the rate, and its factor from round to round */
    double momentum, mu, alpha; /* mu: fedprox's pull; alpha: of the Dirichlet split */
    double trim;
    double drop;                   /* chance that a client that was asked never answers */
    int64_t nonsense;              /* clients that answer with noise */
    double deadline_s;             /* simulated seconds after which nobody is waited for; 0: none */
    bool avoid_late;               /* ask only clients that will make it */
    int64_t samples, eval_samples; /* 0: all */
    int64_t seed, threads;
};

struct ew_federation_job {
    struct ew_federation_opts opts;
    struct ew_graph *net;          /* ends in scores; its weights are the server's */
    const struct ew_dataset *data; /* borrowed, as all below */
    struct ew_preprocess prep;
    const char *keys;             /* a file of keys.h, for the split by key; else NULL */
    const struct ew_fleet *fleet; /* NULL: times and energies are not simulated */
    struct ew_ranks
        *ranks; /* that play the clients, the server's weights on each; NULL: all here */
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

/* Samples of the client that has least and most; returns how many clients there are. */
int64_t ew_federation_sizes(const struct ew_federation *f, int64_t *least, int64_t *most);

/* What a checkpoint keeps beside the weights; lives as long as the federation.  And back, before
 * the first round: `rounds` have been done. */
void ew_federation_states(struct ew_federation *f, const struct ew_checkpoint_state **states,
                          int *n);
ew_err ew_federation_resume(struct ew_federation *f, const struct ew_checkpoint *c, int64_t rounds);

#endif
