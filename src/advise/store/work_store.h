/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of networks in stores of results, as the law of work takes them: benches and training runs
 * of any machine, with what tells them apart. */
#ifndef EW_ADVISE_STORE_WORK_STORE_H
#define EW_ADVISE_STORE_WORK_STORE_H

#include "base/mem.h"
#include "graph/graph.h"

#define EW_WORK_STORE_ROWS 4096 /* that are looked at */

/* A configuration that was measured, once or several times. */
struct ew_work_row {
    const char *network, *input; /* input "": the network's own */
    const char *machine;         /* unit, board or CPU, device */
    const char *precision;       /* "": the usual one */
    int64_t batch, classes, threads, cores;
    double width;
    bool train;
    double time, slowest; /* s: the fastest of its repeats and the slowest */
    double beside_bytes;  /* largest resident set less what was planned; nan: not known */
    /* Of a training run, else dataset is "". */
    const char *dataset;
    int64_t workers;
    double step_s;   /* with what it waits for the loader; nan: not known */
    double loader_s; /* of one worker for an image; nan: not known */
};

struct ew_work_rows {
    struct ew_work_row *list;
    int n;
};

/* Adds what the store has: finished runs that were measured.  A bench that was repeated counts
 * once, by its fastest median: what else runs on a machine only ever adds time. */
ew_err ew_work_rows_read(struct ew_arena *a, const char *path, struct ew_work_rows *out);

/* The newest such run; EW_ERR_NOT_FOUND: there is none. */
ew_err ew_work_rows_last(struct ew_arena *a, const char *path, struct ew_work_row *out);

/* The machine whose name has `part` in it; NULL: the first of the first store.  EW_ERR_NOT_FOUND
 * names those that there are. */
ew_err ew_work_rows_machine(struct ew_arena *a, const struct ew_work_rows *rows, const char *part,
                            const char **out);

#endif
