/* SPDX-License-Identifier: Apache-2.0 */
/* Random graphs by number.  EW_SEED=N begins with another seed, EW_RUNS=N makes so many graphs.  A
 * graph that fails is made again with fewer nodes until it is as small as its seed can show it. */
#ifndef EW_RANDOM_SEEDS_H
#define EW_RANDOM_SEEDS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/* nodes: at most about so many, 0: as the seed says; print: show the graph where it fails. */
typedef ew_err ew_seed_check(uint64_t seed, int nodes, bool print);

void ew_random_seed(ew_seed_check *check, uint64_t seed);
/* A quarter of n under sanitizers and emulators; `kind` is set in every seed. */
void ew_random_seeds(ew_seed_check *check, uint64_t n, uint64_t kind);

#endif
