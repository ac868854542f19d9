/* SPDX-License-Identifier: Apache-2.0 */
/* The contract of a command: one file cmd_<verb>.c, whose descriptor `const struct ew_cmd
 * ew_cmd_<verb>` is the last thing in it.  The build collects them; help, man page and completion
 * come from the tables.
 *
 * A command prints its result to stdout (JSON when `json` is set), talk to stderr through
 * base/log.h, and returns an error instead of exiting: main prints "edgewise: <what>: <why>" and
 * picks the status. */
#ifndef EW_CLI_CMD_H
#define EW_CLI_CMD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/field.h"

/* The sections of `edgewise help`, in order. */
/* clang-format off */
#define EW_CMD_GROUP_MAP(X)                                                                        \
    X(GENERAL, "Starting")                                                                         \
    X(NETWORK, "Networks")                                                                         \
    X(TRAIN,   "Data and training")                                                                \
    X(SHRINK,  "Smaller and faster")                                                               \
    X(MEASURE, "Measuring and boards")                                                             \
    X(STUDY,   "Studies")
/* clang-format on */

enum ew_cmd_group {
#define EW_CMD_GROUP_ENUM(id, title) EW_CMD_##id,
    EW_CMD_GROUP_MAP(EW_CMD_GROUP_ENUM)
#undef EW_CMD_GROUP_ENUM
        EW_CMD_GROUP_COUNT
};

#define EW_HINT_CHARS 240

/* One run of a command. */
struct ew_cmd_call {
    const struct ew_cmd *cmd;
    const void *opts; /* the command's own struct, defaults and flags filled in */
    int n_args;
    int n_before;            /* of them before "--"; all where there is none */
    const char *const *args; /* what is left beside the options */
    bool json;
    uint64_t given;           /* as in the command line */
    char hint[EW_HINT_CHARS]; /* set by ew_cmd_hint, shown below a failure */
};

struct ew_cmd {
    const char *name;
    enum ew_cmd_group group;
    const char *summary;    /* "show ...": one line, lower case, no full stop */
    const char *args;       /* as usage shows them: "NAME|FILE.onnx"; NULL: none */
    const char *about;      /* sentences, one per line; NULL: the summary says it all */
    const char *examples;   /* one command line per line, without "edgewise"; or NULL */
    int min_args, max_args; /* max_args -1: any number */
    size_t opts_size;
    const struct ew_field *opts; /* NULL: none of its own; `json` and `help` are everyone's */
    ew_err (*run)(struct ew_cmd_call *c);
    bool samples;        /* with --db its run has the board's readings by itself */
    bool starts_nothing; /* reads strangers' files and neither starts programs nor uses a network:
                            the kernel may hold it to that (base/sandbox.h) */
};

/* True where the command line has this option, be it with its default. */
bool ew_cmd_given(const struct ew_cmd_call *c, const char *option);

/* Runs another command with these words, as if they stood on the command line. */
ew_err ew_cmd_perform(const char *name, int n_words, const char *const *words);

/* Says below the failure what the user might do. */
void ew_cmd_hint(struct ew_cmd_call *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The registry, in the order of the file names. */
int ew_cmd_count(void);
const struct ew_cmd *ew_cmd_at(int i);
const struct ew_cmd *ew_cmd_find(const char *name); /* NULL: none */
const char *ew_cmd_nearest(const char *name);       /* NULL: none is near */
const char *ew_cmd_group_title(enum ew_cmd_group g);

/* Options that every command has. */
extern const struct ew_field ew_cmd_common[];

/* What the command line asks for. */
struct ew_cmd_line {
    const struct ew_cmd *cmd;
    bool help;
    bool json;
    uint64_t given;    /* bit i: the command's option i was there */
    void *opts;        /* cmd->opts_size bytes, caller's, defaults written */
    const char **args; /* room for all words, caller's */
    char joined[8192]; /* values of options that may come several times (their metavar ends in
                        * "..."), one text after the other */
    size_t joined_used;
    int n_args, n_before;
};

/* Sorts the words after the verb into options and arguments.  `--name value`, `--name=value`,
 * `--flag`,
 * `--no-flag`, `-x value`, `-xvalue`; `--` ends the options; a lone `-` is an argument. */
ew_err ew_cmd_parse(int n_words, char *const *words, struct ew_cmd_line *line);

/* Help for one command, and for all of them. */
void ew_help_cmd(const struct ew_cmd *cmd);
void ew_help_all(void);

#endif
