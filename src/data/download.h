/* SPDX-License-Identifier: Apache-2.0 */
/* Files from a URL. */
#ifndef EW_DATA_DOWNLOAD_H
#define EW_DATA_DOWNLOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/* Downloads into `path`, going on where an earlier attempt left off (what it got lies in
 * "path.part").  A terminal shows the progress on stderr.  EW_ERR_IO says why it could not,
 * EW_ERR_FORMAT that there are more than `most` bytes, EW_ERR_UNSUPPORTED that this build cannot.
 */
ew_err ew_download(const char *url, const char *path, int64_t most);

bool ew_download_is_url(const char *text);

#endif
