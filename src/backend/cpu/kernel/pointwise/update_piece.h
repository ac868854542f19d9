/* SPDX-License-Identifier: Apache-2.0 */
/* Fused optimiser updates: applies a piece of a gradient as soon as it is computed. */
#ifndef EW_BACKEND_CPU_KERNEL_POINTWISE_UPDATE_PIECE_H
#define EW_BACKEND_CPU_KERNEL_POINTWISE_UPDATE_PIECE_H

#include "backend/cpu/kernel/common/vec.h"

/* Prevents contraction of the product to an FMA: compilers contract differently in whole and
 * partial vectors, and an element's update must not depend on how a range is divided. */
#if defined(__x86_64__)
#define EW_VECTOR_REGISTER "+v"
#else
#define EW_VECTOR_REGISTER "+w"
#endif

INLINE vec rounded(vec product)
{
#if defined(__x86_64__) || defined(__aarch64__)
    __asm__("" : EW_VECTOR_REGISTER(product));
#endif
    return product;
}

/* Updates elements [at, at + n), n <= LANES, with gradient g. */
INLINE void sgd_vec(const struct ew_sgd *s, int64_t at, vec g, int64_t n)
{
    const float gain = s->first ? 1.0f : 1.0f - s->dampening;
    const vec w = load_n(s->w + at, n);
    vec step = g + rounded(s->decay * w);
    if (s->m) {
        const vec m = rounded(s->momentum * load_n(s->m + at, n)) + rounded(gain * step);
        store_n(s->m + at, m, n);
        step = s->nesterov ? step + rounded(s->momentum * m) : m;
    }
    store_n(s->w + at, w - rounded(s->rate * step), n);
}

INLINE void adam_vec(const struct ew_adam *a, int64_t at, vec g, int64_t n)
{
    const float shrink = a->decoupled ? 1.0f - a->rate * a->decay : 1.0f;
    const float decay = a->decoupled ? 0.0f : a->decay;
    const float rate = a->rate / a->c1, root = 1.0f / sqrtf(a->c2);
    const vec w = load_n(a->w + at, n);
    g += rounded(decay * w);
    const vec m = rounded(a->beta1 * load_n(a->m + at, n)) + rounded((1.0f - a->beta1) * g);
    const vec v = rounded(a->beta2 * load_n(a->v + at, n)) + rounded((1.0f - a->beta2) * (g * g));
    store_n(a->m + at, m, n);
    store_n(a->v + at, v, n);
    const vec step = rate * m / (rounded(vsqrt(v) * root) + a->eps);
    store_n(a->w + at, rounded(shrink * w) - step, n);
}

/* Updates elements [at, at + n) of the parameter, whose gradients are g[0, n). */
INLINE void update_piece(const struct ew_update *u, int64_t at, const float *g, int64_t n)
{
    if (u->is_adam) {
        struct ew_adam a = u->adam;
        a.w += at;
        a.m += at;
        a.v += at;
        a.g = g;
        EW_K(adam_run)(&a, 0, n);
    } else {
        struct ew_sgd s = u->sgd;
        s.w += at;
        s.m = s.m ? s.m + at : NULL;
        s.g = g;
        EW_K(sgd_run)(&s, 0, n);
    }
}

#endif
