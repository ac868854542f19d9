/* SPDX-License-Identifier: Apache-2.0 */
/* A straight line through points by least squares, with what statistics says of it. */
#ifndef EW_BASE_REGRESS_H
#define EW_BASE_REGRESS_H

#include "base/err.h"

struct ew_line {
    int n;
    double slope, intercept;
    double r;            /* Pearson's */
    double p;            /* two-sided, of "there is no correlation"; nan below 3 points */
    double slope_error;  /* standard error; nan below 3 points */
    double residual;     /* standard deviation of y about the line; nan below 3 points */
    double x_mean, x_ss; /* mean of x, sum of squares about it */
};

/* y = slope * x + intercept.  Fails with fewer than two points, where a number is not finite, and
 * where all x are the same. */
ew_err ew_line_fit(const double *x, const double *y, int n, struct ew_line *out);

/* Half the width of the interval in which a new y at x lies with probability `level` (0.95); nan
 * below 3 points. */
double ew_line_margin(const struct ew_line *l, double x, double level);

/* Two-sided probability of a Student t at least as far from 0, with so many degrees of freedom. */
double ew_student_p(double t, double freedom);
/* The t that leaves `p` outside, two-sided. */
double ew_student_t(double p, double freedom);
/* The p of a correlation r of n points. */
double ew_pearson_p(double r, int n);

#endif
