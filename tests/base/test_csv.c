/* SPDX-License-Identifier: Apache-2.0 */
/* Reading CSV text; order statistics and the Pareto front. */
#include "base/csv.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/order_stats.h"
#include "base/rng.h"
#include "ew_test.h"

static void cells_and_lines(void)
{
    char text[] = "\xef\xbb\xbf"
                  "a, b ,\"c\"\r\n\n# no row\n1,\"x \"\"y\"\",\nz\",\n last ";
    struct ew_csv c;
    ew_csv_init(&c, text, "t.csv");
    EW_EXPECT(ew_csv_next(&c));
    EW_EXPECT_INT(c.n, 3);
    EW_EXPECT_STR(c.cells[0], "a");
    EW_EXPECT_STR(c.cells[1], "b");
    EW_EXPECT_STR(c.cells[2], "c");
    EW_EXPECT_INT(ew_csv_column(&c, "B"), 1);
    EW_EXPECT_INT(ew_csv_column(&c, "d"), -1);
    EW_EXPECT(ew_csv_next(&c));
    EW_EXPECT_INT(c.line, 4);
    EW_EXPECT_INT(c.n, 3);
    EW_EXPECT_STR(c.cells[1], "x \"y\",\nz");
    EW_EXPECT_STR(c.cells[2], "");
    EW_EXPECT(ew_csv_next(&c));
    EW_EXPECT_INT(c.line, 6);
    EW_EXPECT_STR(c.cells[0], "last");
    EW_EXPECT(!ew_csv_next(&c));
    EW_EXPECT_OK(c.err);
}

static void other_separators(void)
{
    char semicolons[] = "# note, with a comma\na;b c;\n1,5; 2 ;\"x;y\"\n",
         tabs[] = "a\tb\n\t2 \r\n";
    struct ew_csv c;
    ew_csv_init(&c, semicolons, "t.csv");
    ew_csv_guess_separator(&c);
    EW_EXPECT(ew_csv_next(&c));
    EW_EXPECT_INT(c.n, 3);
    EW_EXPECT_STR(c.cells[1], "b c");
    EW_EXPECT(ew_csv_next(&c));
    EW_EXPECT_INT(c.line, 3);
    EW_EXPECT_STR(c.cells[0], "1,5");
    EW_EXPECT_STR(c.cells[1], "2");
    EW_EXPECT_STR(c.cells[2], "x;y");
    ew_csv_init(&c, tabs, "t.csv");
    ew_csv_guess_separator(&c);
    EW_EXPECT(ew_csv_next(&c));
    EW_EXPECT(ew_csv_next(&c));
    EW_EXPECT_INT(c.n, 2);
    EW_EXPECT_STR(c.cells[0], "");
    EW_EXPECT_STR(c.cells[1], "2");
}

static void says_what_is_wrong(void)
{
    char open[] = "a,b\n1,\"2\n", after[] = "\"a\"b\n", wide[200];
    struct ew_csv c;
    ew_csv_init(&c, open, "t.csv");
    EW_EXPECT(ew_csv_next(&c));
    EW_EXPECT(!ew_csv_next(&c));
    EW_EXPECT_ERR(c.err, EW_ERR_FORMAT, "t.csv:2: a quote is not closed");
    ew_csv_init(&c, after, "t.csv");
    EW_EXPECT(!ew_csv_next(&c));
    EW_EXPECT_ERR(c.err, EW_ERR_FORMAT, "text after a closing quote");
    memset(wide, ',', sizeof(wide));
    wide[sizeof(wide) - 1] = 0;
    ew_csv_init(&c, wide, "t.csv");
    EW_EXPECT(!ew_csv_next(&c));
    EW_EXPECT_ERR(c.err, EW_ERR_FORMAT, "more than 64 columns");
}

static void quantiles(void)
{
    double v[] = {3, 1, 4, 2};
    EW_EXPECT_NEAR(ew_median(v, 4), 2.5, 1e-12);
    EW_EXPECT_NEAR(ew_quantile(v, 4, 1), 4, 1e-12);
    EW_EXPECT_NEAR(ew_quantile(v, 4, 0.25), 1.75, 1e-12);
    EW_EXPECT(isnan(ew_median(v, 0)));
}

/* The sweep finds the same front as pairwise comparison. */
static void front_is_the_quadratic_one(void)
{
    enum { N = 200 };
    double x[N], y[N];
    bool front[N];
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < N; i++) {
            x[i] = (double)(ew_rng_u64(3, 2 * round, i) % 12);
            y[i] = (double)(ew_rng_u64(3, 2 * round + 1, i) % 12);
        }
        x[5] = NAN;
        EW_EXPECT_OK(ew_pareto(x, y, N, front));
        for (int i = 0; i < N; i++) {
            bool beaten = isnan(x[i]);
            for (int j = 0; j < N && !beaten; j++)
                beaten = x[j] <= x[i] && y[j] <= y[i] && (x[j] < x[i] || y[j] < y[i]);
            EW_EXPECT_INT(front[i], !beaten);
        }
    }
}

EW_TEST_MAIN(EW_TEST(cells_and_lines), EW_TEST(other_separators), EW_TEST(says_what_is_wrong),
             EW_TEST(quantiles), EW_TEST(front_is_the_quadratic_one))
