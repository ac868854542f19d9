/* SPDX-License-Identifier: Apache-2.0 */
/* CPU load by core, and the number of online cores, from /proc/stat.  Clocks are in sensor_cpufreq.
 *
 * Load since the last reading = 1 - idle / all, where idle includes iowait (proc(5)).  An offline
 * core has no line; its counters restart when it is online again. */
#include <stdlib.h>
#include <string.h>

#include "device/cpulist.h"
#include "device/sensor.h"

#define LINE_BYTES 160 /* ten 64-bit counters, rounded up */

struct core {
    int cpu; /* -1: all cores */
    int channel;
    uint64_t all, idle;
    bool known; /* has a previous reading */
    bool seen;  /* present in this reading */
};

struct state {
    struct ew_source stat;
    struct core *cores; /* [0] is all cores */
    int n, online;
    char *text;
    size_t size;
};

static ew_err add_core(struct ew_probe *p, struct state *s, int cpu)
{
    struct ew_channel c = {
        .quantity = EW_QUANTITY_LOAD, .quality = EW_QUALITY_DERIVED, .source = s->stat.path};
    if (cpu < 0)
        c.name = "cpu.load";
    else
        EW_TRY(ew_probe_text(p, &c.name, "cpu%d.load", cpu));
    struct core *core = &s->cores[s->n++];
    core->cpu = cpu;
    return ew_probe_add(p, &c, &core->channel);
}

static ew_err probe(struct ew_probe *p, void **state)
{
    struct state *s = ew_arena_alloc(p->arena, sizeof(*s));
    struct ew_cpulist *list = ew_arena_alloc(p->arena, sizeof(*list));
    EW_CHECK(s && list, EW_ERR_MEMORY, "no memory");
    if (!ew_source_open(p, &s->stat, "proc/stat"))
        return ew_probe_missing(p, EW_ABSENT_NO_SENSOR, "no /proc/stat");
    *state = s;
    if (!ew_cpulist_read(p->root, "present", list))
        list->n = 0; /* only the total */
    s->size = (size_t)(list->n + 2) * LINE_BYTES;
    s->text = ew_arena_alloc(p->arena, s->size);
    s->cores = ew_arena_array(p->arena, (size_t)list->n + 1, sizeof(*s->cores));
    EW_CHECK(s->text && s->cores, EW_ERR_MEMORY, "no memory for %d cores", list->n);
    EW_TRY(add_core(p, s, -1));
    for (int i = 0; i < list->n; i++)
        EW_TRY(add_core(p, s, list->cpu[i]));
    const struct ew_channel online = {"cpu.online", EW_QUANTITY_COUNT, EW_QUALITY_MEASURED,
                                      s->stat.path, 1};
    return ew_probe_add(p, &online, &s->online);
}

/* user nice system idle iowait irq softirq steal; guest time is part of user.  False: a counter is
 * missing. */
static bool parse_counters(const char *p, uint64_t *all, uint64_t *idle)
{
    *all = *idle = 0;
    for (int i = 0; i < 8; i++) {
        char *end;
        const unsigned long long v = strtoull(p, &end, 10);
        if (end == p)
            return i >= 4;
        *all += v;
        if (i == 3 || i == 4)
            *idle += v;
        p = end;
    }
    return true;
}

static struct ew_sample_value load_of(struct core *core, const char *counters)
{
    uint64_t all, idle;
    if (!parse_counters(counters, &all, &idle))
        return ew_sample_value_absent(EW_ABSENT_BAD);
    const struct core before = *core;
    core->all = all;
    core->idle = idle;
    core->known = true;
    if (!before.known)
        return ew_sample_value_absent(EW_ABSENT_FIRST);
    if (all < before.all || idle < before.idle) /* the core was off, or idle was corrected */
        return ew_sample_value_absent(EW_ABSENT_BAD);
    if (all == before.all)
        return ew_sample_value_absent(EW_ABSENT_STILL);
    const double share = (double)(idle - before.idle) / (double)(all - before.all);
    return ew_sample_value_of(100.0 * (1.0 - (share < 1.0 ? share : 1.0)));
}

static struct core *find(struct state *s, int cpu)
{
    for (int i = 0; i < s->n; i++)
        if (s->cores[i].cpu == cpu)
            return &s->cores[i];
    return NULL;
}

static void read_cores(void *state, int64_t now_ns, struct ew_sample_value *values)
{
    struct state *s = state;
    const enum ew_absent absent = ew_source_read(&s->stat, s->text, s->size);
    for (int i = 0; i < s->n; i++)
        s->cores[i].seen = false;
    int on = 0;
    for (char *line = s->text; absent == EW_ABSENT_NOT && strncmp(line, "cpu", 3) == 0;) {
        char *end;
        const bool one = line[3] >= '0' && line[3] <= '9';
        const long cpu = one ? strtol(line + 3, &end, 10) : -1;
        struct core *core = cpu < 1 << 16 ? find(s, (int)cpu) : NULL;
        if (core) {
            core->seen = true;
            values[core->channel] = load_of(core, one ? end : line + 3);
        }
        on += one;
        line += strcspn(line, "\n");
        line += *line == '\n';
    }
    for (int i = 0; i < s->n; i++)
        if (!s->cores[i].seen) {
            values[s->cores[i].channel] =
                ew_sample_value_absent(absent == EW_ABSENT_NOT ? EW_ABSENT_OFF : absent);
            s->cores[i].known = false;
        }
    values[s->online] =
        absent == EW_ABSENT_NOT ? ew_sample_value_of(on) : ew_sample_value_absent(absent);
}

static void close_files(void *state)
{
    ew_source_close(&((struct state *)state)->stat);
}

const struct ew_sensor ew_sensor_cpu = {
    .name = "cpu",
    .what = "CPU use",
    .probe = probe,
    .read = read_cores,
    .close = close_files,
};
