/* SPDX-License-Identifier: Apache-2.0 */
/* A 64-bit checksum against accidental corruption (a bad disk, a truncated copy), not against
 * attackers.
 *
 * Each step is a bijection in the state and in the word, so two inputs that differ in one 8-byte
 * word never have the same checksum. */
#ifndef EW_BASE_HASH_H
#define EW_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* {0} starts it. */
struct ew_hash {
    uint64_t state, total; /* total: bytes so far */
    unsigned char tail[8]; /* the last total % 8 bytes */
};

void ew_hash_add(struct ew_hash *h, const void *bytes, size_t n);

/* The checksum of the input so far; more may be added afterwards. */
uint64_t ew_hash_sum(const struct ew_hash *h);

/* The checksum of a whole input. */
uint64_t ew_hash_of(const void *bytes, size_t n);

/* Another checksum, for large data: eight independent chains, each over every eighth word, so that
 * memory bandwidth is the limit.  Initialised as {0}. */
#define EW_HASH_LANES 8

struct ew_hash_wide {
    uint64_t lane[EW_HASH_LANES], total;
    unsigned char tail[8 * EW_HASH_LANES];
};

void ew_hash_wide_add(struct ew_hash_wide *h, const void *bytes, size_t n);
uint64_t ew_hash_wide_sum(const struct ew_hash_wide *h);
uint64_t ew_hash_wide_of(const void *bytes, size_t n);

#endif
