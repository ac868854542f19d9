/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax, its gradient and its cross-entropy, row by row. */
#include "backend/cpu/kernel/common/across.h"
#include "backend/cpu/kernel/common/act.h"

static float row_max(const float *x, int64_t n)
{
    vec m = splat(-INFINITY);
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        m = vmax(m, load(x + i));
    if (i < n)
        m = vmax(m, fill_part(load_part(x + i, n - i), n - i, -INFINITY));
    return across_max(m);
}

static float row_sum(const float *x, int64_t n, float max)
{
    vec sum = {0};
    for (int64_t i = 0; i < n; i += LANES)
        sum += fill_part(vexp(load_n(x + i, n - i) - max), n - i, 0);
    return across_sum(sum);
}

/* Probabilities only: stores the exponentials, then scales them in place. */
static void softmax_row(const float *x, int64_t n, float *p)
{
    const float max = row_max(x, n);
    vec sum = {0};
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        const vec e = vexp(load(x + i) - max);
        sum += e;
        store(p + i, e);
    }
    if (i < n) {
        const vec e = vexp(load_part(x + i, n - i) - max);
        sum += fill_part(e, n - i, 0);
        store_part(p + i, e, n - i);
    }
    const float scale = 1.0f / across_sum(sum);
    for (i = 0; i + LANES <= n; i += LANES)
        store(p + i, load(p + i) * scale);
    if (i < n)
        store_part(p + i, load_part(p + i, n - i) * scale, n - i);
}

static void loss_row(const struct ew_softmax *s, int64_t row)
{
    const int64_t n = s->classes;
    const float *x = s->x + row * n;
    const float max = row_max(x, n), sum = row_sum(x, n, max), scale = 1.0f / sum;
    const float at = x[s->label[row]]; /* dx may alias x */
    for (int64_t i = 0; s->dx && i < n; i += LANES)
        store_n(s->dx + row * n + i, vexp(load_n(x + i, n - i) - max) * scale * s->grad, n - i);
    if (s->dx)
        s->dx[row * n + s->label[row]] -= s->grad;
    if (s->loss)
        s->loss[row] = logf(sum) - (at - max);
}

void EW_K(softmax_run)(const struct ew_softmax *s, int64_t begin, int64_t end)
{
    for (int64_t row = begin; row < end; row++) {
        if (s->p)
            softmax_row(s->x + row * s->classes, s->classes, s->p + row * s->classes);
        if (s->label)
            loss_row(s, row);
    }
}

void EW_K(softmax_back)(const struct ew_softmax *s, int64_t begin, int64_t end)
{
    const int64_t n = s->classes;
    for (int64_t row = begin; row < end; row++) {
        const float *y = s->p + row * n, *dy = s->x + row * n;
        float *dx = s->dx + row * n;
        vec sum = {0};
        for (int64_t i = 0; i < n; i += LANES)
            sum += load_n(y + i, n - i) * load_n(dy + i, n - i);
        const float dot = across_sum(sum);
        for (int64_t i = 0; i < n; i += LANES) {
            const vec old = s->add ? load_n(dx + i, n - i) : (vec){0};
            store_n(dx + i, old + load_n(y + i, n - i) * (load_n(dy + i, n - i) - dot), n - i);
        }
    }
}
