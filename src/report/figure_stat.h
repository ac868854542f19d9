/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files that make figures: statistics, names, groups, series. */
#ifndef EW_REPORT_FIGURE_STAT_H
#define EW_REPORT_FIGURE_STAT_H

#include "report/figure.h"

/* Sorts v[n] and fills all of the statistic, which keeps v. */
void ew_stat_of(double *v, int n, struct ew_stat *out);

/* Rounds to seven significant digits, more than any sensor has, which halves the size of a page. */
double ew_stat_brief(double v);

/* Numbers by value, then other text; never equal for different text. */
int ew_text_order(const char *a, const char *b);

/* Adds `text` to the list (room for all is there) unless it is in it; returns its place. */
int ew_text_intern(const char **list, int *n, const char *text);

/* The steps that make figures, in order.  A figure without data gets `missing`. */
ew_err ew_figure_group(struct ew_figures *out, const struct ew_figure_desc *d,
                       const struct ew_results *r, const char *study);
ew_err ew_figure_trace(struct ew_figures *out, const struct ew_figure_desc *d,
                       const struct ew_results *r, const char *study);
ew_err ew_figure_matrix(struct ew_figures *out, const struct ew_figure_desc *d,
                        const struct ew_results *r, const char *study);
struct ew_obs_list;
/* Adds groups of published values beside ours; there is room for all. */
ew_err ew_figure_publish(struct ew_arena *a, struct ew_figure *f, const struct ew_obs_list *l,
                         const struct ew_results *r);
/* Puts the ratios of series, as the description names them, in place of the groups. */
ew_err ew_figure_ratios(struct ew_arena *a, struct ew_figure *f);
/* A dot needs both its measures. */
bool ew_group_is_drawn(const struct ew_figure *f, const struct ew_group *g);
/* Our own groups are called "here" where published ones are drawn beside them. */
void ew_figure_name_here(struct ew_figure *f);
/* Adds the published lines that the description names. */
ew_err ew_figure_published_lines(struct ew_arena *a, struct ew_figure *f,
                                 const struct ew_results *r);
/* Adds a line through the dots of each series that has three or more. */
ew_err ew_figure_trends(struct ew_arena *a, struct ew_figure *f);
ew_err ew_figure_series(struct ew_figures *out, struct ew_figure *f);

/* A new figure at the end. */
ew_err ew_figures_add(struct ew_figures *out, const struct ew_figure_desc *d, const char *facet,
                      struct ew_figure **f);

/* Unit and scale for people: bytes become MiB. */
void ew_axis_fill(struct ew_axis *a, const char *label, const char *unit, int better);

/* Whether a figure of the report's table is for this study; other studies get those of
 * ew_figure_own. */
bool ew_figure_known(const char *study);
/* Figures of users' own studies: each measure over the options that the study varies. */
ew_err ew_figure_own(struct ew_figures *out, const struct ew_results *r, const char *study);

/* Whether the run is finished, belongs to this study (NULL: any) and not to a study that has
 * figures of its own. */
bool ew_figure_takes(const struct ew_figure_desc *d, const struct ew_run_data *run,
                     const char *study);

#endif
