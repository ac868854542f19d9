/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: a whole board whose files contain parts of the input.  Every sensor must open and
 * read it; the input is split at '|' into four texts, to which the board's files link. */
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "device/board.h"
#include "device/powermode.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define PARTS  4
#define VALUES 1024

static const char *const paths[] = {
    "proc/stat",
    "proc/meminfo",
    "proc/cpuinfo",
    "proc/sys/kernel/osrelease",
    "proc/device-tree/model",
    "proc/device-tree/compatible",
    "etc/nv_tegra_release",
    "etc/nvpmodel.conf",
    "var/lib/nvpmodel/status",
    "sys/class/dmi/id/product_name",
    "sys/devices/system/cpu/present",
    "sys/devices/system/cpu/online",
    "sys/devices/system/cpu/cpu0/online",
    "sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq",
    "sys/devices/system/cpu/cpufreq/policy0/scaling_available_frequencies",
    "sys/devices/system/cpu/cpufreq/policy0/scaling_max_freq",
    "sys/devices/system/cpu/cpufreq/policy0/cpuinfo_max_freq",
    "sys/block/sda/stat",
    "sys/class/thermal/thermal_zone0/type",
    "sys/class/thermal/thermal_zone0/temp",
    "sys/class/thermal/cooling_device0/type",
    "sys/class/thermal/cooling_device0/cur_state",
    "sys/class/hwmon/hwmon0/name",
    "sys/class/hwmon/hwmon0/temp1_label",
    "sys/class/hwmon/hwmon0/temp1_input",
    "sys/class/hwmon/hwmon0/power1_input",
    "sys/class/hwmon/hwmon0/power1_label",
    "sys/class/hwmon/hwmon0/in1_label",
    "sys/class/hwmon/hwmon0/curr1_crit_alarm",
    "sys/class/hwmon/hwmon0/fan1_input",
    "sys/bus/i2c/devices/1-0040/hwmon/hwmon0/in1_label",
    "sys/bus/i2c/devices/1-0040/hwmon/hwmon0/in1_input",
    "sys/bus/i2c/devices/1-0040/hwmon/hwmon0/curr1_input",
    "sys/bus/i2c/devices/1-0040/hwmon/hwmon0/shunt1_resistor",
    "sys/bus/i2c/devices/1-0041/iio:device0/rail_name_0",
    "sys/bus/i2c/devices/1-0041/iio:device0/in_power0_input",
    "sys/class/devfreq/1.gpu/device/of_node/name",
    "sys/class/devfreq/1.gpu/device/load",
    "sys/class/devfreq/1.gpu/available_frequencies",
    "sys/class/devfreq/1.gpu/cur_freq",
    "sys/class/powercap/intel-rapl:0/name",
    "sys/class/powercap/intel-rapl:0/energy_uj",
    "sys/class/powercap/intel-rapl:0/max_energy_range_uj",
    "sys/class/power_supply/BAT0/type",
    "sys/class/power_supply/BAT0/status",
    "sys/class/power_supply/BAT0/voltage_now",
    "sys/class/power_supply/BAT0/current_now",
    "captured/nvml",
    "captured/pmic_read_adc"};

/* The board, created once. */
static char board[64];
static int parts[PARTS];

static void remove_board(void)
{
    char command[96];
    snprintf(command, sizeof(command), "rm -rf '%s'", board);
    if (system(command) != 0)
        perror(board);
}

static void make_link(const char *path, int part)
{
    char full[256], target[16];
    snprintf(full, sizeof(full), "%s/%s", board, path);
    for (char *p = full + strlen(board) + 1; (p = strchr(p, '/')); p++) {
        *p = '\0';
        mkdir(full, 0777);
        *p = '/';
    }
    snprintf(target, sizeof(target), "/part%d", part);
    if (symlink(target, full) != 0)
        abort();
}

static void make_board(void)
{
    const bool memory = access("/dev/shm", W_OK) == 0;
    snprintf(board, sizeof(board), "%s/ew-fuzz-sysfs-XXXXXX", memory ? "/dev/shm" : "/tmp");
    if (!mkdtemp(board))
        abort();
    atexit(remove_board);
    for (int i = 0; i < PARTS; i++) {
        char file[96];
        snprintf(file, sizeof(file), "%s/part%d", board, i);
        parts[i] = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
        if (parts[i] < 0)
            abort();
    }
    for (size_t i = 0; i < EW_COUNT(paths); i++)
        make_link(paths[i], (int)(i % PARTS));
    /* The chips must be found whatever the input is. */
    static const char *const chips[] = {"1-0040", "1-0041"};
    for (size_t i = 0; i < EW_COUNT(chips); i++) {
        char file[128];
        snprintf(file, sizeof(file), "%s/sys/bus/i2c/devices/%s/name", board, chips[i]);
        FILE *f = fopen(file, "w");
        if (!f || fputs("ina3221", f) < 0 || fclose(f) != 0)
            abort();
    }
}

static void fill(const uint8_t *data, size_t size)
{
    for (int i = 0; i < PARTS; i++) {
        const uint8_t *cut = i < PARTS - 1 && size ? memchr(data, '|', size) : NULL;
        const size_t n = cut ? (size_t)(cut - data) : size;
        if (ftruncate(parts[i], 0) != 0 || pwrite(parts[i], data, n, 0) != (ssize_t)n)
            abort();
        data += cut ? n + 1 : n;
        size -= cut ? n + 1 : n;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!board[0])
        make_board();
    static const uint8_t nothing[1] = {0};
    fill(size ? data : nothing, size);
    struct ew_board *b = NULL;
    if (ew_board_open(&(struct ew_board_opts){.root = board}, &b) != EW_OK)
        return 0;
    static struct ew_sample_value values[VALUES];
    struct ew_clock_info clocks[EW_MAX_CLOCKS];
    struct ew_nvpmodel modes;
    int n;
    if (b->n_channels > VALUES)
        abort();
    for (int round = 0; round < 2; round++)
        ew_board_read(b, values);
    for (int i = 0; i < b->n_channels; i++)
        if (ew_sample_value_is(values[i]) && isnan(values[i].v))
            abort();
    ew_clocks_read(b, clocks, &n);
    ew_nvpmodel_read(&b->root, &b->arena, &modes);
    ew_board_close(b);
    return 0;
}
