/* SPDX-License-Identifier: Apache-2.0 */
/* CPU clocks by core, as reported by cpufreq.  Setting them is in power.c. */
#include "device/cpulist.h"
#include "device/gauge.h"

#include <stdio.h>

static ew_err probe(struct ew_probe *p, void **state)
{
    struct ew_gauges *g = ew_arena_alloc(p->arena, sizeof(*g));
    struct ew_cpulist *list = ew_arena_alloc(p->arena, sizeof(*list));
    EW_CHECK(g && list, EW_ERR_MEMORY, "no memory");
    *state = g;
    if (!ew_cpulist_read(p->root, "present", list))
        list->n = 0;
    for (int i = 0; i < list->n; i++) {
        struct ew_channel c = {
            .quantity = EW_QUANTITY_FREQ, .quality = EW_QUALITY_MEASURED, .resolution = 0.001};
        const struct ew_gauge kilohertz = {.scale = 1e-3};
        char path[128];
        bool added;
        EW_TRY(ew_probe_text(p, &c.name, "cpu%d.freq", list->cpu[i]));
        snprintf(path, sizeof(path), "sys/devices/system/cpu/cpu%d/cpufreq/scaling_cur_freq",
                 list->cpu[i]);
        EW_TRY(ew_gauges_add(p, g, &kilohertz, &c, path, &added));
    }
    if (g->n == 0)
        return ew_probe_missing(p, EW_ABSENT_NO_SENSOR,
                                "no cpufreq folder: the CPU's clock is not visible here");
    return EW_OK;
}

const struct ew_sensor ew_sensor_cpufreq = {
    .name = "cpufreq",
    .what = "CPU clocks",
    .probe = probe,
    .read = ew_gauges_sensor_read,
    .close = ew_gauges_sensor_close,
};
