/* SPDX-License-Identifier: Apache-2.0 */
/* Figures as JSON. */
#ifndef EW_REPORT_FIGURE_JSON_H
#define EW_REPORT_FIGURE_JSON_H

#include "base/json.h"
#include "report/figure.h"

#define EW_FIGURE_DOTS 200 /* values beside a box: more would hide it */

/* One member of an open array. */
void ew_figure_json(struct ew_json *j, const struct ew_figure *f);

#endif
