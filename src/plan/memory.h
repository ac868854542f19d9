/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers with lifetimes, and their places in one block of memory. */
#ifndef EW_PLAN_MEMORY_H
#define EW_PLAN_MEMORY_H

#include <stddef.h>

#include "base/err.h"

struct ew_buffer {
    size_t size;     /* bytes */
    int first, last; /* steps that need it, inclusive */
    size_t offset;   /* result */
};

/* Gives every buffer an offset (multiples of EW_ALIGN) such that two that live at the same time do
 * not overlap; *total is the size of the block.  Largest first, each at the lowest place where it
 * fits: a good answer to a problem whose best one is NP-hard. */
ew_err ew_memory_place(struct ew_buffer *buffers, int n, size_t *total);

#endif
