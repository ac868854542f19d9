/* SPDX-License-Identifier: Apache-2.0 */
/* The medium under a data set: an emulated slow one, and the page cache over the real one. */
#ifndef EW_DATA_STORAGE_H
#define EW_DATA_STORAGE_H

#include "data/data.h"

/* An emulated medium: what is read for the first time costs a latency and its bytes' time, one
 * request after the other; after that it counts as cached. */
struct ew_storage {
    double mb_per_s;   /* 0: not emulated */
    double latency_us; /* of each request */
};

/* "none", a medium by name ("ssd", "hdd", "sdcard" ...), or "MB/s[,latency in ms]". */
ew_err ew_storage_parse(const char *text, struct ew_storage *out);

/* An emulated medium at work, shared by the loader's threads. */
struct ew_medium;

ew_err ew_medium_new(const struct ew_storage *s, int64_t samples, struct ew_medium **out);
void ew_medium_free(struct ew_medium *m); /* NULL is fine */

/* Nothing counts as cached any more.  While nobody reads. */
void ew_medium_forget(struct ew_medium *m);

/* Waits as long as the medium would have taken to bring sample i, just fetched.  Any thread.
 * Returns the nanoseconds that it waited. */
int64_t ew_medium_wait(struct ew_medium *m, int64_t i, const struct ew_sample *s);

/* The share of the split's bytes that lies in the page cache, 0 to 1; negative where the data set
 * is not on disk or the kernel does not tell. */
ew_err ew_dataset_resident(const struct ew_dataset *d, enum ew_split split, double *share);

/* Drops the split's pages from the page cache; no privilege needed.  Some stay where another
 * process has mapped them; then root drops the whole cache. */
ew_err ew_dataset_drop_cache(const struct ew_dataset *d, enum ew_split split);

#endif
