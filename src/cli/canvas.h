/* SPDX-License-Identifier: Apache-2.0 */
/* Drawing into an RGB image: boxes, lines and small text, for pictures and video frames. */
#ifndef EW_CLI_CANVAS_H
#define EW_CLI_CANVAS_H

#include <stdint.h>

#include "base/err.h"

struct ew_canvas {
    int64_t w, h;
    uint8_t *rgb; /* [h, w, 3]; drawing is clipped to it */
};

/* A canvas filled with one grey.  Release rgb with free(). */
ew_err ew_canvas_new(int64_t w, int64_t h, uint8_t grey, struct ew_canvas *out);

struct ew_rect {
    int64_t x, y, w, h;
};

void ew_canvas_box(struct ew_canvas *c, struct ew_rect b, const uint8_t colour[3]);
/* From (at[0], at[1]) to (at[2], at[3]), `thick` pixels wide. */
void ew_canvas_line(struct ew_canvas *c, const double at[4], int64_t thick,
                    const uint8_t colour[3]);

/* Glyphs are 3 x 5 dots of `dot` pixels: capitals, digits and some signs; others are blank. */
void ew_canvas_text(struct ew_canvas *c, const int64_t at[2], int64_t dot, const char *text,
                    const uint8_t colour[3]);
int64_t ew_canvas_text_width(const char *text, int64_t dot);
int64_t ew_canvas_text_height(int64_t dot);

#endif
