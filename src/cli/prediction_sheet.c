/* SPDX-License-Identifier: Apache-2.0 */
/* Contact sheet of a clip's predictions. */
#include "cli/prediction_sheet.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "data/image_file.h"

#define CELL    128 /* pixels, both sides, with the text */
#define TEXT    28  /* pixel rows of a cell for text */
#define DOT     1
#define COLUMNS 8
#define CELLS   48

static const uint8_t white[3] = {240, 240, 240};

static size_t cell_bytes(void)
{
    return (size_t)3 * CELL * CELL;
}

/* Nearest-neighbour scaling: frames are larger than cells, and small frames keep sharp pixels. */
static void scale(const struct ew_canvas *from, struct ew_canvas *to)
{
    const int64_t high = CELL - TEXT;
    const int64_t w = ew_min_i64(CELL, from->w * high / ew_max_i64(from->h, 1));
    const int64_t h = w < CELL ? high : ew_min_i64(high, from->h * CELL / ew_max_i64(from->w, 1));
    for (int64_t y = 0; y < h; y++)
        for (int64_t x = 0; x < w; x++)
            memcpy(to->rgb + 3 * (y * CELL + x + (CELL - w) / 2),
                   from->rgb + 3 * (y * from->h / h * from->w + x * from->w / w), 3);
}

/* Halves a full sheet: every second cell stays. */
static void thin(struct ew_prediction_sheet *s)
{
    for (int64_t i = 0; 2 * i < s->n; i++)
        memmove(s->cells + (size_t)i * cell_bytes(), s->cells + (size_t)(2 * i) * cell_bytes(),
                cell_bytes());
    s->n = (s->n + 1) / 2;
    s->every *= 2;
}

ew_err ew_prediction_sheet_add(struct ew_prediction_sheet *s, const struct ew_canvas *frame,
                               const char *const text[2])
{
    if (!s->cells) {
        s->cells = calloc(CELLS, cell_bytes());
        EW_CHECK(s->cells, EW_ERR_MEMORY, "no memory for a sheet of predictions");
        s->every = 1;
    }
    if (s->n == CELLS)
        thin(s);
    if (s->seen++ % s->every != 0)
        return EW_OK;
    struct ew_canvas cell = {CELL, CELL, s->cells + (size_t)s->n++ * cell_bytes()};
    memset(cell.rgb, 20, cell_bytes());
    scale(frame, &cell);
    for (int64_t i = 0; i < 2; i++)
        ew_canvas_text(&cell, (const int64_t[]){2 * DOT, CELL - TEXT + 2 + 13 * i}, DOT, text[i],
                       white);
    return EW_OK;
}

static ew_err write_sheet(const struct ew_prediction_sheet *s, const char *path)
{
    const int64_t columns = ew_min_i64(s->n, COLUMNS), rows = (s->n + columns - 1) / columns;
    struct ew_canvas c;
    EW_TRY(ew_canvas_new(columns * CELL, rows * CELL, 20, &c));
    for (int64_t i = 0; i < s->n; i++)
        for (int64_t y = 0; y < CELL; y++)
            memcpy(c.rgb + 3 * ((i / columns * CELL + y) * c.w + i % columns * CELL),
                   s->cells + (size_t)i * cell_bytes() + (size_t)(3 * CELL * y), 3 * CELL);
    const ew_err e = ew_image_write_png(path, c.rgb, (const int64_t[]){c.h, c.w, 3});
    free(c.rgb);
    return e;
}

ew_err ew_prediction_sheet_close(struct ew_prediction_sheet *s, const char *path)
{
    const ew_err e = s->n ? write_sheet(s, path) : EW_OK;
    free(s->cells);
    *s = (struct ew_prediction_sheet){0};
    return e;
}
