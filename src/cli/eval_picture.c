/* SPDX-License-Identifier: Apache-2.0 */
/* The confusion matrix as a picture: true classes downwards, predicted ones to the right, each
 * row's shares from white to blue, class numbers along both edges.  Also a sheet of misclassified
 * images. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/canvas.h"
#include "cli/eval_show.h"
#include "data/image_file.h"

#define SIDE_PIXELS 640 /* approximate side of the matrix */
#define DOT         2   /* pixels per dot of a glyph */
#define GAP         1   /* pixel between large cells */

static void fill(struct ew_canvas *c, int64_t x, int64_t y, int64_t side, const uint8_t colour[3])
{
    ew_canvas_box(c, (struct ew_rect){x, y, side, side}, colour);
}

static int64_t text_width(const char *digits)
{
    return ew_canvas_text_width(digits, DOT);
}

static void draw_digits(struct ew_canvas *c, int64_t x, int64_t y, const char *digits,
                        const uint8_t colour[3])
{
    ew_canvas_text(c, (const int64_t[]){x, y}, DOT, digits, colour);
}

/* From white to dark blue; the square root makes small shares visible. */
static void shade(double share, uint8_t out[3])
{
    static const double low[3] = {255, 255, 255}, high[3] = {8, 48, 107};
    const double s = sqrt(share);
    for (int i = 0; i < 3; i++)
        out[i] = (uint8_t)(low[i] + (high[i] - low[i]) * s);
}

static void draw_cell(struct ew_canvas *c, const struct ew_confusion *m, const int64_t at[2],
                      const int64_t box[3])
{
    char text[24];
    uint8_t colour[3];
    const int64_t n = m->count[at[0] * m->classes + at[1]], side = box[2];
    int64_t row = 0;
    for (int64_t k = 0; k < m->classes; k++)
        row += m->count[at[0] * m->classes + k];
    const double share = row ? (double)n / (double)row : 0;
    shade(share, colour);
    fill(c, box[0], box[1], side - (side > 8 ? GAP : 0), colour);
    snprintf(text, sizeof(text), "%lld", (long long)n);
    if (n == 0 || text_width(text) + 4 > side || ew_canvas_text_height(DOT) + 4 > side)
        return;
    static const uint8_t dark[3] = {40, 40, 40}, light[3] = {255, 255, 255};
    draw_digits(c, box[0] + (side - text_width(text)) / 2,
                box[1] + (side - ew_canvas_text_height(DOT)) / 2, text, share > 0.3 ? light : dark);
}

/* Class numbers along both edges, each or every tenth. */
static void draw_edges(struct ew_canvas *c, int64_t classes, int64_t margin, int64_t side)
{
    static const uint8_t grey[3] = {90, 90, 90};
    const int64_t every = side >= text_width("888") + 4 ? 1 : side * 10 >= 40 ? 10 : 100;
    for (int64_t k = 0; k < classes; k += every) {
        char text[24];
        snprintf(text, sizeof(text), "%lld", (long long)k);
        const int64_t at = margin + k * side + (side - ew_canvas_text_height(DOT)) / 2;
        draw_digits(c, margin - 6 - text_width(text), at, text, grey);
        draw_digits(c, margin + k * side + (side - text_width(text)) / 2,
                    margin - 6 - ew_canvas_text_height(DOT), text, grey);
    }
}

ew_err ew_eval_write_png(const struct ew_eval_report *r, const char *path)
{
    const struct ew_confusion *m = &r->run->confusion;
    const int64_t side = m->classes >= SIDE_PIXELS       ? 1
                         : SIDE_PIXELS / m->classes > 56 ? 56
                                                         : SIDE_PIXELS / m->classes;
    const int64_t margin = text_width("8888") + 12;
    struct ew_canvas c;
    EW_TRY(ew_canvas_new(margin + side * m->classes + 8, margin + side * m->classes + 8, 235, &c));
    for (int64_t i = 0; i < m->classes; i++)
        for (int64_t k = 0; k < m->classes; k++) {
            const int64_t box[3] = {margin + k * side, margin + i * side, side};
            draw_cell(&c, m, (const int64_t[]){i, k}, box);
        }
    draw_edges(&c, m->classes, margin, side);
    const ew_err e = ew_image_write_png(path, c.rgb, (const int64_t[]){c.h, c.w, 3});
    free(c.rgb);
    return e;
}

/* ---- The worst mistakes ---- */

#define GALLERY_COLUMNS 8
#define GALLERY_MAX     48
#define TILE            96 /* pixels of an image with its frame */

/* Draws the sample in a square, as large as fits, by nearest-neighbour scaling. */
static void draw_sample(struct ew_canvas *c, const struct ew_sample *s, int64_t x, int64_t y)
{
    const int64_t side = TILE - 4, longer = s->h > s->w ? s->h : s->w;
    const int64_t h = s->h * side / longer, w = s->w * side / longer;
    for (int64_t j = 0; j < h; j++)
        for (int64_t i = 0; i < w; i++) {
            const uint8_t *p = s->pixels + j * s->h / h * s->sy + i * s->w / w * s->sx;
            uint8_t *to = c->rgb + 3 * ((y + j) * c->w + x + i);
            for (int k = 0; k < 3; k++)
                to[k] = p[s->c == 3 ? k * s->sc : 0];
        }
}

static void draw_number(struct ew_canvas *c, int64_t number, int64_t x, int64_t y)
{
    static const uint8_t paper[3] = {255, 255, 255}, ink[3] = {170, 20, 20};
    char text[24];
    snprintf(text, sizeof(text), "%lld", (long long)number);
    const int64_t w = text_width(text) + 6, h = ew_canvas_text_height(DOT) + 6;
    for (int64_t i = 0; i < w; i++)
        for (int64_t j = 0; j < h; j++)
            fill(c, x + i, y + j, 1, paper);
    draw_digits(c, x + 3, y + 3, text, ink);
}

static ew_err draw_gallery(const struct ew_eval_report *r, const struct ew_eval_sample **list,
                           int64_t n, struct ew_canvas *c)
{
    struct ew_sample s = {0};
    ew_err e = EW_OK;
    for (int64_t i = 0; i < n && e == EW_OK; i++) {
        const int64_t x = i % GALLERY_COLUMNS * TILE + 2, y = i / GALLERY_COLUMNS * TILE + 2;
        e = ew_dataset_read(r->data, r->split, list[i]->index, &s);
        if (e != EW_OK)
            break;
        draw_sample(c, &s, x, y);
        draw_number(c, i + 1, x, y);
    }
    ew_sample_fini(&s);
    return e;
}

ew_err ew_eval_write_mistakes(const struct ew_eval_report *r, const char *path)
{
    const struct ew_eval_sample **list;
    int64_t n;
    EW_TRY(ew_eval_mistakes(r, &list, &n));
    n = n < GALLERY_MAX ? n : GALLERY_MAX;
    const int64_t columns = n < GALLERY_COLUMNS ? n : GALLERY_COLUMNS;
    struct ew_canvas c;
    ew_err e = ew_canvas_new((columns ? columns : 1) * TILE,
                             (n ? (n - 1) / GALLERY_COLUMNS + 1 : 1) * TILE, 235, &c);
    if (e == EW_OK)
        e = draw_gallery(r, list, n, &c);
    if (e == EW_OK)
        e = ew_image_write_png(path, c.rgb, (const int64_t[]){c.h, c.w, 3});
    free(c.rgb);
    free(list);
    return e;
}
