/* SPDX-License-Identifier: Apache-2.0 */
/* Widths of a zoo network and their cost as NeuralScale (Lee and Lee, CVPR 2020) counts it: `tau`,
 * a number of parameters that is also defined for real-valued widths.
 *
 * NeuralScale's counts have quirks on which its published filter tables depend, so they are kept:
 * the MobileNetV2 stem counts as 1x1, and a projection of PreAct ResNet-18 only where widths
 * differ.  Other networks count their true parameters. */
#ifndef EW_SCALE_SCALING_H
#define EW_SCALE_SCALING_H

#include "edgewise.h"
#include "model/model.h"

struct ew_scaling_rule;

/* A network whose widths are chosen. */
struct ew_scaling {
    const char *network;                /* borrowed */
    struct ew_model_opts opts;          /* input size and classes, not the widths */
    int n;                              /* gates */
    int32_t base[EW_MAX_GATES];         /* filters at ratio 1 */
    const struct ew_scaling_rule *rule; /* NULL: true parameters, bisection */
};

/* True counts of a network with given widths. */
struct ew_scaling_facts {
    int64_t params, macs, thop_macs;
};

ew_err ew_scaling_open(const char *network, const struct ew_model_opts *opts,
                       struct ew_scaling *out);

/* tau of these widths. */
ew_err ew_scaling_tau(const struct ew_scaling *s, const double *widths, double *out);
/* The target tau at a ratio of the base widths. */
ew_err ew_scaling_target(const struct ew_scaling *s, double ratio, double *out);

/* trunc(base x ratio); fails if a gate would get no filter. */
ew_err ew_scaling_uniform(const struct ew_scaling *s, double ratio, int32_t *widths);

ew_err ew_scaling_facts(const struct ew_scaling *s, const int32_t *widths,
                        struct ew_scaling_facts *out);

/* ---- Rules by network ---- */

struct ew_scaling_rule {
    const char *network;
    double (*count)(const double *w, int n, double classes);
    bool real_target;        /* target tau from real-valued widths */
    bool real_inside;        /* tau from real-valued widths during the search */
    double rate;             /* step size of the descent in tau */
    int steps;               /* fixed number of steps; 0: until close */
    double near_first, near; /* tolerance relative to the target; the first descent iteration has
                              * its own */
    bool halve;              /* halve tau where a step would go below 0 */
};

#endif
