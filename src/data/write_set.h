/* SPDX-License-Identifier: Apache-2.0 */
/* Exporting data sets: as files that other programs read, and as a contact sheet. */
#ifndef EW_DATA_WRITE_SET_H
#define EW_DATA_WRITE_SET_H

#include "base/progress.h"
#include "data/data.h"

enum ew_set_format { EW_SET_FOLDER, EW_SET_IDX, EW_SET_PACKED };

/* Writes all labelled samples to `to`: a folder of PNG files (EW_SET_FOLDER; MP4 files for clips),
 * a folder of IDX files (all samples must have one size), or a packed file.  It must not exist, and
 * appears atomically.  `progress` counts samples. */
ew_err ew_dataset_write(const struct ew_dataset *d, enum ew_set_format format, const char *to,
                        struct ew_progress *progress);

/* Writes a PNG file with a row per class of at most `columns` samples, at least 64 pixels high;
 * with over 20 classes rows are mixed. */
ew_err ew_dataset_sheet(const struct ew_dataset *d, enum ew_split split, int columns,
                        const char *path);

#endif
