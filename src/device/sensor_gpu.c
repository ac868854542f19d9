/* SPDX-License-Identifier: Apache-2.0 */
/* Load and clock of a board's integrated GPU through devfreq.  Graphics cards are in sensor_nvml.
 * `load` is per mille. */
#include <stdio.h>

#include "device/gauge.h"
#include "device/gpu.h"

static ew_err add(struct ew_probe *p, struct ew_gauges *g, const char *entry)
{
    struct ew_channel load = {.name = "gpu.load",
                              .quantity = EW_QUANTITY_LOAD,
                              .quality = EW_QUALITY_MEASURED,
                              .resolution = 0.1};
    struct ew_channel freq = {.name = "gpu.freq",
                              .quantity = EW_QUANTITY_FREQ,
                              .quality = EW_QUALITY_MEASURED,
                              .resolution = 1e-6};
    const struct ew_gauge permille = {.scale = 0.1, .lowest = 0, .highest = 100};
    const struct ew_gauge hertz = {.scale = 1e-6, .lowest = 0, .highest = 1e5};
    char path[160];
    bool added;
    snprintf(path, sizeof(path), "sys/class/devfreq/%s/device/load", entry);
    EW_TRY(ew_gauges_add(p, g, &permille, &load, path, &added));
    if (!added)
        EW_TRY(ew_probe_missing(p, EW_ABSENT_UNSUPPORTED, "%s has no load file", entry));
    snprintf(path, sizeof(path), "sys/class/devfreq/%s/cur_freq", entry);
    return ew_gauges_add(p, g, &hertz, &freq, path, &added);
}

static ew_err probe(struct ew_probe *p, void **state)
{
    struct ew_gauges *g = ew_arena_alloc(p->arena, sizeof(*g));
    EW_CHECK(g, EW_ERR_MEMORY, "no memory");
    *state = g;
    const char *const *names;
    int n, gpus = 0;
    EW_TRY(ew_probe_list(p, "sys/class/devfreq", &names, &n));
    for (int i = 0; i < n; i++) {
        if (!ew_gpu_is_entry(p->root, names[i]))
            continue;
        gpus++;
        EW_TRY(add(p, g, names[i]));
    }
    if (gpus == 0)
        return ew_probe_missing(p, EW_ABSENT_NO_SENSOR, "no GPU in /sys/class/devfreq");
    return EW_OK;
}

const struct ew_sensor ew_sensor_gpu = {
    .name = "gpu",
    .what = "GPU load and clock",
    .probe = probe,
    .read = ew_gauges_sensor_read,
    .close = ew_gauges_sensor_close,
};
