/* SPDX-License-Identifier: Apache-2.0 */
/* Layer widths against NeuralScale's own numbers: counts, fits, filter tables. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/csv.h"
#include "base/file.h"
#include "base/num.h"
#include "ew_test.h"
#include "scale/power_law.h"

#define FOLDER "tests/fixtures/neuralscale/"

static double number(const char *text)
{
    double v = NAN;
    EW_EXPECT(ew_num_float(text, &v));
    return v;
}

static bool open_csv(const char *path, char **text, struct ew_csv *csv)
{
    size_t size;
    if (!EW_EXPECT_OK(ew_file_read(path, 1 << 20, text, &size)))
        return false;
    ew_csv_init(csv, *text, path);
    return true;
}

static bool open_scaling(const char *network, double classes, struct ew_scaling *s)
{
    const struct ew_model_opts o = {.size = sizeof(o), .classes = (int64_t)classes};
    return EW_EXPECT_OK(ew_scaling_open(network, &o, s));
}

static void counts_with_their_quirks(void)
{
    char *text = NULL;
    struct ew_csv csv;
    int n = 0;
    if (!open_csv(FOLDER "counts.csv", &text, &csv))
        return;
    for (; ew_csv_next(&csv); n++) {
        struct ew_scaling s;
        double tau;
        if (!open_scaling(csv.cells[0], number(csv.cells[1]), &s))
            break;
        EW_EXPECT_OK(ew_scaling_target(&s, number(csv.cells[2]), &tau));
        EW_EXPECT_NEAR(tau, number(csv.cells[3]), 0);
    }
    EW_EXPECT_INT(n, 45);
    free(text);
}

/* ---- Laws ---- */

struct golden {
    struct ew_scaling s;
    struct ew_power_law law;
    char record[64], network[64];
    int rows, sets, tables;
    double tau_first, tau_last;
};

static void begin_set(struct golden *g, char **cells)
{
    snprintf(g->record, sizeof(g->record), "%s", cells[1]);
    snprintf(g->network, sizeof(g->network), "%s", cells[2]);
    open_scaling(g->network, number(cells[3]), &g->s);
    g->law = (struct ew_power_law){.n = g->s.n, .first = number(cells[4]) <= 0};
    g->rows = (int)number(cells[5]);
    g->tau_first = number(cells[6]);
    g->tau_last = number(cells[7]);
    g->sets++;
}

static void check_table(struct golden *g, char **cells)
{
    struct ew_widths_found found;
    struct ew_scaling_facts facts;
    double target;
    EW_EXPECT_OK(ew_scaling_target(&g->s, number(cells[1]), &target));
    EW_EXPECT_NEAR(target, number(cells[2]), 0);
    if (!EW_EXPECT_OK(ew_power_law_widths(&g->s, &g->law, target, &found)))
        return;
    EW_EXPECT_INT(found.steps, (int)number(cells[3]));
    for (int i = 0; i < g->s.n; i++)
        EW_EXPECT_INT(found.widths[i], (int)number(cells[6 + i]));
    EW_EXPECT_OK(ew_scaling_facts(&g->s, found.widths, &facts));
    EW_EXPECT_INT(facts.params, (int64_t)number(cells[4]));
    /* Its PreAct ResNet-18 pools by a module, which thop counts: 4 x 4 + 1 per channel. */
    const int64_t pool = strstr(g->network, "preact") ? 17 * found.widths[g->s.n - 1] : 0;
    EW_EXPECT_NEAR(2e-6 * (double)(facts.thop_macs + pool), number(cells[5]), 1e-6);
    g->tables++;
}

/* Its pruning record, if available here, gives the same law. */
static void check_fit(const struct golden *g)
{
    struct ew_prune_rows rows;
    struct ew_power_law law;
    char path[160], *head = NULL;
    size_t size;
    snprintf(path, sizeof(path), FOLDER "%s", g->record);
    if (ew_file_read(path, 1 << 20, &head, &size) != EW_OK)
        return;
    free(head);
    if (!EW_EXPECT_OK(ew_prune_rows_read(path, &rows)))
        return;
    EW_EXPECT_INT(rows.n, g->rows);
    EW_EXPECT_OK(ew_power_law_fit(&g->s, &rows, &law));
    EW_EXPECT_NEAR(law.tau_most, g->tau_first, 0);
    EW_EXPECT_NEAR(law.tau_least, g->tau_last, 0);
    for (int i = 0; i < g->s.n; i++) {
        EW_EXPECT_NEAR(law.alpha[i], g->law.alpha[i], 1e-9 * g->law.alpha[i]);
        EW_EXPECT_NEAR(law.beta[i], g->law.beta[i], 1e-9);
    }
    ew_prune_rows_fini(&rows);
}

/* The built-in table is that of its last iterations, and gives the same filters. */
static void check_published(const struct golden *g)
{
    static const char *const last[] = {"vgg_10_eff_c10_14.csv", "mobilenetv2_10_eff_c100_14.csv",
                                       "mobilenetv2_15_eff_tinyimagenet_14.csv"};
    const struct ew_power_law *law = ew_power_law_published(g->network);
    bool published = false;
    for (size_t i = 0; i < EW_COUNT(last); i++)
        published = published || strcmp(last[i], g->record) == 0;
    if (!published || !EW_EXPECT(law != NULL) || !EW_EXPECT_INT(law->n, g->s.n))
        return;
    EW_EXPECT_INT(law->rows, g->rows);
    EW_EXPECT_NEAR(law->tau_most, g->tau_first, 0);
    EW_EXPECT_NEAR(law->tau_least, g->tau_last, 0);
    for (int i = 0; i < law->n; i++) {
        EW_EXPECT_NEAR(law->alpha[i], g->law.alpha[i], 1e-11 * g->law.alpha[i]);
        EW_EXPECT_NEAR(law->beta[i], g->law.beta[i], 1e-11);
    }
}

static void filter_tables(void)
{
    struct golden g = {0};
    char *text = NULL;
    struct ew_csv csv;
    if (!open_csv(FOLDER "laws.csv", &text, &csv))
        return;
    while (ew_csv_next(&csv)) {
        char **c = csv.cells;
        if (strcmp(c[0], "set") == 0)
            begin_set(&g, c);
        else if (strcmp(c[0], "widths") == 0)
            check_table(&g, c);
        else
            for (int i = 0; i < g.s.n; i++)
                (c[0][0] == 'a' ? g.law.alpha : g.law.beta)[i] = number(c[1 + i]);
        if (strcmp(c[0], "beta") == 0)
            check_fit(&g), check_published(&g);
    }
    EW_EXPECT_INT(g.sets, 14);
    EW_EXPECT_INT(g.tables, 70);
    free(text);
}

static void few_records(void)
{
    static const int32_t five[5][19] = {
        {19, 15, 18, 17, 18, 18, 19, 15, 12, 11, 11, 7, 7, 6, 5, 5, 5, 7, 41},
        {19, 15, 18, 17, 17, 18, 18, 12, 11, 11, 10, 6, 6, 6, 5, 5, 5, 7, 40},
        {19, 15, 17, 17, 17, 17, 17, 12, 10, 10, 10, 6, 6, 5, 5, 5, 5, 5, 38},
        {18, 15, 14, 16, 17, 16, 17, 12, 10, 10, 10, 5, 5, 5, 5, 5, 5, 5, 36},
        {18, 13, 14, 15, 17, 16, 15, 12, 10, 10, 10, 5, 5, 5, 5, 3, 5, 4, 34}};
    static const int32_t want[19] = {148, 116, 140, 132, 140, 140, 148, 116, 93, 85,
                                     85,  54,  54,  46,  38,  38,  38,  54,  319};
    struct ew_prune_rows rows = {0};
    struct ew_scaling s;
    struct ew_power_law law;
    struct ew_widths_found found;
    double target;
    for (int i = 0; i < 5; i++)
        EW_EXPECT_OK(ew_prune_rows_add(&rows, five[i], 19));
    open_scaling("mobilenet_v2_cifar", 100, &s);
    EW_EXPECT_OK(ew_power_law_fit(&s, &rows, &law));
    EW_EXPECT_OK(ew_scaling_target(&s, 1, &target));
    EW_EXPECT_OK(ew_power_law_widths(&s, &law, target, &found));
    EW_EXPECT_INT(found.steps, 132);
    for (int i = 0; i < 19; i++)
        EW_EXPECT_INT(found.widths[i], want[i]);
    EW_EXPECT_ERR(ew_widths_within(&s, &law, 1e6, true, &found), EW_ERR_ARG,
                  "fewer than 6 records");
    ew_prune_rows_fini(&rows);
}

/* ---- Other targets ---- */

static void within_a_limit(void)
{
    struct ew_scaling s;
    struct ew_prune_rows rows;
    struct ew_power_law law;
    struct ew_widths_found found;
    struct ew_scaling_facts f;
    open_scaling("vgg11_cifar", 10, &s);
    if (!EW_EXPECT_OK(ew_prune_rows_read(FOLDER "vgg_10_eff_c10_14.csv", &rows)))
        return;
    EW_EXPECT_OK(ew_power_law_fit(&s, &rows, &law));
    EW_EXPECT_OK(ew_widths_within(&s, &law, 50e6, true, &found));
    EW_EXPECT_OK(ew_scaling_facts(&s, found.widths, &f));
    EW_EXPECT(f.macs <= 50000000 && f.macs > 49000000);
    EW_EXPECT_OK(ew_widths_within(&s, NULL, 2311562, false, &found));
    EW_EXPECT_OK(ew_scaling_facts(&s, found.widths, &f));
    EW_EXPECT_INT(f.params, 2311562); /* the same filters as ratio 0.5 */
    EW_EXPECT_NEAR(found.tau, 0.5, 0.01);
    EW_EXPECT_ERR(ew_widths_within(&s, NULL, 10, false, &found), EW_ERR_LIMIT, "the least widths");
    ew_prune_rows_fini(&rows);
}

/* Networks that NeuralScale did not scale: counts are those of the network. */
static void any_network(void)
{
    struct ew_scaling s;
    struct ew_power_law law = {.rows = 6};
    struct ew_widths_found found;
    struct ew_scaling_facts f;
    double target;
    open_scaling("lenet5", 0, &s);
    EW_EXPECT(!s.rule);
    law.n = s.n;
    for (int i = 0; i < s.n; i++) {
        law.alpha[i] = 0.05 * s.base[i];
        law.beta[i] = 0.3;
    }
    EW_EXPECT_OK(ew_scaling_target(&s, 1, &target));
    EW_EXPECT_NEAR(target, 61706, 0);
    EW_EXPECT_OK(ew_power_law_widths(&s, &law, target, &found));
    EW_EXPECT_OK(ew_scaling_facts(&s, found.widths, &f));
    EW_EXPECT(f.params <= 61706 && f.params > 50000);
}

static void refusals(void)
{
    struct ew_prune_rows rows;
    struct ew_scaling s;
    struct ew_power_law law;
    int32_t widths[EW_MAX_GATES];
    open_scaling("vgg11_cifar", 10, &s);
    EW_EXPECT_ERR(ew_scaling_uniform(&s, 0.001, widths), EW_ERR_ARG, "0 filters of 64 at gate 0");
    if (!EW_EXPECT_OK(ew_prune_rows_read(FOLDER "mobilenetv2_10_eff_c100_0.csv", &rows)))
        return;
    EW_EXPECT_ERR(ew_power_law_fit(&s, &rows, &law), EW_ERR_ARG,
                  "have 19 widths, vgg11_cifar has 8");
    ew_prune_rows_fini(&rows);
    EW_EXPECT_ERR(ew_prune_rows_read(FOLDER "README.md", &rows), EW_ERR_FORMAT,
                  "is not a number of filters");
}

EW_TEST_MAIN(EW_TEST(counts_with_their_quirks), EW_TEST(filter_tables), EW_TEST(few_records),
             EW_TEST(within_a_limit), EW_TEST(any_network), EW_TEST(refusals))
