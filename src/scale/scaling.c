/* SPDX-License-Identifier: Apache-2.0 */
/* Counting parameters by widths. */
#include "scale/scaling.h"

#include <math.h>
#include <string.h>

#include "graph/graph.h"

/* ---- NeuralScale's counts: 3 per filter for bias and batch norm, 2 without bias ---- */

static double count_vgg(const double *w, int n, double classes)
{
    double sum = 0, prev = 3;
    for (int i = 0; i < n; i++) {
        sum += 9 * prev * w[i] + 3 * w[i];
        prev = w[i];
    }
    return sum + prev * classes + classes;
}

static bool differ(double a, double b)
{
    return a < b || a > b;
}

static double count_preact(const double *w, int n, double classes)
{
    double sum = 0, prev = 3;
    for (int i = 0; i < n; i++) {
        sum += 9 * prev * w[i] + 2 * w[i];
        prev = w[i];
    }
    for (int i = 2; i < n; i += 2)
        if (differ(w[i - 2], w[i]))
            sum += w[i - 2] * w[i];
    return sum + prev * classes + classes;
}

static double count_mobilenet(const double *w, int n, double classes)
{
    double sum = 3 * w[0] + 3 * w[0], prev = w[0];
    for (int i = 1; i < n - 1; i++) {
        const double middle = (i == 1 ? 1 : 6) * prev;
        if (differ(prev, w[i]))
            sum += prev * w[i] + 3 * w[i];
        sum += prev * middle + 3 * middle + 9 * middle + 3 * middle + middle * w[i] + 3 * w[i];
        prev = w[i];
    }
    sum += prev * w[n - 1] + 3 * w[n - 1];
    return sum + w[n - 1] * classes + classes;
}

/* clang-format off */
static const struct ew_scaling_rule rules[] = {
    {.network = "vgg11_cifar", .count = count_vgg, .real_target = true, .rate = 50, .steps = 2000},
    {.network = "mobilenet_v2_cifar", .count = count_mobilenet, .real_inside = true, .rate = 1,
     .near_first = 0.0005, .near = 0.0005, .halve = true},
    {.network = "mobilenet_v2_tiny", .count = count_mobilenet, .real_inside = true, .rate = 1,
     .near_first = 0.0005, .near = 0.0005, .halve = true},
    {.network = "preact_resnet18", .count = count_preact, .real_target = true, .rate = 1,
     .near_first = 0.009, .near = 0.007},
    {.network = "preact_resnet18_tiny", .count = count_preact, .real_target = true, .rate = 1,
     .near_first = 0.009, .near = 0.007},
};
/* clang-format on */

static const struct ew_scaling_rule *find_rule(const char *network)
{
    for (size_t i = 0; i < EW_COUNT(rules); i++)
        if (strcmp(rules[i].network, network) == 0)
            return &rules[i];
    return NULL;
}

/* ---- A network ---- */

ew_err ew_scaling_open(const char *network, const struct ew_model_opts *opts,
                       struct ew_scaling *out)
{
    const struct ew_family *family;
    const struct ew_variant *v;
    *out = (struct ew_scaling){.network = network, .opts = *opts};
    EW_TRY(ew_variant_find(network, &family, &v));
    out->opts.scale = 0;
    out->opts.filters = NULL;
    out->opts.n_filters = 0;
    out->opts.batch = 1;
    if (out->opts.classes == 0)
        out->opts.classes = v->classes;
    EW_TRY(ew_model_filters(network, &out->opts, out->base, EW_MAX_GATES, &out->n));
    EW_CHECK(out->n > 0, EW_ERR_ARG, "%s: has no widths to scale", network);
    out->rule = find_rule(network);
    return EW_OK;
}

ew_err ew_scaling_facts(const struct ew_scaling *s, const int32_t *widths,
                        struct ew_scaling_facts *out)
{
    struct ew_model_opts o = s->opts;
    struct ew_graph *g;
    struct ew_cost cost;
    o.filters = widths;
    o.n_filters = s->n;
    EW_TRY(ew_model_build(s->network, &o, &g));
    const ew_err e = ew_graph_cost(g, &cost, NULL);
    ew_graph_free(g);
    EW_TRY(e);
    *out = (struct ew_scaling_facts){
        .params = cost.params, .macs = cost.macs, .thop_macs = cost.thop_macs};
    return EW_OK;
}

static ew_err true_params(const struct ew_scaling *s, const double *widths, double *out)
{
    int32_t whole[EW_MAX_GATES];
    struct ew_scaling_facts f;
    for (int i = 0; i < s->n; i++)
        whole[i] = (int32_t)fmin(INT32_MAX, fmax(1, trunc(widths[i])));
    EW_TRY(ew_scaling_facts(s, whole, &f));
    *out = (double)f.params;
    return EW_OK;
}

ew_err ew_scaling_tau(const struct ew_scaling *s, const double *widths, double *out)
{
    if (!s->rule)
        return true_params(s, widths, out);
    *out = s->rule->count(widths, s->n, (double)s->opts.classes);
    return EW_OK;
}

ew_err ew_scaling_target(const struct ew_scaling *s, double ratio, double *out)
{
    double widths[EW_MAX_GATES];
    const bool real = s->rule && s->rule->real_target;
    for (int i = 0; i < s->n; i++)
        widths[i] = real ? s->base[i] * ratio : trunc(s->base[i] * ratio);
    return ew_scaling_tau(s, widths, out);
}

ew_err ew_scaling_uniform(const struct ew_scaling *s, double ratio, int32_t *widths)
{
    for (int i = 0; i < s->n; i++) {
        const double wide = trunc(s->base[i] * ratio);
        EW_CHECK(wide >= 1 && wide < 1 << 24, EW_ERR_ARG,
                 "%s: ratio %g leaves %.0f filters of %d at gate %d", s->network, ratio, wide,
                 (int)s->base[i], i);
        widths[i] = (int32_t)wide;
    }
    return EW_OK;
}
