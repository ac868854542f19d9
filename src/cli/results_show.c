/* SPDX-License-Identifier: Apache-2.0 */
/* Recorded runs as text. */
#include "cli/results_show.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/num.h"
#include "report/text_table.h"

#define CELL_CHARS  64
#define MAX_FIGURES 6 /* metric columns shown by default */

/* All cells as text, row by row; NULL: absent. */
struct sheet {
    struct ew_arena arena;
    const char **names;
    const char **cells;
    enum ew_column *origins;
    int columns, rows, cap;
};

static void free_sheet(struct sheet *t)
{
    free(t->cells);
    ew_arena_fini(&t->arena);
}

/* Four significant digits; integers in full. */
static void number_text(double v, char out[EW_NUM_CHARS])
{
    const bool whole = fabs(v) >= 1000 ? fabs(v) < 1e15 : fabs(v - nearbyint(v)) < 1e-9;
    snprintf(out, EW_NUM_CHARS, whole ? "%.0f" : "%.4g", v);
}

/* Text of a cell. */
static const char *cell_text(struct sheet *t, const struct ew_rows *r, int column)
{
    char text[EW_NUM_CHARS];
    switch (ew_rows_cell(r, column)) {
    case EW_CELL_ABSENT:
        return NULL;
    case EW_CELL_NUM:
        number_text(ew_rows_num(r, column), text);
        return ew_arena_strdup(&t->arena, text);
    case EW_CELL_INT:
    case EW_CELL_TEXT:
        break;
    }
    return ew_arena_strdup(&t->arena, ew_rows_text(r, column));
}

static ew_err fill_sheet(struct sheet *t, struct ew_rows *r)
{
    t->columns = ew_rows_columns(r);
    t->names = ew_arena_array(&t->arena, (size_t)t->columns, sizeof(*t->names));
    t->origins = ew_arena_array(&t->arena, (size_t)t->columns, sizeof(*t->origins));
    EW_CHECK(t->names && t->origins, EW_ERR_MEMORY, "no memory for the results");
    for (int i = 0; i < t->columns; i++) {
        t->names[i] = ew_arena_strdup(&t->arena, ew_rows_name(r, i));
        t->origins[i] = ew_rows_origin(r, i);
    }
    while (ew_rows_next(r)) {
        EW_TRY(ew_grow((void **)&t->cells, &t->cap, (t->rows + 1) * t->columns, sizeof(*t->cells)));
        for (int i = 0; i < t->columns; i++)
            t->cells[t->rows * t->columns + i] = cell_text(t, r, i);
        t->rows++;
    }
    EW_CHECK(!t->arena.failed, EW_ERR_MEMORY, "no memory for the results");
    return EW_OK;
}

static const char *cell(const struct sheet *t, int row, int column)
{
    return t->cells[row * t->columns + column];
}

static bool used(const struct sheet *t, int column)
{
    for (int i = 0; i < t->rows; i++)
        if (cell(t, i, column))
            return true;
    return false;
}

static bool same_everywhere(const struct sheet *t, int column)
{
    for (int i = 1; i < t->rows; i++) {
        const char *a = cell(t, 0, column), *b = cell(t, i, column);
        if ((a == NULL) != (b == NULL) || (a && strcmp(a, b) != 0))
            return false;
    }
    return true;
}

static int find_column(const struct sheet *t, const char *name)
{
    for (int i = 0; i < t->columns; i++)
        if (strcmp(t->names[i], name) == 0)
            return i;
    return -1;
}

/* Whether the value is the same for all runs of each command; options that only other commands have
 * do not count as different. */
static bool same_by_command(const struct sheet *t, int column)
{
    const int command = find_column(t, "command");
    for (int i = 1; command >= 0 && i < t->rows; i++) {
        const char *of = cell(t, i, command), *b = cell(t, i, column);
        int first = 0;
        while (first < i &&
               strcmp(cell(t, first, command) ? cell(t, first, command) : "", of ? of : "") != 0)
            first++;
        const char *a = cell(t, first, column);
        if ((a == NULL) != (b == NULL) || (a && strcmp(a, b) != 0))
            return false;
    }
    return command >= 0;
}

/* ---- Columns --------------------------------------------------------------------------------- */

static ew_err pick_named(const struct sheet *t, const char *columns, bool lenient, int *picked,
                         int *n)
{
    EW_CLEANUP(ew_free_ptr) char *text = strdup(columns);
    EW_CHECK(text, EW_ERR_MEMORY, "no memory for the columns");
    char *save = NULL;
    for (char *w = strtok_r(text, ", ", &save); w; w = strtok_r(NULL, ", ", &save)) {
        const int c = find_column(t, w);
        EW_CHECK(c >= 0 || lenient, EW_ERR_USAGE, "results: no column '%s'", w);
        if (*n < t->columns && c >= 0 && (!lenient || used(t, c)))
            picked[(*n)++] = c;
    }
    return EW_OK;
}

/* Metrics shown by default; others by --columns. */
static bool is_figure(const char *name)
{
    static const char *const names[] = {"median_ms",     "images_per_s", "epoch_s",    "stall_s",
                                        "test_accuracy", "test_f1",      "float32_ms", "int8_ms",
                                        "accuracy",      "f1",           "energy_j",   "power_w"};
    for (size_t i = 0; i < EW_COUNT(names); i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

/* Whether a column is shown by default: options that differ, the first metrics, a few fields of
 * the run. */
static bool tells(const struct sheet *t, int column, int *figures)
{
    static const char *const always[] = {"id", "network", "status", "wall_s"};
    static const char *const often[] = {"study", "label", "repeat", "noise", "reason", "command"};
    const char *name = t->names[column];
    for (size_t i = 0; i < EW_COUNT(always); i++)
        if (strcmp(always[i], name) == 0)
            return true;
    if (t->origins[column] == EW_COLUMN_METRIC)
        return is_figure(name) && (*figures)++ < MAX_FIGURES;
    if (same_everywhere(t, column))
        return false;
    for (size_t i = 0; i < EW_COUNT(often); i++)
        if (strcmp(often[i], name) == 0)
            return true;
    if (t->origins[column] == EW_COLUMN_OPTION)
        return !same_by_command(t, column);
    return strcmp(name, "machine_unit") == 0;
}

static void pick_telling(const struct sheet *t, int *picked, int *n)
{
    int figures = 0;
    for (int c = 0; c < t->columns; c++)
        if (used(t, c) && tells(t, c, &figures))
            picked[(*n)++] = c;
}

static ew_err print_sheet(const struct sheet *t, const int *picked, int n)
{
    struct ew_table out;
    EW_CLEANUP(ew_free_ptr) char *align = calloc((size_t)n + 1, 1);
    EW_CHECK(align, EW_ERR_MEMORY, "no memory for the results");
    for (int i = 0; i < n; i++) {
        double x;
        bool number = true;
        for (int r = 0; r < t->rows && number; r++)
            number = !cell(t, r, picked[i]) || ew_num_float(cell(t, r, picked[i]), &x);
        align[i] = number ? 'r' : 'l';
    }
    ew_table_init(&out, align);
    for (int i = 0; i < n; i++)
        ew_table_cell(&out, "%s", t->names[picked[i]]);
    for (int r = 0; r < t->rows; r++)
        for (int i = 0; i < n; i++) {
            const char *text = cell(t, r, picked[i]);
            ew_table_cell(&out, "%.*s", CELL_CHARS, text ? text : "");
        }
    return ew_table_print(&out, stdout);
}

static ew_err table(struct sheet *t, struct ew_rows *rows, const char *columns, bool lenient)
{
    EW_TRY(fill_sheet(t, rows));
    if (!t->rows) {
        fprintf(stderr, "no runs\n");
        return EW_OK;
    }
    int *picked = ew_arena_array(&t->arena, (size_t)t->columns + 4, sizeof(*picked)), n = 0;
    EW_CHECK(picked, EW_ERR_MEMORY, "no memory for the results");
    if (columns)
        EW_TRY(pick_named(t, columns, lenient, picked, &n));
    else
        pick_telling(t, picked, &n);
    return print_sheet(t, picked, n);
}

ew_err ew_results_table(struct ew_rows *rows, const char *columns, bool lenient)
{
    struct sheet t = {0};
    const ew_err err = table(&t, rows, columns, lenient);
    free_sheet(&t);
    return err;
}

/* ---- CSV and JSON ---------------------------------------------------------------------------- */

/* The indices of the named columns in their order; `columns` NULL: all.  Release *out. */
static ew_err pick_columns(struct ew_rows *rows, const char *columns, int **out, int *n)
{
    const int all = ew_rows_columns(rows);
    EW_CLEANUP(ew_free_ptr) char *text = strdup(columns ? columns : "");
    int *picked = calloc((size_t)all + strlen(columns ? columns : "") + 1, sizeof(*picked));
    ew_err err = text && picked ? EW_OK : ew_fail(EW_ERR_MEMORY, "no memory for the columns");
    char *save = NULL;
    *n = 0;
    while (err == EW_OK && !columns && *n < all) {
        picked[*n] = *n;
        ++*n;
    }
    for (char *w = err == EW_OK ? strtok_r(text, ", ", &save) : NULL; w && err == EW_OK;
         w = strtok_r(NULL, ", ", &save)) {
        int c = 0;
        while (c < all && strcmp(ew_rows_name(rows, c), w) != 0)
            c++;
        if (c == all)
            err = ew_fail(EW_ERR_USAGE, "results: no column '%s'", w);
        else
            picked[(*n)++] = c;
    }
    if (err == EW_OK)
        *out = picked;
    else
        free(picked);
    return err;
}

static void csv_cell(const struct ew_rows *rows, int i)
{
    char text[EW_NUM_CHARS];
    if (ew_rows_cell(rows, i) == EW_CELL_NUM) {
        ew_num_text(ew_rows_num(rows, i), text);
        ew_csv_cell(stdout, text);
    } else if (ew_rows_cell(rows, i) != EW_CELL_ABSENT) {
        ew_csv_cell(stdout, ew_rows_text(rows, i));
    }
}

ew_err ew_results_csv(struct ew_rows *rows, const char *columns)
{
    EW_CLEANUP(ew_free_ptr) int *picked = NULL;
    int n;
    EW_TRY(pick_columns(rows, columns, &picked, &n));
    for (int i = 0; i < n; i++) {
        if (i)
            putchar(',');
        ew_csv_cell(stdout, ew_rows_name(rows, picked[i]));
    }
    putchar('\n');
    while (ew_rows_next(rows)) {
        for (int i = 0; i < n; i++) {
            if (i)
                putchar(',');
            csv_cell(rows, picked[i]);
        }
        putchar('\n');
    }
    return EW_OK;
}

ew_err ew_results_json(struct ew_rows *rows, const char *columns)
{
    struct ew_json j;
    EW_CLEANUP(ew_free_ptr) int *picked = NULL;
    int n;
    EW_TRY(pick_columns(rows, columns, &picked, &n));
    ew_json_init(&j, stdout);
    ew_json_array(&j, NULL);
    while (ew_rows_next(rows)) {
        ew_json_object(&j, NULL);
        for (int i = 0; i < n; i++)
            ew_rows_json(&j, rows, picked[i]);
        ew_json_end(&j);
    }
    ew_json_end(&j);
    return ew_json_finish(&j);
}

/* ---- Two runs -------------------------------------------------------------------------------- */

/* Columns left out of a comparison of runs: they always differ. */
static bool passes_over(const char *name)
{
    static const char *const names[] = {"id",      "uid", "job",   "machine",
                                        "started", "pid", "stamp", "repeat"};
    for (size_t i = 0; i < EW_COUNT(names); i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

static ew_err diff_json(const struct sheet *t)
{
    struct ew_json j;
    ew_json_init(&j, stdout);
    ew_json_object(&j, NULL);
    for (int c = 0; c < t->columns; c++) {
        if (passes_over(t->names[c]) || same_everywhere(t, c))
            continue;
        ew_json_array(&j, t->names[c]);
        for (int r = 0; r < 2; r++) {
            double x;
            const char *text = cell(t, r, c);
            if (text && ew_num_float(text, &x))
                ew_json_num(&j, NULL, x);
            else
                ew_json_str(&j, NULL, text);
        }
        ew_json_end(&j);
    }
    ew_json_end(&j);
    return ew_json_finish(&j);
}

static ew_err diff_table(const struct sheet *t)
{
    struct ew_table out;
    ew_table_init(&out, "lrrr");
    ew_table_cell(&out, "differs");
    ew_table_cell(&out, "run %s", cell(t, 0, 0));
    ew_table_cell(&out, "run %s", cell(t, 1, 0));
    ew_table_cell(&out, "ratio");
    int rows = 0;
    for (int c = 0; c < t->columns; c++) {
        if (passes_over(t->names[c]) || same_everywhere(t, c))
            continue;
        const char *a = cell(t, 0, c), *b = cell(t, 1, c);
        double x, y;
        ew_table_cell(&out, "%s", t->names[c]);
        ew_table_cell(&out, "%.*s", CELL_CHARS, a ? a : "-");
        ew_table_cell(&out, "%.*s", CELL_CHARS, b ? b : "-");
        if (a && b && ew_num_float(a, &x) && ew_num_float(b, &y) && x > 0)
            ew_table_cell(&out, "%.3f", y / x);
        else
            ew_table_cell(&out, "%s", "");
        rows++;
    }
    EW_TRY(ew_table_print(&out, stdout));
    if (!rows)
        printf("nothing differs\n");
    return EW_OK;
}

ew_err ew_results_diff(struct ew_store *s, int64_t a, int64_t b, bool json)
{
    struct sheet t = {0};
    struct ew_rows *rows;
    char where[96], order[64];
    EW_CHECK(a != b, EW_ERR_USAGE, "results: diff needs two different runs, not run %lld twice",
             (long long)a);
    snprintf(where, sizeof(where), "id in (%lld, %lld)", (long long)a, (long long)b);
    snprintf(order, sizeof(order), "id <> %lld", (long long)a);
    EW_TRY(ew_store_results(s, where, order, &rows));
    ew_err err = fill_sheet(&t, rows);
    const ew_err read = ew_rows_free(rows);
    err = err == EW_OK ? read : err;
    if (err == EW_OK)
        err = json ? diff_json(&t) : diff_table(&t);
    free_sheet(&t);
    return err;
}
