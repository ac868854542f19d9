/* SPDX-License-Identifier: Apache-2.0 */
/* Fans: speed in rpm if there is a tachometer, drive in percent if there is a PWM.  JetPack 4 has
 * /sys/devices/pwm-fan, later versions and PCs have hwmon, Tegra's tachometer has a file rpm. */
#include <stdio.h>

#include "device/gauge.h"

static const struct ew_gauge rpm = {.scale = 1, .lowest = 0, .highest = 100000};
static const struct ew_gauge pwm = {.scale = 100.0 / 255.0, .lowest = 0, .highest = 101};

static ew_err add(struct ew_probe *p, struct ew_gauges *g, const struct ew_gauge *form,
                  const char *name, const char *path)
{
    struct ew_channel c = {.name = name,
                           .quantity = form == &rpm ? EW_QUANTITY_FAN : EW_QUANTITY_SHARE,
                           .quality = EW_QUALITY_MEASURED,
                           .resolution = form == &rpm ? 1 : 0.4};
    bool added;
    return ew_gauges_add(p, g, form, &c, path, &added);
}

static ew_err add_hwmon(struct ew_probe *p, struct ew_gauges *g, const char *hwmon)
{
    struct ew_numbers fans, drives;
    char path[128];
    snprintf(path, sizeof(path), "sys/class/hwmon/%s", hwmon);
    EW_TRY(ew_probe_numbers(p, path, "fan", "_input", &fans));
    EW_TRY(ew_probe_numbers(p, path, "pwm", "", &drives));
    for (int i = 0; i < fans.n; i++) {
        snprintf(path, sizeof(path), "sys/class/hwmon/%s/fan%d_input", hwmon, fans.k[i]);
        EW_TRY(add(p, g, &rpm, "fan.rpm", path));
    }
    for (int i = 0; i < drives.n; i++) {
        snprintf(path, sizeof(path), "sys/class/hwmon/%s/pwm%d", hwmon, drives.k[i]);
        EW_TRY(add(p, g, &pwm, "fan.drive", path));
    }
    snprintf(path, sizeof(path), "sys/class/hwmon/%s/rpm", hwmon);
    return add(p, g, &rpm, "fan.rpm", path);
}

static ew_err probe(struct ew_probe *p, void **state)
{
    struct ew_gauges *g = ew_arena_alloc(p->arena, sizeof(*g));
    EW_CHECK(g, EW_ERR_MEMORY, "no memory");
    *state = g;
    EW_TRY(add(p, g, &rpm, "fan.rpm", "sys/devices/pwm-fan/rpm_measured"));
    EW_TRY(add(p, g, &pwm, "fan.drive", "sys/devices/pwm-fan/target_pwm"));
    const char *const *names;
    int n;
    EW_TRY(ew_probe_list(p, "sys/class/hwmon", &names, &n));
    for (int i = 0; i < n; i++)
        EW_TRY(add_hwmon(p, g, names[i]));
    if (g->n == 0)
        return ew_probe_missing(p, EW_ABSENT_NO_SENSOR, "the kernel reports no fan");
    return EW_OK;
}

const struct ew_sensor ew_sensor_fan = {
    .name = "fan",
    .what = "fans",
    .probe = probe,
    .read = ew_gauges_sensor_read,
    .close = ew_gauges_sensor_close,
};
