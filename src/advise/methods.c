/* SPDX-License-Identifier: Apache-2.0 */
/* Other ways to predict: linear regression and a plain Gaussian process. */
#include "advise/methods.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "advise/cholesky.h"

static const char *const names[] = {
#define EW_METHOD_NAME(id, name) name,
    EW_METHOD_MAP(EW_METHOD_NAME)
#undef EW_METHOD_NAME
};

const char *ew_method_name(enum ew_method m)
{
    return names[m];
}

static const struct ew_interval nothing = {NAN, NAN, NAN, NAN, NAN};

/* ---- Linear regression ----------------------------------------------------------------------- */

#define FEATURES 6 /* 1, cores, CPU, GPU, memory; of energy the time too */

static void features(const struct ew_mode *m, double time, double *x)
{
    const double v[FEATURES] = {1, m->cores / 10, m->cpu, m->gpu, m->mem, time};
    memcpy(x, v, sizeof(v));
}

/* Least squares; the ridge decides where there are fewer rows than coefficients. */
static bool regress(const struct ew_mode *modes, const double *time, const double *y, int n,
                    double *beta)
{
    double h[FEATURES * FEATURES] = {0};
    const int k = time ? FEATURES : FEATURES - 1;
    memset(beta, 0, FEATURES * sizeof(*beta));
    for (int i = 0; i < n; i++) {
        double x[FEATURES];
        features(&modes[i], time ? time[i] : 0, x);
        for (int a = 0; a < k; a++) {
            beta[a] += x[a] * y[i];
            for (int b = 0; b < k; b++)
                h[a * k + b] += x[a] * x[b];
        }
    }
    for (int a = 0; a < k; a++)
        h[a * k + a] += 1e-9 * (1 + h[a * k + a]);
    if (!ew_chol(h, k))
        return false;
    ew_chol_solve(h, k, beta);
    return true;
}

static double apply(const double *beta, const struct ew_mode *m, double time)
{
    double x[FEATURES], sum = 0;
    features(m, time, x);
    for (int i = 0; i < FEATURES; i++)
        sum += beta[i] * x[i];
    return sum;
}

static ew_err linear(const struct ew_predict_data *d, const struct ew_mode *modes, int n,
                     struct ew_prediction *out)
{
    double time[FEATURES], energy[FEATURES];
    EW_CLEANUP(ew_free_ptr) double *joules = malloc((size_t)d->n * sizeof(*joules));
    EW_CHECK(joules, EW_ERR_MEMORY, "no memory for a regression");
    bool power = d->power != NULL;
    for (int i = 0; i < d->n && power; i++) {
        joules[i] = d->time[i] * d->power[i];
        power = isfinite(joules[i]);
    }
    EW_CHECK(regress(d->modes, NULL, d->time, d->n, time), EW_ERR_ARG,
             "linear regression has no solution here");
    power = power && regress(d->modes, d->time, joules, d->n, energy);
    for (int i = 0; i < n; i++) {
        out[i] = (struct ew_prediction){.time = nothing, .power = nothing, .energy = nothing};
        out[i].time.mid = apply(time, &modes[i], 0);
        if (power) {
            out[i].energy.mid = apply(energy, &modes[i], out[i].time.mid);
            out[i].power.mid = out[i].energy.mid / out[i].time.mid;
        }
    }
    return EW_OK;
}

static double linear_error(const struct ew_mode *modes, const double *time, int n, const int *four)
{
    struct ew_mode m[4];
    double t[4], beta[FEATURES], sum = 0;
    for (int i = 0; i < 4; i++) {
        m[i] = modes[four[i]];
        t[i] = time[four[i]];
    }
    if (!regress(m, NULL, t, 4, beta))
        return HUGE_VAL;
    for (int i = 0; i < n; i++) {
        const double e = apply(beta, &modes[i], 0) - time[i];
        sum += e * e;
    }
    return sqrt(sum / n);
}

ew_err ew_method_best_four(const struct ew_mode *modes, const double *const *time, int n_workloads,
                           int n, int four[4])
{
    EW_CHECK(n >= 4 && n <= 40, EW_ERR_ARG, "the search for four modes takes 4 to 40 modes, not %d",
             n);
    double best = HUGE_VAL;
    int f[4];
    for (f[0] = 0; f[0] < n; f[0]++)
        for (f[1] = f[0] + 1; f[1] < n; f[1]++)
            for (f[2] = f[1] + 1; f[2] < n; f[2]++)
                for (f[3] = f[2] + 1; f[3] < n; f[3]++) {
                    double sum = 0;
                    for (int w = 0; w < n_workloads; w++)
                        sum += linear_error(modes, time[w], n, f);
                    if (sum < best) {
                        best = sum;
                        memcpy(four, f, sizeof(f));
                    }
                }
    EW_CHECK(best < HUGE_VAL, EW_ERR_ARG, "no four modes determine a regression");
    return EW_OK;
}

/* ---- Gaussian process ------------------------------------------------------------------------ */

#define PROCESS_ROWS 256

struct process {
    const struct ew_mode *modes;
    int n;
    double mean, amplitude2, length, noise2; /* noise over amplitude */
    double *chol, *alpha;
};

static double matern(const struct ew_mode *a, const struct ew_mode *b, double length)
{
    const double d[] = {log(a->cores / b->cores), log(a->cpu / b->cpu), log(a->gpu / b->gpu),
                        log(a->mem / b->mem)};
    const double u = sqrt(5 * (d[0] * d[0] + d[1] * d[1] + d[2] * d[2] + d[3] * d[3])) / length;
    return (1 + u + u * u / 3) * exp(-u);
}

/* Factors the kernel of p->length and p->noise2; the best amplitude follows.  Returns the evidence.
 */
static double process_try(struct process *p, const double *y)
{
    const int n = p->n;
    double sum = 0;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            p->chol[i * n + j] =
                matern(&p->modes[i], &p->modes[j], p->length) + (i == j ? p->noise2 : 0);
    if (!ew_chol(p->chol, n))
        return -HUGE_VAL;
    for (int i = 0; i < n; i++)
        p->alpha[i] = y[i] - p->mean;
    ew_chol_forward(p->chol, n, p->alpha);
    for (int i = 0; i < n; i++)
        sum += p->alpha[i] * p->alpha[i];
    ew_chol_backward(p->chol, n, p->alpha);
    p->amplitude2 = fmax(sum / n, 1e-12);
    return -0.5 * n * log(p->amplitude2) - 0.5 * ew_chol_log_det(p->chol, n);
}

static void process_fit(struct process *p, const double *y)
{
    static const double lengths[] = {0.5, 1, 2, 4, 8}, noises[] = {1e-5, 1e-4, 1e-3, 1e-2, 0.1};
    double best = -HUGE_VAL, length = 1, noise = 0.1;
    p->mean = 0;
    for (int i = 0; i < p->n; i++)
        p->mean += y[i] / p->n;
    for (size_t i = 0; i < EW_COUNT(lengths); i++)
        for (size_t j = 0; j < EW_COUNT(noises); j++) {
            p->length = lengths[i];
            p->noise2 = noises[j];
            const double e = process_try(p, y);
            if (e > best) {
                best = e;
                length = p->length;
                noise = p->noise2;
            }
        }
    p->length = length;
    p->noise2 = noise;
    process_try(p, y);
}

static struct ew_interval normal_guess(double mean, double sd)
{
    return (struct ew_interval){exp(mean), exp(mean - 0.6745 * sd), exp(mean + 0.6745 * sd),
                                exp(mean - 1.645 * sd), exp(mean + 1.645 * sd)};
}

/* Mean and standard deviation of a measurement's ln. */
static void process_at(const struct process *p, const struct ew_mode *m, double *mean, double *sd)
{
    double k[PROCESS_ROWS], var = 1 + p->noise2;
    *mean = p->mean;
    for (int i = 0; i < p->n; i++) {
        k[i] = matern(m, &p->modes[i], p->length);
        *mean += k[i] * p->alpha[i];
    }
    ew_chol_forward(p->chol, p->n, k);
    for (int i = 0; i < p->n; i++)
        var -= k[i] * k[i];
    *sd = sqrt(p->amplitude2 * fmax(var, 0));
}

static ew_err process_run(struct ew_arena *a, const struct ew_predict_data *d,
                          const struct ew_mode *modes, int n, struct ew_prediction *out)
{
    const int rows = d->n < PROCESS_ROWS ? d->n : PROCESS_ROWS;
    struct process p[2];
    double *y = ew_arena_array(a, (size_t)rows, sizeof(*y));
    bool power = d->power != NULL;
    for (int i = 0; i < rows && power; i++)
        power = isfinite(d->power[i]);
    for (int q = 0; q < (power ? 2 : 1); q++) {
        p[q] = (struct process){.modes = d->modes, .n = rows};
        p[q].chol = ew_arena_array(a, (size_t)rows * rows, sizeof(double));
        p[q].alpha = ew_arena_array(a, (size_t)rows, sizeof(double));
        EW_CHECK(y && p[q].chol && p[q].alpha, EW_ERR_MEMORY, "no memory for a process");
        for (int i = 0; i < rows; i++)
            y[i] = log(q ? d->power[i] : d->time[i]);
        process_fit(&p[q], y);
    }
    for (int i = 0; i < n; i++) {
        double t, w, t_sd, w_sd;
        out[i] = (struct ew_prediction){.time = nothing, .power = nothing, .energy = nothing};
        process_at(&p[0], &modes[i], &t, &t_sd);
        out[i].time = normal_guess(t, t_sd);
        if (!power)
            continue;
        process_at(&p[1], &modes[i], &w, &w_sd);
        out[i].power = normal_guess(w, w_sd);
        out[i].energy = normal_guess(t + w, sqrt(t_sd * t_sd + w_sd * w_sd));
    }
    return EW_OK;
}

/* ---- All ------------------------------------------------------------------------------------- */

ew_err ew_method_predict(enum ew_method m, const struct ew_predict_data *d,
                         const struct ew_mode *modes, int n, struct ew_prediction *out)
{
    if (m == EW_METHOD_LINEAR)
        return linear(d, modes, n, out);
    struct ew_arena a;
    ew_arena_init(&a);
    ew_err err;
    if (m == EW_METHOD_PROCESS) {
        err = process_run(&a, d, modes, n, out);
    } else {
        struct ew_predictor *p;
        err = ew_predictor_fit(&a, d, &p);
        if (err == EW_OK)
            err = ew_predict(p, modes, n, out);
    }
    ew_arena_fini(&a);
    return err;
}
