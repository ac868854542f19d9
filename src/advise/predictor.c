/* SPDX-License-Identifier: Apache-2.0 */
/* Time, power and energy of untried modes, with intervals. */
#include "advise/predictor.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define OTHER_PRIORS (EW_PREDICT_PRIORS - 1) /* of the time law */
#define OTHER_FROM   8    /* measurements from which on several priors are compared */
#define USUAL_LN     1    /* ln of the odds of the usual prior against each other one */
#define CHANCE_LEAST 0.03 /* probability below which a prior is dropped */

/* ---- Widths ---------------------------------------------------------------------------------- */

#define NORMAL_90 1.645
#define NORMAL_50 0.6745

#define WIDTH_COUNT 40  /* measurements that the posterior's own width counts as */
#define WIDTH_CLIP  3.0 /* standard deviations: a throttled run does not widen all others */

/* Factor on the posterior's standard deviations.  If the posterior is right, squared leave-one-out
 * residuals have a mean of 1; otherwise their root mean square is the factor (as in conformal
 * prediction).  Few measurements carry little information: with ten the residuals add nothing to
 * the posterior, with 50 the required widths follow them one to one (96 synthetic workloads, noise
 * of 0.3 to 5 %). */
static double width(const struct ew_fit *f)
{
    double sum = WIDTH_COUNT;
    for (int i = 0; i < f->n; i++) /* 0 for rows outside of the part */
        sum += fmin(f->z_usual[i] * f->z_usual[i], WIDTH_CLIP * WIDTH_CLIP);
    return sqrt(sum / (WIDTH_COUNT + f->residual.n));
}

/* ---- Fitting --------------------------------------------------------------------------------- */

static double higher(double a, double b)
{
    return a > b ? a : b;
}

static struct ew_mode highest(const struct ew_predict_data *d)
{
    struct ew_mode top = d->top;
    for (int i = 0; i < d->n; i++) {
        top.cores = higher(top.cores, d->modes[i].cores);
        top.cpu = higher(top.cpu, d->modes[i].cpu);
        top.gpu = higher(top.gpu, d->modes[i].gpu);
        top.mem = higher(top.mem, d->modes[i].mem);
    }
    return top;
}

/* Other priors of the time law: no overlap, full overlap, twice the standard deviations, host-bound
 * with host work that waits for memory. */
static void other_priors(struct ew_prior out[OTHER_PRIORS])
{
    for (int i = 0; i < OTHER_PRIORS; i++)
        out[i] = ew_time_prior;
    out[0].mean[EW_TIME_ROOFLINE] = out[0].mean[EW_TIME_OVERLAP] = -1.2;
    out[0].sd[EW_TIME_ROOFLINE] = out[0].sd[EW_TIME_OVERLAP] = 1;
    out[1].mean[EW_TIME_ROOFLINE] = out[1].mean[EW_TIME_OVERLAP] = 2.5;
    for (int j = 0; j < EW_TIME_PARAMS; j++)
        out[2].sd[j] *= 2;
    out[3] = ew_time_prior_host;
}

/* Posterior probability of each prior; improbable ones are dropped. */
static void weigh(const double *evidence, const struct ew_fit *fits, int n, struct ew_predictor *p)
{
    double sum = 0;
    int best = 0;
    for (int i = 1; i < n; i++)
        if (evidence[i] > evidence[best])
            best = i;
    p->time = fits[best];
    for (int i = 0; i < n; i++) {
        const double chance = exp(evidence[i] - evidence[best]);
        if (chance < CHANCE_LEAST)
            continue;
        p->times[p->n_times] = fits[i];
        p->posterior[p->n_times++] = chance;
        sum += chance;
    }
    for (int i = 0; i < p->n_times; i++)
        p->posterior[i] /= sum;
}

/* Fits with several priors: ten measurements often fit several equally well, although their
 * predictions of distant modes differ. */
static ew_err fit_time(struct ew_arena *a, const struct ew_predict_data *d, struct ew_predictor *p)
{
    struct ew_prior others[OTHER_PRIORS];
    double *y = ew_arena_array(a, (size_t)d->n, sizeof(*y));
    EW_CHECK(y, EW_ERR_MEMORY, "no memory for %d measurements", d->n);
    for (int i = 0; i < d->n; i++)
        y[i] = log(d->time[i]);
    struct ew_fit_data data = {.modes = d->modes, .y = y, .n = d->n, .own_units = true};
    struct ew_fit *fits = ew_arena_array(a, EW_PREDICT_PRIORS, sizeof(*fits));
    double evidence[EW_PREDICT_PRIORS];
    int n = 1;
    EW_CHECK(fits, EW_ERR_MEMORY, "no memory for a fit");
    EW_TRY(ew_fit(a, ew_time_law, NULL, &ew_time_prior, &data, &fits[0]));
    evidence[0] = fits[0].evidence + USUAL_LN;
    other_priors(others);
    data.starts = 2;
    for (int i = 0; i < OTHER_PRIORS && d->n >= OTHER_FROM; i++, n++) {
        EW_TRY(ew_fit(a, ew_time_law, NULL, &others[i], &data, &fits[n]));
        evidence[n] = fits[n].evidence;
    }
    weigh(evidence, fits, n, p);
    return EW_OK;
}

/* Prior of the power law, extended by the time law's uncertainty. */
static struct ew_prior with_time(const struct ew_prior *power, const struct ew_power_ctx *c)
{
    struct ew_prior p = *power;
    if (!c->spread)
        return p;
    p.n_linear = EW_TIME_PARAMS;
    for (int j = 0; j < EW_TIME_PARAMS; j++)
        p.sd[p.n++] = 1;
    return p;
}

static ew_err fit_time_spread(struct ew_arena *a, struct ew_predictor *p)
{
    double *l = ew_arena_array(a, EW_TIME_PARAMS * EW_TIME_PARAMS, sizeof(*l));
    EW_CHECK(l, EW_ERR_MEMORY, "no memory for a fit");
    if (ew_fit_spread(&p->time, l))
        p->power_ctx.spread = l;
    return EW_OK;
}

/* Fits with the board's own prior and with the general one in the measurements' units; the evidence
 * decides.
 */
static ew_err fit_power(struct ew_arena *a, const struct ew_predict_data *d, struct ew_predictor *p)
{
    struct ew_mode *modes = ew_arena_array(a, (size_t)d->n, sizeof(*modes));
    double *y = ew_arena_array(a, (size_t)d->n, sizeof(*y));
    EW_CHECK(y && modes, EW_ERR_MEMORY, "no memory for %d measurements", d->n);
    struct ew_fit_data data = {.modes = modes, .y = y};
    for (int i = 0; i < d->n; i++)
        if (isfinite(d->power[i])) {
            modes[data.n] = d->modes[i];
            y[data.n++] = log(d->power[i]);
        }
    if (data.n < EW_PREDICT_MIN)
        return EW_OK;
    p->has_power = true;
    ew_power_ctx_init(&p->power_ctx, &p->top, p->time.theta);
    EW_TRY(fit_time_spread(a, p));
    const struct ew_prior any = with_time(&ew_power_prior, &p->power_ctx);
    data.own_units = true;
    EW_TRY(ew_fit(a, ew_power_law, &p->power_ctx, &any, &data, &p->power));
    if (!d->board || strcmp(d->board, "agx-orin") != 0)
        return EW_OK;
    const struct ew_prior orin = with_time(&ew_power_prior_orin, &p->power_ctx);
    struct ew_fit own;
    data.own_units = false;
    EW_TRY(ew_fit(a, ew_power_law, &p->power_ctx, &orin, &data, &own));
    if (own.evidence > p->power.evidence)
        p->power = own;
    return EW_OK;
}

/* Correlation of the leave-one-out errors of time and power, shrunk as by five more uncorrelated
 * ones. */
static double correlation(const struct ew_predict_data *d, const struct ew_predictor *p)
{
    double tt = 5, pp = 5, tp = 0;
    for (int i = 0, j = 0; i < d->n; i++) {
        if (!isfinite(d->power[i]))
            continue;
        const double a = p->time.z[i], b = p->power.z[j++];
        tt += a * a;
        pp += b * b;
        tp += a * b;
    }
    return tp / sqrt(tt * pp);
}

static ew_err check(const struct ew_predict_data *d)
{
    EW_CHECK(d->n >= EW_PREDICT_MIN, EW_ERR_ARG,
             "%d measured mode%s: a prediction needs at least %d", d->n, d->n == 1 ? "" : "s",
             EW_PREDICT_MIN);
    for (int i = 0; i < d->n; i++)
        EW_CHECK(d->time[i] > 0 && isfinite(d->time[i]), EW_ERR_ARG,
                 "measurement %d: its time is not a positive number", i + 1);
    return EW_OK;
}

ew_err ew_predictor_fit(struct ew_arena *a, const struct ew_predict_data *d,
                        struct ew_predictor **out)
{
    EW_TRY(check(d));
    struct ew_predictor *p = ew_arena_alloc(a, sizeof(*p));
    EW_CHECK(p, EW_ERR_MEMORY, "no memory for a predictor");
    p->top = highest(d);
    EW_TRY(fit_time(a, d, p));
    if (d->power)
        EW_TRY(fit_power(a, d, p));
    if (p->has_power)
        p->correlation = correlation(d, p);
    p->time_width = width(&p->time);
    p->power_width = p->has_power ? width(&p->power) : (double)NAN;
    *out = p;
    return EW_OK;
}

/* ---- Predicting ------------------------------------------------------------------------------ */

static double sd_of_sum(double a, double b, double correlation)
{
    return sqrt(a * a + b * b + 2 * correlation * a * b);
}

struct ew_interval ew_interval_lognormal(double mean, double run_sd, double sd)
{
    const double half90 = NORMAL_90 * run_sd, half50 = NORMAL_50 * run_sd;
    return (struct ew_interval){.mid = exp(mean),
                                .low50 = exp(mean - half50),
                                .high50 = exp(mean + half50),
                                .low90 = exp(mean - half90),
                                .high90 = exp(mean + half90),
                                .sd = sd};
}

#define BLOCK 256 /* modes at a time */

/* Of ln of one run, around its average. */
static double run_var(const struct ew_fit *f, const struct ew_law_point *p)
{
    return f->residual.run_noise * f->residual.run_noise * p->sigma * p->sigma;
}

/* Mean and variance of ln of the time over all priors, and the variance of one run around it; `t`
 * holds the laws' points by prior, BLOCK apart. */
static void time_at(const struct ew_predictor *p, const struct ew_mode *m,
                    const struct ew_law_point *t, double *scratch, double out[3])
{
    double square = 0;
    out[0] = out[1] = out[2] = 0;
    for (int i = 0; i < p->n_times; i++, t += BLOCK) {
        double mean, var;
        ew_fit_at(&p->times[i], m, t, scratch, &mean, &var);
        out[0] += p->posterior[i] * mean;
        square += p->posterior[i] * mean * mean;
        out[1] += p->posterior[i] * var;
        out[2] += p->posterior[i] * run_var(&p->times[i], t);
    }
    out[1] += fmax(square - out[0] * out[0], 0);
}

static void predict_one(const struct ew_predictor *p, const struct ew_mode *m,
                        const struct ew_law_point *t, const struct ew_law_point *w, double *scratch,
                        struct ew_prediction *out)
{
    static const struct ew_interval none = {NAN, NAN, NAN, NAN, NAN};
    double time[3], power_mean, power_var;
    time_at(p, m, t, scratch, time);
    const double time_mean = time[0], time_var = time[1];
    out->time_sd = p->time_width * sqrt(time_var + time[2]);
    out->time = ew_interval_lognormal(time_mean, out->time_sd, p->time_width * sqrt(time_var));
    out->power = out->energy = none;
    out->power_sd = NAN;
    out->correlation = p->correlation;
    if (!p->has_power)
        return;
    ew_fit_at(&p->power, m, w, scratch, &power_mean, &power_var);
    out->power_sd = p->power_width * sqrt(power_var + run_var(&p->power, w));
    out->power = ew_interval_lognormal(power_mean, out->power_sd, p->power_width * sqrt(power_var));
    out->energy = ew_interval_lognormal(time_mean + power_mean,
                                        sd_of_sum(out->time_sd, out->power_sd, p->correlation),
                                        sd_of_sum(out->time.sd, out->power.sd, p->correlation));
}

ew_err ew_predict(const struct ew_predictor *p, const struct ew_mode *modes, int n,
                  struct ew_prediction *out)
{
    struct ew_law_point *w = calloc((1 + EW_PREDICT_PRIORS) * BLOCK, sizeof(*w)), *t = w + BLOCK;
    EW_CHECK(w, EW_ERR_MEMORY, "no memory for predictions");
    for (int first = 0; first < n; first += BLOCK) {
        const int count = n - first < BLOCK ? n - first : BLOCK;
        struct ew_time_parts parts[BLOCK];
        double scratch[EW_FIT_ROWS];
        for (int i = 0; i < p->n_times; i++)
            ew_time_law(NULL, p->times[i].theta, modes + first, count, t + i * BLOCK);
        ew_time_parts(p->time.theta, modes + first, count, parts);
        if (p->has_power)
            ew_power_law(&p->power_ctx, p->power.theta, modes + first, count, w);
        for (int i = 0; i < count; i++) {
            predict_one(p, &modes[first + i], &t[i], &w[i], scratch, &out[first + i]);
            out[first + i].share = parts[i].share;
        }
    }
    free(w);
    return EW_OK;
}

double ew_interval_sd(const struct ew_interval *g)
{
    return g->sd > 0 ? g->sd : log(g->high90 / g->mid) / NORMAL_90;
}

double ew_interval_cdf(const struct ew_interval *g, double limit)
{
    if (!(limit > 0))
        return 0;
    return 0.5 * erfc(-log(limit / g->mid) / (ew_interval_sd(g) * sqrt(2)));
}
