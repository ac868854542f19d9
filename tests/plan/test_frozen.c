/* SPDX-License-Identifier: Apache-2.0 */
/* Frozen weights behind trainable ones: the others have the gradients that they have when all are
 * trained, with every instruction set. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ew_test.h"
#include "float_isa.h"
#include "model/build.h"
#include "model/init.h"
#include "model/objective.h"
#include "plan/plan.h"
#include "run_graph.h"

#define BATCH 8
#define SIDE  12

typedef int body_fn(struct ew_builder *b, int x);

/* Kernels for many pixels, few pixels and, behind the pooling, one; also those that skip zeros. */
static int wide(struct ew_builder *b, int x)
{
    x = ew_b_relu(b, ew_b_conv_bias(b, "conv1", x, 128, ew_win(1, 1, 0)));
    x = ew_b_relu(b, ew_b_conv_bias(b, "conv2", x, 160, ew_win(1, 1, 0)));
    x = ew_b_max_pool(b, x, ew_win(3, 2, 0));
    return ew_b_relu(b, ew_b_conv_bias(b, "conv3", x, 144, ew_win(1, 1, 0)));
}

static int normed(struct ew_builder *b, int x)
{
    x = ew_b_relu(b, ew_b_bn(b, "bn1", ew_b_conv(b, "conv1", x, 128, ew_win(3, 2, 1))));
    x = ew_b_bn(b, "bn2", ew_b_conv(b, "conv2", x, 128, ew_win_groups(3, 1, 1, EW_DEPTHWISE)));
    return ew_b_relu(b, ew_b_bn(b, "bn3", ew_b_conv(b, "conv3", x, 136, ew_win(1, 1, 0))));
}

static int plain(struct ew_builder *b, int x)
{
    x = ew_b_relu(b, ew_b_conv_bias(b, "conv1", x, 24, ew_win(3, 1, 1)));
    x = ew_b_max_pool(b, ew_b_relu(b, ew_b_conv_bias(b, "conv2", x, 32, ew_win(5, 1, 2))),
                      ew_win(2, 2, 0));
    x = ew_b_relu(b, ew_b_conv_bias(b, "conv3", x, 32, ew_win_groups(3, 1, 1, 4)));
    return ew_b_relu(b, ew_b_conv_bias(b, "conv4", x, 40, ew_win(3, 2, 1)));
}

static struct ew_graph *build(body_fn *body)
{
    struct ew_builder b = {.classes = 5, .bn_eps = 1e-5, .bn_keep = 0.9, .scale = 1};
    const struct ew_shape shape = {4, {BATCH, SIDE, SIDE, 16}};
    int x = -1;
    bool ok = EW_EXPECT_OK(ew_graph_new("frozen", &b.g)) &&
              EW_EXPECT_OK(ew_graph_input(b.g, "input", EW_F32, &shape, &x));
    if (ok) {
        x = ew_b_flatten(&b, ew_b_global_pool(&b, body(&b, x)));
        x = ew_b_dense(&b, "fc2", ew_b_relu(&b, ew_b_dense(&b, "fc1", x, 130)), b.classes);
        ok = EW_EXPECT_OK(b.err) && EW_EXPECT_OK(ew_graph_output(b.g, x)) &&
             EW_EXPECT_OK(ew_init_weights(b.g, &(struct ew_init){.conv = EW_INIT_HE_IN}, 3)) &&
             EW_EXPECT_OK(ew_objective_add(b.g));
    }
    if (ok)
        return b.g;
    ew_graph_free(b.g);
    return NULL;
}

/* Freezes filters and matrices, or biases, scales and shifts, but not those of the first layer. */
static void freeze(struct ew_graph *g, bool filters)
{
    for (int v = 0; v < g->n_values; v++) {
        struct ew_value *w = &g->values[v];
        if (w->kind == EW_VALUE_PARAM && (w->t.shape.rank > 1) == filters)
            w->frozen = strncmp(w->name, "conv1", 5) != 0;
    }
}

static struct ew_plan *train(struct ew_graph *g)
{
    struct ew_plan *p = NULL;
    const struct ew_plan_opts o = {.mode = EW_PLAN_TRAIN, .backend = {.threads = 2}};
    if (!EW_EXPECT_OK(ew_plan_compile(g, &o, &p)))
        return NULL;
    struct ew_tensor *x = ew_plan_input(p, 0);
    for (int64_t i = 0; i < ew_tensor_count(x); i++)
        ((float *)x->data)[i] = sinf((float)i * 0.37f);
    for (int i = 0; i < BATCH; i++)
        ((int64_t *)ew_plan_input(p, 1)->data)[i] = i % 5;
    EW_EXPECT_OK(ew_plan_run(p));
    return p;
}

/* Other kernels sum in another order. */
static void compare(const struct ew_graph *g, struct ew_plan *all, struct ew_plan *some)
{
    for (int v = 0; v < g->n_values; v++) {
        if (g->values[v].kind != EW_VALUE_PARAM || g->values[v].frozen)
            continue;
        const struct ew_tensor *x = ew_plan_grad(all, v), *y = ew_plan_grad(some, v);
        if (EW_EXPECT(x && y) && !(ew_tensor_distance(x, y) < 1e-3))
            EW_FAIL("%s is off by %g", g->values[v].name, ew_tensor_distance(x, y));
    }
}

static void check(body_fn *body)
{
    for (int k = 0; ew_float_isa_at(k); k++) {
        setenv("EW_ISA", ew_float_isa_at(k)->isa, 1);
        for (int filters = 0; filters < 2; filters++) {
            struct ew_graph *g = build(body), *h = build(body);
            struct ew_plan *all = g && h ? train(g) : NULL, *some = NULL;
            if (all) {
                freeze(h, filters);
                some = train(h);
            }
            if (some)
                compare(h, all, some);
            ew_plan_free(all);
            ew_plan_free(some);
            ew_graph_free(g);
            ew_graph_free(h);
        }
    }
    unsetenv("EW_ISA");
}

static void wide_layers(void)
{
    check(wide);
}

static void norms(void)
{
    check(normed);
}

static void small_layers(void)
{
    check(plain);
}

EW_TEST_MAIN(EW_TEST(wide_layers), EW_TEST(norms), EW_TEST(small_layers))
