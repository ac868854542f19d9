/* SPDX-License-Identifier: Apache-2.0 */
/* How far a study is, as a row. */
#include "study/progress_row.h"

#include <unistd.h>

#include "base/process.h"

ew_err ew_study_put_progress(struct ew_store *s, const struct ew_study *study,
                             const struct ew_runner_counts *c, const char *started, const char *now)
{
    struct ew_study_row row;
    char updated[EW_RUN_TIME_CHARS], stamp[EW_STAMP_CHARS];
    ew_record_clear(EW_RECORD_STUDY, &row);
    ew_run_time_text(updated);
    ew_process_stamp((int)getpid(), stamp);
    row.name = study->name;
    row.title = study->title;
    row.about = study->about;
    row.differs = study->differs;
    row.quick = study->quick;
    row.jobs = c->total;
    row.done = c->known + c->done;
    row.failed = c->failed;
    row.skipped = c->skipped;
    row.left_s = c->left_s;
    row.now = now;
    row.started = started;
    row.updated = updated;
    row.pid = getpid();
    row.stamp = stamp;
    return ew_store_put(s, EW_RECORD_STUDY, 0, &row);
}

ew_err ew_study_check_holder(struct ew_store *s, const struct ew_study *study)
{
    struct ew_rows *rows;
    EW_TRY(ew_store_query(s, &rows, "SELECT pid, stamp, updated FROM study WHERE name = ?1", "s",
                          study->name));
    ew_err err = EW_OK;
    if (ew_rows_next(rows)) {
        const int pid = (int)ew_rows_int(rows, 0);
        const char *stamp = ew_rows_text(rows, 1), *updated = ew_rows_text(rows, 2);
        if (stamp && pid != (int)getpid() && ew_process_alive(pid, stamp))
            err = ew_fail(EW_ERR_IO,
                          "%s: process %d is running this study on %s (last heard of %s); wait for "
                          "it, or give another --db",
                          study->name, pid, ew_store_path(s), updated ? updated : "never");
    }
    const ew_err ended = ew_rows_free(rows);
    return err == EW_OK ? ended : err;
}
