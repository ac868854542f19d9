/* SPDX-License-Identifier: Apache-2.0 */
/* Relus and concatenations that are part of the steps around them: that they are, and that threads,
 * and memory limits, which keep other values and compute some again, change nothing of the
 * gradients.  tests/plan/test_fast.c compares whole networks with references. */
#include <math.h>
#include <string.h>

#include "edgewise.h"
#include "ew_test.h"
#include "model/objective.h"
#include "plan/plan.h"

static const char *const names[] = {"squeezenet1_1", "densenet121", "shufflenet_v2_x0_5"};

static struct ew_graph *build(const char *name, int side)
{
    const struct ew_model_opts o = {
        .size = sizeof(o), .classes = 5, .batch = 4, .height = side, .width = side};
    struct ew_graph *g = NULL;
    const bool ok = EW_EXPECT_OK(ew_model_build(name, &o, &g)) &&
                    EW_EXPECT_OK(ew_model_init(name, 3, g)) && EW_EXPECT_OK(ew_objective_add(g));
    if (ok)
        return g;
    ew_graph_free(g);
    return NULL;
}

static struct ew_plan *run(struct ew_graph *g, size_t limit, int threads)
{
    struct ew_plan *p = NULL;
    const struct ew_plan_opts o = {
        .mode = EW_PLAN_TRAIN, .memory_limit = limit, .backend = {.threads = threads}};
    if (!EW_EXPECT_OK(ew_plan_compile(g, &o, &p)))
        return NULL;
    struct ew_tensor *x = ew_plan_input(p, 0);
    for (int64_t i = 0; i < ew_tensor_count(x); i++)
        ((float *)x->data)[i] = sinf((float)i * 0.37f);
    for (int i = 0; i < 4; i++)
        ((int64_t *)ew_plan_input(p, 1)->data)[i] = i;
    EW_EXPECT_OK(ew_plan_run(p));
    return p;
}

static void same_gradients(const struct ew_graph *g, struct ew_plan *a, struct ew_plan *b)
{
    for (int v = 0; v < g->n_values; v++) {
        const struct ew_tensor *x = ew_plan_grad(a, v), *y = ew_plan_grad(b, v);
        if (g->values[v].kind == EW_VALUE_PARAM && EW_EXPECT(x && y))
            EW_EXPECT(memcmp(x->data, y->data, ew_tensor_bytes(x)) == 0);
    }
}

static void threads_change_nothing(void)
{
    for (size_t i = 0; i < EW_COUNT(names); i++) {
        struct ew_graph *g = build(names[i], 64);
        struct ew_plan *one = g ? run(g, 0, 1) : NULL;
        for (int threads = 2; threads <= 3 && one; threads++) {
            struct ew_plan *more = run(g, 0, threads);
            if (more)
                same_gradients(g, one, more);
            ew_plan_free(more);
        }
        ew_plan_free(one);
        ew_graph_free(g);
    }
}

static void limits_change_nothing(void)
{
    struct ew_graph *g = build("squeezenet1_1", 128);
    struct ew_plan *whole = g ? run(g, 0, 1) : NULL;
    struct ew_plan_stats full, s;
    if (!whole)
        return;
    ew_plan_stats(whole, &full);
    bool less = false;
    for (int percent = 95; percent >= 65; percent -= 6) {
        struct ew_plan *p =
            run(g, (full.arena_bytes + full.weight_bytes) * (size_t)percent / 100, 1);
        if (!p)
            break;
        ew_plan_stats(p, &s);
        less |= s.recompute_cheap || s.segments > 1;
        if (s.parts == 1)
            same_gradients(g, whole, p);
        ew_plan_free(p);
    }
    EW_EXPECT(less);
    ew_plan_free(whole);
    ew_graph_free(g);
}

/* All but the relu behind the first pool are part of convolutions, and nothing is copied. */
static void nothing_is_left(void)
{
    struct ew_graph *g = build("squeezenet1_1", 128);
    struct ew_plan *p = g ? run(g, 0, 1) : NULL;
    int relus = 0, views = 0, copies = 0;
    for (int k = 0; p && k < ew_plan_step_count(p); k++) {
        struct ew_step_info s;
        ew_plan_step_info(p, k, &s);
        relus += s.op && strcmp(s.op, "relu") == 0;
        if (s.op && strcmp(s.op, "concat") == 0)
            *(strcmp(s.kernel, "view") == 0 ? &views : &copies) += 1;
    }
    EW_EXPECT(relus <= 2);
    EW_EXPECT_INT(views, 16);
    EW_EXPECT_INT(copies, 0);
    ew_plan_free(p);
    ew_graph_free(g);
}

EW_TEST_MAIN(EW_TEST(threads_change_nothing), EW_TEST(limits_change_nothing),
             EW_TEST(nothing_is_left))
