/* SPDX-License-Identifier: Apache-2.0 */
/* Drawing into an RGB image. */
#include "cli/canvas.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define GLYPH_W 3
#define GLYPH_H 5

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

/* Each row has three bits, the leftmost pixel in the highest. */
struct glyph {
    char letter;
    unsigned char rows[GLYPH_H];
};

/* clang-format off */
static const struct glyph glyphs[] = {
    {'0', {7, 5, 5, 5, 7}}, {'1', {2, 6, 2, 2, 7}}, {'2', {7, 1, 7, 4, 7}}, {'3', {7, 1, 7, 1, 7}},
    {'4', {5, 5, 7, 1, 1}}, {'5', {7, 4, 7, 1, 7}}, {'6', {7, 4, 7, 5, 7}}, {'7', {7, 1, 2, 2, 2}},
    {'8', {7, 5, 7, 5, 7}}, {'9', {7, 5, 7, 1, 7}}, {'A', {2, 5, 7, 5, 5}}, {'B', {6, 5, 6, 5, 6}},
    {'C', {3, 4, 4, 4, 3}}, {'D', {6, 5, 5, 5, 6}}, {'E', {7, 4, 6, 4, 7}}, {'F', {7, 4, 6, 4, 4}},
    {'G', {3, 4, 5, 5, 3}}, {'H', {5, 5, 7, 5, 5}}, {'I', {7, 2, 2, 2, 7}}, {'J', {1, 1, 1, 5, 2}},
    {'K', {5, 5, 6, 5, 5}}, {'L', {4, 4, 4, 4, 7}}, {'M', {5, 7, 7, 5, 5}}, {'N', {6, 5, 5, 5, 5}},
    {'O', {2, 5, 5, 5, 2}}, {'P', {6, 5, 6, 4, 4}}, {'Q', {2, 5, 5, 6, 3}}, {'R', {6, 5, 6, 5, 5}},
    {'S', {3, 4, 2, 1, 6}}, {'T', {7, 2, 2, 2, 2}}, {'U', {5, 5, 5, 5, 7}}, {'V', {5, 5, 5, 5, 2}},
    {'W', {5, 5, 7, 7, 5}}, {'X', {5, 5, 2, 5, 5}}, {'Y', {5, 5, 2, 2, 2}}, {'Z', {7, 1, 2, 4, 7}},
    {'.', {0, 0, 0, 0, 2}}, {'%', {5, 1, 2, 4, 5}}, {'-', {0, 0, 7, 0, 0}}, {'_', {0, 0, 0, 0, 7}},
    {':', {0, 2, 0, 2, 0}}, {'/', {1, 1, 2, 4, 4}}, {'+', {0, 2, 7, 2, 0}}, {'=', {0, 7, 0, 7, 0}},
};
/* clang-format on */

static const unsigned char *rows_of(char letter)
{
    const char capital = letter >= 'a' && letter <= 'z' ? (char)(letter - 'a' + 'A') : letter;
    for (size_t i = 0; i < EW_COUNT(glyphs); i++)
        if (glyphs[i].letter == capital)
            return glyphs[i].rows;
    return NULL;
}

void ew_canvas_text(struct ew_canvas *c, const int64_t at[2], int64_t dot, const char *text,
                    const uint8_t colour[3])
{
    for (int64_t x = at[0]; *text; text++, x += (GLYPH_W + 1) * dot) {
        const unsigned char *rows = rows_of(*text);
        for (int j = 0; rows && j < GLYPH_H; j++)
            for (int i = 0; i < GLYPH_W; i++)
                if (rows[j] >> (GLYPH_W - 1 - i) & 1)
                    ew_canvas_box(c, (struct ew_rect){x + i * dot, at[1] + j * dot, dot, dot},
                                  colour);
    }
}

int64_t ew_canvas_text_width(const char *text, int64_t dot)
{
    const int64_t n = (int64_t)strlen(text);
    return n ? n * (GLYPH_W + 1) * dot - dot : 0;
}

int64_t ew_canvas_text_height(int64_t dot)
{
    return GLYPH_H * dot;
}
