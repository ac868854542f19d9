/* SPDX-License-Identifier: Apache-2.0 */
/* Reference loops of convolution for one element type: included by each_float.h, hence no guard.
 *
 * x is [N, in..., C], y [N, out..., O], w [O, k..., C / groups].  The innermost loops run over
 * contiguous channels, with explicit compiler vectors, since plain sums may not be reordered. */

typedef T R(vec) __attribute__((vector_size(32), aligned(sizeof(T)), may_alias));

#define LANES        (int64_t)(32 / sizeof(T))
#define VEC(p)       (*(const R(vec) *)(p))
#define VEC_STORE(p) (*(R(vec) *)(p))

/* sum[j] += x . w[j * step ...] for four filters at once, so that x is read once for them. */
static void R(dot4)(const T *x, const T *w, int64_t step, int64_t n, T *sum)
{
    const T *w0 = w, *w1 = w + step, *w2 = w + 2 * step, *w3 = w + 3 * step;
    R(vec) s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        const R(vec) v = VEC(x + i);
        s0 += v * VEC(w0 + i);
        s1 += v * VEC(w1 + i);
        s2 += v * VEC(w2 + i);
        s3 += v * VEC(w3 + i);
    }
    for (int64_t k = 0; k < LANES && i > 0; k++) {
        sum[0] += s0[k];
        sum[1] += s1[k];
        sum[2] += s2[k];
        sum[3] += s3[k];
    }
    for (; i < n; i++) {
        sum[0] += x[i] * w0[i];
        sum[1] += x[i] * w1[i];
        sum[2] += x[i] * w2[i];
        sum[3] += x[i] * w3[i];
    }
}

static T R(dot)(const T *x, const T *w, int64_t n)
{
    T sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += x[i] * w[i];
    return sum;
}

/* y += a * x */
static void R(axpy)(T *y, T a, const T *x, int64_t n)
{
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        VEC_STORE(y + i) = VEC(y + i) + a * VEC(x + i);
    for (; i < n; i++)
        y[i] += a * x[i];
}

/* y[0 .. n) += the window at `o` times n (at most 4) filters starting at w. */
static void R(pixel)(const struct runs *at, const T *x, const T *w, int n, T *y)
{
    struct runs r = *at;
    T sum[4] = {0};
    for (bool more = runs_first(&r); more; more = runs_next(&r)) {
        if (n == 4) {
            R(dot4)(x + r.x, w + r.w, r.filter, r.n, sum);
            continue;
        }
        for (int j = 0; j < n; j++)
            sum[j] += R(dot)(x + r.x, w + j * r.filter + r.w, r.n);
    }
    for (int j = 0; j < n; j++)
        y[j] += sum[j];
}

/* Output rows outermost, then filters: the input of a row and four filters fit the cache. */
static void R(apply)(const struct ew_conv_sizes *s, const T *x, const T *w, T *y)
{
    const int64_t per_group = s->filters / s->groups, wide = s->w.out[2];
    struct runs r;
    for (bool more = rows_first(s, &r); more; more = rows_next(&r)) {
        for (r.group = 0; r.group < s->groups; r.group++) {
            for (int64_t j = 0; j < per_group; j += 4) {
                const int64_t f = r.group * per_group + j;
                const int n = (int)ew_min_i64(4, per_group - j);
                T *to = y + r.row * wide * s->filters + f;
                for (r.o[2] = 0; r.o[2] < wide; r.o[2]++, to += s->filters)
                    R(pixel)(&r, x, w + f * r.filter, n, to);
            }
        }
    }
}

/* dgrad (w not NULL) or wgrad: one axpy per output element and run. */
static void R(spread)(const struct ew_conv_sizes *s, const T *x, const T *w, const T *y, T *to)
{
    const int64_t per_group = s->filters / s->groups, wide = s->w.out[2];
    struct runs r;
    for (bool more = rows_first(s, &r); more; more = rows_next(&r)) {
        for (int64_t f = 0; f < s->filters; f++) {
            r.group = f / per_group;
            for (r.o[2] = 0; r.o[2] < wide; r.o[2]++) {
                const T a = y[(r.row * wide + r.o[2]) * s->filters + f];
                for (bool go = runs_first(&r); go; go = runs_next(&r)) {
                    if (w)
                        R(axpy)(to + r.x, a, w + f * r.filter + r.w, r.n);
                    else
                        R(axpy)(to + f * r.filter + r.w, a, x + r.x, r.n);
                }
            }
        }
    }
}

#undef LANES
#undef VEC
#undef VEC_STORE
