/* SPDX-License-Identifier: Apache-2.0 */
/* Capturing a board.  Only files that match a pattern below are copied, so no private data. */
#include "device/capture.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/owned.h"
#include "device/nvml.h"
#include "device/pmic.h"

#define MAX_DEPTH  12
#define FILE_BYTES ((size_t)64 << 10)

/* '*' matches part of a name; there is no "{a,b}". */
static const char *const patterns[] = {
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
    "sys/devices/system/cpu/cpu*/online",
    "sys/devices/system/cpu/cpu*/cpufreq/scaling_*_freq",
    "sys/devices/system/cpu/cpu0/thermal_throttle/package_throttle_count",
    "sys/devices/system/cpu/cpufreq/policy*/scaling_*",
    "sys/devices/system/cpu/cpufreq/policy*/cpuinfo_m*_freq",
    "sys/devices/system/cpu/cpu0/cache/index*/level",
    "sys/devices/system/cpu/cpu0/cache/index*/size",
    "sys/devices/system/cpu/cpu0/cache/index*/type",
    "sys/devices/system/cpu/cpu0/cache/index*/shared_cpu_list",
    "sys/block/*/stat",
    "sys/class/thermal/thermal_zone*/type",
    "sys/class/thermal/thermal_zone*/temp",
    "sys/class/thermal/cooling_device*/type",
    "sys/class/thermal/cooling_device*/cur_state",
    "sys/class/hwmon/*/name",
    "sys/class/hwmon/*/temp*_input",
    "sys/class/hwmon/*/temp*_label",
    "sys/class/hwmon/*/fan*_input",
    "sys/class/hwmon/*/pwm[0-9]",
    "sys/class/hwmon/*/rpm",
    "sys/class/hwmon/*/power*_input",
    "sys/class/hwmon/*/power*_average",
    "sys/class/hwmon/*/power*_label",
    "sys/class/hwmon/*/in*_label",
    "sys/class/hwmon/*/curr*_alarm",
    "sys/class/hwmon/*/in0_lcrit_alarm",
    "sys/class/hwmon/*/device/type",
    "sys/bus/i2c/devices/*/name",
    "sys/bus/i2c/devices/*/iio:device*/rail_name_*",
    "sys/bus/i2c/devices/*/iio:device*/in_power*_input",
    "sys/bus/i2c/devices/*/hwmon/hwmon*/in*_label",
    "sys/bus/i2c/devices/*/hwmon/hwmon*/in*_input",
    "sys/bus/i2c/devices/*/hwmon/hwmon*/curr*_input",
    "sys/bus/i2c/devices/*/hwmon/hwmon*/shunt*_resistor",
    "sys/class/devfreq/*/*_freq",
    "sys/class/devfreq/*/available_frequencies",
    "sys/class/devfreq/*/governor",
    "sys/class/devfreq/*/device/load",
    "sys/class/devfreq/*/device/tpc_pg_mask",
    "sys/class/devfreq/*/device/of_node/name",
    "sys/class/powercap/*/name",
    "sys/class/powercap/*/energy_uj",
    "sys/class/powercap/*/max_energy_range_uj",
    "sys/class/power_supply/*/type",
    "sys/class/power_supply/*/status",
    "sys/class/power_supply/*/*_now",
    "sys/devices/pwm-fan/target_pwm",
    "sys/devices/pwm-fan/rpm_measured",
    "sys/kernel/nvpmodel_emc_cap/emc_iso_cap",
    "sys/kernel/nvpmodel_clk_cap/emc",
    "sys/kernel/debug/bpmp/debug/clk/emc/rate",
    "sys/kernel/debug/clk/override.emc/clk_rate",
    "sys/kernel/debug/clk/emc/clk_rate",
};

struct capture {
    struct ew_board *board;
    const char *dir;
    int files;
};

/* ---- Writing --------------------------------------------------------------------------------- */

static ew_err make_parents(const char *path)
{
    char part[PATH_MAX];
    snprintf(part, sizeof(part), "%s", path);
    for (char *p = part + 1; (p = strchr(p, '/')); p++) {
        *p = '\0';
        EW_CHECK(mkdir(part, 0777) == 0 || errno == EEXIST, EW_ERR_IO, "%s: %s", part,
                 strerror(errno));
        *p = '/';
    }
    return EW_OK;
}

static ew_err put(struct capture *c, const char *name, const char *data, size_t size)
{
    char path[PATH_MAX];
    const int n = snprintf(path, sizeof(path), "%s/%s", c->dir, name);
    EW_CHECK(n > 0 && (size_t)n < sizeof(path), EW_ERR_LIMIT, "%s: path too long", name);
    EW_TRY(make_parents(path));
    c->files++;
    return ew_file_write(path, data, size);
}

static const char *error_name(int code)
{
    switch (code) {
    case EACCES:
    case EPERM:
        return "!EACCES\n";
    case EAGAIN:
        return "!EAGAIN\n";
    case EBUSY:
        return "!EBUSY\n";
    case EINVAL:
        return "!EINVAL\n";
    case ENODATA:
        return "!ENODATA\n";
    default:
        return "!EIO\n";
    }
}

/* Drops lines with serial numbers, as in a Raspberry Pi's cpuinfo. */
static size_t drop_serials(char *data, size_t size)
{
    size_t kept = 0;
    for (size_t at = 0; at < size;) {
        const char *end = memchr(data + at, '\n', size - at);
        const size_t n = end ? (size_t)(end - (data + at)) + 1 : size - at;
        const bool secret = n >= 6 && strncasecmp(data + at, "serial", 6) == 0;
        if (!secret) {
            memmove(data + kept, data + at, n);
            kept += n;
        }
        at += n;
    }
    return kept;
}

static ew_err copy_file(struct capture *c, const char *path)
{
    int fd;
    if (ew_root_open_file(&c->board->root, path, O_RDONLY, &fd) != EW_OK) {
        if (errno == ENOENT || errno == ENOTDIR)
            return EW_OK;
        const char *name = error_name(errno);
        return put(c, path, name, strlen(name));
    }
    char *data = malloc(FILE_BYTES);
    size_t used = 0;
    ssize_t n = 0;
    struct stat st;
    const bool file = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
    while (data && file && used < FILE_BYTES && (n = read(fd, data + used, FILE_BYTES - used)) > 0)
        used += (size_t)n;
    const int reason = errno;
    close(fd);
    ew_err err = EW_OK;
    if (n < 0)
        err = put(c, path, error_name(reason), strlen(error_name(reason)));
    else if (data && file)
        err = put(c, path, data, drop_serials(data, used));
    free(data);
    return err;
}

/* ---- Matching -------------------------------------------------------------------------------- */

/* Expands a pattern from `done` on; the depth of recursion is that of the pattern. */
static ew_err follow(struct capture *c, const char *done, const char *rest, int depth)
{
    const size_t n = strcspn(rest, "/");
    char path[512], part[128];
    snprintf(part, sizeof(part), "%.*s", (int)n, rest);
    const char *const one[] = {part, NULL};
    const char *const *names = one;
    int count = 1;
    const bool pattern = strpbrk(part, "*[") != NULL;
    if (pattern && ew_root_list(&c->board->root, done[0] ? done : "/", &c->board->arena, &names,
                                &count) != EW_OK)
        return EW_OK; /* no such folder */
    for (int i = 0; i < count && depth < MAX_DEPTH; i++) {
        if (pattern && fnmatch(part, names[i], 0) != 0)
            continue;
        const int length =
            snprintf(path, sizeof(path), "%s%s%s", done, done[0] ? "/" : "", names[i]);
        if (length < 0 || (size_t)length >= sizeof(path))
            continue;
        if (rest[n] == '/')
            EW_TRY(follow(c, path, rest + n + 1, depth + 1));
        else
            EW_TRY(copy_file(c, path));
    }
    return EW_OK;
}

/* ---- Answers that are not files -------------------------------------------------------------- */

static ew_err put_nvml(struct capture *c, bool captured)
{
    struct ew_nvml *nvml;
    const char *why;
    EW_TRY(ew_nvml_open(&c->board->root, captured, &nvml, &why));
    if (!nvml)
        return EW_OK;
    char text[4096];
    size_t used = 0;
    for (int gpu = 0; gpu < ew_nvml_count(nvml); gpu++) {
        used += (size_t)snprintf(text + used, sizeof(text) - used, "[gpu%d]\nname = %.90s\n", gpu,
                                 ew_nvml_name(nvml, gpu));
        for (int i = 0; i < EW_NVML_N && used + 100 < sizeof(text); i++) {
            const struct ew_sample_value v = ew_nvml_ask(nvml, gpu, (enum ew_nvml_what)i);
            if (ew_sample_value_is(v))
                used += (size_t)snprintf(text + used, sizeof(text) - used, "%s = %.0f\n",
                                         ew_nvml_key((enum ew_nvml_what)i), v.v);
        }
        if (used + 200 > sizeof(text))
            break;
    }
    ew_nvml_close(nvml);
    return put(c, "captured/nvml", text, used);
}

static ew_err put_pmic(struct capture *c, bool captured)
{
    char answer[EW_PMIC_BYTES];
    const char *compatible = c->board->id.compatible;
    if (!compatible || !strstr(compatible, "raspberrypi,5") ||
        ew_pmic_ask(&c->board->root, captured, answer) != EW_ABSENT_NOT)
        return EW_OK;
    return put(c, EW_PMIC_CAPTURED, answer, strlen(answer));
}

static ew_err copy_all(struct capture *c)
{
    for (size_t i = 0; i < EW_COUNT(patterns); i++)
        EW_TRY(follow(c, "", patterns[i], 0));
    const bool captured = strcmp(c->board->root.path, "/") != 0;
    EW_TRY(put_nvml(c, captured));
    return put_pmic(c, captured);
}

ew_err ew_capture(struct ew_board *b, const char *dir, int *files)
{
    struct capture c = {.board = b, .dir = dir};
    EW_TRY(ew_owned_fill(dir));
    const ew_err err = copy_all(&c);
    ew_owned_filled(dir, err == EW_OK);
    *files = c.files;
    return err;
}
