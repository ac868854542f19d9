/* SPDX-License-Identifier: Apache-2.0 */
/* Tables and numbers for the terminal. */
#include "report/text_table.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

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

/* Columns two spaces apart; no spaces at the end of a line. */
static void print_row(const struct ew_table *t, const char *const *cells, const int *width,
                      FILE *out)
{
    const int n = (int)strlen(t->align);
    int last = n - 1;
    while (last > 0 && !*cells[last])
        last--;
    for (int i = 0; i <= last; i++) {
        const int w = t->align[i] == 'r' ? width[i] : i < last ? -width[i] : 0;
        fprintf(out, "%s%*s", i ? "  " : "", w, cells[i]);
    }
    fputc('\n', out);
}

ew_err ew_table_print(struct ew_table *t, FILE *out)
{
    const int n = (int)strlen(t->align), rows = n ? t->n_cells / n : 0;
    int *width = ew_arena_array(&t->arena, (size_t)n + 1, sizeof(*width));
    EW_ASSERT(t->err != EW_OK || !n || t->n_cells % n == 0);
    if (t->err == EW_OK && !width)
        t->err = ew_fail(EW_ERR_MEMORY, "no memory for a table");
    for (int i = 0; t->err == EW_OK && i < rows * n; i++) {
        const int len = (int)strlen(t->cells[i]);
        width[i % n] = width[i % n] > len ? width[i % n] : len;
    }
    for (int r = 0; t->err == EW_OK && r < rows; r++)
        print_row(t, t->cells + (size_t)r * n, width, out);
    ew_arena_fini(&t->arena);
    free(t->cells);
    return t->err;
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
