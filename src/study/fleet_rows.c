/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of other machines' jobs in the study's database. */
#include "study/fleet_rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATH_CHARS 512

ew_err ew_fleet_job_done(struct ew_store *s, const struct ew_study *study,
                         const struct ew_study_job *j, const struct ew_machines *machines,
                         const char *unit, bool *done)
{
    struct ew_run_row key;
    ew_record_clear(EW_RECORD_RUN, &key);
    key.job = j->row.id;
    key.study = study->name;
    key.repeat = j->repeat;
    *done = false;
    for (int i = 0; i < machines->n && !*done; i++)
        if (!unit || strcmp(unit, machines->list[i].name) == 0)
            EW_TRY(ew_store_job_done(s, &key, machines->list[i].name, done));
    return EW_OK;
}

static ew_err put_run(struct ew_store *s, const struct ew_study_job *j,
                      const struct ew_machine_row *m, const struct ew_run_row *row, int64_t *run)
{
    EW_TRY(ew_store_put(s, EW_RECORD_MACHINE, 0, m));
    EW_TRY(ew_store_put(s, EW_RECORD_JOB, 0, &j->row));
    return ew_store_run_begin(s, row, run);
}

ew_err ew_fleet_row_begin(struct ew_store *s, const struct ew_study *study,
                          const struct ew_study_job *j, const struct ew_machine_row *m,
                          int64_t *run)
{
    struct ew_run_row row;
    ew_record_clear(EW_RECORD_RUN, &row);
    row.job = j->row.id;
    row.machine = m->id;
    row.study = study->name;
    row.label = j->label;
    row.repeat = j->repeat;
    row.quality = EW_QUALITY_MEASURED;
    EW_TRY(ew_store_begin(s));
    const ew_err err = put_run(s, j, m, &row, run);
    const ew_err ended = ew_store_end(s, err == EW_OK);
    return err == EW_OK ? ended : err;
}

/* ---- Results from other machines ------------------------------------------------------------- */

static ew_err write_temp(const struct ew_frame *file, char path[PATH_CHARS])
{
    const char *folder = getenv("TMPDIR");
    snprintf(path, PATH_CHARS, "%s/edgewise-rows-XXXXXX", folder && *folder ? folder : "/tmp");
    const int fd = mkstemp(path);
    EW_CHECK(fd >= 0, EW_ERR_IO, "%s: cannot be made", path);
    size_t at = 0;
    ssize_t n = 1;
    while (at < file->size && (n = write(fd, file->data + at, file->size - at)) > 0)
        at += (size_t)n;
    close(fd);
    EW_CHECK(at == file->size, EW_ERR_IO, "%s: cannot be written", path);
    return EW_OK;
}

static void remove_temp(const char *path)
{
    static const char *const ends[] = {"", "-wal", "-shm", "-journal"};
    for (size_t i = 0; i < EW_COUNT(ends); i++) {
        char name[PATH_CHARS + 16];
        snprintf(name, sizeof(name), "%s%s", path, ends[i]);
        unlink(name);
    }
}

static ew_err take(struct ew_store *s, const struct ew_store_claim *claim, const char *path)
{
    struct ew_store *there = NULL;
    int copied = 0;
    EW_TRY(ew_store_open(path, &(struct ew_store_opts){.existing = true}, &there));
    const ew_err err = ew_store_take(there, s, claim, &copied);
    ew_store_close(there);
    return err;
}

/* How the job ended there: by a finished run if there is one, else by the newest. */
static ew_err read_outcome(struct ew_store *s, const struct ew_store_claim *c,
                           struct ew_fleet_report *out)
{
    struct ew_rows *rows;
    EW_TRY(ew_store_query(
        s, &rows,
        "SELECT run.status, run.reason, run.noise, run.wall_s FROM run JOIN machine ON machine.id "
        "= run.machine WHERE run.job = ?1 AND run.study = ?2 AND run.repeat = ?3 AND machine.unit "
        "= ?4 AND run.status IN ('done', 'failed', 'skipped') ORDER BY run.status = 'done' DESC, "
        "run.id DESC LIMIT 1",
        "ssis", c->job, c->study, c->repeat, c->unit));
    const bool found = ew_rows_next(rows);
    if (found) {
        const char *status = ew_rows_text(rows, 0), *reason = ew_rows_text(rows, 1);
        const char *noise = ew_rows_text(rows, 2);
        out->event = strcmp(status, "done") == 0     ? EW_FLEET_DONE
                     : strcmp(status, "failed") == 0 ? EW_FLEET_FAILED
                                                     : EW_FLEET_SKIPPED;
        snprintf(out->reason, sizeof(out->reason), "%s", reason ? reason : "");
        snprintf(out->noise, sizeof(out->noise), "%s", noise ? noise : "");
        out->wall_s = ew_rows_num(rows, 3);
    }
    EW_TRY(ew_rows_free(rows));
    EW_CHECK(found, EW_ERR_FORMAT, "%s: sent no run of the job %s", c->unit, c->job);
    return EW_OK;
}

ew_err ew_fleet_rows_home(struct ew_store *s, const struct ew_store_claim *claim,
                          const struct ew_frame *file, int64_t run, struct ew_fleet_report *out)
{
    char path[PATH_CHARS];
    ew_err err = write_temp(file, path);
    if (err == EW_OK)
        err = take(s, claim, path);
    remove_temp(path);
    EW_TRY(err);
    EW_TRY(read_outcome(s, claim, out));
    return ew_store_run_delete(s, run);
}
