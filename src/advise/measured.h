/* SPDX-License-Identifier: Apache-2.0 */
/* Measurements of power modes from a CSV file: columns cores, cpu_mhz, gpu_mhz, mem_mhz, time_s,
 * power_w (under other names and in other units by measured_title.h; between commas, semicolons or
 * tabs), and, where there are several, workload; accuracy, memory_mib, latency_ms and price_usd for
 * recommendations. */
#ifndef EW_ADVISE_MEASURED_H
#define EW_ADVISE_MEASURED_H

#include "advise/law.h"
#include "base/mem.h"

#define EW_MEASURED_ROWS 1000000

struct ew_measured_row {
    const char *workload; /* "": the file has no such column */
    const char *name;     /* of the mode; "": none */
    struct ew_mode mode;  /* 1 GHz for a clock that the file does not have */
    double time, power;   /* nan: not measured */
    double accuracy, memory_mib, latency_ms, price_usd; /* likewise */
    int line;
};

struct ew_measured {
    const char *file;
    struct ew_measured_row *rows;
    int n;
    const char **workloads; /* in the order of the file */
    int n_workloads;
    bool simulated;  /* a column quality says so of a row: nothing of it was measured */
    unsigned lacks;  /* settings that it does not have, EW_NO_... */
    bool has_clocks; /* at least one of them */
    bool has_more;   /* accuracy, memory_mib, latency_ms or price_usd */
};

/* `text` is cut up and must outlive the result.  EW_ERR_FORMAT names line and column. */
ew_err ew_measured_parse(struct ew_arena *a, const char *name, char *text, struct ew_measured *out);

/* Adds a workload's name where it is new; *cap is 0 at first. */
ew_err ew_measured_workload(struct ew_arena *a, struct ew_measured *m, const char *name, int *cap);

/* One workload as arrays. */
struct ew_mode_series {
    const char *workload;
    struct ew_mode *modes;
    const char **names;
    double *time, *power; /* nan: not measured */
    int n;
    bool any_power;
};

/* The rows of a workload that have a time (`untried` false) or none.  Rows of the same mode become
 * one: medians of what was measured. */
ew_err ew_measured_of(struct ew_arena *a, const struct ew_measured *m, const char *workload,
                      bool untried, struct ew_mode_series *out);

#endif
