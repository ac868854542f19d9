/* SPDX-License-Identifier: Apache-2.0 */
/* Simulated federated learning: a server and clients that each hold a part of a data set. */
#ifndef EDGEWISE_FEDERATE_H
#define EDGEWISE_FEDERATE_H

#include "edgewise.h"
#include "edgewise_data.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Federated learning ---------------------------------------------------------------------- */

/* A server and its clients.  One thread calls. */
struct ew_federated;

/* Zero the struct, set `size` and the fields that you need; 0: the default of `edgewise federate`.
 */
struct ew_federated_opts {
    size_t size;         /* sizeof(struct ew_federated_opts) */
    int64_t clients;     /* among which the training split is divided */
    double share;        /* fraction of the clients sampled in a round */
    int64_t threads;     /* 0: one for each CPU */
    uint64_t seed;       /* of the data split, the sampling of clients and every shuffle; 0: 1 */
    const char *options; /* all other options of `edgewise federate`, as lines "name = value":
                          * "method = scaffold\nsplit = dirichlet\nalpha = 0.1" */
    const char *fleet; /* file of the boards that clients simulate (docs/fleet.md): rounds then have
                        * a simulated time and energy; NULL: none */
};

/* Images are normalised as stored in the network, else by mean and standard deviation of the data.
 * The network must end in logits for the data's classes.  It belongs to the server until
 * ew_federated_close and holds the server's weights after every round; the data set must outlive
 * both.  `opts` may be NULL.  The caller closes *out. */
EW_API ew_err ew_federated_open(struct ew_graph *net, const struct ew_dataset *data,
                                const struct ew_federated_opts *opts, struct ew_federated **out);
EW_API void ew_federated_close(struct ew_federated *f); /* NULL is fine */

struct ew_federated_round {
    size_t size;   /* sizeof(struct ew_federated_round), set before the call */
    int64_t round; /* from 1 */
    int64_t asked, answered, dropped, late, refused; /* numbers of clients */
    double loss;                     /* mean training loss of the clients' last epochs */
    double test_loss, accuracy, f1;  /* of the server's model on the test split */
    double simulated_s, simulated_j; /* of the simulated fleet; nan without one */
};

/* One round: the sampled clients train the server's weights on their data, and the server
 * aggregates what they return.  EW_ERR_ARG on a wrong out->size. */
EW_API ew_err ew_federated_round(struct ew_federated *f, struct ew_federated_round *out);

#ifdef __cplusplus
}
#endif

#endif
