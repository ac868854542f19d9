/* SPDX-License-Identifier: Apache-2.0 */
/* Energy of Intel and AMD processors through RAPL (kernel's Documentation/power/powercap).  The
 * counters wrap; power is the difference of two readings.  Since Linux 5.10 only root may read
 * them. */
#include <stdio.h>
#include <string.h>

#include "device/sensor.h"
#include "device/wrap.h"

#define MAX_ZONES 16
#define MICRO     1e-6

struct zone {
    struct ew_source file;
    struct ew_wrap wrap;
    struct ew_counter power;
    int energy_channel, power_channel;
    bool always_on; /* its energy always increases; that of a part may not */
};

struct state {
    struct zone zones[MAX_ZONES];
    int n;
};

/* "intel-rapl:0" has its own name ("package-0", "psys"); "intel-rapl:0:2" gets the number of its
 * package: "dram-0". */
static bool zone_name(struct ew_probe *p, const char *entry, char *out, size_t size)
{
    char name[64];
    int package, part;
    if (!ew_probe_read(p, name, sizeof(name), "sys/class/powercap/%s/name", entry))
        return false;
    if (sscanf(entry, "intel-rapl:%d:%d", &package, &part) == 2)
        snprintf(out, size, "%s-%d", name, package);
    else
        snprintf(out, size, "%s", name);
    return true;
}

static ew_err add_zone(struct ew_probe *p, struct state *s, const char *entry)
{
    char name[96];
    struct zone *z = &s->zones[s->n];
    if (!zone_name(p, entry, name, sizeof(name)) ||
        !ew_source_open(p, &z->file, "sys/class/powercap/%s/energy_uj", entry))
        return EW_OK;
    const struct ew_sample_value now = ew_source_value(&z->file, MICRO);
    if (!ew_sample_value_is(now)) {
        ew_source_close(&z->file);
        return ew_probe_missing(p, now.absent, "%s: energy_uj cannot be read%s", name,
                                now.absent == EW_ABSENT_NO_PERMISSION ? "; only root may read it"
                                                                      : "");
    }
    s->n++;
    z->always_on = strncmp(name, "package-", 8) == 0 || strcmp(name, "psys") == 0;
    struct ew_source range;
    ew_source_open(p, &range, "sys/class/powercap/%s/max_energy_range_uj", entry);
    const struct ew_sample_value max = ew_source_value(&range, MICRO);
    ew_source_close(&range);
    z->wrap.range = ew_sample_value_is(max) ? max.v : 0;
    struct ew_channel energy = {.quantity = EW_QUANTITY_ENERGY,
                                .quality = EW_QUALITY_MEASURED,
                                .source = z->file.path,
                                .resolution = 61e-6}; /* 2^-14 J, the usual unit */
    struct ew_channel power = {
        .quantity = EW_QUANTITY_POWER, .quality = EW_QUALITY_DERIVED, .source = z->file.path};
    EW_TRY(ew_probe_text(p, &energy.name, "energy.%s", name));
    EW_TRY(ew_probe_add(p, &energy, &z->energy_channel));
    EW_TRY(ew_probe_text(p, &power.name, "power.%s", name));
    return ew_probe_add(p, &power, &z->power_channel);
}

static ew_err probe(struct ew_probe *p, void **state)
{
    struct state *s = ew_arena_alloc(p->arena, sizeof(*s));
    EW_CHECK(s, EW_ERR_MEMORY, "no memory");
    *state = s;
    const char *const *names;
    int n, zones = 0;
    EW_TRY(ew_probe_list(p, "sys/class/powercap", &names, &n));
    /* intel-rapl-mmio:0 duplicates a package. */
    for (int i = 0; i < n && s->n < MAX_ZONES; i++)
        if (strncmp(names[i], "intel-rapl:", 11) == 0) {
            EW_TRY(add_zone(p, s, names[i]));
            zones++;
        }
    if (zones == 0)
        return ew_probe_missing(p, EW_ABSENT_NO_SENSOR,
                                "no intel-rapl zone in /sys/class/powercap");
    return EW_OK;
}

static struct ew_sample_value power_of(struct zone *z, struct ew_sample_value joules,
                                       int64_t now_ns)
{
    if (!ew_sample_value_is(joules))
        return joules;
    const struct ew_sample_value watts = ew_counter_rate(&z->power, joules.v, now_ns);
    if (z->always_on && ew_sample_value_is(watts) && watts.v <= 0)
        return ew_sample_value_absent(
            EW_ABSENT_STILL); /* as on virtual machines without real counters */
    return watts;
}

static void read_zones(void *state, int64_t now_ns, struct ew_sample_value *values)
{
    struct state *s = state;
    for (int i = 0; i < s->n; i++) {
        struct zone *z = &s->zones[i];
        const struct ew_sample_value joules =
            ew_wrap_add(&z->wrap, ew_source_value(&z->file, MICRO));
        values[z->energy_channel] = joules;
        values[z->power_channel] = power_of(z, joules, now_ns);
    }
}

static void close_files(void *state)
{
    struct state *s = state;
    for (int i = 0; i < s->n; i++)
        ew_source_close(&s->zones[i].file);
}

const struct ew_sensor ew_sensor_rapl = {
    .name = "rapl",
    .what = "CPU energy by RAPL",
    .probe = probe,
    .read = read_zones,
    .close = close_files,
};
