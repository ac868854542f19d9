/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients that are handed out in buckets before parameters are updated: training is the same as
 * with each update at once, in parts of a batch too, and what is written to a gradient counts. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "edgewise.h"
#include "ew_test.h"
#include "model/objective.h"
#include "plan/plan.h"

#define BATCH 8
#define STEPS 3

static struct ew_graph *build(const char *name, int64_t batch)
{
    const struct ew_model_opts o = {.size = sizeof(o), .batch = batch};
    struct ew_graph *g = NULL;
    const bool ok = EW_EXPECT_OK(ew_model_build(name, &o, &g)) &&
                    EW_EXPECT_OK(ew_model_init(name, 3, g)) && EW_EXPECT_OK(ew_objective_add(g));
    if (ok)
        return g;
    ew_graph_free(g);
    return NULL;
}

/* Samples [first, first + n) of the batch that all tests have. */
static void fill_inputs(struct ew_plan *p, int64_t first, int64_t n)
{
    struct ew_tensor *x = ew_plan_input(p, 0), *label = ew_plan_input(p, 1);
    const int64_t each = ew_tensor_count(x) / n;
    for (int64_t i = 0; i < n * each; i++)
        ((float *)x->data)[i] = sinf((float)(first * each + i) * 0.37f);
    for (int64_t i = 0; i < n; i++)
        ((int64_t *)label->data)[i] = (first + i) % 10;
}

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

/* The buckets hold every parameter once. */
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
        int bucket;
        EW_TRY(ew_plan_run_to_bucket(p, &bucket));
        if (bucket < 0)
            break;
        EW_EXPECT_INT(bucket, *buckets);
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

/* The same network, trained with and without buckets. */
static void compare_training(const char *name, int64_t batch, size_t bucket, size_t limit)
{
    struct ew_graph *a = build(name, batch), *b = build(name, batch);
    struct ew_plan *p = NULL, *q = NULL;
    if (a && b && EW_EXPECT_OK(compile(a, 0, limit, &p)) &&
        EW_EXPECT_OK(compile(b, bucket, limit, &q))) {
        fill_inputs(p, 0, batch);
        fill_inputs(q, 0, batch);
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
    compare_training("lenet5", BATCH, 1, 0);       /* a bucket for each layer */
    compare_training("lenet5", BATCH, 1 << 30, 0); /* one for all */
    compare_training("mobilenet_v2_cifar", BATCH, 1 << 20, 0);
}

/* The largest limit, to a tenth, under which the batch is run in parts. */
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
        if (s.parts > 1)
            return limit;
    }
}

static void parts_of_a_batch_are_the_same(void)
{
    struct ew_graph *g = build("lenet5", 8 * BATCH);
    const size_t limit = g ? limit_with_parts(g) : 0;
    ew_graph_free(g);
    if (EW_EXPECT(limit > 0))
        compare_training("lenet5", 8 * BATCH, 1 << 16, limit);
}

/* Two halves of a batch, as two ranks have them: the weighted sum of their gradients is the whole
 * batch's. */
static void sums_are_the_whole_batch(void)
{
    static const int64_t first[] = {0, 3}, count[] = {3, 5};
    struct ew_graph *whole = build("lenet5", BATCH), *part[2];
    struct ew_plan *p = NULL, *q[2] = {NULL, NULL};
    EW_EXPECT_OK(compile(whole, 0, 0, &p));
    for (int r = 0; r < 2; r++) {
        part[r] = build("lenet5", count[r]);
        EW_EXPECT_OK(compile(part[r], 1 << 16, 0, &q[r]));
        fill_inputs(q[r], first[r], count[r]);
    }
    fill_inputs(p, 0, BATCH);
    EW_EXPECT_OK(ew_plan_run(p));
    for (int bucket = 0; bucket >= 0;) {
        for (int r = 0; r < 2; r++)
            EW_EXPECT_OK(ew_plan_run_to_bucket(q[r], &bucket));
        int n = 0;
        const int *values = bucket >= 0 ? ew_plan_bucket(q[0], bucket, &n) : NULL;
        for (int i = 0; i < n; i++) {
            float *a = ew_plan_grad(q[0], values[i])->data;
            float *b = ew_plan_grad(q[1], values[i])->data;
            for (int64_t k = 0; k < ew_tensor_count(ew_plan_grad(q[0], values[i])); k++)
                a[k] = b[k] = a[k] * 3 / BATCH + b[k] * 5 / BATCH;
        }
    }
    for (int r = 0; r < 2; r++) {
        EW_EXPECT_OK(ew_plan_run_updates(q[r]));
        compare(whole, part[r], 1e-6f);
        ew_plan_free(q[r]);
    }
    ew_plan_free(p);
    ew_graph_free(whole);
    ew_graph_free(part[0]);
    ew_graph_free(part[1]);
}

EW_TEST_MAIN(EW_TEST(training_is_the_same), EW_TEST(parts_of_a_batch_are_the_same),
             EW_TEST(sums_are_the_whole_batch))
