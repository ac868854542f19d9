/* SPDX-License-Identifier: Apache-2.0 */
/* F(5x5, 5x5) of every instruction set against the reference in double, between guard pages, with
 * all tiles in one range and in single ones. */
#include <string.h>

#include "conv_data.h"
#include "float_isa.h"

/* clang-format off */
#define A1 {1, 1, 1, 1, 1, 0}
static const struct {
    const char *name;
    struct ew_conv_shape s; /* batch, groups, cin, cout; axes {in, out, taps, stride, dilation, pad} */
} cases[] = {
    {"LeNet-5's second", {16, 1, 6, 16, {A1, {14, 10, 5, 1, 1, 0}, {14, 10, 5, 1, 1, 0}}}},
    {"odd batch",        {9, 1, 6, 16, {A1, {14, 10, 5, 1, 1, 0}, {14, 10, 5, 1, 1, 0}}}},
    {"one image",        {1, 1, 6, 20, {A1, {12, 12, 5, 1, 1, 2}, {12, 12, 5, 1, 1, 2}}}},
    {"one channel",      {3, 1, 1, 5, {A1, {9, 7, 5, 1, 1, 1}, {11, 11, 5, 1, 1, 2}}}},
    {"three channels",   {5, 1, 3, 16, {A1, {13, 11, 5, 1, 1, 1}, {8, 4, 5, 1, 1, 0}}}},
    {"narrow",           {4, 1, 2, 3, {A1, {7, 3, 5, 1, 1, 0}, {2, 2, 5, 1, 1, 2}}}},
    {"many channels",    {2, 1, 19, 37, {A1, {10, 10, 5, 1, 1, 2}, {9, 8, 5, 1, 1, 2}}}},
    {"many tiles",       {2, 1, 8, 8, {A1, {31, 31, 5, 1, 1, 2}, {23, 21, 5, 1, 1, 1}}}},
    {"wide padding",     {11, 1, 4, 6, {A1, {1, 5, 5, 1, 1, 4}, {2, 6, 5, 1, 1, 4}}}},
    {"padding behind",   {2, 1, 12, 9, {A1, {6, 7, 5, 1, 1, 0}, {5, 9, 5, 1, 1, 1}}}},
};
#undef A1
/* clang-format on */

/* The interpolation points, as far apart as 1/2 and 3, cost digits (measured: winograd_5x5.h).
 * Short sums of random numbers may cancel, so the tolerance also scales with the terms. */
static double tolerance(const double *want, int64_t n)
{
    return 5e-5 * (1 + test_scale(want, n));
}

static bool same(const float *a, const float *b, int64_t n)
{
    return memcmp(a, b, (size_t)n * sizeof(float)) == 0;
}

/* All tiles at once, or one by one in reverse order. */
static void run_forward(const struct data *d, bool apart, struct ew_epilogue end, float *y)
{
    const struct ew_kernels *k = d->k;
    float *packed = test_scratch(k->winograd_5x5_pack_size(&d->s) * sizeof(float));
    void *scratch = test_scratch(k->winograd_5x5_scratch(&d->s));
    const int64_t tiles = k->winograd_5x5_tiles(&d->s);
    k->winograd_5x5_pack(&d->s, d->w, packed);
    const struct ew_conv c = {.shape = d->s, .x = d->x, .w = packed, .y = y, .end = end};
    if (!apart)
        k->winograd_5x5_run(&c, 0, tiles, scratch);
    for (int64_t t = tiles - 1; apart && t >= 0; t--)
        k->winograd_5x5_run(&c, t, t + 1, scratch);
    ew_guard_free(packed);
    ew_guard_free(scratch);
}

static void check_forward(const struct data *d, struct ew_epilogue end)
{
    double *want = test_zeros(d->n_y);
    float *y = test_array(d->n_y, 5), *again = test_array(d->n_y, 6);
    ref_conv(&d->s, d->x, d->w, want);
    const double tol = tolerance(want, d->n_y);
    ref_epilogue(&end, d->n_y, d->s.cout, want);
    run_forward(d, false, end, y);
    test_close(y, want, d->n_y, tol, "y");
    run_forward(d, true, end, again);
    EW_EXPECT(same(again, y, d->n_y));
    ew_guard_free(y);
    ew_guard_free(again);
    free(want);
}

static void run_gradients(const struct data *d, bool apart, struct ew_unpacked_grads g)
{
    const struct ew_kernels *k = d->k;
    g.shared = test_scratch(k->winograd_5x5_grad_shared(&d->s) * sizeof(float));
    void *scratch = test_scratch(k->winograd_5x5_grad_scratch(&d->s));
    const int64_t tiles = k->winograd_5x5_grad_tiles(&d->s);
    if (g.dx)
        k->winograd_5x5_grad_pack(&g, scratch);
    if (!apart)
        k->winograd_5x5_grad_run(&g, 0, tiles, scratch);
    for (int64_t t = tiles - 1; apart && t >= 0; t--)
        k->winograd_5x5_grad_run(&g, t, t + 1, scratch);
    if (!g.no_filter)
        k->winograd_5x5_grad_sum(&g);
    ew_guard_free(g.shared);
    ew_guard_free(scratch);
}

/* Gradient arrays with fixed initial contents. */
struct gradients {
    float *dx, *dw, *db;
};

static struct gradients gradients_new(const struct data *d)
{
    return (struct gradients){test_array(d->n_x, 7), test_array(d->n_w, 9),
                              test_array(d->s.cout, 11)};
}

static void gradients_free(struct gradients *g)
{
    ew_guard_free(g->dx);
    ew_guard_free(g->dw);
    ew_guard_free(g->db);
}

static struct ew_unpacked_grads call_of(const struct data *d, const struct gradients *to, bool add)
{
    return (struct ew_unpacked_grads){.filter = {.shape = d->s,
                                                 .x = d->x,
                                                 .dy = d->dy,
                                                 .dw = to->dw,
                                                 .add = add,
                                                 .db = to->db,
                                                 .add_db = add},
                                      .w = d->w,
                                      .dx = to->dx,
                                      .add_dx = add};
}

/* All three gradients, written or accumulated. */
static void check_gradients(const struct data *d, bool add)
{
    double *dx = test_zeros(d->n_x), *dw = test_zeros(d->n_w), *db = test_zeros(d->s.cout);
    ref_conv_data(&d->s, d->dy, d->w, dx);
    ref_conv_filter(&d->s, d->dy, d->x, dw);
    for (int64_t i = 0; i < d->n_y; i++)
        db[i % d->s.cout] += (double)d->dy[i];
    const double dx_tol = tolerance(dx, d->n_x), dw_tol = tolerance(dw, d->n_w);
    struct gradients to[2] = {gradients_new(d), gradients_new(d)};
    for (int64_t i = 0; add && i < d->n_x; i++)
        dx[i] += (double)to[0].dx[i];
    for (int64_t i = 0; add && i < d->n_w; i++)
        dw[i] += (double)to[0].dw[i];
    for (int64_t i = 0; add && i < d->s.cout; i++)
        db[i] += (double)to[0].db[i];
    for (int i = 0; i < 2; i++)
        run_gradients(d, i == 1, call_of(d, &to[i], add));
    test_close(to[0].dx, dx, d->n_x, dx_tol, "dx");
    test_close(to[0].dw, dw, d->n_w, dw_tol, "dw");
    test_close(to[0].db, db, d->s.cout, tolerance(db, d->s.cout), "db");
    EW_EXPECT(same(to[0].dx, to[1].dx, d->n_x));
    EW_EXPECT(same(to[0].dw, to[1].dw, d->n_w));
    EW_EXPECT(same(to[0].db, to[1].db, d->s.cout));
    gradients_free(&to[0]);
    gradients_free(&to[1]);
    free(dx);
    free(dw);
    free(db);
}

/* One gradient alone has the same bits as all together. */
static void check_alone(const struct data *d)
{
    struct gradients to[2] = {gradients_new(d), gradients_new(d)};
    run_gradients(d, false, call_of(d, &to[0], false));
    struct ew_unpacked_grads filter = call_of(d, &to[1], false), data = filter;
    filter.dx = NULL;
    filter.filter.db = NULL;
    run_gradients(d, false, filter);
    data.no_filter = true;
    run_gradients(d, false, data);
    EW_EXPECT(same(to[0].dx, to[1].dx, d->n_x));
    EW_EXPECT(same(to[0].dw, to[1].dw, d->n_w));
    gradients_free(&to[0]);
    gradients_free(&to[1]);
}

/* Fused update: as if the gradient were stored first; dx uses the filter before the update. */
static void check_update(const struct data *d)
{
    struct gradients to[2] = {gradients_new(d), gradients_new(d)};
    float *w[2], *m[2];
    run_gradients(d, false, call_of(d, &to[0], false));
    for (int i = 0; i < 2; i++) {
        w[i] = test_array(d->n_w, 13);
        m[i] = test_array(d->n_w, 14);
        memcpy(w[i], d->w, (size_t)d->n_w * sizeof(float));
        const struct ew_update u = {.sgd = {.rate = 0.1f,
                                            .momentum = 0.9f,
                                            .decay = 0.01f,
                                            .w = w[i],
                                            .m = m[i],
                                            .g = to[0].dw}};
        struct ew_unpacked_grads g = call_of(d, &to[1], false);
        g.w = w[i];
        g.filter.update = &u;
        if (i == 0)
            d->k->sgd_run(&u.sgd, 0, d->n_w);
        else
            run_gradients(d, true, g);
    }
    EW_EXPECT(same(w[0], w[1], d->n_w));
    EW_EXPECT(same(m[0], m[1], d->n_w));
    EW_EXPECT(same(to[0].dx, to[1].dx, d->n_x));
    for (int i = 0; i < 2; i++) {
        gradients_free(&to[i]);
        ew_guard_free(w[i]);
        ew_guard_free(m[i]);
    }
}

static void refused(const struct ew_kernels *k)
{
    ew_test_begin("winograd 5x5 %s: what it does not do", k->isa);
    const struct ew_conv_axis one = {1, 1, 1, 1, 1, 0}, plain = {14, 10, 5, 1, 1, 0};
    const struct ew_conv_axis stride = {14, 5, 5, 2, 1, 0}, taps = {14, 12, 3, 1, 1, 0};
    const struct ew_conv_axis cropped = {14, 9, 5, 1, 1, 0}, before = {14, 9, 5, 1, 1, -1};
    const struct ew_conv_axis large = {204, 200, 5, 1, 1, 0}, *const bad[] = {&stride, &taps,
                                                                              &cropped, &before};
    for (int i = 0; i < 4; i++) {
        const struct ew_conv_shape s = {16, 1, 6, 16, {one, plain, *bad[i]}};
        EW_EXPECT(!k->winograd_5x5_fits(&s));
    }
    const struct ew_conv_shape groups = {16, 2, 6, 16, {one, plain, plain}};
    const struct ew_conv_shape many = {16, 1, 6, 16, {one, large, large}};
    EW_EXPECT(!k->winograd_5x5_fits(&groups));
    EW_EXPECT(!k->winograd_5x5_fits(&many));
    ew_test_end();
}

static void check_case(const struct ew_kernels *k, size_t i)
{
    struct data d = {.k = k, .s = cases[i].s};
    ew_test_begin("winograd 5x5 %s: %s", k->isa, cases[i].name);
    EW_EXPECT(k->winograd_5x5_fits(&d.s));
    data_init(&d, 10 * i + 1);
    check_forward(&d, (struct ew_epilogue){0});
    check_forward(&d, (struct ew_epilogue){
                          .bias = d.bias, .add = d.dy, .act = EW_ACT_CLIP, .lo = -1, .hi = 2});
    check_gradients(&d, false);
    check_gradients(&d, true);
    check_alone(&d);
    check_update(&d);
    data_fini(&d);
    ew_test_end();
}

int main(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    for (int i = 0; ew_float_isa_at(i); i++) {
        for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++)
            check_case(ew_float_isa_at(i), c);
        refused(ew_float_isa_at(i));
    }
    return ew_test_status();
}
