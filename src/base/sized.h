/* SPDX-License-Identifier: Apache-2.0 */
/* Structs of the public interface that begin with their size, `size_t size`.
 *
 * Fields are only ever appended, and 0 means the default, so a program and a library of different
 * releases work together: what the shorter struct lacks is 0 (as for openat2 in Linux). */
#ifndef EW_BASE_SIZED_H
#define EW_BASE_SIZED_H

#include "base/err.h"

/* Copies the caller's options to *to, of `size` bytes; NULL: all 0.  Fails if their size is not
 * set, or if they set a field that this library does not know. */
ew_err ew_sized_import(const void *options, void *to, size_t size);

/* Checks that the caller has set the size of a result struct. */
ew_err ew_sized_check(const void *result);

/* Copies `from`, of `size` bytes, to the caller's result struct, whose size stays: the fields that
 * both have.  Others of the caller's become 0. */
void ew_sized_export(const void *from, size_t size, void *result);

#endif
