/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that apply a batch norm to x as they read it, and compute another one's gradient as they
 * read dy: the same bits as with separate steps, on every instruction set, in any order of
 * tiles. */
#include <string.h>

#include "kernel_test.h"
#include "ref_conv.h"

/* clang-format off */
#define A1 {1, 1, 1, 1, 1, 0}
static const struct {
    const char *name;
    enum ew_act act;
    struct ew_conv_shape s;
} cases[] = {
    {"3x3",          EW_ACT_HARD_SWISH, {2, 20, 20, 20, {A1, {9, 9, 3, 1, 1, 1}, {11, 11, 3, 1, 1, 1}}}},
    {"3x3 stride 2", EW_ACT_RELU,       {3, 40, 40, 40, {A1, {9, 5, 3, 2, 1, 1}, {12, 6, 3, 2, 1, 1}}}},
    {"5x5",          EW_ACT_CLIP,       {1, 33, 33, 33, {A1, {6, 6, 5, 1, 1, 2}, {7, 7, 5, 1, 1, 2}}}},
    {"5x5 stride 2", EW_ACT_NONE,       {2, 16, 16, 16, {A1, {8, 4, 5, 2, 1, 2}, {7, 5, 5, 2, 1, 3}}}},
    {"dilated",      EW_ACT_SILU,       {2, 19, 19, 19, {A1, {8, 8, 3, 1, 2, 2}, {9, 9, 3, 1, 2, 2}}}},
    {"stride 3",     EW_ACT_RELU,       {1, 5, 5, 5, {A1, {13, 5, 2, 3, 1, 1}, {9, 3, 3, 3, 1, 0}}}},
    {"planes",       EW_ACT_RELU,       {2, 9, 9, 9, {{4, 4, 1, 1, 1, 0}, {5, 5, 3, 1, 1, 1}, {6, 3, 3, 2, 1, 1}}}},
};
static const struct ew_conv_shape points[] = {
    {2, 1, 64, 24, {A1, {13, 13, 1, 1, 1, 0}, {11, 11, 1, 1, 1, 0}}},
    {1, 1, 37, 17, {A1, {29, 29, 1, 1, 1, 0}, {9, 9, 1, 1, 1, 0}}},
    {3, 1, 300, 7, {A1, A1, {25, 25, 1, 1, 1, 0}}},
};
#undef A1
/* clang-format on */

struct data {
    struct ew_batch_norm norm;
    float *x, *z, *w, *packed, *dy;
    int64_t n_x, n_w, n_y;
};

static void data_init(const struct ew_kernels *k, const struct ew_conv_shape *s, struct data *d)
{
    d->n_x = ref_conv_in_count(s);
    d->n_w = ref_conv_filter_count(s);
    d->n_y = ref_conv_out_count(s);
    d->x = test_array(d->n_x, 1);
    d->z = test_array(d->n_x, 2);
    d->w = test_array(d->n_w, 3);
    d->dy = test_array(d->n_y, 4);
    d->packed = test_scratch(k->depthwise_pack_size(s) * sizeof(float));
    d->norm.rows = d->n_x / s->cin;
    d->norm.channels = s->cin;
    d->norm.x = d->x;
    d->norm.y = d->z;
    d->norm.hi = 0.5f;
    d->norm.mean = test_array(s->cin, 5);
    d->norm.rstd = test_array(s->cin, 6);
    d->norm.scale = test_array(s->cin, 7);
    d->norm.bias = test_array(s->cin, 8);
    k->batch_apply(&d->norm, 0, d->norm.rows);
    k->depthwise_pack(s, d->w, d->packed);
}

static void data_fini(struct data *d)
{
    const float *const all[] = {d->x,         d->z,         d->w,          d->dy,       d->packed,
                                d->norm.mean, d->norm.rstd, d->norm.scale, d->norm.bias};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        ew_guard_free((void *)(uintptr_t)all[i]);
}

static void forward(const struct ew_kernels *k, const struct ew_conv_shape *s, const struct data *d)
{
    float *want = test_array(d->n_y, 9), *got = test_array(d->n_y, 10);
    struct ew_conv c = {.shape = *s, .x = d->z, .w = d->packed, .y = want};
    const int64_t tiles = k->depthwise_tiles(s);
    void *scratch = test_scratch(k->depthwise_scratch(s));
    k->depthwise_run(&c, 0, tiles, scratch);
    ew_guard_free(scratch);
    c.shape.input_norm = true;
    c.x = d->x;
    c.y = got;
    c.norm = &d->norm;
    scratch = test_scratch(k->depthwise_scratch(&c.shape));
    k->depthwise_run(&c, 0, tiles, scratch);
    EW_EXPECT(memcmp(want, got, (size_t)d->n_y * sizeof(float)) == 0);
    memset(got, 0, (size_t)d->n_y * sizeof(float));
    for (int64_t t = tiles - 1; t >= 0; t--)
        k->depthwise_run(&c, t, t + 1, scratch);
    EW_EXPECT(memcmp(want, got, (size_t)d->n_y * sizeof(float)) == 0);
    ew_guard_free(scratch);
    ew_guard_free(want);
    ew_guard_free(got);
}

/* A 1x1 convolution after a norm. */
static void point(const struct ew_kernels *k, const struct ew_conv_shape *s, enum ew_act act)
{
    const int64_t n_x = ref_conv_in_count(s), n_y = ref_conv_out_count(s);
    struct ew_batch_norm b = {.rows = n_x / s->cin, .channels = s->cin, .act = act, .hi = 0.5f};
    float *x = test_array(n_x, 1), *z = test_array(n_x, 2);
    float *w = test_array(ref_conv_filter_count(s), 3);
    float *y[2] = {test_array(n_y, 4), test_array(n_y, 6)};
    float *packed = test_scratch(k->conv_pack_size(s) * sizeof(float));
    float *per[4];
    for (uint64_t i = 0; i < 4; i++)
        per[i] = test_array(s->cin, 8 + i);
    b.x = x;
    b.y = z;
    b.mean = per[0];
    b.rstd = per[1];
    b.scale = per[2];
    b.bias = per[3];
    k->batch_apply(&b, 0, b.rows);
    k->conv_pack(s, w, packed, 0, k->conv_pack_tiles(s));
    for (int input_norm = 0; input_norm < 2; input_norm++) {
        struct ew_conv c = {.shape = *s, .x = input_norm ? x : z, .w = packed, .y = y[input_norm]};
        c.shape.input_norm = input_norm;
        c.norm = &b;
        void *scratch = test_scratch(k->conv_scratch(&c.shape));
        for (int64_t t = k->conv_tiles(s) - 1; t >= 0; t--)
            k->conv_run(&c, t, t + 1, scratch);
        ew_guard_free(scratch);
    }
    EW_EXPECT(memcmp(y[0], y[1], (size_t)n_y * sizeof(float)) == 0);
    float *const all[] = {x, z, w, y[0], y[1], packed, per[0], per[1], per[2], per[3]};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        ew_guard_free(all[i]);
}

static void filter(const struct ew_kernels *k, const struct ew_conv_shape *s, const struct data *d)
{
    float *want = test_array(d->n_w, 11), *got = test_array(d->n_w, 12);
    struct ew_conv_wgrad f = {.shape = *s, .x = d->z, .dy = d->dy, .dw = want};
    f.partial = test_scratch(k->depthwise_wgrad_partial(s) * sizeof(float));
    const int64_t tiles = k->depthwise_wgrad_tiles(s);
    for (int input_norm = 0; input_norm < 2; input_norm++) {
        f.shape.input_norm = input_norm;
        f.norm = input_norm ? &d->norm : NULL;
        f.x = input_norm ? d->x : d->z;
        f.dw = input_norm ? got : want;
        void *scratch = test_scratch(k->depthwise_wgrad_scratch(&f.shape));
        k->depthwise_wgrad_run(&f, 0, tiles, scratch);
        k->depthwise_wgrad_sum(&f, 0, k->depthwise_wgrad_sum_tiles(s));
        ew_guard_free(scratch);
    }
    EW_EXPECT(memcmp(want, got, (size_t)d->n_w * sizeof(float)) == 0);
    ew_guard_free(f.partial);
    ew_guard_free(want);
    ew_guard_free(got);
}

/* The gradient through a batch norm after the layer. */
static struct ew_batch_norm behind_init(const struct ew_kernels *k, const struct ew_conv_shape *s,
                                        const struct data *d, float *dy)
{
    struct ew_batch_norm b = d->norm;
    b.rows = d->n_y / s->cout;
    b.x = test_array(d->n_y, 31);
    b.dy = d->dy;
    b.sums = test_array(2 * s->cout, 33);
    b.dx = dy;
    k->batch_back_apply(&b, 0, b.rows);
    return b;
}

/* Separate steps: dx, dw and the sums of the norm before the layer. */
static void apart(const struct ew_kernels *k, const struct ew_conv_shape *s, const struct data *d,
                  const float *dy, float *const out[3])
{
    float *packed = test_scratch(k->depthwise_pack_size(s) * sizeof(float));
    k->depthwise_dgrad_pack(s, d->w, packed);
    const struct ew_conv c = {.shape = *s, .x = dy, .w = packed, .y = out[0]};
    void *scratch = test_scratch(k->depthwise_dgrad_scratch(s));
    k->depthwise_dgrad_run(&c, 0, k->depthwise_dgrad_tiles(s), scratch);
    ew_guard_free(scratch);
    ew_guard_free(packed);
    struct ew_conv_wgrad f = {.shape = *s, .x = d->z, .dy = dy, .dw = out[1]};
    f.partial = test_scratch(k->depthwise_wgrad_partial(s) * sizeof(float));
    scratch = test_scratch(k->depthwise_wgrad_scratch(s));
    k->depthwise_wgrad_run(&f, 0, k->depthwise_wgrad_tiles(s), scratch);
    k->depthwise_wgrad_sum(&f, 0, k->depthwise_wgrad_sum_tiles(s));
    ew_guard_free(scratch);
    ew_guard_free(f.partial);
    struct ew_batch_norm b = d->norm;
    b.dy = out[0];
    b.partial = test_scratch(k->batch_partial(b.rows, b.channels) * sizeof(float));
    k->batch_back_stats(&b, 0, k->batch_splits(b.rows));
    k->batch_back_total(&b, out[2]);
    ew_guard_free(b.partial);
}

static void at_once(const struct ew_kernels *k, const struct ew_conv_shape *s, const struct data *d,
                    const struct ew_batch_norm *output_norm, float *const out[3])
{
    const int64_t tiles = k->depthwise_wgrad_tiles(s);
    float *packed = test_scratch(k->depthwise_pack_size(s) * sizeof(float));
    k->depthwise_dgrad_pack(s, d->w, packed);
    struct ew_fused_grads j = {.filter = {.shape = *s, .x = d->x, .dw = out[1], .norm = &d->norm},
                               .w = packed,
                               .dx = out[0],
                               .output_norm = output_norm};
    j.filter.shape.input_norm = true;
    j.filter.partial = test_scratch(k->depthwise_wgrad_partial(s) * sizeof(float));
    j.norm_sums = test_scratch((size_t)(tiles * 2 * s->cin) * sizeof(float));
    void *scratch = test_scratch(k->depthwise_fused_grads_scratch(&j.filter.shape));
    for (int64_t t = tiles - 1; t >= 0; t--)
        k->depthwise_fused_grads_run(&j, t, t + 1, scratch);
    k->depthwise_wgrad_sum(&j.filter, 0, k->depthwise_wgrad_sum_tiles(s));
    struct ew_batch_norm b = d->norm;
    b.partial = j.norm_sums;
    b.splits = tiles;
    k->batch_back_total(&b, out[2]);
    ew_guard_free(scratch);
    ew_guard_free(packed);
    ew_guard_free(j.filter.partial);
    ew_guard_free(j.norm_sums);
}

/* Fused dgrad + wgrad: the same bits, except for the norm's sums, which are added in another
 * order. */
static void joint(const struct ew_kernels *k, const struct ew_conv_shape *s, const struct data *d)
{
    const int64_t n[3] = {d->n_x, d->n_w, 2 * s->cin};
    float *want[3], *got[3], *dy = test_array(d->n_y, 35);
    double *sums = test_zeros(n[2]);
    for (int i = 0; i < 3; i++) {
        want[i] = test_array(n[i], 37);
        got[i] = test_array(n[i], 39);
    }
    EW_EXPECT(k->depthwise_fused_grads_fits(s));
    const struct ew_batch_norm output_norm = behind_init(k, s, d, dy);
    apart(k, s, d, dy, want);
    at_once(k, s, d, &output_norm, got);
    EW_EXPECT(memcmp(want[0], got[0], (size_t)n[0] * sizeof(float)) == 0);
    EW_EXPECT(memcmp(want[1], got[1], (size_t)n[1] * sizeof(float)) == 0);
    for (int64_t i = 0; i < n[2]; i++)
        sums[i] = (double)want[2][i];
    test_close(got[2], sums, n[2], 1e-5 * test_scale(sums, n[2]), "sums");
    for (int i = 0; i < 3; i++) {
        ew_guard_free(want[i]);
        ew_guard_free(got[i]);
    }
    free(sums);
    ew_guard_free(dy);
    ew_guard_free((void *)(uintptr_t)output_norm.x);
    ew_guard_free(output_norm.sums);
}

int main(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    for (int i = 0; ew_isa_at(i); i++)
        for (size_t t = 0; t < sizeof(cases) / sizeof(cases[0]); t++) {
            const struct ew_kernels *k = ew_isa_at(i);
            ew_test_begin("%s: %s", k->isa, cases[t].name);
            struct data d = {.norm = {.act = cases[t].act}};
            EW_EXPECT(k->depthwise_norms(&cases[t].s));
            data_init(k, &cases[t].s, &d);
            forward(k, &cases[t].s, &d);
            filter(k, &cases[t].s, &d);
            joint(k, &cases[t].s, &d);
            data_fini(&d);
            ew_test_end();
        }
    for (int i = 0; ew_isa_at(i); i++)
        for (size_t t = 0; t < sizeof(points) / sizeof(points[0]); t++) {
            ew_test_begin("%s: 1x1 of %d channels", ew_isa_at(i)->isa, points[t].cin);
            if (EW_EXPECT(ew_isa_at(i)->conv_norms(&points[t])))
                point(ew_isa_at(i), &points[t], EW_ACT_CLIP);
            ew_test_end();
        }
    return ew_test_status();
}
