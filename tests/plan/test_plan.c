/* SPDX-License-Identifier: Apache-2.0 */
/* Plans: gradients of whole graphs against central differences, optimiser steps, and the same
 * gradients under every memory limit. */
#include "plan/plan.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ew_test.h"

#define BATCH   4
#define CLASSES 5

/* ---- A small residual network with a loss, in float64 on request ---- */

struct net {
    struct ew_graph *g;
    enum ew_dtype dtype;
    int n_params;
};

static int param(struct net *n, const char *name, enum ew_value_kind kind, struct ew_shape s,
                 double fill)
{
    struct ew_tensor t = {.dtype = n->dtype, .shape = s};
    EW_EXPECT_OK(ew_aligned_new(ew_tensor_bytes(&t), &t.data));
    for (int64_t i = 0; i < ew_tensor_count(&t); i++) {
        const double noise = 0.3 * sin((double)(i * 7 + n->n_params * 13) * 0.7);
        const double v = isnan(fill) ? noise : fill;
        ew_tensor_store(&t, i, 1, &v);
    }
    n->n_params++;
    int id = -1;
    EW_EXPECT_OK(ew_graph_const(n->g, name, kind, &t, true, &id));
    free(t.data);
    return id;
}

static int node(struct net *n, const char *op, const char *attrs, const int *in, int n_in)
{
    char attr[4096] = {0};
    const struct ew_op *o = ew_op_find(op);
    int out = -1;
    if (!EW_EXPECT(o && o->attr_size <= sizeof(attr)))
        return -1;
    if (o->attrs)
        ew_fields_default(o->attrs, attr, o->attr_size);
    char name[64], value[64];
    if (attrs && sscanf(attrs, "%63[^=]=%63s", name, value) == 2)
        EW_EXPECT_OK(ew_field_parse(ew_field_find(o->attrs, name), value, attr));
    EW_EXPECT_OK(ew_graph_add(n->g, o, NULL, attr, ew_inputs(in, n_in), &out));
    return out;
}

static int conv(struct net *n, int x, int64_t from, int64_t to)
{
    const int in[] = {x,
                      param(n, "w", EW_VALUE_PARAM, (struct ew_shape){4, {to, 3, 3, from}}, NAN)};
    return node(n, "conv", "pad=1x1x1x1", in, 2);
}

static int norm(struct net *n, int x, int64_t c)
{
    const struct ew_shape s = {1, {c}};
    const int in[] = {
        x, param(n, "scale", EW_VALUE_PARAM, s, 1.1), param(n, "shift", EW_VALUE_PARAM, s, 0.1),
        param(n, "mean", EW_VALUE_STATE, s, 0), param(n, "var", EW_VALUE_STATE, s, 1)};
    return node(n, "batch_norm", NULL, in, 5);
}

/* conv - [norm] - relu, with a residual block in the middle, then pooling, dense and loss. */
static struct net new_net(enum ew_dtype dtype, bool with_norm)
{
    struct net n = {.dtype = dtype};
    EW_EXPECT_OK(ew_graph_new("net", &n.g));
    int x, labels;
    EW_EXPECT_OK(ew_graph_input(n.g, "x", dtype, &(struct ew_shape){4, {BATCH, 6, 6, 3}}, &x));
    EW_EXPECT_OK(ew_graph_input(n.g, "labels", EW_S64, &(struct ew_shape){1, {BATCH}}, &labels));
    x = conv(&n, x, 3, 4);
    if (with_norm)
        x = norm(&n, x, 4);
    x = node(&n, "relu", NULL, &x, 1);
    for (int block = 0; block < 3; block++) {
        int y = conv(&n, x, 4, 4);
        if (with_norm)
            y = norm(&n, y, 4);
        y = node(&n, "relu", NULL, &y, 1);
        const int sum[] = {conv(&n, y, 4, 4), x};
        x = node(&n, "add", NULL, sum, 2);
        x = node(&n, "relu", NULL, &x, 1);
    }
    x = node(&n, "global_average_pool", NULL, &x, 1);
    x = node(&n, "flatten", NULL, &x, 1);
    const int dense[] = {x,
                         param(&n, "fc", EW_VALUE_PARAM, (struct ew_shape){2, {4, CLASSES}}, NAN),
                         param(&n, "bias", EW_VALUE_PARAM, (struct ew_shape){1, {CLASSES}}, NAN)};
    const int loss_in[] = {node(&n, "gemm", NULL, dense, 3), labels};
    EW_EXPECT_OK(ew_graph_output(n.g, node(&n, "softmax_cross_entropy", NULL, loss_in, 2)));
    return n;
}

static void fill_inputs(struct ew_plan *p)
{
    struct ew_tensor *x = ew_plan_input(p, 0), *labels = ew_plan_input(p, 1);
    for (int64_t i = 0; i < ew_tensor_count(x); i++) {
        const double v = sin((double)i * 1.37);
        ew_tensor_store(x, i, 1, &v);
    }
    for (int64_t i = 0; i < ew_tensor_count(labels); i++) {
        const int64_t v = (i * 3) % CLASSES;
        ew_tensor_store_int(labels, i, 1, &v);
    }
}

static struct ew_plan *compile(struct ew_graph *g, const struct ew_plan_opts *o)
{
    struct ew_plan *p = NULL;
    if (EW_EXPECT_OK(ew_plan_compile(g, o, &p)))
        fill_inputs(p);
    return p;
}

static double loss_of(struct ew_plan *p)
{
    EW_EXPECT_OK(ew_plan_run(p));
    return ew_tensor_get(ew_plan_output(p, 0), 0);
}

/* Loss with element i of a weight set to x. */
static double loss_at(struct ew_plan *p, struct ew_tensor *w, int64_t i, double x)
{
    ew_tensor_store(w, i, 1, &x);
    EW_EXPECT_OK(ew_plan_refresh(p));
    return loss_of(p);
}

static const struct ew_plan_opts train = {.mode = EW_PLAN_TRAIN};

/* ---- Gradients of the whole graph ---- */

static void gradients_match(bool with_norm)
{
    struct net n = new_net(EW_F64, with_norm);
    struct ew_plan *p = compile(n.g, &train);
    if (!p)
        return;
    loss_of(p);
    for (int v = 0; v < n.g->n_values; v++) {
        struct ew_tensor *w = &n.g->values[v].t;
        if (n.g->values[v].kind != EW_VALUE_PARAM)
            continue;
        const struct ew_tensor *grad = ew_plan_grad(p, v);
        if (!EW_EXPECT(grad))
            continue;
        const int64_t i = ew_tensor_count(w) / 2;
        const double analytic = ew_tensor_get(grad, i), x = ew_tensor_get(w, i);
        const double high = loss_at(p, w, i, x + 1e-5), low = loss_at(p, w, i, x - 1e-5);
        loss_at(p, w, i, x);
        EW_EXPECT_NEAR(analytic, (high - low) / 2e-5, 1e-7);
    }
    ew_plan_free(p);
    ew_graph_free(n.g);
}

static void gradients_match_differences(void)
{
    gradients_match(false);
}

static void gradients_match_differences_with_norm(void)
{
    gradients_match(true);
}

static void training_lowers_the_loss(void)
{
    struct net n = new_net(EW_F32, true);
    const struct ew_plan_opts o = {
        .mode = EW_PLAN_TRAIN,
        .update = true,
        .optimizer = {.kind = EW_OPTIMIZER_SGD, .lr = 0.05, .momentum = 0.9}};
    struct ew_plan *p = compile(n.g, &o);
    if (!p)
        return;
    const double first = loss_of(p);
    double last = first;
    for (int i = 0; i < 100; i++)
        last = loss_of(p);
    EW_EXPECT(last < 0.5 * first);
    EW_EXPECT_INT(ew_plan_optimizer(p)->step, 101);
    ew_plan_free(p);
    ew_graph_free(n.g);
}

/* Two steps computed by hand: torch.optim.SGD(momentum=0.9, weight_decay=0.1). */
static void sgd_follows_its_definition(void)
{
    struct ew_optimizer o = {
        .kind = EW_OPTIMIZER_SGD, .lr = 0.5, .momentum = 0.9, .weight_decay = 0.1};
    double w = 2, g = 1, m = 0;
    struct ew_tensor t[3] = {
        {EW_F64, {1, {1}}, &w}, {EW_F64, {1, {1}}, &g}, {EW_F64, {1, {1}}, &m}};
    struct ew_tensor *in[] = {&t[0], &t[1], &t[2]};
    const struct ew_call c = {.attr = &o, .n_in = 3, .in = in};
    EW_EXPECT_OK(ew_update_run(&c)); /* m = 1.2, w = 2 - 0.6 */
    EW_EXPECT_NEAR(w, 1.4, 1e-12);
    EW_EXPECT_OK(ew_update_run(&c)); /* m = 0.9 * 1.2 + 1.14 = 2.22, w = 1.4 - 1.11 */
    EW_EXPECT_NEAR(w, 0.29, 1e-12);
}

/* One step of Adam moves by the learning rate, independent of the gradient's size. */
static void adam_follows_its_definition(void)
{
    struct ew_optimizer o = {
        .kind = EW_OPTIMIZER_ADAM, .lr = 0.01, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8};
    double w = 1, g = 300, m = 0, v = 0;
    struct ew_tensor t[4] = {{EW_F64, {1, {1}}, &w},
                             {EW_F64, {1, {1}}, &g},
                             {EW_F64, {1, {1}}, &m},
                             {EW_F64, {1, {1}}, &v}};
    struct ew_tensor *in[] = {&t[0], &t[1], &t[2], &t[3]};
    const struct ew_call c = {.attr = &o, .n_in = 4, .in = in};
    EW_EXPECT_OK(ew_update_run(&c));
    EW_EXPECT_NEAR(w, 0.99, 1e-9);
}

/* ---- Memory limits ---- */

static void expect_same_gradients(const struct net *n, struct ew_plan *a, struct ew_plan *b,
                                  double tolerance)
{
    for (int v = 0; v < n->g->n_values; v++) {
        const struct ew_tensor *x = ew_plan_grad(a, v), *y = ew_plan_grad(b, v);
        if (n->g->values[v].kind != EW_VALUE_PARAM || !EW_EXPECT(x && y))
            continue;
        EW_EXPECT_CLOSE((const double *)x->data, (const double *)y->data,
                        (size_t)ew_tensor_count(x), tolerance, tolerance);
    }
}

static size_t total(const struct ew_plan_stats *s)
{
    return s->arena_bytes + s->weight_bytes;
}

/* From the unlimited size down in small steps: each plan meets its limit and has the same
 * gradients. */
static void limits_keep_gradients(bool with_norm)
{
    struct net n = new_net(EW_F64, with_norm);
    struct ew_plan *whole = compile(n.g, &train);
    struct ew_plan_stats full, s;
    if (!whole)
        return;
    ew_plan_stats(whole, &full);
    loss_of(whole);
    bool recomputed = false, split = false;
    for (int percent = 98; percent > 30; percent -= 4) {
        struct ew_plan_opts o = train;
        o.memory_limit = total(&full) * (size_t)percent / 100;
        struct ew_plan *p = NULL;
        if (ew_plan_compile(n.g, &o, &p) != EW_OK) {
            EW_EXPECT_HAS(ew_error_message(), "more than the limit");
            break;
        }
        fill_inputs(p);
        loss_of(p);
        ew_plan_stats(p, &s);
        EW_EXPECT(total(&s) <= o.memory_limit);
        recomputed |= s.recompute_cheap || s.segments > 1;
        split |= s.micro_batches > 1;
        EW_EXPECT(s.split_changes_statistics == (with_norm && s.micro_batches > 1));
        if (!s.split_changes_statistics)
            expect_same_gradients(&n, whole, p, 1e-12);
        ew_plan_free(p);
    }
    EW_EXPECT(recomputed);
    EW_EXPECT(split);
    ew_plan_free(whole);
    ew_graph_free(n.g);
}

static void limits_keep_gradients_plain(void)
{
    limits_keep_gradients(false);
}

static void limits_keep_gradients_with_norm(void)
{
    limits_keep_gradients(true);
}

static void impossible_limits_say_by_how_much(void)
{
    struct net n = new_net(EW_F32, false);
    struct ew_plan_opts o = train;
    o.memory_limit = 1000;
    struct ew_plan *p = NULL;
    EW_EXPECT_ERR(ew_plan_compile(n.g, &o, &p), EW_ERR_LIMIT, "more than the limit of 1000");
    ew_graph_free(n.g);
}

/* Running statistics are updated once per step, however often a layer is recomputed. */
static void recomputation_leaves_statistics_alone(void)
{
    struct net a = new_net(EW_F64, true), b = new_net(EW_F64, true);
    struct ew_plan *p = compile(a.g, &train), *q = NULL;
    struct ew_plan_stats s = {0};
    struct ew_plan_opts o = train;
    ew_plan_stats(p, &s);
    for (int percent = 99; percent > 50 && !q; percent -= 2) {
        o.memory_limit = total(&s) * (size_t)percent / 100;
        q = compile(b.g, &o);
        struct ew_plan_stats t;
        ew_plan_stats(q, &t);
        if (t.segments > 1 && t.micro_batches == 1)
            break;
        ew_plan_free(q);
        q = NULL;
    }
    if (EW_EXPECT(q)) {
        loss_of(p);
        loss_of(q);
        for (int v = 0; v < a.g->n_values; v++)
            if (a.g->values[v].kind == EW_VALUE_STATE)
                EW_EXPECT_CLOSE((const double *)a.g->values[v].t.data,
                                (const double *)b.g->values[v].t.data,
                                (size_t)ew_tensor_count(&a.g->values[v].t), 0, 0);
    }
    ew_plan_free(p);
    ew_plan_free(q);
    ew_graph_free(a.g);
    ew_graph_free(b.g);
}

/* ---- Memory ---- */

static void inference_needs_less_than_training(void)
{
    struct net n = new_net(EW_F32, true);
    struct ew_plan *p = compile(n.g, &train), *q = compile(n.g, &(struct ew_plan_opts){0});
    struct ew_plan_stats s, t;
    ew_plan_stats(p, &s);
    ew_plan_stats(q, &t);
    EW_EXPECT(t.arena_bytes < s.arena_bytes);
    EW_EXPECT(t.arena_bytes < t.unshared_bytes);
    ew_plan_free(p);
    ew_plan_free(q);
    ew_graph_free(n.g);
}

static void dry_plans_need_no_weights(void)
{
    struct net n = new_net(EW_F32, false);
    for (int v = 0; v < n.g->n_values; v++)
        if (n.g->values[v].kind == EW_VALUE_PARAM)
            n.g->values[v].t.data = NULL;
    struct ew_plan *p = NULL;
    EW_EXPECT_ERR(ew_plan_compile(n.g, &train, &p), EW_ERR_ARG, "not been loaded");
    struct ew_plan_opts o = train;
    o.dry = true;
    if (EW_EXPECT_OK(ew_plan_compile(n.g, &o, &p)))
        EW_EXPECT_ERR(ew_plan_run(p), EW_ERR_ARG, "dry");
    ew_plan_free(p);
    ew_graph_free(n.g);
}

EW_TEST_MAIN(EW_TEST(gradients_match_differences), EW_TEST(gradients_match_differences_with_norm),
             EW_TEST(training_lowers_the_loss), EW_TEST(sgd_follows_its_definition),
             EW_TEST(adam_follows_its_definition), EW_TEST(limits_keep_gradients_plain),
             EW_TEST(limits_keep_gradients_with_norm), EW_TEST(impossible_limits_say_by_how_much),
             EW_TEST(recomputation_leaves_statistics_alone),
             EW_TEST(inference_needs_less_than_training), EW_TEST(dry_plans_need_no_weights))
