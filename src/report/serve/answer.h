/* SPDX-License-Identifier: Apache-2.0 */
/* The answers of the live page's server: one entry for each path. */
#ifndef EW_REPORT_SERVE_ANSWER_H
#define EW_REPORT_SERVE_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/err.h"

/* Writes the body from the store at `db`. */
typedef ew_err ew_answer_fn(const char *db, FILE *out);

struct ew_answer {
    const char *path, *type;
    const char *asset;  /* a built-in file, or */
    ew_answer_fn *make; /* made, and kept for `keep_ms` */
    int keep_ms;
    bool slow;    /* may take seconds, so a thread makes it while other requests are answered */
    bool packed;  /* the asset is gzip */
    bool own_csp; /* the body has a content security policy of its own */
};

/* Ended by a path of NULL. */
extern const struct ew_answer ew_answers[];

ew_answer_fn ew_answer_state, ew_answer_metrics;

#endif
