/* SPDX-License-Identifier: Apache-2.0 */
/* Times of `edgewise bench`: selected percentiles, all runs as CSV, the layers as a page, and
 * warnings if the times are unreliable. */
#ifndef EW_CLI_BENCH_TIMES_H
#define EW_CLI_BENCH_TIMES_H

#include "base/json.h"
#include "bench/bench_load.h"

#define EW_MAX_PERCENTILES 16

struct ew_percentiles {
    double of[EW_MAX_PERCENTILES];
    int n;
};

/* Parses "50,90,99.9"; "" is none. */
ew_err ew_percentiles_parse(const char *text, struct ew_percentiles *out);
/* Prints "p50 1.234, p99.9 2.345 ms" with the name of the line before it; nothing without
 * percentiles. */
void ew_percentiles_print(const struct ew_percentiles *p, const struct ew_load_result *r);
void ew_percentiles_json(struct ew_json *j, const struct ew_percentiles *p,
                         const struct ew_load_result *r);

/* One line per run: its number, stream, start and milliseconds. */
ew_err ew_times_write_csv(const struct ew_load_result *r, const char *path);

/* A page of the graph with the median times of the plan's steps, by layer. */
ew_err ew_times_write_page(struct ew_graph *g, const struct ew_plan *p, const int64_t *step_ns,
                           const char *path);

/* Warns of other programs' CPU use, and of outliers. */
void ew_times_warn(const struct ew_load_result *r, const struct ew_bench_stats *s);
/* Warns of other programs' CPU use only; nan: not known. */
void ew_times_warn_busy(double others);

#endif
