/* SPDX-License-Identifier: Apache-2.0 */
/* All runs as one wide table, with a condition from the user.
 *
 * The condition is an SQL expression, which users know and which needs no parser here.  It is safe:
 * parentheses must balance and nothing may end the statement, so it stays an expression, and an
 * authorizer allows only reading while it is compiled. */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "store/store_impl.h"

/* The names of columns in use, and the text of the SELECT so far. */
struct builder {
    struct ew_arena arena;
    FILE *sql;
    const char *names[EW_MAX_COLUMNS];
    unsigned char origins[EW_MAX_COLUMNS];
    enum ew_column origin; /* of the columns that are being added */
    int n;
};

/* As fprintf, with SQLite's %w, %q and %Q, which quote.  (Boards' libraries of 2018 have no
 * sqlite3_str.) */
static ew_err add_text(struct builder *b, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char *text = sqlite3_vmprintf(fmt, ap);
    va_end(ap);
    const bool ok = text && fputs(text, b->sql) >= 0;
    sqlite3_free(text);
    EW_CHECK(ok, EW_ERR_MEMORY, "no memory for the query");
    return EW_OK;
}

static bool taken(const struct builder *b, const char *name)
{
    for (int i = 0; i < b->n; i++)
        if (strcmp(b->names[i], name) == 0)
            return true;
    return false;
}

/* Adds the name as an SQL identifier, with `prefix` if it is in use already. */
static ew_err add_name(struct builder *b, const char *prefix, const char *name, const char **out)
{
    char *word = ew_arena_strdup(&b->arena, name);
    for (char *p = word; p && *p; p++)
        if (!isalnum((unsigned char)*p))
            *p = '_';
    if (word && taken(b, word))
        word = ew_arena_printf(&b->arena, "%s_%s", prefix, word);
    EW_CHECK(word, EW_ERR_MEMORY, "no memory for the columns");
    EW_CHECK(b->n < EW_MAX_COLUMNS, EW_ERR_LIMIT, "results have more than %d columns",
             EW_MAX_COLUMNS);
    b->origins[b->n] = (unsigned char)b->origin;
    *out = b->names[b->n++] = word;
    return EW_OK;
}

static ew_err add_fields(struct builder *b, enum ew_record r, char letter, const char *prefix,
                         const char *but)
{
    for (const struct ew_field *f = ew_record_kind(r)->fields; f->name; f++) {
        if (strstr(but, f->name))
            continue;
        const char *name = ew_arena_printf(&b->arena, "%s%s", prefix, f->name), *column;
        EW_CHECK(name, EW_ERR_MEMORY, "no memory for the columns");
        EW_TRY(add_name(b, "job", name, &column));
        EW_TRY(add_text(b, ", %c.\"%w\" AS \"%w\"", letter, f->name, column));
    }
    return EW_OK;
}

/* One column for each name that the query gives. */
static ew_err add_found(struct ew_store *s, struct builder *b, const char *query, const char *form,
                        const char *prefix)
{
    struct ew_rows *rows;
    EW_TRY(ew_store_query(s, &rows, query, ""));
    ew_err err = EW_OK;
    while (err == EW_OK && ew_rows_next(rows)) {
        const char *name = ew_rows_text(rows, 0), *column;
        if (!name || strpbrk(name, "\"\\")) /* not a name that this program writes */
            continue;
        err = add_name(b, prefix, name, &column);
        if (err == EW_OK)
            err = add_text(b, form, name);
        if (err == EW_OK)
            err = add_text(b, " AS \"%w\"", column);
    }
    const ew_err read = ew_rows_free(rows);
    return err == EW_OK ? read : err;
}

static ew_err build(struct ew_store *s, struct builder *b, const char *where, const char *order)
{
    const char *id;
    EW_TRY(add_text(b, "WITH result AS (SELECT r.id AS id"));
    EW_TRY(add_name(b, "", "id", &id));
    EW_TRY(add_fields(b, EW_RECORD_RUN, 'r', "", ""));
    b->origin = EW_COLUMN_JOB;
    EW_TRY(add_fields(b, EW_RECORD_JOB, 'j', "", "id options"));
    b->origin = EW_COLUMN_OPTION;
    EW_TRY(add_found(s, b,
                     "SELECT DISTINCT key FROM job, json_each(job.options) WHERE "
                     "json_valid(job.options) AND key NOT IN ('command', 'network') ORDER BY key",
                     ", json_extract(j.options, '$.\"%q\"')", "option"));
    b->origin = EW_COLUMN_METRIC;
    /* Names with a colon are cells of a matrix: too many to be columns. */
    EW_TRY(
        add_found(s, b, "SELECT DISTINCT name FROM metric WHERE instr(name, ':') = 0 ORDER BY name",
                  ", (SELECT value FROM metric WHERE run = r.id AND name = %Q LIMIT 1)", "metric"));
    b->origin = EW_COLUMN_MACHINE;
    EW_TRY(add_fields(b, EW_RECORD_MACHINE, 'm', "machine_", "id"));
    return add_text(b,
                    " FROM run r LEFT JOIN job j ON j.id = r.job LEFT JOIN machine m ON m.id = "
                    "r.machine) SELECT * FROM result WHERE (%s\n) ORDER BY %s",
                    where ? where : "1", order ? order : "id");
}

/* ---- The user's expression ------------------------------------------------------------------- */

/* The end of what begins at p and is quoted by *p; a doubled quote stays inside. */
static const char *skip_quoted(const char *p)
{
    const char end = *p == '[' ? ']' : *p;
    for (p++; *p; p++) {
        if (*p == end && p[1] == end)
            p++;
        else if (*p == end)
            return p;
    }
    return NULL;
}

/* Checks that the text is one expression and cannot end the surrounding statement. */
static ew_err check_expression(const char *text)
{
    int depth = 0;
    for (const char *p = text; *p; p++) {
        if (strchr("'\"`[", *p)) {
            p = skip_quoted(p);
            EW_CHECK(p, EW_ERR_USAGE, "'%.100s': a quote is not closed", text);
        }
        depth += (*p == '(') - (*p == ')');
        EW_CHECK(depth >= 0, EW_ERR_USAGE, "'%.100s': ')' without '('", text);
        const bool comment = (p[0] == '-' && p[1] == '-') || (p[0] == '/' && p[1] == '*');
        EW_CHECK(*p != ';' && !comment, EW_ERR_USAGE, "'%.100s': one expression, no ';' or comment",
                 text);
    }
    EW_CHECK(depth == 0, EW_ERR_USAGE, "'%.100s': '(' without ')'", text);
    EW_CHECK(text[strspn(text, " \t\n")], EW_ERR_USAGE, "the condition is empty");
    return EW_OK;
}

static int only_reading(void *ctx, int action, const char *a, const char *b, const char *db,
                        const char *trigger)
{
    if (action == SQLITE_SELECT || action == SQLITE_READ)
        return SQLITE_OK;
    if (action == SQLITE_FUNCTION)
        return b && strcmp(b, "load_extension") == 0 ? SQLITE_DENY : SQLITE_OK;
    return SQLITE_DENY;
}

static ew_err compile(struct ew_store *s, const char *sql, const char *where, sqlite3_stmt **st)
{
    sqlite3_set_authorizer(s->db, only_reading, NULL);
    ew_err err = ew_store_prepare(s, sql, 0, st);
    sqlite3_set_authorizer(s->db, NULL, NULL);
    if (err == EW_OK && !sqlite3_stmt_readonly(*st)) {
        sqlite3_finalize(*st);
        return ew_fail(EW_ERR_USAGE, "'%.100s' is not a read-only expression", where);
    }
    if (err != EW_OK && where)
        return ew_fail(EW_ERR_USAGE, "%s: '%.100s': %s", s->path, where, sqlite3_errmsg(s->db));
    return err;
}

static ew_err open_results(struct ew_store *s, struct builder *b, const char *where,
                           const char *order, struct ew_rows **out)
{
    char *sql = NULL;
    size_t size = 0;
    b->sql = open_memstream(&sql, &size);
    EW_CHECK(b->sql, EW_ERR_MEMORY, "no memory for the query");
    ew_err err = build(s, b, where, order);
    const bool whole = ew_memstream_close(b->sql, &sql);
    if (err == EW_OK && !whole)
        err = ew_fail(EW_ERR_MEMORY, "no memory for the query");
    sqlite3_stmt *st = NULL;
    if (err == EW_OK)
        err = compile(s, sql, where, &st);
    free(sql);
    EW_TRY(err);
    EW_TRY(ew_rows_new(s, st, out));
    err = ew_rows_set_origins(*out, b->origins);
    if (err != EW_OK)
        ew_rows_free(*out);
    return err;
}

ew_err ew_store_results(struct ew_store *s, const char *where, const char *order,
                        struct ew_rows **out)
{
    if (where)
        EW_TRY(check_expression(where));
    if (order)
        EW_TRY(check_expression(order));
    struct builder *b = calloc(1, sizeof(*b));
    EW_CHECK(b, EW_ERR_MEMORY, "no memory for the query");
    ew_arena_init(&b->arena);
    const ew_err err = open_results(s, b, where, order, out);
    ew_arena_fini(&b->arena);
    free(b);
    return err;
}
