/* SPDX-License-Identifier: Apache-2.0 */
/* Reaching a machine through its launcher. */
#include "study/link.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/num.h"

#define END_WAIT_MS 3000 /* for a launcher whose input was closed */
#define TEXT_BLOCKS 16   /* of its standard error at a time: it may never pause */

/* ---- The launcher's process ------------------------------------------------------------------ */

/* Its standard input, output and error are pipes to us; it ends when we do. */
static ew_err start(struct ew_link *l, const char *const *argv)
{
    const struct ew_spawn_opts o = {.stream = {EW_STREAM_PIPE, EW_STREAM_PIPE, EW_STREAM_PIPE},
                                    .when_we_end = SIGTERM};
    EW_TRY(ew_spawn(argv, &o, &l->process));
    const int in = l->process.fd[1], out = l->process.fd[0];
    l->process.fd[0] = l->process.fd[1] = -1; /* used by the messages */
    fcntl(l->process.fd[2], F_SETFL, O_NONBLOCK);
    return ew_frames_open(&l->io, in, out, l->machine->name);
}

ew_err ew_link_open(struct ew_link *l, const struct ew_fleet_machine *m, const char *self)
{
    *l = (struct ew_link){
        .machine = m, .io = {.in = -1, .out = -1}, .process = {.fd = {-1, -1, -1}}};
    const char **argv;
    ew_arena_init(&l->arena);
    l->heard_ns = ew_clock_ns();
    l->open = true;
    signal(SIGPIPE, SIG_IGN); /* a lost machine is then an error of write */
    ew_err err = ew_machine_command(m, self, &l->arena, &argv);
    if (err == EW_OK)
        err = start(l, argv);
    if (err != EW_OK)
        ew_link_close(l);
    return err;
}

/* Waits END_WAIT_MS for the launcher, then kills it. */
static void reap(struct ew_spawned *p)
{
    int status;
    for (int waited = 0; waited < END_WAIT_MS; waited += 10) {
        if (waitpid(p->pid, &status, WNOHANG) != 0)
            return;
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    ew_spawn_signal(p, SIGKILL);
    ew_spawn_wait(p, &status, NULL);
}

void ew_link_close(struct ew_link *l)
{
    if (!l->open)
        return;
    ew_frames_close(&l->io);
    ew_spawn_close(&l->process, 2);
    if (l->process.pid > 0)
        reap(&l->process);
    ew_arena_fini(&l->arena);
    l->open = l->ready = l->broken = false;
    l->process.pid = 0;
}

/* ---- Lines of standard error ----------------------------------------------------------------- */

/* Keeps the last line that is not empty, but prefers an error's line to a hint below it. */
static void take_text(struct ew_link *l, char line[EW_LINK_TEXT], size_t *used, const char *text,
                      size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '\n' || text[i] == '\r') {
            line[*used] = '\0';
            if (*used && strncmp(line, "hint: ", 6) != 0)
                snprintf(l->said, sizeof(l->said), "%s",
                         strncmp(line, "edgewise: ", 10) == 0 ? line + 10 : line);
            *used = 0;
        } else if (*used + 1 < EW_LINK_TEXT) {
            line[(*used)++] = text[i] >= ' ' || text[i] < 0 ? text[i] : '?';
        }
    }
}

static void hear_launcher(struct ew_link *l)
{
    char block[4096];
    ssize_t n;
    const int fd = l->process.fd[2];
    for (int i = 0; i < TEXT_BLOCKS && fd >= 0 && (n = read(fd, block, sizeof(block))) > 0; i++)
        take_text(l, l->launcher_line, &l->n_launcher_line, block, (size_t)n);
}

/* ---- Greeting ------------------------------------------------------------------------------- */

/* "key=value" lines; the machine's fields are those of the record. */
static ew_err take_fact(struct ew_link *l, const char *key, const char *value)
{
    const char *name = l->machine->name;
    int64_t n = 0;
    if (strcmp(key, "protocol") == 0)
        EW_CHECK(ew_num_int(value, &n) && n == EW_LINK_PROTOCOL, EW_ERR_UNSUPPORTED,
                 "%s: its agent speaks protocol %s, ours %d", name, value, EW_LINK_PROTOCOL);
    else if (strcmp(key, "agent") == 0)
        EW_CHECK(strcmp(value, EW_VERSION) == 0, EW_ERR_UNSUPPORTED,
                 "%s: has edgewise %s, this is %s; 'edgewise deploy' copies the program there",
                 name, value, EW_VERSION);
    else if (strcmp(key, "device") == 0)
        snprintf(l->device, sizeof(l->device), "%s", value);
    else if (strcmp(key, "disk") == 0)
        EW_CHECK(ew_num_int(value, &l->disk_bytes), EW_ERR_FORMAT, "%s: disk '%s'", name, value);
    else {
        const struct ew_field *f = ew_field_find(ew_record_kind(EW_RECORD_MACHINE)->fields, key);
        if (f)
            EW_TRY(ew_fail_in(ew_field_parse(f, value, &l->about), "%s", name));
    }
    return EW_OK;
}

/* The machine's description is its own, except the name, which we set, and the id, which is the
 * hash of the rest. */
static ew_err check_machine(struct ew_link *l)
{
    const struct ew_fleet_machine *m = l->machine;
    char id[EW_RECORD_ID_CHARS];
    EW_CHECK(l->about.unit && strcmp(l->about.unit, m->name) == 0, EW_ERR_FORMAT,
             "%s: calls itself '%s'", m->name, l->about.unit ? l->about.unit : "");
    EW_CHECK(!m->device || strcmp(m->device, l->device) == 0, EW_ERR_UNSUPPORTED,
             "%s: is device %s, but the file says %s", m->name, l->device, m->device);
    EW_CHECK(l->disk_bytes == EW_INT_ABSENT || l->disk_bytes >= m->least_disk_bytes, EW_ERR_IO,
             "%s: only %lld MB are free on its disk", m->name, (long long)(l->disk_bytes >> 20));
    EW_TRY(ew_machine_row_id(&l->about, id));
    l->about.id = ew_arena_strdup(&l->arena, id);
    EW_CHECK(l->about.id, EW_ERR_MEMORY, "no memory for a machine");
    return EW_OK;
}

static ew_err take_hello(struct ew_link *l)
{
    char *save = NULL, *text = ew_arena_strdup(&l->arena, l->frame.data);
    EW_CHECK(text && !l->ready, EW_ERR_FORMAT, "%s: a second greeting", l->machine->name);
    ew_record_clear(EW_RECORD_MACHINE, &l->about);
    l->disk_bytes = EW_INT_ABSENT;
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        char *equals = strchr(line, '=');
        EW_CHECK(equals, EW_ERR_FORMAT, "%s: its greeting has '%.40s'", l->machine->name, line);
        *equals = '\0';
        EW_TRY(take_fact(l, line, equals + 1));
    }
    EW_TRY(check_machine(l));
    l->ready = true;
    return EW_OK;
}

/* ---- Events ---------------------------------------------------------------------------------- */

void ew_link_poll(const struct ew_link *l, struct pollfd fds[EW_LINK_FDS], int *n)
{
    *n = 0;
    if (!l->open)
        return;
    fds[(*n)++] = (struct pollfd){.fd = l->io.in, .events = POLLIN};
    if (l->process.fd[2] >= 0)
        fds[(*n)++] = (struct pollfd){.fd = l->process.fd[2], .events = POLLIN};
    if (ew_frames_waiting(&l->io))
        fds[(*n)++] = (struct pollfd){.fd = l->io.out, .events = POLLOUT};
}

/* Removes the machine's name at the beginning of our own messages: the caller shows it too. */
static enum ew_link_event gone(struct ew_link *l, const char *why)
{
    const size_t n = strlen(l->machine->name);
    if (why && strncmp(why, l->machine->name, n) == 0 && strncmp(why + n, ": ", 2) == 0)
        why += n + 2;
    if (why)
        snprintf(l->said, sizeof(l->said), "%s", why);
    else if (!l->said[0])
        snprintf(l->said, sizeof(l->said), "%s",
                 l->ready ? "it went away" : "its launcher gives no answer");
    return EW_LINK_GONE;
}

void ew_link_receive(struct ew_link *l)
{
    bool end = false;
    if (!l->open)
        return;
    hear_launcher(l);
    const size_t before = l->io.n_got - l->io.used;
    const ew_err err = ew_frames_read(&l->io, &end);
    if (l->io.n_got - l->io.used > before)
        l->heard_ns = ew_clock_ns();
    if (err == EW_OK && end && l->io.in >= 0) { /* data before the end is still processed */
        close(l->io.in);
        l->io.in = -1;
    }
    ew_frames_flush(&l->io); /* if that fails the other pipe is closed too */
}

/* The event of a message; NOTHING: handled here. */
static enum ew_link_event take_frame(struct ew_link *l)
{
    const struct ew_frame *f = &l->frame;
    if (strcmp(f->type, "hello") == 0)
        return take_hello(l) == EW_OK ? EW_LINK_READY : gone(l, ew_error_message());
    if (!l->ready)
        return gone(l, "sends messages before its greeting");
    if (strcmp(f->type, "out") == 0)
        return EW_LINK_OUT;
    if (strcmp(f->type, "data") == 0)
        return EW_LINK_DATA;
    if (strcmp(f->type, "epoch") == 0)
        return EW_LINK_EPOCH;
    if (strcmp(f->type, "err") == 0)
        take_text(l, l->line, &l->n_line, f->data, f->size);
    if (strcmp(f->type, "failed") == 0)
        return gone(l, f->data);
    if (strcmp(f->type, "end") == 0) {
        l->status = atoi(f->data);
        return EW_LINK_END;
    }
    return EW_LINK_NOTHING;
}

enum ew_link_event ew_link_next(struct ew_link *l)
{
    bool there = true;
    if (!l->open)
        return EW_LINK_NOTHING;
    while (there) {
        if (ew_frames_next(&l->io, &l->frame, &there) != EW_OK)
            return gone(l, ew_error_message());
        const enum ew_link_event e = there ? take_frame(l) : EW_LINK_NOTHING;
        if (e != EW_LINK_NOTHING)
            return e;
    }
    if (l->io.in < 0 || l->broken)
        return gone(l, NULL);
    if ((double)(ew_clock_ns() - l->heard_ns) > l->machine->timeout_s * (double)EW_NS_PER_S) {
        char why[64];
        snprintf(why, sizeof(why), "not heard of for %.0f s", l->machine->timeout_s);
        return gone(l, why);
    }
    return EW_LINK_NOTHING;
}

/* ---- Asking ---------------------------------------------------------------------------------- */

/* If sending fails the machine is lost, which the next event reports. */
static void put(struct ew_link *l, const char *type, const void *data, size_t size)
{
    if (l->open && !l->broken && ew_frames_put(&l->io, type, data, size) != EW_OK) {
        l->broken = true;
        snprintf(l->said, sizeof(l->said), "%.500s", ew_error_message());
    }
}

/* A NUL-terminated name or word, and what comes after it. */
static char *append(char *at, const void *data, size_t size)
{
    memcpy(at, data, size);
    return at + size;
}

void ew_link_file(struct ew_link *l, const char *name, const void *data, size_t size)
{
    char *bytes = malloc(strlen(name) + 1 + size);
    l->broken |= !bytes;
    if (!bytes)
        return;
    const char *end = append(append(bytes, name, strlen(name) + 1), data, size);
    put(l, "file", bytes, (size_t)(end - bytes));
    free(bytes);
}

void ew_link_run(struct ew_link *l, const char *const *words)
{
    size_t size = 1;
    for (int i = 0; words[i]; i++)
        size += strlen(words[i]) + 1;
    char *bytes = malloc(size), *end = bytes;
    l->broken |= !bytes;
    if (!bytes)
        return;
    for (int i = 0; words[i]; i++)
        end = append(end, words[i], strlen(words[i]) + 1);
    l->said[0] = '\0';
    put(l, "run", bytes, (size_t)(end - bytes));
    free(bytes);
}

void ew_link_ask(struct ew_link *l, const char *verb, const char *name)
{
    put(l, verb, name, strlen(name));
}
