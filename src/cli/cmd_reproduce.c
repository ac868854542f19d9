/* SPDX-License-Identifier: Apache-2.0 */
/* edgewise reproduce: the tables and figures of the four studies, with what is needed for each, or
 * one of them run again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "cli/cmd.h"
#include "cli/reproduce_view.h"
#include "report/figure_key.h"
#include "report/page.h"
#include "report/store/load.h"

struct opts {
    const char *db, *output, *only, *simulate;
    bool full, still;
};

/* clang-format off */
static const struct ew_field table[] = {
    {.name = "output", .type = EW_FIELD_STR, .offset = offsetof(struct opts, output),
     .metavar = "FILE.html", .letter = 'o',
     .help = "page to write; default for one figure: reproduce-ID.html"},
    {.name = "full", .type = EW_FIELD_BOOL, .offset = offsetof(struct opts, full),
     .help = "the study's full size and data sets instead of the reduced size"},
    {.name = "only", .type = EW_FIELD_STR, .offset = offsetof(struct opts, only),
     .metavar = "SECTION,NAME=VALUE", .help = "only these jobs of the study"},
    {.name = "simulate", .type = EW_FIELD_STR, .offset = offsetof(struct opts, simulate),
     .metavar = "BOARD",
     .help = "TRAIN's epochs on the model of this board instead of this machine"},
    {.name = "still", .type = EW_FIELD_BOOL, .offset = offsetof(struct opts, still),
     .help = "a page without scripts"},
    {.name = "db", .type = EW_FIELD_STR, .offset = offsetof(struct opts, db),
     .def = EW_STORE_FILE, .metavar = "FILE", .help = "the results database"},
    EW_FIELD_END};
/* clang-format on */

/* The call, and the contents of the store. */
struct context {
    struct ew_cmd_call *call;
    const struct opts *o;
    struct ew_reproduce_here here;
    struct ew_results results;
    struct ew_figures figures;
    struct ew_reproduce_tables tables;
    bool loaded;
};

/* Keeps the runs that the table or figure is based on: by study, part and precision. */
static void keep_own(struct ew_results *r, const struct ew_reproduction *only)
{
    int n = 0;
    for (int i = 0; i < r->n_runs; i++) {
        const struct ew_run_data *d = &r->runs[i];
        const char *label = d->run.label ? d->run.label : "";
        const char *dtype = only->dtype ? ew_run_property(d, "dtype", &r->arena) : NULL;
        const bool own = (!d->run.study || ew_words_have(only->study, d->run.study)) &&
                         (!dtype || strcmp(dtype, only->dtype) == 0);
        if (own && (!only->part || strncmp(label, only->part, strlen(only->part)) == 0))
            r->runs[n++] = *d;
    }
    r->n_runs = n;
    n = 0;
    for (int i = 0; i < r->n_studies; i++)
        if (ew_words_have(only->study, r->studies[i].name))
            r->studies[n++] = r->studies[i];
    r->n_studies = n;
}

static ew_err load(struct context *x, const struct ew_reproduction *only)
{
    struct ew_store *s;
    if (access(x->o->db, R_OK) != 0)
        return EW_OK;
    EW_TRY(ew_store_open(x->o->db, &(struct ew_store_opts){.existing = true}, &s));
    ew_err err = ew_results_load(s, NULL, NULL, &x->results);
    if (err == EW_OK && only)
        keep_own(&x->results, only);
    if (err == EW_OK)
        err = ew_figures_init(ew_figures_report, &x->results, NULL, &x->figures);
    x->loaded = err == EW_OK;
    const int last = x->results.n_runs - 1;
    if (err == EW_OK && last >= 0)
        err = ew_reproduce_compare(
            s,
            &(struct ew_reproduce_whose){x->results.runs[last].machine.unit, x->o->simulate, only},
            &x->tables);
    ew_store_close(s);
    return err;
}

/* ---- Pages ----------------------------------------------------------------------------------- */

/* Whether the figure belongs to the reproduction; NULL: all do. */
static bool is_wanted(const struct ew_reproduction *only, const struct ew_figure *f)
{
    if (only)
        return ew_reproduce_has(only, f);
    for (const struct ew_reproduction *r = ew_reproductions; r->id; r++)
        if (ew_reproduce_has(r, f))
            return true;
    return false;
}

static ew_err write_page(struct context *x, const struct ew_reproduction *only,
                         const struct ew_grid *list, const char *path)
{
    const struct ew_page_table tables[] = {{"reproduce", "Tables and figures of the four studies",
                                            "Each with its state here.", list, false},
                                           {"shapes", "The shape beside the published one",
                                            "Times of different machines do not differ by one "
                                            "factor, but order, optimum and trend can be compared.",
                                            &x->tables.shapes, false},
                                           {"published", "Published and measured values",
                                            "Values from the papers, beside those of this machine.",
                                            &x->tables.values, true}};
    const struct ew_page_opts o = {.title = only ? only->id : "The four studies, reproduced",
                                   .about = only ? only->title : NULL,
                                   .still = x->o->still,
                                   .tables = tables,
                                   .n_tables = EW_COUNT(tables)};
    struct ew_figures some = x->figures; /* shallow copy */
    struct ew_file_out f;
    some.v = calloc((size_t)x->figures.n + 1, sizeof(*some.v));
    EW_CHECK(some.v, EW_ERR_MEMORY, "no memory for the page");
    some.n = 0;
    for (int i = 0; i < x->figures.n; i++)
        if (is_wanted(only, &x->figures.v[i]))
            some.v[some.n++] = x->figures.v[i];
    ew_err err = ew_file_out_open(path, &f);
    if (err == EW_OK) {
        err = ew_page_write(&x->results, &some, &o, f.f);
        if (err == EW_OK)
            err = ew_file_out_commit(&f);
        else
            ew_file_out_abort(&f);
    }
    free(some.v);
    if (err == EW_OK)
        EW_INFO("written: %s", path);
    return err;
}

/* ---- All ------------------------------------------------------------------------------------- */

static ew_err print_json(const struct context *x)
{
    static const char *const states[] = {"measured", "emulated", "simulated", "ready",
                                         "command",  "needs",    "none"};
    struct ew_json j;
    ew_json_init(&j, stdout);
    ew_json_array(&j, NULL);
    for (const struct ew_reproduction *r = ew_reproductions; r->id; r++) {
        char text[EW_REPRODUCE_CHARS];
        const enum ew_reproduce_state s =
            ew_reproduce_state(r, x->loaded ? &x->figures : NULL, &x->here, text);
        ew_json_object(&j, NULL);
        ew_json_str(&j, "id", r->id);
        ew_json_str(&j, "title", r->title);
        ew_json_str(&j, "study", r->study);
        ew_json_str(&j, "command", r->command);
        ew_json_str(&j, "state", states[s]);
        ew_json_str(&j, "why", text);
        ew_json_end(&j);
    }
    ew_json_end(&j);
    return ew_json_finish(&j);
}

static ew_err show_all(struct context *x)
{
    struct ew_grid list;
    EW_TRY(load(x, NULL));
    ew_grid_init(&list);
    ew_err err = ew_reproduce_list(x->loaded ? &x->figures : NULL, &x->here, &list);
    if (err == EW_OK && x->o->output)
        err = write_page(x, NULL, &list, x->o->output);
    if (err == EW_OK && x->call->json)
        err = print_json(x);
    else if (err == EW_OK && !x->o->output)
        err = ew_grid_text(&list, NULL, stdout);
    ew_grid_fini(&list);
    return err;
}

/* ---- One ------------------------------------------------------------------------------------- */

static ew_err print_grid(const struct ew_grid *g, const char *title)
{
    if (g->n <= g->cols)
        return EW_OK;
    printf("\n%s\n", title);
    return ew_grid_text(g, NULL, stdout);
}

/* Runs a study; jobs that cannot run here do not stop the others. */
static ew_err run_study(const struct context *x, const struct ew_reproduction *r, const char *study)
{
    const char *words[10];
    int n = 0;
    words[n++] = study;
    words[n++] = "--db";
    words[n++] = x->o->db;
    if (!x->o->full)
        words[n++] = "--quick";
    if (x->o->simulate) {
        words[n++] = "--simulate";
        words[n++] = x->o->simulate;
    }
    const char *only = x->o->only ? x->o->only : r->only;
    if (only) {
        words[n++] = "--only";
        words[n++] = only;
    }
    const ew_err err = ew_cmd_perform("study", n, words);
    return err == EW_ERR_SKIPPED ? EW_OK : err;
}

static ew_err run_studies(const struct context *x, const struct ew_reproduction *r)
{
    char names[128], *at = names;
    snprintf(names, sizeof(names), "%s", r->study);
    for (char *name; (name = strsep(&at, " ")) != NULL;)
        EW_TRY(run_study(x, r, name));
    return EW_OK;
}

static ew_err show_figures(struct context *x, const struct ew_reproduction *r)
{
    char path[128];
    EW_TRY(load(x, r));
    for (int i = 0; i < x->figures.n; i++) {
        const struct ew_figure *f = &x->figures.v[i];
        if (!ew_reproduce_has(r, f))
            continue;
        if (f->missing)
            printf("\nnot shown: %s: %s\n", f->title, f->missing);
        else
            EW_TRY(ew_figure_text(f, stdout));
    }
    EW_TRY(print_grid(&x->tables.shapes, "The shape beside the published one"));
    snprintf(path, sizeof(path), "reproduce-%s.html", r->id);
    struct ew_grid none;
    ew_grid_init(&none);
    return write_page(x, r, &none, x->o->output ? x->o->output : path);
}

static ew_err run_command(const struct context *x, const struct ew_reproduction *r)
{
    char text[128];
    const char *words[9];
    int n = 0;
    EW_CHECK(!strstr(r->command, "BEFORE.db"), EW_ERR_UNSUPPORTED,
             "%s takes two stores: run one study with --db BEFORE.db, update the software, run it "
             "with --db AFTER.db, then edgewise %s",
             r->id, r->command);
    snprintf(text, sizeof(text), "%s", r->command);
    char *at = text;
    for (char *w; n < 8 && (w = strsep(&at, " ")) != NULL;)
        words[n++] = w;
    if (x->call->json)
        words[n++] = "--json";
    return ew_cmd_perform(words[0], n - 1, words + 1);
}

/* An object for each row of the grid, its members named by the heading. */
static ew_err json_grid(const struct ew_grid *g)
{
    struct ew_json j;
    ew_json_init(&j, stdout);
    ew_json_array(&j, NULL);
    for (int i = g->cols; i < g->n; i++) {
        if (i % g->cols == 0)
            ew_json_object(&j, NULL);
        ew_json_str(&j, g->cells[i % g->cols], g->cells[i]);
        if (i % g->cols == g->cols - 1)
            ew_json_end(&j);
    }
    ew_json_end(&j);
    return ew_json_finish(&j);
}

static ew_err show_fits(bool json)
{
    struct ew_grid g;
    ew_grid_init(&g);
    ew_err err = ew_reproduce_fits(&g);
    if (err == EW_OK)
        err = json ? json_grid(&g) : ew_grid_text(&g, NULL, stdout);
    ew_grid_fini(&g);
    if (err == EW_OK && !json)
        printf("\nA training step with SGD and momentum, planned here; the studies' memory was "
               "PyTorch's, with CUDA's libraries.\n");
    return err;
}

static ew_err make_one(struct context *x, const char *id)
{
    char text[EW_REPRODUCE_CHARS];
    if (strcmp(id, "fits") == 0)
        return show_fits(x->call->json);
    const struct ew_reproduction *r = ew_reproduction_find(id);
    if (!r)
        ew_cmd_hint(x->call, "edgewise reproduce");
    EW_CHECK(r, EW_ERR_NOT_FOUND, "no table or figure '%s'", id);
    if (x->o->output)
        EW_TRY(ew_file_out_check(x->o->output)); /* fail early */
    if (r->command)
        return run_command(x, r);
    if (x->call->json)
        ew_cmd_hint(x->call, "edgewise report --json");
    EW_CHECK(!x->call->json, EW_ERR_USAGE,
             "--json is for the list and for fits; the figures of a study are text and a page");
    const enum ew_reproduce_state s = ew_reproduce_state(r, NULL, &x->here, text);
    EW_CHECK(s != EW_REPRODUCE_NONE && r->study, EW_ERR_UNSUPPORTED, "%s: %s", r->id, text);
    /* A figure about GPUs is not reproduced on the CPU. */
    EW_CHECK(x->o->simulate || !(r->needs & ~x->here.has & EW_NEEDS_GPU), EW_ERR_UNSUPPORTED,
             "%s: %s", r->id, text);
    if (s == EW_REPRODUCE_NEEDS && !x->o->simulate)
        fprintf(stderr, "%s %s; the jobs that can run here are run\n", r->id, text);
    EW_TRY(run_studies(x, r));
    return show_figures(x, r);
}

static ew_err run(struct ew_cmd_call *c)
{
    struct context x = {.call = c, .o = c->opts};
    ew_results_init(&x.results);
    ew_grid_init(&x.tables.values);
    ew_grid_init(&x.tables.shapes);
    ew_err err = ew_reproduce_look(&x.here);
    if (err == EW_OK)
        err = c->n_args ? make_one(&x, c->args[0]) : show_all(&x);
    ew_grid_fini(&x.tables.values);
    ew_grid_fini(&x.tables.shapes);
    if (x.loaded)
        ew_figures_fini(&x.figures);
    ew_results_fini(&x.results);
    return err;
}

const struct ew_cmd ew_cmd_reproduce = {
    .name = "reproduce",
    .group = EW_CMD_STUDY,
    .summary = "tables and figures of the published studies: status, or run one",
    .args = "[ID|fits]",
    .about = "Without an argument it lists every table and figure of the four studies with its "
             "status on this machine; -o writes a page with all results so far: published values "
             "beside ours, their ratio, and whether order, optimum and trend agree.\n"
             "With an ID it runs the jobs that are still missing and draws that figure.\n"
             "`fits` shows which networks can be trained on which boards.",
    .examples = "reproduce\n"
                "reproduce TRAIN-fig2a\n"
                "reproduce TRAIN-fig8 --simulate agx-xavier\n"
                "reproduce -o reproduce.html",
    .min_args = 0,
    .max_args = 1,
    .opts_size = sizeof(struct opts),
    .opts = table,
    .run = run,
};
