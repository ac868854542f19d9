/* SPDX-License-Identifier: Apache-2.0 */
/* QDQ networks, as integers and as the floats that they represent. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cpu/isa.h"
#include "compress/pass.h"
#include "edgewise.h"
#include "ew_test.h"
#include "plan/plan.h"
#include "quant_graph.h"
#include "run_graph.h"

static const struct {
    const char *name;
    int size;
} networks[] = {{"lenet5", 0},
                {"resnet18", 32},
                {"squeezenet1_1", 48},
                {"densenet121", 32},
                {"shufflenet_v2_x0_5", 40},
                {"mobilenet_v2", 40},
                {"mobilenet_v3_small", 40}};

static struct ew_plan *run(struct ew_graph *g, bool optimize, bool reference, int threads)
{
    struct ew_plan *p = NULL;
    const struct ew_plan_opts o = {.optimize = optimize,
                                   .backend = {.threads = threads, .reference = reference}};
    if (!EW_EXPECT_OK(ew_plan_compile(g, &o, &p)))
        return NULL;
    ew_quant_input(ew_plan_input(p, 0), 1);
    EW_EXPECT_OK(ew_plan_run(p));
    return p;
}

static bool same_bits(struct ew_plan *a, struct ew_plan *b)
{
    const struct ew_tensor *x = ew_plan_output(a, 0), *y = ew_plan_output(b, 0);
    return ew_tensor_bytes(x) == ew_tensor_bytes(y) &&
           memcmp(x->data, y->data, ew_tensor_bytes(x)) == 0;
}

static int count(const struct ew_graph *g, const char *op)
{
    int n = 0;
    for (int k = 0; k < g->n_nodes; k++)
        n += strcmp(g->nodes[k].op->name, op) == 0;
    return n;
}

/* A float between two integers may be rounded either way, and later layers see that: 5 % of the
 * largest output after tens of layers with random weights. */
static void integers_stand_for_floats(const char *name, struct ew_graph *g)
{
    struct ew_plan *floats = run(g, false, false, 1), *ints = run(g, true, false, 1);
    ew_test_begin("%s: integers against floats", name);
    if (EW_EXPECT(floats && ints)) {
        const double d = ew_tensor_distance(ew_plan_output(floats, 0), ew_plan_output(ints, 0));
        if (!(d < 0.05))
            EW_FAIL("differs by %g of the largest", d);
    }
    ew_test_end();
    ew_plan_free(floats);
    ew_plan_free(ints);
}

/* Every instruction set, one thread and two: the references' bits. */
static void all_agree(const char *name, struct ew_graph *g)
{
    unsetenv("EW_ISA");
    struct ew_plan *want = run(g, true, true, 1);
    for (int i = 0; want && ew_isa_at(i); i++) {
        ew_test_begin("%s: %s", name, ew_isa_at(i)->isa);
        setenv("EW_ISA", ew_isa_at(i)->isa, 1);
        struct ew_plan *one = run(g, true, false, 1), *two = run(g, true, false, 2);
        EW_EXPECT(one && two && same_bits(want, one) && same_bits(want, two));
        ew_plan_free(one);
        ew_plan_free(two);
        ew_test_end();
    }
    unsetenv("EW_ISA");
    ew_plan_free(want);
}

/* After lowering: no float layer, no conversion between integer layers. */
static void nothing_is_left(const char *name, int size, bool is_signed)
{
    struct ew_graph *g = ew_quant_graph(name, size, is_signed);
    ew_test_begin("%s%s: nothing is left in float", name, is_signed ? ", int8" : "");
    if (EW_EXPECT(g) && EW_EXPECT_OK(ew_pass_all(g))) {
        static const char *const gone[] = {"conv", "gemm",        "relu",     "clip",
                                           "add",  "qlinear_add", "transpose"};
        for (size_t i = 0; i < EW_COUNT(gone); i++)
            EW_EXPECT_INT(count(g, gone[i]), 0);
        EW_EXPECT_INT(count(g, "quantize_linear"), 1);
        EW_EXPECT_INT(count(g, "dequantize_linear"), 0);
        EW_EXPECT_OK(ew_graph_check(g));
    }
    ew_test_end();
    ew_graph_free(g);
}

int main(int argc, char **argv)
{
    nothing_is_left("resnet18", 40, false);
    nothing_is_left("resnet18", 40, true);
    nothing_is_left("mobilenet_v2", 40, false);
    nothing_is_left("lenet5", 0, false);
    const bool quick = ew_test_quick(); /* two stand for all */
    for (size_t i = 0; i < EW_COUNT(networks); i++) {
        const char *name = networks[i].name;
        if ((argc > 1 && strcmp(argv[1], name) != 0) ||
            (quick && strcmp(name, "lenet5") != 0 && strcmp(name, "mobilenet_v2") != 0))
            continue;
        struct ew_graph *g = ew_quant_graph(name, networks[i].size, i % 2);
        if (!g)
            continue;
        integers_stand_for_floats(name, g);
        all_agree(name, g);
        ew_graph_free(g);
    }
    return ew_test_status();
}
