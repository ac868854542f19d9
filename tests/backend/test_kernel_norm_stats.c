/* SPDX-License-Identifier: Apache-2.0 */
/* Batch norm statistics that convolutions accumulate from their outputs, against plain C in double;
 * the convolution's output keeps its bits. */
#include <string.h>

#include "kernel_test.h"
#include "ref_conv.h"

/* clang-format off */
#define A1 {1, 1, 1, 1, 1, 0}
static const struct {
    const char *name;
    struct ew_conv_shape s;
} cases[] = {
    {"1x1",                {4, 1, 24, 40, {A1, {13, 13, 1, 1, 1, 0}, {11, 11, 1, 1, 1, 0}}}},
    {"1x1, many pixels",   {8, 1, 8, 13, {A1, {50, 50, 1, 1, 1, 0}, {41, 41, 1, 1, 1, 0}}}},
    {"1x1, many outputs",  {2, 1, 300, 290, {A1, {17, 17, 1, 1, 1, 0}, {17, 17, 1, 1, 1, 0}}}},
    {"3x3 of 3 channels",  {3, 1, 3, 16, {A1, {32, 32, 3, 1, 1, 1}, {30, 30, 3, 1, 1, 1}}}},
    {"3x3",                {2, 1, 96, 24, {A1, {18, 18, 3, 1, 1, 1}, {18, 18, 3, 1, 1, 1}}}},
    {"3x3 of groups",      {2, 3, 60, 66, {A1, {32, 16, 3, 2, 1, 1}, {48, 24, 3, 2, 1, 1}}}},
    {"depthwise",          {4, 20, 20, 20, {A1, {15, 15, 3, 1, 1, 1}, {17, 17, 3, 1, 1, 1}}}},
    {"depthwise stride 2", {4, 70, 70, 70, {A1, {28, 14, 5, 2, 1, 2}, {30, 15, 5, 2, 1, 2}}}},
    {"depthwise dilated",  {4, 19, 19, 19, {A1, {15, 15, 3, 1, 2, 2}, {16, 16, 3, 1, 2, 2}}}},
};
#undef A1
/* clang-format on */

typedef void run_fn(const struct ew_conv *c, int64_t begin, int64_t end, void *scratch);

/* How a method's kernels divide a shape. */
struct way {
    struct ew_stats_split cut;
    int64_t tiles;
    size_t scratch;
    run_fn *run;
};

static struct way way_of(const struct ew_kernels *k, const struct ew_conv_shape *s)
{
    if (k->depthwise_fits(s))
        return (struct way){k->depthwise_stats_split(s), k->depthwise_tiles(s),
                            k->depthwise_scratch(s), k->depthwise_run};
    return (struct way){k->conv_stats_split(s), k->conv_tiles(s), k->conv_scratch(s), k->conv_run};
}

static float *pack(const struct ew_kernels *k, const struct ew_conv_shape *s, const float *w)
{
    const bool depthwise = k->depthwise_fits(s);
    const size_t size = depthwise ? k->depthwise_pack_size(s) : k->conv_pack_size(s);
    float *packed = test_scratch(size * sizeof(float));
    if (depthwise)
        k->depthwise_pack(s, w, packed);
    else
        k->conv_pack(s, w, packed, 0, k->conv_pack_tiles(s));
    return packed;
}

static void check(const struct ew_batch_norm *b, const float *y)
{
    double *mean = test_zeros(b->channels), *var = test_zeros(b->channels);
    for (int64_t c = 0; c < b->channels; c++) {
        for (int64_t r = 0; r < b->rows; r++)
            mean[c] += (double)y[r * b->channels + c] / (double)b->rows;
        for (int64_t r = 0; r < b->rows; r++)
            var[c] += pow((double)y[r * b->channels + c] - mean[c], 2) / (double)(b->rows - 1);
    }
    /* Values are about 100; the variance is computed from differences to one of them. */
    test_close(b->running_mean, mean, b->channels, 1e-5, "mean");
    test_close(b->running_var, var, b->channels, 1e-5 * (1 + test_scale(var, b->channels)), "var");
    free(mean);
    free(var);
}

static void stats(const struct ew_kernels *k, const struct ew_conv_shape *s)
{
    const int64_t n_y = ref_conv_out_count(s);
    const struct way way = way_of(k, s);
    float *x = test_array(ref_conv_in_count(s), 1), *w = test_array(ref_conv_filter_count(s), 3);
    float *bias = test_array(s->cout, 5), *packed = pack(k, s, w);
    float *want = test_array(n_y, 7), *got = test_array(n_y, 9);
    for (int64_t c = 0; c < s->cout; c++)
        bias[c] += 100; /* a mean with which a naive variance cancels */
    if (!EW_EXPECT(way.cut.size > 0))
        return;
    void *scratch = test_scratch(way.scratch);
    struct ew_conv c = {.shape = *s, .x = x, .w = packed, .y = want, .end = {.bias = bias}};
    way.run(&c, 0, way.tiles, scratch);
    c.y = got;
    c.stats = test_scratch(way.cut.size * sizeof(float));
    for (int64_t t = (way.tiles - 1) / way.cut.tiles * way.cut.tiles; t >= 0; t -= way.cut.tiles)
        way.run(&c, t, t + way.cut.tiles < way.tiles ? t + way.cut.tiles : way.tiles, scratch);
    EW_EXPECT(memcmp(want, got, (size_t)n_y * sizeof(float)) == 0);
    float *per[4];
    for (uint64_t i = 0; i < 4; i++)
        per[i] = test_array(s->cout, 11 + i);
    const struct ew_batch_norm b = {.rows = n_y / s->cout,
                                    .channels = s->cout,
                                    .eps = 1e-5f,
                                    .momentum = 1,
                                    .mean = per[0],
                                    .rstd = per[1],
                                    .running_mean = per[2],
                                    .running_var = per[3],
                                    .partial = c.stats,
                                    .split_rows = way.cut.rows};
    k->batch_finish(&b);
    check(&b, want);
    float *const all[] = {x,       w,      bias,   packed, want,   got,
                          c.stats, per[0], per[1], per[2], per[3], scratch};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        ew_guard_free(all[i]);
}

int main(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    for (int i = 0; ew_isa_at(i); i++)
        for (size_t t = 0; t < sizeof(cases) / sizeof(cases[0]); t++) {
            ew_test_begin("%s: %s", ew_isa_at(i)->isa, cases[t].name);
            stats(ew_isa_at(i), &cases[t].s);
            ew_test_end();
        }
    return ew_test_status();
}
