/* SPDX-License-Identifier: Apache-2.0 */
/* The program: finds the command, runs it, prints its failure and picks the exit status.
 * Everything else is in the cmd_*.c files. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/sandbox.h"
#include "cli/cmd.h"
#include "cli/device_opt.h"
#include "cli/printable.h"
#include "data/data.h"
#include "model/model.h"
#include "network/network.h"

/* Exit statuses, as the man page has them. */
static int status_of(ew_err err)
{
    switch (err) {
    case EW_OK:
        return 0;
    case EW_ERR_USAGE:
        return 2;
    case EW_ERR_SKIPPED:
        return 3;
    default:
        return 1;
    }
}

static int failed(ew_err err, const char *hint)
{
    fflush(stdout);
    fprintf(stderr, "edgewise: %s\n", ew_error_message());
    if (hint[0])
        fprintf(stderr, "hint: %s\n", hint);
    return status_of(err);
}

/* Failing to write standard output is an error. */
static ew_err flush_output(void)
{
    const bool ok = fflush(stdout) == 0 && !ferror(stdout);
    EW_CHECK(ok, EW_ERR_IO, "standard output: %s", strerror(errno));
    return EW_OK;
}

/* Forbids starting programs and opening sockets, unless a device other than the CPU (drivers start
 * programs) or an address (rtsp://...) is used. */
static void confine(const struct ew_cmd_call *call)
{
    const char *const device = getenv("EW_DEVICE"); /* set by --device */
    bool address = false;
    for (int i = 0; i < call->n_args; i++)
        address = address || strstr(call->args[i], "://");
    if (call->cmd->starts_nothing && !address && (!device || strcmp(device, "cpu") == 0))
        ew_sandbox_no_programs();
}

/* Whether the error is about a network name that the zoo does not have.  Does not change the error
 * message. */
static bool names_no_network(const struct ew_cmd_call *c)
{
    if (c->n_args == 0 || !c->cmd->args || !strstr(c->cmd->args, "NAME|FILE.onnx") ||
        ew_network_is_file(c->args[0]) || !strstr(ew_error_message(), c->args[0]))
        return false;
    for (int f = 0; f < ew_family_count(); f++)
        for (int i = 0; i < ew_family_at(f)->n_variants; i++)
            if (strcmp(ew_family_at(f)->variants[i].name, c->args[0]) == 0)
                return false;
    return true;
}

/* True if a sample of a data set ended the command, which can leave such samples out. */
static bool names_sample(const struct ew_cmd_call *c, ew_err err)
{
    return ew_sample_is_bad(err) && ew_field_find(c->cmd->opts, "on-bad-sample") &&
           !ew_cmd_given(c, "on-bad-sample") && strstr(ew_error_message(), " sample ");
}

static int run(const struct ew_cmd_line *line)
{
    struct ew_cmd_call call = {.cmd = line->cmd,
                               .opts = line->opts,
                               .n_args = line->n_args,
                               .n_before = line->n_before,
                               .args = line->args,
                               .json = line->json,
                               .given = line->given};
    ew_err err = ew_device_choose(line);
    if (err != EW_OK) {
        ew_cmd_hint(&call, "edgewise devices");
    } else {
        confine(&call);
        err = line->cmd->run(&call);
    }
    if (err == EW_OK)
        err = flush_output();
    if (err == EW_ERR_NOT_FOUND && !call.hint[0] && names_no_network(&call))
        ew_cmd_hint(&call, "edgewise models lists the networks");
    if (!call.hint[0] && names_sample(&call, err))
        ew_cmd_hint(&call, "--on-bad-sample skip leaves out what cannot be read");
    if (err == EW_ERR_USAGE && !call.hint[0])
        ew_cmd_hint(&call, "edgewise help %s", line->cmd->name);
    return err == EW_OK ? 0 : failed(err, call.hint);
}

static int run_words(const struct ew_cmd *cmd, int n_words, char *const *words)
{
    EW_CLEANUP(ew_free_ptr) void *opts = calloc(1, cmd->opts_size + 1);
    EW_CLEANUP(ew_free_ptr) const char **args = calloc((size_t)n_words + 1, sizeof(*args));
    if (!opts || !args)
        return failed(ew_fail(EW_ERR_MEMORY, "no memory for the command line"), "");
    ew_fields_default(cmd->opts, opts, cmd->opts_size);
    struct ew_cmd_line line = {.cmd = cmd, .opts = opts, .args = args};
    const ew_err err = ew_cmd_parse(n_words, words, &line);
    if (err != EW_OK) {
        char hint[EW_HINT_CHARS];
        snprintf(hint, sizeof(hint), "edgewise help %s", cmd->name);
        return failed(err, hint);
    }
    if (line.help) {
        ew_help_cmd(cmd);
        return status_of(flush_output());
    }
    return run(&line);
}

static int unknown_command(const char *name)
{
    const char *near = ew_cmd_nearest(name);
    if (near)
        ew_fail(EW_ERR_USAGE, "no command '%s'; did you mean '%s'?", name, near);
    else
        ew_fail(EW_ERR_USAGE, "no command '%s'", name);
    return failed(EW_ERR_USAGE, "edgewise help");
}

/* Messages of the library.  EW_LOG=debug shows all, EW_LOG=warn only warnings.  Output comes first,
 * so that a file or pipe for both has the order of a terminal, and no message inside a line. */
static void write_log(void *ctx, enum ew_log_level level, const char *text)
{
    fflush(stdout);
    fprintf(stderr, "%s%s\n", level == EW_LOG_WARN ? "warning: " : "", text);
}

static enum ew_log_level wanted_level(void)
{
    const char *word = getenv("EW_LOG");
    if (word && strcmp(word, "debug") == 0)
        return EW_LOG_DEBUG;
    return word && strcmp(word, "warn") == 0 ? EW_LOG_WARN : EW_LOG_INFO;
}

/* Opens /dev/null for closed standard streams: the next opened file would get the number, and the
 * output.  Reading and writing such a stream still fails. */
static void hold_streams(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0)
            (void)!open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

int main(int argc, char **argv)
{
    prctl(PR_SET_NAME, "edgewise"); /* also if started as /proc/self/exe */
    hold_streams();
    const struct ew_log_sink sink = {.write = write_log, .level = wanted_level()};
    ew_log_set(&sink);
    ew_printable_begin();
    /* Exceeding ulimit -f becomes a write error that names the file, instead of a signal. */
    signal(SIGXFSZ, SIG_IGN);
    /* An inherited SIG_IGN would discard the exit statuses of child processes. */
    signal(SIGCHLD, SIG_DFL);
    const char *verb = argc > 1 ? argv[1] : "";
    if (strcmp(verb, "--help") == 0 || strcmp(verb, "-h") == 0)
        verb = "help";
    else if (strcmp(verb, "--version") == 0)
        verb = "version";
    if (!*verb)
        return failed(ew_fail(EW_ERR_USAGE, "no command given"), "edgewise help");
    const struct ew_cmd *cmd = ew_cmd_find(verb);
    return cmd ? run_words(cmd, argc - 2, argv + 2) : unknown_command(verb);
}
