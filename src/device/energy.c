/* SPDX-License-Identifier: Apache-2.0 */
/* Energy of an interval. */
#include "device/energy.h"

#include <math.h>

#include "base/clock.h"
#include "base/mem.h"

#define LONG_GAP    2.5 /* intervals */
#define MOST_HELD_S 5   /* between lines of a slow meter */

#define COUNTER_SHARE 0.1 /* largest uncertainty of a counter, as a share of the energy */

static double seconds(int64_t ns)
{
    return (double)ns / (double)EW_NS_PER_S;
}

void ew_energy_begin(struct ew_energy_sum *e, int64_t begin_ns, int64_t interval_ns,
                     double resolution_w)
{
    *e = (struct ew_energy_sum){.begin_ns = begin_ns,
                                .end_ns = INT64_MAX,
                                .interval_ns = interval_ns,
                                .resolution_w = resolution_w,
                                .last_ns = INT64_MIN,
                                .first_ns = INT64_MIN,
                                .why = EW_ABSENT_NO_SENSOR};
    e->counter.ns = INT64_MIN;
}

void ew_energy_stop(struct ew_energy_sum *e, int64_t end_ns)
{
    e->end_ns = end_ns;
}

/* ---- Power ----------------------------------------------------------------------------------- */

/* Adds the part of the line from (t0, p0) to (t1, p1) that lies in the interval. */
static void add_line(struct ew_energy_sum *e, int64_t t1, double p1)
{
    const int64_t t0 = e->last_ns;
    const double p0 = e->last_w;
    const int64_t from = ew_max_i64(t0, e->begin_ns), to = ew_min_i64(t1, e->end_ns);
    if (to <= from || t1 <= t0)
        return;
    const double slope = (p1 - p0) / seconds(t1 - t0);
    const double a = p0 + slope * seconds(from - t0), b = p0 + slope * seconds(to - t0);
    const double dt = seconds(to - from), gap = seconds(t1 - t0);
    e->joules += 0.5 * (a + b) * dt;
    if (gap > LONG_GAP * seconds(e->interval_ns))
        e->gap_s += dt;
    else
        e->swing_j += 0.5 * fabs(p1 - p0) * dt;
    e->longest_gap_s = fmax(e->longest_gap_s, gap);
}

static void add_power(struct ew_energy_sum *e, int64_t t, double w)
{
    const bool inside = t >= e->begin_ns && t <= e->end_ns;
    if (e->last_ns != INT64_MIN)
        add_line(e, t, w);
    /* Interpolated ends count for the extremes too. */
    if (inside || e->last_ns == INT64_MIN || e->samples == 0) {
        e->min_w = e->first_ns == INT64_MIN ? w : fmin(e->min_w, w);
        e->peak_w = e->first_ns == INT64_MIN ? w : fmax(e->peak_w, w);
    }
    if (e->first_ns == INT64_MIN) {
        e->first_ns = t;
        e->first_w = w;
    }
    e->samples += inside;
    e->last_ns = t;
    e->last_w = w;
}

/* ---- Counter --------------------------------------------------------------------------------- */

/* The counter's reading at `at`, on the line between two readings; it never falls, so the truth is
 * at most the longer part of the step away. */
static double reading_at(struct ew_energy_sum *e, int64_t at, int64_t t, double j)
{
    const double share = seconds(at - e->counter.ns) / seconds(t - e->counter.ns);
    const double step = j - e->counter.last_j;
    e->counter.slack_j += step * fmax(share, 1 - share);
    return e->counter.last_j + step * share;
}

static void add_counter(struct ew_energy_sum *e, int64_t t, double j)
{
    const bool before = e->counter.ns != INT64_MIN;
    if (before && j < e->counter.last_j)
        e->counter.broken = true;
    if (!e->counter.begun && t >= e->begin_ns) {
        e->counter.begun = true;
        e->counter.first_ns = before ? e->begin_ns : t;
        e->counter.begin_j = before && t > e->begin_ns ? reading_at(e, e->begin_ns, t, j) : j;
    }
    if (!e->counter.ended && t >= e->end_ns && e->counter.begun) {
        e->counter.ended = true;
        e->counter.end_j = before && t > e->end_ns && e->counter.ns <= e->end_ns
                               ? reading_at(e, e->end_ns, t, j)
                               : j;
    }
    if (!e->counter.ended)
        e->counter.end_j = j;
    e->counter.ns = t;
    e->counter.last_j = j;
}

void ew_energy_add(struct ew_energy_sum *e, int64_t t_ns, struct ew_sample_value power,
                   struct ew_sample_value counter)
{
    if (e->last_ns > e->end_ns && e->counter.ended)
        return; /* both ends are known */
    if (ew_sample_value_is(power)) {
        if (e->last_ns == INT64_MIN || e->last_ns <= e->end_ns)
            add_power(e, t_ns, power.v);
    } else if (t_ns >= e->begin_ns && t_ns <= e->end_ns) {
        e->absent++;
        e->why = power.absent;
    }
    if (ew_sample_value_is(counter))
        add_counter(e, t_ns, counter.v);
}

/* ---- Result ---------------------------------------------------------------------------------- */

/* Extends the nearest sample to an end of the interval without a sample beyond it. */
static double hold_ends(const struct ew_energy_sum *e, double *held_s)
{
    double joules = 0;
    *held_s = 0;
    const int64_t first = ew_min_i64(e->first_ns, e->end_ns);
    if (first > e->begin_ns) {
        *held_s += seconds(first - e->begin_ns);
        joules += e->first_w * seconds(first - e->begin_ns);
    }
    const int64_t last = ew_max_i64(e->last_ns, e->begin_ns);
    if (last < e->end_ns) {
        *held_s += seconds(e->end_ns - last);
        joules += e->last_w * seconds(e->end_ns - last);
    }
    return joules;
}

/* A counter is usable if it was read at or beyond both ends of the interval. */
static bool counter_holds(const struct ew_energy_sum *e)
{
    return e->counter.begun && e->counter.ended && !e->counter.broken &&
           e->counter.first_ns <= e->begin_ns;
}

/* Replaces the integrated energy by the counted one.  A counter that did not move is dead: then the
 * samples count, unless they were derived from it. */
static void use_counter(const struct ew_energy_sum *e, bool sampled, struct ew_energy *out)
{
    const double counted = e->counter.end_j - e->counter.begin_j;
    if (counted <= 0) {
        if (!sampled || out->joules <= 0)
            out->absent = EW_ABSENT_STILL;
        return;
    }
    out->absent = EW_ABSENT_NOT;
    out->counted = true;
    out->integrated_j = sampled ? out->joules : -1;
    out->disagree =
        sampled && fabs(counted - out->joules) > out->error_j + e->counter.slack_j + 0.02 * counted;
    out->joules = counted;
    out->error_j = e->counter.slack_j;
}

/* True if the sensor was lost for most of the interval: its samples tell nothing of the rest. (Slow
 * meters are absent between their lines.) */
static bool is_blind(const struct ew_energy_sum *e, double held_s)
{
    const double usual_s = LONG_GAP * fmax(seconds(e->interval_ns), e->longest_gap_s);
    return e->absent > e->samples && held_s > fmax(usual_s, MOST_HELD_S) &&
           held_s > 0.5 * seconds(e->end_ns - e->begin_ns);
}

struct ew_energy ew_energy_result(const struct ew_energy_sum *e)
{
    struct ew_energy out = {.absent = e->why,
                            .seconds = seconds(e->end_ns - e->begin_ns),
                            .samples = e->samples,
                            .missing = e->absent,
                            .longest_gap_s = e->longest_gap_s,
                            .resolution_w = e->resolution_w,
                            .integrated_j = -1};
    double held_s = 0;
    const double held_j = e->first_ns == INT64_MIN ? 0 : hold_ends(e, &held_s);
    const bool sampled = e->first_ns != INT64_MIN && !is_blind(e, held_s);
    if (sampled) {
        out.absent = EW_ABSENT_NOT;
        out.held_s = held_s;
        out.joules = e->joules + held_j;
        out.min_w = e->min_w;
        out.peak_w = e->peak_w;
        const double range = e->peak_w - e->min_w;
        out.error_j = 0.5 * e->resolution_w * out.seconds + e->swing_j + 0.5 * range * e->gap_s +
                      range * out.held_s;
        out.longest_gap_s = fmax(out.longest_gap_s, out.held_s);
    }
    /* A counter that is updated rarely is less precise over a short interval than the samples. */
    const bool fine =
        !sampled || e->counter.slack_j <= fmax(out.error_j, COUNTER_SHARE * out.joules);
    if (counter_holds(e) && out.seconds > 0 && fine)
        use_counter(e, sampled, &out);
    out.mean_w = out.seconds > 0 ? out.joules / out.seconds : 0;
    return out;
}
