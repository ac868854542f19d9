/* SPDX-License-Identifier: Apache-2.0 */
/* Values that `compare` saves, and compares with those of another program: names and layout are
 * those of the ONNX file, and all outputs are what the network gives. */
#include <stdio.h>
#include <string.h>

#include "edgewise.h"
#include "ew_test.h"
#include "format/tensor_file.h"
#include "measure/compare_sides.h"
#include "onnx_build.h"
#include "run_graph.h"

static const struct ew_compare_values_opts how = {.threads = 1};

static float *floats(struct ew_build *b, const char *name, const char *dims)
{
    Ew__OnnxTensor *t = ew_build_init_tensor(b, name, EW_PB_FLOAT, dims);
    float *v = (float *)(void *)t->raw_data.data;
    for (size_t i = 0; i < t->raw_data.len / sizeof(*v); i++)
        v[i] = (float)((int)(i * 7 % 11) - 4) * 0.1f;
    return v;
}

/* Maps of probabilities.  The nodes' names are not those of their outputs. */
static const char *build(const char *file, const char *also)
{
    struct ew_build b;
    ew_build_init(&b);
    ew_build_input(&b, "x", EW_PB_FLOAT, "1,3,4,5");
    floats(&b, "w", "6,3,1,1");
    ew_build_node(&b, "Conv", "x,w", "conv/out");
    ew_build_node(&b, "Relu", "conv/out", "relu/out");
    Ew__OnnxNode *n = ew_build_node(&b, "Softmax", "relu/out", "y");
    Ew__OnnxAttr *axis = ew_build_attr(&b, n, "axis", EW_PB_ATTR_INT);
    axis->has_i = true;
    axis->i = 1;
    ew_build_output(&b, "y");
    if (also)
        ew_build_output(&b, also);
    const char *path = ew_build_file(&b, file);
    ew_build_fini(&b);
    return path;
}

static void same_file(const char *path, const struct ew_tensor *want, struct ew_arena *a)
{
    struct ew_tensor got;
    if (!EW_EXPECT_OK(ew_tensor_file_read(path, a, &got, NULL)))
        return;
    EW_EXPECT(ew_shape_equal(&got.shape, &want->shape));
    EW_EXPECT_OK(ew_tensors_agree(&got, want, 1e-6, 1e-6));
}

static void saved_as_in_the_file(void)
{
    static float data[60];
    struct ew_arena a;
    struct ew_compared k;
    struct ew_graph *g = NULL;
    struct ew_plan *p = NULL;
    char x_path[512], folder[512], path[600];
    for (int i = 0; i < 60; i++)
        data[i] = (float)(i * 5 % 13) * 0.25f - 1;
    const struct ew_tensor x = {EW_F32, {4, {1, 3, 4, 5}}, data}, *in = &x;
    ew_arena_init(&a);
    snprintf(x_path, sizeof(x_path), "%s", ew_test_path("x.npy"));
    snprintf(folder, sizeof(folder), "%s", ew_test_path("values"));
    EW_EXPECT_OK(ew_tensor_file_write(x_path, &x, "x"));
    EW_EXPECT_OK(ew_onnx_load(build("both.onnx", "conv/out"), NULL, &g));
    const char *net = build("net.onnx", NULL);
    EW_EXPECT_OK(ew_compare_save(net, folder, x_path, &how, &k));
    ew_compare_close(&k);
    if (g && EW_EXPECT_OK(ew_run_graph(g, &in, &p))) {
        snprintf(path, sizeof(path), "%s/conv_out.npy", folder);
        same_file(path, ew_plan_output(p, 1), &a);
        snprintf(path, sizeof(path), "%s/y.npy", folder);
        same_file(path, ew_plan_output(p, 0), &a);
        EW_EXPECT_OK(ew_tensor_file_write(path, ew_plan_output(p, 0), "y"));
        EW_EXPECT_OK(ew_compare_saved(net, path, x_path, &how, &k));
        EW_EXPECT(k.n == 1 && ew_agreement_db(&k.v[0]) > 100);
        ew_compare_close(&k);
    }
    ew_plan_free(p);
    ew_graph_free(g);
    ew_arena_fini(&a);
}

EW_TEST_MAIN(EW_TEST(saved_as_in_the_file))
