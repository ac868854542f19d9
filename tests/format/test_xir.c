/* SPDX-License-Identifier: Apache-2.0 */
/* XIR files: written, read back, the same bits on the emulated DPU; and networks that are
 * refused. */
#include <string.h>

#include "base/file.h"
#include "compress/pass.h"
#include "edgewise.h"
#include "ew_test.h"
#include "format/xir.h"
#include "graph/layout.h"
#include "plan/plan.h"
#include "quant_graph.h"
#include "xir.pb-c.h"

static struct ew_plan *compile(struct ew_graph *g)
{
    struct ew_plan *p = NULL;
    const struct ew_plan_opts o = {.optimize = true, .backend = {.device = "dpu", .threads = 1}};
    EW_EXPECT_OK(ew_plan_compile(g, &o, &p));
    return p;
}

/* Both networks must give the same bits; `first`: the input of a is [N, C, H, W]. */
static void same_bits(struct ew_graph *a, struct ew_graph *b, bool first)
{
    static const int to_last[] = {0, 2, 3, 1};
    struct ew_plan *want = compile(a), *got = compile(b);
    if (want && got) {
        struct ew_tensor *x = ew_plan_input(want, 0), *y = ew_plan_input(got, 0);
        ew_quant_input(x, 1);
        if (first)
            ew_tensor_permute(x, to_last, y);
        else
            memcpy(y->data, x->data, ew_tensor_bytes(x));
        EW_EXPECT_OK(ew_plan_run(want));
        EW_EXPECT_OK(ew_plan_run(got));
        const struct ew_tensor *v = ew_plan_output(want, 0), *w = ew_plan_output(got, 0);
        EW_EXPECT_INT((long long)ew_tensor_bytes(v), (long long)ew_tensor_bytes(w));
        EW_EXPECT_INT(memcmp(v->data, w->data, ew_tensor_bytes(v)), 0);
    }
    ew_plan_free(want);
    ew_plan_free(got);
}

static void networks(void)
{
    static const struct {
        const char *name;
        int size;
    } nets[] = {{"lenet5", 0},        {"resnet18", 32},           {"squeezenet1_1", 48},
                {"mobilenet_v2", 32}, {"mobilenet_v3_small", 32}, {"shufflenet_v2_x0_5", 64}};
    const char *path = ew_test_path("net.xmodel");
    for (size_t i = 0; i < EW_COUNT(nets); i++) {
        struct ew_graph *g = ew_quant_graph_pow2(nets[i].name, nets[i].size), *back = NULL;
        ew_test_begin("%s", nets[i].name);
        if (g && EW_EXPECT_OK(ew_xir_save(g, path, 1)) && EW_EXPECT_OK(ew_xir_load(path, &back))) {
            same_bits(g, back, false);
            EW_EXPECT_OK(ew_graph_set_batch(back, 3)); /* the file's batch is only the initial
                                                        * one */
            EW_EXPECT_INT(back->values[back->outputs[0]].t.shape.dim[0], 3);
        }
        ew_graph_free(back);
        ew_graph_free(g);
        ew_test_end();
    }
}

/* An ONNX file has channels-first images: the transpose after the input is not in the XIR file,
 * whose input is channels-last. */
static void from_onnx(void)
{
    const char *onnx = ew_test_path("net.onnx"), *xir = ew_test_path("net.xmodel");
    struct ew_graph *g = ew_quant_graph_pow2("lenet5", 0), *file = NULL, *back = NULL;
    if (g && EW_EXPECT_OK(ew_onnx_save(g, onnx, NULL)) &&
        EW_EXPECT_OK(ew_onnx_load(onnx, NULL, &file)) && EW_EXPECT_OK(ew_xir_save(file, xir, 2)) &&
        EW_EXPECT_OK(ew_xir_load(xir, &back))) {
        EW_EXPECT(back->values[back->inputs[0]].channels_last);
        EW_EXPECT_INT(back->values[back->inputs[0]].t.shape.dim[0], 2);
        EW_EXPECT_OK(ew_graph_set_batch(back, 1));
        same_bits(file, back, true);
    }
    ew_graph_free(back);
    ew_graph_free(file);
    ew_graph_free(g);
}

/* A clip between quantiser and dequantiser is dropped by the round trip. */
static void qcdq(void)
{
    const char *path = ew_test_path("net.onnx");
    struct ew_graph *g = ew_quant_graph_pow2("lenet5", 0), *form = NULL, *back = NULL;
    int clips = 0;
    if (g && EW_EXPECT_OK(ew_graph_clone(g, &form)) && EW_EXPECT_OK(ew_pass_qcdq(form))) {
        for (int k = 0; k < form->n_nodes; k++)
            clips += strcmp(form->nodes[k].op->name, "clip") == 0;
        EW_EXPECT(clips >= 10);
        same_bits(g, form, false);
        if (EW_EXPECT_OK(ew_onnx_save(form, path, NULL)) &&
            EW_EXPECT_OK(ew_onnx_load(path, NULL, &back))) {
            EW_EXPECT_OK(ew_pass_lower_dpu(back));
            for (int k = 0; k < back->n_nodes; k++)
                EW_EXPECT(strcmp(back->nodes[k].op->name, "clip") != 0);
        }
    }
    ew_graph_free(back);
    ew_graph_free(form);
    ew_graph_free(g);
}

static void other_scales_are_refused(void)
{
    const char *path = ew_test_path("net.xmodel");
    struct ew_graph *g = ew_quant_graph("lenet5", 0, true), *f = NULL;
    struct ew_model_opts o = {.size = sizeof(o), .classes = 10};
    if (g) {
        EW_EXPECT_ERR(ew_xir_save(g, path, 1), EW_ERR_UNSUPPORTED, "--scheme pow2");
        EW_EXPECT_ERR(ew_pass_explicit_pow2(g), EW_ERR_UNSUPPORTED, "--scheme pow2");
    }
    if (EW_EXPECT_OK(ew_model_build("lenet5", &o, &f)) &&
        EW_EXPECT_OK(ew_model_init("lenet5", 3, f))) {
        EW_EXPECT_ERR(ew_xir_save(f, path, 1), EW_ERR_UNSUPPORTED, "nothing in it is quantised");
        EW_EXPECT_ERR(ew_pass_qcdq(f), EW_ERR_UNSUPPORTED, "nothing in it is quantised");
    }
    ew_graph_free(g);
    ew_graph_free(f);
}

/* ---- Invalid files ---- */

struct file {
    Ew__XirGraph graph;
    Ew__XirOp op[2], *list[2];
    Ew__XirTensor tensor[2];
    uint32_t dims[2];
    Ew__XirArg arg, *args[1];
    char *from[1];
};

/* Packing only reads what it is given. */
static char *text(const char *s)
{
    return (char *)(uintptr_t)s;
}

/* data [1, 4], then relu. */
static void make(struct file *f)
{
    *f = (struct file){.dims = {1, 4}, .from = {text("x")}};
    ew__xir_graph__init(&f->graph);
    ew__xir_arg__init(&f->arg);
    f->arg.arg_name = text("input");
    f->arg.arg_ops = f->from;
    f->arg.n_arg_ops = 1;
    f->args[0] = &f->arg;
    for (int i = 0; i < 2; i++) {
        ew__xir_op__init(&f->op[i]);
        ew__xir_tensor__init(&f->tensor[i]);
        f->op[i].op_name = text(i ? "y" : "x");
        f->op[i].op_type = text(i ? "relu" : "data");
        f->op[i].output_tensor = &f->tensor[i];
        f->tensor[i].tensor_dim = f->dims;
        f->tensor[i].n_tensor_dim = 2;
        f->tensor[i].has_data_type = f->tensor[i].has_tensor_bit_width = true;
        f->tensor[i].data_type = 4;
        f->tensor[i].tensor_bit_width = 32;
        f->list[i] = &f->op[i];
    }
    f->op[1].args = f->args;
    f->op[1].n_args = 1;
    f->graph.op_node = f->list;
    f->graph.n_op_node = 2;
}

static ew_err parse(const struct file *f)
{
    uint8_t bytes[512];
    struct ew_graph *g = NULL;
    const size_t n = ew__xir_graph__get_packed_size(&f->graph);
    EW_CHECK(n <= sizeof(bytes), EW_ERR_LIMIT, "too large");
    ew__xir_graph__pack(&f->graph, bytes);
    const ew_err e = ew_xir_parse(bytes, n, "f.xmodel", &g);
    if (e == EW_OK)
        ew_graph_free(g);
    return e;
}

static void wrong_files(void)
{
    struct file f;
    struct ew_graph *g;
    make(&f);
    EW_EXPECT_OK(parse(&f));
    f.from[0] = text("z");
    EW_EXPECT_ERR(parse(&f), EW_ERR_FORMAT, "reads z, which nothing before it makes");
    make(&f);
    f.op[1].op_type = text("conv2d-fix");
    EW_EXPECT_ERR(parse(&f), EW_ERR_UNSUPPORTED, "y (conv2d-fix): this type of operator");
    make(&f);
    f.op[1].op_name = text("x");
    EW_EXPECT_ERR(parse(&f), EW_ERR_FORMAT, "two operators of that name");
    make(&f);
    f.tensor[1].n_tensor_dim = 1;
    EW_EXPECT_ERR(parse(&f), EW_ERR_FORMAT, "its shape is not what its inputs give");
    make(&f);
    f.op[0].op_type = text("const");
    EW_EXPECT_ERR(parse(&f), EW_ERR_FORMAT, "0 bytes of data, its shape says 16");
    make(&f);
    f.tensor[0].data_type = 2;
    EW_EXPECT_ERR(parse(&f), EW_ERR_UNSUPPORTED, "only float32 is read");
    make(&f);
    f.op[1].op_type = text("fix");
    EW_EXPECT_ERR(parse(&f), EW_ERR_UNSUPPORTED, "only signed 8 are read");
    EW_EXPECT_ERR(ew_xir_parse("\377", 1, "f.xmodel", &g), EW_ERR_FORMAT, "f.xmodel: is damaged");
    EW_EXPECT_ERR(ew_xir_parse("", 0, "f.xmodel", &g), EW_ERR_FORMAT, "empty");
}

EW_TEST_MAIN(EW_TEST(networks), EW_TEST(from_onnx), EW_TEST(qcdq),
             EW_TEST(other_scales_are_refused), EW_TEST(wrong_files))
