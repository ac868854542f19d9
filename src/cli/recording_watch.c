/* SPDX-License-Identifier: Apache-2.0 */
/* Sensors' readings as samples of a run. */
#include "cli/recording_watch.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "device/sampler.h"

#define INTERVAL_NS (EW_NS_PER_S / 4)
#define DENSE_S     120 /* from then on one reading a second is kept */
#define FRAMES      64

struct ew_recording_watch {
    struct ew_recording *rec;
    struct ew_board *board;
    struct ew_sampler *sampler;
    struct ew_sample_value *values;
    int *channels; /* that are kept */
    int n_channels;
    double kept_s; /* when the last reading was kept */
    struct ew_sample_row *rows;
    int n_rows, cap_rows;
};

/* The whole of a thing (cpu.load), not its parts (cpu0.load): those are many and say little. */
static bool is_wanted(const struct ew_channel *c)
{
    const size_t letters = strcspn(c->name, "0123456789");
    const bool part = c->name[letters] && strchr(c->name + letters, '.');
    return c->quantity == EW_QUANTITY_POWER || c->quantity == EW_QUANTITY_TEMP ||
           (c->quantity == EW_QUANTITY_LOAD && !part);
}

static ew_err start(struct ew_recording_watch *w)
{
    EW_TRY(ew_board_open(&(struct ew_board_opts){.root = NULL}, &w->board));
    const size_t n = (size_t)w->board->n_channels + 1;
    w->values = calloc(n, sizeof(*w->values));
    w->channels = calloc(n, sizeof(*w->channels));
    EW_CHECK(w->values && w->channels, EW_ERR_MEMORY, "no memory for samples");
    for (int i = 0; i < w->board->n_channels; i++)
        if (is_wanted(&w->board->channels[i]))
            w->channels[w->n_channels++] = i;
    return w->n_channels ? ew_sampler_start(w->board, INTERVAL_NS, FRAMES, &w->sampler) : EW_OK;
}

ew_err ew_recording_watch_new(struct ew_recording *r, struct ew_recording_watch **out)
{
    *out = NULL;
    if (!r->store)
        return EW_OK;
    struct ew_recording_watch *w = calloc(1, sizeof(*w));
    EW_CHECK(w, EW_ERR_MEMORY, "no memory for samples");
    w->rec = r;
    w->kept_s = -1;
    const ew_err e = start(w);
    if (e != EW_OK || !w->sampler) {
        ew_recording_watch_free(w);
        return e;
    }
    *out = w;
    return EW_OK;
}

static ew_err keep(struct ew_recording_watch *w, double t_s)
{
    static const char *const units[] = {
#define EW_QUANTITY_UNIT(id, name, unit) unit,
        EW_QUANTITY_MAP(EW_QUANTITY_UNIT)
#undef EW_QUANTITY_UNIT
    };
    EW_TRY(ew_grow((void **)&w->rows, &w->cap_rows, w->n_rows + w->n_channels, sizeof(*w->rows)));
    for (int i = 0; i < w->n_channels; i++) {
        const struct ew_channel *c = &w->board->channels[w->channels[i]];
        const struct ew_sample_value *v = &w->values[w->channels[i]];
        if (v->absent == EW_ABSENT_NOT)
            w->rows[w->n_rows++] = (struct ew_sample_row){.t_s = t_s,
                                                          .channel = c->name,
                                                          .value = v->v,
                                                          .unit = units[c->quantity],
                                                          .quality = (int)c->quality};
    }
    return EW_OK;
}

ew_err ew_recording_watch_drain(struct ew_recording_watch *w)
{
    int64_t t;
    while (w && ew_sampler_next(w->sampler, &t, w->values)) {
        const double t_s = (double)(t - w->rec->start_ns) / (double)EW_NS_PER_S;
        if (t_s > DENSE_S && t_s - w->kept_s < 1)
            continue;
        w->kept_s = t_s;
        EW_TRY(keep(w, t_s));
    }
    return EW_OK;
}

ew_err ew_recording_watch_flush(struct ew_recording_watch *w)
{
    EW_TRY(ew_recording_watch_drain(w));
    if (!w || !w->n_rows)
        return EW_OK;
    EW_TRY(ew_store_begin(w->rec->store));
    ew_err e = EW_OK;
    for (int i = 0; e == EW_OK && i < w->n_rows; i++)
        e = ew_recording_put(w->rec, EW_RECORD_SAMPLE, &w->rows[i]);
    const ew_err ended = ew_store_end(w->rec->store, e == EW_OK);
    w->n_rows = 0;
    return e == EW_OK ? ended : e;
}

void ew_recording_watch_free(struct ew_recording_watch *w)
{
    if (!w)
        return;
    ew_sampler_free(w->sampler);
    if (w->board)
        ew_board_close(w->board);
    free(w->values);
    free(w->channels);
    free(w->rows);
    free(w);
}
