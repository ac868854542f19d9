/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax and its cross-entropy, forward and backward in one pass over a row. */
#include "backend/cpu/kernel/common/act.h"

INLINE float across_max(vec v)
{
    float m = v[0];
    for (int i = 1; i < LANES; i++)
        m = m < v[i] ? v[i] : m;
    return m;
}

INLINE float across_sum(vec v)
{
    float s = 0;
    for (int i = 0; i < LANES; i++)
        s += v[i];
    return s;
}

/* Lanes from n on become `fill`. */
INLINE vec fill_part(vec v, int64_t n, float fill)
{
    if (n < LANES)
        for (int64_t i = n; i < LANES; i++)
            v[i] = fill;
    return v;
}

static float row_max(const float *x, int64_t n)
{
    vec m = splat(-INFINITY);
    for (int64_t i = 0; i < n; i += LANES)
        m = vmax(m, fill_part(load_n(x + i, n - i), n - i, -INFINITY));
    return across_max(m);
}

static float row_sum(const float *x, int64_t n, float max)
{
    vec sum = {0};
    for (int64_t i = 0; i < n; i += LANES)
        sum += fill_part(vexp(load_n(x + i, n - i) - max), n - i, 0);
    return across_sum(sum);
}

void EW_K(softmax_run)(const struct ew_softmax *s, int64_t begin, int64_t end)
{
    const int64_t n = s->classes;
    for (int64_t row = begin; row < end; row++) {
        const float *x = s->x + row * n;
        const float max = row_max(x, n), sum = row_sum(x, n, max), scale = 1.0f / sum;
        const float at = s->label ? x[s->label[row]] : 0; /* x may be dx */
        for (int64_t i = 0; (s->p || s->dx) && i < n; i += LANES) {
            const vec p = vexp(load_n(x + i, n - i) - max) * scale;
            if (s->p)
                store_n(s->p + row * n + i, p, n - i);
            if (s->dx)
                store_n(s->dx + row * n + i, p * s->grad, n - i);
        }
        if (s->label && s->dx)
            s->dx[row * n + s->label[row]] -= s->grad;
        if (s->label && s->loss)
            s->loss[row] = logf(sum) - (at - max);
    }
}
