/* SPDX-License-Identifier: Apache-2.0 */
/* A 64-bit checksum against accidents (a bad disk, a truncated copy), not against an adversary.
 *
 * Each step is a bijection of the state for a given word and of the word for a given state, so that
 * two inputs that differ in one word of eight bytes never have the same sum. */
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

/* The sum of what was added so far; more may be added after it. */
uint64_t ew_hash_sum(const struct ew_hash *h);

/* All at once. */
uint64_t ew_hash_of(const void *bytes, size_t n);

/* Another sum for much data: eight chains side by side, each over every eighth word, so that the
 * memory sets the pace and not the multiplier.  {0} starts it. */
#define EW_HASH_LANES 8

struct ew_hash_wide {
    uint64_t lane[EW_HASH_LANES], total;
    unsigned char tail[8 * EW_HASH_LANES];
};

void ew_hash_wide_add(struct ew_hash_wide *h, const void *bytes, size_t n);
uint64_t ew_hash_wide_sum(const struct ew_hash_wide *h);
uint64_t ew_hash_wide_of(const void *bytes, size_t n);

#endif
