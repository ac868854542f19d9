/* SPDX-License-Identifier: Apache-2.0 */
/* What a watch (device/watch.h) has read, as samples of a run in the store, and the energy of the
 * run as a whole.  A run has one watch: commands that need energies of intervals (train) bring it,
 * for the others the study does. */
#ifndef EW_STUDY_RUN_WATCH_H
#define EW_STUDY_RUN_WATCH_H

#include "device/watch.h"
#include "store/store.h"

/* Where a run's readings go.  Times in the store are since start_ns. */
struct ew_run_watch {
    struct ew_watch *watch; /* NULL: nothing is read */
    struct ew_store *store; /* NULL: nothing is kept */
    int64_t run, start_ns;
};

/* Puts what has been read since the last time; call it every few seconds. */
ew_err ew_run_watch_put(struct ew_run_watch *r);

/* Stops reading, puts the remaining samples, and the energy and mean power of the whole watch as
 * run_energy_j and run_power_w. The watch stays the caller's. */
ew_err ew_run_watch_end(struct ew_run_watch *r);

#endif
