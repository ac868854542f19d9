/* SPDX-License-Identifier: Apache-2.0 */
/* Downloading files. */
#ifndef EW_DATA_DOWNLOAD_H
#define EW_DATA_DOWNLOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/* Downloads to `path`, resuming an earlier attempt ("path.part").  Shows progress on stderr, if a
 * terminal.  EW_ERR_IO: download failed; EW_ERR_FORMAT: more than `most` bytes; EW_ERR_UNSUPPORTED:
 * not in this build. */
ew_err ew_download(const char *url, const char *path, int64_t most);

bool ew_download_is_url(const char *text);

#endif
