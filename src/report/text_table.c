/* SPDX-License-Identifier: Apache-2.0 */
/* Tables and numbers for the terminal. */
#include "report/text_table.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/progress.h"
#include "base/utf8.h"

#define TEXT_MIN 16 /* characters that a text column keeps if the table is too wide */

void ew_table_init(struct ew_table *t, const char *align)
{
    *t = (struct ew_table){.align = align};
    ew_arena_init(&t->arena);
}

static void add(struct ew_table *t, const char *text)
{
    if (t->err == EW_OK && !text)
        t->err = ew_fail(EW_ERR_MEMORY, "no memory for a table");
    if (t->err == EW_OK)
        t->err = ew_grow((void **)&t->cells, &t->cap_cells, t->n_cells + 1, sizeof(*t->cells));
    if (t->err == EW_OK)
        t->cells[t->n_cells++] = text;
}

void ew_table_cell(struct ew_table *t, const char *fmt, ...)
{
    char buf[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(buf, sizeof(buf), fmt, ap);
    va_end(ap);
    add(t, ew_arena_strdup(&t->arena, buf));
}

void ew_table_count(struct ew_table *t, int64_t n)
{
    char buf[EW_TEXT_CHARS];
    add(t, n ? ew_arena_strdup(&t->arena, ew_text_count(n, buf)) : "");
}

/* Columns `from` to `to` of a table, after the first one. */
struct block {
    int from, to;
};

static void print_cell(FILE *out, const char *text, char align, int width, bool last)
{
    const int columns = ew_utf8_width(text);
    const bool cut = columns > width;
    const int n = (int)(cut ? ew_utf8_fit(text, width - 1) : strlen(text));
    const int used = cut ? width : columns, room = width - used;
    fprintf(out, "%*s%.*s%s%*s", align == 'r' ? room : 0, "", n, text, cut ? "…" : "",
            align == 'r' || last ? 0 : room, "");
}

/* Columns two spaces apart; no spaces at the end of a line. */
static void print_row(const struct ew_table *t, const char *const *cells, const int *width,
                      struct block b, FILE *out)
{
    int last = b.to - 1;
    while (last >= b.from && !*cells[last])
        last--;
    last = last < b.from ? 0 : last;
    print_cell(out, cells[0], t->align[0], width[0], last == 0);
    for (int i = b.from; i <= last; i++) {
        fputs("  ", out);
        print_cell(out, cells[i], t->align[i], width[i], i == last);
    }
    fputc('\n', out);
}

static int total_width(const int *width, int n)
{
    int sum = 0;
    for (int i = 0; i < n; i++)
        sum += width[i] + (i ? 2 : 0);
    return sum;
}

/* Narrows the widest text column while it is wider than its heading and TEXT_MIN. */
static void narrow_texts(const struct ew_table *t, int *width, int n, int columns)
{
    for (int over = total_width(width, n) - columns; over > 0; over--) {
        int widest = -1;
        for (int i = 0; i < n; i++)
            if (t->align[i] == 'l' && width[i] > TEXT_MIN &&
                width[i] > ew_utf8_width(t->cells[i]) && (widest < 0 || width[i] > width[widest]))
                widest = i;
        if (widest < 0)
            return;
        width[widest]--;
    }
}

static void print_blocks(const struct ew_table *t, const int *width, int rows, int columns,
                         FILE *out)
{
    const int n = (int)strlen(t->align);
    struct block b = {.from = 1};
    do {
        int used = width[0];
        for (b.to = b.from; b.to < n; b.to++) {
            used += 2 + width[b.to];
            if (columns && used > columns && b.to > b.from)
                break;
        }
        if (b.from > 1)
            fputc('\n', out);
        for (int r = 0; r < rows; r++)
            print_row(t, t->cells + (size_t)r * n, width, b, out);
        b.from = b.to;
    } while (b.from < n);
}

ew_err ew_table_print_fit(struct ew_table *t, FILE *out, int columns)
{
    const int n = (int)strlen(t->align), rows = n ? t->n_cells / n : 0;
    int *width = ew_arena_array(&t->arena, (size_t)n + 1, sizeof(*width));
    EW_ASSERT(t->err != EW_OK || !n || t->n_cells % n == 0);
    if (t->err == EW_OK && !width)
        t->err = ew_fail(EW_ERR_MEMORY, "no memory for a table");
    for (int i = 0; t->err == EW_OK && i < rows * n; i++) {
        const int w = ew_utf8_width(t->cells[i]);
        width[i % n] = width[i % n] > w ? width[i % n] : w;
    }
    if (t->err == EW_OK && rows) {
        if (columns)
            narrow_texts(t, width, n, columns);
        print_blocks(t, width, rows, columns, out);
    }
    ew_arena_fini(&t->arena);
    free(t->cells);
    return t->err;
}

ew_err ew_table_print(struct ew_table *t, FILE *out)
{
    const bool terminal = isatty(ew_term_fd(out));
    return ew_table_print_fit(t, out, terminal ? ew_terminal_columns(out) : 0);
}

const char *ew_text_count(int64_t n, char buf[EW_TEXT_CHARS])
{
    char digits[EW_TEXT_CHARS];
    const int len = snprintf(digits, sizeof(digits), "%lld", (long long)n);
    int used = 0;
    for (int i = 0; i < len; i++) {
        if (i > 0 && digits[i - 1] != '-' && (len - i) % 3 == 0)
            buf[used++] = ',';
        buf[used++] = digits[i];
    }
    buf[used] = 0;
    return buf;
}

const char *ew_text_bytes(int64_t n, char buf[EW_TEXT_CHARS])
{
    static const char *const unit[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    double v = (double)n;
    int i = 0;
    while (v >= 1024 && i < (int)EW_COUNT(unit) - 1) {
        v /= 1024;
        i++;
    }
    snprintf(buf, EW_TEXT_CHARS, i ? "%.1f %s" : "%.0f %s", v, unit[i]);
    return buf;
}

const char *ew_text_ms(double ms, char buf[EW_TEXT_CHARS])
{
    snprintf(buf, EW_TEXT_CHARS, "%.*f", ms >= 1 || ms <= 0 ? 3 : ms >= 0.1 ? 4 : 5, ms);
    return buf;
}
