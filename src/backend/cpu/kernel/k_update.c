/* SPDX-License-Identifier: Apache-2.0 */
/* Optimiser steps.  Products and sums are not contracted here (cmake/isa.cmake): compilers do so
 * one way in whole vectors and another in their parts, and an element's step may not depend on
 * where a range is cut.  Memory rules the time. */
#include "backend/cpu/kernel/vec.h"

void EW_K(sgd_run)(const struct ew_sgd *s, int64_t begin, int64_t end)
{
    const float gain = s->first ? 1.0f : 1.0f - s->dampening;
    for (int64_t i = begin; i < end; i += LANES) {
        const int64_t n = end - i;
        const vec w = load_n(s->w + i, n);
        vec step = load_n(s->g + i, n) + s->decay * w;
        if (s->m) {
            const vec m = s->momentum * load_n(s->m + i, n) + gain * step;
            store_n(s->m + i, m, n);
            step = s->nesterov ? step + s->momentum * m : m;
        }
        store_n(s->w + i, w - s->rate * step, n);
    }
}

void EW_K(adam_run)(const struct ew_adam *a, int64_t begin, int64_t end)
{
    const float shrink = a->decoupled ? 1.0f - a->rate * a->decay : 1.0f;
    const float decay = a->decoupled ? 0.0f : a->decay;
    const float rate = a->rate / a->c1, root = 1.0f / sqrtf(a->c2);
    for (int64_t i = begin; i < end; i += LANES) {
        const int64_t n = end - i;
        const vec w = load_n(a->w + i, n), g = load_n(a->g + i, n) + decay * w;
        const vec m = a->beta1 * load_n(a->m + i, n) + (1.0f - a->beta1) * g;
        const vec v = a->beta2 * load_n(a->v + i, n) + (1.0f - a->beta2) * (g * g);
        store_n(a->m + i, m, n);
        store_n(a->v + i, v, n);
        store_n(a->w + i, shrink * w - rate * m / (vsqrt(v) * root + a->eps), n);
    }
}
