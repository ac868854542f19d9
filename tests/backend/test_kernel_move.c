/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that move rows or scale channels, of every instruction set, on sizes around vector
 * lengths and ranges cut at odd places. */
#include <string.h>

#include "kernel_test.h"
#include "op/epilogue.h"

static const int64_t sizes[] = {1, 2, 3, 4, 7, 8, 15, 16, 17, 31, 32, 58, 65, 116};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define ROWS     5

/* [a, b] to [b, a]: pairs in either order, and the general case. */
static void shuffle(const struct ew_kernels *k, int64_t a, int64_t b, bool add)
{
    const int64_t n = a * b;
    float *in = test_array(ROWS * n, 1), *out = test_array(ROWS * n, 3);
    double *want = test_zeros(ROWS * n);
    for (int64_t i = 0; i < ROWS * n; i++) {
        const int64_t at = i % n, from = at % a * b + at / a;
        want[i] = (double)in[i - at + from] + (add ? (double)out[i] : 0);
    }
    const struct ew_shuffle s = {.groups = a, .each = b, .in = in, .out = out, .add = add};
    k->shuffle_run(&s, 2, ROWS);
    k->shuffle_run(&s, 0, 2);
    test_close(out, want, ROWS * n, add ? 1e-6 : 0, "shuffle");
    ew_guard_free(in);
    ew_guard_free(out);
    free(want);
}

static void rows(const struct ew_kernels *k, int64_t n, bool add)
{
    const int64_t wide = n + 3;
    float *in = test_array((ROWS - 1) * wide + n, 1), *out = test_array(ROWS * n, 3);
    double *want = test_zeros(ROWS * n);
    for (int64_t i = 0; i < ROWS * n; i++)
        want[i] = (double)in[i / n * wide + i % n] + (add ? (double)out[i] : 0);
    const struct ew_copy_rows c = {
        .n = n, .in_step = wide, .out_step = n, .in = in, .out = out, .add = add};
    k->copy_rows(&c, 1, ROWS);
    k->copy_rows(&c, 0, 1);
    test_close(out, want, ROWS * n, add ? 1e-6 : 0, "rows");
    ew_guard_free(in);
    ew_guard_free(out);
    free(want);
}

/* Forward, and the sums of backward, over two images of many rows. */
static void channel_scale(const struct ew_kernels *k, int64_t channels, bool sum, bool add)
{
    enum { BATCH = 2, PIXELS = 131 };
    const int64_t all = BATCH * PIXELS * channels, few = BATCH * channels;
    float *x = test_array(all, 1), *s = test_array(few, 3), *y = test_array(all, 5);
    float *ds = test_array(few, 7), *again = test_array(few, 7);
    double *want = test_zeros(all), *back = test_zeros(few);
    const struct ew_channel_scale g = {.batch = BATCH,
                                       .rows = PIXELS,
                                       .channels = channels,
                                       .x = x,
                                       .s = s,
                                       .dy = x,
                                       .y = y,
                                       .ds = ds,
                                       .sum = sum,
                                       .add = add};
    for (int64_t i = 0; i < few && add; i++)
        back[i] = (double)ds[i];
    for (int64_t i = 0; i < all; i++) {
        const int64_t c = i / channels / PIXELS * channels + i % channels;
        const double a = (double)x[i], b = (double)s[c];
        want[i] = (sum ? a + b : a * b) + (add ? (double)y[i] : 0);
        back[c] += sum ? a : a * a;
    }
    k->channel_scale_run(&g, 0, 100);
    k->channel_scale_run(&g, 100, BATCH * PIXELS);
    test_close(y, want, all, 1e-6, "channel_scale");
    const int64_t tiles = k->channel_scale_sum_tiles(&g);
    k->channel_scale_sum(&g, 0, tiles);
    test_close(ds, back, few, 1e-4, "channel_scale, back");
    struct ew_channel_scale h = g;
    h.ds = again;
    for (int64_t t = tiles - 1; t >= 0; t--)
        k->channel_scale_sum(&h, t, t + 1);
    EW_EXPECT(memcmp(again, ds, (size_t)few * sizeof(float)) == 0);
    ew_guard_free(x);
    ew_guard_free(s);
    ew_guard_free(y);
    ew_guard_free(ds);
    ew_guard_free(again);
    free(want);
    free(back);
}

static void mul(const struct ew_kernels *k, int64_t n, bool add)
{
    float *a = test_array(n, 1), *b = test_array(n, 3), *y = test_array(n, 5);
    double *want = test_zeros(n);
    for (int64_t i = 0; i < n; i++)
        want[i] = (double)a[i] * (double)b[i] + (add ? (double)y[i] : 0);
    const struct ew_mul_map m = {a, b, y, add};
    k->mul_run(&m, 0, n / 3);
    k->mul_run(&m, n / 3, n);
    test_close(y, want, n, 1e-6, "product");
    ew_guard_free(a);
    ew_guard_free(b);
    ew_guard_free(y);
    free(want);
}

/* Derivatives computed from the output equal those computed from the input. */
static void kept_slopes(const struct ew_kernels *k)
{
    enum { N = 203 };
    float *x = test_array(N, 1), *dy = test_array(N, 3);
    float y[N], from_in[N], from_out[N];
    for (int act = 0; act < EW_ACT_COUNT; act++) {
        if (act == EW_ACT_HARD_SWISH || act == EW_ACT_SILU || act == EW_ACT_GELU)
            continue;
        struct ew_act_map m = {.act = (enum ew_act)act, .lo = 0.4f, .hi = 0.5f, .x = x, .dy = dy};
        m.y = y;
        k->act_run(&m, 0, N);
        m.dx = from_in;
        k->act_back(&m, 0, N);
        m.x = y;
        m.from_output = true;
        m.dx = from_out;
        k->act_back(&m, 0, N);
        double want[N];
        for (int i = 0; i < N; i++)
            want[i] = (double)from_in[i];
        test_close(from_out, want, N, 1e-6, ew_act_names[act]);
    }
    ew_guard_free(x);
    ew_guard_free(dy);
}

int main(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    for (int i = 0; ew_isa_at(i); i++) {
        const struct ew_kernels *k = ew_isa_at(i);
        for (int add = 0; add < 2; add++) {
            ew_test_begin("moves %s%s", k->isa, add ? ", added" : "");
            for (size_t n = 0; n < COUNT(sizes); n++) {
                shuffle(k, 2, sizes[n], add);
                shuffle(k, sizes[n], 2, add);
                shuffle(k, 3, sizes[n], add);
                rows(k, sizes[n], add);
            }
            ew_test_end();
            ew_test_begin("products %s%s", k->isa, add ? ", added" : "");
            for (size_t n = 0; n < COUNT(sizes); n++) {
                channel_scale(k, sizes[n], false, add);
                channel_scale(k, sizes[n], true, add);
                mul(k, sizes[n], add);
            }
            ew_test_end();
        }
        ew_test_begin("slopes %s", k->isa);
        kept_slopes(k);
        ew_test_end();
    }
    return ew_test_status();
}
