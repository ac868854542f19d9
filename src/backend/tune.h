/* SPDX-License-Identifier: Apache-2.0 */
/* Autotuning: choosing kernels by measuring them on this machine, with a cache of the results.
 *
 * The cache is a text file with one line per query:
 *
 *   edgewise-tune 2
 *   <hash of the device's identity, threads, operator, attributes and shapes> <kernel> */
#ifndef EW_BACKEND_TUNE_H
#define EW_BACKEND_TUNE_H

#include "backend/backend.h"

struct ew_tuner;

/* Reads the cache.  A missing file is an empty cache; a damaged one, or one of another version, is
 * ignored and replaced.  `path` is copied; NULL: results are not stored. */
ew_err ew_tuner_open(const char *path, struct ew_tuner **out);
/* Writes new results and frees the tuner; NULL is fine.  A failed write is only a warning: the
 * measurements have been used already. */
void ew_tuner_close(struct ew_tuner *t);

/* The fastest of n kernels of `be` for this query: from the cache, or by running each a few times
 * on synthetic inputs.  Kernels whose memory cannot be allocated are left out; if none can run, the
 * first is picked. */
ew_err ew_tuner_pick(struct ew_tuner *t, struct ew_backend *be, const struct ew_kernel_query *query,
                     const struct ew_kernel *offers, int n, int *best);

/* Best time of a few runs of each of n <= EW_OFFERS forward kernels of `be` on synthetic inputs, in
 * nanoseconds; INT64_MAX: it cannot run. */
void ew_tuner_times(struct ew_backend *be, const struct ew_kernel_query *query,
                    const struct ew_kernel *offers, int n, int64_t *ns);

/* How many queries were answered by measuring. */
int ew_tuner_measured(const struct ew_tuner *t);

#define EW_TUNE_PATH 512
/* $XDG_CACHE_HOME/edgewise/tune or ~/.cache/edgewise/tune; NULL if neither variable is set or the
 * path is too long. */
const char *ew_tuner_default_path(char buf[EW_TUNE_PATH]);

#endif
