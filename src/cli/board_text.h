/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by probe, monitor and power: options that open a board, values as text and as JSON. */
#ifndef EW_CLI_BOARD_TEXT_H
#define EW_CLI_BOARD_TEXT_H

#include <stddef.h>

#include "base/field.h"
#include "base/json.h"
#include "device/board.h"

/* Option table entries for the members root, power_from, tegrastats and watch of `owner`. */
#define EW_BOARD_ROOT_FIELD(owner)                                                                 \
    {                                                                                              \
        .name = "root", .type = EW_FIELD_STR, .offset = offsetof(owner, root), .metavar = "DIR",   \
        .help = "read a captured board (see `probe --capture`) instead of this machine"            \
    }
#define EW_BOARD_POWER_FIELD(owner)                                                                \
    {                                                                                              \
        .name = "power-from", .type = EW_FIELD_STR, .offset = offsetof(owner, power_from),         \
        .metavar = "CMD|FILE|-",                                                                   \
        .help = "external power meter: a command or file that gives lines of [timestamp] watts"    \
    }
#define EW_BOARD_TEGRA_FIELD(owner)                                                                \
    {                                                                                              \
        .name = "tegrastats", .type = EW_FIELD_STR, .offset = offsetof(owner, tegrastats),         \
        .metavar = "live|FILE", .help = "also read tegrastats, live or from a log"                 \
    }
#define EW_BOARD_WATCH_FIELD(owner)                                                                \
    {                                                                                              \
        .name = "watch", .type = EW_FIELD_STR, .offset = offsetof(owner, watch),                   \
        .metavar = "PATH", .help = "report how much of this file or folder is in the page cache"   \
    }

#define EW_VALUE_CHARS 48

/* "12.3 W", "1.5 GiB", "41.5 C"; "-" where absent. */
void ew_value_text(enum ew_quantity q, struct ew_sample_value v, char out[EW_VALUE_CHARS]);

/* Restores settings that a killed run had left changed, and reports it.  A failure (no permission)
 * is only a warning: reading a board does not depend on it. */
void ew_board_recover(const struct ew_board *b);

/* Prints the board in two or three lines. */
void ew_board_print_head(const struct ew_board *b);

/* Writes "board": {...}, "power_total": {...} inside an open object. */
void ew_board_json_head(struct ew_json *j, const struct ew_board *b);

/* Writes one channel as an object of an array. */
void ew_channel_json(struct ew_json *j, const struct ew_channel *c, struct ew_sample_value v);

/* Writes a number; null if the value is absent. */
void ew_value_json(struct ew_json *j, const char *key, struct ew_sample_value v);

#endif
