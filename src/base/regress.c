/* SPDX-License-Identifier: Apache-2.0 */
/* A straight line through points, and Student's t. */
#include "base/regress.h"

#include <math.h>

/* ---- Student's t ---- */

/* The continued fraction of the incomplete beta function by Lentz's method (DLMF 8.17.22). */
static double beta_fraction(double a, double b, double x)
{
    const double tiny = 1e-300;
    double c = 1, d = 1 - (a + b) * x / (a + 1);
    d = 1 / (fabs(d) < tiny ? tiny : d);
    double h = d;
    for (int m = 1; m < 1000; m++) {
        const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        double change = 1;
        for (int k = 0; k < 2; k++) {
            const double term = k ? odd : even;
            d = 1 + term * d;
            d = 1 / (fabs(d) < tiny ? tiny : d);
            c = 1 + term / c;
            c = fabs(c) < tiny ? tiny : c;
            change = c * d;
            h *= change;
        }
        if (fabs(change - 1) < 1e-15)
            break;
    }
    return h;
}

/* The regularised incomplete beta function I_x(a, b). */
static double beta_share(double a, double b, double x)
{
    if (x <= 0)
        return 0;
    if (x >= 1)
        return 1;
    const double front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));
    return x < (a + 1) / (a + b + 2) ? front * beta_fraction(a, b, x) / a
                                     : 1 - front * beta_fraction(b, a, 1 - x) / b;
}

double ew_student_p(double t, double freedom)
{
    if (isinf(t))
        return 0;
    return beta_share(freedom / 2, 0.5, freedom / (freedom + t * t));
}

double ew_student_t(double p, double freedom)
{
    double low = 0, high = 1;
    while (ew_student_p(high, freedom) > p && high < 1e300)
        high *= 2;
    for (int i = 0; i < 200 && high - low > 1e-12 * high; i++) {
        const double middle = 0.5 * (low + high);
        if (ew_student_p(middle, freedom) > p)
            low = middle;
        else
            high = middle;
    }
    return 0.5 * (low + high);
}

double ew_pearson_p(double r, int n)
{
    if (n < 3)
        return (double)NAN;
    const double rest = 1 - r * r;
    return rest > 0 ? ew_student_p(r * sqrt((n - 2) / rest), n - 2) : 0;
}

/* ---- The line ---- */

struct sums {
    double x, y, xx, xy, yy;
};

static ew_err add_up(const double *x, const double *y, int n, struct sums *s)
{
    *s = (struct sums){0};
    for (int i = 0; i < n; i++) {
        EW_CHECK(isfinite(x[i]) && isfinite(y[i]), EW_ERR_ARG, "point %d is not a number", i + 1);
        s->x += x[i] / n;
        s->y += y[i] / n;
    }
    for (int i = 0; i < n; i++) {
        s->xx += (x[i] - s->x) * (x[i] - s->x);
        s->xy += (x[i] - s->x) * (y[i] - s->y);
        s->yy += (y[i] - s->y) * (y[i] - s->y);
    }
    return EW_OK;
}

ew_err ew_line_fit(const double *x, const double *y, int n, struct ew_line *out)
{
    struct sums s;
    EW_CHECK(n >= 2, EW_ERR_ARG, "a line needs 2 points, there %s %d", n == 1 ? "is" : "are", n);
    EW_TRY(add_up(x, y, n, &s));
    EW_CHECK(s.xx > 0, EW_ERR_ARG, "all %d points are at %g: no line goes through them", n, s.x);
    const double slope = s.xy / s.xx;
    const double left = fmax(0, s.yy - slope * s.xy), none = (double)NAN;
    *out = (struct ew_line){.n = n,
                            .slope = slope,
                            .intercept = s.y - slope * s.x,
                            .r = s.yy > 0 ? s.xy / sqrt(s.xx * s.yy) : 0,
                            .residual = n > 2 ? sqrt(left / (n - 2)) : none,
                            .x_mean = s.x,
                            .x_ss = s.xx};
    out->p = ew_pearson_p(out->r, n);
    out->slope_error = out->residual / sqrt(s.xx);
    return EW_OK;
}

double ew_line_margin(const struct ew_line *l, double x, double level)
{
    if (l->n < 3)
        return (double)NAN;
    const double away = x - l->x_mean;
    return ew_student_t(1 - level, l->n - 2) * l->residual *
           sqrt(1 + 1.0 / l->n + away * away / l->x_ss);
}
