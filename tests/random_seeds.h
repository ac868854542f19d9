/* SPDX-License-Identifier: Apache-2.0 */
/* Property tests over random graphs.  EW_SEED=N sets the first seed, EW_RUNS=N the number of
 * graphs.  A failing graph is reduced to the fewest nodes with which its seed still fails. */
#ifndef EW_RANDOM_SEEDS_H
#define EW_RANDOM_SEEDS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/* Checks one graph.  nodes: approximate limit, 0: depends on the seed; print: print the graph if it
 * fails. */
typedef ew_err ew_seed_check(uint64_t seed, int nodes, bool print);

void ew_random_seed(ew_seed_check *check, uint64_t seed);
/* Runs n seeds, a quarter of them under sanitizers and emulators; the bits of `kind` are set in
 * every seed. */
void ew_random_seeds(ew_seed_check *check, uint64_t n, uint64_t kind);

#endif
