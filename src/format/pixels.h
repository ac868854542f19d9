/* SPDX-License-Identifier: Apache-2.0 */
/* Pixels of the caller's as a sample of ours: packed formats are only pointed to, NV12 becomes RGB.
 */
#ifndef EW_FORMAT_PIXELS_H
#define EW_FORMAT_PIXELS_H

#include "data/data.h"
#include "edgewise_pixels.h"

/* `scratch` holds what had to be converted and is kept between frames.  Fails on sizes, strides and
 * formats that make no sense. */
ew_err ew_pixels_sample(const struct ew_pixels *p, struct ew_bytes *scratch, struct ew_sample *out);

#endif
