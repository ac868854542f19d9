/* SPDX-License-Identifier: Apache-2.0 */
/* Linear regression, correlation and its p-value. */
#include "base/regress.h"

#include <math.h>

#include "ew_test.h"

/* Sums computed by hand, in fractions; p by the closed form for 4 degrees of freedom. */
static void line_of_six_points(void)
{
    const double x[] = {1, 2, 3, 4, 5, 6}, y[] = {2.1, 3.9, 6.2, 7.8, 10.1, 11.7};
    struct ew_line l;
    EW_EXPECT_OK(ew_line_fit(x, y, 6, &l));
    EW_EXPECT_NEAR(l.slope, 1.9485714285714286, 1e-14);
    EW_EXPECT_NEAR(l.intercept, 0.14666666666666667, 1e-14);
    EW_EXPECT_NEAR(l.r * l.r, 0.99779185675671789, 1e-14);
    EW_EXPECT_NEAR(l.slope_error, 0.045833178725774, 1e-13);
    const double angle = atan(l.slope / l.slope_error / 2), c = cos(angle);
    EW_EXPECT_NEAR(l.p, 1 - sin(angle) * (1 + c * c / 2), 1e-14);
    /* At the mean: t(0.975, 4) * s * sqrt(1 + 1/6). */
    EW_EXPECT_NEAR(ew_line_margin(&l, 3.5, 0.95), 2.776445 * l.residual * sqrt(7.0 / 6), 1e-6);
}

static void student(void)
{
    EW_EXPECT_NEAR(ew_student_p(0, 5), 1, 1e-15);
    EW_EXPECT_NEAR(ew_student_p(1, 1), 0.5, 1e-14); /* Cauchy distribution */
    EW_EXPECT_NEAR(ew_student_p(2, 2), 0.18350341907227, 1e-12);
    EW_EXPECT_NEAR(ew_student_t(0.05, 4), 2.7764451051978, 1e-9);
    EW_EXPECT_NEAR(ew_student_t(0.05, 22), 2.0738730679040, 1e-9);
    EW_EXPECT_NEAR(ew_student_p(INFINITY, 3), 0, 0);
}

/* Tables 4 and 5 of the SCALE study: p of each correlation, whose third digit is rounded. */
static void published_correlations(void)
{
    static const struct {
        double r, p;
        int n;
    } all[] = {{0.786, 5.2e-6, 24},  {0.648, 6.1e-4, 24},  {0.850, 1.5e-7, 24},
               {0.546, 8.6e-3, 22},  {0.924, 1.2e-10, 24}, {0.999, 1.6e-32, 24},
               {0.991, 8.6e-21, 24}, {0.391, 5.9e-2, 24},  {0.994, 7.8e-21, 22}};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        const double most = ew_pearson_p(all[i].r - 0.0005, all[i].n);
        const double least = ew_pearson_p(all[i].r + 0.0005, all[i].n);
        EW_EXPECT(least <= all[i].p * 1.01 && all[i].p * 0.99 <= most);
    }
}

static void refusals(void)
{
    const double same[] = {2, 2, 2}, y[] = {1, 2, 3}, bad[] = {1, NAN, 3};
    struct ew_line l;
    EW_EXPECT_ERR(ew_line_fit(y, y, 1, &l), EW_ERR_ARG, "2 points, there is 1");
    EW_EXPECT_ERR(ew_line_fit(same, y, 3, &l), EW_ERR_ARG, "all 3 points are at 2");
    EW_EXPECT_ERR(ew_line_fit(y, bad, 3, &l), EW_ERR_ARG, "point 2 is not a number");
    EW_EXPECT_OK(ew_line_fit(y, y, 2, &l));
    EW_EXPECT(isnan(l.p) && isnan(ew_line_margin(&l, 1, 0.95)));
}

EW_TEST_MAIN(EW_TEST(line_of_six_points), EW_TEST(student), EW_TEST(published_correlations),
             EW_TEST(refusals))
