/* SPDX-License-Identifier: Apache-2.0 */
/* The catalogue of CPU kernels: docs/kernels.md is up to date, the tests and folders that it names
 * exist, and it contains every kernel that the rules choose over the zoo.
 *
 * With EW_TEST_DUMP=FILE the page is written there. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/candidates.h"
#include "backend/cpu/catalogue/catalogue.h"
#include "base/file.h"
#include "base/mem.h"
#include "ew_test.h"
#include "model/objective.h"
#include "plan/plan.h"

#define PAGE   "docs/kernels.md"
#define CHOSEN "tests/plan/kernel_choice.txt"

/* ---- The page ---- */

static void put_ops(FILE *f, const struct ew_kernel_list *l)
{
    for (const struct ew_op *const *op = l->ops; *op; op++)
        fprintf(f, "%s`%s`", op == l->ops ? "" : ", ", (*op)->name);
}

static void put_rules(FILE *f, const struct ew_kernel_entry *e)
{
    if (!e->rules[0].holds)
        fputs("all others", f);
    for (int i = 0; i < EW_KERNEL_RULES && e->rules[i].holds; i++)
        fprintf(f, "%s%s", i ? "; " : "", e->rules[i].says);
}

static void put_row(FILE *f, const struct ew_kernel_entry *e, int number)
{
    fprintf(f, "| %d | %s | ", number, e->name);
    put_rules(f, e);
    fprintf(f, " | %s | %s | [%s](../src/backend/cpu/kernel/%s/README.md) | `%s` |\n",
            e->wrap     ? "share of zeros, when it runs"
            : e->cycles ? "cycles"
                        : "-",
            e->fuses ? e->fuses : "-", e->folder, e->folder, e->test);
}

static void put_list(FILE *f, const struct ew_kernel_list *l)
{
    fputs("\n## ", f);
    put_ops(f, l);
    fprintf(f, ", %s\n\nNeeds: %s.%s\n\n", l->phase == EW_PHASE_FORWARD ? "forward" : "backward",
            l->needs,
            l->most == 1 ? "\nThe first whose conditions hold is used."
                         : "\n`--tune` measures all whose conditions hold.");
    fputs("| | kernel | cases | estimate | fuses | technique | test |\n"
          "| --- | --- | --- | --- | --- | --- | --- |\n",
          f);
    for (int i = 0; i < l->n; i++)
        put_row(f, &l->entries[i], i + 1);
}

static void put_others(FILE *f)
{
    fputs("\n## Operators with one kernel\n\n"
          "| operators | phase | kernel | cases | fuses | technique | test |\n"
          "| --- | --- | --- | --- | --- | --- | --- |\n",
          f);
    for (int i = 0; i < ew_other_kernels_count; i++) {
        const struct ew_kernel_list *l = &ew_other_kernels[i];
        const struct ew_kernel_entry *e = l->entries;
        fputs("| ", f);
        put_ops(f, l);
        fprintf(f, " | %s | %s | %s | %s | [%s](../src/backend/cpu/kernel/%s/README.md) | `%s` |\n",
                l->phase == EW_PHASE_FORWARD ? "forward" : "backward", e->name, l->needs,
                e->fuses ? e->fuses : "-", e->folder, e->folder, e->test);
    }
}

static void put_page(FILE *f)
{
    fputs("# CPU kernels\n\n"
          "The kernels of each operator, in the order in which they are considered.\n"
          "`edgewise bench NET --why STEP` shows this list for one step of a network, with the "
          "reason why each kernel was or was not chosen; `--tune` adds measured times.\n\n"
          "A step runs the first kernel whose conditions all hold, or the operator's reference if "
          "there is none.\n"
          "*cases* are the conditions of a kernel.\n"
          "*estimate* is the cost model that conditions may compare, in cycles of one core; it is "
          "meant for ranking kernels, not for predicting times.\n"
          "Where it is -, `--why` shows the roofline instead.\n"
          "*fuses* lists neighbouring operations that the kernel can include, *technique* links to "
          "a description of the algorithm.\n\n"
          "This page is generated from the catalogue (`src/backend/cpu/catalogue/`), and "
          "`tests/backend/test_catalogue.c` checks that it is up to date.\n"
          "`EW_TEST_DUMP=docs/kernels.md build/dev/tests/test_catalogue` regenerates it.\n",
          f);
    for (int i = 0; ew_catalogue_at(i); i++)
        if (ew_catalogue_at(i)->resolve)
            put_list(f, ew_catalogue_at(i));
    put_others(f);
}

static void page_is_the_catalogue(void)
{
    char *made = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&made, &size);
    if (!EW_EXPECT(f != NULL))
        return;
    put_page(f);
    fclose(f);
    EW_CLEANUP(ew_free_ptr) char *text = made, *page = NULL;
    if (getenv("EW_TEST_DUMP")) {
        EW_EXPECT_OK(ew_file_write(getenv("EW_TEST_DUMP"), text, size));
        return;
    }
    size_t page_size = 0;
    if (!EW_EXPECT_OK(ew_file_read(PAGE, 1 << 20, &page, &page_size)))
        return;
    const char *has = page, *wants = text;
    while (*has && *has == *wants) { /* find the first line that differs */
        const size_t n = strcspn(has, "\n"), m = strcspn(wants, "\n");
        if (n != m || memcmp(has, wants, n) != 0)
            break;
        has += n + (has[n] != 0);
        wants += m + (wants[m] != 0);
    }
    if (strcmp(has, wants) != 0)
        EW_FAIL(PAGE " has:\n%.*s\nthe catalogue:\n%.*s\nEW_TEST_DUMP=" PAGE " writes the page",
                (int)strcspn(has, "\n"), has, (int)strcspn(wants, "\n"), wants);
}

/* ---- Files that it names ---- */

static void entries_are_whole(void)
{
    char path[512];
    for (int i = 0; ew_catalogue_at(i); i++) {
        const struct ew_kernel_list *l = ew_catalogue_at(i);
        EW_EXPECT(l->n > 0 && l->needs && l->ops[0]);
        for (int k = 0; k < l->n; k++) {
            const struct ew_kernel_entry *e = &l->entries[k];
            snprintf(path, sizeof(path), "tests/%s", e->test);
            if (!EW_EXPECT(access(path, R_OK) == 0))
                printf("  %s: no %s\n", e->name, path);
            snprintf(path, sizeof(path), "src/backend/cpu/kernel/%s/README.md", e->folder);
            if (!EW_EXPECT(access(path, R_OK) == 0))
                printf("  %s: no %s\n", e->name, path);
            EW_EXPECT(!l->resolve || (e->make != NULL) != (e->wrap != NULL));
            EW_EXPECT(strlen(e->name) < 32); /* limit of tune caches */
        }
        /* The last entry of a list must accept whatever the others decline. */
        EW_EXPECT(!l->resolve || l->entries[l->n - 1].make);
    }
}

static bool knows(const char *name)
{
    for (int i = 0; ew_catalogue_at(i); i++)
        for (int k = 0; k < ew_catalogue_at(i)->n; k++)
            if (strcmp(ew_catalogue_at(i)->entries[k].name, name) == 0)
                return true;
    return strcmp(name, "view") == 0 || strcmp(name, "reference") == 0;
}

/* Lines are "isa network mode; kernel count; ...; hash". */
static void chosen_kernels_are_known(void)
{
    EW_CLEANUP(ew_free_ptr) char *text = NULL;
    size_t size = 0;
    int n = 0;
    if (!EW_EXPECT_OK(ew_file_read(CHOSEN, 1 << 20, &text, &size)))
        return;
    char *rest = NULL;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        char *save = NULL, *part = strtok_r(line, ";", &save);
        while ((part = strtok_r(NULL, ";", &save)) != NULL) {
            char *count = strrchr(part + 1, ' ');
            if (!count)
                continue; /* the hash */
            *count = 0;
            if (!EW_EXPECT(knows(part + 1)))
                printf("  %s\n", part + 1);
            n++;
        }
    }
    EW_EXPECT(n > 500);
}

/* ---- Estimates ---- */

static double cycles_of(const struct ew_kernel_candidate *c, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (strcmp(c[i].name, name) == 0 && !c[i].refused)
            return c[i].cycles;
    return 0;
}

/* The rules compare dgrad estimates only, so dgrad + wgrad must have the same order. */
static void gradients_have_the_estimates_of_their_rules(void)
{
    const struct ew_model_opts o = {.size = sizeof(o), .batch = 16};
    const struct ew_plan_opts po = {.mode = EW_PLAN_TRAIN, .dry = true, .backend.threads = 1};
    struct ew_graph *g = NULL;
    struct ew_plan *p = NULL;
    int by_winograd = 0, by_gemm = 0;
    EW_EXPECT_OK(ew_model_build("resnet18", &o, &g));
    EW_EXPECT_OK(ew_objective_add(g));
    EW_EXPECT_OK(ew_plan_compile(g, &po, &p));
    for (int i = 0; p && i < ew_plan_step_count(p); i++) {
        struct ew_kernel_candidate known[32];
        struct ew_kernel_query query;
        if (!ew_plan_step_query(p, i, &query) || query.phase != EW_PHASE_BACKWARD)
            continue;
        const int n = ew_backend_candidates(&query, known, 32);
        const double winograd = cycles_of(known, n, "winograd gradients");
        const double gemm = cycles_of(known, n, "implicit gemm gradients");
        EW_EXPECT(winograd <= 0 || winograd < gemm);
        by_winograd += winograd > 0;
        by_gemm += gemm > 0;
    }
    EW_EXPECT(by_gemm >= 20); /* all convolutions, and the classifier */
    EW_EXPECT(by_winograd >= 10 || getenv("EW_ISA"));
    ew_plan_free(p);
    ew_graph_free(g);
}

EW_TEST_MAIN(EW_TEST(page_is_the_catalogue), EW_TEST(entries_are_whole),
             EW_TEST(chosen_kernels_are_known),
             EW_TEST(gradients_have_the_estimates_of_their_rules))
