/* SPDX-License-Identifier: Apache-2.0 */
/* A backend whose memory the host must not touch, to prove that it does not.
 *
 * Its blocks are inaccessible pages except while the device itself copies or runs; new ones are
 * filled with poison.  Variants, which differ in the operators with kernels (the references):
 *   poison         none: every step runs on the host between copies
 *   poison:some    every other operator
 *   poison:all     all
 *   poison:half    none; stores activations as float16, updates last
 *   poison:fused   all; accepts additions and activations fused into batch norms
 *   poison:late    all; runs, and copies from and to memory of ew_backend_host_alloc, are deferred
 *                  until something waits for them
 *
 * EW_DEVICE=poison runs a test program on it: ew_test.c then registers it. */
#ifndef EW_TEST_POISON_BACKEND_H
#define EW_TEST_POISON_BACKEND_H

#include "backend/backend.h"

/* Idempotent. */
ew_err ew_poison_register(void);

/* Calls on all devices of this kind so far. */
struct ew_poison_counts {
    int64_t writes, reads, fills, runs; /* number of calls */
    int64_t written_bytes, read_bytes;
    int64_t recordings; /* first runs of programs */
};

struct ew_poison_counts ew_poison_counts(const struct ew_backend *be);

#endif
