/* SPDX-License-Identifier: Apache-2.0 */
/* Moving objects between arenas. */
#ifndef EW_BASE_ARENA_MOVE_H
#define EW_BASE_ARENA_MOVE_H

#include "base/mem.h"

/* Moves the ownership of an object of `bytes` to the arena `to`, if it has a chunk of its own; its
 * address is unchanged.  Else returns false and does nothing. */
bool ew_arena_move(struct ew_arena *to, struct ew_arena *from, const void *p, size_t bytes);

#endif
