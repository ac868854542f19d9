/* SPDX-License-Identifier: Apache-2.0 */
/* Fitting power laws, and widths from them. */
#include "scale/power_law.h"

#include <math.h>
#include <string.h>

#include "base/regress.h"

#define MAX_STEPS 1000000

/* ---- Fitting ---- */

static void keep_first(const struct ew_prune_rows *rows, struct ew_power_law *law)
{
    for (int l = 0; l < law->n; l++) {
        law->alpha[l] = rows->counts[l];
        law->beta[l] = 0;
        law->r2[l] = (double)NAN;
    }
}

static ew_err fit_gate(const struct ew_prune_rows *rows, const double *ln_tau, double *ln_phi,
                       int l, struct ew_power_law *law)
{
    struct ew_line line;
    for (int r = 0; r < rows->n; r++)
        ln_phi[r] = log(rows->counts[(size_t)r * (size_t)law->n + (size_t)l]);
    EW_TRY(ew_line_fit(ln_tau, ln_phi, rows->n, &line));
    law->beta[l] = line.slope;
    law->alpha[l] = exp(line.intercept);
    law->r2[l] = line.r * line.r;
    return EW_OK;
}

static ew_err row_tau(const struct ew_scaling *s, const struct ew_prune_rows *rows, int r,
                      double *tau)
{
    double widths[EW_MAX_GATES];
    for (int l = 0; l < s->n; l++) {
        const int32_t n = rows->counts[(size_t)r * (size_t)s->n + (size_t)l];
        EW_CHECK(n >= 1, EW_ERR_ARG, "row %d leaves gate %d with %d filters", r + 1, l, (int)n);
        widths[l] = n;
    }
    return ew_scaling_tau(s, widths, tau);
}

ew_err ew_power_law_fit(const struct ew_scaling *s, const struct ew_prune_rows *rows,
                        struct ew_power_law *out)
{
    *out = (struct ew_power_law){.n = s->n, .rows = rows->n, .tau_least = INFINITY};
    EW_CHECK(rows->n > 0, EW_ERR_ARG, "there is no record of pruning to fit");
    EW_CHECK(rows->gates == s->n, EW_ERR_ARG, "the records have %d widths, %s has %d", rows->gates,
             s->network, s->n);
    EW_CLEANUP(ew_free_ptr) void *block = NULL;
    EW_TRY(ew_aligned_new((size_t)rows->n * 2 * sizeof(double), &block));
    double *ln_tau = block, *ln_phi = ln_tau + rows->n;
    for (int r = 0; r < rows->n; r++) {
        double tau;
        EW_TRY(row_tau(s, rows, r, &tau));
        out->tau_least = fmin(out->tau_least, tau);
        out->tau_most = fmax(out->tau_most, tau);
        ln_tau[r] = log(tau);
    }
    if (rows->n < EW_LAW_ROWS) {
        keep_first(rows, out);
        return EW_OK;
    }
    for (int l = 0; l < s->n; l++)
        EW_TRY(fit_gate(rows, ln_tau, ln_phi, l, out));
    return EW_OK;
}

/* ---- Widths at a tau ---- */

static double phi(const struct ew_power_law *law, int l, double tau)
{
    return law->alpha[l] * pow(tau, law->beta[l]);
}

static bool is_flat(const struct ew_power_law *law)
{
    for (int l = 0; l < law->n; l++)
        if (fabs(law->beta[l]) > 0)
            return false;
    return true;
}

static ew_err store(const struct ew_scaling *s, const double *widths, struct ew_widths_found *out)
{
    for (int l = 0; l < s->n; l++) {
        const double wide = trunc(widths[l]);
        EW_CHECK(wide >= 1 && wide < 1 << 24, EW_ERR_ARG,
                 "%s: the law gives gate %d %.0f filters at this size", s->network, l, wide);
        out->widths[l] = (int32_t)wide;
    }
    return EW_OK;
}

static ew_err store_at(const struct ew_scaling *s, const struct ew_power_law *law, double tau,
                       struct ew_widths_found *out)
{
    double widths[EW_MAX_GATES];
    for (int l = 0; l < s->n; l++)
        widths[l] = phi(law, l, tau);
    out->tau = tau;
    return store(s, widths, out);
}

/* ---- Too few records: scales the first one ---- */

static ew_err scale_first(const struct ew_scaling *s, const struct ew_power_law *law,
                          struct ew_widths_found *out)
{
    double widths[EW_MAX_GATES], count = 0, q = 1.2;
    const bool as_it_is = s->rule && s->rule->steps > 0;
    for (out->steps = 0; !as_it_is && fabs(count - out->target) > 0.1 * out->target; out->steps++) {
        EW_CHECK(out->steps < MAX_STEPS && q > 0, EW_ERR_ARG,
                 "%s: no multiple of the only record has about %.0f parameters", s->network,
                 out->target);
        for (int l = 0; l < s->n; l++)
            widths[l] = trunc(law->alpha[l] * q);
        EW_TRY(ew_scaling_tau(s, widths, &count));
        q += count < out->target ? 0.05 : -0.05;
    }
    for (int l = 0; l < s->n; l++) {
        widths[l] = as_it_is ? law->alpha[l] : trunc(law->alpha[l] * q);
        if (!as_it_is && widths[l] < 10)
            widths[l] += 10;
    }
    out->tau = count;
    return store(s, widths, out);
}

/* ---- NeuralScale's descent in tau ---- */

/* tau of the widths that the law gives at `tau`, and the derivative of their sum. */
static double look(const struct ew_scaling *s, const struct ew_power_law *law, double tau,
                   double *slope)
{
    double widths[EW_MAX_GATES];
    *slope = 0;
    for (int l = 0; l < s->n; l++) {
        const double wide = phi(law, l, tau);
        *slope += wide * law->beta[l] / tau;
        widths[l] = s->rule->real_inside ? wide : trunc(wide);
    }
    return s->rule->count(widths, s->n, (double)s->opts.classes);
}

static ew_err descend(const struct ew_scaling *s, const struct ew_power_law *law,
                      struct ew_widths_found *out)
{
    const struct ew_scaling_rule *rule = s->rule;
    const double near = trunc((law->first ? rule->near_first : rule->near) * out->target);
    double tau = out->target, count = 0;
    for (out->steps = 0; rule->steps ? out->steps < rule->steps : fabs(count - out->target) > near;
         out->steps++) {
        double slope;
        count = look(s, law, tau, &slope);
        const double step = rule->rate * (count - out->target) * slope;
        tau = rule->halve && step > tau ? tau / 2 : tau - step;
        EW_CHECK(out->steps < MAX_STEPS && tau > 0 && isfinite(tau), EW_ERR_ARG,
                 "%s: the search for %.0f parameters does not end: these records do not carry so "
                 "far",
                 s->network, out->target);
    }
    return store_at(s, law, tau, out);
}

/* ---- Bisection, for all other networks and targets ---- */

/* Widths at a point of the search (tau with a law, else the uniform ratio), each at least 1. */
static void widths_at(const struct ew_scaling *s, const struct ew_power_law *law, double at,
                      int32_t *widths)
{
    for (int l = 0; l < s->n; l++) {
        const double wide = law ? phi(law, l, at) : s->base[l] * at;
        widths[l] = (int32_t)fmin(fmax(1, trunc(wide)), 1 << 22);
    }
}

static ew_err cost_at(const struct ew_scaling *s, const struct ew_power_law *law, double at,
                      bool macs, double *out)
{
    int32_t widths[EW_MAX_GATES];
    struct ew_scaling_facts f;
    widths_at(s, law, at, widths);
    EW_TRY(ew_scaling_facts(s, widths, &f));
    *out = (double)(macs ? f.macs : f.params);
    return EW_OK;
}

ew_err ew_widths_within(const struct ew_scaling *s, const struct ew_power_law *law, double limit,
                        bool macs, struct ew_widths_found *out)
{
    double low = law ? 1 : 0, high = law ? 1e12 : 64, cost;
    *out = (struct ew_widths_found){.target = limit};
    EW_CHECK(!law || !is_flat(law), EW_ERR_ARG,
             "fewer than %d records: they give no law to meet a size with", EW_LAW_ROWS);
    EW_TRY(cost_at(s, law, low, macs, &cost));
    EW_CHECK(cost <= limit, EW_ERR_LIMIT, "%s: the least widths have %.0f %s, over %.0f",
             s->network, cost, macs ? "multiply-accumulates" : "parameters", limit);
    while (high > low * (1 + 1e-9) + 1e-9 && out->steps++ < 200) {
        const double middle = low > 0 && high / low > 4 ? sqrt(low * high) : 0.5 * (low + high);
        EW_TRY(cost_at(s, law, middle, macs, &cost));
        if (cost <= limit)
            low = middle;
        else
            high = middle;
    }
    out->tau = low;
    widths_at(s, law, low, out->widths);
    return EW_OK;
}

ew_err ew_power_law_widths(const struct ew_scaling *s, const struct ew_power_law *law,
                           double target, struct ew_widths_found *out)
{
    EW_CHECK(law->n == s->n, EW_ERR_ARG, "the law has %d widths, %s has %d", law->n, s->network,
             s->n);
    EW_CHECK(target >= 1 && isfinite(target), EW_ERR_ARG, "%s: %g parameters are asked for",
             s->network, target);
    *out = (struct ew_widths_found){.target = target};
    if (is_flat(law))
        return scale_first(s, law, out);
    return s->rule ? descend(s, law, out) : ew_widths_within(s, law, target, false, out);
}

ew_err ew_widths_find(const struct ew_scaling *s, const struct ew_power_law *law,
                      const struct ew_widths_wanted *w, struct ew_widths_found *out)
{
    double target = w->params;
    if (w->macs > 0)
        return ew_widths_within(s, law, w->macs, true, out);
    if (!law && w->params > 0)
        return ew_widths_within(s, NULL, w->params, false, out);
    if (!law) {
        *out = (struct ew_widths_found){.tau = w->ratio};
        EW_TRY(ew_scaling_target(s, w->ratio, &out->target));
        return ew_scaling_uniform(s, w->ratio, out->widths);
    }
    if (w->ratio > 0)
        EW_TRY(ew_scaling_target(s, w->ratio, &target));
    return ew_power_law_widths(s, law, target, out);
}

ew_err ew_power_law_read(const struct ew_scaling *s, const char *path, struct ew_power_law *out)
{
    struct ew_prune_rows rows;
    if (strcmp(path, "published") == 0) {
        const struct ew_power_law *known = ew_power_law_published(s->network);
        EW_CHECK(known, EW_ERR_NOT_FOUND,
                 "%s: NeuralScale's authors published no records of it; vgg11_cifar, "
                 "mobilenet_v2_cifar and mobilenet_v2_tiny have some",
                 s->network);
        *out = *known;
        return EW_OK;
    }
    EW_TRY(ew_prune_rows_read(path, &rows));
    const ew_err e = ew_power_law_fit(s, &rows, out);
    ew_prune_rows_fini(&rows);
    return ew_fail_in(e, "%s", path);
}
