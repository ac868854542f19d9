/* SPDX-License-Identifier: Apache-2.0 */
/* The folder of a run. */
#include "train/rundir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"

#define SPILL_BYTES                                                                                \
    65536 /* rows that are kept in memory: a write each would be 5 % of a small net */

/* ---- Opening ---- */

/* As mkdir -p. */
static ew_err make_folder(const char *path)
{
    char part[EW_RUNDIR_PATH];
    for (size_t n = 1; n <= strlen(path); n++) {
        if (path[n] != '/' && path[n] != '\0')
            continue;
        memcpy(part, path, n);
        part[n] = '\0';
        EW_CHECK(mkdir(part, 0777) == 0 || errno == EEXIST || errno == EISDIR, EW_ERR_IO, "%s: %s",
                 part, strerror(errno));
    }
    struct stat st;
    EW_CHECK(stat(path, &st) == 0 && S_ISDIR(st.st_mode), EW_ERR_IO, "%s: is no folder", path);
    return EW_OK;
}

/* Says before hours of work that they could not be kept. */
static ew_err check_room(const char *path, int64_t need)
{
    struct statvfs v;
    if (statvfs(path, &v) != 0)
        return EW_OK; /* not every file system tells */
    const double left = (double)v.f_bavail * (double)v.f_frsize;
    EW_CHECK(left >= (double)need, EW_ERR_IO,
             "%s: has room for %.1f MB, the run's checkpoints need about %.1f MB", path, left / 1e6,
             (double)need / 1e6);
    return EW_OK;
}

static ew_err open_rows(const struct ew_rundir *r, const char *name, int64_t bytes,
                        struct ew_rowfile *out)
{
    ew_rundir_file(r, name, out->path);
    const int fd = open(out->path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    EW_CHECK(fd >= 0, EW_ERR_IO, "%s: %s", out->path, strerror(errno));
    if (flock(fd, LOCK_EX | LOCK_NB) != 0 || ftruncate(fd, (off_t)bytes) != 0 ||
        !(out->f = fdopen(fd, "a"))) {
        const ew_err e =
            ew_fail(EW_ERR_IO, "%s: %s", out->path,
                    errno == EWOULDBLOCK ? "another process is training there" : strerror(errno));
        close(fd);
        return e;
    }
    fseek(out->f, 0, SEEK_END);
    out->rows = open_memstream(&out->text, &out->bytes);
    EW_CHECK(out->rows, EW_ERR_MEMORY, "no memory for rows");
    out->good = bytes;
    return EW_OK;
}

/* A run that was killed while it wrote leaves files that nobody will rename. */
static void sweep_leftovers(const struct ew_rundir *r)
{
    static const char *const ours[] = {"last.ckpt.", "best.ckpt.", "options.ini.", "machine.json."};
    char path[EW_RUNDIR_PATH];
    DIR *d = opendir(r->path);
    for (const struct dirent *e; d && (e = readdir(d));) {
        const size_t n = strlen(e->d_name);
        for (size_t i = 0; i < EW_COUNT(ours); i++)
            if (n > 4 && n < 64 && strcmp(e->d_name + n - 4, ".tmp") == 0 &&
                strncmp(e->d_name, ours[i], strlen(ours[i])) == 0)
                unlink(ew_rundir_file(r, e->d_name, path));
    }
    if (d)
        closedir(d);
}

static ew_err open_files(struct ew_rundir *r, int64_t epochs_bytes, int64_t batches_bytes)
{
    EW_TRY(open_rows(r, "epochs.csv", epochs_bytes, &r->epochs));
    sweep_leftovers(r);
    EW_TRY(open_rows(r, "batches.jsonl", batches_bytes, &r->batches));
    if (epochs_bytes == 0)
        ew_record_csv_head(r->epochs.rows, EW_RECORD_EPOCH);
    ew_rundir_flush(r);
    EW_CHECK(!r->warned, EW_ERR_IO, "%s: cannot be written to", r->epochs.path);
    return EW_OK;
}

ew_err ew_rundir_open(const char *path, int64_t need, int64_t epochs_bytes, int64_t batches_bytes,
                      struct ew_rundir *out)
{
    memset(out, 0, sizeof(*out));
    if (!path)
        return EW_OK;
    EW_CHECK(*path && strlen(path) < EW_RUNDIR_PATH - 64, EW_ERR_ARG,
             "the run folder's name is empty or too long");
    EW_TRY(make_folder(path));
    EW_TRY(check_room(path, need));
    strcpy(out->path, path);
    const ew_err e = open_files(out, epochs_bytes, batches_bytes);
    if (e != EW_OK)
        ew_rundir_close(out);
    return e;
}

static void close_rows(struct ew_rowfile *w)
{
    if (w->rows)
        fclose(w->rows);
    if (w->f)
        fclose(w->f);
    free(w->text);
    *w = (struct ew_rowfile){.good = w->good};
}

void ew_rundir_close(struct ew_rundir *r)
{
    ew_rundir_flush(r);
    close_rows(&r->epochs);
    close_rows(&r->batches);
}

const char *ew_rundir_file(const struct ew_rundir *r, const char *name, char buf[EW_RUNDIR_PATH])
{
    snprintf(buf, EW_RUNDIR_PATH, "%.*s/%s", EW_RUNDIR_PATH - 64, r->path, name);
    return buf;
}

ew_err ew_rundir_text(const struct ew_rundir *r, const char *name, const char *text)
{
    char path[EW_RUNDIR_PATH];
    return *r->path ? ew_file_write(ew_rundir_file(r, name, path), text, strlen(text)) : EW_OK;
}

/* ---- While it runs ---- */

static void warn(struct ew_rundir *r, const char *what, const char *why)
{
    if (!r->warned)
        EW_WARN("%s: %s; training goes on", what, why);
    r->warned = true;
}

/* Whole rows up to here, or back to where they were whole. */
static void settle(struct ew_rundir *r, struct ew_rowfile *w)
{
    if (!w->f || !w->rows)
        return;
    fflush(w->rows);
    fwrite(w->text, 1, w->bytes, w->f);
    rewind(w->rows);
    if (fflush(w->f) == 0 && !ferror(w->f)) {
        w->good = (int64_t)ftell(w->f);
        return;
    }
    warn(r, w->path, strerror(errno));
    w->lost++;
    clearerr(w->f);
    (void)!ftruncate(fileno(w->f), (off_t)w->good);
}

void ew_rundir_flush(struct ew_rundir *r)
{
    struct ew_rowfile *files[] = {&r->epochs, &r->batches};
    for (size_t i = 0; i < EW_COUNT(files); i++) {
        settle(r, files[i]);
        if (files[i]->f)
            (void)!fdatasync(fileno(files[i]->f)); /* before the checkpoint that counts them */
    }
}

void ew_rundir_epoch(struct ew_rundir *r, const struct ew_epoch_row *row)
{
    if (!r->epochs.f)
        return;
    ew_record_csv_row(r->epochs.rows, EW_RECORD_EPOCH, row);
    settle(r, &r->epochs);
}

void ew_rundir_batch(struct ew_rundir *r, const struct ew_batch_row *row)
{
    if (!r->batches.f)
        return;
    (void)ew_record_json_line(r->batches.rows, EW_RECORD_BATCH, row);
    if (r->batches.bytes > SPILL_BYTES)
        settle(r, &r->batches);
}

void ew_rundir_checkpoint(struct ew_rundir *r, const char *name, const struct ew_checkpoint *c)
{
    char path[EW_RUNDIR_PATH];
    if (!*r->path)
        return;
    r->behind = ew_checkpoint_write(ew_rundir_file(r, name, path), c) != EW_OK;
    if (r->behind)
        warn(r, "checkpoint", ew_error_message());
    else
        r->warned = false; /* there is room again: the next failure is news */
}
