/* SPDX-License-Identifier: Apache-2.0 */
/* Commands and files over ssh: each is one ssh process, with pipes. */
#include "cli/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/progress.h"
#include "base/sha256.h"
#include "base/spawn.h"

#define COMMAND      2048
#define END_WAIT_MS  2000 /* grace period of an ssh process before it is killed */
#define NOT_THE_FILE 9    /* exit status of the remote shell commands if the checksum */
#define NOT_ALL      10   /* if the connection ended early */
#define FETCH_BYTES  ((int64_t)4 << 30) /* largest file fetched from a board */

ew_err ew_remote_quote(const char *text, char *out, size_t size)
{
    size_t n = 0;
    EW_CHECK(size > 2, EW_ERR_LIMIT, "%.40s: too long", text);
    out[n++] = '\'';
    for (const char *p = text; *p; p++) {
        EW_CHECK(n + 6 < size, EW_ERR_LIMIT, "%.40s...: too long", text);
        if (*p == '\'') { /* close the quote, an escaped quote, reopen */
            memcpy(out + n, "'\\''", 4);
            n += 4;
        } else {
            out[n++] = *p;
        }
    }
    out[n++] = '\'';
    out[n] = '\0';
    return EW_OK;
}

/* ---- One call of ssh ---- */

static const char *program(const struct ew_remote *r)
{
    const char *own = getenv("EW_SSH");
    return r->ssh ? r->ssh : own && *own ? own : "ssh";
}

/* Starts ssh; stdin and stdout are pipes if wanted, else /dev/null and our stderr. */
static ew_err start(const struct ew_remote *r, const char *command, bool in, bool out,
                    struct ew_spawned *c)
{
    /* ServerAliveInterval: without it ssh would wait forever for a board that lost power. */
    const char *argv[] = {program(r), "-o",    "BatchMode=yes", "-o", "ServerAliveInterval=20",
                          "--",       r->host, command,         NULL};
    const struct ew_spawn_opts o = {
        .stream = {in ? EW_STREAM_PIPE : EW_STREAM_NULL, out ? EW_STREAM_PIPE : EW_STREAM_ERR}};
    return ew_spawn(argv, &o, c);
}

static ew_err finish(const struct ew_remote *r, struct ew_spawned *c, const char *what)
{
    int status;
    EW_TRY(ew_spawn_wait(c, &status, NULL));
    EW_CHECK(!(WIFEXITED(status) && WEXITSTATUS(status) == NOT_THE_FILE), EW_ERR_FORMAT,
             "%s: what arrived there is not the file that was sent", r->host);
    EW_CHECK(!(WIFEXITED(status) && WEXITSTATUS(status) == NOT_ALL), EW_ERR_IO,
             "%s: not all of the file arrived there; the same command continues", r->host);
    EW_CHECK(!(WIFEXITED(status) && WEXITSTATUS(status) == 255), EW_ERR_IO,
             "%s: cannot be reached by ssh", r->host);
    EW_CHECK(ew_status_is_success(status), EW_ERR_IO, "%s: %s failed there", r->host, what);
    return EW_OK;
}

/* ---- Commands ---- */

ew_err ew_remote_run(const struct ew_remote *r, const char *command, char *out, size_t size)
{
    struct ew_spawned c;
    size_t used = 0;
    char rest[4096];
    EW_TRY(start(r, command, false, true, &c));
    for (;;) {
        const bool room = out && used + 1 < size;
        const ssize_t n =
            read(c.fd[1], room ? out + used : rest, room ? size - 1 - used : sizeof(rest));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        used += room ? (size_t)n : 0;
    }
    while (out && used > 0 && strchr(" \n\r\t", out[used - 1]))
        used--;
    if (out)
        out[used] = '\0';
    char what[64];
    snprintf(what, sizeof(what), "%.60s", command);
    return finish(r, &c, what);
}

/* ---- Files ---- */

static ew_err pour(int from, int to, const char *path, int64_t total, int64_t at)
{
    char block[32 << 10];
    struct ew_progress bar;
    ew_err e = EW_OK;
    ew_progress_begin(&bar, stderr, path, total);
    for (ssize_t n; e == EW_OK && (n = read(from, block, sizeof(block))) != 0;) {
        if (n < 0)
            e = ew_fail(EW_ERR_IO, "%s: %s", path, strerror(errno));
        for (ssize_t done = 0, k; e == EW_OK && done < n; done += k) {
            k = write(to, block + done, (size_t)(n - done));
            if (k <= 0)
                e = ew_fail(EW_ERR_IO, "%s: the connection is gone; the same command continues",
                            path);
        }
        at += n > 0 ? n : 0;
        ew_progress_update(&bar, at);
    }
    ew_progress_end(&bar);
    return e;
}

/* A broken connection is reported as a write error, not by SIGPIPE. */
static ew_err send_rest(const struct ew_remote *r, const char *path, const char *command,
                        int64_t at)
{
    struct stat st;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    EW_CHECK(fd >= 0 && fstat(fd, &st) == 0 && lseek(fd, at, SEEK_SET) == at, EW_ERR_IO, "%s: %s",
             path, strerror(errno));
    struct ew_spawned c;
    struct sigaction before;
    const struct sigaction ignore = {.sa_handler = SIG_IGN};
    ew_err e = start(r, command, true, false, &c);
    if (e == EW_OK) {
        sigaction(SIGPIPE, &ignore, &before);
        e = pour(fd, c.fd[0], path, (int64_t)st.st_size, at);
        const ew_err ended = finish(r, &c, "writing the file");
        sigaction(SIGPIPE, &before, NULL);
        e = e == EW_OK ? ended : e;
    }
    close(fd);
    return e;
}

/* Sends the bytes from `at` to `size`.  A complete remote file with a wrong checksum is removed, or
 * every later call would append to it; an incomplete one stays for the next call: to `cat` a lost
 * connection is end of file.  `file` is quoted. */
static ew_err send_part(const struct ew_remote *r, const char *path, const char *file,
                        const char *sum, bool is_program, int64_t at, int64_t size)
{
    char command[COMMAND];
    snprintf(command, sizeof(command),
             "f=%s; p=\"$f.%.8s\"; cat %s\"$p\" || exit 1; "
             "[ $(wc -c <\"$p\") -ge %lld ] || exit %d; "
             "[ \"$(sha256sum \"$p\" | cut -d ' ' -f 1)\" = %s ] || { rm -f \"$p\"; exit %d; }; "
             "%smv \"$p\" \"$f\"",
             file, sum, at ? ">>" : ">", (long long)size, NOT_ALL, sum, NOT_THE_FILE,
             is_program ? "chmod +x \"$p\" && " : "");
    return send_rest(r, path, command, at);
}

ew_err ew_remote_send(const struct ew_remote *r, const char *path, const char *name,
                      bool is_program, int64_t *sent)
{
    char sum[EW_SHA256_TEXT], said[512], command[COMMAND], file[512];
    struct stat st;
    EW_CHECK(stat(path, &st) == 0, EW_ERR_IO, "%s: %s", path, strerror(errno));
    EW_TRY(ew_sha256_file(path, sum));
    snprintf(said, sizeof(said), "%s/%s", r->folder, name);
    EW_TRY(ew_remote_quote(said, file, sizeof(file)));
    /* The remote state: "same", or the number of bytes of a partial copy. */
    snprintf(command, sizeof(command),
             "f=%s; mkdir -p \"${f%%/*}\"; s=$(sha256sum \"$f\" 2>/dev/null | cut -d ' ' -f 1); "
             "if [ \"$s\" = %s ]; then echo same; else { wc -c <\"$f.%.8s\"; } 2>/dev/null || echo "
             "0; fi",
             file, sum, sum);
    EW_TRY(ew_remote_run(r, command, said, sizeof(said)));
    if (sent)
        *sent = 0;
    if (strcmp(said, "same") == 0)
        return EW_OK;
    const int64_t size = (int64_t)st.st_size;
    int64_t at = atoll(said);
    at = at < 0 || at > size ? 0 : at;
    ew_err e = send_part(r, path, file, sum, is_program, at, size);
    if (e == EW_ERR_FORMAT && at > 0) { /* the partial copy is of another file */
        at = 0;
        e = send_part(r, path, file, sum, is_program, at, size);
    }
    if (sent)
        *sent = size - at;
    return e;
}

/* Copies everything until end of file to `to`. */
static ew_err take(int from, const char *path, FILE *to)
{
    char block[32 << 10];
    ssize_t n;
    int64_t all = 0;
    while ((n = read(from, block, sizeof(block))) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        EW_CHECK(n > 0 && fwrite(block, 1, (size_t)n, to) == (size_t)n, EW_ERR_IO, "%s: %s", path,
                 strerror(errno));
        all += n;
        EW_CHECK(all <= FETCH_BYTES, EW_ERR_LIMIT, "%s: the board sends more than 4 GiB", path);
    }
    return EW_OK;
}

ew_err ew_remote_fetch(const struct ew_remote *r, const char *name, const char *path)
{
    char command[COMMAND], file[512], place[512];
    struct ew_file_out out;
    struct ew_spawned c;
    snprintf(place, sizeof(place), "%s/%s", r->folder, name);
    EW_TRY(ew_remote_quote(place, file, sizeof(file)));
    snprintf(command, sizeof(command), "cat %s", file);
    EW_TRY(ew_file_out_open(path, &out));
    ew_err e = start(r, command, false, true, &c);
    if (e == EW_OK) {
        e = take(c.fd[1], path, out.f);
        if (e != EW_OK) /* ends ssh if the closed pipe does not */
            ew_spawn_end(&c, END_WAIT_MS);
        else
            e = finish(r, &c, "reading the file");
    }
    if (e == EW_OK)
        return ew_file_out_commit(&out);
    ew_file_out_abort(&out);
    return e;
}
