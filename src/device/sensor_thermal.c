/* SPDX-License-Identifier: Apache-2.0 */
/* Temperatures: thermal zones, and temp inputs of hwmon chips that are not zones.  A zone whose
 * block is powered down returns EAGAIN (other tools print that as -256 C); Tegra's PMIC zone always
 * reports 50 or 100 C and is left out. */
#include <stdio.h>
#include <string.h>

#include "device/gauge.h"

/* Plausible temperatures; -256 C and the like are rejected. */
static const struct ew_gauge millidegrees = {.scale = 1e-3, .lowest = -60, .highest = 250};

static ew_err add(struct ew_probe *p, struct ew_gauges *g, const char *name, const char *path)
{
    struct ew_channel c = {
        .quantity = EW_QUANTITY_TEMP, .quality = EW_QUALITY_MEASURED, .resolution = 0.001};
    bool added;
    EW_TRY(ew_probe_text(p, &c.name, "temp.%s", name));
    return ew_gauges_add(p, g, &millidegrees, &c, path, &added);
}

/* Removes the suffix of "CPU-therm" and "cpu-thermal", as tegrastats does. */
static void cut_ending(char *type)
{
    static const char *const endings[] = {"-therm", "-thermal", "_thermal"};
    for (size_t i = 0; i < EW_COUNT(endings); i++) {
        const size_t n = strlen(type), m = strlen(endings[i]);
        if (n > m && strcmp(type + n - m, endings[i]) == 0)
            type[n - m] = '\0';
    }
    for (char *p = type; *p; p++)
        if (*p == ' ')
            *p = '_';
}

static ew_err add_zones(struct ew_probe *p, struct ew_gauges *g)
{
    const char *const *names;
    int n;
    EW_TRY(ew_probe_list(p, "sys/class/thermal", &names, &n));
    for (int i = 0; i < n; i++) {
        char type[64], path[128];
        if (strncmp(names[i], "thermal_zone", 12) != 0 ||
            !ew_probe_read(p, type, sizeof(type), "sys/class/thermal/%s/type", names[i]))
            continue;
        if (strncmp(type, "PMIC", 4) == 0)
            continue;
        cut_ending(type);
        snprintf(path, sizeof(path), "sys/class/thermal/%s/temp", names[i]);
        EW_TRY(add(p, g, type, path));
    }
    return EW_OK;
}

/* Whether the hwmon device duplicates a thermal zone. */
static bool repeats_zone(struct ew_probe *p, const char *hwmon)
{
    char path[128];
    snprintf(path, sizeof(path), "sys/class/hwmon/%s/device/type", hwmon);
    return ew_root_has(p->root, path);
}

static ew_err add_hwmon(struct ew_probe *p, struct ew_gauges *g, const char *hwmon)
{
    char chip[64], label[64], name[160], path[128];
    if (repeats_zone(p, hwmon) ||
        !ew_probe_read(p, chip, sizeof(chip), "sys/class/hwmon/%s/name", hwmon))
        return EW_OK;
    struct ew_numbers inputs;
    snprintf(path, sizeof(path), "sys/class/hwmon/%s", hwmon);
    EW_TRY(ew_probe_numbers(p, path, "temp", "_input", &inputs));
    for (int i = 0; i < inputs.n; i++) {
        const int k = inputs.k[i];
        snprintf(path, sizeof(path), "sys/class/hwmon/%s/temp%d_input", hwmon, k);
        if (!ew_probe_read(p, label, sizeof(label), "sys/class/hwmon/%s/temp%d_label", hwmon, k))
            snprintf(label, sizeof(label), "%d", k);
        cut_ending(label);
        snprintf(name, sizeof(name), "%s.%s", chip, label);
        EW_TRY(add(p, g, name, path));
    }
    return EW_OK;
}

static ew_err probe(struct ew_probe *p, void **state)
{
    struct ew_gauges *g = ew_arena_alloc(p->arena, sizeof(*g));
    EW_CHECK(g, EW_ERR_MEMORY, "no memory");
    *state = g;
    EW_TRY(add_zones(p, g));
    const char *const *names;
    int n;
    EW_TRY(ew_probe_list(p, "sys/class/hwmon", &names, &n));
    for (int i = 0; i < n; i++)
        EW_TRY(add_hwmon(p, g, names[i]));
    if (g->n == 0)
        return ew_probe_missing(p, EW_ABSENT_NO_SENSOR, "no thermal zone and no hwmon temperature");
    return EW_OK;
}

const struct ew_sensor ew_sensor_thermal = {
    .name = "thermal",
    .what = "temperatures",
    .probe = probe,
    .read = ew_gauges_sensor_read,
    .close = ew_gauges_sensor_close,
};
