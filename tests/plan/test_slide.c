/* SPDX-License-Identifier: Apache-2.0 */
/* Overlapping windows of a clip: cached and newly computed values give the results of whole
 * windows; bit-identical with reference kernels, up to rounding with fast ones, since Winograd's
 * tiles have other positions. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "edgewise.h"
#include "ew_test.h"
#include "plan/slide/slide.h"
#include "run_graph.h"

#define WINDOWS 7

static struct ew_graph *build(const char *name, int side)
{
    struct ew_model_opts o = {.size = sizeof(o), .batch = 1, .classes = 5, .scale = 0.125};
    struct ew_graph *g = NULL;
    o.height = o.width = side;
    if (EW_EXPECT_OK(ew_model_build(name, &o, &g)) && EW_EXPECT_OK(ew_model_init(name, 5, g)))
        return g;
    ew_graph_free(g);
    return NULL;
}

/* Frames from `start` on of an endless clip. */
static void fill(struct ew_tensor *x, int64_t start)
{
    const int64_t n = ew_tensor_count(x), frame = n / x->shape.dim[1];
    for (int64_t i = 0; i < n; i++) {
        const int64_t at = start * frame + i;
        ((float *)x->data)[i] = sinf((float)(at % 7919) * 0.37f + (float)(at / frame));
    }
}

static void compare(struct ew_graph *g, int64_t hop, bool reference, double tolerance)
{
    const struct ew_plan_opts o = {.mode = EW_PLAN_INFER,
                                   .optimize = !reference,
                                   .backend = {.threads = 1, .reference = reference}};
    struct ew_plan *whole = NULL;
    struct ew_slide *slide = NULL;
    if (EW_EXPECT_OK(ew_plan_compile(g, &o, &whole)) &&
        EW_EXPECT_OK(ew_slide_new(g, hop, &o, &slide)) && EW_EXPECT(slide != NULL)) {
        EW_EXPECT(ew_slide_share(slide) < 1);
        double before = -1;
        for (int64_t i = 0; i < WINDOWS; i++) {
            fill(ew_plan_input(whole, 0), i * hop);
            fill(ew_slide_input(slide), i * hop);
            EW_EXPECT_OK(ew_plan_run(whole));
            EW_EXPECT_OK(ew_slide_run(slide));
            const struct ew_tensor *y = ew_plan_output(whole, 0);
            const double far = ew_tensor_distance(y, ew_slide_output(slide, 0));
            if (!(far <= tolerance))
                printf("window %lld: %g\n", (long long)i, far);
            EW_EXPECT(far <= tolerance);
            const double first =
                ew_tensor_get(y, 0); /* windows must differ for the test to be meaningful */
            EW_EXPECT(first < before || first > before);
            before = first;
        }
    }
    ew_slide_free(slide);
    ew_plan_free(whole);
}

static void walk(const char *name, int side, bool reference)
{
    static const int64_t hops[] = {1, 2, 3};
    ew_test_begin("%s%s", name, reference ? ", reference" : "");
    struct ew_graph *g = build(name, side);
    for (size_t i = 0; g && i < EW_COUNT(hops); i++)
        if (!reference || i == 0)
            compare(g, hops[i], reference, reference ? 0 : 2e-5);
    ew_graph_free(g);
    ew_test_end();
}

/* A window that advances by its whole length reuses nothing. */
static void test_nothing_kept(void)
{
    ew_test_begin("nothing_kept");
    struct ew_graph *g = build("c3d_small", 28);
    const struct ew_plan_opts o = {.mode = EW_PLAN_INFER, .optimize = true};
    struct ew_slide *slide = NULL;
    if (g)
        EW_EXPECT_OK(ew_slide_new(g, 16, &o, &slide));
    EW_EXPECT(slide == NULL);
    EW_EXPECT(g && ew_slide_new(g, 0, &o, &slide) == EW_ERR_ARG);
    ew_graph_free(g);
    ew_test_end();
}

int main(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    static const char *const nets[] = {"c3d_small", "video_densenet", "video_autoencoder", "r3d_18",
                                       "mc3_18",    "r2plus1d_18",    "resnet18_frames"};
    for (size_t i = 0; i < EW_COUNT(nets); i++)
        walk(nets[i], i < 3 ? 28 : 16, false);
    walk("c3d_small", 28, true);
    walk("video_densenet", 28, true);
    walk("resnet18_frames", 16, true);
    test_nothing_kept();
    return ew_test_status();
}
