/* SPDX-License-Identifier: Apache-2.0 */
/* Small data sets in each layout, written into the test's folder.  Each returns its path, which
 * lives until the program ends. */
#ifndef EW_TEST_DATA_FILES_H
#define EW_TEST_DATA_FILES_H

#include <stdbool.h>
#include <stdint.h>

/* Byte k of sample i of every set below. */
uint8_t ew_data_files_pixel(int64_t i, int64_t k);

const char *ew_data_files_dir(const char *name); /* an empty folder */

/* 5 x 4 grey images, labels i % 3. */
const char *ew_data_files_idx(const char *name, int train, int test);

/* Ten classes: `train` samples in each of two files; a hundred: in one.  Label: i % 10. */
const char *ew_data_files_cifar(const char *name, int train, int test, bool hundred);

/* n samples of each kind, labels 1 + i % 10 in the file. */
const char *ew_data_files_stl10(const char *name, int n);

/* PNG files of 6 x 8 colours at these paths (blanks between them), numbered from 0; other names are
 * text files.  NULL: this build writes no PNG. */
const char *ew_data_files_folder(const char *name, const char *paths);

void ew_data_files_text(const char *dir, const char *name, const char *text);

/* Sets one byte of a file. */
void ew_data_files_poke(const char *dir, const char *name, int64_t at, uint8_t value);

#endif
