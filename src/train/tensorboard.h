/* SPDX-License-Identifier: Apache-2.0 */
/* TensorBoard event files: one record per scalar.
 *
 * A record is a TFRecord: length (uint64), masked CRC-32C of the length, bytes, masked CRC-32C of
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

/* Creates the folder if needed, and in it a new file with a unique name: a resumed run adds
 * another, as TensorBoard expects. */
ew_err ew_tensorboard_open(const char *folder, struct ew_tensorboard *out);

/* Writes one scalar, unless it is not finite. */
ew_err ew_tensorboard_scalar(struct ew_tensorboard *t, const char *tag, int64_t step, double value);

/* Flushes and closes; a closed one is fine. */
ew_err ew_tensorboard_close(struct ew_tensorboard *t);

/* CRC-32C (Castagnoli), as iSCSI has it. */
uint32_t ew_crc32c(const void *bytes, size_t n);

#endif
