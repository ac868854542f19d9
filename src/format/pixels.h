/* SPDX-License-Identifier: Apache-2.0 */
/* Images in the caller's memory as samples: packed formats are borrowed, NV12 is converted to RGB.
 */
#ifndef EW_FORMAT_PIXELS_H
#define EW_FORMAT_PIXELS_H

#include "data/data.h"
#include "edgewise_pixels.h"

/* `scratch` holds converted pixels, and is reused between frames.  Fails on invalid sizes, strides
 * and formats. */
ew_err ew_pixels_sample(const struct ew_pixels *p, struct ew_bytes *scratch, struct ew_sample *out);

#endif
