/* SPDX-License-Identifier: Apache-2.0 */
/* Translates power modes into changes of this board's files. */
#include "device/powermode.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/order_stats.h"
#include "base/text.h"
#include "device/cpulist.h"
#include "device/emc.h"
#include "device/gpu.h"

#define MAX_TABLE 64
#define MHZ       1000000LL
#define MOST_HZ   1000000000000000LL /* larger values are no clocks */

/* ---- Clocks ---------------------------------------------------------------------------------- */

static int64_t read_hz(const struct ew_root *root, const char *path, int64_t unit)
{
    int64_t v;
    if (!path || ew_root_read_int(root, path, &v) != EW_OK || v < 0 || v > MOST_HZ / unit)
        return -1;
    return v * unit;
}

/* Parses ascending numbers separated by white space; others are ignored. */
static void parse_table(struct ew_board *b, const char *text, int64_t unit, struct ew_clock_info *c)
{
    int64_t *table = ew_arena_array(&b->arena, MAX_TABLE, sizeof(*table));
    for (const char *p = text; table && *p && c->n_table < MAX_TABLE;) {
        p += strspn(p, " \t\n");
        char word[24];
        const size_t n = strcspn(p, " \t\n");
        int64_t v;
        snprintf(word, sizeof(word), "%.*s", n < sizeof(word) ? (int)n : 0, p);
        if (ew_num_int(word, &v) && v > 0 && v <= MOST_HZ / unit)
            table[c->n_table++] = v * unit;
        p += n;
    }
    ew_sort_i64(table, c->n_table);
    c->table = table;
}

static void finish_clock(struct ew_board *b, struct ew_clock_info *c)
{
    c->min = read_hz(&b->root, c->min_path, c->unit);
    c->max = read_hz(&b->root, c->max_path, c->unit);
    c->cur = read_hz(&b->root, c->cur_path, c->unit);
    if (c->n_table) {
        c->lowest = c->table[0];
        c->highest = c->table[c->n_table - 1];
    }
}

static const char *join(struct ew_board *b, const char *dir, const char *name)
{
    const char *path = ew_arena_printf(&b->arena, "%s/%s", dir, name);
    return path && ew_root_has(&b->root, path) ? path : NULL;
}

static void read_table(struct ew_board *b, const char *path, struct ew_clock_info *c)
{
    char text[1024];
    if (path && ew_root_read(&b->root, path, text, sizeof(text)) == EW_OK)
        parse_table(b, text, c->unit, c);
}

static void read_policy(struct ew_board *b, const char *dir, int core, struct ew_clock_info *c)
{
    *c = (struct ew_clock_info){.unit = 1000, .core = core};
    c->name = ew_arena_printf(&b->arena, "cpu%d", core);
    c->min_path = join(b, dir, "scaling_min_freq");
    c->max_path = join(b, dir, "scaling_max_freq");
    c->cur_path = join(b, dir, "scaling_cur_freq");
    c->lowest = read_hz(&b->root, join(b, dir, "cpuinfo_min_freq"), c->unit);
    c->highest = read_hz(&b->root, join(b, dir, "cpuinfo_max_freq"), c->unit);
    read_table(b, join(b, dir, "scaling_available_frequencies"), c);
    const char *governor = join(b, dir, "scaling_governor");
    if (governor)
        ew_root_read(&b->root, governor, c->governor, sizeof(c->governor));
    finish_clock(b, c);
}

static ew_err read_cpus(struct ew_board *b, struct ew_clock_info *out, int *n)
{
    const char *const *names;
    int count = 0, core;
    if (ew_root_list(&b->root, "sys/devices/system/cpu/cpufreq", &b->arena, &names, &count) !=
        EW_OK)
        return EW_OK;
    for (int i = 0; i < count && *n < EW_MAX_CLOCKS - 2; i++) {
        char dir[128];
        if (sscanf(names[i], "policy%d", &core) != 1)
            continue;
        snprintf(dir, sizeof(dir), "sys/devices/system/cpu/cpufreq/%s", names[i]);
        read_policy(b, dir, core, &out[(*n)++]);
    }
    return EW_OK;
}

static void read_gpu(struct ew_board *b, struct ew_clock_info *out, int *n)
{
    const char *const *names;
    int count = 0;
    if (ew_root_list(&b->root, "sys/class/devfreq", &b->arena, &names, &count) != EW_OK)
        return;
    for (int i = 0; i < count; i++) {
        if (!ew_gpu_is_entry(&b->root, names[i]))
            continue;
        const char *dir = ew_arena_printf(&b->arena, "sys/class/devfreq/%s", names[i]);
        struct ew_clock_info *c = &out[(*n)++];
        *c = (struct ew_clock_info){.name = "gpu", .unit = 1, .core = -1};
        c->min_path = join(b, dir, "min_freq");
        c->max_path = join(b, dir, "max_freq");
        c->cur_path = join(b, dir, "cur_freq");
        read_table(b, join(b, dir, "available_frequencies"), c);
        const char *governor = join(b, dir, "governor");
        if (governor)
            ew_root_read(&b->root, governor, c->governor, sizeof(c->governor));
        finish_clock(b, c);
        return;
    }
}

/* Jetsons cap the memory clock; its table is in the profile, since no file lists it. */
static void read_memory(struct ew_board *b, struct ew_clock_info *out, int *n)
{
    static const char *const caps[] = {"sys/kernel/nvpmodel_emc_cap/emc_iso_cap",
                                       "sys/kernel/nvpmodel_clk_cap/emc"};
    for (size_t i = 0; i < EW_COUNT(caps); i++) {
        if (!ew_root_has(&b->root, caps[i]))
            continue;
        struct ew_clock_info *c = &out[(*n)++];
        *c = (struct ew_clock_info){
            .name = "memory", .unit = 1, .core = -1, .cap = true, .max_path = caps[i]};
        for (size_t k = 0; k < EW_COUNT(ew_emc_paths) && !c->cur_path; k++)
            if (read_hz(&b->root, ew_emc_paths[k], 1) >= 0)
                c->cur_path = ew_emc_paths[k];
        if (b->profile && b->profile->emc_hz)
            parse_table(b, b->profile->emc_hz, 1, c);
        finish_clock(b, c);
        return;
    }
}

ew_err ew_clocks_read(struct ew_board *b, struct ew_clock_info *out, int *n)
{
    *n = 0;
    EW_TRY(read_cpus(b, out, n));
    read_gpu(b, out, n);
    read_memory(b, out, n);
    EW_CHECK(!b->arena.failed, EW_ERR_MEMORY, "no memory for the board's clocks");
    return EW_OK;
}

/* ---- Modes in plain figures ------------------------------------------------------------------ */

static ew_err not_allowed(const struct ew_clock_info *c, int64_t mhz)
{
    char text[512] = "";
    size_t used = 0;
    for (int i = 0; i < c->n_table && used < sizeof(text); i++)
        used += (size_t)snprintf(text + used, sizeof(text) - used, " %lld",
                                 (long long)(c->table[i] / MHZ));
    if (c->n_table == 0)
        snprintf(text, sizeof(text), " %lld to %lld", (long long)(c->lowest / MHZ),
                 (long long)(c->highest / MHZ));
    return ew_fail(EW_ERR_ARG, "%s cannot run at %lld MHz; allowed:%s", c->name, (long long)mhz,
                   text);
}

static int64_t nearest(const struct ew_clock_info *c, int64_t hz)
{
    int64_t best = c->table[0];
    for (int i = 1; i < c->n_table; i++)
        if (llabs(c->table[i] - hz) < llabs(best - hz))
            best = c->table[i];
    return best;
}

static ew_err choose(const struct ew_clock_info *c, int64_t mhz, int64_t *hz)
{
    *hz = mhz * MHZ;
    if (c->n_table == 0)
        return *hz >= c->lowest && *hz <= c->highest ? EW_OK : not_allowed(c, mhz);
    const int64_t wanted = *hz;
    *hz = nearest(c, wanted);
    return llabs(*hz - wanted) * 20 <= wanted ? EW_OK : not_allowed(c, mhz);
}

/* The core of a file, from cpuN or policyN; -1: none. */
static int core_of(const char *path)
{
    int core;
    if (sscanf(path, "sys/devices/system/cpu/cpu%d/", &core) == 1 ||
        sscanf(path, "sys/devices/system/cpu/cpufreq/policy%d/", &core) == 1)
        return core;
    return -1;
}

/* The clock's maximum after the changes in `list`, where the same file may have another path. */
static int64_t coming_max(const struct ew_power_list *list, const struct ew_clock_info *c)
{
    for (int i = list->n - 1; i >= 0; i--) {
        const char *path = list->items[i].path;
        const bool cpu =
            c->core >= 0 && core_of(path) == c->core && ew_ends_with(path, "_max_freq");
        const bool gpu =
            c->core < 0 && !c->cap && core_of(path) < 0 && ew_ends_with(path, "/max_freq");
        int64_t v;
        if ((cpu || gpu || (c->max_path && strcmp(path, c->max_path) == 0)) &&
            ew_num_int(list->items[i].value, &v) && v > 0 && v <= MOST_HZ / c->unit)
            return v * c->unit;
    }
    return c->max;
}

static bool will_be_off(const struct ew_power_list *list, int core)
{
    for (int i = 0; i < list->n; i++)
        if (core >= 0 && core_of(list->items[i].path) == core &&
            ew_ends_with(list->items[i].path, "/online"))
            return strcmp(list->items[i].value, "0") == 0;
    return false;
}

/* Adds the clock's new limits; max 0: unchanged. */
static ew_err limit(const struct ew_clock_info *c, int64_t max, int dvfs, struct ew_power_list *out)
{
    const int64_t top = max ? max : coming_max(out, c);
    EW_CHECK(!max || c->max_path, EW_ERR_UNSUPPORTED, "%s: has no file that limits its clock",
             c->name);
    if (max)
        EW_TRY(ew_power_list_set_int(out, c->max_path, max / c->unit));
    if (!c->min_path)
        return EW_OK;
    if (dvfs == 0 && top > 0)
        return ew_power_list_set_int(out, c->min_path, top / c->unit);
    if (dvfs == 1 && c->lowest > 0)
        return ew_power_list_set_int(out, c->min_path, c->lowest / c->unit);
    if (max && c->min > max)
        return ew_power_list_set_int(out, c->min_path, max / c->unit);
    return EW_OK;
}

/* Locks the memory clock if the kernel allows it, as jetson_clocks does. */
static ew_err lock_memory(const struct ew_board *b, const struct ew_clock_info *c, bool lock,
                          struct ew_power_list *out)
{
    static const struct {
        const char *rate, *locked;
    } files[] = {{"sys/kernel/debug/bpmp/debug/clk/emc/rate",
                  "sys/kernel/debug/bpmp/debug/clk/emc/mrq_rate_locked"},
                 {"sys/kernel/debug/clk/override.emc/clk_update_rate",
                  "sys/kernel/debug/clk/override.emc/clk_state"}};
    for (size_t i = 0; i < EW_COUNT(files); i++) {
        if (!ew_root_has(&b->root, files[i].locked))
            continue;
        const int64_t cap = coming_max(out, c), top = cap > 0 ? cap : c->highest;
        if (lock && top > 0)
            EW_TRY(ew_power_list_set_int(out, files[i].rate, top));
        return ew_power_list_set(out, files[i].locked, lock ? "1" : "0");
    }
    return EW_OK;
}

static ew_err want_cores(const struct ew_board *b, int64_t cores, struct ew_power_list *out)
{
    struct ew_cpulist present;
    EW_CHECK(ew_cpulist_read(&b->root, "present", &present), EW_ERR_UNSUPPORTED,
             "the board does not list its cores");
    EW_CHECK(cores <= present.n, EW_ERR_ARG, "%lld cores wanted, the board has %d",
             (long long)cores, present.n);
    for (int i = 0; i < present.n; i++) {
        char path[EW_POWER_PATH];
        snprintf(path, sizeof(path), "sys/devices/system/cpu/cpu%d/online", present.cpu[i]);
        const bool there = ew_root_has(&b->root, path); /* the first core may have no such file */
        EW_CHECK(there || i < cores, EW_ERR_UNSUPPORTED, "cpu%d cannot be switched off here",
                 present.cpu[i]);
        if (there)
            EW_TRY(ew_power_list_set(out, path, i < cores ? "1" : "0"));
    }
    return EW_OK;
}

ew_err ew_powermode_custom(struct ew_board *b, const struct ew_power_want *want,
                           struct ew_power_list *out)
{
    struct ew_clock_info clocks[EW_MAX_CLOCKS];
    int n, cpus = 0, gpus = 0, memories = 0;
    EW_TRY(ew_clocks_read(b, clocks, &n));
    if (want->cores)
        EW_TRY(want_cores(b, want->cores, out));
    for (int i = 0; i < n; i++) {
        const struct ew_clock_info *c = &clocks[i];
        const bool memory = c->cap, cpu = c->core >= 0;
        const int64_t mhz = memory ? want->mem_mhz : cpu ? want->cpu_mhz : want->gpu_mhz;
        int64_t hz = 0;
        if (will_be_off(out, c->core))
            continue;
        cpus += cpu;
        memories += memory;
        gpus += !cpu && !memory;
        if (mhz)
            EW_TRY(choose(c, mhz, &hz));
        if (hz || want->dvfs >= 0)
            EW_TRY(limit(c, hz, memory ? -1 : want->dvfs, out));
        if (memory && want->dvfs >= 0)
            EW_TRY(lock_memory(b, c, want->dvfs == 0, out));
    }
    if (want->fan)
        EW_TRY(ew_powermode_fan(b, out));
    EW_CHECK(!want->cpu_mhz || cpus, EW_ERR_UNSUPPORTED, "no CPU clock that can be set here");
    EW_CHECK(!want->gpu_mhz || gpus, EW_ERR_UNSUPPORTED, "no GPU clock that can be set here");
    EW_CHECK(!want->mem_mhz || memories, EW_ERR_UNSUPPORTED,
             "no memory clock that can be set here");
    return EW_OK;
}

/* ---- Modes of nvpmodel.conf ------------------------------------------------------------------ */

/* The frequency table for a parameter of nvpmodel.conf. */
static void clock_table(struct ew_board *b, const struct ew_nvpmodel *m, const char *param,
                        struct ew_clock_info *c)
{
    *c = (struct ew_clock_info){.name = param, .unit = 1};
    const struct ew_nvpm_setting table = {.param = param, .arg = "FREQ_TABLE"};
    const struct ew_nvpm_path *p = ew_nvpmodel_path(m, &table);
    if (p)
        read_table(b, p->path, c);
}

/* The frequency of a setting: the entry nearest to a nominal cap, the highest for -1, the lowest
 * for a minimum of 0. */
static int64_t clock_value(const struct ew_clock_info *c, const struct ew_nvpm_setting *s)
{
    if (c->n_table == 0)
        return s->value < 0 ? INT32_MAX : s->value;
    if (s->value < 0)
        return c->table[c->n_table - 1];
    if (s->value == 0)
        return c->table[0];
    return nearest(c, s->value);
}

static bool is_gating(const char *arg)
{
    return strstr(arg, "PG_MASK") != NULL;
}

ew_err ew_powermode_nvp(struct ew_board *b, const struct ew_nvpmodel *m,
                        const struct ew_nvpm_mode *mode, struct ew_power_list *out)
{
    for (int i = mode->first; i < mode->first + mode->n; i++) {
        const struct ew_nvpm_setting *s = &m->settings[i];
        const struct ew_nvpm_path *p = ew_nvpmodel_path(m, s);
        EW_CHECK(p, EW_ERR_FORMAT, "nvpmodel.conf: mode %s sets %s %s, which has no file",
                 mode->name, s->param, s->arg);
        int64_t now;
        if (is_gating(s->arg)) {
            const bool same = ew_root_read_int(&b->root, p->path, &now) != EW_OK || now == s->value;
            EW_CHECK(same, EW_ERR_UNSUPPORTED,
                     "mode %s gates parts of the GPU (%s is %lld, wanted %lld), which needs a "
                     "reboot: use nvpmodel -m %lld",
                     mode->name, s->arg, (long long)now, (long long)s->value, (long long)mode->id);
            continue;
        }
        struct ew_clock_info c;
        int64_t value = s->value;
        if (p->clock) {
            clock_table(b, m, s->param, &c);
            value = clock_value(&c, s);
        }
        EW_TRY(ew_power_list_set_int(out, p->path, value));
    }
    return EW_OK;
}

static int64_t either(int64_t wanted, int64_t mode)
{
    return wanted ? wanted : mode;
}

ew_err ew_powermode_named(struct ew_board *b, const struct ew_nvpmodel *m, const char *name,
                          const struct ew_power_want *want, struct ew_power_list *out)
{
    const struct ew_nvpm_mode *mode = ew_nvpmodel_find(m, name);
    if (mode) {
        EW_TRY(ew_powermode_nvp(b, m, mode, out));
        return ew_powermode_custom(b, want, out);
    }
    for (int i = 0; b->profile && i < b->profile->n_modes; i++) {
        const struct ew_profile_mode *p = &b->profile->modes[i];
        const struct ew_power_want all = {either(want->cores, p->cores),
                                          either(want->cpu_mhz, p->cpu_mhz),
                                          either(want->gpu_mhz, p->gpu_mhz),
                                          either(want->mem_mhz, p->mem_mhz),
                                          want->dvfs,
                                          want->fan};
        if (strcmp(p->name, name) == 0)
            return ew_powermode_custom(b, &all, out);
    }
    return ew_fail(EW_ERR_NOT_FOUND, "power: no mode '%s' on this board", name);
}
