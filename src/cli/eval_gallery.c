/* SPDX-License-Identifier: Apache-2.0 */
/* The misclassified images of which the network was most certain, as one picture: under each its
 * number in the printed table, its class and the predicted one. */
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "cli/canvas.h"
#include "cli/eval_show.h"
#include "data/image_file.h"

#define COLUMNS 8
#define MOST    48
#define TILE    128 /* pixels of an image with its frame */
#define CAPTION 32  /* pixel rows below it for text */
#define CHARS   20  /* of a line of text */

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

static void draw_caption(struct ew_canvas *c, const struct ew_eval_report *r,
                         const struct ew_eval_sample *p, const int64_t at[2], int64_t number)
{
    static const uint8_t ink[3] = {40, 40, 40}, red[3] = {170, 20, 20};
    char truth[CHARS + 1], predicted[CHARS + 1];
    snprintf(truth, sizeof(truth), "%lld %s", (long long)number, ew_eval_class(r, p->label));
    snprintf(predicted, sizeof(predicted), "%.0f%% %s", 100 * (double)p->share[0],
             ew_eval_class(r, p->top[0]));
    ew_canvas_text(c, (const int64_t[]){at[0] + 2, at[1] + 4}, 1, truth, ink);
    ew_canvas_text(c, (const int64_t[]){at[0] + 2, at[1] + 17}, 1, predicted, red);
}

static ew_err draw_gallery(const struct ew_eval_report *r, const struct ew_eval_sample **list,
                           int64_t n, struct ew_canvas *c)
{
    struct ew_sample s = {0};
    ew_err e = EW_OK;
    for (int64_t i = 0; i < n && e == EW_OK; i++) {
        const int64_t x = i % COLUMNS * TILE + 2, y = i / COLUMNS * (TILE + CAPTION) + 2;
        e = ew_dataset_read(r->data, r->split, list[i]->index, &s);
        if (e != EW_OK)
            break;
        draw_sample(c, &s, x, y);
        draw_caption(c, r, list[i], (const int64_t[]){x, y + TILE - 4}, i + 1);
    }
    ew_sample_fini(&s);
    return e;
}

ew_err ew_eval_write_mistakes(const struct ew_eval_report *r, const char *path)
{
    const struct ew_eval_sample **list;
    int64_t n;
    EW_TRY(ew_eval_mistakes(r, &list, &n));
    n = ew_min_i64(n, MOST);
    const int64_t columns = ew_max_i64(ew_min_i64(n, COLUMNS), 1);
    const int64_t rows = n ? (n - 1) / COLUMNS + 1 : 1;
    struct ew_canvas c;
    ew_err e = ew_canvas_new(columns * TILE, rows * (TILE + CAPTION), 245, &c);
    if (e == EW_OK)
        e = draw_gallery(r, list, n, &c);
    if (e == EW_OK)
        e = ew_image_write_png(path, c.rgb, (const int64_t[]){c.h, c.w, 3});
    free(c.rgb);
    free(list);
    return e;
}
