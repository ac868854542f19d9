/* SPDX-License-Identifier: Apache-2.0 */
/* Drawing into an RGB image. */
#include "cli/canvas.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/glyphs.h"

ew_err ew_canvas_new(int64_t w, int64_t h, uint8_t grey, struct ew_canvas *out)
{
    *out = (struct ew_canvas){.w = w, .h = h, .rgb = malloc((size_t)(w * h * 3))};
    EW_CHECK(out->rgb, EW_ERR_MEMORY, "no memory for a picture of %lld x %lld", (long long)w,
             (long long)h);
    memset(out->rgb, grey, (size_t)(w * h * 3));
    return EW_OK;
}

void ew_canvas_box(struct ew_canvas *c, struct ew_rect b, const uint8_t colour[3])
{
    for (int64_t j = b.y < 0 ? 0 : b.y; j < b.y + b.h && j < c->h; j++)
        for (int64_t i = b.x < 0 ? 0 : b.x; i < b.x + b.w && i < c->w; i++)
            memcpy(c->rgb + 3 * (j * c->w + i), colour, 3);
}

void ew_canvas_line(struct ew_canvas *c, const double at[4], int64_t thick, const uint8_t colour[3])
{
    const double dx = at[2] - at[0], dy = at[3] - at[1];
    const int64_t steps = 1 + (int64_t)fmax(fabs(dx), fabs(dy));
    for (int64_t i = 0; i <= steps; i++) {
        const double u = (double)i / (double)steps;
        const int64_t x = (int64_t)(at[0] + u * dx), y = (int64_t)(at[1] + u * dy);
        ew_canvas_box(c, (struct ew_rect){x - thick / 2, y - thick / 2, thick, thick}, colour);
    }
}

void ew_canvas_text(struct ew_canvas *c, const int64_t at[2], int64_t dot, const char *text,
                    const uint8_t colour[3])
{
    for (int64_t x = at[0]; *text; text++, x += (EW_GLYPH_W + 1) * dot)
        for (int j = 0; j < EW_GLYPH_H; j++)
            for (int i = 0; i < EW_GLYPH_W; i++)
                if (ew_glyph_dot(*text, i, j))
                    ew_canvas_box(c, (struct ew_rect){x + i * dot, at[1] + j * dot, dot, dot},
                                  colour);
}

void ew_canvas_text_upwards(struct ew_canvas *c, const int64_t at[2], int64_t dot, const char *text,
                            const uint8_t colour[3])
{
    for (int64_t y = at[1] - dot; *text; text++, y -= (EW_GLYPH_W + 1) * dot)
        for (int j = 0; j < EW_GLYPH_H; j++)
            for (int i = 0; i < EW_GLYPH_W; i++)
                if (ew_glyph_dot(*text, i, j))
                    ew_canvas_box(c, (struct ew_rect){at[0] + j * dot, y - i * dot, dot, dot},
                                  colour);
}

int64_t ew_canvas_text_width(const char *text, int64_t dot)
{
    const int64_t n = (int64_t)strlen(text);
    return n ? n * (EW_GLYPH_W + 1) * dot - dot : 0;
}

int64_t ew_canvas_text_height(int64_t dot)
{
    return EW_GLYPH_CAP * dot;
}
