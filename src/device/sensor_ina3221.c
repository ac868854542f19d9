/* SPDX-License-Identifier: Apache-2.0 */
/* Power of a Jetson's rails from its INA3221 chips: through iio on JetPack 4 (driver ina3221x,
 * power in mW), through hwmon on 5 and later (voltage and current, multiplied here).  Which rails
 * make up the total is decided in total.c.
 *
 * Numbers of iio and hwmon folders change from boot to boot: both are searched under the chip. */
#include <stdio.h>
#include <string.h>

#include "device/board.h"
#include "device/sensor.h"

#define MAX_RAILS    24
#define SHUNT_STEP_V 40e-6 /* one bit of the shunt converter (INA3221 data sheet) */

struct rail {
    struct ew_source power;            /* iio */
    struct ew_source voltage, current; /* hwmon; power.fd is -1 then */
    int power_channel, voltage_channel, current_channel;
    bool hwmon;
};

struct state {
    struct rail rails[MAX_RAILS];
    int n;
};

/* Unconnected inputs are labelled NC; the chip's own sum has a sentence as label. */
static bool is_rail(const char *label)
{
    return label[0] && strcmp(label, "NC") != 0 && !strstr(label, "sum of shunt");
}

static ew_err add_channel(struct ew_probe *p, const char *kind, const char *label,
                          struct ew_channel *c, int *index)
{
    EW_TRY(ew_probe_text(p, &c->name, "%s.%s", kind, label));
    return ew_probe_add(p, c, index);
}

static double profile_step(const struct ew_probe *p)
{
    return p->board->profile ? p->board->profile->step_w : 0;
}

static ew_err add_iio(struct ew_probe *p, struct state *s, const char *dir)
{
    for (int i = 0; i < 3 && s->n < MAX_RAILS; i++) {
        char label[64];
        struct rail *r = &s->rails[s->n];
        if (!ew_probe_read(p, label, sizeof(label), "%s/rail_name_%d", dir, i) || !is_rail(label) ||
            !ew_source_open(p, &r->power, "%s/in_power%d_input", dir, i))
            continue;
        s->n++;
        struct ew_channel c = {.quantity = EW_QUANTITY_POWER,
                               .quality = EW_QUALITY_MEASURED,
                               .source = r->power.path,
                               .resolution = profile_step(p)};
        EW_TRY(add_channel(p, "power", label, &c, &r->power_channel));
    }
    return EW_OK;
}

/* Watts per bit of the current at the rail's present voltage; from the profile if the chip does not
 * report its shunt. */
static double step_of(struct ew_probe *p, const char *dir, int i, const struct rail *r)
{
    struct ew_source shunt;
    ew_source_open(p, &shunt, "%s/shunt%d_resistor", dir, i);
    const struct ew_sample_value ohms = ew_source_value(&shunt, 1e-6);
    ew_source_close(&shunt);
    const struct ew_sample_value volts = ew_source_value(&r->voltage, 1e-3);
    if (!ew_sample_value_is(ohms) || !ew_sample_value_is(volts) || ohms.v <= 0)
        return profile_step(p);
    return volts.v * SHUNT_STEP_V / ohms.v;
}

static ew_err add_hwmon_rail(struct ew_probe *p, struct state *s, const char *dir, int i)
{
    char label[64];
    struct rail *r = &s->rails[s->n];
    if (!ew_probe_read(p, label, sizeof(label), "%s/in%d_label", dir, i) || !is_rail(label))
        return EW_OK;
    if (!ew_source_open(p, &r->voltage, "%s/in%d_input", dir, i))
        return EW_OK;
    s->n++;
    r->hwmon = true;
    ew_source_open(p, &r->current, "%s/curr%d_input", dir, i);
    struct ew_channel power = {.quantity = EW_QUANTITY_POWER,
                               .quality = EW_QUALITY_DERIVED,
                               .source = r->current.path,
                               .resolution = step_of(p, dir, i, r)};
    struct ew_channel voltage = {.quantity = EW_QUANTITY_VOLTAGE,
                                 .quality = EW_QUALITY_MEASURED,
                                 .source = r->voltage.path,
                                 .resolution = 0.008};
    struct ew_channel current = {
        .quantity = EW_QUANTITY_CURRENT, .quality = EW_QUALITY_MEASURED, .source = r->current.path};
    EW_TRY(add_channel(p, "power", label, &power, &r->power_channel));
    EW_TRY(add_channel(p, "voltage", label, &voltage, &r->voltage_channel));
    return add_channel(p, "current", label, &current, &r->current_channel);
}

static ew_err add_chip(struct ew_probe *p, struct state *s, const char *chip)
{
    char dir[160];
    const char *const *names;
    int n;
    snprintf(dir, sizeof(dir), "sys/bus/i2c/devices/%s", chip);
    EW_TRY(ew_probe_list(p, dir, &names, &n));
    for (int i = 0; i < n; i++)
        if (strncmp(names[i], "iio:device", 10) == 0) {
            snprintf(dir, sizeof(dir), "sys/bus/i2c/devices/%s/%s", chip, names[i]);
            EW_TRY(add_iio(p, s, dir));
        }
    snprintf(dir, sizeof(dir), "sys/bus/i2c/devices/%s/hwmon", chip);
    EW_TRY(ew_probe_list(p, dir, &names, &n));
    for (int i = 0; i < n; i++) {
        snprintf(dir, sizeof(dir), "sys/bus/i2c/devices/%s/hwmon/%s", chip, names[i]);
        for (int in = 1; in <= 3 && s->n < MAX_RAILS; in++)
            EW_TRY(add_hwmon_rail(p, s, dir, in));
    }
    return EW_OK;
}

static ew_err probe(struct ew_probe *p, void **state)
{
    struct state *s = ew_arena_alloc(p->arena, sizeof(*s));
    EW_CHECK(s, EW_ERR_MEMORY, "no memory");
    *state = s;
    const char *const *names;
    int n;
    bool chip = false;
    EW_TRY(ew_probe_list(p, "sys/bus/i2c/devices", &names, &n));
    for (int i = 0; i < n; i++) {
        char name[64];
        if (!ew_probe_read(p, name, sizeof(name), "sys/bus/i2c/devices/%s/name", names[i]) ||
            !strstr(name, "ina3221"))
            continue;
        chip = true;
        EW_TRY(add_chip(p, s, names[i]));
    }
    if (s->n == 0)
        return ew_probe_missing(p, EW_ABSENT_NO_SENSOR, "%s",
                                chip ? "the chip has no readable rail" : "no such chip");
    return EW_OK;
}

static struct ew_sample_value product(struct ew_sample_value a, struct ew_sample_value b)
{
    if (!ew_sample_value_is(a))
        return a;
    return ew_sample_value_is(b) ? ew_sample_value_of(a.v * b.v) : b;
}

static void read_rails(void *state, int64_t now_ns, struct ew_sample_value *values)
{
    const struct state *s = state;
    for (int i = 0; i < s->n; i++) {
        const struct rail *r = &s->rails[i];
        if (!r->hwmon) {
            values[r->power_channel] = ew_source_value(&r->power, 1e-3);
            continue;
        }
        const struct ew_sample_value v = ew_source_value(&r->voltage, 1e-3);
        const struct ew_sample_value a = ew_source_value(&r->current, 1e-3);
        values[r->voltage_channel] = v;
        values[r->current_channel] = a;
        values[r->power_channel] = product(v, a);
    }
}

static void close_files(void *state)
{
    struct state *s = state;
    for (int i = 0; i < s->n; i++) {
        if (!s->rails[i].hwmon) {
            ew_source_close(&s->rails[i].power);
            continue;
        }
        ew_source_close(&s->rails[i].voltage);
        ew_source_close(&s->rails[i].current);
    }
}

const struct ew_sensor ew_sensor_ina3221 = {
    .name = "ina3221",
    .what = "power by INA3221",
    .probe = probe,
    .read = read_rails,
    .close = close_files,
};
