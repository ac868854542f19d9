/* SPDX-License-Identifier: Apache-2.0 */
/* NVIDIA graphics cards through NVML: power, energy counter, load, memory, clocks, temperature,
 * throttling.  On Jetsons NVML supports little of it; their GPU is in sensor_gpu and
 * sensor_ina3221. */
#include "base/clock.h"
#include "device/nvml.h"

/* Reasons that lower the clock: power cap, slow-down, heat, power brake. */
#define HELD_BACK (0x4u | 0x8u | 0x20u | 0x40u | 0x80u)

static const struct row {
    enum ew_nvml_what what;
    const char *before, *after; /* channel name: before + "gpu0" + after */
    enum ew_quantity quantity;
    double scale, resolution;
    bool slow; /* read once a second: a query costs 0.1 ms of CPU */
    bool gaps; /* absent in between: a query costs 4 ms */
} rows[] = {
    {EW_NVML_POWER, "power.", "", EW_QUANTITY_POWER, 1e-3, 1e-3, false, false},
    {EW_NVML_ENERGY, "energy.", "", EW_QUANTITY_ENERGY, 1e-3, 1e-3, true, true},
    {EW_NVML_LOAD, "", ".load", EW_QUANTITY_LOAD, 1, 1, true, false},
    {EW_NVML_MEM_LOAD, "", ".memory_load", EW_QUANTITY_LOAD, 1, 1, true, false},
    {EW_NVML_MEM_USED, "", ".memory_used", EW_QUANTITY_BYTES, 1, 1, true, false},
    {EW_NVML_MEM_TOTAL, "", ".memory_total", EW_QUANTITY_BYTES, 1, 1, true, false},
    {EW_NVML_SM_MHZ, "", ".freq", EW_QUANTITY_FREQ, 1, 1, true, false},
    {EW_NVML_MEM_MHZ, "", ".memory_freq", EW_QUANTITY_FREQ, 1, 1, true, false},
    {EW_NVML_TEMP, "temp.", "", EW_QUANTITY_TEMP, 1, 1, true, false},
    {EW_NVML_THROTTLE, "throttle.", "", EW_QUANTITY_STATE, 1, 1, true, false},
};

#define SLOW_NS EW_NS_PER_S

struct state {
    struct ew_nvml *nvml;
    int64_t slow_at_ns; /* next reading of the slow ones */
    struct ew_sample_value last[EW_NVML_GPUS][EW_COUNT(rows)];
    int channel[EW_NVML_GPUS][EW_COUNT(rows)]; /* -1: not supported by this card */
};

static ew_err add_card(struct ew_probe *p, struct state *s, int gpu)
{
    int added = 0;
    for (size_t i = 0; i < EW_COUNT(rows); i++) {
        const struct row *r = &rows[i];
        s->channel[gpu][i] = -1;
        if (ew_nvml_ask(s->nvml, gpu, r->what).absent == EW_ABSENT_UNSUPPORTED)
            continue;
        struct ew_channel c = {
            .quantity = r->quantity, .quality = EW_QUALITY_MEASURED, .resolution = r->resolution};
        EW_TRY(ew_probe_text(p, &c.name, "%sgpu%d%s", r->before, gpu, r->after));
        EW_TRY(ew_probe_text(p, &c.source, "NVML: %s", ew_nvml_name(s->nvml, gpu)));
        EW_TRY(ew_probe_add(p, &c, &s->channel[gpu][i]));
        added++;
    }
    if (s->channel[gpu][0] >= 0)
        return EW_OK;
    return ew_probe_missing(p, EW_ABSENT_UNSUPPORTED, "NVML does not report the power of %s%s",
                            ew_nvml_name(s->nvml, gpu), added ? "" : ", nor anything else");
}

static ew_err probe(struct ew_probe *p, void **state)
{
    struct state *s = ew_arena_alloc(p->arena, sizeof(*s));
    EW_CHECK(s, EW_ERR_MEMORY, "no memory");
    *state = s;
    const char *why;
    EW_TRY(ew_nvml_open(p->root, p->captured, &s->nvml, &why));
    if (!s->nvml)
        return ew_probe_missing(p, EW_ABSENT_NO_SENSOR, "%s", why);
    for (int i = 0; i < ew_nvml_count(s->nvml); i++)
        EW_TRY(add_card(p, s, i));
    return EW_OK;
}

static struct ew_sample_value ask(const struct state *s, int gpu, const struct row *r)
{
    struct ew_sample_value v = ew_nvml_ask(s->nvml, gpu, r->what);
    if (r->what == EW_NVML_THROTTLE && ew_sample_value_is(v))
        v.v = ((unsigned)v.v & HELD_BACK) ? 1 : 0;
    v.v *= r->scale;
    return v;
}

static void read_cards(void *state, int64_t now_ns, struct ew_sample_value *values)
{
    struct state *s = state;
    const bool due = now_ns >= s->slow_at_ns;
    if (due)
        s->slow_at_ns = now_ns + SLOW_NS;
    for (int gpu = 0; s->nvml && gpu < ew_nvml_count(s->nvml); gpu++)
        for (size_t i = 0; i < EW_COUNT(rows); i++) {
            if (s->channel[gpu][i] < 0)
                continue;
            if (due || !rows[i].slow)
                s->last[gpu][i] = ask(s, gpu, &rows[i]);
            else if (rows[i].gaps && ew_sample_value_is(s->last[gpu][i]))
                s->last[gpu][i] = ew_sample_value_absent(EW_ABSENT_STALE);
            values[s->channel[gpu][i]] = s->last[gpu][i];
        }
}

static void close_library(void *state)
{
    ew_nvml_close(((struct state *)state)->nvml);
}

const struct ew_sensor ew_sensor_nvml = {
    .name = "nvml",
    .what = "NVIDIA graphics cards",
    .probe = probe,
    .read = read_cards,
    .close = close_library,
};
