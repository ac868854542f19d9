/* SPDX-License-Identifier: Apache-2.0 */
/* Power while a network trains: a sampler in the background, and the energy of intervals.  It hides
 * the device module's types, one of which has a namesake in graph's. */
#ifndef EW_TRAIN_ENERGY_WATCH_H
#define EW_TRAIN_ENERGY_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct ew_board;
struct ew_energy_watch;

/* Starts to sample where the board (borrowed; NULL is fine) has a power total; else *out is NULL,
 * and all below does nothing. */
ew_err ew_energy_watch_new(struct ew_board *board, struct ew_energy_watch **out);
void ew_energy_watch_free(struct ew_energy_watch *w);

void ew_energy_watch_begin(struct ew_energy_watch *w, int64_t now_ns);
void ew_energy_watch_drain(struct ew_energy_watch *w); /* every minute at least */

struct ew_energy_used {
    bool known; /* the rest holds */
    double joules, error_j, mean_w;
};

struct ew_energy_used ew_energy_watch_end(struct ew_energy_watch *w, int64_t now_ns);

#endif
