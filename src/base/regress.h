/* SPDX-License-Identifier: Apache-2.0 */
/* Simple linear regression, with its statistics. */
#ifndef EW_BASE_REGRESS_H
#define EW_BASE_REGRESS_H

#include "base/err.h"

struct ew_line {
    int n;
    double slope, intercept;
    double r;            /* Pearson's */
    double p;            /* two-sided p-value of r; nan below 3 points */
    double slope_error;  /* standard error; nan below 3 points */
    double residual;     /* standard deviation of y about the line; nan below 3 points */
    double x_mean, x_ss; /* mean of x, sum of squares about it */
};

/* Fits y = slope * x + intercept by least squares.  Fails with fewer than two points, non-finite
 * numbers, or if all x are equal. */
ew_err ew_line_fit(const double *x, const double *y, int n, struct ew_line *out);

/* Half-width of the prediction interval for a new y at x with probability `level` (0.95); nan below
 * 3 points. */
double ew_line_margin(const struct ew_line *l, double x, double level);

/* Two-sided p-value of Student's t. */
double ew_student_p(double t, double freedom);
/* The two-sided quantile of Student's t. */
double ew_student_t(double p, double freedom);
/* The p-value of a correlation r of n points. */
double ew_pearson_p(double r, int n);

#endif
