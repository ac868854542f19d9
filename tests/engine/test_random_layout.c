/* SPDX-License-Identifier: Apache-2.0 */
/* Random graphs as files have them, in every way, against the same graph node by node.
 *
 * EW_SEED=N begins with another seed, EW_RUNS=N makes so many graphs.  A graph that fails is made
 * again with fewer nodes until it is as small as its seed can show it, and printed. */
#include <inttypes.h>
#include <stdlib.h>

#include "every_way.h"
#include "ew_test.h"
#include "random_graph.h"
#include "random_layout.h"

#define GRAPHS     160
#define NODES      24 /* at most */
#define MOST_BATCH 3

/* Sums in another order.  Quantisers may be a step apart, which layers behind them enlarge. */
#define TOLERANCE       2e-4
#define QUANT_TOLERANCE 0.1

static uint64_t number(const char *name, uint64_t def)
{
    const char *text = getenv(name);
    return text && *text ? strtoull(text, NULL, 10) : def;
}

static ew_err check(uint64_t seed, int nodes, bool print)
{
    struct ew_graph *file = NULL, *plain = NULL;
    const struct ew_random_layout made = {.seed = seed, .nodes = nodes, .any_batch = seed % 2 == 0};
    EW_TRY(ew_random_layout(&made, &file, &plain));
    const struct ew_every_way o = {.seed = seed,
                                   .tolerance = ew_random_graph_quantises(plain) ? QUANT_TOLERANCE
                                                                                 : TOLERANCE,
                                   .files = true,
                                   .must_run = true,
                                   .by = plain,
                                   .most_batch = made.any_batch ? MOST_BATCH : 0};
    const ew_err e = ew_run_every_way(file, &o);
    if (e != EW_OK && print)
        ew_random_graph_print(plain, stderr);
    ew_graph_free(file);
    ew_graph_free(plain);
    return e;
}

static void check_seed(uint64_t seed)
{
    if (check(seed, 0, false) == EW_OK)
        return;
    int nodes = 1;
    while (nodes < NODES && check(seed, nodes, false) == EW_OK)
        nodes++;
    const ew_err e = check(seed, nodes < NODES ? nodes : 0, true);
    EW_FAIL("seed %" PRIu64 ", %d nodes: %s", seed, nodes < NODES ? nodes : 0,
            e == EW_OK ? "fails now and then" : ew_error_message());
}

static void results_agree(void)
{
    const uint64_t first = number("EW_SEED", 1),
                   n = number("EW_RUNS", ew_test_quick() ? GRAPHS / 4 : GRAPHS);
    for (uint64_t seed = first; seed < first + n; seed++)
        check_seed(seed);
}

EW_TEST_MAIN(EW_TEST(results_agree))
