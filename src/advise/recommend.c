/* SPDX-License-Identifier: Apache-2.0 */
/* Recommending a configuration. */
#include "advise/recommend.h"

#include <math.h>
#include <string.h>

#include "base/num.h"

#define AS_GOOD 0.7  /* share of an untried one's probability: prefer a measured candidate */
#define NEAR    0.03 /* difference in ln below which two goals count as equal */

const struct ew_criterion_info ew_criteria[EW_CRITERIA] = {
#define EW_CRITERION_INFO(id, name, unit, at_least) {name, unit, at_least},
    EW_CRITERION_MAP(EW_CRITERION_INFO)
#undef EW_CRITERION_INFO
};

/* ---- Limits ---------------------------------------------------------------------------------- */

/* Accepted units, and their factor to the criterion's own. */
static const struct unit {
    enum ew_criterion of;
    const char *name;
    double size;
} units[] = {
    {EW_CRITERION_TIME, "s", 1},        {EW_CRITERION_TIME, "ms", 1e-3},
    {EW_CRITERION_TIME, "min", 60},     {EW_CRITERION_TIME, "h", 3600},
    {EW_CRITERION_POWER, "W", 1},       {EW_CRITERION_POWER, "mW", 1e-3},
    {EW_CRITERION_ENERGY, "J", 1},      {EW_CRITERION_ENERGY, "kJ", 1e3},
    {EW_CRITERION_ENERGY, "Wh", 3600},  {EW_CRITERION_ENERGY, "mWh", 3.6},
    {EW_CRITERION_MEMORY, "M", 1},      {EW_CRITERION_MEMORY, "MiB", 1},
    {EW_CRITERION_MEMORY, "G", 1024},   {EW_CRITERION_MEMORY, "GiB", 1024},
    {EW_CRITERION_LATENCY, "ms", 1},    {EW_CRITERION_LATENCY, "s", 1e3},
    {EW_CRITERION_LATENCY, "us", 1e-3}, {EW_CRITERION_PRICE, "USD", 1},
    {EW_CRITERION_ACCURACY, "%", 0.01}, {EW_CRITERION_LIFE, "h", 1},
    {EW_CRITERION_LIFE, "d", 24},
};

static bool unit_size(enum ew_criterion of, const char *name, double *size)
{
    *size = 1;
    if (!*name)
        return true;
    for (size_t i = 0; i < EW_COUNT(units); i++)
        if (units[i].of == of && strcmp(units[i].name, name) == 0) {
            *size = units[i].size;
            return true;
        }
    return false;
}

ew_err ew_limit_parse(const char *text, struct ew_limit *out)
{
    char number[32];
    const char *equals = strchr(text, '=');
    int of = 0;
    EW_CHECK(equals, EW_ERR_USAGE, "limit '%.60s' is not NAME=VALUE, as in power=10W", text);
    while (of < EW_CRITERIA && (strlen(ew_criteria[of].name) != (size_t)(equals - text) ||
                                strncmp(ew_criteria[of].name, text, (size_t)(equals - text))))
        of++;
    EW_CHECK(of < EW_CRITERIA, EW_ERR_USAGE,
             "limit '%.60s': not one of time, power, energy, memory, latency, cost, accuracy, life",
             text);
    const size_t digits = strspn(equals + 1, "0123456789.");
    double value, size;
    EW_CHECK(digits > 0 && digits < sizeof(number), EW_ERR_USAGE, "limit '%.60s' has no number",
             text);
    memcpy(number, equals + 1, digits);
    number[digits] = '\0';
    EW_CHECK(ew_num_float(number, &value) && value > 0, EW_ERR_USAGE,
             "limit '%.60s': '%s' is not a positive number", text, number);
    EW_CHECK(unit_size((enum ew_criterion)of, equals + 1 + digits, &size), EW_ERR_USAGE,
             "limit '%.60s': '%.20s' is not a unit of %s", text, equals + 1 + digits,
             ew_criteria[of].name);
    *out = (struct ew_limit){.of = (enum ew_criterion)of, .bound = value * size};
    return EW_OK;
}

/* A candidate's value of a criterion: the fitted one if there is a fit. */
static const struct ew_interval *value_of(const struct ew_candidate *o, enum ew_criterion k)
{
    return o->fitted && isfinite(o->fitted[k].mid) ? &o->fitted[k] : &o->v[k];
}

double ew_limit_holds(const struct ew_limit *l, const struct ew_candidate *o)
{
    const struct ew_interval *seen = &o->v[l->of], *g = value_of(o, l->of);
    const bool at_least = ew_criteria[l->of].at_least;
    if (!isfinite(seen->mid))
        return 0;
    const bool holds = at_least ? seen->mid >= l->bound : seen->mid <= l->bound;
    if ((o->measured && !holds) || !(g->high90 > g->mid))
        return holds;
    const double below = ew_interval_cdf(g, l->bound);
    return at_least ? 1 - below : below;
}

struct ew_interval ew_life(const struct ew_interval *power, double battery_wh, double duty,
                           double idle_w)
{
    const double rest = (1 - duty) * idle_w;
    return (struct ew_interval){.mid = battery_wh / (duty * power->mid + rest),
                                .low50 = battery_wh / (duty * power->high50 + rest),
                                .high50 = battery_wh / (duty * power->low50 + rest),
                                .low90 = battery_wh / (duty * power->high90 + rest),
                                .high90 = battery_wh / (duty * power->low90 + rest),
                                .sd = power->sd * duty * power->mid / (duty * power->mid + rest)};
}

/* ---- Choosing -------------------------------------------------------------------------------- */

/* Probability that all limits hold, taken as independent. */
static double all_hold(const struct ew_recommend_data *d, const struct ew_limit *limits, int i)
{
    double p = 1;
    for (int k = 0; k < d->n_limits; k++)
        p *= ew_limit_holds(&limits[k], &d->candidates[i]);
    return p;
}

/* The goal's value with the sign such that lower is better. */
static double loss(const struct ew_recommend_data *d, int i)
{
    const double mid = value_of(&d->candidates[i], d->goal)->mid;
    return ew_criteria[d->goal].at_least ? -mid : mid;
}

/* Whether the candidate is eligible; *chance: probability that it meets all limits. */
static bool allowed(const struct ew_recommend_data *d, const struct ew_limit *limits, int i,
                    double *chance)
{
    const struct ew_candidate *o = &d->candidates[i];
    *chance = isfinite(o->v[d->goal].mid) ? all_hold(d, limits, i) : 0;
    return *chance > 0 && (o->measured || *chance >= d->sure);
}

/* The candidate of the best goal within these limits; -1: none. */
static int find_front(const struct ew_recommend_data *d, const struct ew_limit *limits,
                      bool measured_only, int *n_good)
{
    int best = -1, good = 0;
    for (int i = 0; i < d->n; i++) {
        double chance;
        if ((measured_only && !d->candidates[i].measured) || !allowed(d, limits, i, &chance))
            continue;
        good++;
        if (best < 0 || loss(d, i) < loss(d, best))
            best = i;
    }
    if (n_good)
        *n_good = good;
    return best;
}

/* Probability that the candidate's goal is within NEAR of the best candidate's; the variances of
 * their errors add up. */
static double near_front(const struct ew_recommend_data *d, int i, int front)
{
    const struct ew_interval *g = value_of(&d->candidates[i], d->goal);
    const struct ew_interval *f = value_of(&d->candidates[front], d->goal);
    if (!(g->mid > 0 && f->mid > 0))
        return loss(d, i) <= loss(d, front);
    const double ahead = (ew_criteria[d->goal].at_least ? -1 : 1) * log(f->mid / g->mid);
    const double sd = ew_interval_sd(g);
    if (!(sd > 0))
        return ahead > -NEAR ? 1 + ahead : 0; /* known exactly: prefer the better of two */
    return 0.5 * erfc(-(ahead + NEAR) / (2 * sd));
}

/* Value of a candidate.  A broken limit is worse than a missed goal, hence the exponent of 1.5,
 * chosen on synthetic_boards.c: of 1,000 sets of limits 0.6 % fewer are broken than with 1, and 0.6
 * % fewer are near the best. */
static double worth(const struct ew_recommend_data *d, double chance, int i, int front)
{
    return chance * sqrt(chance) * near_front(d, i, front);
}

/* The candidate with the highest probability of meeting all limits with a goal near the best; -1:
 * none.  Taking the best expected goal alone would ignore margins to the limits: among practically
 * equal goals the candidate with the larger margin is better.
 */
static int find_best(const struct ew_recommend_data *d, const struct ew_limit *limits, int skip,
                     bool measured_only)
{
    const int front = find_front(d, limits, measured_only, NULL);
    double high = -1;
    int best = -1;
    for (int i = 0; i < d->n && front >= 0; i++) {
        double chance;
        if (i == skip || (measured_only && !d->candidates[i].measured) ||
            !allowed(d, limits, i, &chance))
            continue;
        const double w = worth(d, chance, i, front);
        if (w > high || (w >= high && loss(d, i) < loss(d, best))) {
            high = w;
            best = i;
        }
    }
    return best;
}

static void relax(const struct ew_recommend_data *d, struct ew_recommendation *c)
{
    double most =
        0.001; /* gain of the goal, in ln, below which a limit does not count as binding */
    const double now = loss(d, c->best);
    c->binding = -1;
    for (int k = 0; k < d->n_limits; k++) {
        struct ew_limit wider[EW_LIMITS];
        memcpy(wider, d->limits, (size_t)d->n_limits * sizeof(*wider));
        wider[k].bound *= ew_criteria[wider[k].of].at_least ? 0.9 : 1.1;
        const int i = find_best(d, wider, -1, false);
        const double won = i >= 0 ? (now - loss(d, i)) / fabs(now) : 0;
        c->relaxed[k] = d->candidates[won > 0 ? i : c->best].v[d->goal].mid;
        if (won > most) {
            most = won;
            c->binding = k;
        }
    }
}

/* Expected improvement, in ln, of a prediction over `now` (Jones, Schonlau and Welch 1998). */
static double expected_gain(const struct ew_interval *g, double now, bool at_least)
{
    const double sd = ew_interval_sd(g);
    const double ahead = (at_least ? -1 : 1) * log(now / g->mid);
    if (!(sd > 0))
        return fmax(ahead, 0);
    const double u = ahead / sd;
    return ahead * 0.5 * erfc(-u / sqrt(2)) + sd * exp(-0.5 * u * u) / sqrt(2 * M_PI);
}

/* The untried candidate with the largest expected improvement over the best measured one, times the
 * probability that it meets all limits. */
static void what_to_measure(const struct ew_recommend_data *d, struct ew_recommendation *c)
{
    const bool at_least = ew_criteria[d->goal].at_least;
    const int known = find_front(d, d->limits, true, NULL);
    const double now = value_of(&d->candidates[known >= 0 ? known : c->best], d->goal)->mid;
    double most = 0.003; /* smaller gains are within the noise of any run */
    c->measure = -1;
    for (int i = 0; i < d->n; i++) {
        const struct ew_candidate *o = &d->candidates[i];
        const struct ew_interval *g = &o->v[d->goal];
        if (o->measured || !isfinite(g->mid))
            continue;
        const double chance = all_hold(d, d->limits, i);
        /* If no measured candidate meets the limits, any that does is a gain. */
        const double gain = chance * (known < 0 ? 1 : expected_gain(g, now, at_least));
        if (gain > most) {
            most = gain;
            c->measure = i;
            c->measure_chance = chance;
            c->measure_gain = gain;
        }
    }
}

/* ---- No candidate meets the limits --------------------------------------------------------------
 */

/* The candidate nearest to a limit among those that meet another (NULL: all); -1: none. */
static int nearest(const struct ew_recommend_data *d, const struct ew_limit *to,
                   const struct ew_limit *within)
{
    const bool at_least = ew_criteria[to->of].at_least;
    int best = -1;
    for (int i = 0; i < d->n; i++) {
        const double v = d->candidates[i].v[to->of].mid;
        if (!isfinite(v) || (within && ew_limit_holds(within, &d->candidates[i]) < d->sure))
            continue;
        const double b = best < 0 ? 0 : d->candidates[best].v[to->of].mid;
        if (best < 0 || (at_least ? v > b : v < b))
            best = i;
    }
    return best;
}

static ew_err nothing_fits(const struct ew_recommend_data *d)
{
    for (int k = 0; k < d->n_limits; k++) {
        const struct ew_limit *l = &d->limits[k];
        const struct ew_criterion_info *q = &ew_criteria[l->of];
        const int i = nearest(d, l, NULL);
        EW_CHECK(i >= 0, EW_ERR_NOT_FOUND,
                 "limit %s: no configuration has a value of %s; measure it, or leave the limit out",
                 q->name, q->name);
        if (ew_limit_holds(l, &d->candidates[i]) < d->sure)
            return ew_fail(EW_ERR_NOT_FOUND,
                           "limit %s %.6g %s: no configuration meets it with the probability of "
                           "--sure; the nearest is %.6g %s",
                           q->name, l->bound, q->unit, d->candidates[i].v[l->of].mid, q->unit);
    }
    for (int k = 0; k < d->n_limits; k++)
        for (int j = k + 1; j < d->n_limits; j++) {
            const struct ew_limit *a = &d->limits[k], *b = &d->limits[j];
            const int i = nearest(d, b, a);
            if (i < 0 || ew_limit_holds(b, &d->candidates[i]) < d->sure)
                return ew_fail(
                    EW_ERR_NOT_FOUND,
                    "limits %s and %s contradict each other: within %s %.6g %s the nearest %s is "
                    "%.6g %s; relax one of them",
                    ew_criteria[a->of].name, ew_criteria[b->of].name, ew_criteria[a->of].name,
                    a->bound, ew_criteria[a->of].unit, ew_criteria[b->of].name,
                    i < 0 ? (double)NAN : d->candidates[i].v[b->of].mid, ew_criteria[b->of].unit);
        }
    return ew_fail(EW_ERR_NOT_FOUND,
                   "no configuration meets all %d limits with the probability of --sure; relax "
                   "one, or lower --sure",
                   d->n_limits);
}

/* Whether the candidate's probability of meeting all limits and being near the best is at least
 * AS_GOOD of another's. */
static bool as_good(const struct ew_recommend_data *d, int i, int other)
{
    const int front = find_front(d, d->limits, false, NULL);
    return worth(d, all_hold(d, d->limits, i), i, front) >=
           AS_GOOD * worth(d, all_hold(d, d->limits, other), other, front);
}

static void swap(int *a, int *b)
{
    const int was = *a;
    *a = *b;
    *b = was;
}

ew_err ew_recommend(const struct ew_recommend_data *d, struct ew_recommendation *out)
{
    *out = (struct ew_recommendation){.best = -1, .second = -1, .binding = -1, .measure = -1};
    EW_CHECK(d->n_limits <= EW_LIMITS, EW_ERR_LIMIT, "more than %d limits", EW_LIMITS);
    int known = 0;
    for (int i = 0; i < d->n; i++)
        known += isfinite(d->candidates[i].v[d->goal].mid);
    EW_CHECK(known, EW_ERR_NOT_FOUND,
             "goal %s: no configuration has a value of %s; measure it, or choose another goal",
             ew_criteria[d->goal].name, ew_criteria[d->goal].name);
    find_front(d, d->limits, false, &out->n_good);
    out->best = find_best(d, d->limits, -1, false);
    if (out->best < 0)
        return nothing_fits(d);
    what_to_measure(d, out);
    if (!d->candidates[out->best].measured) {
        out->second = find_best(d, d->limits, out->best, true);
        if (out->measure < 0 && out->second >= 0 && as_good(d, out->second, out->best))
            swap(&out->best, &out->second); /* no untried candidate is expected to be better */
    }
    if (out->second < 0)
        out->second = find_best(d, d->limits, out->best, false);
    for (int k = 0; k < d->n_limits; k++)
        out->holds[k] = ew_limit_holds(&d->limits[k], &d->candidates[out->best]);
    relax(d, out);
    return EW_OK;
}
