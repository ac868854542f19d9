/* SPDX-License-Identifier: Apache-2.0 */
/* Data sets written out: as files that other programs read too, and as a picture for people. */
#ifndef EW_DATA_WRITE_SET_H
#define EW_DATA_WRITE_SET_H

#include "base/progress.h"
#include "data/data.h"

enum ew_set_format { EW_SET_FOLDER, EW_SET_IDX, EW_SET_PACKED };

/* Writes all labelled samples to `to`: a folder with a PNG file each (EW_SET_FOLDER; of clips an
 * MP4 file), a folder of IDX files (all samples must have one size), or a packed file.  It appears
 * whole or not at all, and must not be there yet.  `progress` counts samples. */
ew_err ew_dataset_write(const struct ew_dataset *d, enum ew_set_format format, const char *to,
                        struct ew_progress *progress);

/* A PNG file with a row per class and at most `columns` samples in each, at least 64 pixels high;
 * where there are over 20 classes, samples of all of them in no order. */
ew_err ew_dataset_sheet(const struct ew_dataset *d, enum ew_split split, int columns,
                        const char *path);

#endif
