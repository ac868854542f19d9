/* SPDX-License-Identifier: Apache-2.0 */
/* Prediction of unmeasured run times: a Gaussian process whose mean is the law of work.
 *
 * The law is made linear at the most probable parameters, which are found by turns of that and of
 * solving the linear problem (an iterated Kalman update: Bell and Cathey, IEEE Trans. Automatic
 * Control 38, 1993). */
#include "advise/work_fit.h"

#include <math.h>
#include <string.h>

#include "advise/cholesky.h"
#include "base/order_stats.h"

#define TURNS  20
#define ROBUST 3    /* rounds of Student weights */
#define NOISE  0.05 /* least standard deviation of ln of a median */
#define ALIKE  0.75 /* correlation of parameters and of effects between machines */
#define KAPPA  1.8  /* half of a 90 % interval in sd: 1.64, more as their scale is uncertain */

/* Standard deviations of the effects, in ln. */
#define OF_MACHINE      1.0
#define OF_NETWORK      0.20
#define OF_SIZE         0.05
#define OF_THREADS      0.05
#define OF_SETTING      0.03 /* of one network, size and number of threads; falls with distance */
#define OF_KIND         0.6
#define OF_NETWORK_KIND 0.15

#define MIDDLE_SIZE    1.4 /* where the effect of the size is 0: a batch of 4 */
#define MIDDLE_THREADS 0.35

struct ew_work_predictor {
    int n, n_machines;
    struct ew_work_run *runs;
    double *y;       /* ln of seconds */
    double *noise;   /* of each; larger for outliers */
    int *machine;    /* of each */
    double *jac;     /* n x EW_WORK_PARAMS */
    double *left;    /* y against the law */
    double *alpha;   /* C^-1 times the residuals of the prior */
    double *chol;    /* of C, n x n */
    double *scratch; /* n x n */
    const char *machines[EW_WORK_MACHINES];
    double mean[EW_WORK_PARAMS];                        /* moved to the speed of these machines */
    double theta[EW_WORK_MACHINES + 1][EW_WORK_PARAMS]; /* the last one: of any other machine */
    double scale;                                       /* of standard deviations */
};

/* ---- Covariances ----------------------------------------------------------------------------- */

static bool same(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

/* Of the effects of two runs. */
static double effects(const struct ew_work_run *a, const struct ew_work_run *b)
{
    const bool here = same(a->machine, b->machine), kind = same(a->kind, b->kind);
    const double shared = here ? 1 : ALIKE;
    double v = here ? OF_MACHINE * OF_MACHINE : 0;
    if (kind && *a->kind)
        v += shared * OF_KIND * OF_KIND;
    if (!same(a->network, b->network))
        return v;
    const double sa = a->size - MIDDLE_SIZE, sb = b->size - MIDDLE_SIZE;
    const double ta = log(a->threads) - MIDDLE_THREADS, tb = log(b->threads) - MIDDLE_THREADS;
    v += shared * (OF_NETWORK * OF_NETWORK + OF_SIZE * OF_SIZE * sa * sb);
    v += here ? OF_THREADS * OF_THREADS * ta * tb : 0;
    v += kind ? shared * OF_NETWORK_KIND * OF_NETWORK_KIND : 0;
    if (here && kind)
        v += OF_SETTING * OF_SETTING * exp(-hypot(sa - sb, ta - tb));
    return v;
}

/* Of the law's linear part of two runs: parameters of two machines are alike. */
static double by_law(const double *a, const double *b, bool here)
{
    double v = 0;
    for (int k = 0; k < EW_WORK_PARAMS; k++)
        v += a[k] * b[k] * ew_work_sd[k] * ew_work_sd[k];
    return here ? v : ALIKE * v;
}

/* ---- The fit --------------------------------------------------------------------------------- */

static void look(struct ew_work_predictor *p)
{
    for (int i = 0; i < p->n; i++)
        p->left[i] = p->y[i] - ew_work_law(p->theta[p->machine[i]], p->runs[i].load,
                                           p->runs[i].threads, p->jac + i * EW_WORK_PARAMS);
}

/* Factors C and solves for the residuals of the prior, with the law linearised at theta. */
static bool solve(struct ew_work_predictor *p)
{
    const int n = p->n;
    for (int i = 0; i < n; i++) {
        const double *ji = p->jac + i * EW_WORK_PARAMS, *theta = p->theta[p->machine[i]];
        p->alpha[i] = p->left[i];
        for (int k = 0; k < EW_WORK_PARAMS; k++)
            p->alpha[i] += ji[k] * (theta[k] - p->mean[k]);
        for (int j = 0; j <= i; j++)
            p->chol[i * n + j] =
                by_law(ji, p->jac + j * EW_WORK_PARAMS, p->machine[i] == p->machine[j]) +
                effects(&p->runs[i], &p->runs[j]);
        p->chol[i * n + i] += p->noise[i] * p->noise[i];
    }
    if (!ew_chol(p->chol, n))
        return false;
    ew_chol_solve(p->chol, n, p->alpha);
    return true;
}

/* Updates the parameters from the solution; returns the largest step.  Steps are clipped, since the
 * law is linear only nearby. */
static double move(struct ew_work_predictor *p)
{
    double most = 0;
    for (int m = 0; m <= p->n_machines; m++)
        for (int k = 0; k < EW_WORK_PARAMS; k++) {
            double to = p->mean[k];
            for (int i = 0; i < p->n; i++)
                to += (p->machine[i] == m ? 1 : ALIKE) * ew_work_sd[k] * ew_work_sd[k] *
                      p->jac[i * EW_WORK_PARAMS + k] * p->alpha[i];
            const double step = fmax(-0.7, fmin(0.7, to - p->theta[m][k]));
            p->theta[m][k] += step;
            most = fmax(most, fabs(step));
        }
    return most;
}

static ew_err converge(struct ew_work_predictor *p)
{
    for (int i = 0; i < TURNS; i++) {
        look(p);
        EW_CHECK(solve(p), EW_ERR_ARG, "the measurements do not determine a model");
        if (move(p) < 1e-4)
            break;
    }
    look(p);
    EW_CHECK(solve(p), EW_ERR_ARG, "the measurements do not determine a model");
    return EW_OK;
}

/* Down-weights outliers (Student errors of 4 degrees of freedom).  The residual of a measurement is
 * its noise variance times alpha. */
static void weigh(struct ew_work_predictor *p)
{
    for (int i = 0; i < p->n; i++) {
        const double r = p->noise[i] * p->noise[i] * p->alpha[i] / NOISE;
        p->noise[i] = NOISE / sqrt(fmin(5 / (4 + r * r), 1.25));
    }
}

/* Leave-one-out residuals: z_i = (C^-1 r)_i / sqrt((C^-1)_ii). */
static void check_scale(struct ew_work_predictor *p)
{
    double sum = 4;
    ew_chol_inverse(p->chol, p->n, p->scratch);
    for (int i = 0; i < p->n; i++) {
        const double z = p->alpha[i] / sqrt(p->scratch[i * p->n + i]);
        sum += fmin(z * z, 16);
    }
    p->scale = sqrt(sum / (4 + p->n));
}

/* ---- Before ---------------------------------------------------------------------------------- */

static ew_err machine_of(struct ew_work_predictor *p, const char *name, int *out)
{
    for (*out = 0; *out < p->n_machines; (*out)++)
        if (same(p->machines[*out], name))
            return EW_OK;
    EW_CHECK(p->n_machines < EW_WORK_MACHINES, EW_ERR_LIMIT,
             "measurements of more than %d machines", EW_WORK_MACHINES);
    p->machines[p->n_machines++] = name;
    return EW_OK;
}

/* Moves the prior's amounts to the speed of these machines. */
static void own_units(struct ew_work_predictor *p)
{
    memcpy(p->mean, ew_work_mean, sizeof(p->mean));
    for (int i = 0; i < p->n; i++)
        p->scratch[i] = p->y[i] - ew_work_law(p->mean, p->runs[i].load, p->runs[i].threads, NULL);
    const double median = ew_median(p->scratch, p->n);
    for (int k = 0; k < EW_WORK_AMOUNTS; k++)
        p->mean[k] += median;
    for (int m = 0; m <= p->n_machines; m++)
        memcpy(p->theta[m], p->mean, sizeof(p->mean));
}

/* NULL: no memory. */
static struct ew_work_predictor *allocate(struct ew_arena *a, int n)
{
    struct ew_work_predictor *p = ew_arena_alloc(a, sizeof(*p));
    const size_t rows = (size_t)n;
    if (!p)
        return NULL;
    *p = (struct ew_work_predictor){
        .n = n,
        .runs = ew_arena_array(a, rows, sizeof(*p->runs)),
        .y = ew_arena_array(a, rows, sizeof(double)),
        .noise = ew_arena_array(a, rows, sizeof(double)),
        .machine = ew_arena_array(a, rows, sizeof(int)),
        .jac = ew_arena_array(a, rows * EW_WORK_PARAMS, sizeof(double)),
        .left = ew_arena_array(a, rows, sizeof(double)),
        .alpha = ew_arena_array(a, rows, sizeof(double)),
        .chol = ew_arena_array(a, rows * rows, sizeof(double)),
        .scratch = ew_arena_array(a, rows * rows, sizeof(double)),
    };
    const bool ok = p->runs && p->y && p->noise && p->machine && p->jac && p->left && p->alpha &&
                    p->chol && p->scratch;
    return ok ? p : NULL;
}

ew_err ew_work_fit(struct ew_arena *a, const struct ew_work_run *runs, const double *time, int n,
                   struct ew_work_predictor **out)
{
    EW_CHECK(n >= EW_WORK_MIN, EW_ERR_ARG, "%d measurement%s: a prediction needs at least %d", n,
             n == 1 ? "" : "s", EW_WORK_MIN);
    struct ew_work_predictor *p = allocate(a, n < EW_WORK_ROWS ? n : EW_WORK_ROWS);
    EW_CHECK(p, EW_ERR_MEMORY, "no memory for a fit of %d measurements", n);
    for (int i = 0; i < p->n; i++) {
        const int row = (int)((int64_t)i * n / p->n);
        EW_CHECK(time[row] > 0 && isfinite(time[row]), EW_ERR_ARG,
                 "measurement %d: its time is not a positive number", row + 1);
        p->runs[i] = runs[row];
        p->y[i] = log(time[row]);
        p->noise[i] = NOISE;
        EW_TRY(machine_of(p, runs[row].machine, &p->machine[i]));
    }
    own_units(p);
    for (int i = 0; i < ROBUST; i++) {
        EW_TRY(converge(p));
        if (i + 1 < ROBUST)
            weigh(p);
    }
    check_scale(p);
    *out = p;
    return EW_OK;
}

/* ---- After ----------------------------------------------------------------------------------- */

struct ew_interval ew_work_predict(const struct ew_work_predictor *p, const struct ew_work_run *run)
{
    double c[EW_WORK_ROWS], jac[EW_WORK_PARAMS];
    int m = 0;
    while (m < p->n_machines && !same(p->machines[m], run->machine))
        m++;
    double mean = ew_work_law(p->theta[m], run->load, run->threads, jac);
    double var = by_law(jac, jac, true) + effects(run, run);
    for (int i = 0; i < p->n; i++) {
        const double e = effects(run, &p->runs[i]);
        c[i] = e + by_law(jac, p->jac + i * EW_WORK_PARAMS, p->machine[i] == m);
        mean += e * p->alpha[i]; /* the law's part is in theta */
    }
    ew_chol_forward(p->chol, p->n, c);
    for (int i = 0; i < p->n; i++)
        var -= c[i] * c[i];
    const double by = KAPPA / 1.645 * p->scale;
    return ew_interval_lognormal(mean, by * sqrt(fmax(var, 0) + NOISE * NOISE),
                                 by * sqrt(fmax(var, 0)));
}
