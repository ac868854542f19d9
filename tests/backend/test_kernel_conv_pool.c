/* SPDX-License-Identifier: Apache-2.0 */
/* Fused convolution, max pool and ReLU, of every instruction set, against the reference in double,
 * between guard pages, with all tiles in one range and in single ones. */
#include <float.h>
#include <string.h>

#include "kernel_test.h"
#include "ref_conv.h"

/* clang-format off */
#define A1 {1, 1, 1, 1, 1, 0}
static const struct {
    const char *name;
    struct ew_conv_shape s; /* batch, groups, cin, cout; axes {in, out, taps, stride, dilation, pad} */
} cases[] = {
    {"lenet5",           {5, 1, 1, 6, {A1, {28, 28, 5, 1, 1, 2}, {28, 28, 5, 1, 1, 2}}}},
    {"odd outputs",      {3, 1, 1, 5, {A1, {11, 9, 3, 1, 1, 0}, {14, 13, 3, 1, 1, 1}}}},
    {"3 channels",       {2, 1, 3, 16, {A1, {12, 12, 3, 1, 1, 1}, {32, 32, 3, 1, 1, 1}}}},
    {"2 channels, 5x5",  {1, 1, 2, 7, {A1, {9, 5, 5, 1, 1, 0}, {21, 21, 5, 1, 1, 2}}}},
    {"4 channels, 1x1",  {2, 1, 4, 3, {A1, {6, 6, 1, 1, 1, 0}, {7, 7, 1, 1, 1, 0}}}},
    {"wide",             {1, 1, 1, 1, {A1, {4, 4, 3, 1, 1, 1}, {70, 70, 3, 1, 1, 1}}}},
    {"taps 7x2",         {2, 1, 3, 2, {A1, {8, 8, 7, 1, 1, 3}, {10, 9, 2, 1, 1, 0}}}},
    {"taps 2x11",        {1, 1, 3, 9, {A1, {6, 5, 2, 1, 1, 0}, {19, 17, 11, 1, 1, 4}}}},
    {"odd padding",      {2, 1, 1, 4, {A1, {7, 12, 4, 1, 1, 4}, {6, 9, 4, 1, 1, 3}}}},
    {"cropped",          {2, 1, 2, 8, {A1, {12, 8, 3, 1, 1, -1}, {13, 8, 3, 1, 1, -2}}}},
    {"one window",       {3, 1, 1, 11, {A1, {2, 2, 3, 1, 1, 1}, {3, 3, 3, 1, 1, 1}}}},
    {"many images",      {70, 1, 1, 2, {A1, {4, 4, 3, 1, 1, 1}, {6, 6, 3, 1, 1, 1}}}},
};
#undef A1
/* clang-format on */

struct data {
    const struct ew_kernels *k;
    struct ew_conv_shape s;
    int64_t high, wide, n_x, n_w, n_full, n_y;
    float *x, *w, *bias, *dy;
    double *full;    /* the convolution's output */
    double tol;      /* tolerance of its elements */
    uint8_t *argmax; /* of the last forward run */
    float *y;
};

static void data_init(struct data *d, uint64_t seed)
{
    d->high = d->s.axis[1].out / 2;
    d->wide = d->s.axis[2].out / 2;
    d->n_x = ref_conv_in_count(&d->s);
    d->n_w = ref_conv_filter_count(&d->s);
    d->n_full = ref_conv_out_count(&d->s);
    d->n_y = d->s.batch * d->high * d->wide * d->s.cout;
    d->x = test_array(d->n_x, seed);
    d->w = test_array(d->n_w, seed + 1);
    d->bias = test_array(d->s.cout, seed + 2);
    d->dy = test_array(d->n_y, seed + 3);
    d->y = test_array(d->n_y, seed + 4);
    d->argmax = ew_guard_end((size_t)d->n_y, 1);
    d->full = test_zeros(d->n_full);
}

static void data_fini(struct data *d)
{
    ew_guard_free(d->x);
    ew_guard_free(d->w);
    ew_guard_free(d->bias);
    ew_guard_free(d->dy);
    ew_guard_free(d->y);
    ew_guard_free(d->argmax);
    free(d->full);
}

/* All images at once, or one by one in reverse order. */
static void run_forward(const struct data *d, bool relu, bool apart, uint8_t *argmax, float *y)
{
    const struct ew_kernels *k = d->k;
    float *packed = test_scratch(k->conv_pool_pack_size(&d->s) * sizeof(float));
    void *scratch = test_scratch(k->conv_pool_scratch(&d->s));
    const struct ew_conv_pool p = {
        .shape = d->s, .relu = relu, .x = d->x, .w = packed, .y = y, .argmax = argmax};
    k->conv_pool_pack(&d->s, d->w, d->bias, packed);
    if (!apart)
        k->conv_pool_run(&p, 0, d->s.batch, scratch);
    for (int64_t i = d->s.batch - 1; apart && i >= 0; i--)
        k->conv_pool_run(&p, i, i + 1, scratch);
    ew_guard_free(packed);
    ew_guard_free(scratch);
}

/* Index into `argmax` of output i of y [image][window][channel], and into the pool's input of
 * element t of its window. */
static int64_t argmax_at(const struct data *d, int64_t i)
{
    const int64_t windows = d->high * d->wide, o = i % d->s.cout, pixel = i / d->s.cout;
    return (pixel / windows * d->s.cout + o) * windows + pixel % windows;
}

static int64_t full_at(const struct data *d, int64_t i, int t)
{
    const int64_t o = i % d->s.cout, pixel = i / d->s.cout;
    const int64_t x = pixel % d->wide, y = pixel / d->wide % d->high;
    const int64_t row = pixel / d->wide / d->high * d->s.axis[1].out + 2 * y + t / 2;
    return (row * d->s.axis[2].out + 2 * x + t % 2) * d->s.cout + o;
}

static void check_output(const struct data *d, bool relu, int64_t i)
{
    double best = -(double)INFINITY;
    for (int t = 0; t < 4; t++)
        best = fmax(best, d->full[full_at(d, i, t)]);
    const double want = relu ? fmax(best, 0) : best;
    const int argmax = d->argmax[argmax_at(d, i)];
    if (fabs((double)d->y[i] - want) > d->tol)
        EW_FAIL("y[%lld] is %g, not %g", (long long)i, (double)d->y[i], want);
    if (relu && (argmax == EW_CONV_POOL_NO_GRAD) != (d->y[i] <= 0))
        EW_FAIL("y[%lld] is %g, but its argmax %d", (long long)i, (double)d->y[i], argmax);
    if (argmax > EW_CONV_POOL_NO_GRAD || (argmax == EW_CONV_POOL_NO_GRAD && !relu))
        EW_FAIL("argmax[%lld] is %d", (long long)i, argmax);
    else if (argmax < EW_CONV_POOL_NO_GRAD && d->full[full_at(d, i, argmax)] < best - 2 * d->tol)
        EW_FAIL("argmax[%lld] is %d, which is no maximum", (long long)i, argmax);
}

static void check_forward(struct data *d, bool relu)
{
    const struct ew_epilogue end = {.bias = d->bias};
    memset(d->full, 0, (size_t)d->n_full * sizeof(*d->full));
    ref_conv(&d->s, d->x, d->w, d->full);
    ref_epilogue(&end, d->n_full, d->s.cout, d->full);
    const double terms = ref_conv_macs(&d->s) / (double)d->n_full;
    d->tol = 4 * (double)FLT_EPSILON * (2 + sqrt(terms)) * (1 + test_scale(d->full, d->n_full));
    run_forward(d, relu, false, d->argmax, d->y);
    for (int64_t i = 0; i < d->n_y; i++)
        check_output(d, relu, i);
    float *y = test_array(d->n_y, 8);
    uint8_t *argmax = ew_guard_start((size_t)d->n_y);
    run_forward(d, relu, true, argmax, y);
    EW_EXPECT(memcmp(y, d->y, (size_t)d->n_y * sizeof(float)) == 0);
    EW_EXPECT(memcmp(argmax, d->argmax, (size_t)d->n_y) == 0);
    ew_guard_free(y);
    ew_guard_free(argmax);
}

static void run_gradients(const struct data *d, bool apart, struct ew_conv_pool p)
{
    const struct ew_kernels *k = d->k;
    const struct ew_conv_shape *s = &d->s;
    int32_t *offsets =
        ew_guard_end(k->conv_pool_offsets_size(s) * sizeof(int32_t), sizeof(int32_t));
    p.partial = test_scratch(k->conv_pool_partial(s) * sizeof(float));
    p.offsets = offsets;
    p.argmax = d->argmax;
    void *scratch = test_scratch(k->conv_pool_grad_scratch(s));
    const int64_t tiles = k->conv_pool_grad_tiles(s), sums = k->conv_pool_sum_tiles(s);
    k->conv_pool_offsets(s, offsets);
    if (!apart) {
        k->conv_pool_grad_run(&p, 0, tiles, scratch);
        k->conv_pool_sum(&p, 0, sums);
    }
    for (int64_t t = tiles - 1; apart && t >= 0; t--)
        k->conv_pool_grad_run(&p, t, t + 1, scratch);
    for (int64_t t = sums - 1; apart && t >= 0; t--)
        k->conv_pool_sum(&p, t, t + 1);
    ew_guard_free(p.partial);
    ew_guard_free(offsets);
    ew_guard_free(scratch);
}

/* Both gradients in double, using the arg-max of the last forward run. */
static void reference(const struct data *d, double *dw, double *db)
{
    float *dense = calloc((size_t)d->n_full, sizeof(*dense));
    for (int64_t i = 0; dense && i < d->n_y; i++) {
        const int argmax = d->argmax[argmax_at(d, i)];
        if (argmax == EW_CONV_POOL_NO_GRAD)
            continue;
        dense[full_at(d, i, argmax)] = d->dy[i];
        db[i % d->s.cout] += (double)d->dy[i];
    }
    ref_conv_filter(&d->s, dense, d->x, dw);
    free(dense);
}

static void check_gradients(const struct data *d, bool add)
{
    float *dw[2] = {test_array(d->n_w, 11), test_array(d->n_w, 11)};
    float *db[2] = {test_array(d->s.cout, 13), test_array(d->s.cout, 13)};
    double *want_dw = test_zeros(d->n_w), *want_db = test_zeros(d->s.cout);
    for (int64_t i = 0; add && i < d->n_w; i++)
        want_dw[i] = (double)dw[0][i];
    for (int64_t i = 0; add && i < d->s.cout; i++)
        want_db[i] = (double)db[0][i];
    reference(d, want_dw, want_db);
    for (int i = 0; i < 2; i++) {
        const struct ew_conv_pool p = {.shape = d->s,
                                       .x = d->x,
                                       .dy = d->dy,
                                       .dw = dw[i],
                                       .db = db[i],
                                       .add_dw = add,
                                       .add_db = add};
        run_gradients(d, i == 1, p);
    }
    const double terms = sqrt((double)(d->s.batch * d->high * d->wide));
    const double unit = 4 * (double)FLT_EPSILON * (2 + terms);
    test_close(dw[0], want_dw, d->n_w, unit * (1 + test_scale(want_dw, d->n_w)), "dw");
    test_close(db[0], want_db, d->s.cout, unit * (1 + test_scale(want_db, d->s.cout)), "db");
    EW_EXPECT(memcmp(dw[0], dw[1], (size_t)d->n_w * sizeof(float)) == 0);
    EW_EXPECT(memcmp(db[0], db[1], (size_t)d->s.cout * sizeof(float)) == 0);
    for (int i = 0; i < 2; i++) {
        ew_guard_free(dw[i]);
        ew_guard_free(db[i]);
    }
    free(want_dw);
    free(want_db);
}

static void check_case(struct data *d)
{
    EW_EXPECT(d->k->conv_pool_fits(&d->s));
    check_forward(d, false);
    check_gradients(d, false);
    check_forward(d, true);
    check_gradients(d, false);
    check_gradients(d, true);
}

/* Ties: the first maximum counts; if relu cuts all, none does; NaN propagates, here the first
 * element of one window and the second of the next. */
static void check_special(struct data *d)
{
    d->s = (struct ew_conv_shape){
        2, 1, 1, 6, {{1, 1, 1, 1, 1, 0}, {6, 6, 1, 1, 1, 0}, {40, 40, 1, 1, 1, 0}}};
    data_init(d, 3);
    for (int64_t i = 0; i < d->n_x; i++)
        d->x[i] = 1;
    for (int64_t o = 0; o < d->s.cout; o++) {
        d->w[o] = o % 2 ? -2.0f : 2.0f;
        d->bias[o] = 0;
    }
    d->x[0] = NAN;
    d->x[3] = NAN;
    run_forward(d, true, false, d->argmax, d->y);
    for (int64_t i = 0; i < d->n_y; i++) {
        const bool lost = i % 2 || i < 2 * d->s.cout;
        EW_EXPECT_INT(d->argmax[argmax_at(d, i)], lost ? EW_CONV_POOL_NO_GRAD : 0);
        if (i < 2 * d->s.cout)
            EW_EXPECT(isnan(d->y[i]));
        else
            EW_EXPECT_NEAR((double)d->y[i], i % 2 ? 0 : 2, 0);
    }
    d->x[0] = d->x[3] = 1;
    check_gradients(d, false);
    data_fini(d);
}

static void refused(const struct ew_kernels *k)
{
    ew_test_begin("conv_pool %s: what it does not do", k->isa);
    const struct ew_conv_axis one = {1, 1, 1, 1, 1, 0}, two = {8, 8, 3, 1, 1, 1};
    const struct ew_conv_axis stride = {8, 4, 3, 2, 1, 1}, dilated = {8, 8, 3, 1, 2, 2};
    const struct ew_conv_shape groups = {4, 2, 2, 2, {one, two, two}};
    const struct ew_conv_shape strided = {4, 1, 2, 2, {one, two, stride}};
    const struct ew_conv_shape apart = {4, 1, 2, 2, {one, dilated, two}};
    const struct ew_conv_shape line = {4, 1, 2, 2, {one, one, two}};
    const struct ew_conv_shape deep = {4, 1, 2, 2, {two, two, two}};
    EW_EXPECT(!k->conv_pool_fits(&groups) && !k->conv_pool_fits(&strided));
    EW_EXPECT(!k->conv_pool_fits(&apart) && !k->conv_pool_fits(&line) && !k->conv_pool_fits(&deep));
    ew_test_end();
}

int main(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    for (int i = 0; ew_isa_at(i); i++) {
        struct data d = {.k = ew_isa_at(i)};
        for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
            d.s = cases[c].s;
            ew_test_begin("conv_pool %s: %s", d.k->isa, cases[c].name);
            data_init(&d, 10 * c + 1);
            check_case(&d);
            data_fini(&d);
            ew_test_end();
        }
        ew_test_begin("conv_pool %s: equal, cut, nan", d.k->isa);
        check_special(&d);
        ew_test_end();
        refused(d.k);
    }
    return ew_test_status();
}
