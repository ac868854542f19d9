/* SPDX-License-Identifier: Apache-2.0 */
/* Group norms as exporters write them become one node that computes the same. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "compress/pass.h"
#include "ew_test.h"
#include "format/onnx_import.h"
#include "graph/ops.h"
#include "op/norm.h"

enum { N = 2, C = 6, H = 3, W = 5 };

static int ints(struct ew_graph *g, const int64_t *v, int n)
{
    int id = -1;
    EW_EXPECT_OK(ew_graph_const_ints(g, NULL, v, n, &id));
    return id;
}

/* A group norm as exporters write it. */
static struct ew_graph *build_group_norm(float *data, int batch, int groups)
{
    const int64_t apart[] = {batch, groups, -1}, whole[] = {N, C, H, W};
    struct ew_group_norm_attr eps = {.eps = 1e-3};
    float per_group[2][C];
    struct ew_graph *g = NULL;
    int v[3], out;
    for (int i = 0; i < groups; i++) {
        per_group[0][i] = 1 + 0.5F * (float)i;
        per_group[1][i] = 0.25F * (float)i;
    }
    const struct ew_tensor t = {EW_F32, {4, {N, C, H, W}}, data};
    EW_EXPECT_OK(ew_graph_new("norm", &g));
    EW_EXPECT_OK(ew_graph_const(g, "x", EW_VALUE_CONST, &t, true, &v[0]));
    v[1] = ints(g, apart, 3);
    EW_EXPECT_OK(ew_graph_add(g, ew_op_find("reshape"), NULL, NULL, ew_inputs(v, 2), &v[0]));
    for (int i = 0; i < 2; i++) {
        const struct ew_tensor p = {EW_F32, {1, {groups}}, per_group[i]};
        EW_EXPECT_OK(ew_graph_const(g, NULL, EW_VALUE_CONST, &p, true, &v[1 + i]));
    }
    const struct ew_node n = {.op = ew_op_find("instance_norm"),
                              .attr = &eps,
                              .n_in = 3,
                              .n_out = 1,
                              .in = v,
                              .channels_first = true};
    EW_EXPECT_OK(ew_graph_add_node(g, &n, &out));
    v[0] = out;
    v[1] = ints(g, whole, 4);
    EW_EXPECT_OK(ew_graph_add(g, ew_op_find("reshape"), "normed", NULL, ew_inputs(v, 2), &out));
    EW_EXPECT_OK(ew_graph_output(g, out));
    return g;
}

/* With one group, several, and one for each channel. */
static void group_norms(void)
{
    float data[N * C * H * W], want[N * C * H * W];
    for (int i = 0; i < N * C * H * W; i++)
        data[i] = sinf((float)i) + (float)(i % 5);
    for (int groups = 1; groups <= C; groups++) {
        if (C % groups)
            continue;
        struct ew_graph *g = build_group_norm(data, N, groups);
        EW_EXPECT_OK(ew_graph_channels_last(g)); /* without recognising it */
        const float *plain = g->values[g->outputs[0]].t.data;
        if (EW_EXPECT(plain))
            memcpy(want, plain, sizeof(want));
        ew_graph_free(g);

        g = build_group_norm(data, N, groups);
        EW_EXPECT_OK(ew_onnx_find_group_norms(g));
        EW_EXPECT_OK(ew_graph_check(g));
        EW_EXPECT_INT(g->n_nodes, 1);
        EW_EXPECT(g->nodes[0].op == &ew_op_group_norm);
        EW_EXPECT_OK(ew_graph_channels_last(g));
        EW_EXPECT_OK(ew_graph_infer(g));
        EW_EXPECT_CLOSE((const float *)g->values[g->outputs[0]].t.data, want, N * C * H * W, 1e-5,
                        1e-5);
        ew_graph_free(g);
    }
}

/* Rows of a group are not together: [2, 6, ...] as [6, 2, ...]. */
static void other_reshapes_stay(void)
{
    float data[N * C * H * W] = {0};
    struct ew_graph *g = build_group_norm(data, 3 * N, 2);
    EW_EXPECT_OK(ew_onnx_find_group_norms(g));
    EW_EXPECT_INT(g->n_nodes, 3);
    ew_graph_free(g);
}

/* Written in parts, which every opset has; the weights keep their names. */
static void written_in_parts(void)
{
    const char *path = ew_test_path("norm.onnx");
    const struct ew_group_norm_attr a = {.groups = 3, .eps = 1e-3};
    const struct ew_tensor t = {EW_F32, {1, {C}}, (float[C]){1, 2, 3, 4, 5, 6}};
    struct ew_graph *g = NULL;
    int v[3], out;
    char *file = NULL;
    size_t size = 0;
    EW_EXPECT_OK(ew_graph_new("norm", &g));
    EW_EXPECT_OK(ew_graph_input(g, "x", EW_F32, &(struct ew_shape){4, {N, H, W, C}}, &v[0]));
    EW_EXPECT_OK(ew_graph_const(g, "scale", EW_VALUE_PARAM, &t, true, &v[1]));
    EW_EXPECT_OK(ew_graph_const(g, "bias", EW_VALUE_PARAM, &t, true, &v[2]));
    EW_EXPECT_OK(ew_graph_add(g, &ew_op_group_norm, NULL, &a, ew_inputs(v, 3), &out));
    EW_EXPECT_OK(ew_graph_output(g, out));
    if (EW_EXPECT_OK(ew_onnx_save(g, path, NULL)) &&
        EW_EXPECT_OK(ew_file_read(path, 1 << 20, &file, &size)))
        EW_EXPECT(!memmem(file, size, "GroupNorm", 9) && memmem(file, size, "InstanceNorm", 12));
    free(file);
    ew_graph_free(g);
    g = NULL;
    if (EW_EXPECT_OK(ew_onnx_load(path, NULL, &g))) {
        const int scale = ew_graph_find(g, "scale");
        EW_EXPECT(scale >= 0 && g->values[scale].kind == EW_VALUE_PARAM);
        EW_EXPECT_OK(ew_pass_all(g));
        EW_EXPECT_INT(g->n_nodes, 1);
        EW_EXPECT(g->nodes[0].op == &ew_op_group_norm);
    }
    ew_graph_free(g);
}

EW_TEST_MAIN(EW_TEST(written_in_parts), EW_TEST(group_norms), EW_TEST(other_reshapes_stay))
