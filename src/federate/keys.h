/* SPDX-License-Identifier: Apache-2.0 */
/* Whose a sample is: a text file with a line for each training sample, in the data set's order,
 * that holds the key of its writer, camera or board. */
#ifndef EW_FEDERATE_KEYS_H
#define EW_FEDERATE_KEYS_H

#include <stdint.h>

#include "base/err.h"

/* Numbers the keys in the order in which they first appear: *keys has one for each of the first n
 * samples (released with free), *clients says how many differ.  More lines than n are passed over,
 * fewer are an error. */
ew_err ew_keys_read(const char *path, int64_t n, int32_t **keys, int64_t *clients);

#endif
