/* SPDX-License-Identifier: Apache-2.0 */
/* The board's sensors for programs (edgewise_device.h): a sampler of its own, the last reading of
 * every channel, and the energy of one interval. */
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/num.h"
#include "base/sized.h"
#include "device/board.h"
#include "device/energy.h"
#include "device/sampler.h"
#include "edgewise_device.h"

#define INTERVAL_NS 100000000LL /* as often as the usual sensors have something new */
#define RING_FRAMES 1024        /* readings of more than a minute */

struct ew_meter {
    struct ew_board *board;
    struct ew_sampler *sampler;
    struct ew_sample_value *values; /* of the last frame */
    struct ew_energy_sum sum;
    bool begun;
};

static struct ew_sample_value value_of(const struct ew_meter *m, int channel)
{
    return channel >= 0 ? m->values[channel] : ew_sample_value_absent(EW_ABSENT_NO_SENSOR);
}

EW_API void ew_meter_poll(struct ew_meter *m)
{
    EW_C_LOCALE;
    if (!m)
        return;
    const struct ew_power_total *t = &m->board->total;
    int64_t at;
    while (ew_sampler_next(m->sampler, &at, m->values))
        if (m->begun)
            ew_energy_add(&m->sum, at, value_of(m, t->power), value_of(m, t->energy));
}

static ew_err start(struct ew_meter *m, const struct ew_meter_opts *o)
{
    const struct ew_board_opts board = {.root = o->root, .power_from = o->power_from};
    EW_TRY(ew_board_open(&board, &m->board));
    m->values = calloc((size_t)m->board->n_channels + 1, sizeof(*m->values));
    EW_CHECK(m->values, EW_ERR_MEMORY, "no memory for the board's channels");
    for (int i = 0; i < m->board->n_channels; i++)
        m->values[i] = ew_sample_value_absent(EW_ABSENT_FIRST);
    return ew_sampler_start(m->board, INTERVAL_NS, RING_FRAMES, &m->sampler);
}

EW_API int ew_meter_has_power(const struct ew_meter *m)
{
    if (!m)
        return 0;
    return m->board->total.power >= 0 || m->board->total.energy >= 0;
}

EW_API ew_err ew_meter_open(const struct ew_meter_opts *opts, struct ew_meter **out)
{
    EW_C_LOCALE;
    EW_NEED(out);
    *out = NULL;
    struct ew_meter_opts o;
    EW_TRY(ew_sized_import(opts, &o, sizeof(o)));
    struct ew_meter *m = calloc(1, sizeof(*m));
    EW_CHECK(m, EW_ERR_MEMORY, "no memory for a meter");
    const ew_err e = start(m, &o);
    if (e != EW_OK)
        ew_meter_close(m);
    else
        *out = m;
    return e;
}

EW_API void ew_meter_close(struct ew_meter *m)
{
    if (!m)
        return;
    ew_sampler_free(m->sampler);
    ew_board_close(m->board);
    free(m->values);
    free(m);
}

EW_API int ew_meter_channels(const struct ew_meter *m)
{
    if (!m)
        return 0;
    return m->board->n_channels;
}

EW_API ew_err ew_meter_read(struct ew_meter *m, int i, struct ew_meter_channel *out)
{
    EW_C_LOCALE;
    EW_NEED(m);
    EW_NEED(out);
    EW_CHECK(i >= 0 && i < m->board->n_channels, EW_ERR_ARG, "there is no channel %d of %d", i,
             m->board->n_channels);
    ew_meter_poll(m);
    const struct ew_channel *c = &m->board->channels[i];
    const struct ew_sample_value v = m->values[i];
    *out =
        (struct ew_meter_channel){.name = c->name,
                                  .unit = ew_quantity_unit(c->quantity),
                                  .source = c->source,
                                  .absent = ew_sample_value_is(v) ? NULL : ew_absent_text(v.absent),
                                  .value = v.v};
    return EW_OK;
}

EW_API void ew_meter_begin(struct ew_meter *m)
{
    EW_C_LOCALE;
    if (!m)
        return;
    const int power = m->board->total.power;
    ew_meter_poll(m); /* what is from before the beginning */
    m->begun = true;
    ew_energy_begin(&m->sum, ew_clock_ns(), INTERVAL_NS,
                    power >= 0 ? m->board->channels[power].resolution : 0);
}

/* The reading after the end is waited for, so that the end is interpolated. */
EW_API ew_err ew_meter_end(struct ew_meter *m, struct ew_meter_energy *out)
{
    EW_C_LOCALE;
    EW_NEED(m);
    EW_NEED(out);
    EW_TRY(ew_sized_check(out));
    EW_CHECK(m->begun, EW_ERR_ARG, "no interval was begun");
    ew_energy_stop(&m->sum, ew_clock_ns());
    nanosleep(&(struct timespec){.tv_nsec = INTERVAL_NS + 20000000}, NULL);
    ew_meter_poll(m);
    m->begun = false;
    const struct ew_power_total *t = &m->board->total;
    const struct ew_energy e = ew_energy_result(&m->sum);
    const struct ew_meter_energy result = {
        .absent = !ew_meter_has_power(m)      ? ew_absent_text(EW_ABSENT_NO_SENSOR)
                  : e.absent == EW_ABSENT_NOT ? NULL
                                              : ew_absent_text(e.absent),
        .rails = t->rails ? t->rails : "",
        .seconds = e.seconds,
        .joules = e.joules,
        .error_j = e.error_j,
        .mean_w = e.mean_w,
        .min_w = e.min_w,
        .peak_w = e.peak_w > e.mean_w ? e.peak_w : e.mean_w,
        .readings = e.samples};
    ew_sized_export(&result, sizeof(result), out);
    return EW_OK;
}
