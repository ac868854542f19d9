/* SPDX-License-Identifier: Apache-2.0 */
/* Storage under a data set: emulated slow media, and the real page cache. */
#ifndef EW_DATA_STORAGE_H
#define EW_DATA_STORAGE_H

#include "data/data.h"

/* An emulated medium: a first read costs latency + bytes / rate, serialised; later reads are
 * cached. */
struct ew_storage {
    double mb_per_s;   /* 0: not emulated */
    double latency_us; /* of each request */
};

/* Parses "none", a medium by name ("ssd", "hdd", "sdcard" ...), or "MB/s[,latency in ms]". */
ew_err ew_storage_parse(const char *text, struct ew_storage *out);

/* The state of an emulated medium, shared by the loader's threads. */
struct ew_medium;

ew_err ew_medium_new(const struct ew_storage *s, int64_t samples, struct ew_medium **out);
void ew_medium_free(struct ew_medium *m); /* NULL is fine */

/* Empties its cache.  Not during reads. */
void ew_medium_drop_cache(struct ew_medium *m);

/* Waits as long as the medium would have taken to read sample i, which was just fetched.  Any
 * thread.  Returns the time waited in ns. */
int64_t ew_medium_wait(struct ew_medium *m, int64_t i, const struct ew_sample *s);

/* The share of the split's bytes in the page cache, 0 to 1; negative: not on disk, or unknown. */
ew_err ew_dataset_resident(const struct ew_dataset *d, enum ew_split split, double *share);

/* Drops the split's pages from the page cache, without privileges.  Pages mapped by other processes
 * stay; root drops the whole cache then. */
ew_err ew_dataset_drop_cache(const struct ew_dataset *d, enum ew_split split);

#endif
