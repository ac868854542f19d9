/* SPDX-License-Identifier: Apache-2.0 */
/* Power while a network runs without a pause, and of the machine at rest before. */
#include "measure/power_meter.h"

#include <stdlib.h>

#include "base/clock.h"
#include "device/energy.h"
#include "device/sampler.h"

#define INTERVAL_NS 100000000LL /* as often as the usual sensors have something new */

struct ew_power_meter {
    struct ew_board *board;
    struct ew_sampler *sampler;
    struct ew_sample_value *values;
    struct ew_energy_sum sum;
    double idle_w;
};

static struct ew_sample_value channel_value(const struct ew_power_meter *m, int channel)
{
    return channel >= 0 ? m->values[channel] : ew_sample_value_absent(EW_ABSENT_NO_SENSOR);
}

void ew_power_meter_poll(struct ew_power_meter *m)
{
    const struct ew_power_total *t = &m->board->total;
    int64_t at;
    while (ew_sampler_next(m->sampler, &at, m->values))
        ew_energy_add(&m->sum, at, channel_value(m, t->power), channel_value(m, t->energy));
}

void ew_power_meter_begin(struct ew_power_meter *m)
{
    const int power = m->board->total.power;
    ew_power_meter_poll(m);
    ew_energy_begin(&m->sum, ew_clock_ns(), INTERVAL_NS,
                    power >= 0 ? m->board->channels[power].resolution : 0);
}

/* The frame after the end is waited for, so that the end is interpolated. */
void ew_power_meter_end(struct ew_power_meter *m, struct ew_bench_power *out)
{
    ew_energy_stop(&m->sum, ew_clock_ns());
    nanosleep(&(struct timespec){.tv_nsec = INTERVAL_NS + 20000000}, NULL);
    ew_power_meter_poll(m);
    const struct ew_energy e = ew_energy_result(&m->sum);
    *out = (struct ew_bench_power){.absent =
                                       e.absent == EW_ABSENT_NOT ? NULL : ew_absent_text(e.absent),
                                   .rails = m->board->total.rails,
                                   .idle_w = m->idle_w,
                                   .mean_w = e.mean_w,
                                   .peak_w = e.peak_w > e.mean_w ? e.peak_w : e.mean_w};
}

static void rest(struct ew_power_meter *m, double seconds, const char **absent)
{
    const int64_t until = ew_clock_ns() + (int64_t)(seconds * 1e9);
    struct ew_bench_power p;
    ew_power_meter_begin(m);
    while (ew_clock_ns() < until) {
        nanosleep(&(struct timespec){.tv_nsec = EW_SAMPLER_DRAIN_NS}, NULL);
        ew_power_meter_poll(m);
    }
    ew_power_meter_end(m, &p);
    *absent = p.absent;
    m->idle_w = p.mean_w;
}

static ew_err start(struct ew_power_meter *m, const char *power_from, double idle_s,
                    const char **absent)
{
    const struct ew_board_opts o = {.power_from = power_from};
    EW_TRY(ew_board_open(&o, &m->board));
    if (m->board->total.power < 0 && m->board->total.energy < 0) {
        *absent = ew_absent_text(EW_ABSENT_NO_SENSOR);
        return EW_OK;
    }
    m->values = calloc((size_t)m->board->n_channels + 1, sizeof(*m->values));
    EW_CHECK(m->values, EW_ERR_MEMORY, "no memory for the board's channels");
    EW_TRY(ew_sampler_start(m->board, INTERVAL_NS, ew_sampler_frames(INTERVAL_NS), &m->sampler));
    rest(m, idle_s, absent);
    return EW_OK;
}

ew_err ew_power_meter_open(const char *power_from, double idle_s, struct ew_power_meter **out,
                           const char **absent)
{
    *out = NULL;
    *absent = NULL;
    struct ew_power_meter *m = calloc(1, sizeof(*m));
    EW_CHECK(m, EW_ERR_MEMORY, "no memory");
    const ew_err e = start(m, power_from, idle_s, absent);
    if (e != EW_OK || *absent)
        ew_power_meter_close(m);
    else
        *out = m;
    return e;
}

void ew_power_meter_close(struct ew_power_meter *m)
{
    if (!m)
        return;
    ew_sampler_free(m->sampler);
    ew_board_close(m->board);
    free(m->values);
    free(m);
}
