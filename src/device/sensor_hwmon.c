/* SPDX-License-Identifier: Apache-2.0 */
/* Power inputs of any hwmon chip (power meters, graphics cards, PMBus supplies), in microwatts.
 * INA3221 has its own file; batteries are in sensor_supply. */
#include <stdio.h>
#include <string.h>

#include "device/gauge.h"

/* `kind`: "input", or "average" if the chip has no instantaneous value. */
static ew_err add(struct ew_probe *p, struct ew_gauges *g, const char *hwmon, const char *chip,
                  int i, const char *kind)
{
    const struct ew_gauge microwatts = {.scale = 1e-6, .lowest = 0, .highest = 1e5};
    struct ew_channel c = {
        .quantity = EW_QUANTITY_POWER, .quality = EW_QUALITY_MEASURED, .resolution = 1e-6};
    char label[64], path[128];
    bool added;
    if (!ew_probe_read(p, label, sizeof(label), "sys/class/hwmon/%s/power%d_label", hwmon, i))
        snprintf(label, sizeof(label), "%d", i);
    EW_TRY(ew_probe_text(p, &c.name, "power.%s.%s", chip, label));
    snprintf(path, sizeof(path), "sys/class/hwmon/%s/power%d_%s", hwmon, i, kind);
    return ew_gauges_add(p, g, &microwatts, &c, path, &added);
}

static ew_err add_chip(struct ew_probe *p, struct ew_gauges *g, const char *hwmon, const char *chip)
{
    struct ew_numbers inputs, averages;
    char dir[128];
    snprintf(dir, sizeof(dir), "sys/class/hwmon/%s", hwmon);
    EW_TRY(ew_probe_numbers(p, dir, "power", "_input", &inputs));
    EW_TRY(ew_probe_numbers(p, dir, "power", "_average", &averages));
    for (int i = 0; i < inputs.n; i++)
        EW_TRY(add(p, g, hwmon, chip, inputs.k[i], "input"));
    for (int i = 0; i < averages.n; i++) {
        bool both = false;
        for (int k = 0; k < inputs.n; k++)
            both = both || inputs.k[k] == averages.k[i];
        if (!both)
            EW_TRY(add(p, g, hwmon, chip, averages.k[i], "average"));
    }
    return EW_OK;
}

static ew_err probe(struct ew_probe *p, void **state)
{
    struct ew_gauges *g = ew_arena_alloc(p->arena, sizeof(*g));
    EW_CHECK(g, EW_ERR_MEMORY, "no memory");
    *state = g;
    const char *const *names;
    int n;
    EW_TRY(ew_probe_list(p, "sys/class/hwmon", &names, &n));
    for (int i = 0; i < n; i++) {
        char chip[64];
        if (!ew_probe_read(p, chip, sizeof(chip), "sys/class/hwmon/%s/name", names[i]) ||
            strncmp(chip, "BAT", 3) == 0)
            continue;
        EW_TRY(add_chip(p, g, names[i], chip));
    }
    if (g->n == 0)
        return ew_probe_missing(p, EW_ABSENT_NO_SENSOR, "no power input in /sys/class/hwmon");
    return EW_OK;
}

const struct ew_sensor ew_sensor_hwmon = {
    .name = "hwmon",
    .what = "power by hwmon",
    .probe = probe,
    .read = ew_gauges_sensor_read,
    .close = ew_gauges_sensor_close,
};
