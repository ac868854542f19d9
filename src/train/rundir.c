/* SPDX-License-Identifier: Apache-2.0 */
/* The folder of a run. */
#include "train/rundir.h"

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

/* Bytes of rows that are buffered: one write per row costs 5 % of a small network's step. */
#define SPILL_BYTES 65536

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

/* Fails early if there is not enough disk space. */
static ew_err check_room(const char *path, int64_t need)
{
    struct statvfs v;
    if (statvfs(path, &v) != 0)
        return EW_OK; /* not every file system reports it */
    const double left = (double)v.f_bavail * (double)v.f_frsize;
    EW_CHECK(left >= (double)need, EW_ERR_IO,
             "%s: has room for %.1f MB, the run's checkpoints need about %.1f MB", path, left / 1e6,
             (double)need / 1e6);
    return EW_OK;
}

/* End of the last complete row within the first `bytes` of a file. */
static int64_t whole_rows(int fd, int64_t bytes)
{
    char block[4096];
    while (bytes > 0) {
        const int64_t n = ew_min_i64(bytes, (int64_t)sizeof(block));
        if (pread(fd, block, (size_t)n, (off_t)(bytes - n)) != n)
            return 0;
        const char *end = memrchr(block, '\n', (size_t)n);
        if (end)
            return bytes - n + (end - block) + 1;
        bytes -= n;
    }
    return 0;
}

/* Truncates the file to the checkpoint's size, or to its complete rows if it is shorter. */
static bool cut(int fd, const char *path, int64_t *bytes)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return false;
    if (st.st_size < *bytes) {
        EW_WARN("%s: has %lld bytes, the checkpoint counts %lld: rows were lost; training goes on",
                path, (long long)st.st_size, (long long)*bytes);
        *bytes = whole_rows(fd, st.st_size);
    }
    return ftruncate(fd, (off_t)*bytes) == 0;
}

static ew_err open_rows(const struct ew_rundir *r, const char *name, int64_t bytes,
                        struct ew_rowfile *out)
{
    ew_rundir_file(r, name, out->path);
    const int fd = open(out->path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666);
    EW_CHECK(fd >= 0, EW_ERR_IO, "%s: %s", out->path, strerror(errno));
    /* file systems without locks have none to wait for */
    const bool taken = flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    if (taken || !cut(fd, out->path, &bytes) || !(out->f = fdopen(fd, "a"))) {
        const ew_err e = ew_fail(EW_ERR_IO, "%s: %s", out->path,
                                 taken ? "another process is training there" : strerror(errno));
        close(fd);
        return e;
    }
    fseek(out->f, 0, SEEK_END);
    out->rows = open_memstream(&out->text, &out->bytes);
    EW_CHECK(out->rows, EW_ERR_MEMORY, "no memory for rows");
    out->good = bytes;
    return EW_OK;
}

/* Number of rows of a file that begins with a run's header line, of *head_bytes; -1: another file.
 */
static int rows_of(const char *path, int64_t *head_bytes)
{
    EW_CLEANUP(ew_free_ptr) char *head = NULL;
    EW_CLEANUP(ew_free_ptr) char *text = NULL;
    size_t n = 0, size = 0;
    FILE *f = open_memstream(&head, &n);
    if (!f)
        return -1;
    ew_record_csv_head(f, EW_RECORD_EPOCH);
    if (!ew_memstream_close(f, &head) || ew_file_read(path, (size_t)1 << 24, &text, &size) != EW_OK)
        return -1;
    if (size < n || memcmp(text, head, n) != 0)
        return -1;
    int rows = 0;
    *head_bytes = (int64_t)n;
    for (size_t i = n; i < size; i++)
        rows += text[i] == '\n';
    return rows;
}

/* Checks that a new run may use the folder: it has none of its files, or only those of a run that
 * was killed before its first checkpoint. */
static ew_err check_free(const struct ew_rundir *r, int64_t *head_bytes)
{
    static const char *const others[] = {"last.ckpt", "result.json", "best.ckpt", "options.ini",
                                         "machine.json"};
    char path[EW_RUNDIR_PATH];
    struct stat st;
    const int rows =
        rows_of(ew_rundir_file(r, row_files[EW_ROWS_EPOCHS_CSV].name, path), head_bytes);
    /* a run's first best.ckpt is written before last.ckpt */
    const size_t n = rows < 0 ? EW_COUNT(others) + EW_ROWS_COUNT : rows <= 1 ? 2 : 3;
    for (size_t i = 0; i < n; i++) {
        const bool other = i < EW_COUNT(others);
        ew_rundir_file(r, other ? others[i] : row_files[i - EW_COUNT(others)].name, path);
        EW_CHECK(lstat(path, &st) != 0 || (S_ISREG(st.st_mode) && st.st_size == 0), EW_ERR_IO,
                 "%s: exists, and a new run replaces nothing; choose another folder", path);
    }
    return EW_OK;
}

/* Removes temporary files of a run that was killed while it wrote. */
static void sweep_leftovers(const struct ew_rundir *r)
{
    static const char *const ours[] = {"last.ckpt", "best.ckpt", "options.ini", "machine.json",
                                       "result.json"};
    char path[EW_RUNDIR_PATH];
    for (size_t i = 0; i < EW_COUNT(ours); i++)
        ew_file_sweep(ew_rundir_file(r, ours[i], path));
}

/* Fails on symbolic links: a folder given to --resume may be from someone else, and a link in place
 * of a file that a run writes could point to one of the user's. */
static ew_err check_plain(const char *path)
{
    static const char *const written[] = {"last.ckpt",   "best.ckpt", "options.ini", "machine.json",
                                          "result.json", "int8.onnx", NULL};
    const char *rows[EW_ROWS_COUNT + 1] = {NULL};
    for (int i = 0; i < EW_ROWS_COUNT; i++)
        rows[i] = row_files[i].name;
    EW_TRY(ew_folder_has_plain(path, written));
    return ew_folder_has_plain(path, rows);
}

static ew_err open_files(struct ew_rundir *r, const int64_t bytes[EW_ROWS_COUNT])
{
    for (int i = 0; i < EW_ROWS_COUNT; i++) {
        EW_TRY(open_rows(r, row_files[i].name, bytes[i], &r->rows[i]));
        if (i == 0)
            sweep_leftovers(r);
        if (row_files[i].csv && r->rows[i].good == 0)
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
    EW_TRY(check_plain(path));
    strcpy(out->path, path);
    int64_t keep[EW_ROWS_COUNT];
    memcpy(keep, bytes, sizeof(keep));
    /* a restarted run keeps the header, by which the folder is recognised */
    if (bytes[EW_ROWS_EPOCHS_CSV] == 0)
        EW_TRY(check_free(out, &keep[EW_ROWS_EPOCHS_CSV]));
    const ew_err e = open_files(out, keep);
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
    return *r->path ? ew_file_replace(ew_rundir_file(r, name, path), text, strlen(text)) : EW_OK;
}

/* ---- While it runs ---- */

static void warn(struct ew_rundir *r, const char *what, const char *why)
{
    if (!r->warned)
        EW_WARN("%s: %s; training goes on", what, why);
    r->warned = true;
}

/* Flushes complete rows; after a failed write truncates to complete ones. */
static void settle(struct ew_rundir *r, struct ew_rowfile *w)
{
    if (!w->f || !w->rows)
        return;
    const bool whole = fflush(w->rows) == 0 && !ferror(w->rows) && w->text;
    if (whole)
        fwrite(w->text, 1, w->bytes, w->f);
    clearerr(w->rows);
    rewind(w->rows);
    if (whole && fflush(w->f) == 0 && !ferror(w->f)) {
        w->good = (int64_t)ftell(w->f);
        return;
    }
    warn(r, w->path, whole ? strerror(errno) : "no memory for its rows");
    w->lost++;
    clearerr(w->f);
    (void)!ftruncate(fileno(w->f), (off_t)w->good);
}

void ew_rundir_flush(struct ew_rundir *r)
{
    for (int i = 0; i < EW_ROWS_COUNT; i++) {
        settle(r, &r->rows[i]);
        if (r->rows[i].f)
            (void)!fdatasync(fileno(r->rows[i].f)); /* before the checkpoint that refers to them */
    }
}

/* Adds a row; writes when more than `spill` bytes are buffered. */
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
    r->checkpoint_failed = ew_checkpoint_write(ew_rundir_file(r, name, path), c) != EW_OK;
    if (r->checkpoint_failed)
        warn(r, "checkpoint", ew_error_message());
    else
        r->warned = false; /* writing works again: report the next failure */
}

bool ew_rundir_same(const struct ew_rundir *r, const char *of, const char *name)
{
    char from[EW_RUNDIR_PATH], to[EW_RUNDIR_PATH], temp[EW_RUNDIR_PATH], rest[48];
    if (!*r->path)
        return false;
    snprintf(rest, sizeof(rest), "%.24s.%d-0.tmp", name, (int)getpid()); /* removed as a leftover */
    ew_rundir_file(r, of, from);
    ew_rundir_file(r, rest, temp);
    if (link(from, temp) != 0) /* not every file system has hard links */
        return false;
    const bool renamed = rename(temp, ew_rundir_file(r, name, to)) == 0;
    unlink(temp); /* rename does nothing if both are links to one file */
    return renamed;
}
