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
#include "base/owned.h"

#define SPILL_BYTES                                                                                \
    65536 /* rows that are kept in memory: a write each would be 5 % of a small net */

static const struct {
    const char *name;
    enum ew_record kind;
    bool csv;
} row_files[EW_ROWS_COUNT] = {
    [EW_ROWS_EPOCHS_CSV] = {"epochs.csv", EW_RECORD_EPOCH, true},
    [EW_ROWS_EPOCHS_JSON] = {"epochs.jsonl", EW_RECORD_EPOCH, false},
    [EW_ROWS_BATCHES_CSV] = {"batches.csv", EW_RECORD_BATCH, true},
    [EW_ROWS_BATCHES_JSON] = {"batches.jsonl", EW_RECORD_BATCH, false},
};

/* ---- Opening ---- */

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

/* The file is the head line that a run writes first, and no more. */
static bool only_head(const char *path)
{
    EW_CLEANUP(ew_free_ptr) char *head = NULL;
    EW_CLEANUP(ew_free_ptr) char *text = NULL;
    size_t n = 0, size = 0;
    FILE *f = open_memstream(&head, &n);
    if (!f)
        return false;
    ew_record_csv_head(f, EW_RECORD_EPOCH);
    if (fclose(f) != 0 || ew_file_read(path, (size_t)1 << 16, &text, &size) != EW_OK)
        return false;
    return size == n && memcmp(text, head, n) == 0;
}

/* A new run takes a folder that has none of its files, or the beginning of a run that was ended
 * before its first epoch; anything else in their place is somebody's. */
static ew_err check_free(const struct ew_rundir *r)
{
    static const char *const others[] = {"options.ini", "machine.json", "last.ckpt", "best.ckpt",
                                         "result.json"};
    char path[EW_RUNDIR_PATH];
    struct stat st;
    if (only_head(ew_rundir_file(r, row_files[EW_ROWS_EPOCHS_CSV].name, path)))
        return EW_OK;
    for (size_t i = 0; i < EW_ROWS_COUNT + EW_COUNT(others); i++) {
        ew_rundir_file(r, i < EW_ROWS_COUNT ? row_files[i].name : others[i - EW_ROWS_COUNT], path);
        EW_CHECK(lstat(path, &st) != 0 || (S_ISREG(st.st_mode) && st.st_size == 0), EW_ERR_IO,
                 "%s: exists, and a new run replaces nothing; choose another folder", path);
    }
    return EW_OK;
}

/* "3127-0.tmp": what base/file.h adds to the names of files in the making. */
static bool is_temp(const char *rest)
{
    const size_t pid = strspn(rest, "0123456789");
    const size_t n = pid && rest[pid] == '-' ? strspn(rest + pid + 1, "0123456789") : 0;
    return n && strcmp(rest + pid + 1 + n, ".tmp") == 0;
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
            if (n > 4 && n < 64 && strncmp(e->d_name, ours[i], strlen(ours[i])) == 0 &&
                is_temp(e->d_name + strlen(ours[i])))
                unlink(ew_rundir_file(r, e->d_name, path));
    }
    if (d)
        closedir(d);
}

static ew_err open_files(struct ew_rundir *r, const int64_t bytes[EW_ROWS_COUNT])
{
    for (int i = 0; i < EW_ROWS_COUNT; i++) {
        EW_TRY(open_rows(r, row_files[i].name, bytes[i], &r->rows[i]));
        if (i == 0)
            sweep_leftovers(r); /* nobody else is at work here */
        if (row_files[i].csv && bytes[i] == 0)
            ew_record_csv_head(r->rows[i].rows, row_files[i].kind);
    }
    ew_rundir_flush(r);
    EW_CHECK(!r->warned, EW_ERR_IO, "%s: cannot be written to", r->path);
    return EW_OK;
}

ew_err ew_rundir_open(const char *path, int64_t need, const int64_t bytes[EW_ROWS_COUNT],
                      struct ew_rundir *out)
{
    memset(out, 0, sizeof(*out));
    if (!path)
        return EW_OK;
    EW_CHECK(*path && strlen(path) < EW_RUNDIR_PATH - 64, EW_ERR_ARG,
             "the run folder's name is empty or too long");
    EW_TRY(ew_folder_make(path));
    EW_TRY(check_room(path, need));
    strcpy(out->path, path);
    if (bytes[EW_ROWS_EPOCHS_CSV] == 0)
        EW_TRY(check_free(out));
    const ew_err e = open_files(out, bytes);
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
    for (int i = 0; i < EW_ROWS_COUNT; i++)
        close_rows(&r->rows[i]);
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
    for (int i = 0; i < EW_ROWS_COUNT; i++) {
        settle(r, &r->rows[i]);
        if (r->rows[i].f)
            (void)!fdatasync(fileno(r->rows[i].f)); /* before the checkpoint that counts them */
    }
}

/* More than `spill` bytes do not wait. */
static void add_row(struct ew_rundir *r, enum ew_record kind, const void *row, size_t spill)
{
    for (int i = 0; i < EW_ROWS_COUNT; i++) {
        struct ew_rowfile *w = &r->rows[i];
        if (row_files[i].kind != kind || !w->f)
            continue;
        if (row_files[i].csv)
            ew_record_csv_row(w->rows, kind, row);
        else
            (void)ew_record_json_line(w->rows, kind, row);
        if (w->bytes > spill || spill == 0)
            settle(r, w);
    }
}

void ew_rundir_epoch(struct ew_rundir *r, const struct ew_epoch_row *row)
{
    add_row(r, EW_RECORD_EPOCH, row, 0);
}

void ew_rundir_batch(struct ew_rundir *r, const struct ew_batch_row *row)
{
    add_row(r, EW_RECORD_BATCH, row, SPILL_BYTES);
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
