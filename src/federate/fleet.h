/* SPDX-License-Identifier: Apache-2.0 */
/* The boards that a federation's clients stand for, from a file:
 *
 *   [nanos]                 any name
 *   count = 4               clients of this kind; those beyond the file begin at its top again
 *   board = jetson-nano     a profile with a model (advise/simulate.h) ...
 *   mode = 5W               ... in one of its named modes
 *
 *   [pi]
 *   samples_per_s = 310     or what was measured of one, for this network
 *   power_w = 6.1
 *
 * Times and energies of rounds are simulated even where these figures were measured. */
#ifndef EW_FEDERATE_FLEET_H
#define EW_FEDERATE_FLEET_H

#include <stdint.h>

#include "base/err.h"
#include "graph/graph.h"

#define EW_FLEET_KINDS 64
#define EW_FLEET_NAME  48

struct ew_fleet_kind {
    char name[EW_FLEET_NAME], board[EW_FLEET_NAME], mode[EW_FLEET_NAME];
    int64_t count;
    double samples_per_s, power_w; /* of training; from the file or from the board's model */
};

struct ew_fleet {
    struct ew_fleet_kind kinds[EW_FLEET_KINDS];
    int n;
    int64_t clients; /* of all kinds */
};

/* Reads a file; boards with a model train `net`, a classifier, in such batches.  Times of networks
 * with published measurements follow these, those of others the steps of their plan. */
ew_err ew_fleet_read(const char *path, const struct ew_graph *net, int64_t batch,
                     struct ew_fleet *out);

/* What client k is. */
const struct ew_fleet_kind *ew_fleet_client(const struct ew_fleet *f, int64_t k);

#endif
