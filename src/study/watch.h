/* SPDX-License-Identifier: Apache-2.0 */
/* The board while a job runs: samples of load, memory, disk, heat and power in the store, and the
 * energy of the run and of its epochs.  Where there is no power sensor there is no energy. */
#ifndef EW_STUDY_WATCH_H
#define EW_STUDY_WATCH_H

#include "device/board.h"
#include "store/store.h"

struct ew_watch;

/* Begins; the board belongs to the watch until it is stopped. */
ew_err ew_watch_start(struct ew_board *b, double interval_s, struct ew_watch **out);

/* Puts what has been sampled since the last time; call it every second or so. */
ew_err ew_watch_put(struct ew_watch *w, struct ew_store *s, int64_t run);

/* Ends, puts the rest, and fills energy, power, load and heat in for the run's epochs.  Always
 * releases the watch. */
ew_err ew_watch_stop(struct ew_watch *w, struct ew_store *s, int64_t run);

#endif
