/* SPDX-License-Identifier: Apache-2.0 */
/* Image resizing: a triangle filter, widened by the scale when shrinking (antialiased bilinear). */
#ifndef EW_DATA_IMAGE_RESIZE_H
#define EW_DATA_IMAGE_RESIZE_H

#include "data/data.h"

struct ew_resize {
    const uint8_t *in; /* pixel (y, x) of channel c: in[y * sy + x * sx + c * sc] */
    int64_t in_h, in_w, sy, sx, sc;
    double y[2], x[2]; /* start and length of the source window */
    int64_t h, w, c;   /* of the result, [h, w, c]; c is 1 or 3 */
};

/* Reusable weights and row buffer; initialised as {0}. */
struct ew_resizer {
    struct ew_bytes row, taps_y, taps_x;
};

ew_err ew_resizer_run(struct ew_resizer *z, const struct ew_resize *r, uint8_t *out);
/* The whole of a sample, to [h, w, c]. */
ew_err ew_resizer_run_sample(struct ew_resizer *z, const struct ew_sample *s, int64_t h, int64_t w,
                             uint8_t *out);
void ew_resizer_fini(struct ew_resizer *z);

#endif
