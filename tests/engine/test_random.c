/* SPDX-License-Identifier: Apache-2.0 */
/* Random graphs in all configurations, compared with the references (random_seeds.h). */
#include "all_configs.h"
#include "ew_test.h"
#include "random_graph.h"
#include "random_seeds.h"

#define GRAPHS     300
#define MOST_BATCH 5

/* Other orders of sums; the references add in double.  Quantised values may differ by a step, which
 * later layers amplify. */
#define TOLERANCE       2e-4
#define QUANT_TOLERANCE 0.1

static ew_err check_forward(uint64_t seed, int nodes, bool print)
{
    struct ew_graph *g = NULL;
    EW_TRY(ew_random_graph(&(struct ew_random_graph){.seed = seed, .nodes = nodes}, &g));
    const bool quant = ew_random_graph_quantises(g);
    const struct ew_all_configs o = {.seed = seed,
                                     .tolerance = quant ? QUANT_TOLERANCE : TOLERANCE,
                                     .files = true,
                                     .most_batch = seed % 4 == 0 ? MOST_BATCH : 0,
                                     .must_run = true};
    const ew_err e = ew_run_all_configs(g, &o);
    if (e != EW_OK && print)
        ew_random_graph_print(g, stderr);
    ew_graph_free(g);
    return e;
}

static void results_agree(void)
{
    ew_random_seeds(check_forward, GRAPHS, 0);
}

EW_TEST_MAIN(EW_TEST(results_agree))
