/* SPDX-License-Identifier: Apache-2.0 */
/* Readings of a board beside what runs on it. */
#include "device/watch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "device/sampler.h"

#define INTERVAL_NS (EW_NS_PER_S / 4) /* an epoch of seconds has enough of them */
#define RING_FRAMES 1024              /* four minutes without a drain */
#define DENSE_S     120               /* from then on one reading a second is kept */

/* What energies and means need of a reading. */
struct frame {
    int64_t t_ns;
    struct ew_sample_value power, counter;
    double cpu_load, gpu_load, temp_c; /* nan: none */
};

struct ew_watch {
    struct ew_board *board;
    struct ew_sampler *sampler;
    struct ew_sample_value *values; /* of the frame that is being taken */
    int *kept, n_kept;              /* channels */
    int64_t start_ns, kept_ns;      /* kept_ns: of the last reading that was kept */
    struct ew_energy_sum total;     /* since the start, of frames that may be forgotten */
    int64_t last_ns;
    struct frame *frames;
    int n, cap;
    struct ew_watch_sample *samples; /* [taken, n_samples) are for ew_watch_next */
    int n_samples, cap_samples, taken;
};

static bool starts(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* Enough to draw a run: single cores' loads would be most of the file.  Clocks of cores that share
 * one are alike, so that the first core's stands for them. */
static bool is_kept(const struct ew_channel *c)
{
    switch (c->quantity) {
    case EW_QUANTITY_POWER:
        return true;
    case EW_QUANTITY_LOAD:
        return strcmp(c->name, "cpu.load") == 0 || starts(c->name, "gpu");
    case EW_QUANTITY_FREQ:
        return strcmp(c->name, "cpu0.freq") == 0 || !starts(c->name, "cpu");
    case EW_QUANTITY_BYTES:
        return strcmp(c->name, "mem.used") == 0;
    case EW_QUANTITY_RATE:
        return ew_ends_with(c->name, ".read");
    default:
        return false;
    }
}

static double resolution(const struct ew_board *b)
{
    return b->total.power >= 0 ? b->channels[b->total.power].resolution : 0;
}

ew_err ew_watch_start(struct ew_board *b, struct ew_watch **out)
{
    struct ew_watch *w = calloc(1, sizeof(*w));
    *out = NULL;
    EW_CHECK(w, EW_ERR_MEMORY, "no memory for samples");
    const size_t n = (size_t)b->n_channels + 1;
    w->board = b;
    w->values = calloc(n, sizeof(*w->values));
    w->kept = calloc(n, sizeof(*w->kept));
    w->start_ns = w->last_ns = ew_clock_ns();
    ew_energy_begin(&w->total, w->start_ns, INTERVAL_NS, resolution(b));
    ew_err err = w->values && w->kept ? EW_OK : ew_fail(EW_ERR_MEMORY, "no memory for samples");
    for (int i = 0; err == EW_OK && i < b->n_channels; i++)
        if (is_kept(&b->channels[i]))
            w->kept[w->n_kept++] = i;
    if (err == EW_OK)
        err = ew_sampler_start(b, INTERVAL_NS, RING_FRAMES, &w->sampler);
    if (err != EW_OK)
        ew_watch_free(w);
    else
        *out = w;
    return err;
}

void ew_watch_stop(struct ew_watch *w)
{
    if (w)
        ew_sampler_stop(w->sampler);
}

void ew_watch_free(struct ew_watch *w)
{
    if (!w)
        return;
    ew_sampler_free(w->sampler);
    free(w->values);
    free(w->kept);
    free(w->frames);
    free(w->samples);
    free(w);
}

const struct ew_board *ew_watch_board(const struct ew_watch *w)
{
    return w->board;
}

/* ---- Frames ---------------------------------------------------------------------------------- */

static struct ew_sample_value channel(const struct ew_watch *w, int i)
{
    return i >= 0 ? w->values[i] : ew_sample_value_absent(EW_ABSENT_NO_SENSOR);
}

static struct frame make_frame(const struct ew_watch *w, int64_t t_ns)
{
    const struct ew_board *b = w->board;
    struct frame f = {.t_ns = t_ns,
                      .power = channel(w, b->total.power),
                      .counter = channel(w, b->total.energy),
                      .cpu_load = NAN,
                      .gpu_load = NAN,
                      .temp_c = NAN};
    for (int i = 0; i < b->n_channels; i++) {
        const struct ew_channel *c = &b->channels[i];
        if (!ew_sample_value_is(w->values[i]))
            continue;
        const double v = w->values[i].v;
        if (c->quantity == EW_QUANTITY_TEMP)
            f.temp_c = fmax(f.temp_c, v);
        else if (c->quantity == EW_QUANTITY_LOAD && strcmp(c->name, "cpu.load") == 0)
            f.cpu_load = v;
        else if (c->quantity == EW_QUANTITY_LOAD && starts(c->name, "gpu"))
            f.gpu_load = fmax(f.gpu_load, v);
    }
    return f;
}

/* Without memory a reading is lost, and nothing else. */
static void keep(struct ew_watch *w, const struct frame *f)
{
    if (f->t_ns - w->start_ns > DENSE_S * EW_NS_PER_S && f->t_ns - w->kept_ns < EW_NS_PER_S)
        return;
    if (ew_grow((void **)&w->samples, &w->cap_samples, w->n_samples + w->n_kept + 1,
                sizeof(*w->samples)) != EW_OK)
        return;
    w->kept_ns = f->t_ns;
    for (int i = 0; i < w->n_kept; i++) {
        const struct ew_channel *c = &w->board->channels[w->kept[i]];
        if (ew_sample_value_is(w->values[w->kept[i]]))
            w->samples[w->n_samples++] =
                (struct ew_watch_sample){.t_ns = f->t_ns,
                                         .channel = c->name,
                                         .unit = ew_quantity_unit(c->quantity),
                                         .value = w->values[w->kept[i]].v,
                                         .quality = c->quality};
    }
    if (!isnan(f->temp_c))
        w->samples[w->n_samples++] =
            (struct ew_watch_sample){f->t_ns, "temp.hottest", ew_quantity_unit(EW_QUANTITY_TEMP),
                                     f->temp_c, EW_QUALITY_DERIVED};
}

void ew_watch_drain(struct ew_watch *w)
{
    int64_t t_ns;
    while (w && ew_sampler_next(w->sampler, &t_ns, w->values)) {
        const struct frame f = make_frame(w, t_ns);
        keep(w, &f);
        ew_energy_add(&w->total, t_ns, f.power, f.counter);
        w->last_ns = t_ns;
        if (ew_grow((void **)&w->frames, &w->cap, w->n + 1, sizeof(*w->frames)) == EW_OK)
            w->frames[w->n++] = f;
    }
}

void ew_watch_forget(struct ew_watch *w, int64_t before_ns)
{
    ew_watch_drain(w);
    int first = 0; /* one from before stays: the beginning is interpolated from it */
    while (w && first + 1 < w->n && w->frames[first + 1].t_ns <= before_ns)
        first++;
    if (!first)
        return;
    memmove(w->frames, w->frames + first, (size_t)(w->n - first) * sizeof(*w->frames));
    w->n -= first;
}

bool ew_watch_next(struct ew_watch *w, struct ew_watch_sample *out)
{
    ew_watch_drain(w);
    if (!w || w->taken == w->n_samples)
        return false;
    *out = w->samples[w->taken++];
    if (w->taken == w->n_samples)
        w->taken = w->n_samples = 0;
    return true;
}

/* ---- Intervals ------------------------------------------------------------------------------- */

struct ew_energy ew_watch_energy(struct ew_watch *w, int64_t from_ns, int64_t to_ns)
{
    struct ew_energy_sum sum;
    ew_watch_drain(w);
    ew_energy_begin(&sum, from_ns, INTERVAL_NS, w ? resolution(w->board) : 0);
    ew_energy_stop(&sum, to_ns);
    for (int i = 0; w && i < w->n; i++)
        ew_energy_add(&sum, w->frames[i].t_ns, w->frames[i].power, w->frames[i].counter);
    return ew_energy_result(&sum);
}

struct ew_energy ew_watch_total(struct ew_watch *w)
{
    ew_watch_drain(w);
    struct ew_energy_sum sum = w->total;
    ew_energy_stop(&sum, w->last_ns);
    if (sum.counter.begun) { /* it was read at the end, which nobody knew then */
        sum.counter.ended = true;
        sum.counter.end_j = sum.counter.last_j;
    }
    return ew_energy_result(&sum);
}

/* The mean of a member over the frames of an interval. */
static double mean_of(const struct ew_watch *w, size_t member, int64_t from_ns, int64_t to_ns)
{
    double sum = 0;
    int n = 0;
    for (int i = 0; w && i < w->n; i++) {
        double v;
        memcpy(&v, (const char *)&w->frames[i] + member, sizeof(v));
        if (w->frames[i].t_ns < from_ns || w->frames[i].t_ns > to_ns || isnan(v))
            continue;
        sum += v;
        n++;
    }
    return n ? sum / n : (double)NAN;
}

struct ew_watch_means ew_watch_means(struct ew_watch *w, int64_t from_ns, int64_t to_ns)
{
    ew_watch_drain(w);
    return (struct ew_watch_means){mean_of(w, offsetof(struct frame, cpu_load), from_ns, to_ns),
                                   mean_of(w, offsetof(struct frame, gpu_load), from_ns, to_ns),
                                   mean_of(w, offsetof(struct frame, temp_c), from_ns, to_ns)};
}
