/* SPDX-License-Identifier: Apache-2.0 */
/* Small networks that a CUDA device runs in two launches, one block per image
 * (backend/cuda/cuda_net.c): chains of all supported layers, and some that are not supported,
 * against the CPU's references: outputs, losses, gradients of all weights, and training steps,
 * which must be bit-identical when repeated. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "backend/backend.h"
#include "edgewise.h"
#include "ew_test.h"
#include "graph/ops.h"
#include "model/build.h"
#include "model/objective.h"
#include "op/conv.h"
#include "op/math_attr.h"
#include "op/pooling.h"
#include "plan/plan.h"

#define CLASSES 6
#define RUNS    3 /* launched, captured, replayed */

static int act(struct ew_builder *b, const struct ew_op *op, int x)
{
    int y = -1;
    char name[32];
    snprintf(name, sizeof(name), "%s%d", op->name, x);
    const ew_err e = ew_graph_add(b->g, op, name, NULL, EW_INPUTS(x), &y);
    b->err = b->err == EW_OK ? e : b->err;
    return y;
}

static int strided(struct ew_builder *b, int x)
{
    x = ew_b_conv_bias(b, "a", x, 5, ew_win(3, 2, 1));
    x = act(b, &ew_op_tanh, x);
    x = ew_b_avg_pool(b, x, ew_win(2, 2, 0));
    x = ew_b_conv(b, "b", x, 40, ew_win(2, 1, 0));
    x = act(b, &ew_op_sigmoid, x);
    x = ew_b_flatten(b, x);
    x = ew_b_relu(b, ew_b_dense(b, "c", x, 21));
    return ew_b_dense(b, "d", x, CLASSES);
}

static int overlapping(struct ew_builder *b, int x)
{
    x = ew_b_max_pool(b, ew_b_conv_bias(b, "a", x, 9, ew_win(5, 1, 2)), ew_win(3, 2, 1));
    x = ew_b_relu(b, ew_b_conv_bias(b, "b", x, 3, ew_win(1, 1, 0)));
    x = ew_b_global_pool(b, x);
    return ew_b_dense(b, "c", ew_b_flatten(b, x), CLASSES);
}

static int dense_only(struct ew_builder *b, int x)
{
    x = ew_b_relu(b, ew_b_dense(b, "a", ew_b_flatten(b, x), 70));
    return ew_b_dense(b, "b", act(b, &ew_op_tanh, ew_b_dense(b, "c", x, 33)), CLASSES);
}

/* The builder's windows are square: changes the last convolution's or pool's to by[] = {rows,
 * columns, stride down, stride right}. */
static int oblong_window(struct ew_builder *b, int y, const int64_t by[4])
{
    if (b->err != EW_OK)
        return y;
    const struct ew_node *n = &b->g->nodes[b->g->values[y].producer];
    const bool conv = n->op == &ew_op_conv;
    struct ew_window_attr *w =
        conv ? &((struct ew_conv_attr *)n->attr)->win : &((struct ew_pool_attr *)n->attr)->win;
    for (int i = 0; i < 2; i++) {
        w->stride.n = 2;
        w->stride.v[i] = by[2 + i];
        if (w->kernel.n)
            w->kernel.v[i] = by[i];
        if (conv)
            b->g->values[n->in[1]].t.shape.dim[1 + i] = by[i];
    }
    return y;
}

/* Windows that touch and that leave gaps, convolutions with sliding windows and without, none of
 * them square.  The layers after them do not depend on sizes, which are inferred at the end. */
static int oblong(struct ew_builder *b, int x)
{
    x = ew_b_relu(b, ew_b_conv_bias(b, "a", x, 7, ew_win(3, 1, 1)));
    oblong_window(b, b->g->nodes[b->g->values[x].producer].in[0], (const int64_t[]){2, 5, 1, 1});
    x = oblong_window(b, ew_b_max_pool(b, x, ew_win(2, 2, 0)), (const int64_t[]){3, 2, 3, 2});
    x = act(b, &ew_op_tanh, ew_b_conv_bias(b, "b", x, 8, ew_win(3, 1, 2)));
    x = oblong_window(b, ew_b_max_pool(b, x, ew_win(2, 2, 0)), (const int64_t[]){1, 2, 2, 3});
    x = oblong_window(b, ew_b_conv(b, "c", x, 5, ew_win(3, 1, 1)), (const int64_t[]){3, 2, 1, 2});
    x = ew_b_global_pool(b, ew_b_relu(b, x));
    return ew_b_dense(b, "d", ew_b_flatten(b, x), CLASSES);
}

/* The layers of LeNet-5. */
static int tiled(struct ew_builder *b, int x)
{
    x = ew_b_relu(b, ew_b_conv_bias(b, "a", x, 6, ew_win(5, 1, 2)));
    x = ew_b_max_pool(b, x, ew_win(2, 2, 0));
    x = ew_b_relu(b, ew_b_conv_bias(b, "b", x, 16, ew_win(5, 1, 0)));
    x = ew_b_flatten(b, ew_b_max_pool(b, x, ew_win(2, 2, 0)));
    x = ew_b_relu(b, ew_b_dense(b, "c", x, 120));
    return ew_b_dense(b, "d", ew_b_relu(b, ew_b_dense(b, "e", x, 84)), CLASSES);
}

/* Not a chain: a value has two consumers. */
static int residual(struct ew_builder *b, int x)
{
    x = ew_b_relu(b, ew_b_conv_bias(b, "a", x, 4, ew_win(3, 1, 1)));
    x = ew_b_add(b, x, ew_b_conv_bias(b, "b", x, 4, ew_win(3, 1, 1)));
    return ew_b_dense(b, "c", ew_b_flatten(b, ew_b_global_pool(b, x)), CLASSES);
}

static const struct net {
    const char *name;
    int (*build)(struct ew_builder *b, int x);
    int64_t h, w, c;
    int batch;
    double smoothing;
} nets[] = {
    {"strided", strided, 11, 13, 3, 33, 0.1}, {"overlapping", overlapping, 9, 8, 2, 40, 0},
    {"few", strided, 11, 13, 3, 5, 0.1},      {"oblong", oblong, 17, 19, 2, 35, 0},
    {"tiled", tiled, 28, 28, 1, 16, 0},       {"many tiled", tiled, 20, 22, 3, 64, 0},
    {"one", tiled, 28, 28, 1, 1, 0},          {"one overlapping", overlapping, 9, 8, 2, 1, 0},
    {"dense", dense_only, 6, 6, 1, 128, 0.2}, {"residual", residual, 8, 8, 1, 4, 0}};

#define QUICK 3 /* images, where they take long: a block each */

static int images_of(const struct net *n)
{
    return ew_test_quick() && n->batch > QUICK ? QUICK : n->batch;
}

static struct ew_graph *build(const struct net *n, bool train)
{
    struct ew_builder b = {.classes = CLASSES, .scale = 1};
    const struct ew_shape s = {.rank = 4, .dim = {images_of(n), n->h, n->w, n->c}};
    int x = -1;
    if (!EW_EXPECT_OK(ew_graph_new(n->name, &b.g)) ||
        !EW_EXPECT_OK(ew_graph_input(b.g, "input", EW_F32, &s, &x)))
        return NULL;
    b.g->values[x].channels_last = true;
    const int y = n->build(&b, x);
    bool ok = EW_EXPECT_OK(b.err) && EW_EXPECT_OK(ew_graph_output(b.g, y)) &&
              EW_EXPECT_OK(ew_graph_infer(b.g)) && EW_EXPECT_OK(ew_model_init("lenet5", 3, b.g));
    if (ok && train && EW_EXPECT_OK(ew_objective_add(b.g))) {
        const int loss = b.g->values[b.g->outputs[0]].producer;
        ((struct ew_loss_attr *)b.g->nodes[loss].attr)->smoothing = n->smoothing;
    }
    return b.g;
}

static void fill(struct ew_plan *p, const struct net *n, bool train)
{
    struct ew_tensor *x = ew_plan_input(p, 0);
    for (int64_t i = 0; i < ew_tensor_count(x); i++)
        ((float *)x->data)[i] = sinf((float)i * 0.37f);
    for (int i = 0; train && i < images_of(n); i++)
        ((int64_t *)ew_plan_input(p, 1)->data)[i] = i % CLASSES;
}

static struct ew_plan *run(const struct net *n, struct ew_graph *g, bool train, const char *device)
{
    struct ew_plan *p = NULL;
    const bool cpu = strcmp(device, "cpu") == 0;
    const struct ew_plan_opts o = {.mode = train ? EW_PLAN_TRAIN : EW_PLAN_INFER,
                                   .optimize = !cpu && !train,
                                   .backend = {.device = device, .threads = 1, .reference = cpu}};
    if (!EW_EXPECT_OK(ew_plan_compile(g, &o, &p)))
        return NULL;
    for (int i = 0; i < (cpu ? 1 : RUNS); i++) {
        fill(p, n, train);
        EW_EXPECT_OK(ew_plan_run(p));
    }
    return p;
}

static void expect_near(const char *what, const struct ew_tensor *a, const struct ew_tensor *b,
                        double tolerance)
{
    double size = 1e-6, off = 0;
    for (int64_t i = 0; i < ew_tensor_count(a); i++) {
        const double d = fabs(ew_tensor_get(a, i) - ew_tensor_get(b, i));
        size = fmax(size, fabs(ew_tensor_get(a, i)));
        off = fmax(off, isnan(d) ? HUGE_VAL : d);
    }
    if (off > tolerance * size)
        EW_FAIL("%s is off by %g of %g", what, off, size);
}

static void check_values(const struct net *n, bool train, const char *device, double tolerance)
{
    struct ew_graph *g = build(n, train);
    struct ew_plan *a = g ? run(n, g, train, "cpu") : NULL;
    struct ew_plan *b = a ? run(n, g, train, device) : NULL;
    for (int i = 0; b && i < g->n_outputs; i++)
        expect_near(g->values[g->outputs[i]].name, ew_plan_output(a, i), ew_plan_output(b, i),
                    tolerance);
    for (int v = 0; b && train && v < g->n_values; v++)
        if (g->values[v].kind == EW_VALUE_PARAM && EW_EXPECT(ew_plan_grad(b, v)))
            expect_near(g->values[v].name, ew_plan_grad(a, v), ew_plan_grad(b, v), tolerance);
    ew_plan_free(a);
    ew_plan_free(b);
    ew_graph_free(g);
}

static void train_steps(const struct net *n, const char *device, float losses[4])
{
    struct ew_graph *g = build(n, true);
    struct ew_plan *p = NULL;
    const struct ew_plan_opts o = {.mode = EW_PLAN_TRAIN,
                                   .update = true,
                                   .optimizer = {.lr = 0.05, .momentum = 0.9},
                                   .backend = {.device = device, .threads = 1}};
    if (g && EW_EXPECT_OK(ew_plan_compile(g, &o, &p)))
        for (int i = 0; i < 4; i++) {
            fill(p, n, true);
            EW_EXPECT_OK(ew_plan_run(p));
            losses[i] = (float)ew_tensor_get(ew_plan_output(p, 0), 0);
        }
    ew_plan_free(p);
    ew_graph_free(g);
}

int main(int argc, char **argv)
{
    struct ew_device_found found;
    ew_test_begin("device");
    const bool there = ew_backend_probe("cuda", &found) == EW_OK;
    if (!there)
        ew_test_skip("%s", ew_error_message());
    ew_test_end();
    for (size_t i = 0; there && i < EW_COUNT(nets); i++) {
        bool meant = argc == 1; /* words are names of networks */
        for (int k = 1; k < argc; k++)
            meant = meant || strcmp(argv[k], nets[i].name) == 0;
        if (!meant)
            continue;
        float cpu[4] = {0}, cuda[2][4] = {{0}};
        ew_test_begin("%s", nets[i].name);
        check_values(&nets[i], false, "cuda", 2e-5);
        check_values(&nets[i], false, "cuda:0,fp16", 4e-3);
        check_values(&nets[i], false, "cuda:0,bf16", 3e-2);
        check_values(&nets[i], true, "cuda", 2e-5);
        train_steps(&nets[i], "cpu", cpu);
        train_steps(&nets[i], "cuda", cuda[0]);
        train_steps(&nets[i], "cuda", cuda[1]);
        EW_EXPECT(memcmp(cuda[0], cuda[1], sizeof(cuda[0])) == 0);
        EW_EXPECT_CLOSE(cuda[0], cpu, 4, 1e-4, 1e-5);
        ew_test_end();
    }
    return ew_test_status();
}
