/* SPDX-License-Identifier: Apache-2.0 */
/* Symmetric positive definite matrices of a few hundred rows, row by row in doubles. */
#ifndef EW_ADVISE_CHOLESKY_H
#define EW_ADVISE_CHOLESKY_H

#include <stdbool.h>

/* a = L L' in place (lower triangle; the upper one is left as it is).  False where `a` is not
 * positive definite. */
bool ew_chol(double *a, int n);

/* x := L^-1 x and x := L'^-1 x; one after the other solve a x = b. */
void ew_chol_forward(const double *l, int n, double *x);
void ew_chol_backward(const double *l, int n, double *x);
void ew_chol_solve(const double *l, int n, double *x);

/* inv := a^-1, both triangles, of the factor `l`. */
void ew_chol_inverse(const double *l, int n, double *inv);

/* ln det a. */
double ew_chol_log_det(const double *l, int n);

/* v' m w for a full n x n matrix. */
double ew_quad_form(const double *m, int n, const double *v, const double *w);

#endif
