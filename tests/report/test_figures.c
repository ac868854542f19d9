/* SPDX-License-Identifier: Apache-2.0 */
/* Figures: which runs are averaged, which are kept apart, which are reported as missing. */
#include "report/figure.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ew_test.h"
#include "report/figure_grid.h"
#include "report/figure_key.h"
#include "report/figure_stat.h"
#include "report/figure_svg.h"
#include "results_case.h"

static struct ew_results results;
static struct ew_figures figures;

static bool begin(const char *study)
{
    return EW_EXPECT_OK(ew_case_results(&results)) &&
           EW_EXPECT_OK(ew_figures_init(ew_figures_report, &results, study, &figures));
}

static void end(void)
{
    ew_figures_fini(&figures);
    ew_results_fini(&results);
}

static const struct ew_figure *find(const char *id)
{
    for (int i = 0; i < figures.n; i++)
        if (strcmp(figures.v[i].id, id) == 0)
            return &figures.v[i];
    EW_FAIL("there is no figure %s", id);
    return NULL;
}

static const struct ew_group *group(const struct ew_figure *f, const char *x, const char *series)
{
    for (int i = 0; i < f->n_groups; i++)
        if (strcmp(f->groups[i].x, x) == 0 && strcmp(f->groups[i].series, series) == 0)
            return &f->groups[i];
    EW_FAIL("%s has no group %s, %s", f->id, x, series);
    return NULL;
}

static void statistics_of_repetitions(void)
{
    if (!begin(NULL))
        return;
    const struct ew_figure *f = find("workers-lenet5");
    const struct ew_group *g = f ? group(f, "4", "later") : NULL;
    if (g) {
        double sum = 0;
        int n = 0;
        for (int i = 0; i < results.n_runs; i++) {
            const struct ew_run_data *d = &results.runs[i];
            if (!d->run.study || strcmp(d->run.study, "train-workers") != 0 ||
                strcmp(d->job.network, "lenet5") != 0 || !strstr(d->job.options, "\"workers\":4"))
                continue;
            for (int e = 1; e < d->n_epochs; e++, n++)
                sum += d->epochs[e].stall_s;
        }
        EW_EXPECT_INT(g->runs, 2);
        EW_EXPECT_INT(g->y[1].n, n);
        EW_EXPECT_NEAR(g->y[1].mean, sum / n, 1e-12);
        EW_EXPECT(g->y[1].low <= g->y[1].q1 && g->y[1].q1 <= g->y[1].median &&
                  g->y[1].q3 <= g->y[1].high && g->y[1].sd > 0);
        EW_EXPECT_INT(f->n_categories, 10); /* five worker counts, first and later epochs */
        EW_EXPECT_INT(f->n_series, 3);
        EW_EXPECT_STR(f->categories[0], "0\nfirst");
        EW_EXPECT_INT(f->runs, 10);
        EW_EXPECT_INT(f->noisy, 1);
    }
    end();
}

/* The batch study's runs with 4 workers have other settings and are not averaged in. */
static void settings_are_kept_apart(void)
{
    static const struct ew_figure_desc any[] = {{.id = "any",
                                                 .title = "any",
                                                 .about = "",
                                                 .kind = EW_FIGURE_BARS,
                                                 .from = EW_RECORD_EPOCH,
                                                 .facet = "network",
                                                 .x = "workers",
                                                 .y = {{.name = "wall_s"}},
                                                 .min_x = 2},
                                                {.id = NULL}};
    if (!EW_EXPECT_OK(ew_case_results(&results)) ||
        !EW_EXPECT_OK(ew_figures_init(any, &results, NULL, &figures)))
        return;
    const struct ew_figure *f = find("any-mobilenet-v3-large");
    for (int i = 0; f && i < f->n_groups; i++)
        EW_EXPECT_INT(f->groups[i].runs, 2);
    if (f)
        EW_EXPECT_INT(f->n_groups, 5);
    end();
}

static void qualities_never_share_a_series(void)
{
    if (!begin(NULL))
        return;
    for (int i = 0; i < figures.n; i++)
        for (int j = 0; j < figures.v[i].n_series; j++) {
            const struct ew_series *s = &figures.v[i].series[j];
            for (int k = 0; k < s->n_points; k++)
                if (s->points[k].group)
                    EW_EXPECT_INT(s->points[k].group->quality, s->quality);
        }
    const struct ew_figure *f = find("storage-resnet18");
    if (f) {
        EW_EXPECT_INT(f->n_series, 6); /* three parts, measured and emulated */
        EW_EXPECT_STR(f->also, "read-rate");
        EW_EXPECT_STR(f->categories[0], "ssd\nfirst");
        EW_EXPECT_STR(f->categories[5], "hdd\nlater\nemulated");
    }
    f = find("pareto-resnet18");
    if (f) {
        EW_EXPECT_INT(f->n_series, 4); /* two boards, with a Pareto front each */
        EW_EXPECT_STR(f->series[0].name, "Jetson AGX Xavier");
        EW_EXPECT_STR(f->series[1].name, "Xavier NX (simulated)");
    }
    end();
}

/* A simulated run in a power mode of the AGX Xavier. */
static bool put_mode(struct ew_results *r, const char *options, const struct ew_epoch_row *epoch)
{
    struct ew_run_data *d;
    if (!EW_EXPECT_OK(ew_results_add(r, &d)))
        return false;
    d->run.status = EW_RUN_DONE;
    d->run.quality = EW_QUALITY_SIMULATED;
    d->run.study = "train-modes";
    d->job.network = "lenet5";
    d->job.options = options;
    d->epochs = epoch;
    d->n_epochs = 1;
    return true;
}

/* The modes' settings are those of the simulated board, not of the computing machine; a mode whose
 * setting is unique is a dot too. */
static void simulated_modes_have_settings(void)
{
    struct ew_epoch_row epoch;
    struct ew_results r;
    ew_record_clear(EW_RECORD_EPOCH, &epoch);
    epoch.wall_s = 4;
    epoch.energy_j = 40;
    epoch.quality = EW_QUALITY_SIMULATED;
    ew_results_init(&r);
    if (put_mode(&r, "{\"power-mode\":\"a\",\"simulate\":\"agx-xavier:a\"}", &epoch) &&
        put_mode(&r, "{\"power-mode\":\"f\",\"simulate\":\"agx-xavier:f\"}", &epoch) &&
        put_mode(&r, "{\"power-mode\":\"g\",\"simulate\":\"agx-xavier:g\"}", &epoch) &&
        EW_EXPECT_OK(ew_figures_init(ew_figures_report, &r, NULL, &figures))) {
        const struct ew_figure *f = find("modes-cores-lenet5");
        if (f && EW_EXPECT_INT(f->n_series, 3)) {
            EW_EXPECT_STR(f->series[0].name, "2 cores"); /* all are simulated: stated once */
            EW_EXPECT_STR(f->series[1].name, "4 cores");
            EW_EXPECT_STR(f->series[2].name, "8 cores");
            EW_EXPECT_STR(f->models, "agx-xavier");
            EW_EXPECT_STR(f->also, "");
        }
        ew_figures_fini(&figures);
    }
    ew_results_fini(&r);
}

static void front_is_what_nothing_beats(void)
{
    if (!begin("train-modes"))
        return;
    const struct ew_figure *f = find("pareto-resnet18");
    for (int i = 0; f && i < f->n_series; i++) {
        const struct ew_series *front = &f->series[i];
        if (!front->front)
            continue;
        EW_EXPECT(front->n_points >= 2 && front->n_points < 8);
        for (int j = 1; j < front->n_points; j++)
            EW_EXPECT(front->points[j].x > front->points[j - 1].x &&
                      front->points[j].y < front->points[j - 1].y);
        for (int k = 0; k < f->n_groups; k++) {
            const struct ew_group *g = &f->groups[k];
            for (int j = 0; g->quality == front->quality && j < front->n_points; j++)
                EW_EXPECT(
                    !(g->y[0].mean < front->points[j].x && g->y[1].mean < front->points[j].y));
        }
    }
    end();
}

static void jobs_are_joined_by_network(void)
{
    if (!begin(NULL))
        return;
    const struct ew_figure *f = find("scale-memory-vgg11-cifar");
    const struct ew_group *g = f ? group(f, "0.5", "uniform, float32") : NULL;
    if (g) { /* memory of the bench, not of the training; accuracy of the training */
        EW_EXPECT_INT(f->n_groups, 4);
        EW_EXPECT_STR(f->x.unit, "MiB");
        EW_EXPECT_NEAR(g->y[0].mean, 0.25 * 37e6 / (1 << 20), 1e-9);
        EW_EXPECT_NEAR(g->y[1].mean, 0.93 - 0.0225, 1e-9);
    }
    end();
}

static void one_run_gives_both_variants(void)
{
    if (!begin(NULL))
        return;
    const struct ew_figure *f = find("int8");
    const struct ew_group *g = f ? group(f, "vgg11_cifar", "int8") : NULL;
    if (g) { /* of four widths */
        EW_EXPECT_NEAR(g->y[0].mean, 0.225, 1e-9);
        EW_EXPECT_NEAR(g->y[0].sd, 0.04 * 0.225, 1e-9); /* the run's own */
        EW_EXPECT_NEAR(group(f, "vgg11_cifar", "float32")->y[0].mean, 9 * 0.0625, 1e-9);
    }
    end();
}

static void published_stand_beside(void)
{
    if (!begin(NULL))
        return;
    const struct ew_figure *f = find("engine");
    if (f && EW_EXPECT_INT(f->n_series, 4)) {
        EW_EXPECT_STR(f->series[0].name, "before, here");
        EW_EXPECT_STR(f->series[2].name, "before, Jetson Nano (published)");
        EW_EXPECT_INT(f->series[2].n_points, 2); /* there is no VGG here */
        EW_EXPECT_STR(f->cite, "A Study of Boards, 2024, Table 1");
    }
    f = find("speedup");
    if (f && EW_EXPECT(f->n_groups > 1)) /* in the order of their networks */
        for (int i = 1; i < f->n_groups; i++)
            EW_EXPECT(!f->groups[i].published || !f->groups[i - 1].published ||
                      strcmp(f->groups[i - 1].x, f->groups[i].x) < 0);
    f = find("workers-stall-lenet5");
    if (f && EW_EXPECT_INT(f->n_series, 2)) {
        EW_EXPECT_INT(f->series[1].n_points, 2); /* without the first epoch */
        EW_EXPECT_NEAR(f->series[1].points[0].y, 42.6, 1e-12);
    }
    f = find("storage-stall-resnet18");
    if (f)
        EW_EXPECT_STR(f->series[f->n_series - 1].name, "first, workers 0, Jetson Nano (published)");
    EW_EXPECT_INT(find("workers-lenet5")->n_groups, 10); /* stacked bars have none */
    end();
}

static void ratios_are_derived(void)
{
    if (!begin(NULL))
        return;
    const struct ew_figure *f = find("speedup");
    if (f && EW_EXPECT_INT(f->n_series, 2)) {
        EW_EXPECT_INT(f->series[0].quality, EW_QUALITY_DERIVED);
        EW_EXPECT_INT(f->series[0].n_points, 5);
        EW_EXPECT_NEAR(f->series[0].points[2].y, 7, 1e-9);
        EW_EXPECT_NEAR(f->series[0].points[2].high - 7, 7 * 0.04 * sqrt(2), 1e-9);
        EW_EXPECT(f->series[1].published);
        EW_EXPECT_NEAR(f->series[1].points[1].y, 20, 1e-12);
        EW_EXPECT_STR(f->y[0].unit, "");
    }
    end();
}

/* The line is the regression of the ratios on log x, drawn over the whole range. */
static void lines_go_through_dots(void)
{
    static const double macs[] = {7.1e8, 2.8e9, 3e8, 4.1e9, 3.5e8},
                        gain[] = {2.5, 2.6, 7, 3.3, 4.1};
    double x[5];
    struct ew_line want;
    if (!begin(NULL))
        return;
    for (int i = 0; i < 5; i++)
        x[i] = log10(macs[i]);
    const struct ew_figure *f = find("speedup-flops");
    if (EW_EXPECT_OK(ew_line_fit(x, gain, 5, &want)) && f && EW_EXPECT_INT(f->n_trends, 1)) {
        const struct ew_series *s = &f->series[f->n_series - 1];
        EW_EXPECT_NEAR(f->trends[0].line.slope, want.slope, 1e-9);
        EW_EXPECT_NEAR(f->trends[0].line.r, want.r, 1e-9);
        EW_EXPECT(s->trend);
        EW_EXPECT_INT(s->colour, f->series[0].colour);
        EW_EXPECT_NEAR(s->points[0].x, 3e8, 1);
        EW_EXPECT_NEAR(s->points[1].x, 4.1e9, 1);
        EW_EXPECT_NEAR(s->points[1].y, want.intercept + want.slope * x[3], 1e-9);
    }
    end();
}

/* Our line by least squares and the published one, over the same dots. */
static void published_lines_stand_beside(void)
{
    if (!begin(NULL))
        return;
    const struct ew_figure *f = find("scale-latency-line");
    if (f && EW_EXPECT_INT(f->n_trends, 2)) {
        const struct ew_series *s = &f->series[f->n_series - 1];
        EW_EXPECT_NEAR(f->trends[0].line.slope, 9 / 9.2e6, 1e-12);
        EW_EXPECT_NEAR(f->trends[0].line.r, 1, 1e-9);
        EW_EXPECT_NEAR(f->trends[1].line.slope, 5.7e-6, 1e-12);
        EW_EXPECT(s->published && s->trend);
        EW_EXPECT_NEAR(s->points[1].y, 17.9 + 5.7e-6 * 9.2e6, 1e-6);
        EW_EXPECT_STR(s->name, "float32, Jetson Nano (published)");
    }
    end();
}

static void traces_and_matrices(void)
{
    if (!begin(NULL))
        return;
    const struct ew_figure *f = find("power-lenet5");
    if (f) {
        EW_EXPECT_INT(f->n_series, 2);
        EW_EXPECT_STR(f->series[0].name, "power.VDD_IN");
        EW_EXPECT_INT(f->n_bands, 13); /* the start, then six epochs with validation */
        EW_EXPECT_NEAR(f->bands[1].from, 4, 1e-9);
    }
    f = find("confusion-mobilenet-v2");
    if (f && EW_EXPECT_INT(f->n_categories, 10)) {
        EW_EXPECT_INT(f->series[0].n_points, 100);
        EW_EXPECT_STR(f->categories[0], "bird");
    }
    end();
}

/* Bytes are shown in MiB: points and table alike. */
static void traces_of_bytes_are_in_mebibytes(void)
{
    static const struct ew_sample_row samples[] = {
        {.t_s = 0, .channel = "mem.used", .unit = "B", .value = 3 << 20},
        {.t_s = 1, .channel = "mem.used", .unit = "B", .value = 5 << 20}};
    struct ew_run_data *d;
    ew_results_init(&results);
    if (!EW_EXPECT_OK(ew_results_add(&results, &d)))
        return;
    d->run.status = EW_RUN_DONE;
    d->job.network = "lenet5";
    d->samples = samples;
    d->n_samples = 2;
    EW_EXPECT_OK(ew_figures_init(ew_figures_report, &results, NULL, &figures));
    const struct ew_figure *f = find("memory-lenet5");
    if (f) {
        EW_EXPECT_STR(f->y[0].unit, "MiB");
        EW_EXPECT_NEAR(f->series[0].points[1].y, 5, 1e-12);
        EW_EXPECT_NEAR(f->groups[0].y[0].mean, 4, 1e-12);
    }
    end();
}

static void what_is_missing_says_why(void)
{
    if (!begin("train-batch"))
        return;
    EW_EXPECT(!find("batch-resnet18")->missing);
    for (int i = 0; i < figures.n; i++)
        EW_EXPECT(strcmp(figures.v[i].desc->id, "workers") != 0); /* another study's */
    EW_EXPECT_STR(find("power")->missing, "no run has samples in W");
    end();

    ew_results_init(&results);
    EW_EXPECT_OK(ew_figures_init(ew_figures_report, &results, NULL, &figures));
    for (int i = 0; i < figures.n; i++)
        EW_EXPECT(figures.v[i].missing);
    EW_EXPECT_STR(find("workers")->missing, "no finished run of study train-workers");
    end();
}

static void options_are_walked(void)
{
    struct ew_arena a;
    ew_arena_init(&a);
    struct ew_option_walk w =
        ew_option_begin("{\"a\":1,\"b\":null, \"c\" : \"x\\\"\\u00e4,}\", \"d\":false}", &a);
    EW_EXPECT(ew_option_next(&w));
    EW_EXPECT_STR(w.name, "a");
    EW_EXPECT_STR(w.value, "1");
    EW_EXPECT(ew_option_next(&w));
    EW_EXPECT_STR(w.value, "x\"ä,}");
    EW_EXPECT(ew_option_next(&w));
    EW_EXPECT_STR(w.value, "false");
    EW_EXPECT(!ew_option_next(&w));
    /* a value of several lines, as a file of others may hold */
    w = ew_option_begin("{\"a\":\"1\n2345678 0123456 0123456 0123456\"}", &a);
    const size_t before = a.used;
    EW_EXPECT(ew_option_next(&w));
    EW_EXPECT_STR(w.value, "1\n2345678 0123456 0123456 0123456");
    EW_EXPECT(a.used >= before + strlen(w.value) + strlen(w.name) + 2);
    static const char *const broken[] = {"",       "{",       "{\"",           "{\"a",
                                         "{\"a\"", "{\"a\":", "{\"a\":\"x",    "{\"a\\",
                                         "[1]",    "null",    "{\"a\":\"\\u12"};
    for (size_t i = 0; i < EW_COUNT(broken); i++) {
        w = ew_option_begin(broken[i], &a);
        for (int n = 0; n < 3 && ew_option_next(&w); n++)
            EW_EXPECT(w.name && w.value);
    }
    ew_arena_fini(&a);
}

static void fewest_names_tell_apart(void)
{
    struct ew_arena a;
    struct ew_key_set s = {.names = "\n"};
    ew_arena_init(&a);
    EW_EXPECT_OK(ew_key_set_add(&s, "\nboard=Nano\ncpu=A57\nunit=1\n", &a));
    EW_EXPECT_OK(ew_key_set_add(&s, "\nboard=Orin\ncpu=A78\nunit=2\n", &a));
    EW_EXPECT_OK(ew_key_set_trim(&s, &a));
    EW_EXPECT_STR(s.names, "\nboard\n");
    EW_EXPECT_OK(ew_key_set_add(&s, "\nboard=Orin\ncpu=A78\nunit=3\n", &a));
    EW_EXPECT_OK(ew_key_set_trim(&s, &a));
    EW_EXPECT_STR(s.names, "\nunit\n");
    EW_EXPECT_STR(ew_key_label("\nbatch=8\nlr=1\n", "\nbatch\n", false, &a), "batch 8");
    ew_arena_fini(&a);
}

static void values_as_text(void)
{
    char buf[EW_VALUE_CHARS];
    EW_EXPECT_STR(ew_text_value(0, buf), "0");
    EW_EXPECT_STR(ew_text_value(NAN, buf), "");
    EW_EXPECT_STR(ew_text_value(24, buf), "24");
    EW_EXPECT_STR(ew_text_value(0.5, buf), "0.500");
    EW_EXPECT_STR(ew_text_value(0.003772, buf), "0.00377");
    EW_EXPECT_STR(ew_text_value(0.0562, buf), "0.0562");
    EW_EXPECT_STR(ew_text_value(12.345, buf), "12.35");
    EW_EXPECT_STR(ew_text_value(-123.46, buf), "-123.5");
    EW_EXPECT_STR(ew_text_value(1234.5, buf), "1234");
    EW_EXPECT_STR(ew_text_value(0.0001234, buf), "0.000123");
    EW_EXPECT_STR(ew_text_value(1.234e-9, buf), "1.234e-09");
}

/* Regression: a bar of exactly 1 ms was at the bottom of a logarithmic axis and had no height. */
static void least_bar_of_a_logarithmic_axis(void)
{
    static const struct ew_figure_desc desc = {.id = "log", .kind = EW_FIGURE_BARS, .log = true};
    static const char *categories[] = {"a", "b"};
    struct ew_group groups[2] = {{0}};
    struct ew_point points[2] = {{.x = 0, .y = 1, .low = NAN, .high = NAN, .group = &groups[0]},
                                 {.x = 1, .y = 250, .low = NAN, .high = NAN, .group = &groups[1]}};
    struct ew_series series = {.name = "ms", .points = points, .n_points = 2};
    const struct ew_figure f = {.desc = &desc,
                                .id = "log",
                                .title = "log",
                                .facet = "",
                                .x = {.label = "x", .unit = ""},
                                .y = {{.label = "time", .unit = "ms"}},
                                .categories = categories,
                                .n_categories = 2,
                                .series = &series,
                                .n_series = 1};
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    EW_EXPECT_OK(ew_figure_svg(&f, false, out));
    fclose(out);
    const char *bar = strstr(text, "class=\"mark bar"),
               *height = bar ? strstr(bar, "height=\"") : "";
    EW_EXPECT(height && strlen(height) > 8 && atof(height + 8) > 10);
    free(text);
}

static char *still(const struct ew_figure *f)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    EW_EXPECT_OK(ew_figure_svg(f, false, out));
    fclose(out);
    return text;
}

/* Names of rows were cut after eight characters, the axis had no name, and columns overlapped. */
static void still_matrices_can_be_read(void)
{
    static const struct ew_figure_desc desc = {.kind = EW_FIGURE_MATRIX};
    static const char *names[] = {"crescent-0", "crescent-1", "a much longer name of a class",
                                  "d",          "e",          "f",
                                  "g",          "h",          "i",
                                  "j",          "k",          "l"};
    struct ew_point point = {.x = 0, .low = 1, .y = 3};
    struct ew_series series = {.shape = EW_SHAPE_CELL, .points = &point, .n_points = 1};
    const struct ew_figure f = {.desc = &desc,
                                .title = "",
                                .x = {.label = "predicted class", .unit = ""},
                                .y = {{.label = "true class", .unit = ""}},
                                .categories = names,
                                .n_categories = EW_COUNT(names),
                                .rows = names,
                                .n_rows = EW_COUNT(names),
                                .series = &series,
                                .n_series = 1};
    char *text = still(&f);
    EW_EXPECT(strstr(text, ">crescent-1</text>") && strstr(text, "name of\u2026</text>") == NULL);
    EW_EXPECT(strstr(text, ">a much longer name \u2026</text>"));
    EW_EXPECT(strstr(text, ">true class</text>") && strstr(text, "rotate(-40"));
    free(text);
}

/* Ticks were 0.0500, 0.100; labels of points lay over each other. */
static void ticks_have_even_digits(void)
{
    static const struct ew_figure_desc desc = {.kind = EW_FIGURE_POINTS};
    struct ew_point points[2] = {{.x = 1, .y = 0.05, .low = NAN, .high = NAN, .label = "one"},
                                 {.x = 1, .y = 0.0501, .low = NAN, .high = NAN, .label = "two"}};
    struct ew_point far = {.x = 9, .y = 0.24, .low = NAN, .high = NAN, .label = "far"};
    struct ew_series series[2] = {
        {.name = "a", .shape = EW_SHAPE_DOT, .points = points, .n_points = 2},
        {.name = "b", .shape = EW_SHAPE_DOT, .points = &far, .n_points = 1}};
    const struct ew_figure f = {.desc = &desc,
                                .title = "",
                                .x = {.label = "x", .unit = ""},
                                .y = {{.label = "y", .unit = ""}},
                                .series = series,
                                .n_series = 2};
    char *text = still(&f);
    EW_EXPECT(strstr(text, ">0.05</text>") && strstr(text, ">0.10</text>"));
    EW_EXPECT(strstr(text, ">one</text>") && !strstr(text, ">two</text>"));
    EW_EXPECT(strstr(text, ">far</text>"));
    free(text);
}

static void numbers_in_texts_are_ordered(void)
{
    static const char *const order[] = {"8",         "16",       "batch 8",   "batch 16",
                                        "batch 16x", "resnet18", "resnet152", "width 0.25",
                                        "width 0.5", "width 1",  "x"};
    for (size_t i = 0; i < EW_COUNT(order); i++)
        for (size_t j = 0; j < EW_COUNT(order); j++)
            EW_EXPECT((ew_text_order(order[i], order[j]) < 0) == (i < j) &&
                      (ew_text_order(order[i], order[j]) == 0) == (i == j));
}

/* Regression: predicted over measured times had one logarithmic axis, on which the straight line of
 * equal values was none. */
static void both_axes_are_logarithmic(void)
{
    static const struct ew_figure_desc one = {.kind = EW_FIGURE_POINTS, .log = true},
                                       both = {
                                           .kind = EW_FIGURE_POINTS, .log = true, .log_x = true};
    struct ew_point points[2] = {{.x = 3, .y = 3}, {.x = 24, .y = 24}};
    struct ew_series series = {.points = points, .n_points = 2};
    struct ew_figure f = {.desc = &one, .series = &series, .n_series = 1};
    EW_EXPECT(!ew_figure_log(&f));
    f.desc = &both;
    EW_EXPECT(ew_figure_log(&f));
}

EW_TEST_MAIN(EW_TEST(numbers_in_texts_are_ordered), EW_TEST(both_axes_are_logarithmic),
             EW_TEST(still_matrices_can_be_read), EW_TEST(ticks_have_even_digits),
             EW_TEST(least_bar_of_a_logarithmic_axis), EW_TEST(statistics_of_repetitions),
             EW_TEST(settings_are_kept_apart), EW_TEST(qualities_never_share_a_series),
             EW_TEST(simulated_modes_have_settings), EW_TEST(front_is_what_nothing_beats),
             EW_TEST(jobs_are_joined_by_network), EW_TEST(published_stand_beside),
             EW_TEST(one_run_gives_both_variants), EW_TEST(ratios_are_derived),
             EW_TEST(lines_go_through_dots), EW_TEST(published_lines_stand_beside),
             EW_TEST(traces_and_matrices), EW_TEST(traces_of_bytes_are_in_mebibytes),
             EW_TEST(what_is_missing_says_why), EW_TEST(options_are_walked),
             EW_TEST(fewest_names_tell_apart), EW_TEST(values_as_text))
