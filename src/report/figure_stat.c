/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics, order and text of values. */
#include "report/figure_stat.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/order_stats.h"

void ew_stat_of(double *v, int n, struct ew_stat *out)
{
    *out = (struct ew_stat){.n = n, .mean = NAN, .sd = NAN, .v = v};
    out->low = out->q1 = out->median = out->q3 = out->high = NAN;
    if (n == 0)
        return;
    ew_sort(v, n);
    double sum = 0, squares = 0;
    for (int i = 0; i < n; i++)
        sum += v[i];
    out->mean = sum / n;
    for (int i = 0; i < n; i++)
        squares += (v[i] - out->mean) * (v[i] - out->mean);
    if (n > 1)
        out->sd = sqrt(squares / (n - 1));
    if (n > 1 && !(v[n - 1] > v[0])) { /* all equal: rounding must not show as a deviation */
        out->mean = v[0];
        out->sd = 0;
    }
    out->low = v[0];
    out->q1 = ew_quantile(v, n, 0.25);
    out->median = ew_quantile(v, n, 0.5);
    out->q3 = ew_quantile(v, n, 0.75);
    out->high = v[n - 1];
}

double ew_stat_brief(double v)
{
    char text[32];
    snprintf(text, sizeof(text), "%.7g", v);
    return isfinite(v) ? strtod(text, NULL) : v;
}

/* Position of words with a natural order that is not alphabetical. */
static int place(const char *word)
{
    static const char *const words[] = {
        "first",   "later",  "reference",   "before",        "after",
        "float32", "int8",   "scratch",     "transfer",      "ssd",
        "sd",      "sdcard", "hdd",         "nx-scratch",    "nx-transfer",
        "no",      "yes",    "every-epoch", "binary-before", "binary-after"};
    for (size_t i = 0; i < EW_COUNT(words); i++)
        if (strcmp(word, words[i]) == 0)
            return (int)i;
    return -1;
}

/* As strcmp, but whole numbers within the texts are compared as numbers: "batch 8", "batch 16". */
static int natural_order(const char *a, const char *b)
{
    static const char digits[] = "0123456789";
    size_t at = 0;
    while (a[at] && a[at] == b[at])
        at++;
    while (at > 0 && strchr(digits, a[at - 1]))
        at--; /* to the start of the number in which they differ */
    const size_t n = strspn(a + at, digits), m = strspn(b + at, digits);
    const bool fraction = at > 0 && a[at - 1] == '.';
    if (n && m && n != m && !fraction)
        return n < m ? -1 : 1;
    return strcmp(a, b);
}

int ew_text_order(const char *a, const char *b)
{
    double x, y;
    const int p = place(a), q = place(b);
    if (p >= 0 && q >= 0)
        return p - q;
    const bool a_num = ew_num_float(a, &x), b_num = ew_num_float(b, &y);
    if (a_num && b_num && (x < y || x > y))
        return x < y ? -1 : 1;
    if (a_num != b_num)
        return a_num ? -1 : 1;
    return natural_order(a, b);
}

int ew_text_intern(const char **list, int *n, const char *text)
{
    for (int i = 0; i < *n; i++)
        if (strcmp(list[i], text) == 0)
            return i;
    list[*n] = text;
    return (*n)++;
}

const char *ew_text_value(double v, char buf[EW_VALUE_CHARS])
{
    const double size = fabs(v);
    if (!isfinite(v))
        snprintf(buf, EW_VALUE_CHARS, "%s", "");
    else if (size > 0 && (size < 1e-6 || size >= 1e9))
        snprintf(buf, EW_VALUE_CHARS, "%.3e", v);
    else if (size > 0 && size < 1e-3)
        snprintf(buf, EW_VALUE_CHARS, "%.6f", v);
    else if (size >= 999.95 || size <= 0)
        snprintf(buf, EW_VALUE_CHARS, "%.0f", v);
    else if (v >= 1 && size - floor(size) <= 0 && size < 1000)
        snprintf(buf, EW_VALUE_CHARS, "%.0f", v);
    else
        snprintf(buf, EW_VALUE_CHARS, "%.*f",
                 size >= 99.995     ? 1
                 : size >= 9.9995   ? 2
                 : size >= 0.09995  ? 3
                 : size >= 0.009995 ? 4
                                    : 5,
                 v);
    return buf;
}

const char *ew_figure_quality(int quality)
{
    return quality < 0 ? "published" : ew_quality_name((enum ew_quality)quality);
}

bool ew_figure_log(const struct ew_figure *f)
{
    double low = INFINITY, high = 0;
    for (int i = 0; f->desc->log && i < f->n_series; i++)
        for (int k = 0; k < f->series[i].n_points; k++) {
            const double y = f->series[i].points[k].y;
            if (!f->series[i].right && y > 0) {
                low = fmin(low, y);
                high = fmax(high, y);
            }
        }
    /* Both axes: whatever the range, since equal values are a straight line on equal axes alone. */
    return high > 0 && (high >= 10 * low || (f->desc->log && f->desc->log_x));
}

void ew_axis_fill(struct ew_axis *a, const char *label, const char *unit, int better)
{
    const bool bytes = unit && strcmp(unit, "B") == 0;
    *a = (struct ew_axis){.label = label,
                          .unit = bytes  ? "MiB"
                                  : unit ? unit
                                         : "",
                          .scale = bytes ? 1.0 / (1 << 20) : 1,
                          .better = better};
}
