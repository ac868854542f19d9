/* SPDX-License-Identifier: Apache-2.0 */
/* Time, power and energy of untried modes from a few that were measured, with intervals. */
#ifndef EW_ADVISE_PREDICTOR_H
#define EW_ADVISE_PREDICTOR_H

#include "advise/fit.h"

#define EW_PREDICT_MIN 3 /* measured modes, at least */

/* What was measured; times in any unit, power in watts. */
struct ew_predict_data {
    const struct ew_mode *modes;
    const double *time;  /* n */
    const double *power; /* n; NULL: not measured; nan: not measured here */
    int n;
    struct ew_mode top; /* the board's highest settings; 0: the highest that was measured */
    const char *board;  /* profile name; NULL: not known */
};

/* A predicted quantity with its 50 % and 90 % intervals. */
struct ew_interval {
    double mid, low50, high50, low90, high90;
    double sd; /* of ln of the average over many runs; 0: as the intervals, which are of one run */
};

struct ew_prediction {
    struct ew_interval time, power,
        energy;   /* of power and energy nan where power was not measured */
    double share; /* of the loader in the time, 0 to 1 */
    /* ln of time and power as a bivariate normal distribution, for sums and probabilities. */
    double time_sd, power_sd, correlation;
};

#define EW_PREDICT_PRIORS 5 /* most priors of the time law */

struct ew_predictor {
    struct ew_fit time, power; /* time: the likeliest of those below */
    struct ew_fit times[EW_PREDICT_PRIORS];
    double posterior[EW_PREDICT_PRIORS]; /* probability of each prior; their sum is 1 */
    int n_times;
    bool has_power;
    struct ew_power_ctx power_ctx;
    struct ew_mode top;
    double correlation;             /* of the errors of time and power */
    double time_width, power_width; /* factor on the posterior's standard deviations */
};

/* Fits both laws.  All lives in the arena.  EW_ERR_ARG names what cannot be used and why. */
ew_err ew_predictor_fit(struct ew_arena *a, const struct ew_predict_data *d,
                        struct ew_predictor **out);

/* Predicts n modes; EW_ERR_MEMORY alone. */
ew_err ew_predict(const struct ew_predictor *p, const struct ew_mode *modes, int n,
                  struct ew_prediction *out);

/* A log-normal quantity: mean of ln, standard deviation of one run, of the average over many. */
struct ew_interval ew_interval_lognormal(double mean, double run_sd, double sd);

/* Standard deviation of ln of the average over many runs. */
double ew_interval_sd(const struct ew_interval *g);

/* The probability that the quantity is at most `limit`. */
double ew_interval_cdf(const struct ew_interval *g, double limit);

#endif
