/* SPDX-License-Identifier: Apache-2.0 */
/* A figure as a still picture: what a page shows without scripts and without the charting library.
 * Colours come from the page's style sheet. */
#ifndef EW_REPORT_FIGURE_SVG_H
#define EW_REPORT_FIGURE_SVG_H

#include <stdio.h>

#include "report/figure.h"

/* Nothing for a figure that is missing.  tips: values to hover over, where no script shows them. */
ew_err ew_figure_svg(const struct ew_figure *f, bool tips, FILE *out);

#endif
