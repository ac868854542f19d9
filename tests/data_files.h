/* SPDX-License-Identifier: Apache-2.0 */
/* Small data sets in each file format, written into the test's folder.  Each function returns the
 * path, valid until the program ends. */
#ifndef EW_TEST_DATA_FILES_H
#define EW_TEST_DATA_FILES_H

#include <stdbool.h>
#include <stdint.h>

/* Byte k of sample i in all data sets below. */
uint8_t ew_data_files_pixel(int64_t i, int64_t k);

const char *ew_data_files_dir(const char *name); /* an empty folder */

/* 5 x 4 greyscale images, labels i % 3. */
const char *ew_data_files_idx(const char *name, int train, int test);

/* CIFAR-10: `train` samples in each of two files; CIFAR-100 (`hundred`): in one file.  Labels i %
 * 10. */
const char *ew_data_files_cifar(const char *name, int train, int test, bool hundred);

/* n training, test and unlabelled samples; labels 1 + i % 10 in the file. */
const char *ew_data_files_stl10(const char *name, int n);

/* PNG files of 6 x 8 RGB pixels at these space-separated paths, numbered from 0; other names become
 * text files.  NULL: built without PNG. */
const char *ew_data_files_folder(const char *name, const char *paths);

void ew_data_files_text(const char *dir, const char *name, const char *text);

/* Overwrites one byte of a file. */
void ew_data_files_poke(const char *dir, const char *name, int64_t at, uint8_t value);

#endif
