/* SPDX-License-Identifier: Apache-2.0 */
/* The receiver operating characteristic. */
#include "train/roc.h"

#include <math.h>
#include <stdlib.h>

static int by_falling_score(const void *a, const void *b)
{
    const double x = ((const struct ew_roc_sample *)a)->score,
                 y = ((const struct ew_roc_sample *)b)->score;
    return x < y ? 1 : x > y ? -1 : 0;
}

/* Of an area over m anomalies and n normal samples, for exponentially distributed scores (Hanley
 * and McNeil). */
static double standard_error(double area, double m, double n)
{
    const double q1 = area / (2 - area), q2 = 2 * area * area / (1 + area);
    const double v =
        area * (1 - area) + (m - 1) * (q1 - area * area) + (n - 1) * (q2 - area * area);
    return sqrt(fmax(v, 0) / (m * n));
}

static void note(struct ew_roc *r, const struct ew_roc_point *p, double false_alarms)
{
    if (p->found - p->false_alarms > r->best.found - r->best.false_alarms)
        r->best = *p;
    if (p->false_alarms <= false_alarms && p->found > r->quiet.found)
        r->quiet = *p;
    r->points[r->n++] = *p;
}

/* Adds a point after each group of equal scores; the area is by trapezoids. */
static void walk(const struct ew_roc_sample *s, int64_t n, double false_alarms, struct ew_roc *r)
{
    int64_t hits = 0, alarms = 0;
    struct ew_roc_point last = {.threshold = INFINITY};
    r->best = r->quiet = last;
    note(r, &last, false_alarms);
    for (int64_t i = 0; i < n; i++) {
        hits += s[i].anomaly;
        alarms += !s[i].anomaly;
        if (i + 1 < n && !(s[i + 1].score < s[i].score))
            continue;
        const struct ew_roc_point p = {.threshold = s[i].score,
                                       .found = (double)hits / (double)r->anomalies,
                                       .false_alarms = (double)alarms / (double)r->normal};
        r->area += (p.false_alarms - last.false_alarms) * (p.found + last.found) / 2;
        note(r, &p, false_alarms);
        last = p;
    }
}

ew_err ew_roc_init(struct ew_roc_sample *samples, int64_t n, double false_alarms,
                   struct ew_roc *out)
{
    *out = (struct ew_roc){0};
    for (int64_t i = 0; i < n; i++) {
        EW_CHECK(!isnan(samples[i].score), EW_ERR_ARG, "the score of sample %lld is not a number",
                 (long long)i);
        out->anomalies += samples[i].anomaly;
    }
    out->normal = n - out->anomalies;
    EW_CHECK(out->anomalies > 0 && out->normal > 0, EW_ERR_ARG,
             "of %lld samples %lld are anomalies: a curve takes some of either kind", (long long)n,
             (long long)out->anomalies);
    out->points = calloc((size_t)n + 1, sizeof(*out->points));
    EW_CHECK(out->points, EW_ERR_MEMORY, "no memory for a curve of %lld samples", (long long)n);
    qsort(samples, (size_t)n, sizeof(*samples), by_falling_score);
    walk(samples, n, false_alarms, out);
    out->area_error = standard_error(out->area, (double)out->anomalies, (double)out->normal);
    return EW_OK;
}

void ew_roc_fini(struct ew_roc *r)
{
    free(r->points);
    *r = (struct ew_roc){0};
}
