/* SPDX-License-Identifier: Apache-2.0 */
/* Writes synthetic results into a store, for scripts that look at reports in a browser.
 * usage: results_sample FILE.db [hostile | live]
 * live: a study is running, and an epoch is added every third of a second until end of input. */
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/process.h"
#include "results_store.h"

/* ---- A running study ---- */

static ew_err put_study(struct ew_store *s, int64_t done)
{
    struct ew_study_row row;
    char now[EW_RUN_TIME_CHARS], stamp[EW_STAMP_CHARS];
    ew_record_clear(EW_RECORD_STUDY, &row);
    ew_run_time_text(now);
    ew_process_stamp(getpid(), stamp);
    row.name = "train-workers";
    row.title = "Workers and caching";
    row.about = "How many loader threads it takes until an epoch no longer waits for data.";
    row.quick = true;
    row.jobs = 40;
    row.done = 30 + done;
    row.failed = 1;
    row.skipped = 0;
    row.left_s = 95;
    row.now = "lenet5, workers 4";
    row.started = row.updated = now;
    row.pid = getpid();
    row.stamp = stamp;
    return ew_store_put(s, EW_RECORD_STUDY, 0, &row);
}

static ew_err live(struct ew_store *s, const struct ew_results *r)
{
    struct pollfd in = {.fd = 0, .events = POLLIN};
    struct ew_run_row row;
    int64_t run;
    ew_record_clear(EW_RECORD_RUN, &row);
    row.job = r->runs[0].job.id;
    row.machine = r->runs[0].machine.id;
    row.study = "train-workers";
    row.label = "lenet5";
    row.quality = EW_QUALITY_MEASURED;
    EW_TRY(put_study(s, 0));
    EW_TRY(ew_store_run_begin(s, &row, &run));
    for (int e = 0; poll(&in, 1, 330) == 0; e++) {
        struct ew_epoch_row epoch = r->runs[0].epochs[e % r->runs[0].n_epochs];
        epoch.epoch = e;
        EW_TRY(ew_store_put(s, EW_RECORD_EPOCH, run, &epoch));
        EW_TRY(put_study(s, e / 6 < 9 ? e / 6 : 9));
    }
    return EW_OK;
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
        e = ew_case_put(s, &r);
    if (e == EW_OK && argc > 2 && strcmp(argv[2], "live") == 0)
        e = live(s, &r);
    ew_store_close(s);
    ew_results_fini(&r);
    if (e != EW_OK)
        fprintf(stderr, "results_sample: %s\n", ew_error_message());
    return e != EW_OK;
}
