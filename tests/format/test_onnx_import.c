/* SPDX-License-Identifier: Apache-2.0 */
/* Alternative forms of valid ONNX files: order, constants, open dimensions, external data, older
 * opsets. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "ew_test.h"
#include "graph/graph.h"
#include "onnx_build.h"
#include "run_graph.h"

static struct ew_graph *load(struct ew_build *b, const struct ew_onnx_opts *opts)
{
    struct ew_graph *g = NULL;
    EW_EXPECT_OK(ew_onnx_load(ew_build_file(b, "model.onnx"), opts, &g));
    ew_build_fini(b);
    return g;
}

/* Runs a graph of one input, filled with 1, 2, 3, ..., and returns element i of its output. */
static double run_at(struct ew_graph *g, int64_t i)
{
    struct ew_tensor x = g->values[g->inputs[0]].t;
    const struct ew_tensor *in = &x;
    struct ew_plan *p;
    x.data = calloc(1, ew_tensor_bytes(&x));
    for (int64_t k = 0; k < ew_tensor_count(&x); k++)
        ew_tensor_store(&x, k, 1, &(double){(double)k + 1});
    double v = -1;
    if (EW_EXPECT_OK(ew_run_graph(g, &in, &p))) {
        v = ew_tensor_get(ew_plan_output(p, 0), i);
        ew_plan_free(p);
    }
    free(x.data);
    return v;
}

static void nodes_out_of_order(void)
{
    struct ew_build b;
    ew_build_init(&b);
    ew_build_input(&b, "x", EW_PB_FLOAT, "3");
    ew_build_node(&b, "Add", "s,x", "y"); /* y = x * x + x */
    ew_build_node(&b, "Mul", "x,x", "s");
    ew_build_output(&b, "y");
    struct ew_graph *g = load(&b, NULL);
    if (!g)
        return;
    EW_EXPECT_STR(g->nodes[0].op->name, "mul");
    EW_EXPECT_NEAR(run_at(g, 2), 12, 0);
    ew_graph_free(g);
}

/* Up to IR 3 every initialiser was also an input. */
static void initializer_is_an_input(void)
{
    struct ew_build b;
    ew_build_init(&b);
    b.model.ir_version = 3;
    ew_build_input(&b, "w", EW_PB_FLOAT, "3");
    ew_build_input(&b, "x", EW_PB_FLOAT, "3");
    ew_build_init_tensor(&b, "w", EW_PB_FLOAT, "3");
    ew_build_node(&b, "Add", "x,w", "y");
    ew_build_output(&b, "y");
    struct ew_graph *g = load(&b, NULL);
    if (!g)
        return;
    EW_EXPECT_INT(g->n_inputs, 1);
    EW_EXPECT_INT(g->values[ew_graph_find(g, "w")].kind, EW_VALUE_PARAM);
    EW_EXPECT_NEAR(run_at(g, 2), 5, 0);
    ew_graph_free(g);
}

static void open_dimensions(void)
{
    struct ew_build b;
    ew_build_init(&b);
    ew_build_input(&b, "x", EW_PB_FLOAT, "-1,4");
    ew_build_node(&b, "Relu", "x", "y");
    ew_build_output(&b, "y");
    struct ew_graph *g = load(&b, NULL);
    if (g) {
        EW_EXPECT_INT(g->values[g->inputs[0]].dynamic, 1);
        EW_EXPECT_INT(g->values[g->inputs[0]].t.shape.dim[0], 1);
        EW_EXPECT_OK(ew_graph_set_batch(g, 5));
        EW_EXPECT_INT(g->values[g->outputs[0]].t.shape.dim[0], 5);
        ew_graph_free(g);
    }
    ew_build_init(&b);
    ew_build_input(&b, "x", EW_PB_FLOAT, "-1,-1,2");
    ew_build_node(&b, "Relu", "x", "y");
    ew_build_output(&b, "y");
    const int64_t dims[] = {3, 7, 2};
    const struct ew_onnx_input in = {.name = "x", .rank = 3, .dims = dims};
    g = load(&b, &(struct ew_onnx_opts){sizeof(struct ew_onnx_opts), &in, 1});
    if (!g)
        return;
    EW_EXPECT_INT(g->values[g->inputs[0]].dynamic, 3);
    EW_EXPECT_INT(g->values[g->outputs[0]].t.shape.dim[1], 7);
    ew_graph_free(g);
}

/* A shape as an input: its value is needed at import. */
static void shape_as_input(void)
{
    struct ew_build b;
    const int64_t two[] = {2, 3}, dims[] = {2};
    const struct ew_onnx_input in = {.name = "s", .rank = 1, .dims = dims, .data = two};
    ew_build_init(&b);
    ew_build_input(&b, "x", EW_PB_FLOAT, "6");
    ew_build_input(&b, "s", EW_PB_INT64, "2");
    ew_build_node(&b, "Reshape", "x,s", "y");
    ew_build_output(&b, "y");
    const char *path = ew_build_file(&b, "shape.onnx");
    struct ew_graph *g;
    EW_EXPECT_ERR(ew_onnx_load(path, NULL, &g), EW_ERR_UNSUPPORTED,
                  "input s must be known before the run");
    g = load(&b, &(struct ew_onnx_opts){sizeof(struct ew_onnx_opts), &in, 1});
    if (!g)
        return;
    EW_EXPECT_INT(g->n_inputs, 1);
    EW_EXPECT_INT(g->values[g->outputs[0]].t.shape.dim[1], 3);
    ew_graph_free(g);
    /* the shape may be the file's, the element type must be */
    struct ew_onnx_input value = {.name = "s", .rank = -1, .data = two};
    const struct ew_onnx_opts o = {sizeof(o), &value, 1};
    if (!EW_EXPECT_OK(ew_onnx_load(path, &o, &g)))
        return;
    EW_EXPECT_INT(g->n_inputs, 1);
    ew_graph_free(g);
    value.dtype = "int32";
    EW_EXPECT_ERR(ew_onnx_load(path, &o, &g), EW_ERR_TYPE, "input s is int64, given is int32");
}

static void cast_node(struct ew_build *b, const char *in, const char *out, int to)
{
    Ew__OnnxAttr *a = ew_build_attr(b, ew_build_node(b, "Cast", in, out), "to", EW_PB_ATTR_INT);
    a->has_i = true;
    a->i = to;
}

/* Regression: a size that is converted to float on its way, as exporters write the size of a
 * Resize: size x 1. The constant was taken for a trainable weight, so the size was unknown. */
static void size_through_floats(void)
{
    struct ew_build b;
    ew_build_init(&b);
    ew_build_input(&b, "x", EW_PB_FLOAT, "-1,2,3,4");
    Ew__OnnxTensor *one = ew_build_init_tensor(&b, "one", EW_PB_FLOAT, "1");
    memcpy(one->raw_data.data, &(float){1}, sizeof(float));
    ew_build_node(&b, "Shape", "x", "shape");
    cast_node(&b, "shape", "floats", EW_PB_FLOAT);
    ew_build_node(&b, "Mul", "floats,one", "scaled");
    cast_node(&b, "scaled", "sizes", EW_PB_INT64);
    ew_build_node(&b, "Mul", "x,one", "data"); /* the same constant applied to data */
    ew_build_node(&b, "Resize", "data,,,sizes", "y");
    ew_build_output(&b, "y");
    struct ew_graph *g = load(&b, NULL);
    if (!g)
        return;
    EW_EXPECT_OK(ew_graph_set_batch(g, 3));
    const struct ew_shape *y = &g->values[g->outputs[0]].t.shape;
    EW_EXPECT(y->rank == 4 && y->dim[0] == 3);
    ew_graph_free(g);
}

static void outputs_keep_their_names(void)
{
    struct ew_build b;
    ew_build_init(&b);
    ew_build_input(&b, "x", EW_PB_FLOAT, "2");
    ew_build_node(&b, "Identity", "x", "same");
    ew_build_node(&b, "Dropout", "x", "kept");
    ew_build_output(&b, "same");
    ew_build_output(&b, "kept");
    struct ew_graph *g = load(&b, NULL);
    if (!g)
        return;
    EW_EXPECT_STR(g->values[g->outputs[0]].name, "same");
    EW_EXPECT_STR(g->values[g->outputs[1]].name, "kept");
    EW_EXPECT_OK(ew_onnx_save(g, ew_test_path("again.onnx"), NULL));
    ew_graph_free(g);
    if (EW_EXPECT_OK(ew_onnx_load(ew_test_path("again.onnx"), NULL, &g))) {
        EW_EXPECT_STR(g->values[g->outputs[1]].name, "kept");
        ew_graph_free(g);
    }
}

/* ---- Large constants ---- */

/* x is multiplied by two tensors of 0, 1, 2, ... in one external file. */
static void external_data(void)
{
    struct ew_build b;
    float data[20];
    for (int i = 0; i < 20; i++)
        data[i] = (float)i;
    EW_EXPECT_INT(mkdir(ew_test_path("sub"), 0755), 0);
    ew_test_file("sub/w.bin", data, sizeof(data));
    ew_build_init(&b);
    ew_build_input(&b, "x", EW_PB_FLOAT, "4");
    for (int i = 0; i < 3; i++) {
        char name[8], offset[8];
        snprintf(name, sizeof(name), "w%d", i);
        snprintf(offset, sizeof(offset), "%d", i == 2 ? 16 : 16 * i); /* the last two share their
                                                                       * data */
        ew_build_external(&b, ew_build_init_tensor(&b, name, EW_PB_FLOAT, "4"), "sub/w.bin", offset,
                          i ? "16" : NULL);
    }
    ew_build_node(&b, "Mul", "x,w0", "m0");
    ew_build_node(&b, "Mul", "m0,w1", "m1");
    ew_build_node(&b, "Mul", "m1,w2", "y");
    ew_build_output(&b, "y");
    struct ew_graph *g = load(&b, NULL);
    if (!g)
        return;
    EW_EXPECT_NEAR(run_at(g, 3), 4 * 3 * 7 * 7, 0);
    ew_graph_free(g);
}

/* Without the file, and without what is beside it. */
static void from_memory(void)
{
    struct ew_build b;
    struct ew_graph *g = NULL;
    char *bytes;
    size_t size;
    ew_build_init(&b);
    ew_build_input(&b, "x", EW_PB_FLOAT, "4");
    ew_build_init_tensor(&b, "w", EW_PB_FLOAT, "4");
    ew_build_node(&b, "Mul", "x,w", "y");
    ew_build_output(&b, "y");
    EW_EXPECT_OK(ew_file_read(ew_build_file(&b, "model.onnx"), 1 << 20, &bytes, &size));
    if (EW_EXPECT_OK(ew_onnx_load_memory(bytes, size, NULL, &g))) {
        memset(bytes, 0, size);
        EW_EXPECT_NEAR(run_at(g, 3), 4 * 3, 0);
        ew_graph_free(g);
    }
    EW_EXPECT_ERR(ew_onnx_load_memory(bytes, size, NULL, &g), EW_ERR_FORMAT, "ONNX in memory");
    EW_EXPECT(!g);
    free(bytes);
    ew_build_external(&b, ew_build_init_tensor(&b, "v", EW_PB_FLOAT, "4"), "sub/w.bin", "0", NULL);
    ew_build_node(&b, "Mul", "y,v", "z");
    EW_EXPECT_OK(ew_file_read(ew_build_file(&b, "model.onnx"), 1 << 20, &bytes, &size));
    EW_EXPECT_ERR(ew_onnx_load_memory(bytes, size, NULL, &g), EW_ERR_UNSUPPORTED,
                  "ONNX in memory: tensor v: external data sub/w.bin");
    EW_EXPECT(!g);
    free(bytes);
    ew_build_fini(&b);
}

/* A filter of 1.1 MB is converted to our layout: only one copy may remain. */
static void one_copy_of_weights(void)
{
    struct ew_build b;
    ew_build_init(&b);
    ew_build_input(&b, "x", EW_PB_FLOAT, "1,96,8,8");
    ew_build_init_tensor(&b, "w", EW_PB_FLOAT, "320,96,3,3");
    ew_build_init_tensor(&b, "m", EW_PB_FLOAT, "320,300");
    ew_build_node(&b, "Conv", "x,w", "c");
    ew_build_node(&b, "GlobalAveragePool", "c", "p");
    ew_build_node(&b, "Flatten", "p", "f");
    ew_build_node(&b, "MatMul", "f,m", "y");
    ew_build_output(&b, "y");
    struct ew_graph *g = load(&b, NULL);
    if (!g)
        return;
    const size_t weights = (320 * 96 * 9 + 320 * 300) * sizeof(float);
    EW_EXPECT(g->arena.used < weights + weights / 10);
    const struct ew_tensor *m = &g->values[ew_graph_find(g, "m")].t;
    EW_EXPECT_NEAR(ew_tensor_get(m, 95999), 95999, 0);
    ew_graph_free(g);
}

/* A file over the size limit is saved with external weights, which are read back. */
static void saved_beside(void)
{
    struct ew_build b;
    ew_build_init(&b);
    ew_build_input(&b, "x", EW_PB_FLOAT, "1,300");
    ew_build_init_tensor(&b, "m", EW_PB_FLOAT, "300,7");
    ew_build_init_tensor(&b, "small", EW_PB_FLOAT, "7");
    ew_build_node(&b, "MatMul", "x,m", "p");
    ew_build_node(&b, "Add", "p,small", "y");
    ew_build_output(&b, "y");
    struct ew_graph *g = load(&b, NULL), *back;
    if (!g)
        return;
    const char *path = ew_test_path("beside.onnx");
    EW_EXPECT_OK(ew_onnx_save(
        g, path,
        &(struct ew_onnx_save_opts){.size = sizeof(struct ew_onnx_save_opts), .max_bytes = 4096}));
    struct stat st;
    EW_EXPECT(stat(ew_test_path("beside.onnx.data"), &st) == 0 && st.st_size == 300 * 7 * 4);
    EW_EXPECT(stat(path, &st) == 0 && st.st_size < 4096);
    if (EW_EXPECT_OK(ew_onnx_load(path, NULL, &back))) {
        EW_EXPECT_NEAR(run_at(back, 6), run_at(g, 6), 0);
        ew_graph_free(back);
    }
    ew_graph_free(g);
}

/* A model that cannot be written leaves the weights beside the old one alone. */
static void not_saved_beside(void)
{
    struct ew_build b;
    ew_build_init(&b);
    ew_build_input(&b, "x", EW_PB_FLOAT, "1,300");
    ew_build_init_tensor(&b, "m", EW_PB_FLOAT, "300,7");
    ew_build_node(&b, "MatMul", "x,m", "y");
    ew_build_output(&b, "y");
    struct ew_graph *g = load(&b, NULL);
    char *data = NULL;
    size_t size = 0;
    if (!g)
        return;
    const char *path = ew_test_path("folder.onnx"), *beside = ew_test_path("folder.onnx.data");
    EW_EXPECT(mkdir(path, 0777) == 0);
    EW_EXPECT_OK(ew_file_write(beside, "old", 3));
    EW_EXPECT_ERR(ew_onnx_save(g, path,
                               &(struct ew_onnx_save_opts){.size = sizeof(struct ew_onnx_save_opts),
                                                           .max_bytes = 4096}),
                  EW_ERR_IO, "is a folder");
    if (EW_EXPECT_OK(ew_file_read(beside, 1 << 20, &data, &size)))
        EW_EXPECT_STR(data, "old");
    free(data);
    ew_graph_free(g);
}

/* Many short nodes with large constant results: memory stays bounded. */
static void many_known_values(void)
{
    struct ew_build b;
    ew_build_init(&b);
    ew_build_init_tensor(&b, "n", EW_PB_INT64, "1");
    int64_t *n = (int64_t *)(void *)b.graph.initializer[0]->raw_data.data;
    *n = 4096;
    for (int i = 0; i < 4000; i++) {
        char name[16];
        snprintf(name, sizeof(name), "k%d", i);
        ew_build_node(&b, "ConstantOfShape", "n", name);
    }
    ew_build_output(&b, "k3999");
    struct ew_graph *g = load(&b, NULL);
    if (!g)
        return;
    EW_EXPECT(g->known.used < (size_t)40 << 20);
    ew_graph_free(g);
}

/* Regression: a transpose that only moves axes of size one keeps the bytes in order, so a reshape
 * may read its input; but 0 in the shape then refers to another dimension.  The output was
 * 1x2x2. */
static void zero_behind_transpose(void)
{
    struct ew_build b;
    ew_build_init(&b);
    ew_build_input(&b, "x", EW_PB_FLOAT, "1,2,1,2");
    Ew__OnnxTensor *t = ew_build_init_tensor(&b, "shape", EW_PB_INT64, "3");
    memcpy(t->raw_data.data, (const int64_t[]){0, 0, -1}, 3 * sizeof(int64_t));
    ew_build_ints(&b, ew_build_node(&b, "Transpose", "x", "t"), "perm", "0,2,1,3");
    ew_build_node(&b, "Reshape", "t,shape", "y");
    ew_build_output(&b, "y");
    struct ew_graph *g = load(&b, NULL);
    if (!g)
        return;
    const struct ew_shape *y = &g->values[g->outputs[0]].t.shape;
    EW_EXPECT_INT(y->dim[1], 1);
    EW_EXPECT_INT(y->dim[2], 4);
    EW_EXPECT_NEAR(run_at(g, 3), 4, 0);
    ew_graph_free(g);
}

/* ---- Before opset 7 ---- */

static void old_broadcasting(void)
{
    struct ew_build b;
    ew_build_init(&b);
    b.model.opset_import[0]->version = 6;
    ew_build_input(&b, "x", EW_PB_FLOAT, "2,3,2");
    ew_build_init_tensor(&b, "c", EW_PB_FLOAT, "3"); /* along the middle axis */
    Ew__OnnxNode *n = ew_build_node(&b, "Add", "x,c", "y");
    Ew__OnnxAttr *a = ew_build_attr(&b, n, "broadcast", EW_PB_ATTR_INT);
    a->has_i = true;
    a->i = 1;
    a = ew_build_attr(&b, n, "axis", EW_PB_ATTR_INT);
    a->has_i = true;
    a->i = 1;
    ew_build_output(&b, "y");
    struct ew_graph *g = load(&b, NULL);
    if (!g)
        return;
    EW_EXPECT_NEAR(run_at(g, 5), 6 + 2, 0);
    ew_graph_free(g);
    ew_build_init(&b);
    b.model.opset_import[0]->version = 1;
    ew_build_input(&b, "x", EW_PB_FLOAT, "2,3");
    ew_build_node(&b, "Reshape", "x", "y");
    ew_build_output(&b, "y");
    EW_EXPECT_ERR(ew_onnx_load(ew_build_file(&b, "old.onnx"), NULL, &g), EW_ERR_UNSUPPORTED,
                  "operator Reshape of opset 1 is not supported, only 5 and later");
    ew_build_fini(&b);
}

/* float16 networks, as written for GPUs: convolutions are computed in float32, and their results
 * are rounded to float16. */
static void convolution_of_halves(void)
{
    enum { FLOAT16 = 10 };
    struct ew_build b;
    struct ew_graph *g;
    struct ew_plan *p;
    uint16_t x[9];
    const double want[] = {19, 25, 37, 43}; /* 0 0 + 1 1 + 2 3 + 3 4, ... */
    ew_build_init(&b);
    ew_build_input(&b, "x", FLOAT16, "1,1,3,3");
    ew_build_init_tensor(&b, "w", FLOAT16, "1,1,2,2");
    ew_build_node(&b, "Conv", "x,w", "c");
    ew_build_node(&b, "Relu", "c", "y");
    ew_build_output(&b, "y");
    struct ew_tensor image = {.dtype = EW_F16, .shape = {4, {1, 1, 3, 3}}, .data = x};
    for (int i = 0; i < 9; i++)
        ew_tensor_store(&image, i, 1, &(double){i});
    const struct ew_tensor *in = &image;
    if (EW_EXPECT_OK(ew_onnx_load(ew_build_file(&b, "half.onnx"), NULL, &g)) &&
        EW_EXPECT_OK(ew_run_graph(g, &in, &p))) {
        const struct ew_tensor *y = ew_plan_output(p, 0);
        EW_EXPECT_INT(y->dtype, EW_F16);
        EW_EXPECT_INT(ew_tensor_count(y), 4);
        for (int i = 0; i < 4; i++)
            EW_EXPECT(fabs(ew_tensor_get(y, i) - want[i]) < 1e-9);
        ew_plan_free(p);
        ew_graph_free(g);
    }
    ew_build_fini(&b);
}

/* PyTorch names all five outputs of a batch norm in training mode, and reads only the first. */
static void outputs_that_nothing_reads(void)
{
    for (int read = 0; read < 2; read++) {
        struct ew_build b;
        struct ew_graph *g = NULL;
        ew_build_init(&b);
        ew_build_input(&b, "x", EW_PB_FLOAT, "2,1");
        ew_build_init_tensor(&b, "one", EW_PB_FLOAT, "1");
        ew_build_node(&b, "BatchNormalization", "x,one,one,one,one", "n,mean,var,m,v");
        ew_build_node(&b, "Add", read ? "n,v" : "n,n", "y");
        ew_build_output(&b, "y");
        const char *path = ew_build_file(&b, "model.onnx");
        ew_build_fini(&b);
        if (read)
            EW_EXPECT_ERR(ew_onnx_load(path, NULL, &g), EW_ERR_UNSUPPORTED,
                          "its input v is not computed");
        else
            EW_EXPECT_OK(ew_onnx_load(path, NULL, &g));
        ew_graph_free(g);
    }
}

/* Regression: axes that a change of layout adds have the type of the other lists, as ONNX demands.
 */
static void slices_by_int32(void)
{
    struct ew_build b;
    ew_build_init(&b);
    ew_build_input(&b, "x", EW_PB_FLOAT, "1,2,5,5");
    ew_build_init_tensor(&b, "w", EW_PB_FLOAT, "3,2,1,1");
    Ew__OnnxTensor *ends = ew_build_init_tensor(&b, "ends", EW_PB_INT32, "3");
    memcpy(ends->raw_data.data, (const int32_t[]){1, 2, 3}, 3 * sizeof(int32_t));
    ew_build_node(&b, "Conv", "x,w", "c");
    ew_build_node(&b, "Sub", "ends,ends", "starts");
    ew_build_node(&b, "Slice", "c,starts,ends", "y");
    ew_build_output(&b, "y");
    struct ew_graph *g = load(&b, NULL);
    int slices = 0;
    for (int k = 0; g && k < g->n_nodes; k++) {
        const struct ew_node *n = &g->nodes[k];
        if (strcmp(n->op->name, "slice") != 0)
            continue;
        slices++;
        if (EW_EXPECT_INT(n->n_in, 4))
            EW_EXPECT_INT(g->values[n->in[3]].t.dtype, EW_S32);
    }
    EW_EXPECT_INT(slices, 1);
    ew_graph_free(g);
}

EW_TEST_MAIN(EW_TEST(slices_by_int32), EW_TEST(outputs_that_nothing_reads),
             EW_TEST(nodes_out_of_order), EW_TEST(initializer_is_an_input),
             EW_TEST(open_dimensions), EW_TEST(shape_as_input), EW_TEST(size_through_floats),
             EW_TEST(outputs_keep_their_names), EW_TEST(external_data), EW_TEST(from_memory),
             EW_TEST(one_copy_of_weights), EW_TEST(saved_beside), EW_TEST(not_saved_beside),
             EW_TEST(many_known_values), EW_TEST(old_broadcasting), EW_TEST(zero_behind_transpose),
             EW_TEST(convolution_of_halves))
