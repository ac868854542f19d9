/* SPDX-License-Identifier: Apache-2.0 */
/* Invalid ONNX files: each gives one line that names the file and the tensor or node, and no
 * harm. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "ew_test.h"
#include "format/onnx_import.h"
#include "onnx_build.h"

/* The model as a file must be refused with this code; the message has the file's name and
 * `text`. */
static void refused(struct ew_build *b, ew_err code, const char *text)
{
    const char *path = ew_build_file(b, "bad.onnx");
    struct ew_graph *g = NULL;
    if (!EW_EXPECT_ERR(ew_onnx_load(path, NULL, &g), code, text)) {
        ew_graph_free(g);
        return;
    }
    EW_EXPECT_HAS(ew_error_message(), "bad.onnx: ");
    EW_EXPECT(!strchr(ew_error_message(), '\n'));
}

/* The edited small model must be refused. */
#define REFUSED(code, text, ...)                                                                   \
    do {                                                                                           \
        struct ew_build b;                                                                         \
        ew_build_small(&b);                                                                        \
        Ew__OnnxNode *conv = b.graph.node[0], *relu = b.graph.node[1];                             \
        Ew__OnnxTensor *w = b.graph.initializer[0];                                                \
        (void)conv, (void)relu, (void)w;                                                           \
        __VA_ARGS__;                                                                               \
        refused(&b, code, text);                                                                   \
        ew_build_fini(&b);                                                                         \
    } while (0)

static void the_small_model_is_good(void)
{
    struct ew_build b;
    ew_build_small(&b);
    struct ew_graph *g;
    if (EW_EXPECT_OK(ew_onnx_load(ew_build_file(&b, "good.onnx"), NULL, &g)))
        ew_graph_free(g);
    ew_build_fini(&b);
}

static void truncated(void)
{
    struct ew_build b;
    ew_build_small(&b);
    size_t size;
    const uint8_t *bytes = ew_build_pack(&b, &size);
    for (size_t n = 0; n < size; n++) {
        struct ew_graph *g;
        if (!EW_EXPECT(ew_onnx_parse(bytes, n, "cut.onnx", NULL, &g) != EW_OK)) {
            ew_graph_free(g);
            break;
        }
        EW_EXPECT_HAS(ew_error_message(), "cut.onnx: ");
    }
    ew_build_fini(&b);
}

static void not_onnx(void)
{
    struct ew_graph *g;
    const char *path = ew_test_file("text.onnx", "name: \"not a model\"\n", 20);
    EW_EXPECT_ERR(ew_onnx_load(path, NULL, &g), EW_ERR_FORMAT, "text.onnx: is damaged, or not");
    path = ew_test_file("empty.onnx", "", 0);
    EW_EXPECT_ERR(ew_onnx_load(path, NULL, &g), EW_ERR_FORMAT, "empty.onnx: the file is empty");
    EW_EXPECT_ERR(ew_onnx_load("/nowhere/x.onnx", NULL, &g), EW_ERR_NOT_FOUND, "/nowhere/x.onnx");
    EW_EXPECT_ERR(ew_onnx_load(ew_test_dir(), NULL, &g), EW_ERR_IO, "folder");
}

static void versions(void)
{
    REFUSED(EW_ERR_FORMAT, "no graph", b.model.graph = NULL);
    REFUSED(EW_ERR_UNSUPPORTED, "IR version 14", b.model.ir_version = 14);
    REFUSED(EW_ERR_UNSUPPORTED, "opset 25", b.model.opset_import[0]->version = 25);
    REFUSED(EW_ERR_FORMAT, "node conv1: the file names no opset", b.model.n_opset_import = 0);
    REFUSED(EW_ERR_FORMAT, "no opset for domain \"com.x\"",
            relu->domain = ew_build_text(&b, "com.x"));
}

static void wiring(void)
{
    REFUSED(EW_ERR_UNSUPPORTED, "operator Frobnicate (ai.onnx, opset 13) of node act1 is not",
            relu->op_type = ew_build_text(&b, "Frobnicate"));
    REFUSED(EW_ERR_FORMAT, "node act1: nothing defines its input q",
            relu->input[0] = ew_build_text(&b, "q"));
    REFUSED(EW_ERR_FORMAT, "value c is defined twice", relu->output[0] = ew_build_text(&b, "c"));
    REFUSED(EW_ERR_FORMAT, "value w is defined twice",
            b.graph.initializer[1]->name = ew_build_text(&b, "w"));
    REFUSED(EW_ERR_FORMAT, "value x is defined twice", ew_build_input(&b, "x", EW_PB_FLOAT, "1"));
    REFUSED(EW_ERR_FORMAT, "nothing defines output z",
            b.graph.output[0]->name = ew_build_text(&b, "z"));
    REFUSED(EW_ERR_FORMAT, "no outputs", b.graph.n_output = 0);
    REFUSED(EW_ERR_FORMAT, "node act1 (Relu): has no outputs", relu->n_output = 0;
            b.graph.output[0]->name = ew_build_text(&b, "c"));
    REFUSED(EW_ERR_FORMAT, "initializer 0 has no name", w->name = NULL);
    REFUSED(EW_ERR_FORMAT, "input 0 has no name", b.graph.input[0]->name = NULL);
    REFUSED(EW_ERR_FORMAT, "are part of a cycle", conv->input[0] = ew_build_text(&b, "y"));
    REFUSED(EW_ERR_FORMAT, "nodes act1 and act1 are part of a cycle",
            relu->input[0] = ew_build_text(&b, "y"));
}

/* Names are untrusted: they cannot break the line or move the cursor. */
static void hostile_names(void)
{
    REFUSED(EW_ERR_FORMAT, "node a?b?[31m: nothing defines its input q?",
            relu->name = ew_build_text(&b, "a\nb\x1b[31m");
            relu->input[0] = ew_build_text(&b, "q\t"));
}

static void tensors(void)
{
    REFUSED(EW_ERR_SHAPE, "w", w->dims[0] = -3);
    REFUSED(EW_ERR_FORMAT, "tensor w is 3x2x3x4 of float32, but has 216 bytes", w->dims[3] = 4);
    REFUSED(EW_ERR_LIMIT, "w", w->dims[0] = w->dims[1] = (int64_t)1 << 62);
    REFUSED(EW_ERR_LIMIT, "w", w->dims[0] = (int64_t)1 << 41);
    REFUSED(EW_ERR_FORMAT, "tensor w is 549755813888x2x1x1 of float32, but has 216 bytes",
            w->dims[0] = (int64_t)1 << 39;
            w->dims[2] = w->dims[3] = 1);
    REFUSED(EW_ERR_LIMIT, "tensor w has 9 dimensions", w->n_dims = 9);
    REFUSED(EW_ERR_UNSUPPORTED, "tensor w has elements of type string (8)",
            w->data_type = EW_PB_STRING);
    REFUSED(EW_ERR_UNSUPPORTED, "tensor w has elements of type unknown (99)", w->data_type = 99);
    REFUSED(EW_ERR_UNSUPPORTED, "tensor w has elements of type undefined (0)",
            w->has_data_type = false);
    REFUSED(EW_ERR_FORMAT, "tensor w is 3x2x3x3 of float32, but has 0 values",
            w->has_raw_data = false);
    REFUSED(EW_ERR_FORMAT, "tensor w is 3x2x3x3 of int64, but has 216 bytes",
            w->data_type = EW_PB_INT64);
    REFUSED(EW_ERR_UNSUPPORTED, "sparse initializers",
            ew_build_unknown(&b, &b.graph.base, 15, "?"));
}

static void nodes(void)
{
    REFUSED(EW_ERR_TYPE, "node conv1 (conv)", {
        w = ew_build_init_tensor(&b, "ints", EW_PB_INT64, "3,2,3,3");
        conv->input[1] = ew_build_text(&b, "ints");
    });
    REFUSED(EW_ERR_SHAPE, "node conv1 (conv)",
            b.graph.input[0]->type->tensor_type->shape->dim[1]->dim_value = 5);
    REFUSED(EW_ERR_TYPE, "node conv1 (Conv): attribute strides is a float",
            ew_build_attr(&b, conv, "strides", EW_PB_ATTR_FLOAT));
    REFUSED(EW_ERR_UNSUPPORTED, "node act1 (Relu): attribute body is not supported",
            ew_build_unknown(&b, &ew_build_attr(&b, relu, "body", EW_PB_ATTR_GRAPH)->base, 6, "?"));
    REFUSED(EW_ERR_FORMAT, "attribute pads is there twice",
            ew_build_ints(&b, conv, "pads", "1,1,1,1"));
    REFUSED(EW_ERR_LIMIT, "has 30 attributes",
            for (int i = 0; i < 29; i++) ew_build_ints(&b, conv, "pads", "1"));
    REFUSED(EW_ERR_FORMAT, "belongs to a function",
            ew_build_attr(&b, conv, "group", EW_PB_ATTR_INT)->ref_attr_name =
                ew_build_text(&b, "g"));
    REFUSED(EW_ERR_ARG, "node conv1 (Conv)", conv->n_input = 1);
}

/* Attributes at the ends of their range: refused or accepted, but sizes never overflow. */
static void extreme_attributes(void)
{
    static const char *const names[] = {"pads", "strides", "dilations", "kernel_shape"};
    static const char *const values[] = {"9223372036854775807,9223372036854775807",
                                         "-9223372036854775807,1",
                                         "4611686018427387904,4611686018427387904,1,1",
                                         "1099511627776,1099511627776,1099511627776,1099511627776",
                                         "0,0",
                                         "-1,-1,-1,-1",
                                         "",
                                         "3,3,3,3,3,3,3,3,3,3,3"};
    for (size_t i = 0; i < EW_COUNT(names) * EW_COUNT(values) * 2; i++) {
        struct ew_build b;
        ew_build_small(&b);
        Ew__OnnxNode *n = b.graph.node[0];
        if (i % 2) { /* alternately a pool */
            n->op_type = ew_build_text(&b, "MaxPool");
            n->n_input = 1;
        }
        n->n_attribute = 0;
        ew_build_ints(&b, n, names[i / 2 % 4], values[i / 8]);
        if (i % 2 && i / 2 % 4 != 3)
            ew_build_ints(&b, n, "kernel_shape", "3,3");
        struct ew_graph *g;
        size_t size;
        const uint8_t *bytes = ew_build_pack(&b, &size);
        if (ew_onnx_parse(bytes, size, "extreme.onnx", NULL, &g) == EW_OK)
            ew_graph_free(g);
        ew_build_fini(&b);
    }
}

static void inputs(void)
{
    REFUSED(EW_ERR_UNSUPPORTED, "input x: dimension 2 (D) is open",
            Ew__OnnxDim *d = b.graph.input[0]->type->tensor_type->shape->dim[2];
            d->has_dim_value = false; d->dim_param = ew_build_text(&b, "D"));
    REFUSED(EW_ERR_UNSUPPORTED, "input x has no shape",
            b.graph.input[0]->type->tensor_type->shape = NULL);
    REFUSED(EW_ERR_UNSUPPORTED, "input x is not a tensor", b.graph.input[0]->type = NULL);
    REFUSED(EW_ERR_UNSUPPORTED, "input x has elements of type string (8)",
            b.graph.input[0]->type->tensor_type->elem_type = EW_PB_STRING);
    REFUSED(EW_ERR_SHAPE, "x", b.graph.input[0]->type->tensor_type->shape->dim[2]->dim_value = -5);
    REFUSED(EW_ERR_LIMIT, "x",
            b.graph.input[0]->type->tensor_type->shape->dim[2]->dim_value = (int64_t)1 << 60);
}

static void given_shapes(void)
{
    struct ew_build b;
    struct ew_graph *g;
    ew_build_small(&b);
    const char *path = ew_build_file(&b, "given.onnx");
    const int64_t three[] = {1, 2, 5}, other[] = {1, 2, 6, 5};
    struct ew_onnx_input in = {.name = "x", .rank = 3, .dims = three};
    const struct ew_onnx_opts opts = {sizeof(opts), &in, 1};
    EW_EXPECT_ERR(ew_onnx_load(path, &opts, &g), EW_ERR_SHAPE, "input x has 4 dimensions");
    in.rank = 4;
    in.dims = other;
    EW_EXPECT_ERR(ew_onnx_load(path, &opts, &g), EW_ERR_SHAPE, "input x: dimension 2 is 5");
    in.dtype = "int8";
    EW_EXPECT_ERR(ew_onnx_load(path, &opts, &g), EW_ERR_TYPE, "input x is float32, given is int8");
    ew_build_fini(&b);
}

/* ---- External data ---- */

static void external_data(void)
{
    const char zeros[216] = {0};
    ew_test_file("w.bin", zeros, sizeof(zeros));
    EW_EXPECT_INT(symlink("/etc/passwd", ew_test_path("link.bin")), 0);
    REFUSED(EW_ERR_NOT_FOUND, "tensor w: external data gone.bin",
            ew_build_external(&b, w, "gone.bin", NULL, NULL));
    REFUSED(EW_ERR_FORMAT, "tensor w: external data ../w.bin is outside",
            ew_build_external(&b, w, "../w.bin", NULL, NULL));
    REFUSED(EW_ERR_FORMAT, "outside", ew_build_external(&b, w, "/etc/passwd", NULL, NULL));
    REFUSED(EW_ERR_FORMAT, "outside", ew_build_external(&b, w, "link.bin", NULL, NULL));
    REFUSED(EW_ERR_FORMAT, "external data .", ew_build_external(&b, w, ".", NULL, NULL));
    REFUSED(EW_ERR_FORMAT, "w.bin has 216 bytes, 216 at 8 are needed",
            ew_build_external(&b, w, "w.bin", "8", NULL));
    REFUSED(EW_ERR_FORMAT, "at 9223372036854775807 are needed",
            ew_build_external(&b, w, "w.bin", "9223372036854775807", NULL));
    REFUSED(EW_ERR_FORMAT, "external data has offset \"-1\"",
            ew_build_external(&b, w, "w.bin", "-1", NULL));
    REFUSED(EW_ERR_FORMAT, "external data has length \"many\"",
            ew_build_external(&b, w, "w.bin", NULL, "many"));
    REFUSED(EW_ERR_FORMAT, "its external data has length 8",
            ew_build_external(&b, w, "w.bin", NULL, "8"));
    REFUSED(EW_ERR_FORMAT, "without a location", ew_build_external(&b, w, NULL, NULL, NULL));
    REFUSED(EW_ERR_FORMAT, "more is taken from external data w.bin than it has", {
        ew_build_external(&b, w, "w.bin", NULL, NULL);
        ew_build_external(&b, b.graph.initializer[1], "w.bin", "4", NULL);
    });
}

/* ---- Files that cause large allocations ---- */

/* A graph in many pieces, which protobuf-c merges by copying lists repeatedly. */
static void graph_in_pieces(void)
{
    struct ew_build b;
    ew_build_init(&b);
    ew_build_node(&b, "Relu", "a", "b");
    size_t size;
    const uint8_t *bytes = ew_build_pack(&b, &size);
    const size_t pieces = 20000;
    uint8_t *all = malloc(size * pieces);
    if (!EW_EXPECT(all))
        return;
    for (size_t i = 0; i < pieces; i++)
        memcpy(all + i * size, bytes, size);
    struct ew_graph *g;
    EW_EXPECT_ERR(ew_onnx_parse(all, size * pieces, "pieces.onnx", NULL, &g), EW_ERR_FORMAT,
                  "far more memory");
    free(all);
    ew_build_fini(&b);
}

/* Two bytes each in the file, but a large struct in memory. */
static void empty_attributes(void)
{
    const size_t n = 1000000;
    uint8_t *all = malloc(2 * n + 32);
    if (!EW_EXPECT(all))
        return;
    /* model { graph { node { attribute {} ... } } } with lengths of four bytes each */
    const size_t node = 2 * n, graph = node + 5;
    uint8_t *p = all;
    *p++ = 7 << 3 | 2;
    for (int i = 0; i < 4; i++)
        *p++ = (uint8_t)((graph >> (7 * i) & 127) | (i < 3 ? 128 : 0));
    *p++ = 1 << 3 | 2;
    for (int i = 0; i < 4; i++)
        *p++ = (uint8_t)((node >> (7 * i) & 127) | (i < 3 ? 128 : 0));
    for (size_t i = 0; i < n; i++) {
        *p++ = 5 << 3 | 2;
        *p++ = 0;
    }
    struct ew_graph *g;
    EW_EXPECT_ERR(ew_onnx_parse(all, (size_t)(p - all), "attrs.onnx", NULL, &g), EW_ERR_FORMAT,
                  "far more memory");
    free(all);
}

EW_TEST_MAIN(EW_TEST(the_small_model_is_good), EW_TEST(truncated), EW_TEST(not_onnx),
             EW_TEST(versions), EW_TEST(wiring), EW_TEST(hostile_names), EW_TEST(tensors),
             EW_TEST(nodes), EW_TEST(extreme_attributes), EW_TEST(inputs), EW_TEST(given_shapes),
             EW_TEST(external_data), EW_TEST(graph_in_pieces), EW_TEST(empty_attributes))
