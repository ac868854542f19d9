/* SPDX-License-Identifier: Apache-2.0 */
/* Sampling the board beside a job. */
#include "study/watch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "device/energy.h"
#include "device/sampler.h"

#define RING_FRAMES 256

/* What is kept of a frame until the end, for the epochs. */
struct frame {
    int64_t t_ns;
    struct ew_sample_value power, counter;
    double cpu_load, gpu_load, temp_c; /* nan: none */
};

struct ew_watch {
    struct ew_board *board;
    struct ew_sampler *sampler;
    struct ew_sample_value *values;
    bool *kept; /* by channel: goes to the store */
    int64_t start_ns, interval_ns;
    struct frame *frames;
    int n, cap;
};

static bool starts(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static bool ends(const char *text, const char *with)
{
    const size_t n = strlen(text), m = strlen(with);
    return n >= m && strcmp(text + n - m, with) == 0;
}

/* Enough to draw a run: single cores, clocks and counters would be most of the file. */
static bool is_kept(const struct ew_channel *c)
{
    switch (c->quantity) {
    case EW_QUANTITY_POWER:
        return true;
    case EW_QUANTITY_LOAD:
        return strcmp(c->name, "cpu.load") == 0 || starts(c->name, "gpu");
    case EW_QUANTITY_BYTES:
        return strcmp(c->name, "mem.used") == 0;
    case EW_QUANTITY_RATE:
        return ends(c->name, ".read");
    default:
        return false;
    }
}

static void free_watch(struct ew_watch *w)
{
    ew_sampler_free(w->sampler);
    free(w->values);
    free(w->kept);
    free(w->frames);
    free(w);
}

ew_err ew_watch_start(struct ew_board *b, double interval_s, struct ew_watch **out)
{
    struct ew_watch *w = calloc(1, sizeof(*w));
    EW_CHECK(w, EW_ERR_MEMORY, "no memory for samples");
    const size_t n = (size_t)b->n_channels + 1;
    w->board = b;
    w->values = calloc(n, sizeof(*w->values));
    w->kept = calloc(n, sizeof(*w->kept));
    w->interval_ns = (int64_t)(interval_s * (double)EW_NS_PER_S);
    w->start_ns = ew_clock_ns();
    ew_err err = w->values && w->kept ? EW_OK : ew_fail(EW_ERR_MEMORY, "no memory for samples");
    for (int i = 0; err == EW_OK && i < b->n_channels; i++)
        w->kept[i] = is_kept(&b->channels[i]);
    if (err == EW_OK)
        err = ew_sampler_start(b, w->interval_ns, RING_FRAMES, &w->sampler);
    if (err != EW_OK)
        free_watch(w);
    else
        *out = w;
    return err;
}

/* ---- Frames ---------------------------------------------------------------------------------- */

static struct ew_sample_value channel(const struct ew_watch *w, int i)
{
    return i >= 0 ? w->values[i] : ew_sample_value_absent(EW_ABSENT_NO_SENSOR);
}

static ew_err keep_frame(struct ew_watch *w, int64_t t_ns)
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
    EW_TRY(ew_grow((void **)&w->frames, &w->cap, w->n + 1, sizeof(*w->frames)));
    w->frames[w->n++] = f;
    return EW_OK;
}

static ew_err put_sample(struct ew_store *s, int64_t run, const struct ew_sample_row *sample)
{
    struct ew_sample_row row;
    ew_record_clear(EW_RECORD_SAMPLE, &row);
    row.t_s = sample->t_s;
    row.channel = sample->channel;
    row.value = sample->value;
    row.unit = sample->unit;
    row.quality = sample->quality;
    return ew_store_put(s, EW_RECORD_SAMPLE, run, &row);
}

static ew_err put_frame(struct ew_watch *w, struct ew_store *s, int64_t run, int64_t t_ns)
{
    const double t_s = fmax(0, (double)(t_ns - w->start_ns) / (double)EW_NS_PER_S);
    for (int i = 0; i < w->board->n_channels; i++) {
        const struct ew_channel *c = &w->board->channels[i];
        if (!w->kept[i] || !ew_sample_value_is(w->values[i]))
            continue;
        EW_TRY(put_sample(s, run,
                          &(struct ew_sample_row){.t_s = t_s,
                                                  .channel = c->name,
                                                  .value = w->values[i].v,
                                                  .unit = ew_quantity_unit(c->quantity),
                                                  .quality = (int)c->quality}));
    }
    const double hottest = w->frames[w->n - 1].temp_c;
    if (isnan(hottest))
        return EW_OK;
    return put_sample(s, run,
                      &(struct ew_sample_row){.t_s = t_s,
                                              .channel = "temp.hottest",
                                              .value = hottest,
                                              .unit = "C",
                                              .quality = EW_QUALITY_DERIVED});
}

static ew_err drain(struct ew_watch *w, struct ew_store *s, int64_t run)
{
    int64_t t_ns;
    while (ew_sampler_next(w->sampler, &t_ns, w->values)) {
        EW_TRY(keep_frame(w, t_ns));
        EW_TRY(put_frame(w, s, run, t_ns));
    }
    return EW_OK;
}

ew_err ew_watch_put(struct ew_watch *w, struct ew_store *s, int64_t run)
{
    EW_TRY(ew_store_begin(s));
    const ew_err err = drain(w, s, run);
    const ew_err ended = ew_store_end(s, err == EW_OK);
    return err == EW_OK ? ended : err;
}

/* ---- Energy ---------------------------------------------------------------------------------- */

static struct ew_energy energy_of(const struct ew_watch *w, int64_t from_ns, int64_t to_ns)
{
    const int power = w->board->total.power;
    struct ew_energy_sum sum;
    ew_energy_begin(&sum, from_ns, w->interval_ns,
                    power >= 0 ? w->board->channels[power].resolution : 0);
    bool stopped = false;
    for (int i = 0; i < w->n; i++) {
        if (w->frames[i].t_ns > to_ns && !stopped) {
            ew_energy_stop(&sum, to_ns);
            stopped = true;
        }
        ew_energy_add(&sum, w->frames[i].t_ns, w->frames[i].power, w->frames[i].counter);
    }
    if (!stopped)
        ew_energy_stop(&sum, to_ns);
    return ew_energy_result(&sum);
}

/* The mean of a member over the frames of an interval; nan where there are none. */
static double mean_of(const struct ew_watch *w, size_t member, int64_t from_ns, int64_t to_ns)
{
    double sum = 0;
    int n = 0;
    for (int i = 0; i < w->n; i++) {
        double v;
        memcpy(&v, (const char *)&w->frames[i] + member, sizeof(v));
        if (w->frames[i].t_ns < from_ns || w->frames[i].t_ns > to_ns || isnan(v))
            continue;
        sum += v;
        n++;
    }
    return n ? sum / n : (double)NAN;
}

static void fill_epoch(const struct ew_watch *w, struct ew_epoch_row *e)
{
    const int64_t from = w->start_ns + (int64_t)(e->start_s * (double)EW_NS_PER_S);
    const int64_t to = from + (int64_t)(e->wall_s * (double)EW_NS_PER_S);
    const struct ew_energy x = energy_of(w, from, to);
    if (x.absent == EW_ABSENT_NOT && isnan(e->energy_j)) {
        e->energy_j = x.joules;
        e->energy_error_j = x.error_j;
        e->power_w = x.mean_w;
    }
    if (isnan(e->cpu_load))
        e->cpu_load = mean_of(w, offsetof(struct frame, cpu_load), from, to);
    if (isnan(e->gpu_load))
        e->gpu_load = mean_of(w, offsetof(struct frame, gpu_load), from, to);
    if (isnan(e->temp_c))
        e->temp_c = mean_of(w, offsetof(struct frame, temp_c), from, to);
}

/* Rows are read one by one by their number: a statement that reads must not run over its own
 * writes. */
static ew_err fill_epochs(struct ew_watch *w, struct ew_store *s, int64_t run)
{
    for (int64_t last = INT64_MIN;;) {
        struct ew_rows *rows;
        struct ew_epoch_row e;
        struct ew_arena a;
        EW_TRY(ew_store_query(s, &rows,
                              "SELECT * FROM epoch WHERE run = ?1 AND epoch > ?2 ORDER BY epoch "
                              "LIMIT 1",
                              "ii", run, last));
        ew_arena_init(&a);
        const bool there = ew_rows_next(rows);
        ew_err err = there ? ew_rows_read(rows, EW_RECORD_EPOCH, &a, &e) : EW_OK;
        const ew_err read = ew_rows_free(rows);
        err = err == EW_OK ? read : err;
        if (err == EW_OK && there && !isnan(e.start_s) && !isnan(e.wall_s)) {
            fill_epoch(w, &e);
            err = ew_store_put(s, EW_RECORD_EPOCH, run, &e);
        }
        ew_arena_fini(&a);
        EW_TRY(err);
        if (!there)
            return EW_OK;
        last = e.epoch;
    }
}

/* The whole run, its start and its end included. */
static ew_err put_energy(struct ew_watch *w, struct ew_store *s, int64_t run)
{
    const struct ew_energy x = energy_of(w, w->start_ns, ew_clock_ns());
    if (x.absent != EW_ABSENT_NOT)
        return EW_OK;
    struct ew_metric_row m;
    ew_record_clear(EW_RECORD_METRIC, &m);
    m.name = "run_energy_j";
    m.value = x.joules;
    m.unit = "J";
    m.source = w->board->total.rails;
    m.quality = x.counted ? EW_QUALITY_MEASURED : EW_QUALITY_DERIVED;
    m.n = x.samples;
    m.spread = x.error_j;
    m.better = EW_BETTER_LOWER;
    EW_TRY(ew_store_put(s, EW_RECORD_METRIC, run, &m));
    ew_record_clear(EW_RECORD_METRIC, &m);
    m.name = "run_power_w";
    m.value = x.mean_w;
    m.unit = "W";
    m.source = w->board->total.rails;
    m.quality = x.counted ? EW_QUALITY_MEASURED : EW_QUALITY_DERIVED;
    m.n = x.samples;
    if (x.samples > 0) {
        m.lowest = x.min_w;
        m.highest = x.peak_w;
    }
    m.better = EW_BETTER_LOWER;
    return ew_store_put(s, EW_RECORD_METRIC, run, &m);
}

ew_err ew_watch_stop(struct ew_watch *w, struct ew_store *s, int64_t run)
{
    ew_sampler_stop(w->sampler);
    ew_err err = ew_store_begin(s);
    if (err == EW_OK) {
        err = drain(w, s, run);
        if (err == EW_OK)
            err = fill_epochs(w, s, run);
        if (err == EW_OK)
            err = put_energy(w, s, run);
        const ew_err ended = ew_store_end(s, err == EW_OK);
        err = err == EW_OK ? ended : err;
    }
    free_watch(w);
    return err;
}
