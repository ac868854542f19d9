/* SPDX-License-Identifier: Apache-2.0 */
/* The times of `edgewise bench`: percentiles of choice, every run as CSV, every layer as a
 * page, and warnings where they
 * are not to be trusted. */
#ifndef EW_CLI_BENCH_TIMES_H
#define EW_CLI_BENCH_TIMES_H

#include "base/json.h"
#include "bench/bench_load.h"

#define EW_MAX_PERCENTILES 16

struct ew_percentiles {
    double of[EW_MAX_PERCENTILES];
    int n;
};

/* "50,90,99.9"; "" is none. */
ew_err ew_percentiles_parse(const char *text, struct ew_percentiles *out);
/* "p50 1.234, p99.9 2.345 ms" with a line's name before it; nothing where there is none. */
void ew_percentiles_print(const struct ew_percentiles *p, const struct ew_load_result *r);
void ew_percentiles_json(struct ew_json *j, const struct ew_percentiles *p,
                         const struct ew_load_result *r);

/* A line for each run: its number, stream, start and milliseconds. */
ew_err ew_times_write_csv(const struct ew_load_result *r, const char *path);

/* A page of the graph with the median time of the plan's steps, by layer. */
ew_err ew_times_write_page(struct ew_graph *g, const struct ew_plan *p, const int64_t *step_ns,
                           const char *path);

/* Says on stderr that other programs ran, or that some runs stand out. */
void ew_times_warn(const struct ew_load_result *r, const struct ew_bench_stats *s);
/* Only that others ran; nan: nothing is known. */
void ew_times_warn_busy(double others);

#endif
