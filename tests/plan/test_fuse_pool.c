/* SPDX-License-Identifier: Apache-2.0 */
/* Convolution, max pool and ReLU fused into one step: training is the same as with three, for any
 * number of threads and under memory limits; and the cases that are not fused. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "edgewise.h"
#include "ew_test.h"
#include "model/objective.h"
#include "op/conv.h"
#include "op/pooling.h"
#include "plan/plan.h"

#define BATCH 6
#define STEPS 4

static struct ew_graph *build(int64_t batch)
{
    const struct ew_model_opts o = {.size = sizeof(o), .batch = batch};
    struct ew_graph *g = NULL;
    const bool ok = EW_EXPECT_OK(ew_model_build("lenet5", &o, &g)) &&
                    EW_EXPECT_OK(ew_model_init("lenet5", 3, g)) &&
                    EW_EXPECT_OK(ew_objective_add(g));
    if (ok)
        return g;
    ew_graph_free(g);
    return NULL;
}

static int count(const struct ew_plan *p, const char *op)
{
    int n = 0;
    for (int i = 0; i < ew_plan_step_count(p); i++) {
        struct ew_step_info s;
        ew_plan_step_info(p, i, &s);
        n += s.op && strcmp(s.op, op) == 0 && !s.recompute;
    }
    return n;
}

static void fill_inputs(struct ew_plan *p)
{
    struct ew_tensor *x = ew_plan_input(p, 0), *label = ew_plan_input(p, 1);
    for (int64_t i = 0; i < ew_tensor_count(x); i++)
        ((float *)x->data)[i] = sinf((float)i * 0.37f);
    for (int64_t i = 0; i < ew_tensor_count(label); i++)
        ((int64_t *)label->data)[i] = i % 10;
}

/* Only the CPU fuses them. */
static bool fuses(const struct ew_backend_opts *be)
{
    return !be->reference && !getenv("EW_DEVICE");
}

/* Trains for a few steps; returns the losses. */
static void train(struct ew_graph *g, const struct ew_backend_opts *be, float *loss)
{
    struct ew_plan *p = NULL;
    const struct ew_plan_opts o = {.mode = EW_PLAN_TRAIN,
                                   .update = true,
                                   .optimizer = {.lr = 0.05, .momentum = 0.9},
                                   .backend = *be};
    if (!EW_EXPECT_OK(ew_plan_compile(g, &o, &p)))
        return;
    EW_EXPECT_INT(count(p, "conv_pool"), fuses(be) ? 4 : 0);
    EW_EXPECT_INT(count(p, "max_pool"), fuses(be) ? 0 : 4);
    EW_EXPECT_INT(count(p, "transpose"), fuses(be) ? 0 : 2);
    fill_inputs(p);
    for (int i = 0; i < STEPS; i++) {
        EW_EXPECT_OK(ew_plan_run(p));
        loss[i] = *(const float *)ew_plan_output(p, 0)->data;
    }
    EW_EXPECT_OK(ew_plan_pull(p));
    ew_plan_free(p);
}

/* tol 0: bit-identical. */
static void compare_weights(const struct ew_graph *a, const struct ew_graph *b, double tol)
{
    for (int v = 0; v < a->n_values; v++) {
        const struct ew_tensor *x = &a->values[v].t, *y = &b->values[v].t;
        if (a->values[v].kind != EW_VALUE_PARAM)
            continue;
        if (tol > 0)
            EW_EXPECT_CLOSE((const float *)x->data, (const float *)y->data, ew_tensor_count(x), tol,
                            tol);
        else
            EW_EXPECT(memcmp(x->data, y->data, ew_tensor_bytes(x)) == 0);
    }
}

static void trains_as_three_steps_do(void)
{
    struct ew_graph *one = build(BATCH), *apart = build(BATCH);
    float a[STEPS] = {0}, b[STEPS] = {0};
    if (one && apart) {
        train(one, &(struct ew_backend_opts){.threads = 1}, a);
        train(apart, &(struct ew_backend_opts){.threads = 1, .reference = true}, b);
        EW_EXPECT_CLOSE(a, b, STEPS, 1e-4, 1e-5);
        EW_EXPECT(a[STEPS - 1] < a[0]);
        compare_weights(one, apart, 1e-4);
    }
    ew_graph_free(one);
    ew_graph_free(apart);
}

static void threads_change_nothing(void)
{
    struct ew_graph *alone = build(BATCH);
    float want[STEPS] = {0};
    if (alone)
        train(alone, &(struct ew_backend_opts){.threads = 1}, want);
    for (int threads = 2; alone && threads <= 3; threads++) {
        struct ew_graph *g = build(BATCH);
        float got[STEPS] = {0};
        if (!g)
            break;
        train(g, &(struct ew_backend_opts){.threads = threads}, got);
        EW_EXPECT(memcmp(got, want, sizeof(got)) == 0);
        compare_weights(g, alone, 0);
        ew_graph_free(g);
    }
    ew_graph_free(alone);
}

static struct ew_plan *gradients(struct ew_graph *g, size_t limit)
{
    struct ew_plan *p = NULL;
    const struct ew_plan_opts o = {
        .mode = EW_PLAN_TRAIN, .memory_limit = limit, .backend = {.threads = 1}};
    const ew_err e = ew_plan_compile(g, &o, &p);
    EW_EXPECT(e == EW_OK || (limit && e == EW_ERR_LIMIT));
    if (e != EW_OK)
        return NULL;
    fill_inputs(p);
    EW_EXPECT_OK(ew_plan_run(p));
    return p;
}

static void limits_change_nothing(void)
{
    struct ew_graph *g = build(8 * BATCH); /* so that activations matter beside weights */
    struct ew_plan *whole = g ? gradients(g, 0) : NULL, *p;
    struct ew_plan_stats full, s = {.micro_batches = 1};
    bool again = false;
    if (whole)
        ew_plan_stats(whole, &full);
    for (int percent = 95; whole && percent > 60 && s.micro_batches == 1; percent -= 5) {
        p = gradients(g, (full.arena_bytes + full.weight_bytes) * (size_t)percent / 100);
        if (!p)
            break;
        ew_plan_stats(p, &s);
        again |= s.recompute_cheap || s.segments > 1 || s.micro_batches > 1;
        for (int v = 0; v < g->n_values; v++) {
            const struct ew_tensor *x = ew_plan_grad(whole, v), *y = ew_plan_grad(p, v);
            if (g->values[v].kind == EW_VALUE_PARAM && EW_EXPECT(x && y))
                EW_EXPECT_CLOSE((const float *)x->data, (const float *)y->data, ew_tensor_count(x),
                                1e-4, 1e-6);
        }
        ew_plan_free(p);
    }
    EW_EXPECT(!whole || again);
    ew_plan_free(whole);
    ew_graph_free(g);
}

/* A convolution of at most 4 channels, a pool, a mean as loss; the fields say what else is a graph
 * output, and what is unusual. */
struct odd {
    const char *name;
    int64_t batch, channels, stride;
    bool frozen, ceil, inner_output, rounded;
    int steps; /* forward and backward steps of the fused operator */
};

/* Replaces x by its 8-bit rounding. */
static ew_err round_input(struct ew_graph *g, int *x)
{
    const struct ew_tensor zero = {.dtype = EW_S8};
    int in[3] = {*x};
    EW_TRY(ew_graph_const_float(g, "scale", 0.125f, &in[1]));
    EW_TRY(ew_graph_const(g, "zero", EW_VALUE_CONST, &zero, true, &in[2]));
    return ew_graph_add(g, ew_op_find("fake_quant"), "rounded", NULL, ew_inputs(in, 3), x);
}

static ew_err odd_graph(const struct odd *k, struct ew_graph *g)
{
    const struct ew_shape x = {4, {k->batch, 9, 9, k->channels}}, w = {4, {5, 3, 3, k->channels}};
    const struct ew_conv_attr conv = {.groups = 1, .win.stride = {2, {k->stride, k->stride}}};
    const struct ew_pool_attr pool = {.win = {.kernel = {2, {2, 2}}, .stride = {2, {2, 2}}},
                                      .ceil_mode = k->ceil};
    const struct ew_tensor filter = {.dtype = EW_F32, .shape = w};
    const struct ew_tensor bias = {.dtype = EW_F32, .shape = {1, {5}}};
    int in[3], inner, out;
    EW_TRY(ew_graph_input(g, "x", EW_F32, &x, &in[0]));
    if (k->rounded)
        EW_TRY(round_input(g, &in[0]));
    EW_TRY(ew_graph_const(g, "w", EW_VALUE_PARAM, &filter, true, &in[1]));
    EW_TRY(ew_graph_const(g, "b", EW_VALUE_PARAM, &bias, true, &in[2]));
    g->values[in[1]].frozen = k->frozen;
    EW_TRY(ew_graph_add(g, ew_op_find("conv"), "conv", &conv, ew_inputs(in, 3), &inner));
    EW_TRY(ew_graph_add(g, ew_op_find("max_pool"), "pool", &pool, EW_INPUTS(inner), &out));
    EW_TRY(ew_graph_add(g, ew_op_find("reduce_mean"), "loss", NULL, EW_INPUTS(out), &out));
    EW_TRY(ew_graph_output(g, out));
    return k->inner_output ? ew_graph_output(g, inner) : EW_OK;
}

static void where_it_is(void)
{
    static const struct odd cases[] = {{"as it should be", 4, 4, 1, .steps = 2},
                                       {"rounded input", 4, 4, 1, .rounded = true, .steps = 2},
                                       {"few images", 3, 4, 1},
                                       {"many channels", 4, 5, 1},
                                       {"stride", 4, 3, 2},
                                       {"only the bias is trained", 4, 3, 1, .frozen = true},
                                       {"sizes rounded up", 4, 3, 1, .ceil = true},
                                       {"what is pooled is wanted", 4, 3, 1, .inner_output = true}};
    for (size_t i = 0; i < EW_COUNT(cases); i++) {
        struct ew_graph *g;
        struct ew_plan *p = NULL;
        const struct ew_plan_opts o = {.mode = EW_PLAN_TRAIN, .dry = true};
        if (!EW_EXPECT_OK(ew_graph_new(cases[i].name, &g)))
            return;
        if (EW_EXPECT_OK(odd_graph(&cases[i], g)) && EW_EXPECT_OK(ew_plan_compile(g, &o, &p)) &&
            count(p, "conv_pool") != (getenv("EW_DEVICE") ? 0 : cases[i].steps))
            EW_FAIL("%s: %d steps, not %d", cases[i].name, count(p, "conv_pool"), cases[i].steps);
        ew_plan_free(p);
        ew_graph_free(g);
    }
}

/* A first layer with a stride and overlapping windows, with more rows than a strip. */
static ew_err strips_graph(struct ew_graph *g)
{
    const struct ew_shape x = {4, {9, 125, 161, 3}};
    const struct ew_conv_attr conv = {.groups = 1,
                                      .win = {.stride = {2, {2, 2}}, .pad = {4, {1, 0, 1, 0}}}};
    const struct ew_pool_attr pool = {.win = {.kernel = {2, {3, 3}}, .stride = {2, {2, 2}}}};
    float w[64 * 27], b[64];
    for (int i = 0; i < 64 * 27; i++)
        w[i] = 0.3f * sinf((float)(3 * i));
    for (int i = 0; i < 64; i++)
        b[i] = 0.3f * sinf((float)(5 * i));
    const struct ew_tensor filter = {.dtype = EW_F32, .shape = {4, {64, 3, 3, 3}}, .data = w};
    const struct ew_tensor bias = {.dtype = EW_F32, .shape = {1, {64}}, .data = b};
    int in[3], v, square[2];
    EW_TRY(ew_graph_input(g, "x", EW_F32, &x, &in[0]));
    EW_TRY(ew_graph_const(g, "w", EW_VALUE_PARAM, &filter, true, &in[1]));
    EW_TRY(ew_graph_const(g, "b", EW_VALUE_PARAM, &bias, true, &in[2]));
    EW_TRY(ew_graph_add(g, ew_op_find("conv"), "conv", &conv, ew_inputs(in, 3), &v));
    EW_TRY(ew_graph_add(g, ew_op_find("max_pool"), "pool", &pool, EW_INPUTS(v), &v));
    EW_TRY(ew_graph_add(g, ew_op_find("relu"), "relu", NULL, EW_INPUTS(v), &square[0]));
    square[1] = square[0];
    EW_TRY(ew_graph_add(g, ew_op_find("mul"), "square", NULL, ew_inputs(square, 2), &v));
    EW_TRY(ew_graph_add(g, ew_op_find("reduce_mean"), "loss", NULL, EW_INPUTS(v), &v));
    return ew_graph_output(g, v);
}

static struct ew_plan *strips_plan(struct ew_graph *g, const struct ew_backend_opts *be)
{
    struct ew_plan *p = NULL;
    const struct ew_plan_opts o = {.mode = EW_PLAN_TRAIN, .backend = *be};
    if (!EW_EXPECT_OK(ew_plan_compile(g, &o, &p)))
        return NULL;
    EW_EXPECT_INT(count(p, "conv_pool"), fuses(be) ? 2 : 0);
    struct ew_tensor *x = ew_plan_input(p, 0);
    for (int64_t i = 0; i < ew_tensor_count(x); i++)
        ((float *)x->data)[i] = sinf((float)(i % 99991) * 0.37f);
    EW_EXPECT_OK(ew_plan_run(p));
    return p;
}

static void strips_change_nothing(void)
{
    struct ew_graph *g = NULL;
    struct ew_plan *p[3] = {NULL};
    if (!EW_EXPECT_OK(ew_graph_new("strips", &g)))
        return;
    if (EW_EXPECT_OK(strips_graph(g))) {
        p[0] = strips_plan(g, &(struct ew_backend_opts){.threads = 1, .reference = true});
        p[1] = strips_plan(g, &(struct ew_backend_opts){.threads = 1});
        p[2] = strips_plan(g, &(struct ew_backend_opts){.threads = 2});
    }
    for (int v = 0; p[0] && p[1] && p[2] && v < g->n_values; v++) {
        const struct ew_tensor *t[3];
        for (int i = 0; i < 3; i++)
            t[i] = ew_plan_grad(p[i], v);
        if (g->values[v].kind != EW_VALUE_PARAM || !EW_EXPECT(t[0] && t[1] && t[2]))
            continue;
        EW_EXPECT_CLOSE((const float *)t[1]->data, (const float *)t[0]->data, ew_tensor_count(t[0]),
                        1e-3, 1e-6);
        EW_EXPECT(memcmp(t[1]->data, t[2]->data, ew_tensor_bytes(t[1])) == 0);
    }
    for (int i = 0; i < 3; i++)
        ew_plan_free(p[i]);
    ew_graph_free(g);
}

EW_TEST_MAIN(EW_TEST(trains_as_three_steps_do), EW_TEST(threads_change_nothing),
             EW_TEST(limits_change_nothing), EW_TEST(where_it_is), EW_TEST(strips_change_nothing))
