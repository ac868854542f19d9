/* SPDX-License-Identifier: Apache-2.0 */
/* Batch norms applied by their consumers: which plans have them, and that memory limits, which
 * recompute values, do not change the gradients. */
#include <stdlib.h>

#include "train_once.h"

static void threads_of(const char *network)
{
    const int side = ew_test_quick() ? 32 : 64;
    struct ew_graph *g = train_build(network, side), *h = train_build(network, side);
    struct ew_plan *a = g ? train_run(g, 0, 1) : NULL, *b = h ? train_run(h, 0, 2) : NULL;
    if (a && b)
        same_gradients(g, a, b);
    ew_plan_free(a);
    ew_plan_free(b);
    ew_graph_free(g);
    ew_graph_free(h);
}

static void threads_change_nothing(void)
{
    if (!ew_test_quick())
        threads_of("mobilenet_v2");
    threads_of("mobilenet_v3_small"); /* with squeeze-and-excite */
}

static void limits_of(const char *network, int least)
{
    struct ew_graph *g = train_build(network, 64);
    struct ew_plan *whole = g ? train_run(g, 0, 1) : NULL;
    struct ew_plan_stats full, s;
    if (!whole)
        return;
    ew_plan_stats(whole, &full);
    bool cheap = false, segments = false;
    for (int percent = 95; percent >= least; percent -= 7) {
        struct ew_plan *p =
            train_run(g, (full.arena_bytes + full.weight_bytes) * (size_t)percent / 100, 1);
        if (!p)
            break;
        ew_plan_stats(p, &s);
        cheap |= s.recompute_cheap;
        segments |= s.segments > 1;
        if (s.micro_batches == 1)
            same_gradients(g, whole, p);
        ew_plan_free(p);
    }
    EW_EXPECT(cheap || segments);
    ew_plan_free(whole);
    ew_graph_free(g);
}

static void limits_change_nothing(void)
{
    if (getenv("EW_DEVICE"))
        EW_SKIP("limits are those of the CPU's kernels");
    limits_of("mobilenet_v2", 81);
    limits_of("mobilenet_v3_small", 92);
}

EW_TEST_MAIN(EW_TEST(threads_change_nothing), EW_TEST(limits_change_nothing))
