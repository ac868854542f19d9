/* SPDX-License-Identifier: Apache-2.0 */
/* The checks of `edgewise doctor`, one function each. */
#include "cli/doctor_checks.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "device/cpu_facts.h"
#include "device/nvpmodel.h"

#define BUSY_SHARE  0.1  /* share of the CPU used by others that disturbs measurements */
#define WARM_C      70.0 /* boards begin to throttle at about this temperature */
#define MEMORY_LOW  0.15 /* share of memory that is available */
#define SWAP_IN_USE 0.01

__attribute__((format(printf, 4, 5))) static struct ew_finding *
add(struct ew_checkup *c, const char *what, enum ew_finding_kind kind, const char *fmt, ...)
{
    EW_ASSERT(c->n < EW_MAX_FINDINGS);
    struct ew_finding *f = &c->v[c->n++];
    va_list ap;
    *f = (struct ew_finding){.what = what, .kind = kind};
    va_start(ap, fmt);
    vsnprintf(f->text, sizeof(f->text), fmt, ap);
    va_end(ap);
    return f;
}

static void check_governor(const struct ew_cpu_facts *facts, struct ew_checkup *c)
{
    if (!facts->governor) {
        add(c, "governor", EW_FINDING_KNOW, "clocks cannot be set here: the system controls them");
        return;
    }
    if (strcmp(facts->governor, "performance") == 0) {
        add(c, "governor", EW_FINDING_FINE, "performance: clocks stay at their highest");
        return;
    }
    struct ew_finding *f = add(
        c, "governor", EW_FINDING_CHANGE,
        "%.30s: clocks follow the load, so short runs are slower than long ones", facts->governor);
    snprintf(f->command, sizeof(f->command), "sudo edgewise power set --dvfs off");
}

static void check_clocks(const struct ew_machine_state *g, bool jetson, struct ew_checkup *c)
{
    if (isnan(g->mhz_share))
        return;
    if (g->mhz_share > 0.99) {
        add(c, "highest clock", EW_FINDING_FINE, "the CPU may use its highest clock");
        return;
    }
    struct ew_finding *f = add(c, "highest clock", EW_FINDING_CHANGE,
                               "limited to %.0f %% of the CPU's highest clock, by a power mode or "
                               "a limit that was not restored",
                               100 * g->mhz_share);
    snprintf(f->command, sizeof(f->command), "%s",
             jetson ? "edgewise power list; sudo edgewise power set MAXN"
                    : "sudo edgewise power restore; edgewise power show");
}

static void check_cores(const struct ew_board *b, struct ew_checkup *c)
{
    if (b->id.cores <= 0)
        return;
    if (b->id.online == b->id.cores) {
        add(c, "cores", EW_FINDING_FINE, "all %d are on", b->id.cores);
        return;
    }
    struct ew_finding *f =
        add(c, "cores", EW_FINDING_CHANGE, "only %d of %d are on", b->id.online, b->id.cores);
    snprintf(f->command, sizeof(f->command), "sudo edgewise power set --cores %d", b->id.cores);
}

static void check_load(const struct ew_machine_state *g, struct ew_checkup *c)
{
    if (isnan(g->busy))
        return;
    if (g->busy < BUSY_SHARE) {
        add(c, "other programs", EW_FINDING_FINE, "use %.0f %% of the CPU", 100 * g->busy);
        return;
    }
    struct ew_finding *f =
        add(c, "other programs", EW_FINDING_CHANGE,
            "use %.0f %% of the CPU: times will be higher and spread", 100 * g->busy);
    snprintf(f->command, sizeof(f->command), "top -b -n 1 | head -n 15");
}

static void check_heat(const struct ew_machine_state *g, struct ew_checkup *c)
{
    if (!isnan(g->temp_c) && g->temp_c >= WARM_C)
        add(c, "temperature", EW_FINDING_CHANGE,
            "%.0f C already: under load clocks will be lowered; let it cool, or turn its fan up",
            g->temp_c);
    else if (!isnan(g->temp_c))
        add(c, "temperature", EW_FINDING_FINE, "%.0f C at the hottest sensor", g->temp_c);
    if (g->throttle > 0) /* false for NaN */
        add(c, "throttling", EW_FINDING_CHANGE,
            "counters of throttling are not zero: look at the supply and the cooling "
            "(edgewise probe shows which)");
}

/* A value of /proc/meminfo ("SwapTotal:  123 kB"); -1: missing. */
static double meminfo(const char *text, const char *key)
{
    const char *p = strstr(text, key);
    long long kb;
    return p && sscanf(p + strlen(key), ": %lld", &kb) == 1 ? (double)kb : -1;
}

static void check_memory(const struct ew_board *b, struct ew_checkup *c)
{
    char text[8192];
    if (ew_root_read(&b->root, "proc/meminfo", text, sizeof(text)) != EW_OK)
        return;
    const double total = meminfo(text, "MemTotal"), free_kb = meminfo(text, "MemAvailable");
    const double swap = meminfo(text, "SwapTotal"), swap_free = meminfo(text, "SwapFree");
    if (total > 0 && free_kb >= 0) {
        const double share = free_kb / total;
        add(c, "memory", share < MEMORY_LOW ? EW_FINDING_CHANGE : EW_FINDING_FINE,
            "%.1f of %.1f GiB available%s", free_kb / 1048576, total / 1048576,
            share < MEMORY_LOW ? ": end what is not needed (a desktop takes up to 1 GiB)" : "");
    }
    if (swap > 0 && swap - swap_free > SWAP_IN_USE * swap) {
        struct ew_finding *f = add(c, "swap", EW_FINDING_CHANGE,
                                   "%.1f GiB are in use: reading pages back costs milliseconds",
                                   (swap - swap_free) / 1048576);
        snprintf(f->command, sizeof(f->command), "sudo swapoff -a && sudo swapon -a");
    } else if (swap > 0) {
        add(c, "swap", EW_FINDING_FINE, "present and empty");
    }
}

static void check_sensors(const struct ew_board *b, bool captured, struct ew_checkup *c)
{
    if (b->total.power >= 0 || b->total.energy >= 0) {
        add(c, "power sensor", EW_FINDING_FINE, "%.200s", b->total.rails);
        return;
    }
    for (int i = 0; i < b->n_missing && !captured; i++) {
        const struct ew_missing *m = &b->missing[i];
        if (m->absent != EW_ABSENT_NO_PERMISSION)
            continue;
        struct ew_finding *f = add(c, "power sensor", EW_FINDING_CHANGE,
                                   "%.60s is for root only, so energy is not measured", m->what);
        const bool rapl = strstr(m->sensor, "rapl") != NULL;
        snprintf(f->command, sizeof(f->command), "%s",
                 rapl ? "sudo chmod -R a+r /sys/class/powercap/intel-rapl*"
                      : "run the measurement as root");
        return;
    }
    add(c, "power sensor", EW_FINDING_KNOW,
        "none: energy needs an external meter (--power-from of monitor and bench)");
}

static void check_rights(bool captured, struct ew_checkup *c)
{
    if (captured || geteuid() == 0)
        return;
    struct ew_finding *f = add(c, "page cache", EW_FINDING_KNOW,
                               "cold reads (--cold of train) need root to empty the page cache");
    snprintf(f->command, sizeof(f->command), "sudo -E edgewise ...");
}

static void check_machine(const struct ew_board *b, const struct ew_machine_state *g,
                          struct ew_checkup *c)
{
    if (b->id.virtual_machine)
        add(c, "virtual machine", EW_FINDING_KNOW,
            "other guests of this host cannot be seen: repeat measurements, and compare in "
            "interleaved rounds (bench A B)");
    if (g->free_disk_bytes != EW_INT_ABSENT && g->free_disk_bytes < ((int64_t)1 << 30))
        add(c, "disk", EW_FINDING_CHANGE, "%.0f MiB free here: a study may fill it",
            (double)g->free_disk_bytes / 1048576);
}

ew_err ew_checkup(struct ew_board *b, const struct ew_machine_state *g, bool captured,
                  struct ew_checkup *out)
{
    struct ew_cpu_facts facts;
    struct ew_nvpmodel nvp = {0};
    *out = (struct ew_checkup){0};
    EW_TRY(ew_cpu_facts_read(b, &facts));
    const bool jetson = ew_nvpmodel_read(&b->root, &b->arena, &nvp) == EW_OK;
    check_governor(&facts, out);
    check_clocks(g, jetson, out);
    check_cores(b, out);
    check_load(g, out);
    check_heat(g, out);
    check_memory(b, out);
    check_sensors(b, captured, out);
    check_rights(captured, out);
    check_machine(b, g, out);
    return EW_OK;
}
