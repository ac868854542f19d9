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

/* Text with its upper left corner at (at[0], at[1]), each dot of a glyph `dot` pixels wide. */
void ew_canvas_text(struct ew_canvas *c, const int64_t at[2], int64_t dot, const char *text,
                    const uint8_t colour[3]);
/* The same turned to the left, read upwards from its lower left corner at (at[0], at[1]). */
void ew_canvas_text_upwards(struct ew_canvas *c, const int64_t at[2], int64_t dot, const char *text,
                            const uint8_t colour[3]);
int64_t ew_canvas_text_width(const char *text, int64_t dot);
/* Height of capitals; g, j, p, q and y reach two dots lower. */
int64_t ew_canvas_text_height(int64_t dot);

#endif
