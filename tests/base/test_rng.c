/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers: the published vectors, moments, order. */
#include "base/rng.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "ew_test.h"

/* Known-answer vectors of Philox4x32-10, published with its authors' code (kat_vectors). */
static void known_answers(void)
{
    static const struct {
        uint64_t seed, stream, index;
        uint32_t want[4];
    } cases[] = {
        {0, 0, 0, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {UINT64_MAX, UINT64_MAX, UINT64_MAX, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {0x299f31d0a4093822,
         0x0370734413198a2e,
         0x85a308d3243f6a88,
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < EW_COUNT(cases); i++) {
        const struct ew_rng_block b = ew_rng_block(cases[i].seed, cases[i].stream, cases[i].index);
        for (int k = 0; k < 4; k++)
            EW_EXPECT_INT(b.v[k], cases[i].want[k]);
    }
}

enum { DRAWS = 200000 };

/* Bounds are five standard errors: 1/sqrt(12 n) for the mean of uniforms, and so on. */
static void moments(void)
{
    double mean = 0, normal_mean = 0, normal_var = 0, fourth = 0;
    for (uint64_t i = 0; i < DRAWS; i++) {
        const double u = ew_rng_uniform(7, 1, i), z = ew_rng_normal(7, 2, i);
        EW_EXPECT(u >= 0 && u < 1);
        mean += u / DRAWS;
        normal_mean += z / DRAWS;
        normal_var += z * z / DRAWS;
        fourth += z * z * z * z / DRAWS;
    }
    EW_EXPECT_NEAR(mean, 0.5, 5 * sqrt(1.0 / 12 / DRAWS));
    EW_EXPECT_NEAR(normal_mean, 0, 5 * sqrt(1.0 / DRAWS));
    EW_EXPECT_NEAR(normal_var, 1, 5 * sqrt(2.0 / DRAWS));
    EW_EXPECT_NEAR(fourth, 3, 5 * sqrt(96.0 / DRAWS));
}

static void streams_differ(void)
{
    double together = 0;
    for (uint64_t i = 0; i < DRAWS; i++)
        together += ew_rng_normal(1, 0, i) * ew_rng_normal(1, 1, i) / DRAWS;
    EW_EXPECT_NEAR(together, 0, 5 * sqrt(1.0 / DRAWS));
    EW_EXPECT(ew_rng_u64(1, 0, 0) != ew_rng_u64(2, 0, 0));
}

static void in_turn_is_by_index(void)
{
    struct ew_rng r = {.seed = 3, .stream = 4};
    for (uint64_t i = 0; i < 10; i++)
        EW_EXPECT_INT(ew_rng_next(&r), ew_rng_u64(3, 4, i));
    EW_EXPECT_NEAR(ew_rng_next_uniform(&r), ew_rng_uniform(3, 4, 10), 0);
    EW_EXPECT_NEAR(ew_rng_next_normal(&r), ew_rng_normal(3, 4, 11), 0);
}

static void below_is_even(void)
{
    int64_t count[7] = {0};
    struct ew_rng r = {.seed = 5};
    for (int i = 0; i < DRAWS; i++) {
        const uint64_t v = ew_rng_next_below(&r, 7);
        if (EW_EXPECT(v < 7))
            count[v]++;
    }
    for (int i = 0; i < 7; i++)
        EW_EXPECT_NEAR((double)count[i], DRAWS / 7.0, 5 * sqrt(DRAWS / 7.0));
    EW_EXPECT_INT(ew_rng_next_below(&r, 1), 0);
}

static void shuffles(void)
{
    enum { N = 1000 };
    int64_t a[N], b[N], seen[N] = {0};
    for (int i = 0; i < N; i++)
        a[i] = b[i] = i;
    struct ew_rng r = {.seed = 9}, same = {.seed = 9};
    ew_rng_shuffle(&r, a, N);
    ew_rng_shuffle(&same, b, N);
    EW_EXPECT(memcmp(a, b, sizeof(a)) == 0);
    int in_place = 0;
    for (int i = 0; i < N; i++) {
        seen[a[i]]++;
        in_place += a[i] == i;
    }
    for (int i = 0; i < N; i++)
        EW_EXPECT_INT(seen[i], 1);
    EW_EXPECT(in_place < 10); /* one is expected */
}

EW_TEST_MAIN(EW_TEST(known_answers), EW_TEST(moments), EW_TEST(streams_differ),
             EW_TEST(in_turn_is_by_index), EW_TEST(below_is_even), EW_TEST(shuffles))
