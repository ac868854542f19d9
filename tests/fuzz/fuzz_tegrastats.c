/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: lines of tegrastats. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "device/tegrastats.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_items(const struct ew_tegra_item *items, int n)
{
    if (n < 0 || n > EW_TEGRA_ITEMS)
        abort();
    for (int i = 0; i < n; i++)
        if (!memchr(items[i].name, '\0', EW_TEGRA_NAME) || !items[i].name[0] ||
            !isfinite(items[i].value.v))
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *line = malloc(size + 1);
    if (!line)
        return 0;
    if (size)
        memcpy(line, data, size);
    line[size] = '\0';
    struct ew_tegrastats t;
    ew_tegrastats_parse(line, &t);
    check_items(t.temps, t.n_temps);
    check_items(t.rails, t.n_rails);
    if (t.n_cores < 0 || t.n_cores > EW_TEGRA_CORES)
        abort();
    free(line);
    return 0;
}
