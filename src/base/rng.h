/* SPDX-License-Identifier: Apache-2.0 */
/* Counter-based random numbers: a value depends on (seed, stream, index) alone, not on what was
 * drawn before or by which thread.  Streams separate uses (weights, order of samples,
 * augmentation).
 *
 * Philox4x32-10: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011. */
#ifndef EW_BASE_RNG_H
#define EW_BASE_RNG_H

#include <stddef.h>
#include <stdint.h>

/* Multipliers and key increments (table 2 and section 2.2 of the paper), for vectorised versions.
 */
#define EW_PHILOX_ROUNDS 10
#define EW_PHILOX_MUL0   0xD2511F53u
#define EW_PHILOX_MUL1   0xCD9E8D57u
#define EW_PHILOX_KEY0   0x9E3779B9u
#define EW_PHILOX_KEY1   0xBB67AE85u

/* 128 random bits. */
struct ew_rng_block {
    uint32_t v[4];
};

struct ew_rng_block ew_rng_block(uint64_t seed, uint64_t stream, uint64_t index);

uint64_t ew_rng_u64(uint64_t seed, uint64_t stream, uint64_t index);
double ew_rng_uniform(uint64_t seed, uint64_t stream, uint64_t index); /* [0, 1), 53 bits */
double ew_rng_normal(uint64_t seed, uint64_t stream, uint64_t index);  /* mean 0, variance 1 */

/* A cursor in a stream, for sequential draws; initialised as {.seed = s, .stream = t}. */
struct ew_rng {
    uint64_t seed, stream, index;
};

uint64_t ew_rng_next(struct ew_rng *r);
double ew_rng_next_uniform(struct ew_rng *r);
double ew_rng_next_normal(struct ew_rng *r);
uint64_t ew_rng_next_below(struct ew_rng *r, uint64_t n); /* uniform in [0, n), unbiased; n > 0 */

/* Shuffles `order` (Fisher-Yates). */
void ew_rng_shuffle(struct ew_rng *r, int64_t *order, size_t n);

#endif
