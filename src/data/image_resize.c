/* SPDX-License-Identifier: Apache-2.0 */
/* Separable resizing: source rows are accumulated into one, then its pixels into output pixels.
 * Compiled at -O3 for vectorisation. */
#include "data/image_resize.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"

/* Source pixels of each output pixel, and their weights. */
struct taps {
    int64_t width;       /* stride of `weight` */
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

/* Source columns that the result needs. */
struct columns {
    int64_t first, n;
};

/* out[i] (+)= weight * row[i], over columns and channels. */
static void add_row(const struct ew_resize *r, const struct columns *x, const uint8_t *row,
                    float weight, bool fresh, float *restrict out)
{
    const int64_t n = x->n * r->c;
    row += x->first * r->sx;
    if (r->sx != r->c || (r->c > 1 && r->sc != 1)) { /* planar, or column-major */
        for (int64_t i = 0; i < x->n; i++)
            for (int64_t c = 0; c < r->c; c++) {
                const float v = weight * (float)row[i * r->sx + c * r->sc];
                out[i * r->c + c] = fresh ? v : out[i * r->c + c] + v;
            }
    } else if (fresh) {
        for (int64_t i = 0; i < n; i++)
            out[i] = weight * (float)row[i];
    } else {
        for (int64_t i = 0; i < n; i++)
            out[i] += weight * (float)row[i];
    }
}

static uint8_t to_byte(float v)
{
    return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
}

/* Horizontal pass: output pixels of one row. */
static void mix_columns(const struct ew_resize *r, const struct taps *t, int64_t first,
                        const float *row, uint8_t *out)
{
    for (int64_t x = 0; x < r->w; x++) {
        const float *weight = t->weight + x * t->width;
        const float *p = row + (t->at[2 * x] - first) * r->c;
        const int32_t n = t->at[2 * x + 1];
        float sum[3] = {0.5f, 0.5f, 0.5f};
        if (r->c == 3) {
            for (int32_t k = 0; k < n; k++, p += 3) {
                sum[0] += weight[k] * p[0];
                sum[1] += weight[k] * p[1];
                sum[2] += weight[k] * p[2];
            }
            out[0] = to_byte(sum[0]);
            out[1] = to_byte(sum[1]);
            out[2] = to_byte(sum[2]);
        } else {
            for (int32_t k = 0; k < n; k++)
                sum[0] += weight[k] * p[k];
            out[0] = to_byte(sum[0]);
        }
        out += r->c;
    }
}

ew_err ew_resizer_run(struct ew_resizer *z, const struct ew_resize *r, uint8_t *out)
{
    struct taps ty, tx;
    EW_ASSERT(r->c == 1 || r->c == 3);
    EW_TRY(make_taps(&(struct axis){r->y[0], r->y[1], r->in_h, r->h}, &z->taps_y, &ty));
    EW_TRY(make_taps(&(struct axis){r->x[0], r->x[1], r->in_w, r->w}, &z->taps_x, &tx));
    const int32_t *last = tx.at + 2 * (r->w - 1);
    const struct columns x = {tx.at[0], last[0] + last[1] - tx.at[0]};
    EW_TRY(ew_bytes_need(&z->row, (size_t)(x.n * r->c) * sizeof(float)));
    float *row = (float *)(void *)z->row.at;
    for (int64_t y = 0; y < r->h; y++, out += r->w * r->c) {
        for (int32_t k = 0; k < ty.at[2 * y + 1]; k++)
            add_row(r, &x, r->in + (ty.at[2 * y] + k) * r->sy, ty.weight[y * ty.width + k], k == 0,
                    row);
        mix_columns(r, &tx, x.first, row, out);
    }
    return EW_OK;
}

ew_err ew_resizer_run_sample(struct ew_resizer *z, const struct ew_sample *s, int64_t h, int64_t w,
                             uint8_t *out)
{
    const struct ew_resize r = {.in = s->pixels,
                                .in_h = s->h,
                                .in_w = s->w,
                                .sy = s->sy,
                                .sx = s->sx,
                                .sc = s->sc,
                                .y = {0, (double)s->h},
                                .x = {0, (double)s->w},
                                .h = h,
                                .w = w,
                                .c = s->c};
    return ew_resizer_run(z, &r, out);
}

void ew_resizer_fini(struct ew_resizer *z)
{
    free(z->row.at);
    free(z->taps_y.at);
    free(z->taps_x.at);
}
