/* SPDX-License-Identifier: Apache-2.0 */
/* A device whose memory the host must not touch, to prove that nobody does.
 *
 * Blocks are pages without access, but while the device itself copies or runs; fresh ones are full
 * of poison.  "poison" has no kernels, so that every step runs on the host between copies;
 * "poison:some" has those of every other operator (their references), "poison:all" of all;
 * "poison:half" has none, stores activations as float16 and has updates last; "poison:fused" has
 * all, and wants additions and activations in batch norms; "poison:late" has all, and does nothing
 * before somebody waits for it: copies of its own memory of the host, runs and reads.
 *
 * EW_DEVICE=poison runs a test program on it: ew_test.c registers it then. */
#ifndef EW_TEST_POISON_BACKEND_H
#define EW_TEST_POISON_BACKEND_H

#include "backend/backend.h"

/* Once is enough; more do nothing. */
ew_err ew_poison_register(void);

/* What was asked of a device of this kind so far. */
struct ew_poison_counts {
    int64_t writes, reads, fills, runs; /* calls */
    int64_t written_bytes, read_bytes;
    int64_t recordings; /* programs that ran for the first time */
};

struct ew_poison_counts ew_poison_counts(const struct ew_backend *be);

#endif
