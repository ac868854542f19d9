/* SPDX-License-Identifier: Apache-2.0 */
/* A training step with its loader. */
#include "advise/work_loader.h"

#include <math.h>

/* How sharply the slower of two that overlap decides: fitted to TRAIN's workers. */
#define SHARP 6.0

double ew_loader_step(const struct ew_loader_case *c)
{
    if (c->workers < 1)
        return c->compute_s + c->load_s;
    const double load = c->load_s / fmin(c->workers, c->cores);
    const double high = fmax(c->compute_s, load), low = fmin(c->compute_s, load);
    const double apart = high * pow(1 + pow(low / high, SHARP), 1 / SHARP);
    const double threads = fmin(c->threads, c->cores);
    return fmax(apart, (c->compute_s * threads + c->load_s) / c->cores);
}
