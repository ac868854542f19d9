/* SPDX-License-Identifier: Apache-2.0 */
/* A file with random access: by pread, or from memory if it was compressed. */
#ifndef EW_DATA_BLOB_H
#define EW_DATA_BLOB_H

#include <stdint.h>

#include "data/data.h"

struct ew_blob {
    int fd;          /* -1: in memory */
    uint8_t *memory; /* contents of a gzip file */
    int64_t size;
    char *path;
};

/* Opens a plain or gzip file.  EW_ERR_NOT_FOUND, EW_ERR_IO, EW_ERR_FORMAT, EW_ERR_LIMIT. */
ew_err ew_blob_open(const char *path, struct ew_blob *b);
void ew_blob_close(struct ew_blob *b); /* {0} is fine */
bool ew_blob_is_open(const struct ew_blob *b);

/* Reads exactly n bytes at offset `at`; fails if the file has been truncated.  Any thread. */
ew_err ew_blob_read(const struct ew_blob *b, int64_t at, int64_t n, void *to);

/* The same into s->raw, setting position, bytes_read and ops_read. */
ew_err ew_blob_fetch(const struct ew_blob *b, int64_t at, int64_t n, struct ew_sample *s);

/* Compresses as gzip, deterministically; free with free().  EW_ERR_UNSUPPORTED: a build without
 * zlib. */
ew_err ew_gzip(const void *bytes, size_t size, uint8_t **out, size_t *out_size);

/* Limit of a gzip file's unpacked size: deflate compresses up to 1,032 times, so some megabytes
 * could exhaust memory or disk. */
size_t ew_gunzip_limit(size_t packed);

#endif
