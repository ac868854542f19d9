/* SPDX-License-Identifier: Apache-2.0 */
/* Objects that change from one arena to another. */
#ifndef EW_BASE_ARENA_MOVE_H
#define EW_BASE_ARENA_MOVE_H

#include "base/mem.h"

/* Hands an object of `bytes` over, if it is large enough to lie by itself: it stays in its place,
 * and lives as long as `to`.  Else returns false and does nothing. */
bool ew_arena_move(struct ew_arena *to, struct ew_arena *from, const void *p, size_t bytes);

#endif
