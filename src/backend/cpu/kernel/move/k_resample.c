/* SPDX-License-Identifier: Apache-2.0 */
/* Separable resampling of channels-last images: an output is a weighted sum of input pixels, given
 * by tables of taps; lanes are channels.  If every output is one input, pixels are copied. */
#include "backend/cpu/kernel/common/vec.h"

/* Number of input pixels. */
static int64_t pixels_of(const struct ew_resample *s)
{
    return s->axis[0].in * s->axis[1].in * s->axis[2].in;
}

int64_t EW_K(resample_tiles)(const struct ew_resample *s)
{
    return s->images * s->axis[0].out * s->axis[1].out;
}

int64_t EW_K(resample_back_tiles)(const struct ew_resample *s)
{
    return s->images * div_up(s->channels, EW_RESAMPLE_BLOCK);
}

/* y (+)= weight * resampled input line; `first` stores instead of accumulating. */
INLINE void add_line(const struct ew_resample *s, const float *x, float weight, bool first,
                     float *y)
{
    const struct ew_resample_axis *a = &s->axis[2];
    for (int64_t o = 0; o < a->out; o++, y += s->channels) {
        const int32_t *at = a->at + o * a->taps;
        const float *w = a->weight + o * a->taps;
        for (int64_t c = 0; c < s->channels; c += LANES) {
            const int64_t n = s->channels - c;
            vec v = first ? (vec){0} : load_n(y + c, n);
            for (int64_t t = 0; t < a->taps; t++)
                v += load_n(x + at[t] * s->channels + c, n) * (w[t] * weight);
            store_n(y + c, v, n);
        }
    }
}

static void copy_line(const struct ew_resample *s, const float *x, float *y)
{
    for (int64_t o = 0; o < s->axis[2].out; o++)
        copy(y + o * s->channels, x + s->axis[2].at[o] * s->channels, s->channels);
}

void EW_K(resample_run)(const struct ew_resample *s, int64_t begin, int64_t end)
{
    const struct ew_resample_axis *z = &s->axis[0], *h = &s->axis[1];
    for (int64_t tile = begin; tile < end; tile++) {
        const int64_t row = tile % h->out, slice = tile / h->out % z->out;
        const float *x = s->x + tile / h->out / z->out * pixels_of(s) * s->channels;
        float *y = s->y + tile * s->axis[2].out * s->channels;
        bool first = true;
        for (int64_t i = 0; i < z->taps * h->taps; i++) {
            const int64_t zt = slice * z->taps + i / h->taps, ht = row * h->taps + i % h->taps;
            const float weight = z->weight[zt] * h->weight[ht];
            const float *line = x + (z->at[zt] * h->in + h->at[ht]) * s->axis[2].in * s->channels;
            if (s->copies)
                copy_line(s, line, y);
            else if (first || weight < 0 || weight > 0)
                add_line(s, line, weight, first, y);
            first = false;
        }
    }
}

/* ---- Backward: every output scatters to its inputs ---- */

INLINE void add_pixel(float *dx, const float *dy, float weight, int64_t channels)
{
    for (int64_t c = 0; c < channels; c += LANES) {
        const int64_t n = channels - c;
        store_n(dx + c, load_n(dx + c, n) + load_n(dy + c, n) * weight, n);
    }
}

/* One row of outputs, n channels. */
static void back_row(const struct ew_resample *s, int64_t slice, int64_t row, const float *dy,
                     float *dx, int64_t n)
{
    const struct ew_resample_axis *z = &s->axis[0], *h = &s->axis[1], *w = &s->axis[2];
    for (int64_t i = 0; i < z->taps * h->taps; i++) {
        const int64_t zt = slice * z->taps + i / h->taps, ht = row * h->taps + i % h->taps;
        const float weight = z->weight[zt] * h->weight[ht];
        float *line = dx + (z->at[zt] * h->in + h->at[ht]) * w->in * s->channels;
        for (int64_t j = 0; j < w->out * w->taps; j++)
            add_pixel(line + w->at[j] * s->channels, dy + j / w->taps * s->channels,
                      weight * w->weight[j], n);
    }
}

void EW_K(resample_back)(const struct ew_resample *s, int64_t begin, int64_t end)
{
    const int64_t blocks = div_up(s->channels, EW_RESAMPLE_BLOCK), in = pixels_of(s);
    const int64_t rows = s->axis[0].out * s->axis[1].out, wide = s->axis[2].out;
    for (int64_t tile = begin; tile < end; tile++) {
        const int64_t image = tile / blocks, c = tile % blocks * EW_RESAMPLE_BLOCK;
        const int64_t n = min_i64(EW_RESAMPLE_BLOCK, s->channels - c);
        float *dx = s->dx + image * in * s->channels + c;
        const float *dy = s->dy + image * rows * wide * s->channels + c;
        for (int64_t i = 0; !s->add && i < in; i++)
            clear(dx + i * s->channels, n);
        for (int64_t r = 0; r < rows; r++)
            back_row(s, r / s->axis[1].out, r % s->axis[1].out, dy + r * wide * s->channels, dx, n);
    }
}
