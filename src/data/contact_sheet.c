/* SPDX-License-Identifier: Apache-2.0 */
/* The contact sheet: a row of samples per class, as one PNG file. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "data/image_file.h"
#include "data/image_resize.h"
#include "data/write_set.h"

#define MAX_ROWS 20
#define MIN_CELL 64
#define MAX_CELL 160
#define GAP      2
#define GREY     128

struct sheet {
    bool by_class; /* else fills row after row */
    int64_t cell, rows, columns, h, w;
    uint8_t *pixels; /* [h, w, 3] */
    int64_t *filled; /* [rows] */
};

/* Scales the sample into its cell, keeping its aspect ratio, by integer factors when enlarging. */
static ew_err paste(struct sheet *t, const struct ew_sample *s, int64_t row, int64_t column,
                    struct ew_resizer *z)
{
    const int64_t longer = ew_max_i64(s->h, s->w);
    const int64_t factor = longer <= t->cell ? t->cell / longer : 0;
    int64_t h = s->h * factor, w = s->w * factor;
    if (factor == 0) {
        h = ew_max_i64(s->h * t->cell / longer, 1);
        w = ew_max_i64(s->w * t->cell / longer, 1);
    }
    EW_CLEANUP(ew_free_ptr) uint8_t *small = malloc((size_t)(h * w * s->c));
    EW_CHECK(small, EW_ERR_MEMORY, "no memory for a sheet");
    if (factor == 0)
        EW_TRY(ew_resizer_run_sample(z, s, h, w, small));
    const int64_t y0 = GAP + row * (t->cell + GAP) + (t->cell - h) / 2;
    const int64_t x0 = GAP + column * (t->cell + GAP) + (t->cell - w) / 2;
    for (int64_t y = 0; y < h; y++)
        for (int64_t x = 0; x < w; x++)
            for (int64_t c = 0; c < 3; c++) {
                const int64_t k = s->c == 3 ? c : 0;
                t->pixels[((y0 + y) * t->w + x0 + x) * 3 + c] =
                    factor ? s->pixels[y / factor * s->sy + x / factor * s->sx + k * s->sc]
                           : small[(y * w + x) * s->c + k];
            }
    return EW_OK;
}

/* Places samples from all over the split until every row is full. */
static ew_err fill(const struct ew_dataset *d, enum ew_split split, struct sheet *t)
{
    const int64_t n = ew_dataset_info(d)->count[split];
    struct ew_sample s = {0};
    struct ew_resizer z = {0};
    ew_err err = EW_OK;
    int64_t left = t->rows * t->columns;
    /* A stride that shares no factor with n visits every sample once. */
    int64_t stride = ew_max_i64(n * 618 / 1000, 1);
    for (int64_t a = n, b = stride; b; stride++, a = n, b = stride) {
        while (b) {
            const int64_t r = a % b;
            a = b;
            b = r;
        }
        if (a == 1)
            break;
    }
    for (int64_t i = 0, at = 0; i < n && left > 0 && err == EW_OK; i++, at = (at + stride) % n) {
        if (ew_dataset_read(d, split, at, &s) != EW_OK)
            continue;
        const int64_t row = t->by_class ? s.label : (t->rows * t->columns - left) / t->columns;
        if (t->filled[row] == t->columns)
            continue;
        err = paste(t, &s, row, t->filled[row]++, &z);
        left--;
    }
    ew_resizer_fini(&z);
    ew_sample_fini(&s);
    return err;
}

ew_err ew_dataset_sheet(const struct ew_dataset *d, enum ew_split split, int columns,
                        const char *path)
{
    const struct ew_dataset_info *i = ew_dataset_info(d);
    EW_CHECK(i->count[split] > 0, EW_ERR_NOT_FOUND, "%s: there are no %s samples", i->name,
             ew_split_name(split));
    const int64_t side = ew_max_i64(i->h, i->w);
    const int64_t grow = side > 0 ? (MIN_CELL + side - 1) / side : 1;
    const int64_t n = i->count[split];
    struct sheet t = {.by_class = split != EW_SPLIT_UNLABELLED && i->classes <= MAX_ROWS,
                      .columns = ew_min_i64(columns, n)};
    t.rows = t.by_class ? i->classes : ew_min_i64((n + t.columns - 1) / t.columns, MAX_ROWS);
    t.cell = side ? ew_min_i64(side * grow, MAX_CELL) : MAX_CELL;
    t.h = GAP + t.rows * (t.cell + GAP);
    t.w = GAP + t.columns * (t.cell + GAP);
    t.pixels = malloc((size_t)(t.h * t.w * 3));
    t.filled = calloc((size_t)t.rows, sizeof(*t.filled));
    ew_err err = EW_OK;
    if (t.pixels && t.filled) {
        memset(t.pixels, GREY, (size_t)(t.h * t.w * 3));
        err = fill(d, split, &t);
    } else {
        err = ew_fail(EW_ERR_MEMORY, "no memory for a sheet of %lldx%lld", (long long)t.h,
                      (long long)t.w);
    }
    if (err == EW_OK)
        err = ew_image_write_png(path, t.pixels, (const int64_t[3]){t.h, t.w, 3});
    free(t.pixels);
    free(t.filled);
    return err;
}
