/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients delivered in buckets before parameters are updated: training is the same as with fused
 * updates, also with micro-batches, and changes that the caller makes to a gradient are used. */
#include <stdlib.h>
#include <string.h>

#include "edgewise.h"
#include "ew_test.h"
#include "plan/plan.h"
#include "run_graph.h"

#define BATCH 8
#define STEPS 3

static ew_err compile(struct ew_graph *g, size_t bucket, size_t limit, struct ew_plan **out)
{
    const struct ew_plan_opts o = {.mode = EW_PLAN_TRAIN,
                                   .update = true,
                                   .bucket_bytes = bucket,
                                   .memory_limit = limit,
                                   .optimizer = {.lr = 0.05, .momentum = 0.9},
                                   .backend = {.threads = 2}};
    return ew_plan_compile(g, &o, out);
}

/* Every parameter is in exactly one bucket. */
static void expect_all_parameters(struct ew_plan *p, const struct ew_graph *g)
{
    int found = 0, want = 0;
    for (int i = 0; i < g->n_values; i++)
        want += g->values[i].kind == EW_VALUE_PARAM;
    for (int b = 0; b < ew_plan_buckets(p); b++) {
        int n;
        const int *values = ew_plan_bucket(p, b, &n);
        EW_EXPECT(n > 0);
        for (int i = 0; i < n; i++)
            found += ew_plan_grad(p, values[i]) != NULL;
    }
    EW_EXPECT_INT(found, want);
}

static ew_err run_in_pieces(struct ew_plan *p, int *buckets)
{
    *buckets = 0;
    for (;;) {
        struct ew_stop stop;
        EW_TRY(ew_plan_run_to_stop(p, &stop));
        if (stop.kind == EW_STOP_END)
            break;
        if (stop.kind == EW_STOP_PAUSE)
            continue;
        EW_EXPECT_INT(stop.kind, EW_STOP_BUCKET);
        EW_EXPECT_INT(stop.bucket, *buckets);
        (*buckets)++;
    }
    return ew_plan_run_updates(p);
}

static void compare(const struct ew_graph *a, const struct ew_graph *b, float tol)
{
    for (int i = 0; i < a->n_values; i++) {
        const struct ew_tensor *s = &a->values[i].t, *t = &b->values[i].t;
        if (a->values[i].kind != EW_VALUE_PARAM && a->values[i].kind != EW_VALUE_STATE)
            continue;
        EW_EXPECT_CLOSE((const float *)s->data, (const float *)t->data, ew_tensor_count(s), tol,
                        tol);
    }
}

/* Trains the same network with and without buckets and compares. */
static void compare_training(const char *name, int64_t batch, size_t bucket, size_t limit)
{
    struct ew_graph *a = ew_training_network(name, batch, 0),
                    *b = ew_training_network(name, batch, 0);
    struct ew_plan *p = NULL, *q = NULL;
    if (a && b && EW_EXPECT_OK(compile(a, 0, limit, &p)) &&
        EW_EXPECT_OK(compile(b, bucket, limit, &q))) {
        ew_fill_samples(p, 0, batch);
        ew_fill_samples(q, 0, batch);
        expect_all_parameters(q, b);
        for (int i = 0; i < STEPS; i++) {
            int buckets = 0;
            EW_EXPECT_OK(ew_plan_run(p));
            EW_EXPECT_OK(i == 1 ? ew_plan_run(q) : run_in_pieces(q, &buckets));
            EW_EXPECT_INT(buckets, i == 1 ? 0 : ew_plan_buckets(q));
            EW_EXPECT_NEAR(*(const float *)ew_plan_output(p, 0)->data,
                           *(const float *)ew_plan_output(q, 0)->data, 1e-5);
        }
        compare(a, b, 1e-5f);
    }
    ew_plan_free(p);
    ew_plan_free(q);
    ew_graph_free(a);
    ew_graph_free(b);
}

static void training_is_the_same(void)
{
    compare_training("lenet5", BATCH, 1, 0);       /* a bucket per layer */
    compare_training("lenet5", BATCH, 1 << 30, 0); /* a single bucket */
    if (!ew_test_quick())
        compare_training("mobilenet_v2_cifar", BATCH, 1 << 20, 0);
}

/* The largest limit, in steps of a tenth, with which the batch is split. */
static size_t limit_with_parts(struct ew_graph *g)
{
    struct ew_plan *p = NULL;
    struct ew_plan_stats s = {0};
    size_t limit = (size_t)64 << 20;
    for (;; limit -= limit / 10) {
        if (!EW_EXPECT_OK(compile(g, 1 << 16, limit, &p)))
            return 0;
        ew_plan_stats(p, &s);
        ew_plan_free(p);
        if (s.micro_batches > 1)
            return limit;
    }
}

static void parts_of_a_batch_are_the_same(void)
{
    struct ew_graph *g = ew_training_network("lenet5", 8 * BATCH, 0);
    const size_t limit = g ? limit_with_parts(g) : 0;
    ew_graph_free(g);
    if (EW_EXPECT(limit > 0))
        compare_training("lenet5", 8 * BATCH, 1 << 16, limit);
}

EW_TEST_MAIN(EW_TEST(training_is_the_same), EW_TEST(parts_of_a_batch_are_the_same))
