/* SPDX-License-Identifier: Apache-2.0 */
/* The GPU of a board through devfreq: load and clock.  Graphics cards are left to sensor_nvml.
 *
 * Which devfreq entry is the GPU is told by its device tree node; paths differ from board to board
 * and from release to release.  `load` is per mille. */
#include <stdio.h>
#include <string.h>

#include "device/gauge.h"

static bool is_gpu(const char *node)
{
    static const char *const names[] = {"gpu", "gv11b", "gp10b", "ga10b", "gb10b", "gm20b"};
    for (size_t i = 0; i < EW_COUNT(names); i++)
        if (strcmp(node, names[i]) == 0)
            return true;
    return false;
}

/* "17000000.gv11b" ends in the node's name: for trees without of_node. */
static bool named_gpu(const char *entry)
{
    const char *dot = strrchr(entry, '.');
    return (dot && is_gpu(dot + 1)) || strncmp(entry, "gpu-gpc", 7) == 0;
}

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
        char node[64];
        const bool told = ew_probe_read(p, node, sizeof(node),
                                        "sys/class/devfreq/%s/device/of_node/name", names[i]);
        if (!(told ? is_gpu(node) : named_gpu(names[i])))
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
