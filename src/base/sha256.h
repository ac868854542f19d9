/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 (FIPS 180-4), to verify downloads.  Against accidental corruption base/hash.h is enough
 * and much faster. */
#ifndef EW_BASE_SHA256_H
#define EW_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define EW_SHA256_TEXT 65 /* 64 hexadecimal digits and the NUL */

struct ew_sha256 {
    uint32_t state[8];
    uint64_t total;
    uint8_t block[64]; /* the last total % 64 bytes */
};

void ew_sha256_init(struct ew_sha256 *s);
void ew_sha256_add(struct ew_sha256 *s, const void *bytes, size_t n);
void ew_sha256_text(struct ew_sha256 *s, char text[EW_SHA256_TEXT]); /* ends it */

/* The digest of a file. */
ew_err ew_sha256_file(const char *path, char text[EW_SHA256_TEXT]);

#endif
