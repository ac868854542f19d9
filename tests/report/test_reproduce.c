/* SPDX-License-Identifier: Apache-2.0 */
/* The list of published tables and figures: complete by the publications' own references, and every
 * entry has its data. */
#include "report/reproduce.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "ew_test.h"
#include "report/figure_key.h"
#include "results_case.h"
#include "study/published.h"
#include "study/study.h"

/* "5.1.1, Fig 2b" in train.csv must be in the list as TRAIN-fig2b. */
static void all_that_is_referred_to(void)
{
    struct ew_arena a;
    struct ew_published_list f;
    int found = 0;
    ew_arena_init(&a);
    EW_EXPECT_OK(ew_published_list_load(&a, &f));
    for (int i = 0; i < f.n; i++) {
        char study[16] = "", where[128];
        snprintf(study, sizeof(study), "%.*s", (int)strcspn(f.v[i].file, "_"), f.v[i].file);
        for (char *p = study; *p; p++)
            *p = (char)toupper((unsigned char)*p);
        snprintf(where, sizeof(where), "%s", ew_published_value_get(&f.v[i], "where"));
        char *save = NULL;
        for (char *w = strtok_r(where, ",", &save); w; w = strtok_r(NULL, ",", &save)) {
            char number[16], id[64];
            w += strspn(w, " ");
            const bool table = sscanf(w, "Table %15s", number) == 1;
            if (!table && sscanf(w, "Fig %15s", number) != 1)
                continue;
            snprintf(id, sizeof(id), "%s-%s%s", study, table ? "table" : "fig", number);
            found++;
            if (!ew_reproduction_find(id))
                EW_FAIL("%s is not in the list", id);
        }
    }
    EW_EXPECT(found > 300);
    ew_arena_fini(&a);
}

/* Tables and figures counted in the publications; TRAIN's parts a, b ... are separate entries. */
static void counts_of_the_texts(void)
{
    static const struct {
        const char *prefix;
        int n;
    } texts[] = {{"NX-table", 2},    {"NX-fig", 0},     {"ENGINE-table", 1}, {"ENGINE-fig", 4},
                 {"TRAIN-table", 3}, {"TRAIN-fig", 28}, {"SCALE-table", 6},  {"SCALE-fig", 22}};
    for (size_t k = 0; k < EW_COUNT(texts); k++) {
        int n = 0;
        for (const struct ew_reproduction *r = ew_reproductions; r->id; r++)
            n += strncmp(r->id, texts[k].prefix, strlen(texts[k].prefix)) == 0;
        EW_EXPECT_INT(n, texts[k].n);
    }
}

static bool is_shipped(const char *study)
{
    const char *text, *file;
    for (int i = 0; (file = ew_study_shipped(i, &text)); i++)
        if (strlen(study) == strcspn(file, ".") && strncmp(file, study, strlen(study)) == 0)
            return true;
    return false;
}

static bool is_figure(const char *id)
{
    for (const struct ew_figure_desc *d = ew_figures_report; d->id; d++)
        if (strcmp(d->id, id) == 0)
            return true;
    return false;
}

static void entries_lead_somewhere(void)
{
    for (const struct ew_reproduction *r = ew_reproductions; r->id; r++) {
        char words[160], *save = NULL;
        if (!r->study && !r->command && !r->none && !r->needs)
            EW_FAIL("%s leads nowhere", r->id);
        snprintf(words, sizeof(words), "%s", r->study ? r->study : "");
        for (char *w = strtok_r(words, " ", &save); w; w = strtok_r(NULL, " ", &save))
            if (!is_shipped(w))
                EW_FAIL("%s: no study %s", r->id, w);
        snprintf(words, sizeof(words), "%s", r->figures ? r->figures : "");
        for (char *w = strtok_r(words, " ", &save); w; w = strtok_r(NULL, " ", &save))
            if (!is_figure(w))
                EW_FAIL("%s: no figure %s", r->id, w);
        EW_EXPECT(!r->study || r->figures);
    }
}

static void states(void)
{
    struct ew_results results;
    struct ew_figures figures;
    char text[EW_REPRODUCE_CHARS];
    const struct ew_reproduce_here bare = {0};
    if (!EW_EXPECT_OK(ew_case_results(&results)) ||
        !EW_EXPECT_OK(ew_figures_init(ew_figures_report, &results, NULL, &figures)))
        return;
    EW_EXPECT_INT(ew_reproduce_state(ew_reproduction_find("train-fig2a"), &figures, &bare, text),
                  EW_REPRODUCE_MEASURED);
    EW_EXPECT(strncmp(text, "measured, ", 10) == 0);
    EW_EXPECT_INT(ew_reproduce_state(ew_reproduction_find("TRAIN-fig2a"), NULL, &bare, text),
                  EW_REPRODUCE_READY);
    EW_EXPECT_INT(ew_reproduce_state(ew_reproduction_find("TRAIN-fig9b"), NULL, &bare, text),
                  EW_REPRODUCE_NEEDS);
    EW_EXPECT_STR(text, "needs root on a board whose clocks can be set");
    const struct ew_reproduce_here clocks = {EW_NEEDS_CLOCKS};
    EW_EXPECT_INT(ew_reproduce_state(ew_reproduction_find("TRAIN-fig9b"), NULL, &clocks, text),
                  EW_REPRODUCE_NEEDS);
    EW_EXPECT_STR(text, "needs a power sensor");
    EW_EXPECT_INT(ew_reproduce_state(ew_reproduction_find("TRAIN-fig1"), NULL, &bare, text),
                  EW_REPRODUCE_NONE);
    EW_EXPECT_INT(ew_reproduce_state(ew_reproduction_find("TRAIN-table1"), NULL, &bare, text),
                  EW_REPRODUCE_COMMAND);
    EW_EXPECT_SAME(ew_reproduction_find("TRAIN-fig99"), NULL);
    /* Sensor readings of arbitrary runs do not count for NX's tables: only its own studies' runs
     * do. */
    for (int i = 0; i < results.n_runs; i++)
        if (results.runs[i].run.study && strncmp(results.runs[i].run.study, "nx-", 3) == 0)
            results.runs[i].run.status = EW_RUN_FAILED;
    ew_figures_fini(&figures);
    EW_EXPECT_OK(ew_figures_init(ew_figures_report, &results, NULL, &figures));
    EW_EXPECT_INT(ew_reproduce_state(ew_reproduction_find("NX-table1"), &figures, &bare, text),
                  EW_REPRODUCE_READY);
    ew_figures_fini(&figures);
    ew_results_fini(&results);
}

/* Regression: a figure's verdicts must be about what it shows; TRAIN's figure 8 was followed by
 * fifty others. */
static void what_a_figure_shows(void)
{
    const struct ew_reproduction *modes = ew_reproduction_find("TRAIN-fig8");
    EW_EXPECT(ew_reproduce_shows(modes, "epoch_s", "power-mode"));
    EW_EXPECT(ew_reproduce_shows(modes, "energy_j", "power-mode"));
    EW_EXPECT(!ew_reproduce_shows(modes, "energy_j", "network"));
    EW_EXPECT(!ew_reproduce_shows(modes, "stall_s", NULL));
    const struct ew_reproduction *storage = ew_reproduction_find("TRAIN-fig3a");
    EW_EXPECT(ew_reproduce_shows(storage, "stall_s_first", "storage"));
    EW_EXPECT(!ew_reproduce_shows(storage, "energy_j", NULL));
    const struct ew_reproduction *workers = ew_reproduction_find("TRAIN-fig2a");
    EW_EXPECT(ew_reproduce_shows(workers, "stall_s:workers=0/workers=1", NULL));
    /* The Cortex-A72's latency is not part of the FPGA's figure. */
    const struct ew_reproduction *dpu = ew_reproduction_find("SCALE-fig17");
    struct ew_published_row p = {
        .metric = "median_ms", .settings = "dtype=float32", .board = "ARM Cortex-A72"};
    EW_EXPECT(!ew_reproduce_about(dpu, &p));
    p.board = "ZCU104";
    EW_EXPECT(ew_reproduce_about(dpu, &p));
    /* Figure 4's parts are stall, compute and the whole epoch; regression: they were a network
     * each. */
    p = (struct ew_published_row){.metric = "batch_compute_ms",
                                  .settings = "network=mobilenet_v3_large batch=16"};
    EW_EXPECT(!ew_reproduce_about(ew_reproduction_find("TRAIN-fig4a"), &p));
    EW_EXPECT(ew_reproduce_about(ew_reproduction_find("TRAIN-fig4b"), &p));
    EW_EXPECT(ew_reproduce_shows(ew_reproduction_find("TRAIN-fig4a"), "stall_s", "batch"));
    EW_EXPECT(ew_reproduce_shows(ew_reproduction_find("TRAIN-fig4c"), "epoch_s", "batch"));
}

/* Each of NX's tables is about one data set of the same studies: runs with another do not count. */
static void parts_count_their_runs(void)
{
    struct ew_group groups[] = {{.x = "cifar10-alexnet", .runs = 1},
                                {.x = "cifar10-resnet50", .runs = 1},
                                {.x = "stl10-squeezenet", .runs = 1}};
    struct ew_series series = {.quality = EW_QUALITY_MEASURED};
    struct ew_figure figure = {.facet = "", .groups = groups, .n_groups = 3, .runs = 3};
    const struct ew_figures all = {.v = &figure, .n = 1};
    const struct ew_reproduce_here here = {0};
    char text[EW_REPRODUCE_CHARS];
    figure.series = &series;
    figure.n_series = 1;
    figure.desc = ew_figures_report;
    while (figure.desc->id && strcmp(figure.desc->id, "f1") != 0)
        figure.desc++;
    ew_reproduce_state(ew_reproduction_find("NX-table1"), &all, &here, text);
    EW_EXPECT_STR(text, "measured, 2 runs");
    ew_reproduce_state(ew_reproduction_find("NX-table2"), &all, &here, text);
    EW_EXPECT_STR(text, "measured, 1 run");
}

EW_TEST_MAIN(EW_TEST(parts_count_their_runs), EW_TEST(what_a_figure_shows),
             EW_TEST(all_that_is_referred_to), EW_TEST(counts_of_the_texts),
             EW_TEST(entries_lead_somewhere), EW_TEST(states))
