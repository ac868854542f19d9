/* SPDX-License-Identifier: Apache-2.0 */
/* Clock of the external memory controller (EMC) of Jetsons, in debugfs, which only root may read.
 * Its load is left out: the unit of mc_all is not documented, and tools that print it disagree by a
 * factor of 100; tegrastats' own value comes through sensor_tegrastats. */
#include "device/board.h"
#include "device/emc.h"
#include "device/gauge.h"

#include <string.h>

static ew_err probe(struct ew_probe *p, void **state)
{
    const struct ew_gauge hertz = {.scale = 1e-6, .lowest = 0, .highest = 1e5};
    struct ew_gauges *g = ew_arena_alloc(p->arena, sizeof(*g));
    EW_CHECK(g, EW_ERR_MEMORY, "no memory");
    *state = g;
    for (size_t i = 0; i < EW_COUNT(ew_emc_paths); i++) {
        struct ew_channel c = {.name = "emc.freq",
                               .quantity = EW_QUANTITY_FREQ,
                               .quality = EW_QUALITY_MEASURED,
                               .resolution = 1e-6};
        bool added;
        EW_TRY(ew_gauges_add(p, g, &hertz, &c, ew_emc_paths[i], &added));
        if (added)
            return EW_OK;
    }
    const char *compatible = p->board->id.compatible;
    if (compatible && strstr(compatible, "nvidia,tegra"))
        return ew_probe_missing(p, EW_ABSENT_NO_PERMISSION, "debugfs is not readable; run as root");
    return ew_probe_missing(p, EW_ABSENT_UNSUPPORTED, "not a Jetson");
}

const struct ew_sensor ew_sensor_emc = {
    .name = "emc",
    .what = "memory clock",
    .probe = probe,
    .read = ew_gauges_sensor_read,
    .close = ew_gauges_sensor_close,
};
