/* SPDX-License-Identifier: Apache-2.0 */
/* Batch norm, LRN and pooling of every instruction set against plain C in double. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel_test.h"
#include "ref_conv.h"

/* ---- Batch norm: forward, and backward by the textbook formula ---- */

struct norm {
    int64_t rows, channels;
    struct ew_batch_norm b;
    double *z, *xhat, *mean, *rstd; /* of the reference */
};

static void norm_init(struct norm *t, int64_t rows, int64_t channels, enum ew_act act, bool add)
{
    const int64_t n = rows * channels;
    t->rows = rows;
    t->channels = channels;
    float *x = test_array(n, 1);
    for (int64_t i = 0; i < n; i++)
        x[i] = x[i] * (float)(1 + i % channels) + 100; /* a mean with which a naive variance
                                                        * cancels */
    t->b = (struct ew_batch_norm){.rows = rows,
                                  .channels = channels,
                                  .x = x,
                                  .scale = test_array(channels, 3),
                                  .bias = test_array(channels, 5),
                                  .add = add ? test_array(n, 2) : NULL,
                                  .act = act,
                                  .lo = 0,
                                  .hi = 0.5f,
                                  .eps = 1e-5f,
                                  .momentum = 0.1f,
                                  .y = test_array(n, 7),
                                  .mean = test_array(channels, 9),
                                  .rstd = test_array(channels, 11),
                                  .running_mean = test_array(channels, 13),
                                  .running_var = test_array(channels, 15),
                                  .dy = test_array(n, 17),
                                  .dx = test_array(n, 19),
                                  .dadd = add ? test_array(n, 21) : NULL,
                                  .dscale = test_array(channels, 23),
                                  .dbias = test_array(channels, 25),
                                  .sums = test_array(2 * channels, 27)};
    t->z = test_zeros(n);
    t->xhat = test_zeros(n);
    t->mean = test_zeros(channels);
    t->rstd = test_zeros(channels);
}

static void guard_free(const float *p)
{
    ew_guard_free((void *)(uintptr_t)p);
}

static void norm_fini(struct norm *t)
{
    const struct ew_batch_norm *b = &t->b;
    const float *const all[] = {
        b->x,           b->scale, b->bias, b->add,  b->y,      b->mean,  b->rstd, b->running_mean,
        b->running_var, b->dy,    b->dx,   b->dadd, b->dscale, b->dbias, b->sums, b->partial};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        guard_free(all[i]);
    free(t->z);
    free(t->xhat);
    free(t->mean);
    free(t->rstd);
}

static void norm_forward(const struct ew_kernels *k, struct norm *t)
{
    const struct ew_batch_norm *b = &t->b;
    const int64_t n = t->rows * t->channels, splits = k->batch_splits(t->rows);
    double *want = test_zeros(n), *run_mean = test_zeros(t->channels),
           *run_var = test_zeros(t->channels);
    for (int64_t c = 0; c < t->channels; c++) {
        double sum = 0, var = 0;
        for (int64_t r = 0; r < t->rows; r++)
            sum += (double)b->x[r * t->channels + c];
        t->mean[c] = sum / (double)t->rows;
        for (int64_t r = 0; r < t->rows; r++)
            var += pow((double)b->x[r * t->channels + c] - t->mean[c], 2);
        t->rstd[c] = 1 / sqrt(var / (double)t->rows + 1e-5);
        run_mean[c] = 0.9 * (double)b->running_mean[c] + 0.1 * t->mean[c];
        run_var[c] =
            0.9 * (double)b->running_var[c] + 0.1 * var / (double)(t->rows > 1 ? t->rows - 1 : 1);
    }
    for (int64_t i = 0; i < n; i++) {
        const int64_t c = i % t->channels;
        t->xhat[i] = ((double)b->x[i] - t->mean[c]) * t->rstd[c];
        t->z[i] = t->xhat[i] * (double)b->scale[c] + (double)b->bias[c] +
                  (b->add ? (double)b->add[i] : 0);
        want[i] = ref_act(b->act, t->z[i], (double)b->lo, (double)b->hi);
    }
    for (int64_t i = splits - 1; i >= 0; i--)
        k->batch_stats(b, i, i + 1);
    k->batch_finish(b);
    k->batch_apply(b, 0, t->rows / 3);
    k->batch_apply(b, t->rows / 3, t->rows);
    /* x is about 100: 1e-7 of it, relative to its deviation */
    test_close(b->y, want, n, 1e-4, "batch norm");
    test_close(b->running_mean, run_mean, t->channels, 1e-5, "running mean");
    test_close(b->running_var, run_var, t->channels, 1e-5 * (1 + test_scale(run_var, t->channels)),
               "running variance");
    free(want);
    free(run_mean);
    free(run_var);
}

static double slope(const struct ew_batch_norm *b, double z)
{
    if (b->act == EW_ACT_RELU)
        return z > 0;
    if (b->act == EW_ACT_CLIP)
        return z > (double)b->lo && z < (double)b->hi;
    return (ref_act(b->act, z + 1e-5, 0, 0) - ref_act(b->act, z - 1e-5, 0, 0)) / 2e-5;
}

static void norm_backward(const struct ew_kernels *k, struct norm *t)
{
    struct ew_batch_norm *b = &t->b;
    const int64_t n = t->rows * t->channels, splits = k->batch_splits(t->rows);
    double *dz = test_zeros(n), *dx = test_zeros(n);
    double *dscale = test_zeros(t->channels), *dbias = test_zeros(t->channels);
    for (int64_t i = 0; i < n; i++) {
        dz[i] = (double)b->dy[i] * slope(b, t->z[i]);
        dbias[i % t->channels] += dz[i];
        dscale[i % t->channels] += dz[i] * t->xhat[i];
    }
    for (int64_t i = 0; i < n; i++) {
        const int64_t c = i % t->channels;
        dx[i] = (double)b->scale[c] * t->rstd[c] *
                (dz[i] - (dbias[c] + t->xhat[i] * dscale[c]) / (double)t->rows);
    }
    for (int64_t i = splits - 1; i >= 0; i--)
        k->batch_back_stats(b, i, i + 1);
    k->batch_back_finish(b);
    k->batch_back_apply(b, 0, t->rows / 2);
    k->batch_back_apply(b, t->rows / 2, t->rows);
    test_close(b->dx, dx, n, 1e-4 * (1 + test_scale(dx, n)), "dx");
    test_close(b->dscale, dscale, t->channels, 1e-4 * (1 + test_scale(dscale, t->channels)),
               "dscale");
    test_close(b->dbias, dbias, t->channels, 1e-4 * (1 + test_scale(dbias, t->channels)), "dbias");
    if (b->dadd)
        test_close(b->dadd, dz, n, 1e-4, "dadd");
    free(dz);
    free(dx);
    free(dscale);
    free(dbias);
}

/* Within rounding of a kink both derivatives are right: move such values away. */
static void keep_off_kinks(struct norm *t)
{
    const struct ew_batch_norm *b = &t->b;
    for (int64_t i = 0; i < t->rows * t->channels; i++)
        if (fabs(t->z[i]) < 1e-3 || fabs(t->z[i] - 0.5) < 1e-3)
            ((float *)(uintptr_t)b->dy)[i] = 0;
}

static void batch_norm(const struct ew_kernels *k)
{
    static const struct {
        int rows, channels;
        enum ew_act act;
        bool add;
    } cases[] = {{600, 17, EW_ACT_RELU, false}, {50, 32, EW_ACT_NONE, true},
                 {3000, 3, EW_ACT_CLIP, true},  {64, 70, EW_ACT_HARD_SWISH, false},
                 {1, 5, EW_ACT_NONE, false},    {200, 16, EW_ACT_SILU, false}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct norm t;
        norm_init(&t, cases[i].rows, cases[i].channels, cases[i].act, cases[i].add);
        t.b.partial = test_scratch(k->batch_partial(t.rows, t.channels) * sizeof(float));
        norm_forward(k, &t);
        keep_off_kinks(&t);
        norm_backward(k, &t);
        norm_fini(&t);
    }
}

static void lrn(const struct ew_kernels *k)
{
    static const struct {
        int channels, size;
        double beta;
    } cases[] = {{64, 5, 0.75}, {7, 3, 0.5}, {33, 4, 0.75}, {3, 5, 1.0}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const int c = cases[i].channels, size = cases[i].size, rows = 6;
        float *x = test_array(rows * c, 1), *y = test_array(rows * c, 3);
        double *want = test_zeros(rows * c);
        for (int j = 0; j < rows * c; j++) {
            double sum = 0;
            for (int o = j % c - (size - 1) / 2; o < j % c - (size - 1) / 2 + size; o++)
                if (o >= 0 && o < c)
                    sum += pow((double)x[j / c * c + o], 2);
            want[j] = (double)x[j] / pow(2 + 0.9 / size * sum, cases[i].beta);
        }
        const struct ew_lrn l = {.rows = rows,
                                 .channels = c,
                                 .size = size,
                                 .alpha = 0.9f,
                                 .beta = (float)cases[i].beta,
                                 .k = 2,
                                 .x = x,
                                 .y = y};
        void *scratch = test_scratch(k->lrn_scratch(&l));
        k->lrn_run(&l, 0, 2, scratch);
        k->lrn_run(&l, 2, rows, scratch);
        test_close(y, want, rows * c, 1e-6, "lrn");
        ew_guard_free(x);
        ew_guard_free(y);
        ew_guard_free(scratch);
        free(want);
    }
}

/* ---- Pooling, by ref_conv_walk ---- */

struct pool_ref {
    const struct ew_pooling *p;
    double *y, *dx;
    int64_t *best;  /* input index of each output's maximum */
    double *inside; /* number of taps inside the image, per output pixel */
    int pass;
};

static void pool_pair(const struct ew_conv_shape *s, struct ref_pair at, void *ctx)
{
    struct pool_ref *r = ctx;
    const double whole = (double)s->axis[0].taps * s->axis[1].taps * s->axis[2].taps;
    for (int64_t c = 0; c < s->cin; c++) {
        const int64_t x = at.x * s->cin + c, y = at.y * s->cin + c;
        const double share = 1 / (r->p->count_pads ? whole : r->inside[at.y]);
        if (r->pass == 0 && c == 0)
            r->inside[at.y]++;
        if (r->pass == 0)
            continue;
        if (!r->p->max) {
            r->y[y] += (double)r->p->x[x] * share;
            r->dx[x] += (double)r->p->dy[y] * share;
        } else if (r->best[y] < 0 || r->p->x[x] > r->p->x[r->best[y]]) {
            r->best[y] = x;
            r->y[y] = (double)r->p->x[x];
        }
    }
}

/* Backward; for max pools after the forward pass that records the arg-max. */
static void pool_back(const struct ew_kernels *k, struct ew_pooling *p, const double *y, int64_t n)
{
    if (!p->max) {
        for (int64_t t = k->pool_back_tiles(&p->shape) - 1; t >= 0; t--)
            k->pool_back_run(p, t, t + 1);
        return;
    }
    p->index = ew_guard_end((size_t)n, 1);
    memset(p->y, 0x7f, (size_t)n * sizeof(float));
    for (int64_t t = k->pool_tiles(&p->shape) - 1; t >= 0; t--)
        k->max_pool_run(p, t, t + 1);
    test_close(p->y, y, n, 1e-6, "max pool");
    for (int64_t t = k->max_pool_back_tiles(&p->shape) - 1; t >= 0; t--)
        k->max_pool_back_run(p, t, t + 1);
    ew_guard_free(p->index);
}

static void pool_case(const struct ew_kernels *k, struct ew_pooling p)
{
    const int64_t n_x = ref_conv_in_count(&p.shape), n_y = ref_conv_out_count(&p.shape);
    float *x = test_array(n_x, 1), *dy = test_array(n_y, 3);
    for (int64_t i = 0; i < n_x; i++)
        x[i] = floorf(x[i] * 8) / 8; /* ties: the first wins */
    p.x = x;
    p.dy = dy;
    p.y = test_array(n_y, 5);
    p.dx = test_array(n_x, 7);
    struct pool_ref r = {.p = &p,
                         .y = test_zeros(n_y),
                         .dx = test_zeros(n_x),
                         .best = calloc((size_t)n_y + 1, sizeof(*r.best)),
                         .inside = test_zeros(n_y)};
    for (int64_t i = 0; i < n_y; i++)
        r.best[i] = -1;
    for (r.pass = 0; r.pass < 2; r.pass++)
        ref_conv_walk(&p.shape, pool_pair, &r);
    for (int64_t i = 0; p.max && i < n_y; i++)
        r.dx[r.best[i]] += (double)dy[i];
    for (int64_t i = 0; p.add && i < n_x; i++)
        r.dx[i] += (double)p.dx[i];
    for (int64_t t = k->pool_tiles(&p.shape) - 1; t >= 0; t--)
        k->pool_run(&p, t, t + 1);
    test_close(p.y, r.y, n_y, 1e-6, "pool");
    pool_back(k, &p, r.y, n_y);
    test_close(p.dx, r.dx, n_x, 1e-5, "pool gradient");
    ew_guard_free(x);
    ew_guard_free(dy);
    ew_guard_free(p.y);
    ew_guard_free(p.dx);
    free(r.y);
    free(r.dx);
    free(r.best);
    free(r.inside);
}

struct nan_ref {
    const float *x;
    bool *seen; /* per output */
};

static void nan_pair(const struct ew_conv_shape *s, struct ref_pair at, void *ctx)
{
    const struct nan_ref *r = ctx;
    for (int64_t c = 0; c < s->cin; c++)
        r->seen[at.y * s->cin + c] |= isnan(r->x[at.x * s->cin + c]) != 0;
}

static void expect_nan(const float *y, const bool *seen, int64_t n, const char *what)
{
    int64_t wrong = 0;
    for (int64_t i = 0; i < n; i++)
        wrong += (isnan(y[i]) != 0) != seen[i];
    if (!EW_EXPECT_INT(wrong, 0))
        printf("  %s of %lld outputs\n", what, (long long)n);
}

/* The maximum of a window with a NaN is NaN, at any tap. */
static void pool_nan(const struct ew_kernels *k, const struct ew_conv_shape *s)
{
    const int64_t n_x = ref_conv_in_count(s), n_y = ref_conv_out_count(s);
    float *x = test_array(n_x, 1);
    for (int64_t i = 0; i < n_x; i += 29)
        x[i] = NAN;
    struct ew_pooling p = {.shape = *s,
                           .max = true,
                           .x = x,
                           .y = test_array(n_y, 5),
                           .index = ew_guard_end((size_t)n_y, 1)};
    struct nan_ref r = {.x = x, .seen = calloc((size_t)n_y + 1, sizeof(*r.seen))};
    ref_conv_walk(s, nan_pair, &r);
    for (int64_t t = k->pool_tiles(s) - 1; t >= 0; t--)
        k->pool_run(&p, t, t + 1);
    expect_nan(p.y, r.seen, n_y, "pool");
    for (int64_t t = k->pool_tiles(s) - 1; t >= 0; t--)
        k->max_pool_run(&p, t, t + 1);
    expect_nan(p.y, r.seen, n_y, "max pool");
    ew_guard_free(x);
    ew_guard_free(p.y);
    ew_guard_free(p.index);
    free(r.seen);
}

static void pool(const struct ew_kernels *k)
{
    /* clang-format off */
#define A1 {1, 1, 1, 1, 1, 0}
    static const struct ew_conv_shape shapes[] = {
        {2, 6, 6, 6,     {A1, {8, 4, 2, 2, 1, 0}, {9, 4, 2, 2, 1, 0}}},
        {2, 21, 21, 21,  {A1, {8, 4, 2, 2, 1, 0}, {9, 5, 2, 2, 1, 1}}}, /* each pixel in one
                                                                         * window */
        {1, 64, 64, 64,  {A1, {11, 6, 3, 2, 1, 1}, {12, 6, 3, 2, 1, 1}}},
        {1, 19, 19, 19,  {A1, {7, 7, 3, 1, 1, 1}, {7, 7, 3, 1, 1, 1}}},
        {3, 33, 33, 33,  {A1, {7, 1, 7, 1, 1, 0}, {5, 1, 5, 1, 1, 0}}},
        {1, 5, 5, 5,     {{4, 2, 2, 2, 1, 0}, {6, 3, 2, 2, 1, 0}, {6, 5, 2, 1, 1, 0}}},
        {1, 17, 17, 17,  {A1, {9, 5, 3, 1, 2, 0}, {9, 4, 2, 2, 3, 1}}},
        {1, 130, 130, 130, {A1, {4, 2, 3, 2, 1, 0}, {4, 2, 3, 2, 1, 0}}}, /* ceil mode: windows
                                                                           * beyond the end */
    };
#undef A1
    /* clang-format on */
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        pool_nan(k, &shapes[i]);
        for (int kind = 0; kind < 4; kind++)
            pool_case(k, (struct ew_pooling){.shape = shapes[i],
                                             .max = kind == 0 || kind == 3,
                                             .count_pads = kind == 1,
                                             .add = kind > 1});
    }
}

int main(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    static const struct {
        const char *name;
        void (*run)(const struct ew_kernels *k);
    } all[] = {{"batch norm", batch_norm}, {"lrn", lrn}, {"pool", pool}};
    for (int i = 0; ew_isa_at(i); i++) {
        for (size_t t = 0; t < sizeof(all) / sizeof(all[0]); t++) {
            ew_test_begin("%s: %s", ew_isa_at(i)->isa, all[t].name);
            all[t].run(ew_isa_at(i));
            ew_test_end();
        }
    }
    return ew_test_status();
}
