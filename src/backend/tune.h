/* SPDX-License-Identifier: Apache-2.0 */
/* Choosing kernels by measuring them here, and remembering what was found.
 *
 * The cache is a text file, one line for each question that was ever asked:
 *
 *   edgewise-tune 2
 *   <hash of the device's identity, threads, operator, attributes and shapes> <kernel>
 */
#ifndef EW_BACKEND_TUNE_H
#define EW_BACKEND_TUNE_H

#include "backend/backend.h"

struct ew_tuner;

/* Reads the cache; one that is missing is empty, one that is damaged or of another version is
 * ignored and replaced.  `path` is copied; NULL: nothing is remembered. */
ew_err ew_tuner_open(const char *path, struct ew_tuner **out);
/* Writes what is new, and releases all; NULL is fine.  Where it cannot be written a warning says
 * so: what was measured has been used. */
void ew_tuner_close(struct ew_tuner *t);

/* The fastest of n kernels of `be` for this question: from the cache, or by running each a few
 * times on random inputs.  Kernels whose memory cannot be had are left out; the first offer is the
 * answer in doubt. */
ew_err ew_tuner_pick(struct ew_tuner *t, struct ew_backend *be, const struct ew_kernel_query *query,
                     const struct ew_kernel *offers, int n, int *best);

/* Nanoseconds of the best of a few runs of n forward kernels of `be`, at most EW_OFFERS, on random
 * inputs; INT64_MAX for one that cannot run. */
void ew_tuner_times(struct ew_backend *be, const struct ew_kernel_query *query,
                    const struct ew_kernel *offers, int n, int64_t *ns);

/* How many questions were answered by measuring. */
int ew_tuner_measured(const struct ew_tuner *t);

#define EW_TUNE_PATH 512
/* $XDG_CACHE_HOME/edgewise/tune or ~/.cache/edgewise/tune; NULL where there is no home, or its name
 * is too long. */
const char *ew_tuner_default_path(char buf[EW_TUNE_PATH]);

#endif
