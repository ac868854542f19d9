/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a command on many machines at once. */
#include "cli/on_machines.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "study/link.h"

#define WORDS_MAX   200
#define OUTPUT_MOST ((size_t)64 << 20) /* bytes of output of one machine */
#define POLL_MS     500

/* One machine and its output so far; when streaming, only the incomplete last line. */
struct machine_output {
    struct ew_link link;
    char *text;
    size_t n, room;
    bool over, failed;
};

struct fan_out {
    const struct ew_cmd_call *call;
    struct ew_machines machines;
    struct machine_output *voices;
    const char *words[WORDS_MAX];
    struct ew_arena arena;
    bool stream;
};

/* Copies the command line without --on. */
static ew_err take_words(struct fan_out *x)
{
    const struct ew_cmd_call *c = x->call;
    int n = 0;
    x->words[n++] = c->cmd->name;
    for (const struct ew_field *f = c->cmd->opts; f && f->name; f++) {
        char value[1024];
        if (strcmp(f->name, "on") == 0 || !ew_cmd_given(c, f->name))
            continue;
        EW_CHECK(n + c->n_args + 4 < WORDS_MAX, EW_ERR_LIMIT, "too many options for --on");
        ew_field_print(f, c->opts, value, sizeof(value));
        if (f->type == EW_FIELD_BOOL)
            x->words[n++] = ew_arena_printf(&x->arena, "--%s%s",
                                            strcmp(value, "true") == 0 ? "" : "no-", f->name);
        else
            x->words[n++] = ew_arena_printf(&x->arena, "--%s=%s", f->name, value);
    }
    if (c->json)
        x->words[n++] = "--json";
    EW_CHECK(n + c->n_args + 2 < WORDS_MAX, EW_ERR_LIMIT, "too many words for --on");
    for (int i = 0; i < c->n_args; i++) {
        if (i == c->n_before)
            x->words[n++] = "--";
        x->words[n++] = c->args[i];
    }
    x->words[n] = NULL;
    EW_CHECK(!x->arena.failed, EW_ERR_MEMORY, "no memory for --on");
    return EW_OK;
}

/* ---- What machines write --------------------------------------------------------------------- */

/* Prints complete lines, each after the machine's name. */
static void print_lines(const struct fan_out *x, struct machine_output *v)
{
    const char *name = v->link.machine->name;
    char *from = v->text, *end = v->text + v->n;
    for (char *line; from && (line = memchr(from, '\n', (size_t)(end - from))); from = line + 1) {
        const int n = (int)(line - from);
        if (x->call->json && *from == '{')
            printf("{\"machine\":\"%s\"%s%.*s\n", name, from[1] == '}' ? "" : ",", n - 1, from + 1);
        else
            printf("%s: %.*s\n", name, n, from);
    }
    v->n = from ? (size_t)(end - from) : 0;
    if (v->n)
        memmove(v->text, from, v->n);
    fflush(stdout);
}

static ew_err take_text(const struct fan_out *x, struct machine_output *v)
{
    const struct ew_frame *f = &v->link.frame;
    EW_CHECK(v->n + f->size < OUTPUT_MOST, EW_ERR_LIMIT, "%s: writes more than %zu MB",
             v->link.machine->name, OUTPUT_MOST >> 20);
    if (v->n + f->size + 1 > v->room) {
        char *bigger = realloc(v->text, 2 * (v->n + f->size) + 1);
        EW_CHECK(bigger, EW_ERR_MEMORY, "no memory for --on");
        v->text = bigger;
        v->room = 2 * (v->n + f->size) + 1;
    }
    memcpy(v->text + v->n, f->data, f->size);
    v->n += f->size;
    v->text[v->n] = '\0';
    if (x->stream)
        print_lines(x, v);
    return EW_OK;
}

static ew_err take_event(const struct fan_out *x, struct machine_output *v, enum ew_link_event e)
{
    if (e == EW_LINK_READY)
        ew_link_run(&v->link, x->words);
    if (e == EW_LINK_OUT)
        return take_text(x, v);
    if (e == EW_LINK_END || e == EW_LINK_GONE) {
        v->over = true;
        v->failed = e == EW_LINK_GONE || v->link.status != 0;
        if (v->failed)
            fprintf(stderr, "%s: %s\n", v->link.machine->name,
                    v->link.said[0] ? v->link.said : "failed without an error message");
        ew_link_close(&v->link);
    }
    return EW_OK;
}

static ew_err listen_to_all(struct fan_out *x)
{
    for (;;) {
        struct pollfd fds[EW_MACHINES_MAX * EW_LINK_FDS];
        int n = 0, left = 0;
        for (int i = 0; i < x->machines.n; i++) {
            int more = 0;
            left += !x->voices[i].over;
            ew_link_poll(&x->voices[i].link, fds + n, &more);
            n += more;
        }
        if (!left)
            return EW_OK;
        poll(fds, (nfds_t)n, POLL_MS);
        for (int i = 0; i < x->machines.n; i++) {
            struct machine_output *v = &x->voices[i];
            enum ew_link_event e;
            ew_link_receive(&v->link);
            while (!v->over && (e = ew_link_next(&v->link)) != EW_LINK_NOTHING)
                EW_TRY(take_event(x, v, e));
        }
    }
}

/* ---- At the end ------------------------------------------------------------------------------ */

/* With --json, a machine's output is either JSON or empty. */
static void print_whole(const struct fan_out *x)
{
    const bool json = x->call->json;
    if (json)
        printf("{");
    for (int i = 0; i < x->machines.n; i++) {
        struct machine_output *v = &x->voices[i];
        while (v->n && (v->text[v->n - 1] == '\n' || v->text[v->n - 1] == ' '))
            v->text[--v->n] = '\0';
        if (json)
            printf("%s\n  \"%s\": %s", i ? "," : "", x->machines.list[i].name,
                   v->n && !v->failed ? v->text : "null");
        else
            printf("%s== %s\n%s\n", i ? "\n" : "", x->machines.list[i].name, v->n ? v->text : "-");
    }
    if (json)
        printf("\n}\n");
}

static ew_err perform(struct fan_out *x, const char *file)
{
    char self[512];
    const ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    EW_CHECK(n > 0, EW_ERR_IO, "/proc/self/exe: %s", strerror(errno));
    self[n] = '\0';
    EW_TRY(ew_machines_read(&x->arena, file, &x->machines));
    EW_TRY(take_words(x));
    x->voices = calloc((size_t)x->machines.n, sizeof(*x->voices));
    EW_CHECK(x->voices, EW_ERR_MEMORY, "no memory for --on");
    for (int i = 0; i < x->machines.n; i++)
        EW_TRY(ew_link_open(&x->voices[i].link, &x->machines.list[i], self));
    EW_TRY(listen_to_all(x));
    if (!x->stream)
        print_whole(x);
    int failed = 0;
    for (int i = 0; i < x->machines.n; i++)
        failed += x->voices[i].failed;
    EW_CHECK(!failed, EW_ERR_SKIPPED, "%s: %d of %d machines failed", file, failed, x->machines.n);
    return EW_OK;
}

ew_err ew_on_machines(const struct ew_cmd_call *c, const char *file, bool stream)
{
    struct fan_out x = {.call = c, .stream = stream};
    ew_arena_init(&x.arena);
    const ew_err err = perform(&x, file);
    for (int i = 0; x.voices && i < x.machines.n; i++) {
        ew_link_close(&x.voices[i].link);
        free(x.voices[i].text);
    }
    free(x.voices);
    ew_arena_fini(&x.arena);
    return err;
}
