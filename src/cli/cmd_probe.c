/* SPDX-License-Identifier: Apache-2.0 */
/* edgewise probe: what this board has, one reading of it, and what is missing and why. */
#include <stdio.h>
#include <time.h>

#include "base/json.h"
#include "cli/board_text.h"
#include "cli/cmd.h"
#include "device/board.h"
#include "device/capture.h"

#define BETWEEN_NS 200000000L /* of the two readings that rates need */

struct opts {
    const char *root, *power_from, *tegrastats, *watch, *capture;
    int64_t pid;
};

static const struct ew_field fields[] = {
    EW_BOARD_ROOT_FIELD(struct opts),
    EW_BOARD_POWER_FIELD(struct opts),
    EW_BOARD_TEGRA_FIELD(struct opts),
    EW_BOARD_WATCH_FIELD(struct opts),
    {.name = "pid",
     .type = EW_FIELD_INT,
     .offset = offsetof(struct opts, pid),
     .min = 0,
     .max = 1 << 30,
     .metavar = "PID",
     .help = "a process to read as well"},
    {.name = "capture",
     .type = EW_FIELD_STR,
     .offset = offsetof(struct opts, capture),
     .metavar = "DIR",
     .help = "copy the files that Edgewise reads, as a board for tests"},
    EW_FIELD_END,
};

static void print_channels(const struct ew_board *b, const struct ew_sample_value *values)
{
    printf("\n%-30s %-26s %-10s %s\n", "channel", "value", "quality", "source");
    for (int i = 0; i < b->n_channels; i++) {
        const struct ew_channel *c = &b->channels[i];
        char text[EW_VALUE_CHARS];
        ew_value_text(c->quantity, values[i], text);
        if (!ew_sample_value_is(values[i]))
            snprintf(text, sizeof(text), "- (%s)", ew_absent_text(values[i].absent));
        printf("%-30s %-26s %-10s %s\n", c->name, text, ew_quality_name(c->quality), c->source);
    }
    if (b->n_missing)
        printf("\nnot here\n");
    for (int i = 0; i < b->n_missing; i++) {
        const struct ew_missing *m = &b->missing[i];
        printf("  %-22s %s: %s\n", m->what, ew_absent_text(m->absent), m->reason);
    }
}

static ew_err print_json(const struct ew_board *b, const struct ew_sample_value *values)
{
    struct ew_json j;
    ew_json_init(&j, stdout);
    ew_json_object(&j, NULL);
    ew_board_json_head(&j, b);
    ew_json_array(&j, "channels");
    for (int i = 0; i < b->n_channels; i++)
        ew_channel_json(&j, &b->channels[i], values[i]);
    ew_json_end(&j);
    ew_json_array(&j, "missing");
    for (int i = 0; i < b->n_missing; i++) {
        const struct ew_missing *m = &b->missing[i];
        ew_json_object(&j, NULL);
        ew_json_str(&j, "sensor", m->sensor);
        ew_json_str(&j, "what", m->what);
        ew_json_str(&j, "absent", ew_absent_text(m->absent));
        ew_json_str(&j, "reason", m->reason);
        ew_json_end(&j);
    }
    ew_json_end(&j);
    ew_json_end(&j);
    return ew_json_finish(&j);
}

static void close_board(struct ew_board **b)
{
    ew_board_close(*b);
}

static ew_err run(struct ew_cmd_call *c)
{
    const struct opts *o = c->opts;
    const struct ew_board_opts board = {.root = o->root,
                                        .power_from = o->power_from,
                                        .tegrastats = o->tegrastats,
                                        .watch = o->watch,
                                        .pid = (int)o->pid};
    EW_CLEANUP(close_board) struct ew_board *b = NULL;
    EW_TRY(ew_board_open(&board, &b));
    ew_board_recover(b);
    if (o->capture) {
        int files;
        EW_TRY(ew_capture(b, o->capture, &files));
        printf("%d files in %s\n", files, o->capture);
        return EW_OK;
    }
    struct ew_sample_value *values =
        ew_arena_array(&b->arena, (size_t)b->n_channels + 1, sizeof(*values));
    EW_CHECK(values, EW_ERR_MEMORY, "no memory for %d values", b->n_channels);
    ew_board_read(b, values);
    if (!o->root) { /* a captured board stands still: a second reading would show rates of 0 */
        nanosleep(&(struct timespec){.tv_nsec = BETWEEN_NS}, NULL);
        ew_board_read(b, values);
    }
    if (c->json)
        return print_json(b, values);
    ew_board_print_head(b);
    print_channels(b, values);
    return EW_OK;
}

const struct ew_cmd ew_cmd_probe = {
    .name = "probe",
    .group = EW_CMD_MEASURE,
    .summary = "what this board has, and what it lacks and why",
    .about = "Looks for every sensor, reads each once and says what is missing and why.\n"
             "Rates need two readings, which are taken 0.2 s apart.\n"
             "A capture holds no serial numbers, names or addresses.",
    .examples = "probe\nprobe --json\nprobe --capture my-board\nprobe --root "
                "tests/fixtures/boards/agx-orin-jp6",
    .opts_size = sizeof(struct opts),
    .opts = fields,
    .run = run,
};
