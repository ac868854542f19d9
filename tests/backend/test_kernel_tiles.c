/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions whose output or gradient is part of longer rows, dgrad masked by a relu's output,
 * and Winograd with unpacked filters: the same bits as the plain form. */
#include <string.h>

#include "backend/cpu/isa.h"
#include "kernel_test.h"
#include "ref_conv.h"

#define ROOM 9 /* floats between rows */

static const struct ew_conv_axis one = {1, 1, 1, 1, 1, 0};

/* n rows of `channels`, with gaps between them. */
static float *spread(const float *from, int64_t n, int64_t channels)
{
    float *to = test_array(n * (channels + ROOM), 77);
    for (int64_t i = 0; i < n; i++)
        memcpy(to + i * (channels + ROOM), from + i * channels, (size_t)channels * sizeof(float));
    return to;
}

static void forward(const struct ew_kernels *k, struct ew_conv_shape s, bool winograd)
{
    const int64_t n = ref_conv_out_count(&s), rows = n / s.cout;
    float *x = test_array(ref_conv_in_count(&s), 1), *w = test_array(ref_conv_filter_count(&s), 2);
    float *y = test_array(n, 3), *apart = test_array(rows * (s.cout + ROOM), 4);
    float *want = NULL;
    size_t size = winograd ? k->winograd_pack_size(&s) : k->conv_pack_size(&s);
    float *packed = test_scratch(size * sizeof(float));
    void *scratch = test_scratch(winograd ? k->winograd_scratch(&s) : k->conv_scratch(&s));
    if (winograd)
        k->winograd_pack(&s, w, false, packed, 0, k->winograd_pack_tiles(&s));
    else
        k->conv_pack(&s, w, packed, 0, k->conv_pack_tiles(&s));
    struct ew_conv c = {.shape = s, .x = x, .w = packed, .y = y};
    for (int i = 0; i < 2; i++) {
        if (winograd)
            k->winograd_run(&c, 0, k->winograd_tiles(&c.shape), scratch);
        else
            k->conv_run(&c, 0, k->conv_tiles(&c.shape), scratch);
        c.shape.y_step = s.cout + ROOM;
        c.y = apart;
    }
    want = spread(y, rows, s.cout);
    for (int64_t i = 0; i < rows; i++)
        EW_EXPECT(memcmp(apart + i * (s.cout + ROOM), want + i * (s.cout + ROOM),
                         (size_t)s.cout * sizeof(float)) == 0);
    ew_guard_free(x);
    ew_guard_free(w);
    ew_guard_free(y);
    ew_guard_free(apart);
    ew_guard_free(want);
    ew_guard_free(packed);
    ew_guard_free(scratch);
}

/* Winograd with unpacked filters, in one range of tiles and in single ones. */
static void unpacked(const struct ew_kernels *k, struct ew_conv_shape s, bool flip)
{
    const int64_t n = ref_conv_out_count(&s);
    float *x = test_array(ref_conv_in_count(&s), 1), *w = test_array(ref_conv_filter_count(&s), 2);
    float *want = test_array(n, 3), *y = test_array(n, 4), *bias = test_array(s.cout, 5);
    float *packed = test_scratch(k->winograd_pack_size(&s) * sizeof(float));
    void *scratch = test_scratch(k->winograd_scratch(&s));
    struct ew_conv c = {.shape = s, .x = x, .w = packed, .y = want, .end = {.bias = bias}};
    k->winograd_pack(&s, w, flip, packed, 0, k->winograd_pack_tiles(&s));
    k->winograd_run(&c, 0, k->winograd_tiles(&s), scratch);
    ew_guard_free(scratch);
    c.shape.unpacked = true;
    c.flip = flip;
    c.w = w;
    c.y = y;
    scratch = test_scratch(k->winograd_scratch(&c.shape));
    for (int apart = 0; apart < 2; apart++) {
        const int64_t tiles = k->winograd_tiles(&c.shape);
        if (!apart)
            k->winograd_run(&c, 0, tiles, scratch);
        for (int64_t t = tiles - 1; apart && t >= 0; t--)
            k->winograd_run(&c, t, t + 1, scratch);
        EW_EXPECT(memcmp(y, want, (size_t)n * sizeof(float)) == 0);
        memset(y, 0, (size_t)n * sizeof(float));
    }
    ew_guard_free(x);
    ew_guard_free(w);
    ew_guard_free(want);
    ew_guard_free(y);
    ew_guard_free(bias);
    ew_guard_free(packed);
    ew_guard_free(scratch);
}

static void data_gradient(const struct ew_kernels *k, struct ew_conv_shape s)
{
    const int64_t n = ref_conv_in_count(&s), rows = ref_conv_out_count(&s) / s.cout;
    float *dy = test_array(rows * s.cout, 1), *w = test_array(ref_conv_filter_count(&s), 2);
    float *dx = test_array(n, 3), *masked = test_array(n, 4), *x = test_array(n, 5);
    float *apart = spread(dy, rows, s.cout);
    float *packed = test_scratch(k->conv_dgrad_pack_size(&s) * sizeof(float));
    void *scratch = test_scratch(k->conv_dgrad_scratch(&s));
    k->conv_dgrad_pack(&s, w, packed, 0, k->conv_dgrad_pack_tiles(&s));
    struct ew_conv c = {.shape = s, .x = dy, .w = packed, .y = dx};
    k->conv_dgrad_run(&c, 0, k->conv_dgrad_tiles(&s), scratch);
    c.shape.y_step = s.cout + ROOM;
    c.x = apart;
    c.y = masked;
    c.end.mask = x;
    k->conv_dgrad_run(&c, 0, k->conv_dgrad_tiles(&c.shape), scratch);
    for (int64_t i = 0; i < n; i++)
        dx[i] = x[i] > 0 ? dx[i] : 0;
    EW_EXPECT(memcmp(dx, masked, (size_t)n * sizeof(float)) == 0);
    ew_guard_free(dy);
    ew_guard_free(w);
    ew_guard_free(dx);
    ew_guard_free(masked);
    ew_guard_free(x);
    ew_guard_free(apart);
    ew_guard_free(packed);
    ew_guard_free(scratch);
}

static void walk_raw(const struct ew_kernels *k)
{
    const struct ew_conv_axis four = {4, 4, 3, 1, 1, 1}, nine = {9, 9, 3, 1, 1, 1};
    const struct ew_conv_axis two = {2, 2, 3, 1, 1, 1}, seven = {7, 7, 3, 1, 1, 1};
    const struct ew_conv_shape shapes[] = {
        {16, 1, 128, 128, {one, four, four}},
        {5, 1, 37, 41, {one, four, nine}},
        {7, 1, 300, 20, {one, nine, nine}},
        {1, 1, 64, 70, {one, {7, 7, 5, 1, 1, 2}, {7, 7, 5, 1, 1, 2}}},
        {4, 1, 144, 40, {two, seven, seven}}};
    for (int i = 0; i < 5; i++) {
        ew_test_begin("unpacked %s, shape %d", k->isa, i);
        unpacked(k, shapes[i], false);
        unpacked(k, shapes[i], true);
        ew_test_end();
    }
    EW_EXPECT(k->winograd_unpacked(&shapes[0]) && !k->winograd_unpacked(&shapes[2]));
    const struct ew_conv_shape clips = {4, 1, 512, 512, {two, seven, seven}}; /* 108 MiB packed */
    EW_EXPECT(k->winograd_unpacked(&clips) && !k->winograd_unpacked(&shapes[4]));
}

int main(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    const struct ew_conv_axis same = {9, 9, 3, 1, 1, 1}, point = {9, 9, 1, 1, 1, 0};
    const struct ew_conv_shape shapes[] = {{3, 1, 20, 24, {one, same, same}},
                                           {3, 1, 40, 70, {one, point, point}}};
    const struct ew_kernels *k;
    for (int i = 0; (k = ew_isa_at(i)); i++) {
        walk_raw(k);
        for (int j = 0; j < 2; j++) {
            ew_test_begin("apart %s, shape %d", k->isa, j);
            forward(k, shapes[j], false);
            if (k->winograd_fits(&shapes[j]))
                forward(k, shapes[j], true);
            data_gradient(k, shapes[j]);
            ew_test_end();
        }
    }
    return ew_test_status();
}
