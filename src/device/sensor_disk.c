/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes, operations and queue of each disk, from sys/block/<disk>/stat (kernel's
 * Documentation/block/stat.rst: a sector there is 512 bytes whatever the disk has).  Partitions,
 * loops and memory disks are left out. */
#include <stdlib.h>
#include <string.h>

#include "device/sensor.h"

enum { READ_BYTES, WRITE_BYTES, READS, WRITES, N_RATES };
#define MAX_DISKS 16

struct disk {
    struct ew_source file;
    int channel[N_RATES], queue;
    struct ew_counter counter[N_RATES];
};

struct state {
    struct disk disks[MAX_DISKS];
    int n;
};

static bool is_real(const char *name)
{
    static const char *const not_disks[] = {"loop", "ram", "zram", "dm-", "md", "nbd", "sr", "fd"};
    for (size_t i = 0; i < EW_COUNT(not_disks); i++)
        if (strncmp(name, not_disks[i], strlen(not_disks[i])) == 0)
            return false;
    /* mmcblk0boot0 and mmcblk0rpmb are partitions of mmcblk0 */
    return !(strncmp(name, "mmcblk", 6) == 0 && (strstr(name, "boot") || strstr(name, "rpmb")));
}

static ew_err add_disk(struct ew_probe *p, struct disk *d, const char *name)
{
    static const struct {
        const char *suffix;
        enum ew_quantity quantity;
        double resolution;
    } rates[N_RATES] = {{"read", EW_QUANTITY_RATE, 512},
                        {"write", EW_QUANTITY_RATE, 512},
                        {"reads", EW_QUANTITY_OPS, 1},
                        {"writes", EW_QUANTITY_OPS, 1}};
    for (int i = 0; i < N_RATES; i++) {
        struct ew_channel c = {.quantity = rates[i].quantity,
                               .quality = EW_QUALITY_DERIVED,
                               .source = d->file.path,
                               .resolution = rates[i].resolution};
        EW_TRY(ew_probe_text(p, &c.name, "disk.%s.%s", name, rates[i].suffix));
        EW_TRY(ew_probe_add(p, &c, &d->channel[i]));
    }
    struct ew_channel queue = {.quantity = EW_QUANTITY_COUNT,
                               .quality = EW_QUALITY_MEASURED,
                               .source = d->file.path,
                               .resolution = 1};
    EW_TRY(ew_probe_text(p, &queue.name, "disk.%s.queue", name));
    return ew_probe_add(p, &queue, &d->queue);
}

static ew_err probe(struct ew_probe *p, void **state)
{
    struct state *s = ew_arena_alloc(p->arena, sizeof(*s));
    EW_CHECK(s, EW_ERR_MEMORY, "no memory");
    *state = s;
    const char *const *names;
    int n;
    EW_TRY(ew_probe_list(p, "sys/block", &names, &n));
    for (int i = 0; i < n && s->n < MAX_DISKS; i++) {
        struct disk *d = &s->disks[s->n];
        if (!is_real(names[i]) || !ew_source_open(p, &d->file, "sys/block/%s/stat", names[i]))
            continue;
        s->n++;
        EW_TRY(add_disk(p, d, names[i]));
    }
    if (s->n == 0)
        return ew_probe_missing(p, EW_ABSENT_NO_SENSOR, "no disk in /sys/block");
    return EW_OK;
}

/* reads merged sectors ms writes merged sectors ms in_flight */
static void read_disk(struct disk *d, int64_t now_ns, struct ew_sample_value *values)
{
    char text[512];
    enum ew_absent absent = ew_source_read(&d->file, text, sizeof(text));
    double field[9];
    const char *p = text;
    for (int i = 0; i < 9 && absent == EW_ABSENT_NOT; i++) {
        char *end;
        field[i] = (double)strtoull(p, &end, 10);
        if (end == p)
            absent = EW_ABSENT_BAD;
        p = end;
    }
    if (absent != EW_ABSENT_NOT) {
        for (int i = 0; i < N_RATES; i++)
            values[d->channel[i]] = ew_sample_value_absent(absent);
        values[d->queue] = ew_sample_value_absent(absent);
        return;
    }
    const double count[N_RATES] = {field[2] * 512, field[6] * 512, field[0], field[4]};
    for (int i = 0; i < N_RATES; i++)
        values[d->channel[i]] = ew_counter_rate(&d->counter[i], count[i], now_ns);
    values[d->queue] = ew_sample_value_of(field[8]);
}

static void read_all(void *state, int64_t now_ns, struct ew_sample_value *values)
{
    struct state *s = state;
    for (int i = 0; i < s->n; i++)
        read_disk(&s->disks[i], now_ns, values);
}

static void close_files(void *state)
{
    struct state *s = state;
    for (int i = 0; i < s->n; i++)
        ew_source_close(&s->disks[i].file);
}

const struct ew_sensor ew_sensor_disk = {
    .name = "disk",
    .what = "disk traffic",
    .probe = probe,
    .read = read_all,
    .close = close_files,
};
