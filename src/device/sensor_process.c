/* SPDX-License-Identifier: Apache-2.0 */
/* One process: CPU use, resident memory, bytes read from and written to storage, if the caller
 * names it.  Other sensors cover the whole machine. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "device/board.h"
#include "device/sensor.h"

struct state {
    struct ew_source stat, io;
    int load, rss, read, write; /* channels */
    struct ew_counter cpu_s, read_bytes, write_bytes;
    double tick_s;
    double page_bytes;
};

static ew_err add(struct ew_probe *p, const char *name, enum ew_quantity q, const char *source,
                  int *index)
{
    const bool memory = q == EW_QUANTITY_BYTES;
    const struct ew_channel c = {name, q, memory ? EW_QUALITY_MEASURED : EW_QUALITY_DERIVED, source,
                                 memory ? 4096 : 0};
    return ew_probe_add(p, &c, index);
}

static ew_err probe(struct ew_probe *p, void **state)
{
    if (p->opts->pid <= 0)
        return EW_OK; /* not requested */
    struct state *s = ew_arena_alloc(p->arena, sizeof(*s));
    EW_CHECK(s, EW_ERR_MEMORY, "no memory");
    if (!ew_source_open(p, &s->stat, "proc/%d/stat", p->opts->pid))
        return ew_probe_missing(p, EW_ABSENT_NO_SENSOR, "no process %d", p->opts->pid);
    *state = s;
    ew_source_open(p, &s->io, "proc/%d/io", p->opts->pid);
    s->tick_s = 1.0 / (double)sysconf(_SC_CLK_TCK);
    s->page_bytes = (double)sysconf(_SC_PAGESIZE);
    EW_TRY(add(p, "process.load", EW_QUANTITY_LOAD, s->stat.path, &s->load));
    EW_TRY(add(p, "process.rss", EW_QUANTITY_BYTES, s->stat.path, &s->rss));
    EW_TRY(add(p, "process.read", EW_QUANTITY_RATE, s->io.path, &s->read));
    return add(p, "process.write", EW_QUANTITY_RATE, s->io.path, &s->write);
}

/* Field `want` of proc/PID/stat, numbered as in proc(5); the name in parentheses may contain
 * anything. */
static bool stat_field(const char *text, int want, double *out)
{
    const char *p = strrchr(text, ')');
    for (int i = 2; p && i < want; i++)
        p = strchr(p + 1, ' ');
    if (!p)
        return false;
    char *end;
    *out = (double)strtoull(p + 1, &end, 10);
    return end > p + 1;
}

static bool key_value(const char *text, const char *key, double *out)
{
    const char *p = strstr(text, key);
    if (!p)
        return false;
    p += strlen(key);
    char *end;
    *out = (double)strtoull(p, &end, 10);
    return end > p;
}

static void read_stat(struct state *s, int64_t now_ns, struct ew_sample_value *values)
{
    char text[1024];
    double user, sys, pages;
    const enum ew_absent absent = ew_source_read(&s->stat, text, sizeof(text));
    if (absent != EW_ABSENT_NOT || !stat_field(text, 14, &user) || !stat_field(text, 15, &sys) ||
        !stat_field(text, 24, &pages)) {
        const enum ew_absent why = absent == EW_ABSENT_NOT ? EW_ABSENT_BAD : EW_ABSENT_LOST;
        values[s->load] = values[s->rss] = ew_sample_value_absent(why);
        return;
    }
    struct ew_sample_value load = ew_counter_rate(&s->cpu_s, (user + sys) * s->tick_s, now_ns);
    load.v *= 100.0;
    values[s->load] = load;
    values[s->rss] = ew_sample_value_of(pages * s->page_bytes);
}

static void read_process(void *state, int64_t now_ns, struct ew_sample_value *values)
{
    struct state *s = state;
    read_stat(s, now_ns, values);
    char text[1024];
    double in, out;
    const enum ew_absent absent = ew_source_read(&s->io, text, sizeof(text));
    if (absent != EW_ABSENT_NOT || !key_value(text, "\nread_bytes:", &in) ||
        !key_value(text, "\nwrite_bytes:", &out)) {
        const enum ew_absent why = absent == EW_ABSENT_NOT ? EW_ABSENT_LOST : absent;
        values[s->read] = values[s->write] = ew_sample_value_absent(why);
        return;
    }
    values[s->read] = ew_counter_rate(&s->read_bytes, in, now_ns);
    values[s->write] = ew_counter_rate(&s->write_bytes, out, now_ns);
}

static void close_files(void *state)
{
    struct state *s = state;
    ew_source_close(&s->stat);
    ew_source_close(&s->io);
}

const struct ew_sensor ew_sensor_process = {
    .name = "process",
    .what = "a process",
    .probe = probe,
    .read = read_process,
    .close = close_files,
};
