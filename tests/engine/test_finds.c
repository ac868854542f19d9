/* SPDX-License-Identifier: Apache-2.0 */
/* Regression files: they once crashed the program, made it read out of bounds, or gave wrong
 * results (tests/fixtures/finds); each is refused with a message, or gives the same results in all
 * configurations. */
#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "all_configs.h"
#include "base/file.h"
#include "engine/engine.h"
#include "ew_test.h"
#include "plan/plan.h"

#define FOLDER "tests/fixtures/finds"

/* Imports a file; the results must not depend on the configuration. */
static void check_onnx(const char *path)
{
    struct ew_graph *g = NULL;
    const struct ew_all_configs run = {
        .seed = 3, .most_flops = (int64_t)1 << 28, .most_bytes = (size_t)256 << 20, .files = true};
    const ew_err e = ew_onnx_load(path, NULL, &g);
    EW_EXPECT(e != EW_ERR_INTERNAL && e != EW_ERR_MEMORY);
    if (e != EW_OK) {
        EW_EXPECT(strlen(ew_error_message()) > 0);
        return;
    }
    struct ew_all_configs compared = run;
    compared.tolerance = ew_graph_has_jumps(g) ? 0 : 1e-3;
    EW_EXPECT_OK(ew_run_all_configs(g, &compared));
    ew_graph_free(g);
}

static void check_engine(const char *path)
{
    struct ew_engine *e = NULL;
    struct ew_context *c = NULL;
    const ew_err err = ew_engine_load(path, &e);
    EW_EXPECT(err != EW_ERR_INTERNAL && err != EW_ERR_MEMORY);
    if (err == EW_OK && ew_context_new(e, 1, &c) == EW_OK)
        EW_EXPECT(ew_context_run(c) != EW_ERR_INTERNAL);
    ew_context_free(c);
    ew_engine_free(err == EW_OK ? e : NULL);
}

static bool ends_with(const char *name, const char *end)
{
    const size_t n = strlen(name), k = strlen(end);
    return n > k && strcmp(name + n - k, end) == 0;
}

static int check_folder(const char *folder)
{
    DIR *d = opendir(folder);
    int n = 0;
    if (!EW_EXPECT(d))
        return 0;
    for (const struct dirent *e; (e = readdir(d));) {
        char path[512];
        snprintf(path, sizeof(path), "%s/%s", folder, e->d_name);
        n += ends_with(path, ".onnx") || ends_with(path, ".ewe");
        if (ends_with(path, ".onnx"))
            check_onnx(path);
        else if (ends_with(path, ".ewe"))
            check_engine(path);
    }
    closedir(d);
    return n;
}

static void files(void)
{
    EW_EXPECT(check_folder(FOLDER) >= 12);
}

static void mutated_files(void)
{
    EW_EXPECT_INT(check_folder(FOLDER "/mutated"), 26);
}

static void engine_files(void)
{
    EW_EXPECT_INT(check_folder(FOLDER "/ewe"), 3);
}

/* Regression: a network without packed weights had no plan to inspect. */
static void compact_without_packed_weights(void)
{
    struct ew_graph *g = NULL;
    const struct ew_compile_opts o = {.size = sizeof(o), .compact = true};
    if (EW_EXPECT_OK(ew_onnx_load(FOLDER "/crash-compile-compact.onnx", NULL, &g)))
        EW_EXPECT_OK(ew_engine_compile(g, &o, ew_test_path("compact.ewe")));
    ew_graph_free(g);
}

/* Kernels may pack fewer weights than exist: taps that only meet padding. */
static void compact_with_fewer_packed_weights(void)
{
    struct ew_graph *g = NULL;
    struct ew_engine *e = NULL;
    const struct ew_compile_opts o = {.size = sizeof(o), .compact = true};
    if (EW_EXPECT_OK(ew_onnx_load(FOLDER "/compile-compact-refused.onnx", NULL, &g)) &&
        EW_EXPECT_OK(ew_engine_compile(g, &o, ew_test_path("compact.ewe"))))
        EW_EXPECT_OK(ew_engine_load(ew_test_path("compact.ewe"), &e));
    ew_engine_free(e);
    ew_graph_free(g);
}

static void check_range_of_batches(const char *path)
{
    struct ew_graph *g = NULL;
    struct ew_engine *e = NULL;
    struct ew_context *c = NULL;
    const struct ew_compile_opts o = {.size = sizeof(o), .batch_min = 1, .batch_max = 3};
    if (!EW_EXPECT_OK(ew_onnx_load(path, NULL, &g)) ||
        !EW_EXPECT_OK(ew_engine_compile(g, &o, ew_test_path("range.ewe"))) ||
        !EW_EXPECT_OK(ew_engine_load(ew_test_path("range.ewe"), &e)) ||
        !EW_EXPECT_OK(ew_context_new(e, 1, &c)))
        return;
    for (int64_t batch = 1; batch <= 3; batch++) {
        struct ew_plan *p = NULL;
        const struct ew_plan_opts reference = {.backend = {.threads = 1, .reference = true}};
        size_t bytes = 0;
        EW_EXPECT_OK(ew_graph_set_batch(g, batch));
        EW_EXPECT_OK(ew_context_set_batch(c, batch));
        if (!EW_EXPECT_OK(ew_plan_compile(g, &reference, &p)))
            break;
        float *x = ew_context_input(c, 0, &bytes), *y = ew_plan_input(p, 0)->data;
        for (size_t i = 0; i < bytes / sizeof(float); i++)
            x[i] = y[i] = (float)(i % 17) / 8 - 1;
        EW_EXPECT_OK(ew_plan_run(p));
        EW_EXPECT_OK(ew_context_run(c));
        const float *got = ew_context_output(c, 0, &bytes);
        EW_EXPECT_CLOSE(got, (const float *)ew_plan_output(p, 0)->data, bytes / sizeof(float), 1e-4,
                        1e-4);
        ew_plan_free(p);
    }
    ew_context_free(c);
    ew_engine_free(e);
    ew_graph_free(g);
}

/* Regressions: at batch 1 a constant [1, C, H, W] has the output's shape, and was fused; a batch of
 * 1 behind another dimension was taken for one that never changes, and its transpose left out. */
static void ranges_of_batches(void)
{
    check_range_of_batches(FOLDER "/compile-range-conv-add-const.onnx");
    check_range_of_batches(FOLDER "/batch-second.onnx");
}

EW_TEST_MAIN(EW_TEST(files), EW_TEST(mutated_files), EW_TEST(engine_files),
             EW_TEST(compact_without_packed_weights), EW_TEST(compact_with_fewer_packed_weights),
             EW_TEST(ranges_of_batches))
