/* SPDX-License-Identifier: Apache-2.0 */
/* Copying the files of a board that Edgewise reads, and no others, so that the board can stand in
 * for itself in tests. */
#ifndef EW_DEVICE_CAPTURE_H
#define EW_DEVICE_CAPTURE_H

#include "device/board.h"

/* Copies from the board's root to `dir`, which is made and must be new or empty.  A file that
 * cannot be read is kept as its error ("!EACCES").  Serial numbers, names and addresses are not
 * copied. *files counts what was written. */
ew_err ew_capture(struct ew_board *b, const char *dir, int *files);

#endif
