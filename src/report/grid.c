/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of text: making them, and the ways to write them. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "report/figure_grid.h"
#include "report/html.h"
#include "report/text_table.h"

void ew_grid_init(struct ew_grid *g)
{
    *g = (struct ew_grid){.n = 0};
    ew_arena_init(&g->arena);
}

void ew_grid_fini(struct ew_grid *g)
{
    free(g->cells);
    ew_arena_fini(&g->arena);
    *g = (struct ew_grid){.n = 0};
}

ew_err ew_grid_put(struct ew_grid *g, const char *text)
{
    EW_CHECK(text, EW_ERR_MEMORY, "no memory for a table");
    EW_TRY(ew_grow((void **)&g->cells, &g->cap, g->n + 1, sizeof(*g->cells)));
    g->cells[g->n++] = text;
    return EW_OK;
}

__attribute__((format(printf, 2, 0))) static ew_err put_list(struct ew_grid *g, const char *fmt,
                                                             va_list ap)
{
    char buf[1024];
    vsnprintf(buf, sizeof(buf), fmt, ap);
    return ew_grid_put(g, ew_arena_strdup(&g->arena, buf));
}

ew_err ew_grid_cell(struct ew_grid *g, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    const ew_err e = put_list(g, fmt, ap);
    va_end(ap);
    return e;
}

ew_err ew_grid_head(struct ew_grid *g, bool number, const char *fmt, ...)
{
    va_list ap;
    if (g->cols < (int)EW_COUNT(g->number))
        g->number[g->cols] = number;
    g->cols++;
    va_start(ap, fmt);
    const ew_err e = put_list(g, fmt, ap);
    va_end(ap);
    return e;
}

static bool is_number(const struct ew_grid *g, int col)
{
    return col < (int)EW_COUNT(g->number) && g->number[col];
}

/* ---- CSV ---- */

void ew_grid_csv(const struct ew_grid *g, FILE *out)
{
    for (int i = 0; i < g->n; i++) {
        ew_csv_cell(out, g->cells[i]);
        putc((i + 1) % g->cols ? ',' : '\n', out);
    }
}

/* ---- Markdown ---- */

void ew_text_markdown(const char *text, FILE *out)
{
    for (const char *p = text; *p; p++) {
        if (strchr("|\\`*_<>[]&#!", *p))
            putc('\\', out);
        const unsigned char c = (unsigned char)*p;
        putc(c < 32 || c == 127 ? ' ' : c, out);
    }
}

void ew_grid_markdown(const struct ew_grid *g, FILE *out)
{
    for (int i = 0; i < g->n; i++) {
        fputs(i % g->cols ? " | " : "| ", out);
        ew_text_markdown(g->cells[i], out);
        if ((i + 1) % g->cols)
            continue;
        fputs(" |\n", out);
        for (int col = 0; i < g->cols && col < g->cols; col++)
            fprintf(out, "%s%s%s", col ? "" : "|", is_number(g, col) ? " ---: |" : " --- |",
                    col == g->cols - 1 ? "\n" : "");
    }
}

/* ---- HTML ---- */

/* HTML allows rows and cells without end tags, which saves a quarter of a table. */
void ew_grid_html(const struct ew_grid *g, FILE *out)
{
    fputs("<div class=\"scroll\"><table><thead>", out);
    for (int i = 0; i < g->n; i++) {
        const int col = i % g->cols, row = i / g->cols;
        if (row == 1 && col == 0)
            fputs("<tbody>", out);
        if (col == 0)
            fputs("<tr>", out);
        fprintf(out, "<%s%s>", row ? "td" : "th", is_number(g, col) ? " class=n" : "");
        ew_html_text(out, g->cells[i]);
    }
    fputs("</table></div>", out);
}

/* ---- Terminal ---- */

/* Terminal tables count bytes; "±" has two and shows one. */
static const char *narrow(const char *text, char *buf, size_t size)
{
    size_t n = 0;
    for (const char *p = text; *p && n + 4 < size;) {
        if (strncmp(p, "±", strlen("±")) == 0) {
            memcpy(buf + n, "+-", 2);
            n += 2;
            p += strlen("±");
        } else {
            const unsigned char c = (unsigned char)*p++;
            buf[n++] = (char)(c < 32 || c == 127 ? ' ' : c); /* no escapes to the terminal */
        }
    }
    buf[n] = 0;
    return buf;
}

void ew_text_plain(const char *text, FILE *out)
{
    char buf[512];
    fputs(narrow(text, buf, sizeof(buf)), out);
}

ew_err ew_grid_text(const struct ew_grid *g, const char *const *bars, FILE *out)
{
    char text[512];
    EW_CLEANUP(ew_free_ptr) char *align = calloc((size_t)g->cols + 2, 1);
    EW_CHECK(align, EW_ERR_MEMORY, "no memory for a table");
    for (int i = 0; i < g->cols; i++)
        align[i] = is_number(g, i) ? 'r' : 'l';
    if (bars)
        align[g->cols] = 'l';
    struct ew_table t;
    ew_table_init(&t, align);
    for (int row = 0; row < g->n / g->cols; row++) {
        for (int i = 0; i < g->cols; i++)
            ew_table_cell(&t, "%s", narrow(g->cells[row * g->cols + i], text, sizeof(text)));
        if (bars)
            ew_table_cell(&t, "%s", bars[row]);
    }
    return ew_table_print(&t, out);
}
