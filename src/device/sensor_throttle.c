/* SPDX-License-Identifier: Apache-2.0 */
/* Throttling: active cooling devices, over-current alarms, the CPU's throttle counters.  A value of
 * 0 means "not now"; a counter is the number since boot. */
#include <stdio.h>
#include <string.h>

#include "device/gauge.h"

static ew_err add(struct ew_probe *p, struct ew_gauges *g, enum ew_quantity q, const char *name,
                  const char *path)
{
    struct ew_channel c = {.quantity = q, .quality = EW_QUALITY_MEASURED, .resolution = 1};
    const struct ew_gauge plain = {.scale = 1};
    bool added;
    EW_TRY(ew_probe_text(p, &c.name, "throttle.%s", name));
    return ew_gauges_add(p, g, &plain, &c, path, &added);
}

/* Whether a cooling device throttles: those named after a clock or processor do, fans do not. */
static bool holds_back(const char *type)
{
    static const char *const parts[] = {"throttle", "cpufreq",   "cpu-",    "gpu",
                                        "GPU",      "emergency", "devfreq", "Processor"};
    for (size_t i = 0; i < EW_COUNT(parts); i++)
        if (strstr(type, parts[i]))
            return true;
    return false;
}

static ew_err add_coolers(struct ew_probe *p, struct ew_gauges *g)
{
    const char *const *names;
    int n;
    EW_TRY(ew_probe_list(p, "sys/class/thermal", &names, &n));
    for (int i = 0; i < n; i++) {
        char type[64], path[128];
        if (strncmp(names[i], "cooling_device", 14) != 0 ||
            !ew_probe_read(p, type, sizeof(type), "sys/class/thermal/%s/type", names[i]) ||
            !holds_back(type))
            continue;
        snprintf(path, sizeof(path), "sys/class/thermal/%s/cur_state", names[i]);
        EW_TRY(add(p, g, EW_QUANTITY_STATE, type, path));
    }
    return EW_OK;
}

/* Over-current alarms of power chips by rail; under-voltage of a Raspberry Pi. */
static ew_err add_alarms(struct ew_probe *p, struct ew_gauges *g, const char *hwmon)
{
    static const char *const kinds[] = {"crit", "max"};
    char chip[64], label[64], name[160], path[128];
    if (!ew_probe_read(p, chip, sizeof(chip), "sys/class/hwmon/%s/name", hwmon))
        return EW_OK;
    for (int i = 1; i <= 3; i++) {
        if (!ew_probe_read(p, label, sizeof(label), "sys/class/hwmon/%s/in%d_label", hwmon, i) ||
            strcmp(label, "NC") == 0)
            continue;
        for (size_t k = 0; k < EW_COUNT(kinds); k++) {
            snprintf(path, sizeof(path), "sys/class/hwmon/%s/curr%d_%s_alarm", hwmon, i, kinds[k]);
            snprintf(name, sizeof(name), "%s.%s", label, kinds[k]);
            EW_TRY(add(p, g, EW_QUANTITY_STATE, name, path));
        }
    }
    snprintf(path, sizeof(path), "sys/class/hwmon/%s/in0_lcrit_alarm", hwmon);
    return add(p, g, EW_QUANTITY_STATE, "under_voltage", path);
}

static ew_err probe(struct ew_probe *p, void **state)
{
    struct ew_gauges *g = ew_arena_alloc(p->arena, sizeof(*g));
    EW_CHECK(g, EW_ERR_MEMORY, "no memory");
    *state = g;
    EW_TRY(add_coolers(p, g));
    EW_TRY(add(p, g, EW_QUANTITY_COUNT, "cpu0.count",
               "sys/devices/system/cpu/cpu0/thermal_throttle/package_throttle_count"));
    const char *const *names;
    int n;
    EW_TRY(ew_probe_list(p, "sys/class/hwmon", &names, &n));
    for (int i = 0; i < n; i++)
        EW_TRY(add_alarms(p, g, names[i]));
    if (g->n == 0)
        return ew_probe_missing(p, EW_ABSENT_NO_SENSOR,
                                "no cooling device, alarm or throttle counter");
    return EW_OK;
}

const struct ew_sensor ew_sensor_throttle = {
    .name = "throttle",
    .what = "throttling",
    .probe = probe,
    .read = ew_gauges_sensor_read,
    .close = ew_gauges_sensor_close,
};
