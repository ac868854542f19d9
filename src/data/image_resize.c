/* SPDX-License-Identifier: Apache-2.0 */
/* Resizing, first along the rows, then along the columns. */
#include "data/image_resize.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"

/* Which pixels make one of the result's, and their weights. */
struct taps {
    int64_t width;       /* weights kept for each */
    const int32_t *at;   /* [n][2]: first pixel, how many */
    const float *weight; /* [n][width] */
};

struct axis {
    double start, length;
    int64_t in, out;
};

static ew_err make_taps(const struct axis *x, struct ew_bytes *room, struct taps *t)
{
    const double step = x->length / (double)x->out, reach = fmax(step, 1);
    t->width = 2 * (int64_t)ceil(reach) + 1;
    const size_t head = ew_align_up((size_t)x->out * 2 * sizeof(int32_t));
    EW_TRY(ew_bytes_need(room, head + (size_t)(x->out * t->width) * sizeof(float)));
    int32_t *at = (int32_t *)(void *)room->at;
    float *weight = (float *)(void *)(room->at + head);
    t->at = at;
    t->weight = weight;
    for (int64_t i = 0; i < x->out; i++, at += 2, weight += t->width) {
        const double middle = x->start + ((double)i + 0.5) * step - 0.5;
        int64_t first = ew_max_i64((int64_t)ceil(middle - reach), 0);
        first = ew_min_i64(first, x->in - 1);
        const int64_t last =
            ew_max_i64(ew_min_i64((int64_t)floor(middle + reach), x->in - 1), first);
        double sum = 0;
        for (int64_t k = first; k <= last; k++)
            sum += fmax(1 - fabs((double)k - middle) / reach, 0);
        for (int64_t k = first; k <= last; k++)
            weight[k - first] = sum > 0
                                    ? (float)(fmax(1 - fabs((double)k - middle) / reach, 0) / sum)
                                    : 1 / (float)(last - first + 1);
        at[0] = (int32_t)first;
        at[1] = (int32_t)(last - first + 1);
    }
    return EW_OK;
}

static void shrink_row(const struct ew_resize *r, const struct taps *t, int64_t y, float *out)
{
    const uint8_t *row = r->in + y * r->sy;
    for (int64_t x = 0; x < r->w; x++)
        for (int64_t c = 0; c < r->c; c++) {
            const float *weight = t->weight + x * t->width;
            const uint8_t *p = row + t->at[2 * x] * r->sx + c * r->sc;
            float sum = 0;
            for (int32_t k = 0; k < t->at[2 * x + 1]; k++, p += r->sx)
                sum += weight[k] * (float)*p;
            *out++ = sum;
        }
}

/* Rows [first, first + n) weighed into one. */
static void join_rows(const float *rows, const float *weight, int32_t n, int64_t length,
                      uint8_t *out)
{
    for (int64_t i = 0; i < length; i++) {
        float sum = 0.5f;
        for (int32_t k = 0; k < n; k++)
            sum += weight[k] * rows[k * length + i];
        out[i] = (uint8_t)(sum < 0 ? 0 : sum > 255 ? 255 : sum);
    }
}

ew_err ew_resizer_run(struct ew_resizer *z, const struct ew_resize *r, uint8_t *out)
{
    struct taps ty, tx;
    const int64_t length = r->w * r->c;
    EW_TRY(make_taps(&(struct axis){r->y[0], r->y[1], r->in_h, r->h}, &z->taps_y, &ty));
    EW_TRY(make_taps(&(struct axis){r->x[0], r->x[1], r->in_w, r->w}, &z->taps_x, &tx));
    const int64_t top = ty.at[0];
    const int64_t end = ty.at[2 * (r->h - 1)] + ty.at[2 * (r->h - 1) + 1];
    EW_TRY(ew_bytes_need(&z->rows, (size_t)((end - top) * length) * sizeof(float)));
    float *rows = (float *)(void *)z->rows.at;
    for (int64_t y = top; y < end; y++)
        shrink_row(r, &tx, y, rows + (y - top) * length);
    for (int64_t y = 0; y < r->h; y++)
        join_rows(rows + (ty.at[2 * y] - top) * length, ty.weight + y * ty.width, ty.at[2 * y + 1],
                  length, out + y * length);
    return EW_OK;
}

void ew_resizer_fini(struct ew_resizer *z)
{
    free(z->rows.at);
    free(z->taps_y.at);
    free(z->taps_x.at);
}
