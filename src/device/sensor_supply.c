/* SPDX-License-Identifier: Apache-2.0 */
/* Batteries and supplies from /sys/class/power_supply (microvolts, microamperes, microwatts).  A
 * battery measures the machine's power only while it discharges. */
#include <math.h>
#include <string.h>

#include "device/sensor.h"

#define MAX_SUPPLIES 8

struct supply {
    struct ew_source power, voltage, current, status;
    bool battery;
    int channel;
};

struct state {
    struct supply list[MAX_SUPPLIES];
    int n;
};

static ew_err add(struct ew_probe *p, struct state *s, const char *name)
{
    struct supply *u = &s->list[s->n];
    char type[32];
    if (!ew_probe_read(p, type, sizeof(type), "sys/class/power_supply/%s/type", name))
        return EW_OK;
    u->battery = strcmp(type, "Battery") == 0;
    const bool power = ew_source_open(p, &u->power, "sys/class/power_supply/%s/power_now", name);
    const bool volts =
        ew_source_open(p, &u->voltage, "sys/class/power_supply/%s/voltage_now", name);
    const bool amps = ew_source_open(p, &u->current, "sys/class/power_supply/%s/current_now", name);
    ew_source_open(p, &u->status, "sys/class/power_supply/%s/status", name);
    s->n++; /* close() releases it from here on */
    struct ew_channel c = {.quantity = EW_QUANTITY_POWER,
                           .quality = power ? EW_QUALITY_MEASURED : EW_QUALITY_DERIVED,
                           .source = power ? u->power.path : u->current.path};
    u->channel = -1;
    if (!power && !(volts && amps))
        return EW_OK;
    if (u->battery)
        c.name = "power.battery";
    else
        EW_TRY(ew_probe_text(p, &c.name, "power.supply.%s", name));
    return ew_probe_add(p, &c, &u->channel);
}

static ew_err probe(struct ew_probe *p, void **state)
{
    struct state *s = ew_arena_alloc(p->arena, sizeof(*s));
    EW_CHECK(s, EW_ERR_MEMORY, "no memory");
    *state = s;
    const char *const *names;
    int n, found = 0;
    EW_TRY(ew_probe_list(p, "sys/class/power_supply", &names, &n));
    for (int i = 0; i < n && s->n < MAX_SUPPLIES; i++)
        EW_TRY(add(p, s, names[i]));
    for (int i = 0; i < s->n; i++)
        found += s->list[i].channel >= 0;
    if (found == 0)
        return ew_probe_missing(p, EW_ABSENT_NO_SENSOR,
                                "no battery or supply that reports its power");
    return EW_OK;
}

static struct ew_sample_value measure(const struct supply *u)
{
    char status[32];
    const bool told = ew_source_read(&u->status, status, sizeof(status)) == EW_ABSENT_NOT;
    if (u->battery && told && strcmp(status, "Discharging") != 0)
        return ew_sample_value_absent(EW_ABSENT_OFF);
    const struct ew_sample_value watts = ew_source_value(&u->power, 1e-6);
    if (ew_sample_value_is(watts) || u->power.fd >= 0)
        return ew_sample_value_is(watts) ? ew_sample_value_of(fabs(watts.v)) : watts;
    const struct ew_sample_value volts = ew_source_value(&u->voltage, 1e-6);
    const struct ew_sample_value amps = ew_source_value(&u->current, 1e-6);
    if (!ew_sample_value_is(volts))
        return volts;
    /* Some drivers report discharge as negative current. */
    return ew_sample_value_is(amps) ? ew_sample_value_of(volts.v * fabs(amps.v)) : amps;
}

static void read_supplies(void *state, int64_t now_ns, struct ew_sample_value *values)
{
    const struct state *s = state;
    for (int i = 0; i < s->n; i++)
        if (s->list[i].channel >= 0)
            values[s->list[i].channel] = measure(&s->list[i]);
}

static void close_files(void *state)
{
    struct state *s = state;
    for (int i = 0; i < s->n; i++) {
        ew_source_close(&s->list[i].power);
        ew_source_close(&s->list[i].voltage);
        ew_source_close(&s->list[i].current);
        ew_source_close(&s->list[i].status);
    }
}

const struct ew_sensor ew_sensor_supply = {
    .name = "supply",
    .what = "power by battery",
    .probe = probe,
    .read = read_supplies,
    .close = close_files,
};
