/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of the machine from /proc/meminfo.  On Jetsons CPU and GPU share it; the GPU driver's part
 * is NvMapMemUsed, which newer releases lack. */
#include <stdlib.h>
#include <string.h>

#include "device/sensor.h"

enum { TOTAL, AVAILABLE, SWAP_TOTAL, SWAP_FREE, NVMAP, N_KEYS };

static const char *const keys[N_KEYS] = {
    "MemTotal:", "MemAvailable:", "SwapTotal:", "SwapFree:", "NvMapMemUsed:"};

struct state {
    struct ew_source file;
    int total, available, used, swap_used, nvmap; /* channels; nvmap -1: not on this board */
};

static ew_err add(struct ew_probe *p, struct state *s, const char *name, enum ew_quality quality,
                  int *index)
{
    const struct ew_channel c = {name, EW_QUANTITY_BYTES, quality, s->file.path, 1024};
    return ew_probe_add(p, &c, index);
}

static ew_err probe(struct ew_probe *p, void **state)
{
    struct state *s = ew_arena_alloc(p->arena, sizeof(*s));
    EW_CHECK(s, EW_ERR_MEMORY, "no memory");
    if (!ew_source_open(p, &s->file, "proc/meminfo"))
        return ew_probe_missing(p, EW_ABSENT_NO_SENSOR, "no /proc/meminfo");
    *state = s;
    s->nvmap = -1;
    EW_TRY(add(p, s, "mem.total", EW_QUALITY_MEASURED, &s->total));
    EW_TRY(add(p, s, "mem.available", EW_QUALITY_MEASURED, &s->available));
    EW_TRY(add(p, s, "mem.used", EW_QUALITY_DERIVED, &s->used));
    EW_TRY(add(p, s, "mem.swap_used", EW_QUALITY_DERIVED, &s->swap_used));
    char text[8192];
    if (ew_source_read(&s->file, text, sizeof(text)) == EW_ABSENT_NOT && strstr(text, keys[NVMAP]))
        EW_TRY(add(p, s, "mem.nvmap", EW_QUALITY_MEASURED, &s->nvmap));
    return EW_OK;
}

/* Bytes of each key; absent if the file lacks it. */
static void parse(const char *text, struct ew_sample_value *out)
{
    for (int k = 0; k < N_KEYS; k++) {
        out[k] = ew_sample_value_absent(EW_ABSENT_UNSUPPORTED);
        const char *p = strstr(text, keys[k]);
        if (!p)
            continue;
        p += strlen(keys[k]);
        char *end;
        const unsigned long long kilobytes = strtoull(p, &end, 10);
        if (end > p)
            out[k] = ew_sample_value_of((double)kilobytes * 1024.0);
    }
}

static struct ew_sample_value minus(struct ew_sample_value a, struct ew_sample_value b)
{
    if (!ew_sample_value_is(a))
        return a;
    return ew_sample_value_is(b) ? ew_sample_value_of(a.v - b.v) : b;
}

static void read_memory(void *state, int64_t now_ns, struct ew_sample_value *values)
{
    const struct state *s = state;
    char text[8192];
    struct ew_sample_value v[N_KEYS];
    const enum ew_absent absent = ew_source_read(&s->file, text, sizeof(text));
    parse(text, v);
    for (int k = 0; k < N_KEYS && absent != EW_ABSENT_NOT; k++)
        v[k] = ew_sample_value_absent(absent);
    values[s->total] = v[TOTAL];
    values[s->available] = v[AVAILABLE];
    values[s->used] = minus(v[TOTAL], v[AVAILABLE]);
    values[s->swap_used] = minus(v[SWAP_TOTAL], v[SWAP_FREE]);
    if (s->nvmap >= 0)
        values[s->nvmap] = v[NVMAP];
}

static void close_files(void *state)
{
    ew_source_close(&((struct state *)state)->file);
}

const struct ew_sensor ew_sensor_memory = {
    .name = "memory",
    .what = "memory use",
    .probe = probe,
    .read = read_memory,
    .close = close_files,
};
