/* SPDX-License-Identifier: Apache-2.0 */
/* A board while something runs: one sampler, whose readings carry absolute times of the monotonic
 * clock, and the energy, load and heat of any interval since the start.
 *
 *   EW_TRY(ew_watch_start(board, &w));
 *   ... ew_watch_drain(w) every few seconds ...
 *   const struct ew_energy e = ew_watch_energy(w, from_ns, to_ns);
 *   while (ew_watch_next(w, &s)) put(s);
 *   ew_watch_free(w);
 *
 * One thread calls. */
#ifndef EW_DEVICE_WATCH_H
#define EW_DEVICE_WATCH_H

#include "device/board.h"
#include "device/energy.h"

struct ew_watch;

/* Begins; the board belongs to the watch until it is freed. */
ew_err ew_watch_start(struct ew_board *b, struct ew_watch **out);

/* Takes what has been read since the last time; a minute apart at most.  All below do so too.  NULL
 * is fine here and below: nothing is known. */
void ew_watch_drain(struct ew_watch *w);

/* Ends reading, with a last frame; what was read stays. */
void ew_watch_stop(struct ew_watch *w);
void ew_watch_free(struct ew_watch *w);

/* Of [from, to]; absent where the board has no power total. */
struct ew_energy ew_watch_energy(struct ew_watch *w, int64_t from_ns, int64_t to_ns);

/* From the start to the last reading. */
struct ew_energy ew_watch_total(struct ew_watch *w);

/* Means over the readings of [from, to]; nan where there are none. */
struct ew_watch_means {
    double cpu_load, gpu_load; /* % */
    double temp_c;             /* of the hottest sensor */
};
struct ew_watch_means ew_watch_means(struct ew_watch *w, int64_t from_ns, int64_t to_ns);

/* No interval that begins before this will be asked for. */
void ew_watch_forget(struct ew_watch *w, int64_t before_ns);

/* A reading to keep: four a second in the first two minutes, then one.  Power, whole loads, clocks,
 * memory, reads of disks, and the hottest temperature. */
struct ew_watch_sample {
    int64_t t_ns;
    const char *channel, *unit;
    double value;
    enum ew_quality quality;
};
/* The next one that nobody has taken; false: none yet. */
bool ew_watch_next(struct ew_watch *w, struct ew_watch_sample *out);

const struct ew_board *ew_watch_board(const struct ew_watch *w);

#endif
