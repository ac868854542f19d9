/* SPDX-License-Identifier: Apache-2.0 */
/* All test cases of all operators with an ONNX form: written to a file, read back, the same
 * outputs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "ew_test.h"
#include "onnx_build.h"
#include "op_case.h"
#include "run_graph.h"

/* Tolerances of a round trip: attributes are float32 in files. */
#define RTOL 1e-5
#define ATOL 1e-6

#define MAX_PORTS 16

/* Fills the graph's inputs as the case specifies, in the graph's order. */
static ew_err fill_inputs(const struct ew_graph *g, const struct ew_op_case *k, struct ew_arena *a,
                          struct ew_tensor *t, const struct ew_tensor **list)
{
    for (int i = 0; i < g->n_inputs; i++) {
        const struct ew_value *v = &g->values[g->inputs[i]];
        t[i] = v->t;
        t[i].data = ew_arena_alloc(a, ew_tensor_bytes(&t[i]));
        EW_CHECK(t[i].data, EW_ERR_MEMORY, "no memory");
        ew_case_fill(k, atoi(v->name + 2), &t[i]); /* "in0", "in1", ... */
        list[i] = &t[i];
    }
    return EW_OK;
}

static ew_err compare(struct ew_graph *a, struct ew_graph *b, const struct ew_op_case *k)
{
    struct ew_arena arena EW_CLEANUP(ew_arena_fini);
    ew_arena_init(&arena);
    struct ew_tensor t[MAX_PORTS];
    const struct ew_tensor *list[MAX_PORTS];
    EW_CHECK(a->n_inputs == b->n_inputs && a->n_outputs == b->n_outputs, EW_ERR_ARG,
             "%d inputs and %d outputs became %d and %d", a->n_inputs, a->n_outputs, b->n_inputs,
             b->n_outputs);
    struct ew_plan *p = NULL, *q = NULL;
    ew_err e = fill_inputs(a, k, &arena, t, list);
    if (e == EW_OK)
        e = ew_run_graph(a, list, &p);
    if (e == EW_OK)
        e = ew_run_graph(b, list, &q);
    for (int i = 0; e == EW_OK && i < a->n_outputs; i++)
        e = ew_tensors_agree(ew_plan_output(q, i), ew_plan_output(p, i), RTOL, ATOL);
    ew_plan_free(p);
    ew_plan_free(q);
    return e;
}

static ew_err round_trip(const struct ew_op *op, const struct ew_op_case *k)
{
    const char *path = ew_test_path("case.onnx");
    struct ew_graph *g, *back;
    EW_TRY(ew_case_graph(op, k, false, &g));
    for (int i = 0; i < g->n_inputs; i++)
        g->values[g->inputs[i]].dynamic = 0; /* dimension 0 of a case is not a batch */
    ew_err e = ew_onnx_save(g, path, NULL);
    if (e == EW_ERR_UNSUPPORTED) {
        ew_test_skip("%s", ew_error_message()); /* refused by name: ONNX has no such form */
        ew_graph_free(g);
        return EW_OK;
    }
    if (e == EW_OK)
        e = ew_onnx_load(path, NULL, &back);
    if (e == EW_OK) {
        e = compare(g, back, k);
        ew_graph_free(back);
    }
    ew_graph_free(g);
    return e;
}

/* Names, kinds and the open batch are kept too. */
static void keeps_names(void)
{
    struct ew_graph *g, *back;
    const struct ew_shape s = {4, {1, 3, 5, 7}};
    int x, y;
    EW_EXPECT_OK(ew_graph_new("net", &g));
    EW_EXPECT_OK(ew_graph_input(g, "image", EW_F32, &s, &x));
    EW_EXPECT_OK(ew_graph_add(g, ew_op_find("relu"), "act", NULL, EW_INPUTS(x), &y));
    EW_EXPECT_OK(ew_graph_rename(g, y, "scores"));
    EW_EXPECT_OK(ew_graph_output(g, y));
    const char *path = ew_test_path("names.onnx");
    if (!EW_EXPECT_OK(ew_onnx_save(g, path, NULL)) ||
        !EW_EXPECT_OK(ew_onnx_load(path, NULL, &back)))
        return;
    EW_EXPECT_STR(back->name, "net");
    EW_EXPECT_STR(back->values[back->inputs[0]].name, "image");
    EW_EXPECT_STR(back->values[back->outputs[0]].name, "scores");
    EW_EXPECT_STR(back->nodes[0].name, "act");
    EW_EXPECT_INT(back->values[back->inputs[0]].dynamic, 1);
    EW_EXPECT_OK(ew_graph_set_batch(back, 4));
    EW_EXPECT_INT(back->values[back->outputs[0]].t.shape.dim[0], 4);
    ew_graph_free(back);
    EW_EXPECT_OK(ew_onnx_save(
        g, path,
        &(struct ew_onnx_save_opts){.size = sizeof(struct ew_onnx_save_opts), .batch = 2}));
    if (EW_EXPECT_OK(ew_onnx_load(path, NULL, &back))) {
        EW_EXPECT_INT(back->values[back->inputs[0]].dynamic, 0);
        EW_EXPECT_INT(back->values[back->inputs[0]].t.shape.dim[0], 2);
        ew_graph_free(back);
    }
    ew_graph_free(g);
}

/* A convolution's filter changes its layout at import and export, but keeps its name; so does an
 * output that is transposed there. */
static void keeps_weight_names(void)
{
    struct ew_build b;
    ew_build_small(&b);
    b.graph.node[1]->name = ew_build_text(&b, "y"); /* node and value with the same name */
    const char *path = ew_build_file(&b, "weights.onnx");
    for (int trip = 0; trip < 3; trip++) {
        struct ew_graph *g;
        if (!EW_EXPECT_OK(ew_onnx_load(path, NULL, &g)))
            break;
        const int w = ew_graph_find(g, "w");
        if (EW_EXPECT(w >= 0)) {
            EW_EXPECT_INT(g->values[w].kind, EW_VALUE_PARAM);
            EW_EXPECT_INT(g->values[w].t.shape.dim[3], 2); /* channels-last */
        }
        EW_EXPECT(ew_graph_find(g, "b") >= 0);
        EW_EXPECT_STR(g->values[g->inputs[0]].name, "x");
        EW_EXPECT_STR(g->values[g->outputs[0]].name, "y");
        EW_EXPECT_OK(ew_onnx_save(g, path, NULL));
        ew_graph_free(g);
    }
    ew_build_fini(&b);
}

/* Regression: an exported MobileNetV2 from PyTorch had Pad's two absent inputs at its end, only one
 * of which exists in opset 13: ONNX Runtime refused the file. */
static void leaves_out_absent_inputs(void)
{
    struct ew_graph *g;
    const struct ew_shape s = {2, {3, 5}};
    int in[] = {-1, -1, -1, -1}, y;
    EW_EXPECT_OK(ew_graph_new("net", &g));
    EW_EXPECT_OK(ew_graph_input(g, "x", EW_F32, &s, &in[0]));
    EW_EXPECT_OK(ew_graph_const_ints(g, "pads", (const int64_t[]){1, 0, 0, 2}, 4, &in[1]));
    EW_EXPECT_OK(ew_graph_add(g, ew_op_find("pad"), "pad", NULL, ew_inputs(in, 4), &y));
    EW_EXPECT_OK(ew_graph_output(g, y));
    const char *path = ew_test_path("absent.onnx");
    char *bytes = NULL;
    size_t size = 0;
    EW_EXPECT_OK(ew_onnx_save(g, path, NULL));
    ew_graph_free(g);
    if (!EW_EXPECT_OK(ew_file_read(path, 1 << 20, &bytes, &size)))
        return;
    Ew__OnnxModel *m = ew__onnx_model__unpack(NULL, size, (const uint8_t *)bytes);
    if (EW_EXPECT(m && m->graph->n_node == 1))
        EW_EXPECT_INT(m->graph->node[0]->n_input, 2);
    if (m)
        ew__onnx_model__free_unpacked(m, NULL);
    free(bytes);
}

int main(int argc, char **argv)
{
    ew_test_begin("keeps_names");
    keeps_names();
    ew_test_end();
    ew_test_begin("leaves_out_absent_inputs");
    leaves_out_absent_inputs();
    ew_test_end();
    ew_test_begin("keeps_weight_names");
    keeps_weight_names();
    ew_test_end();
    for (int i = 0; i < ew_op_count(); i++) {
        const struct ew_op *op = ew_op_at(i);
        if (!op->onnx.type && !op->onnx.export && !op->onnx.expand)
            continue; /* an operator of our own */
        if (argc > 1 && strcmp(argv[1], op->name) != 0)
            continue;
        for (int c = 0; c < op->n_cases; c++) {
            ew_test_begin("%s: %s", op->name, op->cases[c].name);
            EW_EXPECT_OK(round_trip(op, &op->cases[c]));
            ew_test_end();
        }
    }
    return ew_test_status();
}
