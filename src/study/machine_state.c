/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a machine before a run: load of other programs, temperature, clocks, memory and
 * disk space. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "device/powermode.h"
#include "study/machine.h"

double ew_machine_cpu_s(const struct ew_board *b)
{
    char text[16384];
    unsigned long long user, nice, system, idle, wait, irq, soft, steal;
    if (ew_root_read(&b->root, "proc/stat", text, sizeof(text)) != EW_OK ||
        sscanf(text, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &user, &nice, &system, &idle,
               &wait, &irq, &soft, &steal) != 8)
        return NAN;
    const long ticks = sysconf(_SC_CLK_TCK);
    return (double)(user + nice + system + irq + soft) / (double)(ticks > 0 ? ticks : 100);
}

/* Highest allowed CPU clock over the highest that the hardware has. */
static double mhz_share(struct ew_board *b)
{
    struct ew_clock_info *clocks = calloc(EW_MAX_CLOCKS, sizeof(*clocks));
    int n = 0;
    double share = NAN;
    if (clocks && ew_clocks_read(b, clocks, &n) == EW_OK)
        for (int i = 0; i < n; i++)
            if (clocks[i].core >= 0 && clocks[i].max > 0 && clocks[i].highest > 0)
                share = fmin(share, (double)clocks[i].max / (double)clocks[i].highest);
    free(clocks);
    return share;
}

static bool starts(const char *name, const char *with)
{
    return strncmp(name, with, strlen(with)) == 0;
}

static void take(struct ew_machine_state *g, const struct ew_channel *c, double v, int *clocks)
{
    if (c->quantity == EW_QUANTITY_TEMP)
        g->temp_c = fmax(g->temp_c, v);
    else if (starts(c->name, "throttle."))
        g->throttle = isnan(g->throttle) ? v : g->throttle + v;
    else if (c->quantity == EW_QUANTITY_FREQ && starts(c->name, "cpu")) {
        g->cpu_mhz = *clocks ? g->cpu_mhz + v : v;
        (*clocks)++;
    } else if (strcmp(c->name, "cpu.load") == 0)
        g->busy = v / 100;
    else if (strcmp(c->name, "mem.available") == 0)
        g->free_memory_bytes = (int64_t)v;
}

static int64_t free_disk(const char *folder)
{
    struct statvfs v;
    return statvfs(folder, &v) == 0 ? (int64_t)v.f_bavail * (int64_t)v.f_frsize : EW_INT_ABSENT;
}

ew_err ew_machine_state_read(struct ew_board *b, const char *folder, double seconds,
                             struct ew_machine_state *out)
{
    *out = (struct ew_machine_state){.busy = NAN,
                                     .temp_c = NAN,
                                     .cpu_mhz = NAN,
                                     .throttle = NAN,
                                     .mhz_share = mhz_share(b),
                                     .free_memory_bytes = EW_INT_ABSENT,
                                     .free_disk_bytes = free_disk(folder)};
    struct ew_sample_value *values = calloc((size_t)b->n_channels + 1, sizeof(*values));
    EW_CHECK(values, EW_ERR_MEMORY, "no memory for %d values", b->n_channels);
    ew_board_read(b, values);
    const struct timespec wait = {.tv_sec = (time_t)seconds,
                                  .tv_nsec = (long)(1e9 * (seconds - floor(seconds)))};
    nanosleep(&wait, NULL);
    ew_board_read(b, values);
    int clocks = 0;
    for (int i = 0; i < b->n_channels; i++)
        if (ew_sample_value_is(values[i]))
            take(out, &b->channels[i], values[i].v, &clocks);
    if (clocks)
        out->cpu_mhz /= clocks;
    free(values);
    return EW_OK;
}

bool ew_machine_state_noise(const struct ew_machine_state *g, const struct ew_noise_limits *l,
                            char out[EW_NOISE_CHARS])
{
    int n = 0;
    out[0] = '\0';
    if (g->busy > l->busy)
        n += snprintf(out + n, EW_NOISE_CHARS - (size_t)n, "other programs used %.0f %% of the CPU",
                      100 * g->busy);
    if (l->temp_c > 0 && g->temp_c > l->temp_c)
        n += snprintf(out + n, EW_NOISE_CHARS - (size_t)n, "%s%.0f C", n ? "; " : "", g->temp_c);
    return n > 0;
}
