/* SPDX-License-Identifier: Apache-2.0 */
/* Property tests over random graphs. */
#include "random_seeds.h"

#include <inttypes.h>
#include <stdlib.h>

#include "ew_test.h"

#define NODES 30 /* limit */

static uint64_t number(const char *name, uint64_t def)
{
    const char *text = getenv(name);
    return text && *text ? strtoull(text, NULL, 10) : def;
}

void ew_random_seed(ew_seed_check *check, uint64_t seed)
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

void ew_random_seeds(ew_seed_check *check, uint64_t n, uint64_t kind)
{
    const uint64_t first = number("EW_SEED", 1) | kind,
                   runs = number("EW_RUNS", ew_test_quick() ? n / 4 : n);
    for (uint64_t seed = first; seed < first + runs; seed++)
        ew_random_seed(check, seed);
}
