/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels for small feature maps, dense layers and sparse gradients, of every instruction set,
 * against the reference in double, between guard pages, with all tiles in one range and in single
 * ones. */
#include <float.h>
#include <string.h>

#include "conv_data.h"
#include "float_isa.h"

/* clang-format off */
#define A1 {1, 1, 1, 1, 1, 0}
static const struct {
    const char *name;
    struct ew_conv_shape s; /* batch, groups, cin, cout; axes {in, out, taps, stride, dilation, pad} */
} cases[] = {
    {"2x2",             {16, 1, 64, 48, {A1, {2, 2, 3, 1, 1, 1}, {2, 2, 3, 1, 1, 1}}}},
    {"2x2, odd",        {5, 1, 37, 41, {A1, {2, 2, 3, 1, 1, 1}, {2, 2, 3, 1, 1, 1}}}},
    {"2x2, one image",  {1, 1, 20, 33, {A1, {2, 2, 3, 1, 1, 1}, {2, 2, 3, 1, 1, 1}}}},
    {"2x2, deep",       {17, 1, 530, 15, {A1, {2, 2, 3, 1, 1, 1}, {2, 2, 3, 1, 1, 1}}}},
    {"3x3",             {16, 1, 32, 70, {A1, {3, 3, 3, 1, 1, 1}, {3, 3, 3, 1, 1, 1}}}},
    {"3x2, odd",        {9, 1, 21, 19, {A1, {3, 3, 3, 1, 1, 1}, {2, 2, 3, 1, 1, 1}}}},
    {"stride 2 to 2x2", {16, 1, 24, 40, {A1, {4, 2, 3, 2, 1, 1}, {4, 2, 3, 2, 1, 1}}}},
    {"stride 2 to 1x1", {3, 1, 17, 130, {A1, {2, 1, 3, 2, 1, 1}, {2, 1, 3, 2, 1, 1}}}},
    {"a pixel",         {16, 1, 48, 40, {A1, {1, 1, 3, 1, 1, 1}, {1, 1, 3, 1, 1, 1}}}},
    {"1x1 stride 2",    {7, 1, 33, 20, {A1, {4, 2, 1, 2, 1, 0}, {3, 2, 1, 2, 1, 0}}}},
    {"dilated",         {2, 1, 20, 18, {A1, {3, 3, 3, 1, 4, 4}, {5, 3, 4, 2, 3, 4}}}},
    {"all padding",     {2, 1, 9, 10, {A1, {1, 2, 1, 1, 1, 3}, {1, 2, 1, 1, 1, 3}}}},
    {"3-D",             {2, 1, 18, 9, {{2, 2, 2, 1, 1, 1}, {2, 2, 3, 1, 1, 1}, {1, 1, 5, 1, 1, 2}}}},
    {"dense",           {16, 1, 400, 120, {A1, A1, A1}}},
    {"dense, odd",      {5, 1, 301, 37, {A1, A1, A1}}},
    {"by outputs",      {16, 1, 120, 84, {A1, A1, A1}}},
    {"by outputs, odd", {21, 1, 133, 61, {A1, A1, A1}}},
    {"dense of one",    {1, 1, 515, 100, {A1, A1, A1}}},
    {"dense, small",    {7, 1, 84, 10, {A1, A1, A1}}},
    {"dense batch",     {64, 1, 1100, 150, {A1, A1, A1}}},
    {"dense, few",      {130, 1, 3, 2, {A1, A1, A1}}},
    {"dense, aliased",  {33, 1, 1024, 64, {A1, A1, A1}}},
}, zeros[] = {
    {"dense",       {64, 1, 260, 150, {A1, A1, A1}}},
    {"dense, odd",  {33, 1, 301, 137, {A1, A1, A1}}},
    {"dense, wide", {70, 1, 284, 192, {A1, A1, A1}}},
    {"pixels",      {2, 1, 128, 131, {A1, {5, 5, 1, 1, 1, 0}, {7, 7, 1, 1, 1, 0}}}},
    {"many pixels", {3, 1, 140, 133, {A1, {15, 15, 1, 1, 1, 0}, {13, 13, 1, 1, 1, 0}}}},
}, scattered[] = {
    {"3x3",           {5, 1, 48, 70, {A1, {9, 9, 3, 1, 1, 1}, {7, 7, 3, 1, 1, 1}}}},
    {"3x3, cropped",  {4, 1, 16, 33, {A1, {9, 4, 3, 2, 1, 0}, {8, 3, 3, 2, 1, 0}}}},
    {"5x5",           {7, 1, 32, 20, {A1, {6, 6, 5, 1, 1, 2}, {6, 6, 5, 1, 1, 2}}}},
    {"wide",          {4, 1, 160, 18, {A1, {4, 4, 3, 1, 1, 1}, {5, 5, 3, 1, 1, 1}}}},
    {"a first layer", {6, 1, 3, 64, {A1, {23, 11, 11, 2, 1, 4}, {23, 11, 11, 2, 1, 4}}}},
};
#undef A1
/* clang-format on */

/* Sums of n products of numbers below 1: see test_kernel_conv.c. */
static double tolerance(double terms, double scale)
{
    return 4 * (double)FLT_EPSILON * (2 + sqrt(terms)) * (1 + scale);
}

static void run_dense(const struct data *d, bool apart, const float *bias, float *y)
{
    const int64_t tiles = d->k->small_dense_tiles(&d->s);
    const struct ew_unpacked_conv p = {
        .shape = d->s,
        .x = d->x,
        .w = d->w,
        .bias = bias,
        .relu = bias != NULL,
        .y = y,
        .transposed = test_scratch(d->k->small_dense_transposed(&d->s) * sizeof(float))};
    if (!apart)
        d->k->small_dense_run(&p, 0, tiles);
    for (int64_t t = tiles - 1; apart && t >= 0; t--)
        d->k->small_dense_run(&p, t, t + 1);
    d->k->small_dense_sum(&p);
    ew_guard_free(p.transposed);
}

static void run_sparse(const struct data *d, bool apart, const float *bias, float *y)
{
    const int64_t tiles = d->k->sparse_tiles(&d->s);
    const struct ew_unpacked_conv p = {
        .shape = d->s, .x = d->x, .w = d->w, .bias = bias, .relu = bias != NULL, .y = y};
    void *scratch = test_scratch(d->k->sparse_scratch(&d->s));
    if (!apart)
        d->k->sparse_run(&p, 0, tiles, scratch);
    for (int64_t t = tiles - 1; apart && t >= 0; t--)
        d->k->sparse_run(&p, t, t + 1, scratch);
    ew_guard_free(scratch);
}

/* All tiles at once (step 0) or one by one in reverse order. */
static void run_forward(const struct data *d, bool apart, const float *bias, float *y)
{
    const struct ew_kernels *k = d->k;
    const struct ew_conv_shape *s = &d->s;
    if (d->way == BY_DENSE) {
        run_dense(d, apart, bias, y);
        return;
    }
    if (d->way == BY_SPARSE) {
        run_sparse(d, apart, bias, y);
        return;
    }
    const struct ew_unpacked_conv p = {
        .shape = *s,
        .x = d->x,
        .w = d->w,
        .bias = bias,
        .relu = bias != NULL,
        .y = y,
        .transposed = test_scratch(k->tap_pairs_transposed(s) * sizeof(float))};
    void *scratch = test_scratch(k->tap_pairs_scratch(s));
    const int64_t turns = k->tap_pairs_transpose_tiles(s), tiles = k->tap_pairs_tiles(s);
    if (!apart) {
        k->tap_pairs_transpose(&p, 0, turns);
        k->tap_pairs_run(&p, 0, tiles, scratch);
    }
    for (int64_t t = turns - 1; apart && t >= 0; t--)
        k->tap_pairs_transpose(&p, t, t + 1);
    for (int64_t t = tiles - 1; apart && t >= 0; t--)
        k->tap_pairs_run(&p, t, t + 1, scratch);
    ew_guard_free(p.transposed);
    ew_guard_free(scratch);
}

static void check_forward(const struct data *d, const float *bias)
{
    double *want = test_zeros(d->n_y);
    ref_conv(&d->s, d->x, d->w, want);
    for (int64_t i = 0; bias && i < d->n_y; i++)
        want[i] = fmax(want[i] + (double)bias[i % d->s.cout], 0);
    float *y = test_array(d->n_y, 5), *again = test_array(d->n_y, 6);
    run_forward(d, false, bias, y);
    const double terms = ref_conv_macs(&d->s) / (double)d->n_y;
    test_close(y, want, d->n_y, tolerance(terms, test_scale(want, d->n_y)), "y");
    run_forward(d, true, bias, again);
    EW_EXPECT(memcmp(again, y, (size_t)d->n_y * sizeof(float)) == 0);
    ew_guard_free(y);
    ew_guard_free(again);
    free(want);
}

static void run_dense_grad(const struct data *d, bool apart, struct ew_unpacked_grads *g)
{
    const int64_t tiles = d->k->small_dense_grad_tiles(&d->s);
    g->shared = test_scratch(d->k->small_dense_grad_shared(&d->s) * sizeof(float));
    if (!apart)
        d->k->small_dense_grad_run(g, 0, tiles);
    for (int64_t t = tiles - 1; apart && t >= 0; t--)
        d->k->small_dense_grad_run(g, t, t + 1);
    d->k->small_dense_grad_sum(g);
    ew_guard_free(g->shared);
}

static void run_sparse_grad(const struct data *d, bool apart, const struct ew_unpacked_grads *g)
{
    const struct ew_kernels *k = d->k;
    const bool by_x = d->by_x && !g->no_filter;
    const int64_t tiles = k->sparse_grad_tiles(&d->s);
    const int64_t filters = g->no_filter ? 0 : k->sparse_wgrad_tiles(&d->s, by_x);
    void *scratch = test_scratch(k->sparse_grad_scratch(&d->s));
    void *other = test_scratch(k->sparse_wgrad_scratch(&d->s));
    struct ew_unpacked_grads data = *g;
    data.no_filter |= by_x;
    if (!apart) {
        k->sparse_grad_run(&data, 0, tiles, scratch);
        k->sparse_wgrad_run(g, by_x, 0, filters, other);
    }
    for (int64_t t = tiles - 1; apart && t >= 0; t--)
        k->sparse_grad_run(&data, t, t + 1, scratch);
    for (int64_t t = filters - 1; apart && t >= 0; t--)
        k->sparse_wgrad_run(g, by_x, t, t + 1, other);
    ew_guard_free(scratch);
    ew_guard_free(other);
}

static void run_scatter_grad(const struct data *d, bool apart, struct ew_unpacked_grads g)
{
    const struct ew_kernels *k = d->k;
    const int64_t tiles = k->scatter_grad_tiles(&d->s);
    const int64_t outputs = g.no_filter ? 0 : d->s.cout;
    void *scratch = test_scratch(k->scatter_grad_scratch(&d->s));
    g.shared = test_scratch(k->scatter_grad_shared(&d->s) * sizeof(float));
    if (!apart) {
        k->scatter_grad_run(&g, 0, tiles, scratch);
        k->scatter_grad_sum(&g, 0, outputs);
    }
    for (int64_t t = tiles - 1; apart && t >= 0; t--)
        k->scatter_grad_run(&g, t, t + 1, scratch);
    for (int64_t o = outputs - 1; apart && o >= 0; o--)
        k->scatter_grad_sum(&g, o, o + 1);
    ew_guard_free(scratch);
    ew_guard_free(g.shared);
}

static void run_gradients(const struct data *d, bool apart, struct ew_unpacked_grads g)
{
    if (d->way == BY_SCATTER_GRAD) {
        run_scatter_grad(d, apart, g);
        return;
    }
    if (d->way == BY_DENSE) {
        run_dense_grad(d, apart, &g);
        return;
    }
    if (d->way == BY_SPARSE) {
        run_sparse_grad(d, apart, &g);
        return;
    }
    const struct ew_kernels *k = d->k;
    const struct ew_conv_shape *s = &d->s;
    g.shared = test_scratch(k->tap_pairs_grad_shared(s) * sizeof(float));
    void *scratch = test_scratch(k->tap_pairs_grad_scratch(s));
    const int64_t turns = k->tap_pairs_grad_transpose_tiles(s), tiles = k->tap_pairs_grad_tiles(s);
    const int64_t sums = g.dx ? k->tap_pairs_grad_sum_tiles(s) : 0;
    if (!apart) {
        k->tap_pairs_grad_transpose(&g, 0, turns);
        k->tap_pairs_grad_run(&g, 0, tiles, scratch);
        k->tap_pairs_grad_sum(&g, 0, sums);
    }
    for (int64_t t = turns - 1; apart && t >= 0; t--)
        k->tap_pairs_grad_transpose(&g, t, t + 1);
    for (int64_t t = tiles - 1; apart && t >= 0; t--)
        k->tap_pairs_grad_run(&g, t, t + 1, scratch);
    for (int64_t t = sums - 1; apart && t >= 0; t--)
        k->tap_pairs_grad_sum(&g, t, t + 1);
    ew_guard_free(g.shared);
    ew_guard_free(scratch);
}

/* Both gradients, written or accumulated. */
static void check_gradients(const struct data *d, bool add)
{
    double *dx_want = test_zeros(d->n_x), *dw_want = test_zeros(d->n_w);
    ref_conv_data(&d->s, d->dy, d->w, dx_want);
    ref_conv_filter(&d->s, d->dy, d->x, dw_want);
    const double macs = ref_conv_macs(&d->s);
    const double dx_tol = tolerance(macs / (double)d->n_x, test_scale(dx_want, d->n_x));
    const double dw_tol = tolerance(macs / (double)d->n_w, test_scale(dw_want, d->n_w));
    float *dx[2] = {test_array(d->n_x, 7), test_array(d->n_x, 7)};
    float *dw[2] = {test_array(d->n_w, 9), test_array(d->n_w, 9)};
    for (int64_t i = 0; add && i < d->n_x; i++)
        dx_want[i] += (double)dx[0][i];
    for (int64_t i = 0; add && i < d->n_w; i++)
        dw_want[i] += (double)dw[0][i];
    for (int i = 0; i < 2; i++)
        run_gradients(
            d, i == 1,
            (struct ew_unpacked_grads){
                .filter = {.shape = d->s, .x = d->x, .dy = d->dy, .dw = dw[i], .add = add},
                .w = d->w,
                .dx = dx[i],
                .add_dx = add});
    test_close(dx[0], dx_want, d->n_x, dx_tol, "dx");
    test_close(dw[0], dw_want, d->n_w, dw_tol, "dw");
    EW_EXPECT(memcmp(dx[0], dx[1], (size_t)d->n_x * sizeof(float)) == 0);
    EW_EXPECT(memcmp(dw[0], dw[1], (size_t)d->n_w * sizeof(float)) == 0);
    for (int i = 0; i < 2; i++) {
        ew_guard_free(dx[i]);
        ew_guard_free(dw[i]);
    }
    free(dx_want);
    free(dw_want);
}

/* Fused update: as if the gradient were stored first; dx uses the filter before the update. */
static void check_update(const struct data *d, bool adam)
{
    const struct ew_unpacked_grads plain = {
        .filter = {.shape = d->s, .x = d->x, .dy = d->dy, .dw = test_array(d->n_w, 9)},
        .w = d->w,
        .dx = test_array(d->n_x, 7)};
    run_gradients(d, false, plain);
    float *w[2], *m[2], *v[2], *dx = test_array(d->n_x, 8);
    struct ew_update u = {.is_adam = adam};
    for (int i = 0; i < 2; i++) {
        w[i] = test_array(d->n_w, 11);
        m[i] = test_array(d->n_w, 12);
        v[i] = test_array(d->n_w, 13);
        for (int64_t j = 0; j < d->n_w; j++)
            v[i][j] = fabsf(v[i][j]);
        memcpy(w[i], d->w, (size_t)d->n_w * sizeof(float));
        u.sgd = (struct ew_sgd){.rate = 0.1f,
                                .momentum = 0.9f,
                                .decay = 0.01f,
                                .w = w[i],
                                .m = m[i],
                                .g = plain.filter.dw};
        u.adam = (struct ew_adam){.rate = 0.1f,
                                  .beta1 = 0.9f,
                                  .beta2 = 0.99f,
                                  .eps = 1e-3f,
                                  .c1 = 0.5f,
                                  .c2 = 0.5f,
                                  .w = w[i],
                                  .m = m[i],
                                  .v = v[i],
                                  .g = plain.filter.dw};
        if (i == 1)
            run_gradients(d, true,
                          (struct ew_unpacked_grads){
                              .filter = {.shape = d->s, .x = d->x, .dy = d->dy, .update = &u},
                              .w = w[1],
                              .dx = dx});
        else if (adam)
            d->k->adam_run(&u.adam, 0, d->n_w);
        else
            d->k->sgd_run(&u.sgd, 0, d->n_w);
    }
    EW_EXPECT(memcmp(w[0], w[1], (size_t)d->n_w * sizeof(float)) == 0);
    EW_EXPECT(memcmp(m[0], m[1], (size_t)d->n_w * sizeof(float)) == 0);
    EW_EXPECT(memcmp(dx, plain.dx, (size_t)d->n_x * sizeof(float)) == 0);
    for (int i = 0; i < 2; i++) {
        ew_guard_free(w[i]);
        ew_guard_free(m[i]);
        ew_guard_free(v[i]);
    }
    ew_guard_free(dx);
    ew_guard_free(plain.dx);
    ew_guard_free(plain.filter.dw);
}

/* One gradient alone has the same bits as both together. */
static void check_alone(const struct data *d)
{
    float *dx[2] = {test_array(d->n_x, 7), test_array(d->n_x, 7)};
    float *dw[2] = {test_array(d->n_w, 9), test_array(d->n_w, 9)};
    struct ew_unpacked_grads g = {
        .filter = {.shape = d->s, .x = d->x, .dy = d->dy, .dw = dw[0]}, .w = d->w, .dx = dx[0]};
    run_gradients(d, false, g);
    g.filter.dw = dw[1];
    g.dx = NULL;
    run_gradients(d, false, g);
    g.no_filter = true;
    g.dx = dx[1];
    run_gradients(d, false, g);
    EW_EXPECT(memcmp(dx[0], dx[1], (size_t)d->n_x * sizeof(float)) == 0);
    EW_EXPECT(memcmp(dw[0], dw[1], (size_t)d->n_w * sizeof(float)) == 0);
    for (int i = 0; i < 2; i++) {
        ew_guard_free(dx[i]);
        ew_guard_free(dw[i]);
    }
}

static void check_both(const struct data *d)
{
    check_forward(d, NULL);
    check_forward(d, d->bias);
    check_gradients(d, false);
    check_gradients(d, true);
    check_update(d, false);
    check_update(d, true);
    check_alone(d);
}

/* dgrad masked by a ReLU's output. */
static void check_mask(const struct data *d)
{
    float *dx[2] = {test_array(d->n_x, 7), test_array(d->n_x, 8)};
    for (int i = 0; i < 2; i++)
        run_gradients(d, false,
                      (struct ew_unpacked_grads){.filter = {.shape = d->s, .x = d->x, .dy = d->dy},
                                                 .no_filter = true,
                                                 .w = d->w,
                                                 .dx = dx[i],
                                                 .mask = i == 1});
    bool same = true;
    for (int64_t i = 0; i < d->n_x; i++)
        same = same && !(fabsf(dx[1][i] - (d->x[i] > 0 ? dx[0][i] : 0)) > 0);
    EW_EXPECT(same);
    ew_guard_free(dx[0]);
    ew_guard_free(dx[1]);
}

/* Row strides larger than rows: the gaps are not written. */
static void check_steps(const struct data *d)
{
    const int64_t rows = d->n_y / d->s.cout, step = d->s.cout + 5;
    float *y = test_array(d->n_y, 5), *wide = test_array(rows * step, 6);
    float *was = test_array(rows * step, 6);
    struct data apart = *d;
    run_forward(d, false, NULL, y);
    apart.s.y_step = (int32_t)step;
    run_forward(&apart, false, NULL, wide);
    bool same = true;
    for (int64_t i = 0; i < rows * step; i++) {
        const int64_t row = i / step, c = i % step;
        const float want = c < d->s.cout ? y[row * d->s.cout + c] : was[i];
        same = same && !(fabsf(wide[i] - want) > 0);
    }
    EW_EXPECT(same);
    ew_guard_free(y);
    ew_guard_free(wide);
    ew_guard_free(was);
}

/* Half of x and three quarters of dy are zero, including whole rows. */
static void many_zeros(const struct ew_kernels *k, size_t c)
{
    struct data d = {.k = k, .s = zeros[c].s, .way = BY_SPARSE};
    ew_test_begin("zeros %s: %s", k->isa, zeros[c].name);
    EW_EXPECT(k->sparse_fits(&d.s));
    data_init(&d, 10 * c + 1);
    for (int64_t i = 0; i < d.n_x; i++)
        d.x[i] *= d.x[i] > 0 && i / d.s.cin != 1;
    for (int64_t i = 0; i < d.n_y; i++)
        d.dy[i] *= d.dy[i] > 0 && i % 2 == 0;
    const double share = k->sparse_share(d.x, d.n_x / d.s.cin, d.s.cin, d.s.cin);
    EW_EXPECT(share > 0.4 && share < 0.55);
    for (int i = 0; i < 2; i++) {
        d.by_x = i == 1;
        check_both(&d);
    }
    check_mask(&d);
    check_steps(&d);
    data_fini(&d);
    ew_test_end();
}

/* The bias gradient, if wgrad computes it. */
static void check_bias(const struct data *d)
{
    float *dw = test_array(d->n_w, 9), *db = test_array(d->s.cout, 10);
    run_gradients(
        d, false,
        (struct ew_unpacked_grads){
            .filter = {.shape = d->s, .x = d->x, .dy = d->dy, .dw = dw, .db = db}, .w = d->w});
    for (int64_t o = 0; o < d->s.cout; o++) {
        double want = 0;
        for (int64_t i = o; i < d->n_y; i += d->s.cout)
            want += (double)d->dy[i];
        EW_EXPECT(fabs((double)db[o] - want) < 1e-4);
    }
    ew_guard_free(dw);
    ew_guard_free(db);
}

/* One element of dy in ten is nonzero, for some outputs none. */
static void nearly_all_zeros(const struct ew_kernels *k, size_t c)
{
    struct data d = {.k = k, .s = scattered[c].s, .way = BY_SCATTER_GRAD};
    ew_test_begin("scatter_grad %s: %s", k->isa, scattered[c].name);
    const bool data = d.s.cin * d.s.axis[2].taps % k->lanes == 0;
    EW_EXPECT(k->scatter_grad_fits(&d.s, data));
    EW_EXPECT(data || !k->scatter_grad_fits(&d.s, true));
    data_init(&d, 10 * c + 1);
    for (int64_t i = 0; i < d.n_y; i++)
        d.dy[i] *= i * 7 % 10 == 3 && i % d.s.cout != 1;
    if (data) {
        check_gradients(&d, false);
        check_gradients(&d, true);
        check_update(&d, false);
        check_update(&d, true);
        check_alone(&d);
        check_mask(&d);
    }
    check_bias(&d);
    data_fini(&d);
    ew_test_end();
}

static void refused(const struct ew_kernels *k)
{
    ew_test_begin("tap pairs %s: what it does not do", k->isa);
    const struct ew_conv_axis one = {1, 1, 1, 1, 1, 0}, many = {9, 9, 3, 1, 1, 1};
    const struct ew_conv_shape groups = {16, 2, 64, 64, {one, one, one}};
    const struct ew_conv_shape large = {16, 1, 64, 64, {one, many, many}};
    const struct ew_conv_shape none = {0, 1, 64, 64, {one, one, one}};
    EW_EXPECT(!k->tap_pairs_fits(&groups));
    EW_EXPECT(!k->tap_pairs_fits(&large));
    EW_EXPECT(!k->tap_pairs_fits(&none));
    EW_EXPECT(!k->small_dense_pays(&groups));
    EW_EXPECT(!k->small_dense_pays(&large));
    EW_EXPECT(!k->sparse_fits(&groups));
    EW_EXPECT(!k->sparse_fits(&large));
    EW_EXPECT(!k->scatter_grad_fits(&groups, false));
    EW_EXPECT(!k->scatter_grad_fits(&none, false));
    ew_test_end();
}

int main(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    for (int i = 0; ew_float_isa_at(i); i++) {
        for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
            struct data d = {.k = ew_float_isa_at(i), .s = cases[c].s};
            ew_test_begin("tap pairs %s: %s", d.k->isa, cases[c].name);
            EW_EXPECT(d.k->tap_pairs_fits(&d.s));
            data_init(&d, 10 * c + 1);
            check_both(&d);
            d.way = BY_DENSE;
            if (d.k->small_dense_pays(&d.s))
                check_both(&d);
            data_fini(&d);
            ew_test_end();
        }
        refused(ew_float_isa_at(i));
        for (size_t c = 0; c < sizeof(zeros) / sizeof(zeros[0]); c++)
            many_zeros(ew_float_isa_at(i), c);
        for (size_t c = 0; c < sizeof(scattered) / sizeof(scattered[0]); c++)
            nearly_all_zeros(ew_float_isa_at(i), c);
    }
    return ew_test_status();
}
