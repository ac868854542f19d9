/* SPDX-License-Identifier: Apache-2.0 */
/* Relus and concatenations that are fused into adjacent steps: that they are, and that threads and
 * memory limits, which keep other values and recompute some, do not change the gradients.
 * tests/plan/test_fast.c compares whole networks with references. */
#include <stdlib.h>

#include "train_once.h"

static const char *const names[] = {"squeezenet1_1", "densenet121", "shufflenet_v2_x0_5"};

static void threads_change_nothing(void)
{
    const bool quick = ew_test_quick();
    for (size_t i = 0; i < (quick ? 1 : EW_COUNT(names)); i++) {
        struct ew_graph *g = train_build(names[i], quick ? 40 : 64);
        struct ew_plan *one = g ? train_run(g, 0, 1) : NULL;
        for (int threads = 2; threads <= 3 && one; threads++) {
            struct ew_plan *more = train_run(g, 0, threads);
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
    if (getenv("EW_DEVICE"))
        EW_SKIP("limits are those of the CPU's kernels");
    struct ew_graph *g = train_build("squeezenet1_1", 128);
    struct ew_plan *whole = g ? train_run(g, 0, 1) : NULL;
    struct ew_plan_stats full, s;
    if (!whole)
        return;
    ew_plan_stats(whole, &full);
    bool less = false;
    for (int percent = 95; percent >= 65; percent -= ew_test_quick() ? 15 : 6) {
        struct ew_plan *p =
            train_run(g, (full.arena_bytes + full.weight_bytes) * (size_t)percent / 100, 1);
        if (!p)
            break;
        ew_plan_stats(p, &s);
        less |= s.recompute_cheap || s.segments > 1;
        if (s.micro_batches == 1)
            same_gradients(g, whole, p);
        ew_plan_free(p);
    }
    EW_EXPECT(less);
    ew_plan_free(whole);
    ew_graph_free(g);
}

/* All relus except the one after the first pool are fused into convolutions, and nothing is
 * copied. */
static void nothing_is_left(void)
{
    if (getenv("EW_DEVICE"))
        EW_SKIP("counts kernels of the CPU");
    struct ew_graph *g = train_build("squeezenet1_1", 128);
    struct ew_plan *p = g ? train_run(g, 0, 1) : NULL;
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
