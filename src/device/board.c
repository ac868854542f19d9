/* SPDX-License-Identifier: Apache-2.0 */
/* A board: opening all sensors, one reading of all channels, the total. */
#include "device/board.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/owned.h"
#include "base/utf8.h"
#include "device/sensor.h"

#define EW_SENSOR(name) extern const struct ew_sensor ew_sensor_##name;
#include "sensor_list.h"
#undef EW_SENSOR

static const struct ew_sensor *const table[] = {
#define EW_SENSOR(name) &ew_sensor_##name,
#include "sensor_list.h"
#undef EW_SENSOR
};

/* Growing lists while the board is probed, and the sensors' state. */
struct ew_board_impl {
    struct ew_channel *channels;
    struct ew_missing *missing;
    int channels_cap, missing_cap;
    void *state[EW_COUNT(table)];
    int opened;    /* sensors whose probe has run */
    int sensor_at; /* being probed */
    struct ew_total_rule rule;
    int energy_rails[32]; /* of the same rails; used where all have one */
};

/* ---- Probing --------------------------------------------------------------------------------- */

static ew_err grow_list(struct ew_board *b, void **list, int *cap, int n, size_t item)
{
    if (n < *cap)
        return EW_OK;
    const int more = *cap ? 2 * *cap : 64;
    void *p = ew_arena_array(&b->arena, (size_t)more, item);
    EW_CHECK(p, EW_ERR_MEMORY, "no memory for %d channels", more);
    if (n)
        memcpy(p, *list, (size_t)n * item);
    *list = p;
    *cap = more;
    return EW_OK;
}

static ew_err add_channel(struct ew_board *b, const struct ew_channel *c, int *index)
{
    struct ew_board_impl *im = b->impl;
    void *list = im->channels;
    EW_TRY(grow_list(b, &list, &im->channels_cap, b->n_channels, sizeof(*c)));
    im->channels = list;
    im->channels[b->n_channels] = *c;
    b->channels = im->channels;
    *index = b->n_channels++;
    return EW_OK;
}

ew_err ew_probe_add(struct ew_probe *p, const struct ew_channel *c, int *index)
{
    /* Two chips may use the same name for a rail: the second becomes name#2. */
    struct ew_channel unique = *c;
    char tame[256];
    snprintf(tame, sizeof(tame), "%s", c->name);
    ew_utf8_sanitize(tame);
    if (strcmp(tame, c->name) != 0) /* labels come from files and are printed on terminals */
        EW_TRY(ew_probe_text(p, &unique.name, "%s", tame));
    const char *name = unique.name;
    for (int i = 2; ew_board_channel(p->board, unique.name) >= 0; i++)
        EW_TRY(ew_probe_text(p, &unique.name, "%s#%d", name, i));
    return add_channel(p->board, &unique, index);
}

static ew_err add_missing(struct ew_board *b, const struct ew_missing *m)
{
    struct ew_board_impl *im = b->impl;
    void *list = im->missing;
    EW_TRY(grow_list(b, &list, &im->missing_cap, b->n_missing, sizeof(*m)));
    im->missing = list;
    im->missing[b->n_missing++] = *m;
    b->missing = im->missing;
    return EW_OK;
}

ew_err ew_probe_missing(struct ew_probe *p, enum ew_absent why, const char *fmt, ...)
{
    char text[256];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    const char *reason = ew_arena_strdup(p->arena, text);
    EW_CHECK(reason, EW_ERR_MEMORY, "no memory");
    const struct ew_sensor *s = table[p->board->impl->sensor_at];
    return add_missing(p->board, &(struct ew_missing){s->name, s->what, reason, why});
}

static ew_err probe_all(struct ew_board *b, const struct ew_board_opts *opts)
{
    struct ew_probe p = {.board = b, .root = &b->root, .arena = &b->arena, .opts = opts};
    p.captured = strcmp(b->root.path, "/") != 0;
    for (size_t i = 0; i < EW_COUNT(table); i++) {
        b->impl->sensor_at = (int)i;
        b->impl->opened = (int)i + 1;
        EW_TRY(table[i]->probe(&p, &b->impl->state[i]));
    }
    return EW_OK;
}

/* ---- The total ------------------------------------------------------------------------------- */

/* "power.VDD_IN" -> the channel "energy.VDD_IN", or -1. */
static int energy_of(const struct ew_board *b, int power)
{
    char name[96];
    snprintf(name, sizeof(name), "energy.%s", b->channels[power].name + strlen("power."));
    return ew_board_channel(b, name);
}

static double coarsest(const struct ew_board *b, const int *rails, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += b->channels[rails[i]].resolution;
    return sum;
}

static ew_err add_total(struct ew_board *b)
{
    struct ew_board_impl *im = b->impl;
    b->total = (struct ew_power_total){.power = -1, .energy = -1};
    EW_TRY(ew_total_decide(b, &b->arena, &im->rule));
    const struct ew_total_rule *rule = &im->rule;
    b->total.rails = rule->text;
    b->total.covers = rule->covers;
    if (rule->n == 0)
        return add_missing(b, &(struct ew_missing){"total", "power of the board", rule->text,
                                                   EW_ABSENT_NO_SENSOR});
    const enum ew_quality quality =
        rule->n == 1 ? b->channels[rule->rails[0]].quality : EW_QUALITY_DERIVED;
    const struct ew_channel power = {"power.total", EW_QUANTITY_POWER, quality, rule->text,
                                     coarsest(b, rule->rails, rule->n)};
    bool counters = true;
    for (int i = 0; i < rule->n; i++) {
        im->energy_rails[i] = energy_of(b, rule->rails[i]);
        counters = counters && im->energy_rails[i] >= 0;
    }
    EW_TRY(add_channel(b, &power, &b->total.power));
    if (!counters)
        return EW_OK;
    const struct ew_channel energy = {"energy.total", EW_QUANTITY_ENERGY, EW_QUALITY_MEASURED,
                                      rule->text, coarsest(b, im->energy_rails, rule->n)};
    return add_channel(b, &energy, &b->total.energy);
}

/* The sum of rails; absent if one of them is. */
static struct ew_sample_value add_up(const int *rails, int n, const struct ew_sample_value *values)
{
    double sum = 0;
    for (int i = 0; i < n; i++) {
        if (!ew_sample_value_is(values[rails[i]]))
            return values[rails[i]];
        sum += values[rails[i]].v;
    }
    return ew_sample_value_of(sum);
}

/* ---- Life ------------------------------------------------------------------------------------ */

static ew_err find_profile(struct ew_board *b)
{
    EW_TRY(ew_profiles_load(&b->arena, &b->profiles, &b->n_profiles));
    const char *known[] = {b->id.compatible, b->id.model};
    for (size_t i = 0; i < EW_COUNT(known) && !b->profile; i++)
        b->profile = known[i] ? ew_profile_match(b->profiles, b->n_profiles, known[i]) : NULL;
    return EW_OK;
}

static ew_err open_all(struct ew_board *b, const struct ew_board_opts *opts)
{
    b->impl = ew_arena_alloc(&b->arena, sizeof(*b->impl));
    const char *path = ew_arena_strdup(&b->arena, opts->root ? opts->root : "/");
    EW_CHECK(b->impl && path, EW_ERR_MEMORY, "no memory for a board");
    EW_TRY(ew_root_open(path, &b->root));
    EW_CHECK(!opts->root || faccessat(b->root.fd, EW_OWNED_MARK, F_OK, 0) != 0, EW_ERR_FORMAT,
             "%s: the capture was interrupted; repeat it", path);
    EW_TRY(ew_board_identify(b));
    EW_TRY(find_profile(b));
    EW_TRY(probe_all(b, opts));
    return add_total(b);
}

ew_err ew_board_open(const struct ew_board_opts *opts, struct ew_board **out)
{
    struct ew_board *b = calloc(1, sizeof(*b));
    EW_CHECK(b, EW_ERR_MEMORY, "no memory for a board");
    b->root.fd = -1;
    ew_arena_init(&b->arena);
    const ew_err err = open_all(b, opts);
    if (err != EW_OK) {
        ew_board_close(b);
        return err;
    }
    *out = b;
    return EW_OK;
}

void ew_board_close(struct ew_board *b)
{
    if (!b)
        return;
    for (int i = 0; b->impl && i < b->impl->opened; i++)
        if (table[i]->close && b->impl->state[i])
            table[i]->close(b->impl->state[i]);
    ew_root_close(&b->root);
    ew_arena_fini(&b->arena);
    free(b);
}

void ew_board_read(struct ew_board *b, struct ew_sample_value *values)
{
    for (int i = 0; i < b->n_channels; i++)
        values[i] = ew_sample_value_absent(EW_ABSENT_NO_SENSOR);
    for (size_t i = 0; i < EW_COUNT(table); i++)
        if (b->impl->state[i] && table[i]->read)
            table[i]->read(b->impl->state[i], ew_clock_ns(), values);
    const struct ew_total_rule *rule = &b->impl->rule;
    if (b->total.power >= 0)
        values[b->total.power] = add_up(rule->rails, rule->n, values);
    if (b->total.energy >= 0)
        values[b->total.energy] = add_up(b->impl->energy_rails, rule->n, values);
}

int ew_board_channel(const struct ew_board *b, const char *name)
{
    for (int i = 0; i < b->n_channels; i++)
        if (strcmp(b->channels[i].name, name) == 0)
            return i;
    return -1;
}
