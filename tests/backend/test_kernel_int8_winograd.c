/* SPDX-License-Identifier: Apache-2.0 */
/* 8-bit Winograd is exact: sums of extreme bytes and weights, with as many channels as it supports,
 * against plain ones; every instruction set, guarded buffers. */
#include <string.h>

#include "base/mem.h"
#include "kernel_test.h"
#include "ref_conv.h"

/* clang-format off */
#define A1 {1, 1, 1, 1, 1, 0}
static const struct ew_conv_shape shapes[] = {
    {1, 1, 16, 16, {A1, {4, 4, 3, 1, 1, 1}, {4, 4, 3, 1, 1, 1}}},
    {2, 1, 35, 33, {A1, {7, 8, 3, 1, 1, 2}, {9, 7, 3, 1, 1, 0}}},
    {1, 1, 33, 70, {A1, {30, 28, 3, 1, 1, 0}, {29, 31, 3, 1, 1, 2}}},
    {1, 1, 1792, 32, {A1, {6, 4, 3, 1, 1, 0}, {6, 5, 3, 1, 1, 1}}}, /* the most channels */
    {1, 1, 24, 24, {A1, {9, 5, 3, 1, 1, -1}, {9, 6, 3, 1, 1, 0}}},  /* negative padding
                                                                     * (cropping) */
};
/* clang-format on */

/* The sum of an output; padding is 0, since the zero point is 0. */
static int64_t sum_at(const struct ew_conv_shape *s, const uint8_t *x, const uint8_t *w, int64_t at)
{
    const struct ew_conv_axis *a = s->axis;
    const int64_t o = at % s->cout, pixel = at / s->cout;
    const int64_t ox = pixel % a[2].out, oy = pixel / a[2].out % a[1].out;
    const uint8_t *image = x + pixel / a[2].out / a[1].out * a[1].in * a[2].in * s->cin;
    int64_t sum = 0;
    for (int64_t t = 0; t < 9; t++) {
        const int64_t y = oy + t / 3 - a[1].pad, xx = ox + t % 3 - a[2].pad;
        if (y < 0 || y >= a[1].in || xx < 0 || xx >= a[2].in)
            continue;
        for (int64_t c = 0; c < s->cin; c++)
            sum += (int64_t)image[(y * a[2].in + xx) * s->cin + c] *
                   (int8_t)w[(o * 9 + t) * s->cin + c];
    }
    return sum;
}

static void check(const struct ew_kernels *k, const struct ew_conv_shape *s, enum test_pattern p)
{
    const int64_t n_x = ref_conv_in_count(s), n_w = ref_conv_filter_count(s);
    const int64_t n_y = ref_conv_out_count(s);
    uint8_t *x = ew_guard_end((size_t)n_x, 1), *w = ew_guard_end((size_t)n_w, 1);
    float *y = ew_guard_end((size_t)n_y * sizeof(*y), sizeof(*y));
    float *ratio = test_array(s->cout, 1);
    test_bytes(p, x, n_x, w, n_w);
    for (int64_t o = 0; o < s->cout; o++)
        ratio[o] = 1;
    const struct ew_qconv_weights weights = {.w = w, .ratio = ratio};
    void *packed = test_scratch(k->int8_winograd_pack_size(s));
    void *scratch = test_scratch(k->int8_winograd_scratch(s));
    const struct ew_qconv q = {
        .shape = s, .x = x, .packed = packed, .y = y, .end = {.to_float = true}};
    k->int8_winograd_pack(s, &weights, packed, 0, k->int8_winograd_pack_tiles(s));
    k->int8_winograd_run(&q, 0, k->int8_winograd_tiles(s), scratch);
    for (int64_t i = 0; i < n_y; i++) {
        const int64_t want = sum_at(s, x, w, i);
        if (y[i] < (float)want || y[i] > (float)want) {
            EW_FAIL("[%lld] is %.9g, not %lld", (long long)i, (double)y[i], (long long)want);
            break;
        }
    }
    ew_guard_free(x);
    ew_guard_free(w);
    ew_guard_free(y);
    ew_guard_free(ratio);
    ew_guard_free(packed);
    ew_guard_free(scratch);
}

int main(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    for (int i = 0; ew_isa_at(i); i++) {
        const struct ew_kernels *k = ew_isa_at(i);
        for (size_t s = 0; s < EW_COUNT(shapes); s++)
            for (int p = 0; p < PATTERNS && k->int8_winograd_fits(&shapes[s]); p++) {
                ew_test_begin("%s: %d channels, pattern %d", k->isa, shapes[s].cin, p);
                check(k, &shapes[s], p);
                ew_test_end();
            }
        ew_test_begin("%s: too many channels", k->isa);
        struct ew_conv_shape deep = shapes[3];
        deep.cin++;
        EW_EXPECT(!k->int8_winograd_fits(&deep));
        ew_test_end();
    }
    return ew_test_status();
}
