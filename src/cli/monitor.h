/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of `edgewise monitor`: the live view (monitor_view.c), the log (monitor_log.c) and the
 * run of a command (monitor_run.c). */
#ifndef EW_CLI_MONITOR_H
#define EW_CLI_MONITOR_H

#include <stdio.h>

#include "cli/cmd.h"
#include "cli/monitor_processes.h"
#include "cli/recorded.h"
#include "device/board.h"
#include "device/sampler.h"

/* ---- Log ------------------------------------------------------------------------------------- */

/* One row per frame: CSV (an empty cell where a value is absent) or JSON lines (with the reason).
 * Or the last frame alone, replaced whole: metrics as Prometheus reads them. */
struct ew_monitor_log {
    FILE *f;             /* NULL: no log of rows */
    const char *metrics; /* a file for node_exporter's textfile collector; NULL: none */
    bool lines;
    int64_t start_ns;
};

/* By the file's ending, .csv, .jsonl or .prom.  `path` (which is kept) NULL: no log. */
ew_err ew_monitor_log_open(const char *path, const struct ew_board *b, struct ew_monitor_log *log);
void ew_monitor_log_stdout(struct ew_monitor_log *log); /* JSON lines */
ew_err ew_monitor_log_row(struct ew_monitor_log *log, const struct ew_board *b, int64_t t_ns,
                          const struct ew_sample_value *values);
ew_err ew_monitor_log_close(struct ew_monitor_log *log);

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

struct ew_monitor_run {
    struct ew_board *board;
    int64_t interval_ns;
    double baseline_s;
    const char *const *argv; /* NULL-terminated */
    struct ew_monitor_log *log;
    const char *output; /* NULL: standard output */
    struct ew_recording *rec;
    bool json;
};

ew_err ew_monitor_command(const struct ew_monitor_run *r);

#endif
