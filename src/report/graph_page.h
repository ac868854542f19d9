/* SPDX-License-Identifier: Apache-2.0 */
/* A network as a page: its picture with zoom, boxes coloured by time, arithmetic, size or
 * precision. */
#ifndef EW_REPORT_GRAPH_PAGE_H
#define EW_REPORT_GRAPH_PAGE_H

#include <stdio.h>

#include "graph/graph.h"

/* Time of a step of the plan, with the name of its node; names may repeat. */
struct ew_graph_time {
    const char *name, *kernel;
    double us;
};

struct ew_graph_times {
    const struct ew_graph_time *steps; /* NULL: not measured */
    int n;
    const char *where; /* "2 threads, avx512, batch 1" */
};

/* Writes one self-contained file. `times` may be NULL.  Fails as ew_graph_svg does; whether `out`
 * took all is the caller's to check. */
ew_err ew_graph_page(const struct ew_graph *g, const struct ew_graph_times *times, FILE *out);

/* The same into a file, which appears whole or not at all. */
ew_err ew_graph_page_save(const struct ew_graph *g, const struct ew_graph_times *times,
                          const char *path);

#endif
