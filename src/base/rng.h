/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers by counter: a value depends on (seed, stream, index) alone, never on what was
 * drawn before or by which thread.  Streams keep uses apart (weights, order of samples,
 * augmentation).
 *
 * Philox4x32-10: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011. */
#ifndef EW_BASE_RNG_H
#define EW_BASE_RNG_H

#include <stddef.h>
#include <stdint.h>

/* Multipliers and key increments (table 2 and section 2.2 of the paper), for those who draw the
 * same numbers by vectors. */
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

/* A place in one stream, for drawing one after the other.  {.seed = s, .stream = t} starts it. */
struct ew_rng {
    uint64_t seed, stream, index;
};

uint64_t ew_rng_next(struct ew_rng *r);
double ew_rng_next_uniform(struct ew_rng *r);
double ew_rng_next_normal(struct ew_rng *r);
uint64_t ew_rng_next_below(struct ew_rng *r, uint64_t n); /* [0, n), each as likely; n > 0 */

/* Puts `order` into an order fixed by (seed, stream): Fisher and Yates. */
void ew_rng_shuffle(struct ew_rng *r, int64_t *order, size_t n);

#endif
