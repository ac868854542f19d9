/* SPDX-License-Identifier: Apache-2.0 */
/* edgewise report: results as charts and tables. */
#include <stdlib.h>
#include <string.h>

#include "advise/best_candidates.h"
#include "advise/store/measured_store.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/cmd.h"
#include "report/carbon.h"
#include "report/compare.h"
#include "report/figure_grid.h"
#include "report/figure_json.h"
#include "report/page.h"
#include "report/store/load.h"

struct opts {
    const char *study, *output, *db, *figure, *title, *limits, *goal;
    int format;
    bool still, compare;
    double carbon;
};

enum format { AUTO, HTML, TEXT, MARKDOWN, CSV };
static const char *const formats[] = {"auto", "html", "text", "markdown", "csv", NULL};

/* clang-format off */
static const struct ew_field table[] = {
    {.name = "output", .type = EW_FIELD_STR, .offset = offsetof(struct opts, output),
     .metavar = "FILE", .letter = 'o', .help = "file to write; default: standard output"},
    {.name = "study", .type = EW_FIELD_STR, .offset = offsetof(struct opts, study),
     .metavar = "NAME", .help = "only runs and figures of this study"},
    {.name = "figure", .type = EW_FIELD_STR, .offset = offsetof(struct opts, figure),
     .metavar = "ID", .help = "only figures whose id begins with this"},
    {.name = "format", .type = EW_FIELD_ENUM, .offset = offsetof(struct opts, format),
     .choices = formats, .def = "auto",
     .help = "output format; auto: by the file name's extension (.html, .md, .csv, .txt), text "
     "without one"},
    {.name = "title", .type = EW_FIELD_STR, .offset = offsetof(struct opts, title),
     .metavar = "TEXT", .help = "title of the report"},
    {.name = "still", .type = EW_FIELD_BOOL, .offset = offsetof(struct opts, still),
     .help = "HTML without scripts: smaller, static charts"},
    {.name = "goal", .type = EW_FIELD_STR, .offset = offsetof(struct opts, goal),
     .metavar = "NAME",
     .help = "begin with each network's best run: time, latency, power, energy, memory or "
     "accuracy"},
    {.name = "limit", .type = EW_FIELD_STR, .offset = offsetof(struct opts, limits),
     .metavar = "NAME=VALUE...",
     .help = "constraints on --goal, as in recommend: power=10W, latency=16.7ms, accuracy=0.9"},
    {.name = "carbon", .type = EW_FIELD_FLOAT, .offset = offsetof(struct opts, carbon),
     .def = "0", .min = 0, .max = 10000, .metavar = "G/KWH",
     .help = "also report energy as CO2e, for a grid of this carbon intensity"},
    {.name = "compare", .type = EW_FIELD_BOOL, .offset = offsetof(struct opts, compare),
     .help = "compare A and B; same as report compare A B"},
    {.name = "db", .type = EW_FIELD_STR, .offset = offsetof(struct opts, db),
     .def = EW_STORE_FILE, .metavar = "FILE", .help = "the results database"},
    EW_FIELD_END};
/* clang-format on */

/* ---- Writing ---- */

struct report {
    const struct opts *o;
    struct ew_results results;
    struct ew_figures figures;
    struct ew_grid compared; /* of two runs or studies; else empty */
    const char *sides[2];    /* names of the compared sides */
    const char *title;
    const char *
        best; /* best option of each network within the limits, one per line; NULL: not requested */
    const char *carbon; /* CO2 equivalents of each network, one per line; NULL: not requested */
};

static bool chosen(const struct report *r, const struct ew_figure *f)
{
    return !r->o->figure || strncmp(f->id, r->o->figure, strlen(r->o->figure)) == 0;
}

/* Writes the lines of a text, each after `mark`, and an empty one; nothing for NULL. */
static void write_lines(const char *text, const char *mark, FILE *out)
{
    if (!text)
        return;
    for (const char *p = text; *p;) {
        char line[500];
        const int n = (int)strcspn(p, "\n");
        snprintf(line, sizeof(line), "%.*s", n, p);
        fputs(mark, out);
        ew_text_plain(line, out);
        putc('\n', out);
        p += n + (p[n] == '\n');
    }
    putc('\n', out);
}

/* Title of the study and its differences from the publication, one per line after `mark`. */
static void write_studies(const struct report *r, const char *mark, FILE *out)
{
    for (int i = 0; r->o->study && i < r->results.n_studies; i++) {
        const struct ew_study_row *s = &r->results.studies[i];
        ew_text_plain(s->title ? s->title : s->name, out);
        fputs("\n\n", out);
        write_lines(s->differs, mark, out);
    }
}

/* Heading of the first section with --best. */
static const char best_heading[] = "Best within your limits";
#define CARBON_HEADING "Carbon at %g g of CO2e a kWh"

static void write_section(const char *heading, const char *lines, const char *mark, FILE *out)
{
    if (lines)
        fprintf(out, "%s\n\n", heading);
    write_lines(lines, mark, out);
}

/* The findings of a comparison as sentences. */
static void write_answers(const struct report *r, const char *mark, FILE *out)
{
    char text[EW_FINDINGS][EW_FINDING_CHARS];
    const int n = r->compared.n ? ew_compare_findings(&r->results, r->sides, text) : 0;
    for (int i = 0; i < n; i++) {
        fputs(mark, out);
        ew_text_plain(text[i], out);
        putc('\n', out);
    }
    if (n)
        putc('\n', out);
}

static void write_first(const struct report *r, const char *mark, FILE *out)
{
    char heading[80];
    write_answers(r, mark, out);
    write_section(best_heading, r->best, mark, out);
    snprintf(heading, sizeof(heading), CARBON_HEADING, r->o->carbon);
    write_section(heading, r->carbon, mark, out);
}

/* Whether figures without data are listed one by one; for a whole store they are only counted. */
static bool lists_missing(const struct report *r)
{
    return r->o->study || r->o->figure;
}

static void write_missing(const struct report *r, FILE *out)
{
    int n = 0;
    for (int i = 0; i < r->figures.n; i++)
        n += r->figures.v[i].missing != NULL;
    if (n && !lists_missing(r))
        fprintf(out,
                "%d more figure%s no data here: --study NAME or --figure ID says what they lack\n",
                n, n == 1 ? " has" : "s have");
}

static ew_err write_text(const struct report *r, FILE *out)
{
    write_first(r, "  ", out);
    write_studies(r, "differs: ", out);
    if (r->compared.n) {
        EW_TRY(ew_grid_text(&r->compared, NULL, out));
        putc('\n', out);
    }
    for (int i = 0; i < r->figures.n; i++)
        if (chosen(r, &r->figures.v[i]) && !r->figures.v[i].missing)
            EW_TRY(ew_figure_text(&r->figures.v[i], out));
    for (int i = 0; lists_missing(r) && i < r->figures.n; i++)
        if (chosen(r, &r->figures.v[i]) && r->figures.v[i].missing)
            fprintf(out, "not shown: %s: %s\n", r->figures.v[i].title, r->figures.v[i].missing);
    write_missing(r, out);
    return EW_OK;
}

static ew_err write_markdown(const struct report *r, FILE *out)
{
    fputs("# ", out);
    ew_text_markdown(r->title, out);
    fputs("\n\n", out);
    write_first(r, "- ", out);
    write_studies(r, "- differs: ", out);
    if (r->compared.n) {
        ew_grid_markdown(&r->compared, out);
        putc('\n', out);
    }
    for (int i = 0; i < r->figures.n; i++)
        if (chosen(r, &r->figures.v[i]) && (lists_missing(r) || !r->figures.v[i].missing))
            EW_TRY(ew_figure_markdown(&r->figures.v[i], out));
    write_missing(r, out);
    return EW_OK;
}

/* Tables are separated by an empty line and a line with the figure's id. */
static ew_err write_csv(const struct report *r, FILE *out)
{
    int n = 0, done = 0;
    for (int i = 0; i < r->figures.n; i++)
        n += chosen(r, &r->figures.v[i]) && !r->figures.v[i].missing;
    if (r->compared.n) {
        ew_grid_csv(&r->compared, out);
        done++;
    }
    for (int i = 0; i < r->figures.n; i++) {
        const struct ew_figure *f = &r->figures.v[i];
        if (!chosen(r, f) || f->missing)
            continue;
        if (n + done > 1)
            fprintf(out, "%s# %s\n", done ? "\n" : "", f->id);
        EW_TRY(ew_figure_csv(f, out));
        done++;
    }
    return EW_OK;
}

static ew_err write_json(const struct report *r, FILE *out)
{
    struct ew_json j;
    ew_json_init(&j, out);
    ew_json_object(&j, NULL);
    ew_json_str(&j, "title", r->title);
    if (r->best)
        ew_json_str(&j, "best", r->best);
    if (r->carbon)
        ew_json_str(&j, "carbon", r->carbon);
    ew_json_array(&j, "figures");
    for (int i = 0; i < r->figures.n; i++)
        if (chosen(r, &r->figures.v[i]))
            ew_figure_json(&j, &r->figures.v[i]);
    ew_json_end(&j);
    ew_json_end(&j);
    return ew_json_finish(&j);
}

static ew_err write_html(const struct report *r, FILE *out)
{
    struct ew_figures some = r->figures; /* shallow copy */
    EW_CLEANUP(ew_free_ptr) char *about = NULL;
    char carbon[80] = "";
    if (r->carbon)
        snprintf(carbon, sizeof(carbon), "%s" CARBON_HEADING ": ", r->best ? ". " : "",
                 r->o->carbon);
    const bool first = r->best || r->carbon;
    if (first && asprintf(&about, "%s%s%s%s%s", r->best ? best_heading : "", r->best ? ": " : "",
                          r->best ? r->best : "", carbon, r->carbon ? r->carbon : "") < 0)
        return ew_fail(EW_ERR_MEMORY, "no memory for the report");
    some.v = calloc((size_t)r->figures.n + 1, sizeof(*some.v));
    EW_CHECK(some.v, EW_ERR_MEMORY, "no memory for the report");
    some.n = 0;
    for (int i = 0; i < r->figures.n; i++)
        if (chosen(r, &r->figures.v[i]))
            some.v[some.n++] = r->figures.v[i];
    const struct ew_page_opts page = {.title = r->title,
                                      .about = first ? about : NULL,
                                      .still = r->o->still,
                                      .compared = r->compared.n ? &r->compared : NULL,
                                      .sides = {r->sides[0], r->sides[1]}};
    const ew_err e = ew_page_write(&r->results, &some, &page, out);
    free(some.v);
    return e;
}

static enum format format_of(const struct opts *o)
{
    if (o->format != AUTO || !o->output)
        return o->format == AUTO ? TEXT : (enum format)o->format;
    if (ew_ends_with(o->output, ".html") || ew_ends_with(o->output, ".htm"))
        return HTML;
    if (ew_ends_with(o->output, ".md"))
        return MARKDOWN;
    return ew_ends_with(o->output, ".csv") ? CSV : TEXT;
}

static ew_err write_as(const struct report *r, bool json, FILE *out)
{
    if (json)
        return write_json(r, out);
    switch (format_of(r->o)) {
    case HTML:
        return write_html(r, out);
    case MARKDOWN:
        return write_markdown(r, out);
    case CSV:
        return write_csv(r, out);
    case TEXT:
    case AUTO:
        break;
    }
    return write_text(r, out);
}

/* Refuses file extensions without a known format, which would get plain text. */
static ew_err check_ending(const struct opts *o)
{
    static const char *const known[] = {".html", ".htm", ".md", ".csv", ".txt", ".json"};
    const char *slash = o->output ? strrchr(o->output, '/') : NULL;
    const char *dot = o->output ? strrchr(slash ? slash : o->output, '.') : NULL;
    bool ok = !dot || o->format != AUTO;
    for (size_t i = 0; !ok && i < EW_COUNT(known); i++)
        ok = strcmp(dot, known[i]) == 0;
    EW_CHECK(ok, EW_ERR_USAGE,
             "-o %s: a report is .html, .md, .csv or .txt; a browser prints .html as PDF",
             o->output);
    return EW_OK;
}

static ew_err check_figure(struct report *r)
{
    const char *known = "";
    for (int i = 0; i < r->figures.n; i++) {
        if (chosen(r, &r->figures.v[i]))
            return EW_OK;
        known =
            ew_arena_printf(&r->results.arena, "%s%s%s", known, i ? ", " : "", r->figures.v[i].id);
        EW_CHECK(known, EW_ERR_MEMORY, "no memory for the report");
    }
    return ew_fail(EW_ERR_USAGE, "--figure %s: no figure's id begins so; there are %s",
                   r->o->figure, known);
}

static ew_err write_out(struct report *r, bool json)
{
    struct ew_file_out f;
    EW_TRY(check_ending(r->o));
    if (r->o->figure)
        EW_TRY(check_figure(r));
    if (!r->o->output)
        return write_as(r, json, stdout);
    EW_TRY(ew_file_out_open(r->o->output, &f));
    const ew_err e = write_as(r, json, f.f);
    if (e != EW_OK) {
        ew_file_out_abort(&f);
        return e;
    }
    EW_TRY(ew_file_out_commit(&f));
    int shown = 0;
    for (int i = 0; i < r->figures.n; i++)
        shown += chosen(r, &r->figures.v[i]) && !r->figures.v[i].missing;
    fprintf(stderr, "%s: %d figure%s of %d run%s\n", r->o->output, shown, shown == 1 ? "" : "s",
            r->results.n_runs, r->results.n_runs == 1 ? "" : "s");
    return EW_OK;
}

/* ---- Reading ---- */

static ew_err load(const char *file, const char *study, const char *side, struct ew_results *r)
{
    struct ew_store *s;
    ew_err opened = ew_store_open(file, &(struct ew_store_opts){.read_only = true}, &s);
    if (opened == EW_ERR_UNSUPPORTED) /* an older schema: opening it for writing migrates it */
        opened = ew_store_open(file, &(struct ew_store_opts){.existing = true}, &s);
    EW_TRY(opened);
    const ew_err e = ew_results_load(s, study, side, r);
    ew_store_close(s);
    return e;
}

static ew_err find_best(struct report *r)
{
    const struct opts *o = r->o;
    struct ew_arena *a = &r->results.arena;
    const struct ew_profile *list;
    struct ew_measured m;
    int n;
    if (!o->limits && !o->goal)
        return EW_OK;
    EW_TRY(ew_profiles_load(a, &list, &n));
    EW_TRY(ew_measured_from_store(a, o->db, list, n, &m));
    return ew_best_candidates_text(a, &m, o->goal ? o->goal : "time", o->limits, &r->best);
}

static ew_err find_carbon(struct report *r)
{
    if (!(r->o->carbon > 0))
        return EW_OK;
    EW_TRY(ew_carbon_text(&r->results.arena, &r->results, r->o->carbon, &r->carbon));
    if (!*r->carbon)
        r->carbon = "no run has an energy: it comes from a power sensor or --simulate";
    return EW_OK;
}

static ew_err plain(struct ew_cmd_call *c, struct report *r)
{
    const struct opts *o = c->opts;
    EW_CHECK(c->n_args == 0, EW_ERR_USAGE,
             "report %s: there is no such report; did you mean "
             "\"report compare A B\"?",
             c->args[0]);
    EW_TRY(load(o->db, o->study, NULL, &r->results));
    EW_CHECK(r->results.n_runs || !o->study, EW_ERR_NOT_FOUND, "%s: no runs of study %s", o->db,
             o->study);
    r->title = o->title   ? o->title
               : o->study ? ew_arena_printf(&r->results.arena, "Study %s", o->study)
                          : "Edgewise report";
    EW_CHECK(r->title, EW_ERR_MEMORY, "no memory for the report");
    EW_TRY(find_best(r));
    EW_TRY(find_carbon(r));
    EW_TRY(ew_figures_init(ew_figures_report, &r->results, o->study, &r->figures));
    return write_out(r, c->json);
}

static ew_err compare(struct ew_cmd_call *c, struct report *r)
{
    const struct opts *o = c->opts;
    const char *side[2] = {c->args[c->n_args - 2], c->args[c->n_args - 1]};
    const bool files = ew_ends_with(side[0], ".db") && ew_ends_with(side[1], ".db");
    if (files) {
        EW_TRY(load(side[0], o->study, side[0], &r->results));
        EW_TRY(load(side[1], o->study, side[1], &r->results));
    } else {
        EW_TRY(load(o->db, o->study, NULL, &r->results));
        EW_TRY(ew_compare_choose(&r->results, side));
    }
    EW_TRY(find_carbon(r));
    EW_TRY(ew_compare_match(&r->results, side));
    EW_TRY(ew_compare_grid(&r->results, side, &r->compared));
    r->sides[0] = side[0];
    r->sides[1] = side[1];
    r->title = ew_arena_printf(&r->results.arena, "%s against %s", side[0], side[1]);
    EW_CHECK(r->title, EW_ERR_MEMORY, "no memory for the report");
    EW_TRY(ew_figures_init(ew_figures_compare, &r->results, NULL, &r->figures));
    for (int i = 0; i < r->figures.n; i++)
        EW_TRY(ew_compare_order(&r->figures.v[i], side, &r->results.arena));
    return write_out(r, c->json);
}

static ew_err run(struct ew_cmd_call *c)
{
    struct report r = {.o = c->opts};
    const struct opts *o = c->opts;
    const bool two =
        (c->n_args == 3 && strcmp(c->args[0], "compare") == 0) || (c->n_args == 2 && o->compare);
    EW_CHECK(two || !o->compare, EW_ERR_USAGE, "--compare: needs two sides, as in a.db b.db");
    ew_results_init(&r.results);
    ew_grid_init(&r.compared);
    const ew_err e = two ? compare(c, &r) : plain(c, &r);
    if (e == EW_ERR_NOT_FOUND && !two)
        ew_cmd_hint(c,
                    "'edgewise study', or --db of other commands, creates one; --db names another");
    ew_grid_fini(&r.compared);
    ew_figures_fini(&r.figures);
    ew_results_fini(&r.results);
    return e;
}

const struct ew_cmd ew_cmd_report = {
    .name = "report",
    .group = EW_CMD_STUDY,
    .summary = "figures and tables of the results: HTML page, text, Markdown, CSV",
    .args = "[compare A B]",
    .about = "Without -o it prints a table with small bars for each figure; -o report.html writes "
             "one self-contained page that works offline: charts, tables, CSV, machines, runs.\n"
             "Figures without data are listed with what is missing.\n"
             "`compare` compares the same jobs of two sides; A and B are two results databases, "
             "or each a board, unit, version, power mode, study or property=value of the runs in "
             "one database.",
    .examples = "report -o report.html\n"
                "report -o report.html --goal latency --limit power=10W\n"
                "report --study train-workers\n"
                "report --figure workers --format csv\n"
                "report --carbon 380\n"
                "report --compare nano.db xavier.db -o boards.html\n"
                "report compare version=0.1 version=0.2",
    .min_args = 0,
    .max_args = 3,
    .opts_size = sizeof(struct opts),
    .opts = table,
    .run = run,
};
