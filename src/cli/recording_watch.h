/* SPDX-License-Identifier: Apache-2.0 */
/* What the board's sensors say while a command runs, kept with its run: power, load, temperature.
 * Readings are taken by a thread of the sampler's and written where the command says that it is
 * between two things that are timed. */
#ifndef EW_CLI_RECORDING_WATCH_H
#define EW_CLI_RECORDING_WATCH_H

#include "cli/recording.h"

struct ew_recording_watch;

/* Begins; *out is NULL, and all below does nothing, where nothing is recorded or the board says
 * nothing. */
ew_err ew_recording_watch_new(struct ew_recording *r, struct ew_recording_watch **out);

/* Takes over what was read.  Cheap: for every step of the command. */
ew_err ew_recording_watch_drain(struct ew_recording_watch *w);

/* Writes it to the store. */
ew_err ew_recording_watch_flush(struct ew_recording_watch *w);

void ew_recording_watch_free(struct ew_recording_watch *w);

#endif
