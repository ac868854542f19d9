/* SPDX-License-Identifier: Apache-2.0 */
/* Order statistics and the Pareto front. */
#include "base/order_stats.h"

#include <math.h>
#include <stdlib.h>

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void ew_sort(double *v, int n)
{
    if (n > 1)
        qsort(v, (size_t)n, sizeof(*v), by_value);
}

double ew_quantile(const double *v, int n, double q)
{
    const double at = q * (n - 1);
    const int i = (int)at;
    return i + 1 < n ? v[i] + (at - i) * (v[i + 1] - v[i]) : v[n - 1];
}

double ew_median(double *v, int n)
{
    ew_sort(v, n);
    return n > 0 ? ew_quantile(v, n, 0.5) : (double)NAN;
}

static int by_count(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

void ew_sort_i64(int64_t *v, int64_t n)
{
    if (n > 1)
        qsort(v, (size_t)n, sizeof(*v), by_count);
}

int64_t ew_nearest_rank(const int64_t *v, int64_t n, double percent)
{
    /* tolerance for rounding errors: 99.9 % of 1000 is 999 */
    const int64_t rank = (int64_t)ceil(percent / 100 * (double)n - 1e-9);
    return v[rank < 1 ? 0 : rank - 1];
}

double ew_median_i64(const int64_t *v, int64_t n)
{
    return 0.5 * ((double)v[(n - 1) / 2] + (double)v[n / 2]);
}

struct place {
    double x, y;
    int i;
};

static int by_x_then_y(const void *a, const void *b)
{
    const struct place *p = a, *q = b;
    if (p->x < q->x || p->x > q->x)
        return p->x < q->x ? -1 : 1;
    return (p->y > q->y) - (p->y < q->y);
}

ew_err ew_pareto(const double *x, const double *y, int n, bool *front)
{
    struct place *all = malloc((size_t)(n > 0 ? n : 1) * sizeof(*all));
    EW_CHECK(all, EW_ERR_MEMORY, "no memory for a front of %d points", n);
    int count = 0;
    for (int i = 0; i < n; i++) {
        front[i] = false;
        if (!isnan(x[i]) && !isnan(y[i]))
            all[count++] = (struct place){x[i], y[i], i};
    }
    qsort(all, (size_t)count, sizeof(*all), by_x_then_y);
    double best = HUGE_VAL;    /* lowest y so far */
    double best_x = -HUGE_VAL; /* x of its first occurrence */
    for (int k = 0; k < count; k++) {
        const bool first = k == 0, lower = all[k].y < best;
        const bool same = !lower && !(all[k].y > best) && !(all[k].x > best_x);
        if (first || lower || same)
            front[all[k].i] = true;
        if (first || lower) {
            best = all[k].y;
            best_x = all[k].x;
        }
    }
    free(all);
    return EW_OK;
}
