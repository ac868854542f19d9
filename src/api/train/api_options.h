/* SPDX-License-Identifier: Apache-2.0 */
/* Options that programs give as text: lines "name = value", by the names of a command's options. */
#ifndef EW_API_TRAIN_API_OPTIONS_H
#define EW_API_TRAIN_API_OPTIONS_H

#include "base/field.h"
#include "base/mem.h"

/* Into `object`, whose texts then live in the arena.  `text` may be NULL.  Fails on a name that the
 * table lacks, or that is not in `allowed` (NULL-terminated; NULL: all are). */
ew_err ew_api_options(const struct ew_field *table, const char *text, const char *const *allowed,
                      struct ew_arena *arena, void *object);

#endif
