/* SPDX-License-Identifier: Apache-2.0 */
/* Networks and images from elsewhere, in the folder EW_DATA: the counts of correct answers are
 * those of ONNX Runtime on the same files.  These files are not part of the project. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "ew_test.h"
#include "format/image_input.h"
#include "graph/graph.h"
#include "plan/plan.h"

#define IMAGES 200

static const char *data_path(const char *name)
{
    static char path[1024];
    snprintf(path, sizeof(path), "%s/%s", getenv("EW_DATA"), name);
    return path;
}

static bool there(const char *name)
{
    return getenv("EW_DATA") && access(data_path(name), R_OK) == 0;
}

/* Number of scores above that of `class`. */
static int rank_of(const struct ew_tensor *scores, int64_t class)
{
    const float *v = scores->data;
    int above = 0;
    for (int64_t i = 0; i < ew_tensor_count(scores); i++)
        above += v[i] > v[class];
    return above;
}

static ew_err count_right(struct ew_plan *p, struct ew_image_input *images, int *top1, int *top5)
{
    char *labels;
    size_t size;
    EW_TRY(ew_file_read(data_path("imagenet-200/labels.txt"), 1 << 20, &labels, &size));
    char *save = NULL;
    ew_err e = EW_OK;
    for (char *line = strtok_r(labels, "\n", &save); line && e == EW_OK;
         line = strtok_r(NULL, "\n", &save)) {
        char name[256], file[300];
        int class;
        if (sscanf(line, "%255s %d", name, &class) != 2)
            continue;
        snprintf(file, sizeof(file), "imagenet-200/%s", name);
        e = ew_image_input_read(images, data_path(file), 0, ew_plan_input(p, 0));
        if (e == EW_OK)
            e = ew_plan_run(p);
        const int rank = e == EW_OK ? rank_of(ew_plan_output(p, 0), class) : 0;
        *top1 += rank == 0;
        *top5 += rank < 5;
    }
    free(labels);
    return e;
}

static void classify(const char *network, const struct ew_preprocess *prep, int want1, int want5)
{
    if (!there(network))
        EW_SKIP("no %s in the folder EW_DATA", network);
    struct ew_graph *g;
    struct ew_plan *p;
    struct ew_image_input *images = NULL;
    int top1 = 0, top5 = 0;
    if (!EW_EXPECT_OK(ew_onnx_load(data_path(network), NULL, &g)))
        return;
    if (EW_EXPECT_OK(ew_plan_compile(g, &(struct ew_plan_opts){.optimize = true}, &p))) {
        EW_EXPECT_OK(ew_image_input_new(&g->values[g->inputs[0]], prep, network, &images));
        EW_EXPECT_OK(count_right(p, images, &top1, &top5));
        ew_image_input_free(images);
        EW_EXPECT_INT(top1, want1);
        EW_EXPECT_INT(top5, want5);
        ew_plan_free(p);
    }
    ew_graph_free(g);
}

static void squeezenet(void)
{
    classify("squeezenet1_1_imagenet.onnx", &ew_preprocess_imagenet, 104, 161);
}

static void mobilenet(void)
{
    const struct ew_preprocess prep = {
        .normalised = true, .mean = {0.5, 0.5, 0.5}, .std = {0.5, 0.5, 0.5}};
    classify("mobilenet_v2_imagenet.onnx", &prep, 131, 176);
}

static void mnist(void)
{
    if (!there("mnist-8.onnx"))
        EW_SKIP("no mnist-8.onnx in the folder EW_DATA");
    struct ew_graph *g;
    if (!EW_EXPECT_OK(ew_onnx_load(data_path("mnist-8.onnx"), NULL, &g)))
        return;
    EW_EXPECT_INT(g->values[g->outputs[0]].t.shape.dim[1], 10);
    ew_graph_free(g);
}

EW_TEST_MAIN(EW_TEST(squeezenet), EW_TEST(mobilenet), EW_TEST(mnist))
