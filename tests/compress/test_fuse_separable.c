/* SPDX-License-Identifier: Apache-2.0 */
/* Depthwise convolutions fused with the 1x1 ones around them: what is fused, and that results are
 * those of separate convolutions to the bit, whatever the bands and threads. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compress/pass.h"
#include "edgewise.h"
#include "ew_test.h"
#include "float_isa.h"
#include "plan/plan.h"

static int count(const struct ew_graph *g, const char *op)
{
    int n = 0;
    for (int k = 0; k < g->n_nodes; k++)
        n += strcmp(g->nodes[k].op->name, op) == 0;
    return n;
}

/* The network after the usual passes. */
static struct ew_graph *build(const char *name, int64_t side, double scale)
{
    const struct ew_model_opts o = {
        .size = sizeof(o), .classes = 7, .batch = 2, .height = side, .width = side, .scale = scale};
    struct ew_graph *g = NULL;
    if (EW_EXPECT_OK(ew_model_build(name, &o, &g)) && EW_EXPECT_OK(ew_model_init(name, 5, g)) &&
        EW_EXPECT_OK(ew_pass_all(g)))
        return g;
    ew_graph_free(g);
    return NULL;
}

static struct ew_plan *run(struct ew_graph *g, int threads)
{
    struct ew_plan *p = NULL;
    const struct ew_plan_opts o = {.mode = EW_PLAN_INFER, .backend = {.threads = threads}};
    if (!EW_EXPECT_OK(ew_plan_compile(g, &o, &p)))
        return NULL;
    struct ew_tensor *x = ew_plan_input(p, 0);
    for (int64_t i = 0; i < ew_tensor_count(x); i++)
        ((float *)x->data)[i] = sinf((float)i * 0.37f);
    EW_EXPECT_OK(ew_plan_run(p));
    return p;
}

static void expect_same_bits(struct ew_graph *a, struct ew_graph *b, int threads)
{
    struct ew_plan *want = run(a, 1), *got = run(b, threads);
    if (EW_EXPECT(want && got))
        EW_EXPECT_INT(memcmp(ew_plan_output(want, 0)->data, ew_plan_output(got, 0)->data,
                             ew_tensor_bytes(ew_plan_output(want, 0))),
                      0);
    ew_plan_free(want);
    ew_plan_free(got);
}

/* Bands of several heights, strides of 1 and 2, residuals, clips, hard swish, filters of 5x5. */
static void computes_what_separate_ones_do(void)
{
    static const struct {
        const char *name;
        int64_t side;
        double scale;
        int fused;
    } nets[] = {{"mobilenet_v2", 101, 0.75, 3}, {"mobilenet_v3_large", 136, 1, 6}};
    for (size_t i = 0; i < (ew_test_quick() ? 1 : EW_COUNT(nets)); i++) {
        struct ew_graph *g = build(nets[i].name, nets[i].side, nets[i].scale), *fused = NULL;
        if (!g || !EW_EXPECT_OK(ew_graph_clone(g, &fused)) ||
            !EW_EXPECT_OK(ew_pass_fuse_separable(fused, 16 << 10)))
            break;
        EW_EXPECT_OK(ew_graph_check(fused));
        EW_EXPECT_INT(count(fused, "separable_conv"), nets[i].fused);
        for (int k = 0; ew_float_isa_at(k); k++) {
            setenv("EW_ISA", ew_float_isa_at(k)->isa, 1);
            for (int threads = 1; threads <= 3; threads++)
                expect_same_bits(g, fused, threads);
        }
        unsetenv("EW_ISA");
        ew_graph_free(fused);
        ew_graph_free(g);
    }
}

/* A value that another node or the caller reads is not fused away, nor one that fits the cache. */
static void leaves_the_rest_alone(void)
{
    struct ew_graph *g = build("mobilenet_v2", 101, 0.75), *copy = NULL;
    int expand = -1;
    if (!g || !EW_EXPECT_OK(ew_graph_clone(g, &copy)) ||
        !EW_EXPECT_OK(ew_pass_fuse_separable(copy, INT64_MAX)))
        return;
    EW_EXPECT_INT(count(copy, "separable_conv"), 0);
    ew_graph_free(copy);
    copy = NULL;
    for (int k = 0; k < g->n_nodes && expand < 0; k++)
        if (strcmp(g->nodes[k].name, "features.2.conv.0.0") == 0)
            expand = g->nodes[k].out[0];
    if (EW_EXPECT(expand >= 0) && EW_EXPECT_OK(ew_graph_output(g, expand)) &&
        EW_EXPECT_OK(ew_graph_clone(g, &copy)) &&
        EW_EXPECT_OK(ew_pass_fuse_separable(copy, 16 << 10))) {
        EW_EXPECT_OK(ew_graph_check(copy));
        EW_EXPECT_INT(copy->n_outputs, 2);
        EW_EXPECT_INT(count(copy, "separable_conv"), 3); /* without its expansion */
        struct ew_plan *want = run(g, 1), *got = run(copy, 2);
        for (int i = 0; want && got && i < 2; i++)
            EW_EXPECT_INT(memcmp(ew_plan_output(want, i)->data, ew_plan_output(got, i)->data,
                                 ew_tensor_bytes(ew_plan_output(want, i))),
                          0);
        ew_plan_free(want);
        ew_plan_free(got);
    }
    ew_graph_free(copy);
    ew_graph_free(g);
}

EW_TEST_MAIN(EW_TEST(computes_what_separate_ones_do), EW_TEST(leaves_the_rest_alone))
