/* SPDX-License-Identifier: Apache-2.0 */
/* Federated learning, simulated: a server and clients that each have a part of a data set. */
#ifndef EDGEWISE_FEDERATE_H
#define EDGEWISE_FEDERATE_H

#include "edgewise.h"
#include "edgewise_data.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Federated learning ---------------------------------------------------------------------- */

/* A server with its clients.  One thread calls. */
struct ew_federated;

/* Zero it, set `size` and whatever is wanted; 0: as `edgewise federate` has it. */
struct ew_federated_opts {
    size_t size;         /* sizeof(struct ew_federated_opts) */
    int64_t clients;     /* that share the training split */
    double share;        /* of the clients that a round asks */
    int64_t threads;     /* 0: one for each CPU */
    uint64_t seed;       /* of who has what, who is asked, and every order; 0: 1 */
    const char *options; /* all else: lines "name = value" of `edgewise federate`'s options, such as
                          * "method = scaffold\nsplit = dirichlet\nalpha = 0.1" */
    const char *fleet;   /* file of the boards that clients stand for (docs/fleet.md): rounds get a
                          * simulated time and energy; NULL: none */
};

/* A network's images are normalised as it says, else by what is measured of the data; it must end
 * in scores of the data's classes.  It is the server's until the federation is closed, and has its
 * weights after every round; the data set must outlive both.  `opts` may be NULL.  The caller
 * closes *out. */
EW_API ew_err ew_federated_open(struct ew_graph *net, const struct ew_dataset *data,
                                const struct ew_federated_opts *opts, struct ew_federated **out);
EW_API void ew_federated_close(struct ew_federated *f); /* NULL is fine */

struct ew_federated_round {
    size_t size;   /* sizeof(struct ew_federated_round), set before the call */
    int64_t round; /* from 1 */
    int64_t asked, answered, dropped, late, refused; /* clients */
    double loss;                                     /* mean of the clients' last epochs */
    double test_loss, accuracy, f1;                  /* of the server's weights on the test split */
    double simulated_s, simulated_j;                 /* of the fleet; nan without one */
};

/* One round: some clients train the server's weights on what they have, and the server combines
 * what comes back.  Fails on a wrong size. */
EW_API ew_err ew_federated_round(struct ew_federated *f, struct ew_federated_round *out);

#ifdef __cplusplus
}
#endif

#endif
