/* SPDX-License-Identifier: Apache-2.0 */
/* Serialisation of numbers, strings and tensors: little-endian, bounds-checked, checksummed.  The
 * formats define the order. */
#ifndef EW_FORMAT_STREAM_H
#define EW_FORMAT_STREAM_H

#include <stdio.h>

#include "base/hash.h"
#include "base/mem.h"
#include "graph/tensor.h"

/* ---- Writing ---- */

/* A writer, initialised as {.f = file}; without a file it only computes the checksum.  Write errors
 * stick to the FILE, whose owner reports them. */
struct ew_byte_writer {
    FILE *f;
    struct ew_hash hash;       /* of all that was written */
    struct ew_hash_wide *wide; /* a second, wide checksum; NULL: none */
};

void ew_write_bytes(struct ew_byte_writer *p, const void *bytes, size_t n);
void ew_write_int(struct ew_byte_writer *p, int64_t v); /* 8 bytes */
void ew_write_text(struct ew_byte_writer *p, const char *s);
/* Type, shape, and the elements, if any, at a multiple of EW_ALIGN. */
void ew_write_tensor(struct ew_byte_writer *p, const struct ew_tensor *t);

/* ---- Reading ---- */

/* A reader, initialised as {.bytes, .size, .what, .arena}. */
struct ew_byte_reader {
    const unsigned char *bytes;
    size_t size, at;
    const char *what;       /* for messages */
    struct ew_arena *arena; /* owns strings */
    bool borrow;            /* a graph's weights point into the bytes, which outlive it */
};

ew_err ew_read_bytes(struct ew_byte_reader *g, size_t n, const void **out); /* borrowed */
ew_err ew_read_int(struct ew_byte_reader *g, int64_t min, int64_t max, int64_t *out);
ew_err ew_read_text(struct ew_byte_reader *g, const char **out);
/* data: borrowed from the bytes, or NULL. */
ew_err ew_read_tensor(struct ew_byte_reader *g, struct ew_tensor *out);

#endif
