/* SPDX-License-Identifier: Apache-2.0 */
/* What a law leaves over: Matern 5/2 process, size and length by evidence, leave-one-out. */
#include "advise/rest.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "advise/cholesky.h"

struct ew_mode ew_mode_logs(const struct ew_mode *m)
{
    return (struct ew_mode){log(m->cores), log(m->cpu), log(m->gpu), log(m->mem)};
}

double ew_rest_kernel(double amplitude, double length, const struct ew_mode *a,
                      const struct ew_mode *b)
{
    const double d[] = {a->cores - b->cores, a->cpu - b->cpu, a->gpu - b->gpu, a->mem - b->mem};
    const double square = d[0] * d[0] + d[1] * d[1] + d[2] * d[2] + d[3] * d[3];
    const double u = sqrt(5 * square) / length;
    return amplitude * amplitude * (1 + u + u * u / 3) * exp(-u);
}

/* At most EW_FIT_ROWS of the measurements, spread over them all. */
struct part {
    int n;
    int row[EW_FIT_ROWS];
    struct ew_mode logs[EW_FIT_ROWS];
    double r0[EW_FIT_ROWS];    /* against the law at the prior's mean, linearised at theta */
    double plain[EW_FIT_ROWS]; /* of the measurement */
    double sigma[EW_FIT_ROWS]; /* the same, wider where it is far off: Student weight included */
    double *base;              /* J S0 J' + Sigma, n x n */
    double *c, *inverse;       /* n x n each, in use */
};

static void choose(const struct ew_fit *f, const struct ew_fit_data *data,
                   const struct ew_law_point *points, struct part *p)
{
    const int k = f->prior.n;
    p->n = data->n < EW_FIT_ROWS ? data->n : EW_FIT_ROWS;
    for (int i = 0; i < p->n; i++) {
        const int row = (int)((int64_t)i * data->n / p->n);
        const struct ew_law_point *q = &points[row];
        const double r = data->y[row] - q->y;
        p->row[i] = row;
        p->logs[i] = ew_mode_logs(&data->modes[row]);
        p->plain[i] = q->sigma;
        p->sigma[i] = q->sigma / sqrt(fmin(5 / (4 + r * r / (q->sigma * q->sigma)), 1.25));
        p->r0[i] = r;
        for (int j = 0; j < k; j++)
            p->r0[i] += q->jac[j] * (f->theta[j] - f->prior.mean[j]);
    }
    for (int i = 0; i < p->n; i++)
        for (int l = 0; l < p->n; l++) {
            double s = i == l ? p->sigma[i] * p->sigma[i] : 0;
            for (int j = 0; j < k; j++)
                s += points[p->row[i]].jac[j] * points[p->row[l]].jac[j] * f->prior.sd[j] *
                     f->prior.sd[j];
            p->base[i * p->n + l] = s;
        }
}

/* ln of the probability of what was measured under a process of this size; leaves the inverse of
 * the covariance in p->inverse. */
static double evidence(const struct part *p, double amplitude, double length)
{
    const int n = p->n;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            p->c[i * n + j] = p->base[i * n + j];
            if (amplitude > 0)
                p->c[i * n + j] += ew_rest_kernel(amplitude, length, &p->logs[i], &p->logs[j]);
        }
    if (!ew_chol(p->c, n))
        return -HUGE_VAL;
    double x[EW_FIT_ROWS], sum = 0;
    memcpy(x, p->r0, (size_t)n * sizeof(*x));
    ew_chol_forward(p->c, n, x);
    for (int i = 0; i < n; i++)
        sum += x[i] * x[i];
    return -0.5 * sum - 0.5 * ew_chol_log_det(p->c, n);
}

/* The size and length that the measurements speak for; without a clear word of theirs, none. */
static void decide(const struct part *p, struct ew_rest *rest)
{
    static const double amplitudes[] = {0.015, 0.03, 0.06, 0.12, 0.25, 0.5};
    static const double lengths[] = {0.5, 1, 2};
    double best = evidence(p, 0, 1);
    for (size_t i = 0; i < EW_COUNT(amplitudes); i++)
        for (size_t j = 0; j < EW_COUNT(lengths); j++) {
            const double e = evidence(p, amplitudes[i], lengths[j]) - 1;
            if (e > best) {
                best = e;
                rest->amplitude = amplitudes[i];
                rest->length = lengths[j];
            }
        }
}

/* z_i = (C^-1 r0)_i / sqrt((C^-1)_ii): each measurement against the others, without fitting again
 * (Sundararajan and Keerthi, Neural Computation 13, 2001). */
static void leave_one_out(const struct part *p, struct ew_fit *f)
{
    const int n = p->n;
    double sum = 2;
    f->evidence = evidence(p, f->rest.amplitude, f->rest.length);
    ew_chol_inverse(p->c, n, p->inverse);
    for (int i = 0; i < n; i++) {
        double s = 0;
        for (int j = 0; j < n; j++)
            s += p->inverse[i * n + j] * p->r0[j];
        const double own = p->inverse[i * n + i], z = s / sqrt(own);
        const double plain = p->plain[i] * p->plain[i] - p->sigma[i] * p->sigma[i];
        f->z[p->row[i]] = z;
        f->odd[p->row[i]] = s / own / sqrt(1 / own + plain);
        sum += fmin(z * z, 16);
    }
    f->scale = sqrt(sum / (2 + n));
}

/* K + Sigma, factored, and its solution for what is left over. */
static ew_err prepare(struct ew_arena *a, const struct part *p, struct ew_fit *f)
{
    struct ew_rest *r = &f->rest;
    const int n = p->n;
    r->n = n;
    r->logs = ew_arena_array(a, (size_t)n, sizeof(*r->logs));
    r->alpha = ew_arena_array(a, (size_t)n, sizeof(*r->alpha));
    r->chol = ew_arena_array(a, (size_t)n * n, sizeof(*r->chol));
    EW_CHECK(r->logs && r->alpha && r->chol, EW_ERR_MEMORY, "no memory for a fit");
    for (int i = 0; i < n; i++) {
        r->logs[i] = p->logs[i];
        r->alpha[i] = f->off[p->row[i]];
        for (int j = 0; j < n; j++)
            r->chol[i * n + j] = ew_rest_kernel(r->amplitude, r->length, &p->logs[i], &p->logs[j]);
        r->chol[i * n + i] += p->sigma[i] * p->sigma[i];
    }
    EW_CHECK(ew_chol(r->chol, n), EW_ERR_ARG, "the measurements do not determine a model");
    ew_chol_solve(r->chol, n, r->alpha);
    return EW_OK;
}

ew_err ew_rest_fit(struct ew_arena *a, struct ew_fit *f, const struct ew_fit_data *data,
                   const struct ew_law_point *points)
{
    const size_t room = EW_FIT_ROWS * EW_FIT_ROWS;
    EW_CLEANUP(ew_free_ptr) void *memory = calloc(3 * room, sizeof(double));
    EW_CHECK(memory, EW_ERR_MEMORY, "no memory for a fit");
    struct part p = {.base = memory};
    p.c = p.base + room;
    p.inverse = p.c + room;
    choose(f, data, points, &p);
    decide(&p, &f->rest);
    leave_one_out(&p, f);
    return f->rest.amplitude > 0 ? prepare(a, &p, f) : EW_OK;
}

void ew_rest_at(const struct ew_rest *r, const struct ew_mode *m, double *scratch, double *mean,
                double *var)
{
    const struct ew_mode at = ew_mode_logs(m);
    for (int i = 0; i < r->n; i++) {
        scratch[i] = ew_rest_kernel(r->amplitude, r->length, &at, &r->logs[i]);
        *mean += scratch[i] * r->alpha[i];
    }
    ew_chol_forward(r->chol, r->n, scratch);
    *var += r->amplitude * r->amplitude;
    for (int i = 0; i < r->n; i++)
        *var -= scratch[i] * scratch[i];
}
