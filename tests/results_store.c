/* SPDX-License-Identifier: Apache-2.0 */
/* Writes synthetic results into a store. */
#include "results_store.h"

static ew_err put_rows(struct ew_store *s, const struct ew_run_data *d, int64_t run)
{
    for (int i = 0; i < d->n_epochs; i++)
        EW_TRY(ew_store_put(s, EW_RECORD_EPOCH, run, &d->epochs[i]));
    for (int i = 0; i < d->n_samples; i++)
        EW_TRY(ew_store_put(s, EW_RECORD_SAMPLE, run, &d->samples[i]));
    for (int i = 0; i < d->n_metrics; i++)
        EW_TRY(ew_store_put(s, EW_RECORD_METRIC, run, &d->metrics[i]));
    return EW_OK;
}

static ew_err put_run(struct ew_store *s, const struct ew_run_data *d)
{
    int64_t run;
    struct ew_run_row row = d->run;
    row.job = d->job.id;
    row.machine = d->machine.id;
    EW_TRY(ew_store_put(s, EW_RECORD_MACHINE, 0, &d->machine));
    EW_TRY(ew_store_put(s, EW_RECORD_JOB, 0, &d->job));
    EW_TRY(ew_store_run_begin(s, &row, &run));
    EW_TRY(put_rows(s, d, run));
    return ew_store_run_end(s, run, (enum ew_run_status)d->run.status, d->run.reason,
                            d->run.wall_s);
}

ew_err ew_case_put(struct ew_store *s, const struct ew_results *r)
{
    EW_TRY(ew_store_begin(s));
    for (int i = 0; i < r->n_runs; i++)
        EW_TRY(put_run(s, &r->runs[i]));
    for (int i = 0; i < r->n_published; i++)
        EW_TRY(ew_store_put(s, EW_RECORD_PUBLISHED, 0, &r->published[i]));
    return ew_store_end(s, true);
}
