/* SPDX-License-Identifier: Apache-2.0 */
/* Large objects, which arenas can hand to each other. */
#ifndef EW_BASE_ARENA_MOVE_H
#define EW_BASE_ARENA_MOVE_H

#include "base/mem.h"

/* True if an object of `bytes` has a chunk of its own.  Takes constant time for small objects. */
bool ew_arena_is_alone(const struct ew_arena *a, const void *p, size_t bytes);

/* Moves the ownership of such an object to the arena `to`; its address is unchanged.  Returns false
 * and does nothing if it is not alone. */
bool ew_arena_move(struct ew_arena *to, struct ew_arena *from, const void *p, size_t bytes);

#endif
