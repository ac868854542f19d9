/* SPDX-License-Identifier: Apache-2.0 */
/* Order statistics and the Pareto front of lists of numbers. */
#ifndef EW_BASE_ORDER_STATS_H
#define EW_BASE_ORDER_STATS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/* Sorts ascending. */
void ew_sort(double *v, int n);

/* Of sorted v[n], n > 0: linear interpolation. */
double ew_quantile(const double *v, int n, double q);

/* Sorts v[n]; nan where n is 0. */
double ew_median(double *v, int n);

/* Of integers: sorts ascending; and of sorted v[n], n > 0, percentile by nearest rank, and median.
 */
void ew_sort_i64(int64_t *v, int64_t n);
int64_t ew_nearest_rank(const int64_t *v, int64_t n, double percent);
double ew_median_i64(const int64_t *v, int64_t n);

/* Marks the Pareto-optimal points (lower is better in both coordinates); equal points do not
 * dominate each other.  Points with a nan are never marked. */
ew_err ew_pareto(const double *x, const double *y, int n, bool *front);

#endif
