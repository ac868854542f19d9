/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers, strings and tensors to and from bytes: little-endian, checked, checksummed.  What comes
 * in which order is left to the format. */
#ifndef EW_FORMAT_STREAM_H
#define EW_FORMAT_STREAM_H

#include <stdio.h>

#include "base/hash.h"
#include "base/mem.h"
#include "graph/tensor.h"

/* ---- Writing ---- */

/* {.f = file} starts it; without a file it only sums.  Failures of the file stick to it and are its
 * owner's to report. */
struct ew_put {
    FILE *f;
    struct ew_hash hash;       /* of all that was written */
    struct ew_hash_wide *wide; /* another sum of it; NULL: not wanted */
};

void ew_put_bytes(struct ew_put *p, const void *bytes, size_t n);
void ew_put_int(struct ew_put *p, int64_t v); /* 8 bytes */
void ew_put_text(struct ew_put *p, const char *s);
/* Type, shape, and the elements where there are any, at a multiple of EW_ALIGN. */
void ew_put_tensor(struct ew_put *p, const struct ew_tensor *t);

/* ---- Reading ---- */

/* {.bytes, .size, .what, .arena} starts it. */
struct ew_get {
    const unsigned char *bytes;
    size_t size, at;
    const char *what;       /* for messages */
    struct ew_arena *arena; /* strings are copied to it */
    bool borrow;            /* a graph's weights stay in the bytes, which outlive it */
};

ew_err ew_get_bytes(struct ew_get *g, size_t n, const void **out); /* borrowed */
ew_err ew_get_int(struct ew_get *g, int64_t min, int64_t max, int64_t *out);
ew_err ew_get_text(struct ew_get *g, const char **out);
/* data: borrowed from the bytes, or NULL. */
ew_err ew_get_tensor(struct ew_get *g, struct ew_tensor *out);

#endif
