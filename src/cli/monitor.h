/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of `edgewise monitor`: the live view (monitor_view.c), and the report of a
 * command (monitor_run.c). */
#ifndef EW_CLI_MONITOR_H
#define EW_CLI_MONITOR_H

#include <stdio.h>

#include "cli/cmd.h"
#include "cli/recorded.h"
#include "device/board.h"
#include "device/frame_log.h"
#include "device/processes.h"
#include "device/sampler.h"
#include "measure/command_cost.h"

/* ---- View ------------------------------------------------------------------------------------ */

#define EW_VIEW_HISTORY 240

#define EW_VIEW_MODE 96

/* State of the live view: layout, history of the channels, mode and processes. */
struct ew_view {
    const struct ew_board *board;
    int columns, rows; /* rows 0: unlimited */
    bool colour, utf8;
    char mode[EW_VIEW_MODE];              /* "15W, governor schedutil"; "": not known */
    const struct ew_processes *processes; /* sorted; NULL: not shown */
    bool by_memory;                       /* sorted by memory instead of CPU */
    int n_past, past_at;
    float *past; /* n_channels x EW_VIEW_HISTORY, -1 where absent; the caller's */
};

/* Reads the power mode and the governor into v->mode.  Allocates in the board's arena: call it
 * once. */
void ew_view_read_mode(struct ew_view *v, struct ew_board *b);

/* Adds the frame to the history. */
void ew_view_remember(struct ew_view *v, const struct ew_sample_value *values);

/* Draws one frame; each line ends in `end_of_line`. */
void ew_view_draw(const struct ew_view *v, const struct ew_sample_value *values,
                  const struct ew_sampler_stats *stats, const char *end_of_line, FILE *out);

/* ---- A command ------------------------------------------------------------------------------- */

/* Runs the command, reports and records its cost; `output` NULL: to standard output. */
struct ew_monitor_run {
    struct ew_command_run run;
    const char *output;
    struct ew_recording *rec;
    bool json;
};

ew_err ew_monitor_command(const struct ew_monitor_run *r);

#endif
