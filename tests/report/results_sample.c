/* SPDX-License-Identifier: Apache-2.0 */
/* Writes made-up results into a store, for scripts that look at reports in a browser.
 * usage: results_sample FILE.db [hostile] */
#include <stdio.h>
#include <string.h>

#include "results_case.h"
#include "store/store.h"

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

static ew_err put_all(struct ew_store *s, const struct ew_results *r)
{
    EW_TRY(ew_store_begin(s));
    for (int i = 0; i < r->n_runs; i++)
        EW_TRY(put_run(s, &r->runs[i]));
    for (int i = 0; i < r->n_published; i++)
        EW_TRY(ew_store_put(s, EW_RECORD_PUBLISHED, 0, &r->published[i]));
    return ew_store_end(s, true);
}

int main(int argc, char **argv)
{
    struct ew_results r;
    struct ew_store *s = NULL;
    const bool hostile = argc > 2 && strcmp(argv[2], "hostile") == 0;
    if (argc < 2)
        return 2;
    ew_err e = hostile ? ew_case_hostile(&r) : ew_case_results(&r);
    if (e == EW_OK)
        e = ew_store_open(argv[1], NULL, &s);
    if (e == EW_OK)
        e = put_all(s, &r);
    ew_store_close(s);
    ew_results_fini(&r);
    if (e != EW_OK)
        fprintf(stderr, "results_sample: %s\n", ew_error_message());
    return e != EW_OK;
}
