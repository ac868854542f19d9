/* SPDX-License-Identifier: Apache-2.0 */
/* Output of tegrastats, live or from a log (one line per reading), if the caller asks for it: on
 * the board itself the other sensors read the same chips without a second process.  Its averages
 * are ignored: they start with tegrastats. */
#include <stdio.h>
#include <string.h>

#include "device/board.h"
#include "device/line_reader.h"
#include "device/sensor.h"
#include "device/tegrastats.h"

#define FIRST_LINE_MS 3000 /* tegrastats prints its first line after one interval */
#define MAX_CHANNELS  (2 * EW_TEGRA_CORES + 2 * EW_TEGRA_ITEMS + 8)

struct state {
    struct ew_line_reader lines;
    bool live;
    int first, n; /* channels first .. first + n - 1 */
    char first_line[EW_LINE_READER_BYTES];
    bool pending; /* the first line has not been returned yet */
};

/* Maps a channel to a value of the line. */
struct place {
    const char *name;
    enum ew_quantity quantity;
    struct ew_sample_value value;
};

/* Lists the values of a line in a fixed order, with names if `names` is set. */
static int list_figures(const struct ew_tegrastats *t, struct place *out, char (*names)[64])
{
    const struct place fixed[] = {
        {"tegra.mem.used", EW_QUANTITY_BYTES, t->ram_used},
        {"tegra.mem.total", EW_QUANTITY_BYTES, t->ram_total},
        {"tegra.mem.swap_used", EW_QUANTITY_BYTES, t->swap_used},
        {"tegra.gpu.load", EW_QUANTITY_LOAD, t->gpu_load},
        {"tegra.gpu.freq", EW_QUANTITY_FREQ, t->gpu_mhz},
        {"tegra.emc.load", EW_QUANTITY_LOAD, t->emc_load},
        {"tegra.emc.freq", EW_QUANTITY_FREQ, t->emc_mhz},
    };
    int n = 0;
    for (size_t i = 0; i < EW_COUNT(fixed); i++)
        out[n++] = fixed[i];
    for (int i = 0; i < t->n_cores; i++) {
        snprintf(names[n], sizeof(names[n]), "tegra.cpu%d.load", i);
        out[n] = (struct place){names[n], EW_QUANTITY_LOAD, t->core_load[i]};
        n++;
        snprintf(names[n], sizeof(names[n]), "tegra.cpu%d.freq", i);
        out[n] = (struct place){names[n], EW_QUANTITY_FREQ, t->core_mhz[i]};
        n++;
    }
    for (int i = 0; i < t->n_temps; i++, n++) {
        snprintf(names[n], sizeof(names[n]), "tegra.temp.%s", t->temps[i].name);
        out[n] = (struct place){names[n], EW_QUANTITY_TEMP, t->temps[i].value};
    }
    for (int i = 0; i < t->n_rails; i++, n++) {
        snprintf(names[n], sizeof(names[n]), "power.%s", t->rails[i].name);
        out[n] = (struct place){names[n], EW_QUANTITY_POWER, t->rails[i].value};
    }
    return n;
}

static ew_err add_channels(struct ew_probe *p, struct state *s, const char *source)
{
    struct ew_tegrastats t;
    struct place figures[MAX_CHANNELS];
    char names[MAX_CHANNELS][64];
    if (!ew_tegrastats_parse(s->first_line, &t))
        return ew_probe_missing(p, EW_ABSENT_UNSUPPORTED, "%s: no tegrastats line", source);
    s->n = list_figures(&t, figures, names);
    s->first = p->board->n_channels;
    for (int i = 0; i < s->n; i++) {
        struct ew_channel c = {.quantity = figures[i].quantity, .quality = EW_QUALITY_MEASURED};
        int index;
        EW_TRY(ew_probe_text(p, &c.name, "%s", figures[i].name));
        EW_TRY(ew_probe_text(p, &c.source, "%s", source));
        EW_TRY(ew_probe_add(p, &c, &index));
    }
    s->pending = true;
    return EW_OK;
}

static bool next_line(struct state *s, char *line, size_t size)
{
    while (ew_line_reader_next(&s->lines, line, size))
        if (line[0] && line[0] != '#')
            return true;
    return false;
}

static ew_err probe(struct ew_probe *p, void **state)
{
    const char *from = p->opts->tegrastats;
    if (!from)
        return EW_OK; /* not requested */
    struct state *s = ew_arena_alloc(p->arena, sizeof(*s));
    EW_CHECK(s, EW_ERR_MEMORY, "no memory");
    s->lines.fd = -1;
    *state = s;
    s->live = strcmp(from, "live") == 0;
    const char *what = s->live ? "tegrastats --interval 100" : from;
    EW_TRY(ew_fail_in(ew_line_reader_open(what, !s->live, &s->lines), "tegrastats"));
    ew_line_reader_wait(&s->lines, FIRST_LINE_MS);
    if (!next_line(s, s->first_line, sizeof(s->first_line)))
        return ew_probe_missing(p, EW_ABSENT_NO_SENSOR, "%s: printed no line", what);
    const char *source;
    EW_TRY(ew_probe_text(p, &source, s->live ? "%s" : "tegrastats log %s", what));
    return add_channels(p, s, source);
}

/* Assigns values by name: lines may lack values, and have others than the first line. */
static void give(struct state *s, const char *line, struct ew_sample_value *values)
{
    struct ew_tegrastats first, now;
    struct place want[MAX_CHANNELS], have[MAX_CHANNELS];
    char want_names[MAX_CHANNELS][64], have_names[MAX_CHANNELS][64];
    ew_tegrastats_parse(s->first_line, &first);
    if (!ew_tegrastats_parse(line, &now)) {
        for (int i = 0; i < s->n; i++)
            values[s->first + i] = ew_sample_value_absent(EW_ABSENT_BAD);
        return;
    }
    list_figures(&first, want, want_names);
    const int n = list_figures(&now, have, have_names);
    for (int i = 0; i < s->n; i++) {
        struct ew_sample_value v = ew_sample_value_absent(EW_ABSENT_LOST);
        for (int k = 0; k < n; k++)
            if (strcmp(want[i].name, have[k].name) == 0)
                v = have[k].value;
        values[s->first + i] = v;
    }
}

static void read_lines(void *state, int64_t now_ns, struct ew_sample_value *values)
{
    struct state *s = state;
    char line[EW_LINE_READER_BYTES], newer[EW_LINE_READER_BYTES];
    bool got = s->pending;
    ew_line_reader_begin(&s->lines);
    if (got)
        snprintf(line, sizeof(line), "%s", s->first_line);
    else
        got = s->n > 0 && next_line(s, line, sizeof(line));
    s->pending = false;
    while (got && s->live && next_line(s, newer, sizeof(newer)))
        memcpy(line, newer, sizeof(line));
    for (int i = 0; i < s->n && !got; i++)
        values[s->first + i] =
            ew_sample_value_absent(s->live && !s->lines.ended ? EW_ABSENT_STALE : EW_ABSENT_LOST);
    if (got)
        give(s, line, values);
}

static void close_feed(void *state)
{
    ew_line_reader_close(&((struct state *)state)->lines);
}

const struct ew_sensor ew_sensor_tegrastats = {
    .name = "tegrastats",
    .what = "tegrastats' lines",
    .probe = probe,
    .read = read_lines,
    .close = close_feed,
};
