/* SPDX-License-Identifier: Apache-2.0 */
/* A figure as static SVG, for pages without scripts or without the charting library. Colours come
 * from the page's style sheet. */
#ifndef EW_REPORT_FIGURE_SVG_H
#define EW_REPORT_FIGURE_SVG_H

#include <stdio.h>

#include "report/figure.h"

/* Writes nothing for a figure without data.  tips: adds tooltips with values, for pages without
 * scripts. */
ew_err ew_figure_svg(const struct ew_figure *f, bool tips, FILE *out);

#endif
