/* SPDX-License-Identifier: Apache-2.0 */
/* Equation 1, and the lines published in the study. */
#include "scale/select.h"

#include <math.h>
#include <string.h>

#include "scale/power_law.h"

/* clang-format off */
const struct ew_published_line ew_published_lines[] = {
    {"ARM Cortex-A72", "float32", "latency", "ms", 0.786, 5.2e-6,  5.7e-6, 17.9, 24},
    {"ARM Cortex-A72", "int8",    "latency", "ms", 0.648, 6.1e-4,  2.2e-6, 9.7,  24},
    {"AGX Xavier",     "float32", "latency", "ms", 0.850, 1.5e-7,  1.6e-7, 0.96, 24},
    {"AGX Xavier",     "int8",    "latency", "ms", 0.546, 8.6e-3,  2.8e-8, 0.51, 22},
    {"ZCU104",         "int8",    "latency", "ms", 0.924, 1.2e-10, 1.7e-7, 0.69, 24},
    {"ARM Cortex-A72", "float32", "memory",  "MB", 0.999, 1.6e-32, 4.2e-6, 9.3,  24},
    {"ARM Cortex-A72", "int8",    "memory",  "MB", 0.991, 8.6e-21, 1.8e-6, 9.9,  24},
    {"AGX Xavier",     "float32", "memory",  "MB", 0.391, 5.9e-2,  4.0e-6, 62.5, 24},
    {"AGX Xavier",     "int8",    "memory",  "MB", 0.994, 7.8e-21, 1.0e-6, 1.3,  22},
};
/* clang-format on */
const int ew_n_published_lines = (int)EW_COUNT(ew_published_lines);

ew_err ew_select_ratio(const struct ew_scaling *s, double slope, double intercept, double limit,
                       struct ew_selected *out)
{
    struct ew_widths_found found;
    struct ew_scaling_facts base, at;
    *out = (struct ew_selected){0};
    EW_CHECK(slope > 0, EW_ERR_LIMIT,
             "the line does not rise with parameters (slope %.3g): they do not decide this", slope);
    EW_CHECK(limit > intercept, EW_ERR_LIMIT,
             "the limit %g is below the line's intercept %.4g: no number of parameters meets it",
             limit, intercept);
    EW_TRY(ew_scaling_facts(s, s->base, &base));
    out->params = (limit - intercept) / slope;
    out->ratio = sqrt(out->params / (double)base.params);
    if (ew_widths_within(s, NULL, out->params, false, &found) != EW_OK)
        return ew_fail(EW_ERR_LIMIT,
                       "the line leaves room for %.0f parameters, less than %s has with one filter "
                       "a layer",
                       out->params, s->network);
    EW_TRY(ew_scaling_facts(s, found.widths, &at));
    out->exact = found.tau;
    out->exact_params = at.params;
    memcpy(out->widths, found.widths, sizeof(out->widths));
    return EW_OK;
}
