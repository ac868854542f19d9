/* SPDX-License-Identifier: Apache-2.0 */
/* A log of a board's frames. */
#ifndef EW_DEVICE_FRAME_LOG_H
#define EW_DEVICE_FRAME_LOG_H

#include <stdio.h>

#include "device/board.h"

/* One row per frame: CSV (an empty cell where a value is absent) or JSON lines (with the reason).
 * Or the last frame alone, replaced whole: metrics as Prometheus reads them. */
struct ew_frame_log {
    FILE *f;             /* NULL: no log of rows */
    const char *metrics; /* a file for node_exporter's textfile collector; NULL: none */
    bool lines;
    int64_t start_ns;
};

/* By the file's ending, .csv, .jsonl or .prom.  `path` (which is kept) NULL: no log. */
ew_err ew_frame_log_open(const char *path, const struct ew_board *b, struct ew_frame_log *log);
void ew_frame_log_stdout(struct ew_frame_log *log); /* JSON lines */
ew_err ew_frame_log_row(struct ew_frame_log *log, const struct ew_board *b, int64_t t_ns,
                        const struct ew_sample_value *values);
ew_err ew_frame_log_close(struct ew_frame_log *log);

#endif
