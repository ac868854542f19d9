/* SPDX-License-Identifier: Apache-2.0 */
/* Comparison of two networks' values: a NaN or infinity never agrees. */
#include <math.h>

#include "ew_test.h"
#include "measure/compare_sides.h"

static double db(double signal, double noise)
{
    return ew_agreement_db(&(struct ew_agreement){.signal = signal, .noise = noise});
}

static void ratios(void)
{
    EW_EXPECT(db(1, 0) >= 200 && db(0, 0) >= 200);
    EW_EXPECT_NEAR(db(100, 1), 20, 1e-9);
    EW_EXPECT(db(0, 1) <= -200);
}

/* An infinity in one network only: the ratio of both sums is NaN if it is in the first. */
static void infinities_differ(void)
{
    EW_EXPECT(db(HUGE_VAL, HUGE_VAL) <= -200);
    EW_EXPECT(db(1, HUGE_VAL) <= -200);
    EW_EXPECT(db((double)NAN, (double)NAN) <= -200);
}

EW_TEST_MAIN(EW_TEST(ratios), EW_TEST(infinities_differ))
