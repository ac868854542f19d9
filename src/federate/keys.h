/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of samples: a text file with one line for each training sample, in the data set's order,
 * that holds the key of its writer, camera or board. */
#ifndef EW_FEDERATE_KEYS_H
#define EW_FEDERATE_KEYS_H

#include <stdint.h>

#include "base/err.h"

/* Numbers the keys in the order in which they first appear: *keys has one for each of the first n
 * samples (released with free), *clients says how many differ.  Further lines are ignored; fewer
 * are an error. */
ew_err ew_keys_read(const char *path, int64_t n, int32_t **keys, int64_t *clients);

#endif
