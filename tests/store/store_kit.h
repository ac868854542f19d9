/* SPDX-License-Identifier: Apache-2.0 */
/* Rows shared by the tests of store and study. */
#ifndef EW_TESTS_STORE_KIT_H
#define EW_TESTS_STORE_KIT_H

#include <stdio.h>

#include "store/store.h"

/* Adds a machine, a job with `workers`, and a started run of it; 0 on failure. */
static inline int64_t kit_begin(struct ew_store *s, int workers)
{
    struct ew_machine_row m;
    ew_record_clear(EW_RECORD_MACHINE, &m);
    m.id = "00000000000000aa";
    m.unit = "here";
    m.board = "Test board";
    m.cores = 2;

    char options[128], id[EW_RECORD_ID_CHARS];
    struct ew_job_row j;
    ew_record_clear(EW_RECORD_JOB, &j);
    snprintf(options, sizeof(options),
             "{\"network\":\"lenet5\",\"power-mode\":\"a\",\"workers\":%d}", workers);
    ew_record_id(options, id);
    j.id = id;
    j.command = "train";
    j.network = "lenet5";
    j.options = options;

    struct ew_run_row r;
    ew_record_clear(EW_RECORD_RUN, &r);
    r.job = id;
    r.machine = m.id;
    r.study = "kit";
    r.repeat = 0;
    int64_t run = 0;
    if (ew_store_put(s, EW_RECORD_MACHINE, 0, &m) != EW_OK ||
        ew_store_put(s, EW_RECORD_JOB, 0, &j) != EW_OK || ew_store_run_begin(s, &r, &run) != EW_OK)
        return 0;
    return run;
}

static inline ew_err kit_epoch(struct ew_store *s, int64_t run, int64_t epoch, double wall_s)
{
    struct ew_epoch_row e;
    ew_record_clear(EW_RECORD_EPOCH, &e);
    e.epoch = epoch;
    e.wall_s = wall_s;
    e.quality = EW_QUALITY_MEASURED;
    return ew_store_put(s, EW_RECORD_EPOCH, run, &e);
}

static inline ew_err kit_metric(struct ew_store *s, int64_t run, const char *name, double value)
{
    struct ew_metric_row m;
    ew_record_clear(EW_RECORD_METRIC, &m);
    m.name = name;
    m.value = value;
    m.unit = "s";
    m.quality = EW_QUALITY_MEASURED;
    m.n = 1;
    return ew_store_put(s, EW_RECORD_METRIC, run, &m);
}

/* An integer result of a query; -1 if there is none. */
static inline int64_t kit_int(struct ew_store *s, const char *sql)
{
    int64_t v = 0;
    bool found;
    return ew_store_int(s, &v, &found, sql, "") == EW_OK && found ? v : -1;
}

#endif
