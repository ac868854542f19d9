/* SPDX-License-Identifier: Apache-2.0 */
/* edgewise results: lists, compares, exports and imports recorded runs. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/mem.h"
#include "cli/cmd.h"
#include "cli/results_show.h"
#include "store/store.h"

struct opts {
    const char *db, *where, *columns, *order;
    bool csv;
};

static const struct ew_field fields[] = {
    {.name = "db",
     .type = EW_FIELD_STR,
     .offset = offsetof(struct opts, db),
     .def = EW_STORE_FILE,
     .metavar = "FILE",
     .help = "the results database"},
    {.name = "where",
     .type = EW_FIELD_STR,
     .offset = offsetof(struct opts, where),
     .metavar = "EXPR",
     .help = "only runs that match: \"workers >= 2 and network = 'lenet5'\""},
    {.name = "columns",
     .type = EW_FIELD_STR,
     .offset = offsetof(struct opts, columns),
     .metavar = "A,B",
     .help = "only these columns; --json shows the names of all"},
    {.name = "order",
     .type = EW_FIELD_STR,
     .offset = offsetof(struct opts, order),
     .metavar = "EXPR",
     .help = "sort by this expression, as in \"median_ms\"; default: in the order of the runs"},
    {.name = "csv",
     .type = EW_FIELD_BOOL,
     .offset = offsetof(struct opts, csv),
     .help = "print all columns, or those of --columns, as CSV"},
    EW_FIELD_END,
};

static void close_store(struct ew_store **s)
{
    ew_store_close(*s);
}

/* Opens a store; read-only if this process may not write it. */
static ew_err open_store(const char *path, bool must_exist, struct ew_store **out)
{
    const bool read_only = access(path, F_OK) == 0 && access(path, W_OK) != 0;
    const struct ew_store_opts o = {.read_only = read_only, .existing = must_exist};
    return ew_store_open(path, &o, out);
}

#define COLUMNS_HINT "edgewise results --json shows the names of all columns"

static ew_err list(struct ew_cmd_call *c, struct ew_store *s)
{
    const struct opts *o = c->opts;
    struct ew_rows *rows;
    ew_err err = ew_store_results(s, o->where, o->order, &rows);
    if (err == EW_ERR_USAGE)
        ew_cmd_hint(c, COLUMNS_HINT);
    EW_TRY(err);
    if (c->json)
        err = ew_results_json(rows, o->columns);
    else if (o->csv)
        err = ew_results_csv(rows, o->columns);
    else
        err = ew_results_table(rows, o->columns, false);
    if (err == EW_ERR_USAGE)
        ew_cmd_hint(c, COLUMNS_HINT);
    const ew_err read = ew_rows_free(rows);
    return err == EW_OK ? read : err;
}

static ew_err diff(const struct ew_cmd_call *c, struct ew_store *s)
{
    int64_t a, b;
    EW_CHECK(c->n_args == 3, EW_ERR_USAGE, "results: diff needs two runs");
    EW_TRY(ew_store_run_find(s, c->args[1], &a));
    EW_TRY(ew_store_run_find(s, c->args[2], &b));
    return ew_results_diff(s, a, b, c->json);
}

static ew_err say_copied(const struct ew_cmd_call *c, int n)
{
    if (!c->json) {
        printf("%d runs copied\n", n);
        return EW_OK;
    }
    struct ew_json j;
    ew_json_init(&j, stdout);
    ew_json_object(&j, NULL);
    ew_json_int(&j, "copied", n);
    ew_json_end(&j);
    return ew_json_finish(&j);
}

/* Copies runs between this store and a file: import reads it, export creates it. */
static ew_err copy(const struct ew_cmd_call *c, struct ew_store *s, bool import)
{
    const struct opts *o = c->opts;
    EW_CLEANUP(close_store) struct ew_store *other = NULL;
    int n = 0;
    EW_CHECK(c->n_args == 2, EW_ERR_USAGE, "results: %s needs a file", c->args[0]);
    EW_TRY(open_store(c->args[1], import, &other));
    EW_TRY(import ? ew_store_copy(other, s, o->where, &n) : ew_store_copy(s, other, o->where, &n));
    if (!import)
        EW_TRY(ew_store_settle(
            other)); /* merge the write-ahead log: the file may be moved without it */
    return say_copied(c, n);
}

static ew_err run(struct ew_cmd_call *c)
{
    const struct opts *o = c->opts;
    const char *verb = c->n_args ? c->args[0] : "list";
    static const char *const verbs[] = {"list", "diff", "export", "import"};
    size_t i = 0;
    while (i < EW_COUNT(verbs) && strcmp(verbs[i], verb) != 0)
        i++;
    EW_CHECK(i < EW_COUNT(verbs), EW_ERR_USAGE,
             "results: '%s' is not one of list, diff, export, import", verb);
    EW_CLEANUP(close_store) struct ew_store *s = NULL;
    const ew_err err = open_store(o->db, strcmp(verb, "import") != 0, &s);
    if (err == EW_ERR_NOT_FOUND)
        ew_cmd_hint(c,
                    "'edgewise study', or --db of other commands, creates one; --db names another");
    EW_TRY(err);
    switch (i) {
    case 1:
        return diff(c, s);
    case 2:
        return copy(c, s, false);
    case 3:
        return copy(c, s, true);
    default:
        return list(c, s);
    }
}

const struct ew_cmd ew_cmd_results = {
    .name = "results",
    .group = EW_CMD_STUDY,
    .summary = "list, filter, compare and merge recorded results",
    .args = "[list | diff RUN RUN | export FILE | import FILE]",
    .about = "Lists the runs of a results database with the options in which they differ.\n"
             "--where takes an SQL expression over a run's fields, options and metrics, with '_' "
             "for '-' in names; it is read-only.\n"
             "diff shows the differences of two runs; RUN is a number or the beginning of a uid.\n"
             "export and import copy finished runs that the other file does not have yet, to "
             "merge the results of several boards; repeating it changes nothing.",
    .examples = "results\nresults --where \"study = 'train-workers' and workers >= 2\" --csv\n"
                "results diff 12 13\nresults import nano.db",
    .max_args = 3,
    .opts_size = sizeof(struct opts),
    .opts = fields,
    .run = run,
};
