/* SPDX-License-Identifier: Apache-2.0 */
/* Reports as text, Markdown, CSV and HTML: all data points are drawn, and names remain text. */
#include "report/page.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "ew_test.h"
#include "report/compare.h"
#include "report/figure_svg.h"
#include "report/html.h"
#include "results_case.h"

static int count(const char *text, const char *what)
{
    int n = 0;
    for (const char *p = text; (p = strstr(p, what)) != NULL; p += strlen(what))
        n++;
    return n;
}

struct made {
    struct ew_results results;
    struct ew_figures figures;
    char *text;
};

static bool make(struct made *m, bool hostile)
{
    *m = (struct made){.text = NULL};
    return EW_EXPECT_OK(hostile ? ew_case_hostile(&m->results) : ew_case_results(&m->results)) &&
           EW_EXPECT_OK(ew_figures_init(ew_figures_report, &m->results, NULL, &m->figures));
}

static void unmake(struct made *m)
{
    free(m->text);
    ew_figures_fini(&m->figures);
    ew_results_fini(&m->results);
}

static const char *page(struct made *m, bool still)
{
    size_t size = 0;
    FILE *f = open_memstream(&m->text, &size);
    EW_EXPECT_OK(ew_page_write(&m->results, &m->figures,
                               &(struct ew_page_opts){.title = "T & co", .still = still}, f));
    fclose(f);
    return m->text;
}

/* Nonempty cells of a confusion matrix. */
static int cells(const struct ew_series *s)
{
    int n = 0;
    for (int i = 0; i < s->n_points; i++)
        n += s->points[i].y > 0;
    return n;
}

static void still_pictures_have_all_marks(void)
{
    struct made m;
    if (!make(&m, false))
        return;
    for (int i = 0; i < m.figures.n; i++) {
        const struct ew_figure *f = &m.figures.v[i];
        char *text = NULL;
        size_t size = 0;
        FILE *out = open_memstream(&text, &size);
        EW_EXPECT_OK(ew_figure_svg(f, true, out));
        fclose(out);
        int marks = 0;
        for (int j = 0; j < f->n_series; j++)
            marks += f->series[j].shape == EW_SHAPE_LINE   ? 1
                     : f->series[j].shape == EW_SHAPE_CELL ? cells(&f->series[j])
                                                           : f->series[j].n_points;
        EW_EXPECT_INT(count(text, "class=\"mark"), marks);
        EW_EXPECT(!strstr(text, "nan") && !strstr(text, "inf\""));
        free(text);
    }
    unmake(&m);
}

static void page_is_whole(void)
{
    struct made m;
    if (!make(&m, false))
        return;
    const char *text = page(&m, true);
    EW_EXPECT_HAS(text, "<title>T &amp; co</title>");
    EW_EXPECT_INT(count(text, "<script"), 0);
    EW_EXPECT(count(text, "<figure ") > 15);
    EW_EXPECT_INT(count(text, "<figure "), count(text, "class=\"csv\""));
    EW_EXPECT_INT(count(text, "<svg "), count(text, "</svg>"));
    EW_EXPECT_INT(count(text, "<table>"), count(text, "</table>"));
    EW_EXPECT_HAS(text, "a step needs 9.1 GiB, 7.2 GiB are free");
    EW_EXPECT_HAS(text, "no finished run of study train-dvfs");
    EW_EXPECT(!strstr(text, "http://") && !strstr(text, "https://"));
    unmake(&m);
}

static void hostile_names_stay_text(void)
{
    struct made m;
    size_t size = 0;
    if (!make(&m, true))
        return;
    const char *text = page(&m, false);
    EW_EXPECT_INT(count(text, "<img"), 0);
    EW_EXPECT_INT(count(text, "<b>\n"), 0);
    EW_EXPECT(count(text, "&lt;img src=x onerror=&quot;hostile=1&quot;&gt;") > 10);
    /* The only scripts are ours: data, library, page; and none is closed early. */
    EW_EXPECT_INT(count(text, "<script"), ew_asset("echarts.js.gz", &size) ? 3 : 0);
    EW_EXPECT_INT(count(text, "</script>"), ew_asset("echarts.js.gz", &size) ? 3 : 0);
    unmake(&m);
}

static void text_has_no_escapes(void)
{
    struct ew_results r;
    struct ew_figures figures;
    char *text = NULL;
    size_t size = 0;
    ew_case_hostile(&r);
    for (int i = 0; i < r.n_runs; i++)
        r.runs[i].job.network = "\033[31mred\a";
    EW_EXPECT_OK(ew_figures_init(ew_figures_report, &r, NULL, &figures));
    FILE *f = open_memstream(&text, &size);
    for (int i = 0; i < figures.n; i++) {
        EW_EXPECT_OK(ew_figure_text(&figures.v[i], f));
        EW_EXPECT_OK(ew_figure_markdown(&figures.v[i], f));
    }
    fclose(f);
    EW_EXPECT(strchr(text, '\a') == NULL);
    EW_EXPECT_HAS(text, "by workers:  [31mred");
    EW_EXPECT_HAS(text, "\\<img src=x");
    free(text);
    ew_figures_fini(&figures);
    ew_results_fini(&r);
}

static void csv_has_every_group(void)
{
    struct made m;
    if (!make(&m, false))
        return;
    for (int i = 0; i < m.figures.n; i++) {
        const struct ew_figure *f = &m.figures.v[i];
        char *text = NULL;
        size_t size = 0;
        FILE *out = open_memstream(&text, &size);
        if (!f->missing)
            EW_EXPECT_OK(ew_figure_csv(f, out));
        fclose(out);
        if (f->desc->kind != EW_FIGURE_TRACE && f->desc->kind != EW_FIGURE_MATRIX && !f->missing)
            EW_EXPECT_INT(count(text, "\n"), f->n_groups + 1);
        if (strcmp(f->id, "workers-stall-lenet5") == 0)
            EW_EXPECT_HAS(text, "0,Jetson Nano,42.6,,42.6,42.6,42.6,1,,0,published\n");
        free(text);
    }
    unmake(&m);
}

static void addresses_are_escaped(void)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    ew_html_url(f, "a,b \"1.5%\"\n", 11);
    fclose(f);
    EW_EXPECT_STR(text, "a,b%20%221.5%25%22%0A");
    free(text);
}

static void base64(void)
{
    static const char *const pair[][2] = {
        {"", ""}, {"f", "Zg=="}, {"fo", "Zm8="}, {"foo", "Zm9v"}, {"foob", "Zm9vYg=="}};
    for (size_t i = 0; i < EW_COUNT(pair); i++) {
        char *text = NULL;
        size_t size = 0;
        FILE *f = open_memstream(&text, &size);
        ew_html_base64(f, pair[i][0], strlen(pair[i][0]));
        fclose(f);
        EW_EXPECT_STR(text, pair[i][1]);
        free(text);
    }
}

/* ---- Comparisons ---- */

static void sides_are_compared(void)
{
    static const char *const side[2] = {"MAXN", "power_mode=slow"};
    struct ew_results r;
    struct ew_grid g;
    EW_EXPECT_OK(ew_case_results(&r));
    const int n = r.n_runs;
    for (int i = 0; i < n; i++) { /* all runs of the workers study again, a tenth slower */
        struct ew_run_data *d, copy = r.runs[i];
        if (!copy.run.study || strcmp(copy.run.study, "train-workers") != 0)
            continue;
        EW_EXPECT_OK(ew_results_add(&r, &d));
        struct ew_epoch_row *e = ew_arena_array(&r.arena, (size_t)copy.n_epochs, sizeof(*e));
        memcpy(e, copy.epochs, (size_t)copy.n_epochs * sizeof(*e));
        for (int k = 0; k < copy.n_epochs; k++)
            e[k].wall_s *= 1.1;
        *d = copy;
        d->epochs = e;
        d->machine.power_mode = "slow";
    }
    EW_EXPECT_OK(ew_compare_choose(&r, side));
    EW_EXPECT_OK(ew_compare_match(&r, side));
    EW_EXPECT_INT(r.n_runs, 60);
    ew_grid_init(&g);
    EW_EXPECT_OK(ew_compare_grid(&r, side, &g));
    EW_EXPECT_STR(g.cells[g.cols], "train lenet5, workers 0");
    EW_EXPECT_STR(g.cells[g.cols + 1], "time of the epoch [s]");
    EW_EXPECT_STR(g.cells[g.cols + 4], "1.100");
    EW_EXPECT_STR(g.cells[2 * g.cols + 4], "1.000");
    EW_EXPECT_STR(g.cells[2 * g.cols + 5], "unclear: one run");
    ew_grid_fini(&g);
    char said[EW_FINDINGS][EW_FINDING_CHARS];
    EW_EXPECT(ew_compare_findings(&r, side, said) >= 3);
    EW_EXPECT_STR(said[0], "30 jobs were done on both sides, in 60 runs.");
    EW_EXPECT_STR(said[1], "Machine and software differ in power mode (MAXN, slow).");
    EW_EXPECT_HAS(said[2], "Time of an epoch: power_mode=slow takes 1.1 times as much as MAXN");
    /* Regression: the side named first was second, in alphabetical order. */
    struct ew_figures f;
    EW_EXPECT_OK(ew_figures_init(ew_figures_compare, &r, NULL, &f));
    static const char *const turned[2] = {"power_mode=slow", "MAXN"};
    EW_EXPECT_OK(ew_compare_order(&f.v[0], turned, &r.arena));
    EW_EXPECT_STR(f.v[0].series[0].name, "power_mode=slow");
    EW_EXPECT_STR(f.v[0].series[1].name, "MAXN");
    EW_EXPECT_STR(f.v[0].groups[0].series, "power_mode=slow");
    EW_EXPECT_STR(f.v[0].series[1].points[0].group->series, "MAXN");
    ew_figures_fini(&f);
    EW_EXPECT_ERR(ew_compare_choose(&r, (const char *const[]){"x", "y"}), EW_ERR_NOT_FOUND,
                  "x: matches no run");
    ew_results_fini(&r);
}

/* Regression: repetitions with one seed have equal scores, and their difference was reported as
 * significant, with a deviation of 1e-16. */
static void repetitions_without_spread(void)
{
    static const char *const side[2] = {"study=a", "study=b"};
    static const double value[] = {0.99, 0.99, 0.99, 0.98, 0.98, 0.98};
    struct ew_results r;
    struct ew_grid g;
    char said[EW_FINDINGS][EW_FINDING_CHARS];
    ew_results_init(&r);
    for (int i = 0; i < 6; i++) {
        struct ew_run_data *d;
        EW_EXPECT_OK(ew_results_add(&r, &d));
        struct ew_metric_row *m = ew_arena_array(&r.arena, 2, sizeof(*m));
        m[0] = (struct ew_metric_row){
            .name = "test_accuracy", .value = value[i], .better = EW_BETTER_HIGHER};
        m[1] = (struct ew_metric_row){
            .name = "median_ms", .value = 1 + 0.1 * (i % 3), .better = EW_BETTER_LOWER};
        d->run.status = EW_RUN_DONE;
        d->run.study = i < 3 ? "a" : "b";
        d->job.id = "j";
        d->job.command = "bench";
        d->metrics = m;
        d->n_metrics = 2;
    }
    EW_EXPECT_OK(ew_compare_choose(&r, side));
    EW_EXPECT_OK(ew_compare_match(&r, side));
    ew_grid_init(&g);
    EW_EXPECT_OK(ew_compare_grid(&r, side, &g));
    EW_EXPECT_STR(g.cells[g.cols + 2], "0.990 ± 0 (3)");
    EW_EXPECT_STR(g.cells[g.cols + 5], "worse in every run");
    EW_EXPECT_STR(g.cells[2 * g.cols + 5], "same within noise");
    ew_grid_fini(&g);
    EW_EXPECT_INT(ew_compare_findings(&r, side, said), 3);
    EW_EXPECT_HAS(said[1], "are the same on both sides.");
    EW_EXPECT_HAS(said[2], "; all within noise.");
    ew_results_fini(&r);
}

static ew_err add_eval(struct ew_results *r, const char *options)
{
    struct ew_run_data *d;
    EW_TRY(ew_results_add(r, &d));
    d->run.status = EW_RUN_DONE;
    d->run.quality = EW_QUALITY_MEASURED;
    d->job.command = "eval";
    d->job.network = "lenet5";
    d->job.options = options;
    return EW_OK;
}

/* Foreign results may name any file: only pictures in and below this folder are shown. */
static void gallery_takes_pictures_of_this_folder(void)
{
    static const char *const named[] = {"worst.png", "../worst.png", "/etc/hostname", "a/../../x",
                                        "notes.txt", "gone.png",     "worst.png"};
    char before[4096], options[EW_COUNT(named)][64];
    struct made m = {0};
    ew_results_init(&m.results);
    for (size_t i = 0; i < EW_COUNT(named); i++) {
        snprintf(options[i], sizeof(options[i]), "{\"mistakes\":\"%s\"}", named[i]);
        EW_EXPECT_OK(add_eval(&m.results, options[i]));
    }
    EW_EXPECT_OK(ew_figures_init(ew_figures_report, &m.results, NULL, &m.figures));
    if (!EW_EXPECT(getcwd(before, sizeof(before)) && chdir(ew_test_dir()) == 0))
        return;
    EW_EXPECT_OK(ew_file_write("worst.png", "\x89PNG\r\n\x1a\nabc", 11));
    EW_EXPECT_OK(ew_file_write("notes.txt", "not a picture at all", 20));
    const char *text = page(&m, true);
    EW_EXPECT_INT(count(text, "<img class=\"gallery\""), 1);
    EW_EXPECT_INT(count(text, "not below the folder"), 3);
    EW_EXPECT_INT(count(text, "gone, or not a picture"), 2);
    EW_EXPECT_INT(chdir(before), 0);
    unmake(&m);
}

EW_TEST_MAIN(EW_TEST(still_pictures_have_all_marks), EW_TEST(page_is_whole),
             EW_TEST(hostile_names_stay_text), EW_TEST(text_has_no_escapes),
             EW_TEST(csv_has_every_group), EW_TEST(addresses_are_escaped), EW_TEST(base64),
             EW_TEST(sides_are_compared), EW_TEST(repetitions_without_spread),
             EW_TEST(gallery_takes_pictures_of_this_folder))
