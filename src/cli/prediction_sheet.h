/* SPDX-License-Identifier: Apache-2.0 */
/* Contact sheet of a clip's predictions: for each a small frame with its class and score below. */
#ifndef EW_CLI_PREDICTION_SHEET_H
#define EW_CLI_PREDICTION_SHEET_H

#include "base/err.h"
#include "cli/canvas.h"

struct ew_prediction_sheet {
    uint8_t *cells; /* [n, CELL, CELL, 3] */
    int64_t n;      /* cells in use */
    int64_t every;  /* one cell per `every` predictions; doubled whenever the sheet is full */
    int64_t seen;   /* predictions so far */
};

/* Adds a prediction; the frame is scaled to the cell.  `text` has two lines. */
ew_err ew_prediction_sheet_add(struct ew_prediction_sheet *s, const struct ew_canvas *frame,
                               const char *const text[2]);
/* Writes the picture if there is any prediction, and frees the sheet. */
ew_err ew_prediction_sheet_close(struct ew_prediction_sheet *s, const char *path);

#endif
