/* SPDX-License-Identifier: Apache-2.0 */
/* Checksums: independent of how the data is split, and different for any change of a byte or
 * length. */
#include "base/hash.h"

#include <string.h>

#include "ew_test.h"

#define N 333

static void fill(unsigned char *p)
{
    for (int i = 0; i < N; i++)
        p[i] = (unsigned char)(i * 37 + 5);
}

static void pieces_are_the_whole(void)
{
    unsigned char p[N];
    fill(p);
    for (size_t step = 1; step < 150; step++) {
        struct ew_hash a = {0};
        struct ew_hash_wide b = {.total = 0};
        for (size_t i = 0; i < N; i += step) {
            const size_t n = N - i < step ? N - i : step;
            ew_hash_add(&a, p + i, n);
            ew_hash_wide_add(&b, p + i, n);
        }
        EW_EXPECT(ew_hash_sum(&a) == ew_hash_of(p, N));
        EW_EXPECT(ew_hash_wide_sum(&b) == ew_hash_wide_of(p, N));
    }
}

static void every_bit_counts(void)
{
    unsigned char p[N];
    fill(p);
    const uint64_t a = ew_hash_of(p, N), b = ew_hash_wide_of(p, N);
    for (int i = 0; i < 8 * N; i++) {
        p[i / 8] ^= (unsigned char)(1 << i % 8);
        EW_EXPECT(ew_hash_of(p, N) != a && ew_hash_wide_of(p, N) != b);
        p[i / 8] ^= (unsigned char)(1 << i % 8);
    }
}

static void so_does_the_length(void)
{
    unsigned char zeros[N] = {0};
    for (size_t n = 0; n + 1 < N; n++) {
        EW_EXPECT(ew_hash_of(zeros, n) != ew_hash_of(zeros, n + 1));
        EW_EXPECT(ew_hash_wide_of(zeros, n) != ew_hash_wide_of(zeros, n + 1));
    }
}

EW_TEST_MAIN(EW_TEST(pieces_are_the_whole), EW_TEST(every_bit_counts), EW_TEST(so_does_the_length))
