/* SPDX-License-Identifier: Apache-2.0 */
/* Counters that start again at 0 when they reach their range. */
#ifndef EW_DEVICE_WRAP_H
#define EW_DEVICE_WRAP_H

#include "device/sample.h"

struct ew_wrap {
    double range; /* 0: not known, a step back is then an error */
    double last, total;
    bool known;
};

/* The counter without its wraps.  It must be read more than once per range: more wraps than one
 * between two readings cannot be seen. */
static inline struct ew_sample_value ew_wrap_add(struct ew_wrap *w, struct ew_sample_value raw)
{
    if (!ew_sample_value_is(raw))
        return raw;
    double step = w->known ? raw.v - w->last : 0;
    if (!w->known)
        w->total = raw.v;
    w->known = true;
    w->last = raw.v;
    if (step < 0 && w->range <= 0)
        return ew_sample_value_absent(EW_ABSENT_BAD);
    if (step < 0)
        step += w->range;
    w->total += step;
    return ew_sample_value_of(w->total);
}

#endif
