/* SPDX-License-Identifier: Apache-2.0 */
/* One line of tegrastats, of JetPack 4 to 7, root or not.  Words that are not known are passed
 * over: the format changes with every release. */
#ifndef EW_DEVICE_TEGRASTATS_H
#define EW_DEVICE_TEGRASTATS_H

#include "device/sample.h"

#define EW_TEGRA_CORES 32
#define EW_TEGRA_ITEMS 24
#define EW_TEGRA_NAME  32

struct ew_tegra_item {
    char name[EW_TEGRA_NAME];
    struct ew_sample_value value;
};

struct ew_tegrastats {
    struct ew_sample_value ram_used, ram_total, swap_used; /* bytes */
    struct ew_sample_value gpu_load, gpu_mhz, emc_load, emc_mhz;
    int n_cores, n_temps, n_rails;
    struct ew_sample_value core_load[EW_TEGRA_CORES], core_mhz[EW_TEGRA_CORES];
    struct ew_tegra_item temps[EW_TEGRA_ITEMS]; /* C */
    struct ew_tegra_item rails[EW_TEGRA_ITEMS]; /* W, the present figure and not the average */
};

/* False where the line has nothing that is known. */
bool ew_tegrastats_parse(const char *line, struct ew_tegrastats *out);

#endif
