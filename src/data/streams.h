/* SPDX-License-Identifier: Apache-2.0 */
/* Random streams of the loader: one per use and epoch, so that they are independent. */
#ifndef EW_DATA_STREAMS_H
#define EW_DATA_STREAMS_H

#include "base/rng.h"

enum ew_data_use { EW_STREAM_AUGMENT = 1, EW_STREAM_ORDER, EW_STREAM_REFILL, EW_STREAM_SPREAD };

static inline uint64_t ew_data_stream(enum ew_data_use use, int64_t epoch)
{
    return (uint64_t)epoch << 8 | (uint64_t)use;
}

/* A seed that differs from the one of the weights. */
static inline uint64_t ew_data_seed(uint64_t seed)
{
    return ew_rng_u64(seed, 0x64617461, 0); /* "data" */
}

#endif
