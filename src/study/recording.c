/* SPDX-License-Identifier: Apache-2.0 */
/* Recording what a command measures. */
#include "study/recording.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "study/job.h"
#include "study/machine.h"
#include "study/summary.h"

/* The run that a study began for this process. */
static ew_err join_run(struct ew_recording *r, const char *uid)
{
    EW_TRY(ew_store_run_find(r->store, uid, &r->run));
    r->own = false;
    return EW_OK;
}

static ew_err describe(const struct ew_recorded_command *c, struct ew_board *b, struct ew_arena *a,
                       struct ew_recording *r)
{
    struct ew_machine_row machine;
    struct ew_job_row job;
    struct ew_run_row run;
    const struct ew_setting network = {"network", c->network};
    EW_TRY(ew_machine_read(b, a, &machine));
    const struct ew_job_command command = {c->name, c->fields, c->opts, &network, 1};
    EW_TRY(ew_job_describe(a, &command, &job));
    ew_record_clear(EW_RECORD_RUN, &run);
    run.job = job.id;
    run.machine = machine.id;
    run.repeat = 0;
    run.quality = EW_QUALITY_MEASURED;
    EW_TRY(ew_store_begin(r->store));
    ew_err err = ew_store_put(r->store, EW_RECORD_MACHINE, 0, &machine);
    if (err == EW_OK)
        err = ew_store_put(r->store, EW_RECORD_JOB, 0, &job);
    if (err == EW_OK)
        err = ew_store_run_begin(r->store, &run, &r->run);
    const ew_err ended = ew_store_end(r->store, err == EW_OK);
    r->own = true;
    return err == EW_OK ? ended : err;
}

static ew_err begin_run(const struct ew_recorded_command *c, struct ew_recording *r)
{
    struct ew_board *b = NULL;
    struct ew_arena a;
    EW_TRY(ew_board_open(&(struct ew_board_opts){.root = NULL}, &b));
    ew_arena_init(&a);
    const ew_err err = describe(c, b, &a, r);
    ew_arena_fini(&a);
    ew_board_close(b);
    return err;
}

ew_err ew_recording_begin(const struct ew_recorded_command *c, const char *db,
                          struct ew_recording *out)
{
    *out = (struct ew_recording){.start_ns = ew_clock_ns()};
    if (!db)
        return EW_OK;
    EW_TRY(ew_store_open(db, NULL, &out->store));
    const char *uid = getenv("EW_RUN");
    const ew_err err = uid && *uid ? join_run(out, uid) : begin_run(c, out);
    if (err != EW_OK) {
        ew_store_close(out->store);
        out->store = NULL;
    }
    return err;
}

/* Writing the row marks the end of an epoch, validation included. */
static ew_err put_epoch(struct ew_recording *r, const struct ew_epoch_row *row)
{
    struct ew_epoch_row e = *row;
    const double now_s = (double)(ew_clock_ns() - r->start_ns) / (double)EW_NS_PER_S;
    if (isnan(e.start_s) && !isnan(e.wall_s))
        e.start_s = fmax(0, now_s - e.wall_s - (isnan(e.eval_s) ? 0 : e.eval_s));
    return ew_store_put(r->store, EW_RECORD_EPOCH, r->run, &e);
}

ew_err ew_recording_put(struct ew_recording *r, enum ew_record kind, const void *row)
{
    if (!r->store)
        return EW_OK;
    return kind == EW_RECORD_EPOCH ? put_epoch(r, row) : ew_store_put(r->store, kind, r->run, row);
}

static ew_err put_figure(struct ew_recording *r, const struct ew_metric_row *figure)
{
    struct ew_metric_row m;
    ew_record_clear(EW_RECORD_METRIC, &m);
    m.name = figure->name;
    m.value = figure->value;
    m.unit = figure->unit;
    m.source = figure->source;
    m.quality = figure->quality;
    m.better = figure->better;
    return ew_recording_put(r, EW_RECORD_METRIC, &m);
}

ew_err ew_recording_metric(struct ew_recording *r, const char *name, double value, const char *unit,
                           enum ew_better better)
{
    return put_figure(r, &(struct ew_metric_row){.name = name,
                                                 .value = value,
                                                 .unit = unit,
                                                 .quality = EW_QUALITY_MEASURED,
                                                 .better = (int)better});
}

ew_err ew_recording_derived(struct ew_recording *r, const char *name, double value,
                            const char *unit, enum ew_better better)
{
    return put_figure(r, &(struct ew_metric_row){.name = name,
                                                 .value = value,
                                                 .unit = unit,
                                                 .quality = EW_QUALITY_DERIVED,
                                                 .better = (int)better});
}

ew_err ew_recording_modelled(struct ew_recording *r, const struct ew_recording_model *by,
                             const char *name, double value, const char *unit,
                             enum ew_better better)
{
    return put_figure(r, &(struct ew_metric_row){.name = name,
                                                 .value = value,
                                                 .unit = unit,
                                                 .source = by->source,
                                                 .quality = by->quality,
                                                 .better = (int)better});
}

ew_err ew_recording_end(struct ew_recording *r, ew_err err)
{
    if (!r->store)
        return err;
    ew_err stored = EW_OK;
    if (err == EW_OK)
        stored = ew_summary_add(r->store, r->run);
    /* A successful run of a study is marked done here already: if the study were killed before it
     * did so, the job would run again. */
    if (r->own || (err == EW_OK && stored == EW_OK)) {
        char reason[512];
        snprintf(reason, sizeof(reason), "%s", ew_error_message());
        const double wall_s = (double)(ew_clock_ns() - r->start_ns) / (double)EW_NS_PER_S;
        const ew_err ended =
            ew_store_run_end(r->store, r->run, err == EW_OK ? EW_RUN_DONE : EW_RUN_FAILED,
                             err == EW_OK ? NULL : reason, wall_s);
        stored = stored == EW_OK ? ended : stored;
        if (err != EW_OK)
            ew_fail(err, "%s", reason); /* report the first failure */
    }
    ew_store_close(r->store);
    r->store = NULL;
    return err != EW_OK ? err : stored;
}
