/* SPDX-License-Identifier: Apache-2.0 */
/* Residuals of a law: a Matern 5/2 process whose amplitude, length and noise follow from the
 * evidence; leave-one-out residuals. */
#include "advise/residual_gp.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "advise/cholesky.h"
#include "base/order_stats.h"

/* Most residuals depend on one setting (a voltage table, clusters of cores): this share of the
 * variance is a sum of functions of one setting each, which few measurements can determine.  On
 * tests/synthetic_boards.c and on boards with voltage tables 0.8 is better than 0.5 and 0, in both
 * time and power. */
#define ALONE       0.8
#define ALONE_SHORT 2.0 /* with half the length scale */

#define NOISE_SD 0.6 /* standard deviation of ln of the noise over the law's */
#define NONE_LN  1.0 /* ln of the odds of amplitude 0 against all others together */
#define LENGTHS  4   /* length scales that are tried */
#define SETTLE   8   /* Gauss-Newton steps */
#define ROUNDS   3 /* rounds of Student weights by leave-one-out, then the hyperparameters again */

/* The mean of z^2 student(z) over a normal z: what a normal noise leaves of its variance under
 * these weights. */
#define STUDENT_SHARE 0.786
#define NORMAL_MEDIAN 0.6745 /* of |z| */

struct ew_mode ew_mode_logs(const struct ew_mode *m)
{
    return (struct ew_mode){log(m->cores), log(m->cpu), log(m->gpu), log(m->mem)};
}

static double matern(double square)
{
    const double u = sqrt(5 * square);
    return (1 + u + u * u / 3) * exp(-u);
}

double ew_residual_gp_kernel(double amplitude, double length, const struct ew_mode *a,
                             const struct ew_mode *b)
{
    const double l2 = 1 / (length * length);
    const double d[] = {a->cores - b->cores, a->cpu - b->cpu, a->gpu - b->gpu, a->mem - b->mem};
    double square = 0, alone = 0;
    for (int i = 0; i < 4; i++) {
        square += d[i] * d[i];
        alone += matern(d[i] * d[i] * l2 * ALONE_SHORT * ALONE_SHORT);
    }
    return amplitude * amplitude * (ALONE * alone / 4 + (1 - ALONE) * matern(square * l2));
}

/* At most EW_FIT_ROWS of the measurements, spread over them all. */
struct subset {
    int n;
    int row[EW_FIT_ROWS];
    struct ew_mode logs[EW_FIT_ROWS];
    double r0[EW_FIT_ROWS];    /* against the law at the prior's mean, linearised at theta */
    double plain[EW_FIT_ROWS]; /* of the measurement */
    double sigma[EW_FIT_ROWS]; /* the same, wider where it is far off: Student weight included */
    double *base;              /* J S0 J', n x n */
    double *unit[LENGTHS];     /* the process of amplitude 1, n x n, by length */
    double *c, *inverse;       /* n x n each, in use */
};

static const double lengths[LENGTHS] = {0.5, 1, 2, 4};

/* A measurement's weight under Student errors of four degrees of freedom, z standard deviations
 * off. */
static double student(double z)
{
    return fmin(5 / (4 + z * z), 1.25);
}

/* The first weights are relative to the median residual of the law alone, so that noise above the
 * law's does not make measurements outliers. */
static void choose(const struct ew_fit_data *data, const struct ew_law_point *points,
                   struct subset *p)
{
    double off[EW_FIT_ROWS], scratch[EW_FIT_ROWS];
    p->n = data->n < EW_FIT_ROWS ? data->n : EW_FIT_ROWS;
    for (int i = 0; i < p->n; i++) {
        const int row = (int)((int64_t)i * data->n / p->n);
        const struct ew_law_point *q = &points[row];
        p->row[i] = row;
        p->logs[i] = ew_mode_logs(&data->modes[row]);
        p->plain[i] = q->sigma;
        scratch[i] = off[i] = fabs(data->y[row] - q->y) / q->sigma;
    }
    const double usual = fmax(ew_median(scratch, p->n) / NORMAL_MEDIAN, 1);
    for (int i = 0; i < p->n; i++)
        p->sigma[i] = p->plain[i] / sqrt(student(off[i] / usual));
}

/* The rows' covariance by parameters of covariance residual->cov, and r0. */
static void linearise(const struct ew_fit *f, const struct ew_fit_data *data,
                      const struct ew_law_point *points, struct subset *p)
{
    const int k = f->prior.n;
    const struct ew_residual_gp *r = &f->residual;
    for (int i = 0; i < p->n; i++) {
        const struct ew_law_point *q = &points[p->row[i]];
        double *jac = r->cov_jac + i * k;
        p->r0[i] = data->y[p->row[i]] - q->y;
        for (int j = 0; j < k; j++) {
            p->r0[i] -= q->jac[j] * r->shift[j];
            jac[j] = 0;
            for (int l = 0; l < k; l++)
                jac[j] += r->cov[j * k + l] * q->jac[l];
        }
    }
    for (int i = 0; i < p->n; i++)
        for (int l = 0; l < p->n; l++) {
            double s = 0;
            for (int j = 0; j < k; j++)
                s += r->cov_jac[i * k + j] * points[p->row[l]].jac[j];
            p->base[i * p->n + l] = s;
        }
}

/* Hyperparameters of the process and the noise. */
struct hyper {
    double amplitude, length, noise, run;
};

static void process(const struct subset *p, double amplitude, double length, double *out)
{
    for (int i = 0; i < p->n; i++)
        for (int j = 0; j <= i; j++)
            out[i * p->n + j] = ew_residual_gp_kernel(amplitude, length, &p->logs[i], &p->logs[j]);
}

/* p->c + base + Sigma, factored in place; false where it has no factor. */
static bool factor_with(const struct subset *p, const double *base, double noise)
{
    const int n = p->n;
    for (int i = 0; i < n; i++) {
        for (int j = 0; j <= i && base; j++)
            p->c[i * n + j] += base[i * n + j];
        p->c[i * n + i] += noise * noise * p->sigma[i] * p->sigma[i];
    }
    return ew_chol(p->c, n);
}

/* p->c := the factor of J S0 J' + K + Sigma; false where it has none. */
static bool factor(const struct subset *p, const struct hyper *s)
{
    process(p, s->amplitude, s->length, p->c);
    return factor_with(p, p->base, s->noise);
}

/* ln of the probability of what was measured under a process of this amplitude and the length at
 * `place`. */
static double evidence(const struct subset *p, double amplitude, size_t place, double noise)
{
    const int n = p->n;
    for (int i = 0; i < n; i++)
        for (int j = 0; j <= i; j++)
            p->c[i * n + j] = amplitude * amplitude * p->unit[place][i * n + j];
    if (!factor_with(p, p->base, noise))
        return -HUGE_VAL;
    double x[EW_FIT_ROWS], sum = 0;
    memcpy(x, p->r0, (size_t)n * sizeof(*x));
    ew_chol_forward(p->c, n, x);
    for (int i = 0; i < n; i++)
        sum += x[i] * x[i];
    return -0.5 * sum - 0.5 * ew_chol_log_det(p->c, n);
}

/* Sums over hyperparameters, weighted by their probability. */
struct sums {
    double best; /* ln of the probability that weight 1 stands for */
    double weight, amplitude2, ln_length, ln_noise, noise2;
};

static void sums_add(struct sums *t, double ln, const struct hyper *s)
{
    if (ln > t->best) {
        const double fade = exp(t->best - ln);
        t->best = ln;
        t->weight *= fade;
        t->amplitude2 *= fade;
        t->ln_length *= fade;
        t->ln_noise *= fade;
        t->noise2 *= fade;
    }
    const double w = exp(ln - t->best), a2 = w * s->amplitude * s->amplitude;
    t->weight += w;
    t->amplitude2 += a2;
    t->ln_length += a2 * log(s->length);
    t->ln_noise += w * log(s->noise);
    t->noise2 += w * s->noise * s->noise;
}

/* Posterior means of the hyperparameters: averaging keeps small samples from deciding for one
 * extreme. *total gets ln of the probability of the measurements.
 */
static struct hyper decide(const struct subset *p, double *total)
{
    static const double amplitudes[] = {0, 0.01, 0.025, 0.06, 0.15, 0.4};
    static const double noises[] = {0.05, 0.07, 0.1, 0.14, 0.19, 0.26, 0.35, 0.46, 0.6,
                                    0.77, 1,    1.3, 1.7,  2.2,  2.8,  3.6,  4.7,  6.1};
    const double each = log((EW_COUNT(amplitudes) - 1) * LENGTHS);
    struct sums t = {.best = -HUGE_VAL};
    for (size_t i = 0; i < EW_COUNT(noises); i++) {
        const double off = log(noises[i]) / NOISE_SD;
        for (size_t j = 0; j < EW_COUNT(amplitudes); j++)
            for (size_t l = 0; l < (j ? LENGTHS : 1); l++) {
                const struct hyper s = {amplitudes[j], lengths[l], noises[i], noises[i]};
                const double e = evidence(p, amplitudes[j], l, noises[i]);
                sums_add(&t, e - 0.5 * off * off + (j ? -each : NONE_LN), &s);
            }
    }
    *total = t.best + log(t.weight);
    return (struct hyper){sqrt(t.amplitude2 / t.weight),
                          t.amplitude2 > 0 ? exp(t.ln_length / t.amplitude2) : 1,
                          exp(t.ln_noise / t.weight), sqrt(t.noise2 / t.weight)};
}

/* z_i = (C^-1 r0)_i / sqrt((C^-1)_ii): each measurement against the others, without fitting again
 * (Sundararajan and Keerthi, Neural Computation 13, 2001).  `z_usual` has the noise that any run
 * would have in the place of this one's, which its weight has widened. */
static void leave_one_out(const struct subset *p, struct ew_fit *f)
{
    const int n = p->n;
    const double noise2 = f->residual.noise * f->residual.noise;
    ew_chol_inverse(p->c, n, p->inverse);
    for (int i = 0; i < n; i++) {
        double s = 0;
        for (int j = 0; j < n; j++)
            s += p->inverse[i * n + j] * p->r0[j];
        const double own = p->inverse[i * n + i];
        const double any = p->plain[i] * p->plain[i] / STUDENT_SHARE;
        f->loo_ln[p->row[i]] = s / own;
        f->z[p->row[i]] = s / sqrt(own);
        f->z_usual[p->row[i]] =
            s / own / sqrt(1 / own + noise2 * (any - p->sigma[i] * p->sigma[i]));
    }
}

/* Conditions the parameters on the measurements outside of the part. */
static ew_err absorb(struct ew_fit *f, const struct ew_fit_data *data,
                     const struct ew_law_point *points, const struct subset *p)
{
    const int k = f->prior.n;
    double h[EW_LAW_PARAMS * EW_LAW_PARAMS] = {0}, g[EW_LAW_PARAMS];
    for (int j = 0; j < k; j++) {
        h[j * k + j] = 1 / (f->prior.sd[j] * f->prior.sd[j]);
        g[j] = (f->prior.mean[j] - f->theta[j]) * h[j * k + j];
    }
    for (int i = 0, next = 0; i < data->n; i++) {
        if (next < p->n && p->row[next] == i) {
            next++;
            continue;
        }
        const struct ew_law_point *q = &points[i];
        const double r = data->y[i] - q->y;
        const double w = student(r / q->sigma) / (q->sigma * q->sigma);
        for (int a = 0; a < k; a++) {
            g[a] += w * r * q->jac[a];
            for (int b = 0; b < k; b++)
                h[a * k + b] += w * q->jac[a] * q->jac[b];
        }
    }
    EW_CHECK(ew_chol(h, k), EW_ERR_ARG, "the measurements do not determine a model");
    ew_chol_inverse(h, k, f->residual.cov);
    ew_chol_solve(h, k, g);
    memcpy(f->residual.shift, g, (size_t)k * sizeof(*g));
    return EW_OK;
}

static ew_err keep(struct ew_arena *a, const struct subset *p, const struct hyper *s,
                   struct ew_residual_gp *r)
{
    const int n = p->n;
    EW_CHECK(factor(p, s), EW_ERR_ARG, "the measurements do not determine a model");
    r->amplitude = s->amplitude;
    r->length = s->length;
    r->noise = s->noise;
    r->run_noise = s->run / sqrt(STUDENT_SHARE);
    r->n = n;
    r->logs = ew_arena_array(a, (size_t)n, sizeof(*r->logs));
    r->alpha = ew_arena_array(a, (size_t)n, sizeof(*r->alpha));
    r->chol = ew_arena_array(a, (size_t)n * n, sizeof(*r->chol));
    EW_CHECK(r->logs && r->alpha && r->chol, EW_ERR_MEMORY, "no memory for a fit");
    memcpy(r->logs, p->logs, (size_t)n * sizeof(*r->logs));
    memcpy(r->alpha, p->r0, (size_t)n * sizeof(*r->alpha));
    memcpy(r->chol, p->c, (size_t)n * n * sizeof(*r->chol));
    ew_chol_solve(r->chol, n, r->alpha);
    return EW_OK;
}

/* Minus ln of the posterior of theta with the process integrated out, up to constants. */
static double cost(const struct ew_fit *f, const struct ew_fit_data *data, const struct subset *p,
                   const struct hyper *s, const struct ew_law_point *points)
{
    const int n = p->n, k = f->prior.n;
    double x[EW_FIT_ROWS], sum = 0;
    for (int i = 0; i < n; i++)
        x[i] = data->y[p->row[i]] - points[p->row[i]].y;
    process(p, s->amplitude, s->length, p->c);
    if (!factor_with(p, NULL, s->noise))
        return HUGE_VAL;
    ew_chol_forward(p->c, n, x);
    for (int i = 0; i < n; i++)
        sum += x[i] * x[i];
    for (int j = 0; j < k; j++) {
        const double z = (f->theta[j] - f->prior.mean[j]) / f->prior.sd[j];
        sum += z * z;
    }
    return sum;
}

static void move(struct ew_fit *f, const struct ew_fit_data *data, const double *from,
                 const double *step, double by, struct ew_law_point *points)
{
    for (int j = 0; j < f->prior.n - f->prior.n_linear; j++)
        f->theta[j] = from[j] + fmax(-1, fmin(1, by * step[j]));
    f->law(f->ctx, f->theta, data->modes, data->n, points);
}

/* The posterior's step from theta, where p is linearised. */
static bool newton_step(const struct ew_fit *f, const struct subset *p, const struct hyper *s,
                        double *step)
{
    const int k = f->prior.n;
    double x[EW_FIT_ROWS];
    if (!factor(p, s))
        return false;
    memcpy(x, p->r0, sizeof(x));
    ew_chol_solve(p->c, p->n, x);
    for (int j = 0; j < k; j++) {
        step[j] = f->residual.shift[j];
        for (int i = 0; i < p->n; i++)
            step[j] += f->residual.cov_jac[i * k + j] * x[i];
    }
    return true;
}

/* Gauss-Newton on that posterior: the law is linear only near theta, and the process moves theta
 * from the optimum of the law alone. */
static void settle(struct ew_fit *f, const struct ew_fit_data *data, struct subset *p,
                   const struct hyper *s, struct ew_law_point *points)
{
    double now = cost(f, data, p, s, points), won = 1;
    for (int round = 0; round < SETTLE && won > 1e-4; round++) {
        double from[EW_LAW_PARAMS], step[EW_LAW_PARAMS], by = 1, then = HUGE_VAL;
        if (!newton_step(f, p, s, step))
            return;
        memcpy(from, f->theta, sizeof(from));
        for (int t = 0; t < 4 && !(then < now); t++, by /= 3) {
            move(f, data, from, step, by, points);
            then = cost(f, data, p, s, points);
        }
        if (!(then < now))
            move(f, data, from, step, 0, points);
        for (int j = 0; j < f->prior.n; j++)
            f->residual.shift[j] = f->prior.mean[j] - f->theta[j];
        linearise(f, data, points, p);
        won = now - then;
        now = then;
    }
}

/* Iterates hyperparameters, theta and leave-one-out residuals, which give the weights of the next
 * round. */
static ew_err fit_part(struct ew_arena *a, struct ew_fit *f, const struct ew_fit_data *data,
                       struct subset *p, struct ew_law_point *points, struct hyper *s)
{
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < p->n && round > 0; i++)
            p->sigma[i] = p->plain[i] / sqrt(student(f->z_usual[p->row[i]]));
        *s = decide(p, &f->evidence);
        if (p->n == data->n)
            settle(f, data, p, s, points);
        EW_TRY(keep(a, p, s, &f->residual));
        leave_one_out(p, f);
    }
    return EW_OK;
}

ew_err ew_residual_gp_fit(struct ew_arena *a, struct ew_fit *f, const struct ew_fit_data *data,
                          struct ew_law_point *points)
{
    const size_t room = EW_FIT_ROWS * EW_FIT_ROWS;
    const int k = f->prior.n;
    EW_CLEANUP(ew_free_ptr) void *memory = calloc((3 + LENGTHS) * room, sizeof(double));
    f->residual.cov_jac =
        ew_arena_array(a, (size_t)EW_FIT_ROWS * (size_t)k, sizeof(*f->residual.cov_jac));
    EW_CHECK(memory && f->residual.cov_jac, EW_ERR_MEMORY, "no memory for a fit");
    struct subset p = {.base = memory};
    p.c = p.base + room;
    p.inverse = p.c + room;
    choose(data, points, &p);
    for (int i = 0; i < LENGTHS; i++) {
        p.unit[i] = p.inverse + (size_t)(1 + i) * room;
        process(&p, 1, lengths[i], p.unit[i]);
    }
    for (int j = 0; j < k; j++) {
        f->residual.cov[j * k + j] = f->prior.sd[j] * f->prior.sd[j];
        f->residual.shift[j] = f->prior.mean[j] - f->theta[j];
    }
    linearise(f, data, points, &p);
    struct hyper s;
    EW_TRY(fit_part(a, f, data, &p, points, &s));
    if (p.n == data->n)
        return EW_OK;
    EW_TRY(absorb(f, data, points, &p));
    linearise(f, data, points, &p);
    return keep(a, &p, &s, &f->residual);
}

/* S0 - S0 J' C^-1 J S0, factored. */
bool ew_fit_spread(const struct ew_fit *f, double *l)
{
    const struct ew_residual_gp *r = &f->residual;
    const int k = f->prior.n, n = r->n;
    memcpy(l, r->cov, (size_t)k * (size_t)k * sizeof(*l));
    for (int a = 0; a < k; a++) {
        double x[EW_FIT_ROWS];
        for (int i = 0; i < n; i++)
            x[i] = r->cov_jac[i * k + a];
        ew_chol_solve(r->chol, n, x);
        for (int b = 0; b <= a; b++)
            for (int i = 0; i < n; i++)
                l[a * k + b] -= x[i] * r->cov_jac[i * k + b];
        l[a * k + a] += 1e-6 * f->prior.sd[a] * f->prior.sd[a]; /* jitter against rounding */
    }
    return ew_chol(l, k);
}

void ew_residual_gp_at(const struct ew_fit *f, const struct ew_mode *m,
                       const struct ew_law_point *q, double *scratch, double *mean, double *var)
{
    const struct ew_residual_gp *r = &f->residual;
    const int k = f->prior.n;
    const struct ew_mode at = ew_mode_logs(m);
    *mean = q->y;
    double jac[EW_LAW_PARAMS]; /* the first k of q->jac, dense */
    memcpy(jac, q->jac, sizeof(jac));
    *var = ew_quad_form(r->cov, k, jac, jac) + r->amplitude * r->amplitude;
    for (int j = 0; j < k; j++)
        *mean += jac[j] * r->shift[j];
    for (int i = 0; i < r->n; i++) {
        double c =
            r->amplitude > 0 ? ew_residual_gp_kernel(r->amplitude, r->length, &at, &r->logs[i]) : 0;
        for (int j = 0; j < k; j++)
            c += jac[j] * r->cov_jac[i * k + j];
        scratch[i] = c;
        *mean += c * r->alpha[i];
    }
    ew_chol_forward(r->chol, r->n, scratch);
    for (int i = 0; i < r->n; i++)
        *var -= scratch[i] * scratch[i];
}
