/* SPDX-License-Identifier: Apache-2.0 */
/* Recommending a configuration: the best for a goal within limits, the probability that each limit
 * holds, the binding limit, and what to measure next. */
#ifndef EW_ADVISE_RECOMMEND_H
#define EW_ADVISE_RECOMMEND_H

#include "advise/predictor.h"

/* name, unit for people, at least instead of at most */
/* clang-format off */
#define EW_CRITERION_MAP(X)                                                                         \
    X(TIME,     "time",     "s",   false)                                                          \
    X(POWER,    "power",    "W",   false)                                                          \
    X(ENERGY,   "energy",   "J",   false)                                                          \
    X(MEMORY,   "memory",   "MiB", false)                                                          \
    X(LATENCY,  "latency",  "ms",  false)                                                          \
    X(PRICE,    "cost",     "USD", false)                                                          \
    X(ACCURACY, "accuracy", "",    true)                                                           \
    X(LIFE,     "life",     "h",   true)
/* clang-format on */

enum ew_criterion {
#define EW_CRITERION_ENUM(id, name, unit, at_least) EW_CRITERION_##id,
    EW_CRITERION_MAP(EW_CRITERION_ENUM)
#undef EW_CRITERION_ENUM
        EW_CRITERIA
};

struct ew_criterion_info {
    const char *name, *unit;
    bool at_least; /* more is better: a limit is a lower bound */
};

extern const struct ew_criterion_info ew_criteria[EW_CRITERIA];

/* A configuration to choose from. */
struct ew_candidate {
    const char *name;    /* "": none */
    struct ew_mode mode; /* cpu 0: not a power mode */
    unsigned lacks;      /* settings that it does not have, EW_NO_... */
    bool measured;
    struct ew_interval v[EW_CRITERIA]; /* mid nan: not known */
    /* Of a measured candidate: the fitted values, EW_CRITERIA of them; NULL: none.  The best of
     * many noisy runs is partly luck, so goals are compared by fitted values; limits must hold as
     * measured, and their probability comes from the fit. */
    const struct ew_interval *fitted;
};

struct ew_limit {
    enum ew_criterion of;
    double bound;
};

#define EW_LIMITS 8

/* "power=10W", "time=2h", "memory=3G", "latency=16.7ms", "accuracy=0.9", "energy=2Wh", "cost=500",
 * "life=24h". */
ew_err ew_limit_parse(const char *text, struct ew_limit *out);

struct ew_recommend_data {
    const struct ew_candidate *candidates;
    int n;
    enum ew_criterion goal;
    const struct ew_limit *limits;
    int n_limits;
    double sure; /* least probability with which an untried candidate must meet all limits */
};

struct ew_recommendation {
    int best;
    int second;                /* -1: none */
    double holds[EW_LIMITS];   /* probability that the best meets each limit */
    double relaxed[EW_LIMITS]; /* the goal with that limit relaxed by 10 % */
    int binding;               /* limit whose relaxation gains most; -1: none */
    int measure;               /* candidate to measure next; -1: none */
    double measure_chance;     /* that it meets the limits */
    double measure_gain;       /* expected improvement of the measured best, in ln */
    int n_good;                /* candidates within all limits */
};

/* EW_ERR_NOT_FOUND names the limit, or the two, that no candidate meets, and the nearest value. */
ew_err ew_recommend(const struct ew_recommend_data *d, struct ew_recommendation *out);

/* Probability that the candidate meets the limit; 0 if a measurement breaks it, 1 if it meets it
 * and there is no fit. */
double ew_limit_holds(const struct ew_limit *l, const struct ew_candidate *o);

/* Battery life in hours of a board that is busy for the share `duty` of the time and idle
 * otherwise. */
struct ew_interval ew_life(const struct ew_interval *power, double battery_wh, double duty,
                           double idle_w);

#endif
