/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of `edgewise monitor`: the live view (monitor_view.c), and what the run of a command
 * says in the end (monitor_run.c). */
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

/* How the view is drawn, the past of all channels, and what is no channel. */
struct ew_view {
    const struct ew_board *board;
    int columns, rows; /* rows 0: as many as it takes */
    bool colour, utf8;
    char mode[EW_VIEW_MODE];              /* "15W, governor schedutil"; "": not known */
    const struct ew_processes *processes; /* in order; NULL: not shown */
    bool by_memory;                       /* what they are ordered by */
    int n_past, past_at;
    float *past; /* n_channels x EW_VIEW_HISTORY, -1 where absent; caller's */
};

/* Reads the power mode and the governor into v->mode; texts that are kept go to the board's arena,
 * so this is called once. */
void ew_view_read_mode(struct ew_view *v, struct ew_board *b);

/* Remembers the frame's values. */
void ew_view_remember(struct ew_view *v, const struct ew_sample_value *values);

/* Draws one frame; lines end in `end_of_line`. */
void ew_view_draw(const struct ew_view *v, const struct ew_sample_value *values,
                  const struct ew_sampler_stats *stats, const char *end_of_line, FILE *out);

/* ---- A command ------------------------------------------------------------------------------- */

/* Runs it, and reports and records what it cost; `output` NULL: on standard output. */
struct ew_monitor_run {
    struct ew_command_run run;
    const char *output;
    struct ew_recording *rec;
    bool json;
};

ew_err ew_monitor_command(const struct ew_monitor_run *r);

#endif
