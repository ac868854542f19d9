/* SPDX-License-Identifier: Apache-2.0 */
/* Power while a network runs continuously, and idle power before it. */
#include "measure/power_meter.h"

#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "device/sample.h"
#include "device/sampler.h"
#include "edgewise_device.h"

struct ew_power_meter {
    struct ew_meter *meter;
    double idle_w;
};

void ew_power_meter_begin(struct ew_power_meter *m)
{
    ew_meter_begin(m->meter);
}

void ew_power_meter_poll(struct ew_power_meter *m)
{
    ew_meter_poll(m->meter);
}

ew_err ew_power_meter_end(struct ew_power_meter *m, struct ew_bench_power *out)
{
    struct ew_meter_energy e = {.size = sizeof(e)};
    EW_TRY(ew_meter_end(m->meter, &e));
    *out = (struct ew_bench_power){.absent = e.absent,
                                   .rails = e.rails,
                                   .idle_w = m->idle_w,
                                   .mean_w = e.mean_w,
                                   .peak_w = e.peak_w};
    return EW_OK;
}

static ew_err rest(struct ew_power_meter *m, double seconds, const char **absent)
{
    struct ew_bench_power p;
    const int64_t until = ew_clock_ns() + (int64_t)(seconds * 1e9);
    ew_power_meter_begin(m);
    while (ew_clock_ns() < until) {
        nanosleep(&(struct timespec){.tv_nsec = EW_SAMPLER_DRAIN_NS}, NULL);
        ew_power_meter_poll(m);
    }
    EW_TRY(ew_power_meter_end(m, &p));
    *absent = p.absent;
    m->idle_w = p.mean_w;
    return EW_OK;
}

ew_err ew_power_meter_open(const char *power_from, double idle_s, struct ew_power_meter **out,
                           const char **absent)
{
    const struct ew_meter_opts o = {.size = sizeof(o), .power_from = power_from};
    *out = NULL;
    *absent = NULL;
    struct ew_power_meter *m = calloc(1, sizeof(*m));
    EW_CHECK(m, EW_ERR_MEMORY, "no memory");
    ew_err e = ew_meter_open(&o, &m->meter);
    if (e == EW_OK && !ew_meter_has_power(m->meter))
        *absent = ew_absent_text(EW_ABSENT_NO_SENSOR);
    else if (e == EW_OK)
        e = rest(m, idle_s, absent);
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
    ew_meter_close(m->meter);
    free(m);
}
