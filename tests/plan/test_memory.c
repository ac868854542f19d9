/* SPDX-License-Identifier: Apache-2.0 */
/* Memory planning: no two live buffers overlap, and the block is near its lower bound. */
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

/* Most bytes alive at one step, a lower bound of any placement. */
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
        if (!EW_EXPECT_OK(ew_memory_place(b, n, &total, NULL)))
            return;
        for (int i = 0; i < n; i++) {
            EW_EXPECT(b[i].offset % EW_ALIGN == 0 && b[i].offset + b[i].size <= total);
            for (int j = 0; j < i; j++)
                EW_EXPECT(!overlap(&b[i], &b[j]));
        }
        EW_EXPECT(total <= 2 * lower_bound(b, n, 110));
    }
}

/* A chain, as in inference: two adjacent values are alive at a time. */
static void chain_needs_two(void)
{
    struct ew_buffer b[10];
    for (int i = 0; i < 10; i++)
        b[i] = (struct ew_buffer){.size = 1024, .first = i, .last = i + 1};
    size_t total = 0;
    EW_EXPECT_OK(ew_memory_place(b, 10, &total, NULL));
    EW_EXPECT_INT(total, 2 * 1024);
}

static void nothing_to_place(void)
{
    size_t total = 1;
    EW_EXPECT_OK(ew_memory_place(NULL, 0, &total, NULL));
    EW_EXPECT_INT(total, 0);
}

static int by_offset(const void *a, const void *b)
{
    const struct ew_buffer *x = *(struct ew_buffer *const *)a, *y = *(struct ew_buffer *const *)b;
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* Returns the most bytes alive at one step, and checks that no two live buffers overlap, using a
 * list of the live ones: for more buffers than can be compared pairwise. */
static size_t check_many(struct ew_buffer *b, int n, int steps, struct ew_buffer **living)
{
    size_t most = 0;
    int n_living = 0, next_one = 0; /* b is sorted by first step */
    for (int s = 0; s < steps; s++) {
        int kept = 0;
        size_t alive = 0;
        for (int i = 0; i < n_living; i++)
            if (living[i]->last >= s)
                living[kept++] = living[i];
        for (n_living = kept; next_one < n && b[next_one].first == s; next_one++)
            living[n_living++] = &b[next_one];
        qsort(living, (size_t)n_living, sizeof(*living), by_offset);
        for (int i = 0; i < n_living; i++) {
            alive += ew_align_up(living[i]->size);
            if (i && living[i]->size &&
                living[i - 1]->offset + living[i - 1]->size > living[i]->offset) {
                EW_FAIL("two buffers overlap at step %d", s);
                return 0;
            }
        }
        most = alive > most ? alive : most;
    }
    return most;
}

/* Regression: a file of 10,000 nodes took 9 s, one of 100,000 over a minute, since all buffers were
 * compared pairwise.  Lifetimes are short, or all last to the end, or a mixture. */
static void many_buffers_take_n_log_n(void)
{
    enum { SOME = 20000, ALL = 160000 };
    struct ew_buffer *b = calloc(ALL, sizeof(*b));
    struct ew_buffer **living = calloc(ALL, sizeof(struct ew_buffer *));
    for (int kind = 0; kind < 3 && EW_EXPECT(b && living); kind++) {
        int64_t probes[2] = {0, 0};
        for (int large = 0; large < 2; large++) {
            const int n = large ? ALL : SOME, steps = n / 4;
            uint64_t state = 11;
            for (int i = 0; i < n; i++) {
                const bool stays = kind == 1 || (kind == 2 && next(&state) % 8 == 0);
                const int first = i / 4, last = first + (int)(next(&state) % 10);
                b[i] = (struct ew_buffer){.size = next(&state) % 5000,
                                          .first = first,
                                          .last = stays || last >= steps ? steps - 1 : last};
            }
            size_t total = 0;
            EW_EXPECT_OK(ew_memory_place(b, n, &total, &probes[large]));
            EW_EXPECT(probes[large] < 12 * (int64_t)n);
            if (large == 0 || kind == 0) { /* the check itself is quadratic if all buffers stay
                                            * alive */
                const size_t least =
                    kind == 1 ? total : check_many(b, n, kind == 2 ? 2000 : steps, living);
                EW_EXPECT(kind == 2 || total <= least + least / 2);
            }
        }
        EW_EXPECT(probes[1] < 2 * probes[0] * (ALL / SOME));
    }
    free(living);
    free(b);
}

/* The sweep on few buffers, where its block can be compared with the best placement. */
static void sweep_is_near_the_best(void)
{
    uint64_t state = 5;
    size_t swept = 0, placed = 0;
    for (int round = 0; round < 50; round++) {
        struct ew_buffer b[MANY];
        for (int i = 0; i < MANY; i++) {
            const int first = (int)(next(&state) % 100);
            b[i] = (struct ew_buffer){.size = next(&state) % 5000,
                                      .first = first,
                                      .last = first + (int)(next(&state) % 10)};
        }
        size_t total = 0;
        int64_t probes = 0;
        EW_EXPECT_OK(ew_memory_sweep(b, MANY, &total, &probes));
        for (int i = 0; i < MANY; i++)
            for (int j = 0; j < i; j++)
                EW_EXPECT(!overlap(&b[i], &b[j]));
        swept += total;
        EW_EXPECT_OK(ew_memory_place(b, MANY, &total, NULL));
        placed += total;
    }
    EW_EXPECT(swept < placed + placed / 3);
}

EW_TEST_MAIN(EW_TEST(random_lifetimes), EW_TEST(chain_needs_two), EW_TEST(nothing_to_place),
             EW_TEST(many_buffers_take_n_log_n), EW_TEST(sweep_is_near_the_best))
