/* SPDX-License-Identifier: Apache-2.0 */
/* A list of widths in a file: filter counts by gate in the network's order, with blanks, commas or
 * line ends between; what follows '#' in a line is for people. */
#ifndef EW_NETWORK_WIDTH_LIST_H
#define EW_NETWORK_WIDTH_LIST_H

#include <stdint.h>

#include "base/err.h"

ew_err ew_width_list_read(const char *path, int32_t *widths, int max, int *n);
/* `about` becomes the first line. */
ew_err ew_width_list_write(const char *path, const char *about, const int32_t *widths, int n);

#endif
