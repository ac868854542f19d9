/* SPDX-License-Identifier: Apache-2.0 */
/* The routes of the live page's server. */
#ifndef EW_REPORT_SERVE_ROUTES_H
#define EW_REPORT_SERVE_ROUTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/err.h"

/* Writes the body from the store at `db`. */
typedef ew_err ew_route_fn(const char *db, FILE *out);

struct ew_route {
    const char *path, *type;
    const char *asset;   /* a built-in file, or */
    ew_route_fn *render; /* renders the body, which is cached for `cache_ms` */
    int cache_ms;
    bool slow;    /* may take seconds, so a thread renders it while other requests are answered */
    bool packed;  /* the asset is gzip */
    bool own_csp; /* the body has a content security policy of its own */
};

/* Ended by a path of NULL. */
extern const struct ew_route ew_routes[];

ew_route_fn ew_route_state, ew_route_metrics;

#endif
