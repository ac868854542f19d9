/* SPDX-License-Identifier: Apache-2.0 */
/* Choosing a configuration: the best for a goal among those that keep within limits, how sure that
 * is, what stands in the way, and what to measure to be surer. */
#ifndef EW_ADVISE_CHOOSE_H
#define EW_ADVISE_CHOOSE_H

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

/* A configuration. */
struct ew_option {
    const char *name;    /* "": none */
    struct ew_mode mode; /* cpu 0: it is no power mode */
    unsigned lacks;      /* settings that it does not have, EW_NO_... */
    bool measured;
    struct ew_guess v[EW_CRITERIA]; /* mid nan: not known */
    /* Of a measured option: what all measurements together say of it, EW_CRITERIA; NULL: nothing.
     * The best of many noisy runs is partly luck: the goal is compared by this, limits must hold
     * as measured and are as sure as this says. */
    const struct ew_guess *fitted;
};

struct ew_limit {
    enum ew_criterion of;
    double bound;
};

#define EW_LIMITS 8

/* "power=10W", "time=2h", "memory=3G", "latency=16.7ms", "accuracy=0.9", "energy=2Wh", "cost=500",
 * "life=24h". */
ew_err ew_limit_parse(const char *text, struct ew_limit *out);

struct ew_choose_data {
    const struct ew_option *options;
    int n;
    enum ew_criterion goal;
    const struct ew_limit *limits;
    int n_limits;
    double sure; /* an untried option must meet all limits with this chance */
};

struct ew_choice {
    int best;
    int second;              /* -1: none */
    double holds[EW_LIMITS]; /* chance that the best meets each limit */
    double
        relaxed[EW_LIMITS]; /* the goal with a limit a tenth wider; as it is where nothing is won */
    int binding;            /* limit whose widening brings most; -1: none does */
    int measure;            /* option whose measurement would tell most; -1: nothing is open */
    double measure_chance;  /* that it meets the limits */
    double measure_gain;    /* by which the measured best is expected to improve, in ln */
    int n_good;             /* options within all limits */
};

/* EW_ERR_NOT_FOUND says which limit, or which two, nothing meets, and what the nearest is. */
ew_err ew_choose(const struct ew_choose_data *d, struct ew_choice *out);

/* Chance that the option meets the limit; 0 where it was measured not to, 1 where it was measured
 * to and nothing is fitted. */
double ew_limit_holds(const struct ew_limit *l, const struct ew_option *o);

/* Life in hours on a battery, of a board that works `duty` of the time and else idles. */
struct ew_guess ew_life(const struct ew_guess *power, double battery_wh, double duty,
                        double idle_w);

#endif
