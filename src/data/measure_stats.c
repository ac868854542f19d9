/* SPDX-License-Identifier: Apache-2.0 */
/* Mean and standard deviation of a data set's pixels. */
#include <math.h>

#include "base/log.h"
#include "base/mem.h"
#include "data/data.h"

#define NAMED 10 /* unreadable samples that are named */

/* Exact sums: 64 bits hold the squares of 2^48 bytes. */
struct sums {
    uint64_t n, sum[EW_SAMPLE_CHANNELS], square[EW_SAMPLE_CHANNELS];
};

static void add_channel(const struct ew_sample *s, int64_t c, struct sums *t)
{
    uint64_t sum = 0, square = 0;
    for (int64_t y = 0; y < s->h; y++) {
        const uint8_t *p = s->pixels + y * s->sy + c * s->sc;
        for (int64_t x = 0; x < s->w; x++, p += s->sx) {
            sum += *p;
            square += (uint64_t)*p * *p;
        }
    }
    t->sum[c] += sum;
    t->square[c] += square;
}

ew_err ew_dataset_measure(const struct ew_dataset *d, enum ew_split split, int64_t limit,
                          struct ew_dataset_stats *out)
{
    const int64_t all = ew_dataset_info(d)->count[split];
    const int64_t n = limit > 0 ? ew_min_i64(limit, all) : all;
    const int64_t channels = ew_dataset_info(d)->c;
    struct ew_sample s = {0};
    struct sums t = {0};
    *out = (struct ew_dataset_stats){0};
    for (int64_t i = 0; i < n; i++) {
        const ew_err err = ew_dataset_read(d, split, i * all / n, &s);
        if (err != EW_OK && !ew_sample_is_bad(err)) {
            ew_sample_fini(&s);
            return err;
        }
        if (err != EW_OK) {
            if (out->bad++ < NAMED)
                EW_WARN("%s", ew_error_message());
            continue;
        }
        out->samples++;
        t.n += (uint64_t)(s.h * s.w);
        for (int64_t c = 0; c < channels; c++)
            add_channel(&s, c, &t);
    }
    ew_sample_fini(&s);
    for (int64_t c = 0; c < channels && t.n; c++) {
        const double mean = (double)t.sum[c] / (double)t.n;
        out->mean[c] = mean / 255;
        out->std[c] = sqrt(fmax((double)t.square[c] / (double)t.n - mean * mean, 0)) / 255;
    }
    return EW_OK;
}
