/* SPDX-License-Identifier: Apache-2.0 */
/* The confusion matrix as a picture: true classes downwards, predicted ones to the right, names
 * along both edges, each row's shares from white to blue. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "cli/canvas.h"
#include "cli/eval_show.h"
#include "data/image_file.h"
#include "report/text_table.h"

#define SIDE_PIXELS 640 /* approximate side of the matrix */
#define LARGEST     56  /* pixels of a cell */
#define LARGE       8   /* cells above this are separated by a line */
#define PAD         10  /* pixels around everything */
#define DOT         2   /* pixels per dot of a glyph; 1 where that does not fit */
#define NAME_CHARS  14  /* longer class names are cut */
#define TITLE_CHARS 128
#define TICK        5 /* pixels of a tick */

static const uint8_t dark[3] = {40, 40, 40}, grey[3] = {90, 90, 90}, light[3] = {255, 255, 255};

/* Where the matrix stands, and how its classes are named. */
struct layout {
    int64_t classes;
    int64_t side;       /* of a cell */
    int64_t left, top;  /* of the matrix */
    int64_t dot, every; /* of class names; every tenth has its number where names do not fit */
};

static int64_t line_height(int64_t dot)
{
    return ew_canvas_text_height(dot) + 4 * dot;
}

static void name_of(const struct ew_eval_report *r, const struct layout *l, int64_t k,
                    char out[NAME_CHARS + 1])
{
    if (l->every > 1)
        snprintf(out, NAME_CHARS + 1, "%d", (int)k);
    else
        snprintf(out, NAME_CHARS + 1, "%s", ew_eval_class(r, k));
}

static struct layout lay_out(const struct ew_eval_report *r)
{
    struct layout l = {.classes = r->run->confusion.classes, .dot = DOT, .every = 1};
    int64_t names = 0;
    l.side = ew_max_i64(1, ew_min_i64(LARGEST, SIDE_PIXELS / l.classes));
    if (l.side < ew_canvas_text_height(DOT) + 2)
        l.dot = 1;
    if (l.side < ew_canvas_text_height(1) + 1)
        l.every = l.side >= 2 ? 10 : 100;
    for (int64_t k = 0; k < l.classes; k += l.every) {
        char name[NAME_CHARS + 1];
        name_of(r, &l, k, name);
        names = ew_max_i64(names, ew_canvas_text_width(name, l.dot));
    }
    l.left = PAD + line_height(DOT) + names + 6;
    l.top = PAD + 2 * line_height(DOT) + names + 6;
    return l;
}

/* From white to dark blue; the square root makes small shares visible. */
static void shade(double share, uint8_t out[3])
{
    static const double low[3] = {255, 255, 255}, high[3] = {8, 48, 107};
    const double s = sqrt(share);
    for (int i = 0; i < 3; i++)
        out[i] = (uint8_t)(low[i] + (high[i] - low[i]) * s);
}

/* The number in the middle of the cell, as large as fits. */
static void draw_count(struct ew_canvas *c, const int64_t box[3], int64_t n, const uint8_t ink[3])
{
    char text[24];
    snprintf(text, sizeof(text), "%lld", (long long)n);
    for (int64_t dot = DOT; n && dot; dot--) {
        const int64_t w = ew_canvas_text_width(text, dot), h = ew_canvas_text_height(dot);
        if (w + 4 > box[2] || h + 4 > box[2])
            continue;
        const int64_t at[2] = {box[0] + (box[2] - w) / 2, box[1] + (box[2] - h) / 2};
        ew_canvas_text(c, at, dot, text, ink);
        return;
    }
}

static void draw_row(struct ew_canvas *c, const struct ew_confusion *m, const struct layout *l,
                     int64_t row)
{
    const int64_t *counts = m->count + row * m->classes;
    int64_t sum = 0;
    for (int64_t k = 0; k < m->classes; k++)
        sum += counts[k];
    for (int64_t k = 0; k < m->classes; k++) {
        const double share = sum ? (double)counts[k] / (double)sum : 0;
        const int64_t box[3] = {l->left + k * l->side, l->top + row * l->side,
                                l->side - (l->side > LARGE ? 1 : 0)};
        uint8_t colour[3];
        shade(share, colour);
        ew_canvas_box(c, (struct ew_rect){box[0], box[1], box[2], box[2]}, colour);
        draw_count(c, box, counts[k], share > 0.3 ? light : dark);
    }
}

/* Marks the row and the column that a number stands for. */
static void draw_ticks(struct ew_canvas *c, const struct layout *l, int64_t k)
{
    const int64_t at = k * l->side + l->side / 2;
    ew_canvas_box(c, (struct ew_rect){l->left - TICK, l->top + at, TICK, 1}, grey);
    ew_canvas_box(c, (struct ew_rect){l->left + at, l->top - TICK, 1, TICK}, grey);
}

static void draw_names(struct ew_canvas *c, const struct ew_eval_report *r, const struct layout *l)
{
    const int64_t middle = (l->side - ew_canvas_text_height(l->dot)) / 2;
    for (int64_t k = 0; k < l->classes; k += l->every) {
        char name[NAME_CHARS + 1];
        name_of(r, l, k, name);
        const int64_t row[2] = {l->left - 6 - ew_canvas_text_width(name, l->dot),
                                l->top + k * l->side + middle};
        ew_canvas_text(c, row, l->dot, name, grey);
        const int64_t column[2] = {l->left + k * l->side + middle, l->top - 6};
        ew_canvas_text_upwards(c, column, l->dot, name, grey);
        if (l->every > 1)
            draw_ticks(c, l, k);
    }
}

/* A line around the matrix, whose cells are mostly as light as the ground. */
static void draw_frame(struct ew_canvas *c, const struct layout *l)
{
    const int64_t n = l->side * l->classes;
    ew_canvas_box(c, (struct ew_rect){l->left - 1, l->top - 1, n + 2, 1}, grey);
    ew_canvas_box(c, (struct ew_rect){l->left - 1, l->top + n, n + 2, 1}, grey);
    ew_canvas_box(c, (struct ew_rect){l->left - 1, l->top - 1, 1, n + 2}, grey);
    ew_canvas_box(c, (struct ew_rect){l->left + n, l->top - 1, 1, n + 2}, grey);
}

static void title_of(const struct ew_eval_report *r, char out[TITLE_CHARS])
{
    const struct ew_scores s = ew_confusion_scores(&r->run->confusion);
    char count[EW_TEXT_CHARS];
    snprintf(out, TITLE_CHARS, "%.60s: %.2f %% of %s images", r->network, 100 * s.accuracy,
             ew_text_count(s.samples, count));
}

static void draw_titles(struct ew_canvas *c, const struct ew_eval_report *r, const struct layout *l,
                        const char *title)
{
    static const char down[] = "true class", across[] = "predicted class";
    const int64_t size = l->side * l->classes;
    const int64_t length = ew_canvas_text_width(down, DOT);
    ew_canvas_text(c, (const int64_t[]){PAD, PAD}, DOT, title, dark);
    const int64_t x = l->left + (size - ew_canvas_text_width(across, DOT)) / 2;
    ew_canvas_text(c, (const int64_t[]){ew_max_i64(x, l->left), PAD + line_height(DOT)}, DOT,
                   across, dark);
    const int64_t y = l->top + (size + length) / 2;
    ew_canvas_text_upwards(c, (const int64_t[]){PAD, ew_min_i64(y, l->top + size)}, DOT, down,
                           dark);
}

ew_err ew_eval_write_png(const struct ew_eval_report *r, const char *path)
{
    const struct layout l = lay_out(r);
    const int64_t size = l.side * l.classes;
    char title[TITLE_CHARS];
    struct ew_canvas c;
    title_of(r, title);
    const int64_t wide = ew_max_i64(l.left + size, PAD + ew_canvas_text_width(title, DOT));
    EW_TRY(ew_canvas_new(wide + PAD, ew_max_i64(l.top + size, 180) + PAD, 245, &c));
    for (int64_t i = 0; i < l.classes; i++)
        draw_row(&c, &r->run->confusion, &l, i);
    draw_frame(&c, &l);
    draw_names(&c, r, &l);
    draw_titles(&c, r, &l, title);
    const ew_err e = ew_image_write_png(path, c.rgb, (const int64_t[]){c.h, c.w, 3});
    free(c.rgb);
    return e;
}
