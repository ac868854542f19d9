/* SPDX-License-Identifier: Apache-2.0 */
/* Fused dgrad + wgrad of 1x1 convolutions, with and without the batch norms around them, against
 * separate kernels; on every instruction set, tiles in either order. */
#include <string.h>

#include "float_isa.h"
#include "kernel_test.h"
#include "ref_conv.h"

/* clang-format off */
#define A1 {1, 1, 1, 1, 1, 0}
#define SIDE(n) {n, n, 1, 1, 1, 0}
static const struct {
    const char *name;
    enum ew_act act;
    struct ew_conv_shape s;
} cases[] = {
    {"expansion",  EW_ACT_HARD_SWISH, {2, 1, 16, 64, {A1, SIDE(23), SIDE(19)}}},
    {"projection", EW_ACT_NONE,       {3, 1, 72, 24, {A1, SIDE(17), SIDE(13)}}},
    {"odd",        EW_ACT_RELU,       {1, 1, 37, 41, {A1, SIDE(19), SIDE(19)}}},
    {"narrow",     EW_ACT_CLIP,       {2, 1, 5, 3, {A1, SIDE(31), SIDE(29)}}},
    {"wide",       EW_ACT_RELU,       {1, 1, 112, 480, {A1, SIDE(16), SIDE(16)}}},
};
#undef SIDE
#undef A1
/* clang-format on */

struct data {
    const struct ew_kernels *k;
    const struct ew_conv_shape *s;
    struct ew_batch_norm norm, output_norm; /* before and after the convolution */
    float *w, *packed, *x, *dy;             /* x and dy after the norms */
    float *dx[2], *dw[2], *sums[2];         /* expected, actual */
};

/* A norm of `channels`, with statistics and sums of its own. */
static void norm_init(struct ew_batch_norm *b, int64_t rows, int64_t channels, enum ew_act act)
{
    *b = (struct ew_batch_norm){.rows = rows,
                                .channels = channels,
                                .act = act,
                                .hi = 0.5f,
                                .x = test_array(rows * channels, 21),
                                .dy = test_array(rows * channels, 22),
                                .mean = test_array(channels, 23),
                                .rstd = test_array(channels, 24),
                                .scale = test_array(channels, 25),
                                .bias = test_array(channels, 26),
                                .sums = test_array(2 * channels, 27)};
}

static void norm_fini(const struct ew_batch_norm *b)
{
    const float *const all[] = {b->x, b->dy, b->mean, b->rstd, b->scale, b->bias, b->sums};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        ew_guard_free((void *)(uintptr_t)all[i]);
}

static void data_init(struct data *d, enum ew_act act)
{
    const struct ew_conv_shape *s = d->s;
    const int64_t n_x = ref_conv_in_count(s), n_y = ref_conv_out_count(s);
    norm_init(&d->norm, n_x / s->cin, s->cin, act);
    norm_init(&d->output_norm, n_x / s->cin, s->cout, act);
    d->w = test_array(ref_conv_filter_count(s), 3);
    d->packed = test_scratch(d->k->conv_dgrad_pack_size(s) * sizeof(float));
    d->k->conv_dgrad_pack(s, d->w, d->packed, 0, d->k->conv_dgrad_pack_tiles(s));
    d->x = test_array(n_x, 5);
    d->dy = test_array(n_y, 7);
    for (int i = 0; i < 2; i++) {
        d->dx[i] = test_array(n_x, 9);
        d->dw[i] = test_array(ref_conv_filter_count(s), 11);
        d->sums[i] = test_array(2 * s->cin, 13);
    }
    struct ew_batch_norm b = d->norm;
    b.y = d->x;
    d->k->batch_apply(&b, 0, b.rows);
    b = d->output_norm;
    b.dx = d->dy;
    d->k->batch_back_apply(&b, 0, b.rows);
}

static void data_fini(struct data *d)
{
    float *const all[] = {d->w,     d->packed, d->x,     d->dy,      d->dx[0],
                          d->dx[1], d->dw[0],  d->dw[1], d->sums[0], d->sums[1]};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        ew_guard_free(all[i]);
    norm_fini(&d->norm);
    norm_fini(&d->output_norm);
}

/* Separate kernels; accumulates into dx and dw if `add` is set. */
static void apart(const struct data *d, bool add)
{
    const struct ew_kernels *k = d->k;
    const struct ew_conv_shape *s = d->s;
    const struct ew_conv data = {.shape = *s,
                                 .x = d->dy,
                                 .w = d->packed,
                                 .y = d->dx[0],
                                 .end = {.add = add ? d->dx[0] : NULL}};
    void *scratch = test_scratch(k->conv_dgrad_scratch(s));
    k->conv_dgrad_run(&data, 0, k->conv_dgrad_tiles(s), scratch);
    ew_guard_free(scratch);
    struct ew_conv_wgrad f = {.shape = *s, .x = d->x, .dy = d->dy, .dw = d->dw[0], .add = add};
    f.partial = test_scratch(k->conv_wgrad_partial(s) * sizeof(float));
    scratch = test_scratch(k->conv_wgrad_scratch(s));
    k->conv_wgrad_run(&f, 0, k->conv_wgrad_tiles(s), scratch);
    k->conv_wgrad_sum(&f, 0, k->conv_wgrad_sum_tiles(s));
    ew_guard_free(scratch);
    ew_guard_free(f.partial);
    struct ew_batch_norm b = d->norm;
    b.dy = d->dx[0];
    b.partial = test_scratch(k->batch_partial(b.rows, b.channels) * sizeof(float));
    k->batch_back_stats(&b, 0, k->batch_splits(b.rows));
    k->batch_back_total(&b, d->sums[0]);
    ew_guard_free(b.partial);
}

static void at_once(const struct data *d, bool norms, bool add, bool reversed)
{
    const struct ew_kernels *k = d->k;
    const struct ew_conv_shape *s = d->s;
    const int64_t tiles = k->fused_grads_tiles(s);
    struct ew_fused_grads j = {.filter = {.shape = *s, .x = d->x, .dy = d->dy, .dw = d->dw[1]},
                               .w = d->packed,
                               .dx = d->dx[1],
                               .add_dx = add};
    j.filter.add = add;
    j.filter.partial = test_scratch(k->fused_grads_partial(s) * sizeof(float));
    float *sums = test_scratch((size_t)(tiles * 2 * s->cin) * sizeof(float));
    if (norms) {
        j.filter.norm = &d->norm;
        j.filter.x = d->norm.x;
        j.filter.dy = NULL;
        j.output_norm = &d->output_norm;
        j.norm_sums = sums;
    }
    void *scratch = test_scratch(k->fused_grads_scratch(s));
    for (int64_t i = 0; i < tiles; i++) {
        const int64_t tile = reversed ? tiles - 1 - i : i;
        k->fused_grads_run(&j, tile, tile + 1, scratch);
    }
    k->fused_grads_sum(&j, 0, k->fused_grads_sum_tiles(s));
    struct ew_batch_norm b = d->norm;
    b.partial = sums;
    b.splits = tiles;
    if (norms)
        k->batch_back_total(&b, d->sums[1]);
    ew_guard_free(scratch);
    ew_guard_free(sums);
    ew_guard_free(j.filter.partial);
}

/* Tolerance for sums of some thousand terms in another order. */
static void same(const float *want, const float *got, int64_t n, const char *what)
{
    double *w = test_zeros(n);
    for (int64_t i = 0; i < n; i++)
        w[i] = (double)want[i];
    test_close(got, w, n, 2e-5 * test_scale(w, n), what);
    free(w);
}

static void check(struct data *d, bool norms, bool add)
{
    const struct ew_conv_shape *s = d->s;
    const int64_t n_x = ref_conv_in_count(s), n_w = ref_conv_filter_count(s);
    memcpy(d->dx[1], d->dx[0], (size_t)n_x * sizeof(float));
    memcpy(d->dw[1], d->dw[0], (size_t)n_w * sizeof(float));
    at_once(d, norms, add, norms);
    apart(d, add);
    same(d->dx[0], d->dx[1], n_x, "dx");
    same(d->dw[0], d->dw[1], n_w, "dw");
    if (norms)
        same(d->sums[0], d->sums[1], 2 * s->cin, "sums");
}

int main(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    for (int i = 0; ew_float_isa_at(i); i++)
        for (size_t t = 0; t < sizeof(cases) / sizeof(cases[0]); t++) {
            struct data d = {.k = ew_float_isa_at(i), .s = &cases[t].s};
            ew_test_begin("%s: %s", d.k->isa, cases[t].name);
            EW_EXPECT(d.k->fused_grads_fits(d.s));
            data_init(&d, cases[t].act);
            check(&d, false, false);
            check(&d, false, true);
            check(&d, true, false);
            check(&d, true, true);
            data_fini(&d);
            ew_test_end();
        }
    return ew_test_status();
}
