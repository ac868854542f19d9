/* SPDX-License-Identifier: Apache-2.0 */
/* The page: frame, figures with their tables, what is missing. */
#include "report/page.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/num.h"
#include "data/blob.h"
#include "report/compare.h"
#include "report/figure_grid.h"
#include "report/figure_json.h"
#include "report/figure_svg.h"
#include "report/findings.h"
#include "report/html.h"

/* ---- Figures ---- */

/* How a page shows its figures. */
struct figure_style {
    bool still;  /* no script */
    bool packed; /* the script holds the CSV of the figures */
};

/* Release with free(). */
static ew_err csv_text(const struct ew_figure *f, char **text, size_t *size)
{
    FILE *m = open_memstream(text, size);
    EW_CHECK(m, EW_ERR_MEMORY, "no memory for a table");
    const ew_err e = ew_figure_csv(f, m);
    EW_CHECK(ew_memstream_close(m, text), EW_ERR_MEMORY, "no memory for a table");
    return e;
}

/* A link that holds the whole CSV, or gets it from the script. */
static ew_err csv_link(const struct ew_figure *f, const struct figure_style *l, FILE *out)
{
    EW_CLEANUP(ew_free_ptr) char *text = NULL;
    size_t size = 0;
    if (l->packed) {
        fputs("<a class=\"csv\" download>CSV</a>", out);
        return EW_OK;
    }
    EW_TRY(csv_text(f, &text, &size));
    fprintf(out, "<a class=\"csv\" download=\"%s.csv\" href=\"data:text/csv;charset=utf-8,", f->id);
    ew_html_url(out, text, size);
    fputs("\">CSV</a>", out);
    return EW_OK;
}

/* A badge for each quality among the series. */
static void badges(const struct ew_figure *f, FILE *out)
{
    for (int n = 0; n <= EW_QUALITY_N; n++) {
        const int q = n < EW_QUALITY_N ? n : -1; /* published values come last */
        for (int i = 0; i < f->n_series; i++)
            if (f->series[i].quality == q) {
                fprintf(out, "<span class=\"badge %s\">%s</span> ", ew_figure_quality(q),
                        ew_figure_quality(q));
                break;
            }
    }
}

/* Names under bars that need more than half a page. */
static bool is_wide(const struct ew_figure *f)
{
    size_t chars = 0;
    for (int i = 0; f->desc->kind == EW_FIGURE_STACK && i < f->n_categories; i++) {
        size_t most = 0;
        for (const char *p = f->categories[i]; *p;) {
            const size_t n = strcspn(p, "\n");
            most = n > most ? n : most;
            p += n + (p[n] == '\n');
        }
        chars += most + 1;
    }
    return chars > 75;
}

static ew_err panel(const struct ew_figure *f, const char *name, const struct figure_style *l,
                    FILE *out)
{
    struct ew_grid g;
    EW_TRY(ew_figure_grid(f, false, &g));
    fprintf(out, "<figure id=\"%s\"%s>", f->id, is_wide(f) ? " class=\"wide\"" : "");
    if (*name) {
        fputs("<h3>", out);
        ew_html_text(out, name);
        fputs("</h3>", out);
    }
    fprintf(out, "<div class=\"chart\" data-figure=\"%s\"><div class=\"still\">", f->id);
    ew_err e = ew_figure_svg(f, l->still, out);
    fputs("</div></div><figcaption>", out);
    badges(f, out);
    EW_CLEANUP(ew_free_ptr) char *note = NULL;
    size_t size = 0;
    FILE *m = open_memstream(&note, &size);
    if (m) {
        ew_figure_note(f, false, m);
        (void)!ew_memstream_close(m, &note);
    }
    ew_html_text(out, note ? note : "");
    const int rows = g.n / g.cols - 1;
    fputs("</figcaption>", out);
    if (rows > 0 && e == EW_OK) {
        fprintf(out, "<details%s><summary>Table, %d %s</summary>", rows < 12 ? " open" : "", rows,
                rows == 1 ? "row" : "rows");
        e = csv_link(f, l, out);
        ew_grid_html(&g, out);
        fputs("</details>", out);
    }
    fputs("</figure>", out);
    ew_grid_fini(&g);
    return e;
}

/* Text of the program itself, with `commands` set as code. */
static void prose(const char *text, FILE *out)
{
    bool code = false;
    for (const char *p = text; *p;) {
        const size_t n = strcspn(p, "`");
        fwrite(p, 1, n, out);
        p += n;
        if (*p) {
            fputs(code ? "</code>" : "<code>", out);
            code = !code;
            p++;
        }
    }
}

/* A section for one description, with its panels v[n]. */
static ew_err section(const struct ew_figure *v, int n, const struct figure_style *l, FILE *out)
{
    const struct ew_figure_desc *d = v->desc;
    fprintf(out, "<section><h2>%s</h2><p>", d->title);
    prose(d->about, out);
    fprintf(out, "</p><div class=\"panels%s\">", n == 1 ? " one" : "");
    for (int i = 0; i < n; i++)
        EW_TRY(panel(&v[i], v[i].facet, l, out));
    fputs("</div></section>", out);
    return EW_OK;
}

#define FEW 6 /* at most so many figures without data are listed unfolded */

static void not_shown(const struct ew_figures *f, FILE *out)
{
    int n = 0;
    for (int i = 0; i < f->n; i++)
        n += f->v[i].missing != NULL;
    if (n)
        fprintf(out,
                "<section id=\"missing\"><h2>Not shown</h2><details%s><summary>No data yet for %d "
                "figure%s</summary><ul>",
                n <= FEW ? " open" : "", n, n == 1 ? "" : "s");
    for (int i = 0; i < f->n; i++) {
        if (!f->v[i].missing)
            continue;
        fputs("<li><b>", out);
        ew_html_text(out, f->v[i].title);
        fputs("</b>: ", out);
        ew_html_text(out, f->v[i].missing);
        fputs("</li>", out);
    }
    if (n)
        fputs("</ul></details></section>", out);
}

static ew_err sections(const struct ew_figures *f, const struct figure_style *l, FILE *out)
{
    for (int i = 0; i < f->n;) {
        int end = i + 1;
        if (f->v[i].missing) {
            i = end;
            continue;
        }
        while (end < f->n && f->v[end].desc == f->v[i].desc && !f->v[end].missing)
            end++;
        EW_TRY(section(&f->v[i], end - i, l, out));
        i = end;
    }
    not_shown(f, out);
    return EW_OK;
}

ew_err ew_page_figures(const struct ew_figures *f, bool still, FILE *out)
{
    return sections(f, &(struct figure_style){.still = still}, out);
}

/* ---- Frame ---- */

static void asset(const char *file, FILE *out)
{
    size_t size = 0;
    const unsigned char *bytes = ew_asset(file, &size);
    if (bytes)
        fwrite(bytes, 1, size, out);
}

void ew_page_head(const char *title, const char *nonce, FILE *out)
{
    fprintf(out,
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
            "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">"
            "<meta name=\"color-scheme\" content=\"light dark\">"
            "<meta name=\"referrer\" content=\"no-referrer\">"
            "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
            "style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; "
            "script-src 'nonce-%s' 'strict-dynamic'\"><link rel=\"icon\" href=\"data:,\"><title>",
            nonce);
    ew_html_text(out, title);
    fputs("</title><style>", out);
    asset("style.css", out);
    fputs("</style></head><body>", out);
}

static bool has_rows(const struct ew_page_table *t)
{
    return t->grid->cols && t->grid->n > t->grid->cols;
}

static void contents(const struct ew_results *r, const struct ew_figures *f,
                     const struct ew_page_opts *o, FILE *out)
{
    fputs("<nav class=\"scroll\">", out);
    for (int i = 0; i < o->n_tables; i++)
        if (has_rows(&o->tables[i]))
            fprintf(out, "<a href=\"#%s\">%s</a>", o->tables[i].id, o->tables[i].title);
    for (int i = 0; i < f->n; i++)
        if (!f->v[i].missing && (i == 0 || f->v[i - 1].desc != f->v[i].desc || f->v[i - 1].missing))
            fprintf(out, "<a href=\"#%s\">%s</a>", f->v[i].id, f->v[i].desc->title);
    if (ew_page_has_mistakes(r))
        fputs("<a href=\"#mistakes\">Worst mistakes</a>", out);
    if (r->n_studies)
        fputs("<a href=\"#studies\">Studies</a>", out);
    if (r->n_runs || !f->n)
        fputs("<a href=\"#machines\">Machines</a><a href=\"#runs\">Runs</a>", out);
    fputs("</nav>", out);
}

static void own_tables(const struct ew_page_opts *o, bool after, FILE *out)
{
    for (int i = 0; i < o->n_tables; i++) {
        const struct ew_page_table *t = &o->tables[i];
        if (!has_rows(t) || t->after != after)
            continue;
        fprintf(out, "<section class=\"box\" id=\"%s\"><h2>", t->id);
        ew_html_text(out, t->title);
        fputs("</h2><p>", out);
        ew_html_text(out, t->about);
        fputs("</p>", out);
        ew_grid_html(t->grid, out);
        fputs("</section>", out);
    }
}

static void count_runs(const struct ew_results *r, FILE *out)
{
    int done = 0, failed = 0, noisy = 0;
    for (int i = 0; i < r->n_runs; i++) {
        done += r->runs[i].run.status == EW_RUN_DONE;
        failed += r->runs[i].run.status == EW_RUN_FAILED;
        noisy += r->runs[i].run.status == EW_RUN_DONE && r->runs[i].run.noise;
    }
    fprintf(out, "<p class=\"sum\"><b>%d</b> run%s done", done, done == 1 ? "" : "s");
    if (failed)
        fprintf(out, ", <b>%d</b> failed", failed);
    if (noisy)
        fprintf(out, ", <b>%d</b> noisy", noisy);
    fputs(".</p>", out);
}

/* The summary sentences before the figures. */
static void answers(const struct ew_results *r, const struct ew_page_opts *o, FILE *out)
{
    char text[EW_FINDINGS][EW_FINDING_CHARS];
    const int n = o->compared ? ew_compare_findings(r, o->sides, text) : ew_findings(r, text);
    if (n == 0)
        return;
    fputs("<ul class=\"answers\">", out);
    for (int i = 0; i < n; i++) {
        fputs("<li>", out);
        ew_html_text(out, text[i]);
        fputs("</li>", out);
    }
    fputs("</ul>", out);
}

static void figures_json(struct ew_json *j, const char *key, const struct ew_figures *f)
{
    ew_json_array(j, key);
    for (int i = 0; i < f->n; i++)
        if (!f->v[i].missing)
            ew_figure_json(j, &f->v[i]);
    ew_json_end(j);
}

ew_err ew_page_data(const struct ew_figures *f, FILE *out)
{
    struct ew_json j;
    EW_CLEANUP(ew_free_ptr) char *text = NULL;
    ew_json_init_text(&j, &text);
    j.compact = true;
    figures_json(&j, NULL, f);
    EW_TRY(ew_json_finish(&j));
    fputs("<script type=\"application/json\" id=\"figures\">", out);
    ew_html_json(out, text);
    fputs("</script>", out);
    return EW_OK;
}

/* Compresses the figures and their CSV for the script, to a fifth of the text.  Release with
 * free(). */
static ew_err pack(const struct ew_figures *f, uint8_t **out, size_t *size)
{
    struct ew_json j;
    EW_CLEANUP(ew_free_ptr) char *text = NULL;
    ew_json_init_text(&j, &text);
    j.compact = true;
    ew_json_object(&j, NULL);
    figures_json(&j, "figures", f);
    ew_json_object(&j, "csv");
    ew_err e = EW_OK;
    for (int i = 0; e == EW_OK && i < f->n; i++) {
        EW_CLEANUP(ew_free_ptr) char *csv = NULL;
        size_t n = 0;
        if (f->v[i].missing)
            continue;
        e = csv_text(&f->v[i], &csv, &n);
        if (e == EW_OK)
            ew_json_str(&j, f->v[i].id, csv);
    }
    ew_json_end(&j);
    ew_json_end(&j);
    const ew_err written = ew_json_finish(&j);
    EW_TRY(e);
    EW_TRY(written);
    return ew_gzip(text, strlen(text), out, size);
}

struct compressed_text {
    uint8_t *bytes; /* NULL: as text */
    size_t size;
};

static void base64_script(const char *id, const void *bytes, size_t size, FILE *out)
{
    fprintf(out, "<script type=\"text/plain\" id=\"%s\">", id);
    ew_html_base64(out, bytes, size);
    fputs("</script>", out);
}

/* Writes a script without comment lines and indentation. */
static void lean_script(const char *file, FILE *out)
{
    size_t size = 0;
    const char *text = (const char *)ew_asset(file, &size), *end = text + size;
    for (const char *p = text; p < end;) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        stop = stop ? stop + 1 : end;
        while (p < stop && *p == ' ')
            p++;
        if (stop - p < 2 || p[0] != '/' || p[1] != '/')
            fwrite(p, 1, (size_t)(stop - p), out);
        p = stop;
    }
}

static ew_err scripts(const struct ew_figures *f, const char *nonce,
                      const struct compressed_text *p, FILE *out)
{
    size_t size = 0;
    const unsigned char *bytes = ew_asset("echarts.js.gz", &size);
    if (!bytes) {
        fputs("<p class=\"still-note\">This program was built without the charting library: the "
              "charts are static.</p>",
              out);
        return EW_OK;
    }
    if (p->bytes)
        base64_script("packed", p->bytes, p->size, out);
    else
        EW_TRY(ew_page_data(f, out));
    base64_script("library", bytes, size, out);
    fprintf(out, "<script nonce=\"%s\">", nonce);
    lean_script("page.js", out);
    fputs("</script>", out);
    return EW_OK;
}

static ew_err write_page(const struct ew_results *r, const struct ew_figures *f,
                         const struct ew_page_opts *o, const struct compressed_text *p, FILE *out)
{
    char nonce[EW_RUN_UID_CHARS], now[EW_RUN_TIME_CHARS];
    EW_TRY(ew_run_new_uid(nonce));
    ew_run_time_text(now);
    ew_page_head(o->title, nonce, out);
    fputs("<header><h1>", out);
    ew_html_text(out, o->title);
    fputs("</h1>", out);
    if (o->about) {
        fputs("<p>", out);
        ew_html_text(out, o->about);
        fputs("</p>", out);
    }
    if (r->n_runs || !f->n)
        count_runs(r, out);
    answers(r, o, out);
    contents(r, f, o, out);
    fputs("</header><main>", out);
    own_tables(o, false, out);
    EW_TRY(sections(f, &(struct figure_style){o->still, p->bytes != NULL}, out));
    own_tables(o, true, out);
    if (o->compared) {
        fputs("<section class=\"box\"><h2>Side by side</h2>", out);
        ew_grid_html(o->compared, out);
        fputs("</section>", out);
    }
    ew_page_mistakes(r, out);
    ew_page_studies(r, out);
    if (r->n_runs || !f->n)
        ew_page_machines(r, out);
    if (r->n_runs || !f->n)
        ew_page_runs(r, out);
    fprintf(out, "</main><footer>Made by Edgewise %s at %s.</footer>", ew_version(), now);
    if (!o->still)
        EW_TRY(scripts(f, nonce, p, out));
    fputs("</body></html>\n", out);
    return EW_OK;
}

ew_err ew_page_write(const struct ew_results *r, const struct ew_figures *f,
                     const struct ew_page_opts *o, FILE *out)
{
    EW_C_LOCALE;
    struct compressed_text p = {NULL, 0};
    size_t library = 0;
    ew_err e = EW_OK;
    if (!o->still && ew_asset("echarts.js.gz", &library))
        e = pack(f, &p.bytes, &p.size);
    if (e == EW_OK || e == EW_ERR_UNSUPPORTED)
        e = write_page(r, f, o, &p, out);
    free(p.bytes);
    return e;
}
