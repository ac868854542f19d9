/* SPDX-License-Identifier: Apache-2.0 */
/* Tuning: each kernel choice is measured once, cached, and survives a damaged cache. */
#include "backend/tune.h"

#include <stdio.h>
#include <string.h>

#include "edgewise.h"
#include "ew_test.h"
#include "plan/plan.h"

/* Compiles a network with the cache at `path`; returns the number of choices that were measured. */
static int compile_measured(const char *path)
{
    struct ew_model_opts o = {.size = sizeof(o), .height = 32, .width = 32, .scale = 0.25};
    struct ew_graph *g = NULL;
    struct ew_tuner *t = NULL;
    struct ew_plan *p = NULL;
    int measured = -1;
    if (EW_EXPECT_OK(ew_model_build("resnet18", &o, &g)) &&
        EW_EXPECT_OK(ew_model_init("resnet18", 1, g)) && EW_EXPECT_OK(ew_tuner_open(path, &t))) {
        const struct ew_plan_opts po = {.optimize = true, .backend = {.threads = 1}, .tuner = t};
        if (EW_EXPECT_OK(ew_plan_compile(g, &po, &p)))
            EW_EXPECT_OK(ew_plan_run(p));
        measured = ew_tuner_measured(t);
    }
    ew_tuner_close(t);
    ew_plan_free(p);
    ew_graph_free(g);
    return measured;
}

static void questions_are_measured_once(void)
{
    const char *path = ew_test_path("tune");
    EW_EXPECT(compile_measured(path) > 0);
    EW_EXPECT_INT(compile_measured(path), 0);
}

static void without_a_file_nothing_is_remembered(void)
{
    EW_EXPECT(compile_measured(NULL) > 0);
    EW_EXPECT(compile_measured(NULL) > 0);
}

static void damaged_files_are_replaced(void)
{
    static const char *const bad[] = {"", "edgewise-tune 9\nabc\n",
                                      "edgewise-tune 2\nnot a line\n0123456789abcdef\n",
                                      "edgewise-tune 2\n0123456789abcdef no such kernel\n"};
    for (size_t i = 0; i < EW_COUNT(bad); i++) {
        const char *path = ew_test_file("damaged", bad[i], strlen(bad[i]));
        EW_EXPECT(compile_measured(path) > 0);
        EW_EXPECT_INT(compile_measured(path), 0);
    }
}

/* An unwritable cache folder causes a warning, and the measurements are still used. */
static void unwritable_files_are_let_alone(void)
{
    struct ew_model_opts o = {.size = sizeof(o), .height = 32, .width = 32, .scale = 0.25};
    struct ew_graph *g = NULL;
    struct ew_tuner *t = NULL;
    struct ew_plan *p = NULL;
    EW_EXPECT_OK(ew_model_build("resnet18", &o, &g));
    EW_EXPECT_OK(ew_model_init("resnet18", 1, g));
    EW_EXPECT_OK(ew_tuner_open("/dev/null/tune", &t));
    const struct ew_plan_opts po = {.optimize = true, .backend = {.threads = 1}, .tuner = t};
    EW_EXPECT_OK(ew_plan_compile(g, &po, &p));
    EW_EXPECT(ew_tuner_measured(t) > 0);
    ew_tuner_close(t);
    ew_plan_free(p);
    ew_graph_free(g);
}

EW_TEST_MAIN(EW_TEST(questions_are_measured_once), EW_TEST(without_a_file_nothing_is_remembered),
             EW_TEST(damaged_files_are_replaced), EW_TEST(unwritable_files_are_let_alone))
