/* SPDX-License-Identifier: Apache-2.0 */
/* Scalars for TensorBoard: an event file, one record for each value.
 *
 * A record is TFRecord's: length (uint64), masked CRC-32C of the length, bytes, masked CRC-32C of
 * the bytes, little-endian.  The bytes are an Event message: wall_time = 1, step = 2, file_version
 * = 3, summary = 5 { value = 1 { tag = 1, simple_value = 2 } }. */
#ifndef EW_TRAIN_TENSORBOARD_H
#define EW_TRAIN_TENSORBOARD_H

#include <stdint.h>
#include <stdio.h>

#include "base/err.h"

struct ew_tensorboard {
    FILE *f;         /* NULL: closed */
    char path[1024]; /* for messages */
};

/* Makes the folder where it is not there, and in it a file of a name of its own: a run that goes on
 * adds another, as TensorBoard expects. */
ew_err ew_tensorboard_open(const char *folder, struct ew_tensorboard *out);

/* One value of a curve; what is not finite is left out. */
ew_err ew_tensorboard_scalar(struct ew_tensorboard *t, const char *tag, int64_t step, double value);

/* Writes what is buffered.  A closed one is fine. */
ew_err ew_tensorboard_close(struct ew_tensorboard *t);

/* CRC-32C (Castagnoli), as iSCSI has it. */
uint32_t ew_crc32c(const void *bytes, size_t n);

#endif
