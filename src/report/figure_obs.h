/* SPDX-License-Identifier: Apache-2.0 */
/* Observations: what one epoch or one run adds to a figure, before grouping. */
#ifndef EW_REPORT_FIGURE_OBS_H
#define EW_REPORT_FIGURE_OBS_H

#include "report/figure.h"

struct ew_obs {
    const struct ew_run_data *run;
    const char *facet, *x, *series;
    const char *options, *machine; /* keys */
    const char *options_label, *machine_label;
    const char *also; /* options that vary with x: "a, b" */
    int quality;
    double y[EW_FIGURE_MAX_Y];                                                   /* nan: absent */
    double spread[EW_FIGURE_MAX_Y], low[EW_FIGURE_MAX_Y], high[EW_FIGURE_MAX_Y]; /* of a metric */
};

/* A measure, resolved to a name that the results have. */
struct ew_measure {
    const char *name;
    const struct ew_field *field; /* EPOCH: of an epoch's row */
    bool summed;                  /* over this epoch and those before it */
    const char *unit;
    int better;
};

struct ew_obs_list {
    struct ew_obs *v;
    int n, cap;
    struct ew_measure measure[EW_FIGURE_MAX_VARIANTS][EW_FIGURE_MAX_Y];
    const char *missing;
};

/* Fills the list with the observations of the figure; if there are none, `missing` says why.
 * Release `v` with free(). */
ew_err ew_obs_collect(const struct ew_figure_desc *d, const struct ew_results *r, const char *study,
                      struct ew_arena *a, struct ew_obs_list *out);

/* The value of the first of these properties ("power-mode|power_mode") that the run has. */
const char *ew_obs_property(const struct ew_run_data *run, const char *names, struct ew_arena *a);

/* Whether both belong to the same group: equal in everything but the values. */
bool ew_obs_same(const struct ew_obs *a, const struct ew_obs *b);

#endif
