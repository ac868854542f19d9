/* SPDX-License-Identifier: Apache-2.0 */
/* An external power meter: lines of `[timestamp] watts` from a command, a pipe, a growing file or
 * standard input.  A value is present only if a line has arrived since the last reading, so that a
 * slow meter causes long gaps in an energy figure instead of many equal samples. */
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "device/board.h"
#include "device/line_reader.h"
#include "device/meter.h"
#include "device/sensor.h"

struct state {
    struct ew_line_reader lines;
    int channel;
};

bool ew_meter_parse(const char *line, double *watts)
{
    char text[128];
    snprintf(text, sizeof(text), "%s", line);
    char *save = NULL, *last = NULL;
    int words = 0;
    for (char *w = strtok_r(text, " \t,;\r", &save); w; w = strtok_r(NULL, " \t,;\r", &save)) {
        if (strcmp(w, "W") == 0)
            break;
        last = w;
        words++;
    }
    if (words < 1 || words > 3) /* a timestamp may be a date and a time */
        return false;
    const size_t n = strlen(last);
    if (n > 1 && last[n - 1] == 'W')
        last[n - 1] = '\0';
    return ew_num_float(last, watts) && *watts >= 0 && *watts < 1e6;
}

static ew_err probe(struct ew_probe *p, void **state)
{
    if (!p->opts->power_from)
        return EW_OK; /* not requested */
    struct state *s = ew_arena_alloc(p->arena, sizeof(*s));
    EW_CHECK(s, EW_ERR_MEMORY, "no memory");
    s->lines.fd = -1;
    *state = s;
    EW_TRY(ew_fail_in(ew_line_reader_open(p->opts->power_from, false, &s->lines), "power-from"));
    struct ew_channel c = {
        .name = "power.meter", .quantity = EW_QUANTITY_POWER, .quality = EW_QUALITY_MEASURED};
    EW_TRY(ew_probe_text(p, &c.source, "external meter: %.200s", p->opts->power_from));
    return ew_probe_add(p, &c, &s->channel);
}

static void read_meter(void *state, int64_t now_ns, struct ew_sample_value *values)
{
    struct state *s = state;
    char line[256];
    struct ew_sample_value v = ew_sample_value_absent(EW_ABSENT_STALE);
    ew_line_reader_begin(&s->lines);
    while (ew_line_reader_next(&s->lines, line, sizeof(line))) {
        double watts;
        v = ew_meter_parse(line, &watts) ? ew_sample_value_of(watts)
                                         : ew_sample_value_absent(EW_ABSENT_BAD);
    }
    if (!ew_sample_value_is(v) && s->lines.ended)
        v = ew_sample_value_absent(EW_ABSENT_LOST);
    values[s->channel] = v;
}

static void close_feed(void *state)
{
    ew_line_reader_close(&((struct state *)state)->lines);
}

const struct ew_sensor ew_sensor_meter = {
    .name = "meter",
    .what = "external power meter",
    .probe = probe,
    .read = read_meter,
    .close = close_feed,
};
