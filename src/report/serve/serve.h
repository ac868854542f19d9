/* SPDX-License-Identifier: Apache-2.0 */
/* The live page's server, a process that reads the results while they are recorded.  It never
 * delays a run: it only reads, at low priority, and renders each response at most a few times a
 * second, however many requests come. */
#ifndef EW_REPORT_SERVE_SERVE_H
#define EW_REPORT_SERVE_SERVE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct ew_route;

struct ew_serve_opts {
    const char *db;
    const char *bind;              /* an address; NULL: 127.0.0.1 */
    const char *token;             /* NULL: none, allowed for loopback addresses only */
    int port;                      /* 0: any free one */
    int request_s;                 /* seconds that a client may take for a request; 0: 30 */
    const struct ew_route *routes; /* NULL: those of routes.h */
};

#define EW_SERVE_TOKEN_LEAST 16 /* characters */
/* Suffix of the database's name: the file that `edgewise run --live` writes. */
#define EW_SERVE_VIDEO "-video"

struct ew_serve;

/* Listens.  Borrows the options' texts.  EW_ERR_UNSUPPORTED where it was built without
 * libmicrohttpd. */
ew_err ew_serve_open(const struct ew_serve_opts *o, struct ew_serve **out);
int ew_serve_port(const struct ew_serve *s);

/* Answers pending requests; waits up to wait_ms for one. */
ew_err ew_serve_step(struct ew_serve *s, int wait_ms);
void ew_serve_close(struct ew_serve *s); /* NULL is fine */

#endif
