/* SPDX-License-Identifier: Apache-2.0 */
/* Widths of a network of the zoo and what they cost, as NeuralScale (Lee and Lee, CVPR 2020) counts
 * them: `tau`, a count of parameters that also takes widths that are no whole numbers.
 *
 * Its counts have quirks that its published filter tables depend on, so they are kept: the
 * MobileNetV2 stem counts as 1x1, and a projection of PreAct ResNet-18 counts only where widths
 * differ.  Other networks count their true parameters. */
#ifndef EW_SCALE_SCALING_H
#define EW_SCALE_SCALING_H

#include "edgewise.h"
#include "model/model.h"

struct ew_scaling_rule;

/* A network whose widths are to be chosen. */
struct ew_scaling {
    const char *network;                /* borrowed */
    struct ew_model_opts opts;          /* size and classes; widths are left open */
    int n;                              /* gates */
    int32_t base[EW_MAX_GATES];         /* filters at ratio 1 */
    const struct ew_scaling_rule *rule; /* NULL: true parameters, bisection */
};

/* What a list of widths gives: true counts of the network that has them. */
struct ew_scaling_facts {
    int64_t params, macs, thop_macs;
};

ew_err ew_scaling_open(const char *network, const struct ew_model_opts *opts,
                       struct ew_scaling *out);

/* tau of these widths. */
ew_err ew_scaling_tau(const struct ew_scaling *s, const double *widths, double *out);
/* What tau is asked for at a ratio of the base widths. */
ew_err ew_scaling_target(const struct ew_scaling *s, double ratio, double *out);

/* trunc(base x ratio); fails where a gate would get no filter. */
ew_err ew_scaling_uniform(const struct ew_scaling *s, double ratio, int32_t *widths);

ew_err ew_scaling_facts(const struct ew_scaling *s, const int32_t *widths,
                        struct ew_scaling_facts *out);

/* ---- How one network is counted and searched ---- */

struct ew_scaling_rule {
    const char *network;
    double (*count)(const double *w, int n, double classes);
    bool real_target;        /* tau of the target from widths that are not cut to whole numbers */
    bool real_inside;        /* the same while searching */
    double rate;             /* of the descent in tau */
    int steps;               /* exactly so many, or 0: until near */
    double near_first, near; /* share of the target; the first descent iteration has its own */
    bool halve;              /* where a step would reach below 0, halve tau instead */
};

#endif
