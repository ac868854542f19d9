/* SPDX-License-Identifier: Apache-2.0 */
/* Channels that are each one number in one file. */
#include "device/gauge.h"

#include <string.h>

ew_err ew_gauges_add(struct ew_probe *p, struct ew_gauges *g, const struct ew_gauge *form,
                     struct ew_channel *c, const char *path, bool *added)
{
    struct ew_gauge gauge = *form;
    *added = ew_source_open(p, &gauge.file, "%s", path);
    if (!*added)
        return EW_OK;
    c->source = gauge.file.path;
    if (g->n == g->cap) {
        const int cap = g->cap ? 2 * g->cap : 16;
        struct ew_gauge *list = ew_arena_array(p->arena, (size_t)cap, sizeof(*list));
        if (!list)
            ew_source_close(&gauge.file);
        EW_CHECK(list, EW_ERR_MEMORY, "no memory for %d gauges", cap);
        if (g->n)
            memcpy(list, g->list, (size_t)g->n * sizeof(*list));
        g->list = list;
        g->cap = cap;
    }
    g->list[g->n++] = gauge; /* from here on close() has it */
    return ew_probe_add(p, c, &g->list[g->n - 1].channel);
}

static void read_all(struct ew_gauges *g, struct ew_sample_value *values)
{
    for (int i = 0; i < g->n; i++) {
        const struct ew_gauge *one = &g->list[i];
        struct ew_sample_value v = ew_source_value(&one->file, one->scale);
        const bool checked = one->lowest < one->highest;
        if (ew_sample_value_is(v) && checked && (v.v < one->lowest || v.v > one->highest))
            v = ew_sample_value_absent(EW_ABSENT_BAD);
        values[one->channel] = v;
    }
}

static void close_all(struct ew_gauges *g)
{
    for (int i = 0; i < g->n; i++)
        ew_source_close(&g->list[i].file);
}

void ew_gauges_sensor_read(void *state, int64_t now_ns, struct ew_sample_value *values)
{
    read_all(state, values);
}

void ew_gauges_sensor_close(void *state)
{
    close_all(state);
}
