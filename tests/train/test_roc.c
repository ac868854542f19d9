/* SPDX-License-Identifier: Apache-2.0 */
/* The receiver operating characteristic against curves computed by hand. */
#include <math.h>

#include "ew_test.h"
#include "train/roc.h"

/* Anomalies score 4, 3, 1; normal ones 3, 2, 0, 0.  Of the 12 pairs the anomaly is ahead in
 * 4 + 3 + 2 = 9, and one is a tie: area 9.5 / 12. */
static void as_by_hand(void)
{
    struct ew_roc_sample s[] = {{0, false}, {4, true},  {3, false}, {1, true},
                                {3, true},  {2, false}, {0, false}};
    struct ew_roc r;
    ew_test_begin("a curve with a tie");
    EW_EXPECT_OK(ew_roc_init(s, 7, 0.25, &r));
    EW_EXPECT_INT(r.anomalies, 3);
    EW_EXPECT_INT(r.normal, 4);
    EW_EXPECT_NEAR(r.area, 9.5 / 12, 1e-12);
    EW_EXPECT_INT(r.n, 6); /* thresholds: none, 4, 3, 2, 1, 0 */
    EW_EXPECT_NEAR(r.points[2].found, 2 / 3.0, 1e-12);
    EW_EXPECT_NEAR(r.points[2].false_alarms, 0.25, 1e-12);
    EW_EXPECT_NEAR(r.best.threshold, 1, 0); /* all three at 2 of 4: 1 - 0.5 */
    EW_EXPECT_NEAR(r.quiet.threshold, 3, 0);
    EW_EXPECT_NEAR(r.quiet.found, 2 / 3.0, 1e-12);
    EW_EXPECT_NEAR(r.points[5].found + r.points[5].false_alarms, 2, 1e-12);
    EW_EXPECT(r.area_error > 0 && r.area_error < 0.3);
    ew_roc_fini(&r);
    ew_test_end();
}

static void extremes(void)
{
    struct ew_roc_sample apart[] = {{2, true}, {1, false}}, equal[] = {{1, true}, {1, false}};
    struct ew_roc_sample one[] = {{1, true}}, odd[] = {{(double)NAN, true}, {1, false}};
    struct ew_roc r;
    ew_test_begin("all apart, all equal, one kind alone");
    EW_EXPECT_OK(ew_roc_init(apart, 2, 0, &r));
    EW_EXPECT_NEAR(r.area, 1, 0);
    EW_EXPECT_NEAR(r.best.threshold, 2, 0);
    EW_EXPECT_NEAR(r.area_error, 0, 1e-12);
    ew_roc_fini(&r);
    EW_EXPECT_OK(ew_roc_init(equal, 2, 0, &r));
    EW_EXPECT_NEAR(r.area, 0.5, 0);
    ew_roc_fini(&r);
    EW_EXPECT_ERR(ew_roc_init(one, 1, 0, &r), EW_ERR_ARG, "some of either kind");
    EW_EXPECT_ERR(ew_roc_init(odd, 2, 0, &r), EW_ERR_ARG, "not a number");
    ew_test_end();
}

int main(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    as_by_hand();
    extremes();
    return ew_test_status();
}
