/* SPDX-License-Identifier: Apache-2.0 */
/* The interface of a command: one file cmd_<verb>.c that ends with its descriptor `const struct
 * ew_cmd ew_cmd_<verb>`.  The build collects them; help, man page and completion are generated from
 * their tables.
 *
 * A command prints its result to stdout (JSON if `json` is set) and messages to stderr through
 * base/log.h, and returns an error instead of exiting: main prints "edgewise: <what>: <why>" and
 * picks the exit status. */
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
    int n_before;            /* arguments before "--"; n_args without a "--" */
    const char *const *args; /* words that are not options */
    bool json;
    uint64_t given;           /* bit i: the command's option i was given */
    char hint[EW_HINT_CHARS]; /* set by ew_cmd_hint, shown below a failure */
};

struct ew_cmd {
    const char *name;
    enum ew_cmd_group group;
    const char *summary;    /* "show ...": one line, lower case, no full stop */
    const char *args;       /* as in the usage line: "NAME|FILE.onnx"; NULL: none */
    const char *about;      /* sentences, one per line; NULL: the summary says it all */
    const char *examples;   /* one command line per line, without "edgewise"; or NULL */
    int min_args, max_args; /* max_args -1: any number */
    size_t opts_size;
    const struct ew_field *opts; /* beside the common `json` and `help`; NULL: none */
    ew_err (*run)(struct ew_cmd_call *c);
    bool samples;        /* with --db, the board's sensors are recorded with the run */
    bool starts_nothing; /* reads untrusted files, starts no programs and uses no network: it may
                            run sandboxed (base/sandbox.h) */
};

/* True if the command line has this option, even with its default value. */
bool ew_cmd_given(const struct ew_cmd_call *c, const char *option);

/* Runs another command with these arguments. */
ew_err ew_cmd_perform(const char *name, int n_words, const char *const *words);

/* Sets the hint that is printed below the failure. */
void ew_cmd_hint(struct ew_cmd_call *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The registry, sorted by file name. */
int ew_cmd_count(void);
const struct ew_cmd *ew_cmd_at(int i);
const struct ew_cmd *ew_cmd_find(const char *name); /* NULL: none */
const char *ew_cmd_nearest(const char *name);       /* nearest name; NULL: none is similar */
const char *ew_cmd_group_title(enum ew_cmd_group g);

/* Options that every command has. */
extern const struct ew_field ew_cmd_common[];

/* A parsed command line. */
struct ew_cmd_line {
    const struct ew_cmd *cmd;
    bool help;
    bool json;
    uint64_t given;    /* bit i: the command's option i was given */
    void *opts;        /* cmd->opts_size bytes of the caller, filled with defaults */
    const char **args; /* the caller's, with room for all words */
    char joined[8192]; /* values of repeatable options (metavar ends in "..."), one text after the
                          other */
    size_t joined_used;
    int n_args, n_before;
};

/* Splits the words after the verb into options and arguments: `--name value`, `--name=value`,
 * `--flag`, `--no-flag`, `-x value`, `-xvalue`; `--` ends the options; `-` alone is an argument. */
ew_err ew_cmd_parse(int n_words, char *const *words, struct ew_cmd_line *line);

/* Prints the help of one command, and of all. */
void ew_help_cmd(const struct ew_cmd *cmd);
void ew_help_all(void);

#endif
