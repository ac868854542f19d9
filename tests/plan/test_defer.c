/* SPDX-License-Identifier: Apache-2.0 */
/* Batch norms that are done by their readers: where plans have them, and that memory limits, which
 * compute values again, change nothing of the gradients. */
#include <math.h>
#include <string.h>

#include "edgewise.h"
#include "ew_test.h"
#include "model/objective.h"
#include "plan/plan.h"

static struct ew_graph *build(void)
{
    const struct ew_model_opts o = {
        .size = sizeof(o), .classes = 5, .batch = 4, .height = 64, .width = 64};
    struct ew_graph *g = NULL;
    const bool ok = EW_EXPECT_OK(ew_model_build("mobilenet_v2", &o, &g)) &&
                    EW_EXPECT_OK(ew_model_init("mobilenet_v2", 3, g)) &&
                    EW_EXPECT_OK(ew_objective_add(g));
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
    struct ew_graph *g = build(), *h = build();
    struct ew_plan *a = g ? run(g, 0, 1) : NULL, *b = h ? run(h, 0, 2) : NULL;
    if (a && b)
        same_gradients(g, a, b);
    ew_plan_free(a);
    ew_plan_free(b);
    ew_graph_free(g);
    ew_graph_free(h);
}

static void limits_change_nothing(void)
{
    struct ew_graph *g = build();
    struct ew_plan *whole = g ? run(g, 0, 1) : NULL;
    struct ew_plan_stats full, s;
    if (!whole)
        return;
    ew_plan_stats(whole, &full);
    bool cheap = false, segments = false;
    for (int percent = 95; percent >= 81; percent -= 7) {
        struct ew_plan *p =
            run(g, (full.arena_bytes + full.weight_bytes) * (size_t)percent / 100, 1);
        if (!p)
            break;
        ew_plan_stats(p, &s);
        cheap |= s.recompute_cheap;
        segments |= s.segments > 1;
        if (s.parts == 1)
            same_gradients(g, whole, p);
        ew_plan_free(p);
    }
    EW_EXPECT(cheap || segments);
    ew_plan_free(whole);
    ew_graph_free(g);
}

EW_TEST_MAIN(EW_TEST(threads_change_nothing), EW_TEST(limits_change_nothing))
