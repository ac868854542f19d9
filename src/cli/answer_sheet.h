/* SPDX-License-Identifier: Apache-2.0 */
/* A picture of a clip's answers: for each a small frame with its name and share below. */
#ifndef EW_CLI_ANSWER_SHEET_H
#define EW_CLI_ANSWER_SHEET_H

#include "base/err.h"
#include "cli/canvas.h"

struct ew_answer_sheet {
    uint8_t *cells; /* [n, CELL, CELL, 3] */
    int64_t n;      /* as many as there is room for */
    int64_t every;  /* so many answers to a cell: a longer clip has every second one, and so on */
    int64_t seen;   /* answers given */
};

/* One more answer; the frame is scaled to the cell.  `text` has two lines. */
ew_err ew_answer_sheet_add(struct ew_answer_sheet *s, const struct ew_canvas *frame,
                           const char *const text[2]);
/* Writes the picture, if there is an answer, and frees the sheet. */
ew_err ew_answer_sheet_close(struct ew_answer_sheet *s, const char *path);

#endif
