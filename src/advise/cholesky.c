/* SPDX-License-Identifier: Apache-2.0 */
/* Symmetric positive definite matrices. */
#include "advise/cholesky.h"

#include <math.h>
#include <string.h>

bool ew_chol(double *a, int n)
{
    for (int j = 0; j < n; j++) {
        double *row_j = a + (size_t)j * n;
        double d = row_j[j];
        for (int k = 0; k < j; k++)
            d -= row_j[k] * row_j[k];
        if (!(d > 0) || !isfinite(d))
            return false;
        row_j[j] = sqrt(d);
        for (int i = j + 1; i < n; i++) {
            double *row_i = a + (size_t)i * n;
            double s = row_i[j];
            for (int k = 0; k < j; k++)
                s -= row_i[k] * row_j[k];
            row_i[j] = s / row_j[j];
        }
    }
    return true;
}

void ew_chol_forward(const double *l, int n, double *x)
{
    for (int i = 0; i < n; i++) {
        const double *row = l + (size_t)i * n;
        double s = x[i];
        for (int k = 0; k < i; k++)
            s -= row[k] * x[k];
        x[i] = s / row[i];
    }
}

void ew_chol_backward(const double *l, int n, double *x)
{
    for (int i = n - 1; i >= 0; i--) {
        x[i] /= l[(size_t)i * n + i];
        for (int k = 0; k < i; k++)
            x[k] -= l[(size_t)i * n + k] * x[i];
    }
}

void ew_chol_solve(const double *l, int n, double *x)
{
    ew_chol_forward(l, n, x);
    ew_chol_backward(l, n, x);
}

void ew_chol_inverse(const double *l, int n, double *inv)
{
    memset(inv, 0, (size_t)n * n * sizeof(*inv));
    for (int i = 0; i < n; i++) {
        double *row = inv + (size_t)i * n;
        row[i] = 1;
        ew_chol_solve(l, n, row);
    }
}

double ew_chol_log_det(const double *l, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += log(l[(size_t)i * n + i]);
    return 2 * sum;
}

double ew_quad_form(const double *m, int n, const double *v, const double *w)
{
    double sum = 0;
    for (int i = 0; i < n; i++) {
        double s = 0;
        for (int j = 0; j < n; j++)
            s += m[(size_t)i * n + j] * w[j];
        sum += v[i] * s;
    }
    return sum;
}
