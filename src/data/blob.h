/* SPDX-License-Identifier: Apache-2.0 */
/* A file that samples are read from at random: by pread, or from memory where it was compressed. */
#ifndef EW_DATA_BLOB_H
#define EW_DATA_BLOB_H

#include <stdint.h>

#include "data/data.h"

struct ew_blob {
    int fd;          /* -1: in memory */
    uint8_t *memory; /* of a gzip file: what was in it */
    int64_t size;
    char *path;
};

/* Opens a plain or gzip file.  EW_ERR_NOT_FOUND, EW_ERR_IO, EW_ERR_FORMAT, EW_ERR_LIMIT. */
ew_err ew_blob_open(const char *path, struct ew_blob *b);
void ew_blob_close(struct ew_blob *b); /* {0} is not open, and fine */
bool ew_blob_is_open(const struct ew_blob *b);

/* Exactly n bytes from `at` on; fails where the file has become shorter.  Any thread. */
ew_err ew_blob_read(const struct ew_blob *b, int64_t at, int64_t n, void *to);

/* The same into s->raw, with position, bytes and operations noted. */
ew_err ew_blob_fetch(const struct ew_blob *b, int64_t at, int64_t n, struct ew_sample *s);

/* Packs bytes as gzip, the same bytes each time; release with free().  EW_ERR_UNSUPPORTED: a build
 * without zlib. */
ew_err ew_gzip(const void *bytes, size_t size, uint8_t **out, size_t *out_size);

/* What a gzip file of a data set may unpack to.  Deflate packs up to 1,032 times: without a bound
 * some megabytes would take all memory or disk. */
size_t ew_gunzip_limit(size_t packed);

#endif
