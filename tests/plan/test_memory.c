/* SPDX-License-Identifier: Apache-2.0 */
/* Placement: no two living buffers overlap, and the block is near its lower bound. */
#include "plan/memory.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/mem.h"
#include "ew_test.h"

#define MANY 300

static uint64_t next(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

static bool overlap(const struct ew_buffer *a, const struct ew_buffer *b)
{
    const bool in_time = a->first <= b->last && b->first <= a->last;
    const bool in_space = a->offset < b->offset + b->size && b->offset < a->offset + a->size;
    return in_time && in_space;
}

/* The most bytes alive at one step: no placement can do with less. */
static size_t lower_bound(const struct ew_buffer *b, int n, int steps)
{
    size_t most = 0;
    for (int s = 0; s < steps; s++) {
        size_t alive = 0;
        for (int i = 0; i < n; i++)
            if (b[i].first <= s && s <= b[i].last)
                alive += ew_align_up(b[i].size);
        most = alive > most ? alive : most;
    }
    return most;
}

static void random_lifetimes(void)
{
    uint64_t state = 7;
    for (int round = 0; round < 50; round++) {
        struct ew_buffer b[MANY];
        const int n = 1 + (int)(next(&state) % MANY);
        for (int i = 0; i < n; i++) {
            const int first = (int)(next(&state) % 100);
            b[i] = (struct ew_buffer){.size = 1 + next(&state) % 5000,
                                      .first = first,
                                      .last = first + (int)(next(&state) % 10)};
        }
        size_t total = 0;
        if (!EW_EXPECT_OK(ew_memory_place(b, n, &total)))
            return;
        for (int i = 0; i < n; i++) {
            EW_EXPECT(b[i].offset % EW_ALIGN == 0 && b[i].offset + b[i].size <= total);
            for (int j = 0; j < i; j++)
                EW_EXPECT(!overlap(&b[i], &b[j]));
        }
        EW_EXPECT(total <= 2 * lower_bound(b, n, 110));
    }
}

/* A chain, as inference is: two neighbours at a time. */
static void chain_needs_two(void)
{
    struct ew_buffer b[10];
    for (int i = 0; i < 10; i++)
        b[i] = (struct ew_buffer){.size = 1024, .first = i, .last = i + 1};
    size_t total = 0;
    EW_EXPECT_OK(ew_memory_place(b, 10, &total));
    EW_EXPECT_INT(total, 2 * 1024);
}

static void nothing_to_place(void)
{
    size_t total = 1;
    EW_EXPECT_OK(ew_memory_place(NULL, 0, &total));
    EW_EXPECT_INT(total, 0);
}

EW_TEST_MAIN(EW_TEST(random_lifetimes), EW_TEST(chain_needs_two), EW_TEST(nothing_to_place))
