/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of training only, on layers of common networks: small feature maps and dense layers
 * forward and backward with their update, Winograd wgrad, and Winograd with few channels. */
#include "lab.h"
#include "ref_conv.h"

/* clang-format off */
#define A1            {1, 1, 1, 1, 1, 0}
#define SQ(in, k, s, p) {in, (in + 2 * (p) - (k)) / (s) + 1, k, s, 1, p}
#define L(name, n, ci, co, in, k, s, p) {name, {n, 1, ci, co, {A1, SQ(in, k, s, p), SQ(in, k, s, p)}}}
#define D(name, n, ci, co) {name, {n, 1, ci, co, {A1, A1, A1}}}

enum { LAYERS = 16 };
static const struct lab_layer layers[LAYERS] = {
    L("resnet 7x7 s2 3-64 @32 batch 16",    16, 3, 64, 32, 7, 2, 3),
    L("resnet 3x3 64-64 @8 batch 16",       16, 64, 64, 8, 3, 1, 1),
    L("resnet 3x3 128-128 @4 batch 16",     16, 128, 128, 4, 3, 1, 1),
    L("resnet 3x3 s2 128-256 @4 batch 16",  16, 128, 256, 4, 3, 2, 1),
    L("resnet 3x3 256-256 @2 batch 16",     16, 256, 256, 2, 3, 1, 1),
    L("resnet 3x3 s2 256-512 @2 batch 16",  16, 256, 512, 2, 3, 2, 1),
    L("resnet 3x3 512-512 @1 batch 16",     16, 512, 512, 1, 3, 1, 1),
    L("squeezenet 3x3 64-256 @13 batch 16", 16, 64, 256, 13, 3, 1, 1),
    L("alexnet 11x11 s4 3-64 @224 batch 16", 16, 3, 64, 224, 11, 4, 2),
    L("alexnet 5x5 64-192 @27 batch 16",    16, 64, 192, 27, 5, 1, 2),
    L("alexnet 3x3 384-256 @13 batch 16",   16, 384, 256, 13, 3, 1, 1),
    L("lenet 5x5 6-16 @14 batch 16",        16, 6, 16, 14, 5, 1, 0),
    D("lenet dense 400-120 batch 16",       16, 400, 120),
    D("dense 512-512 batch 64",             64, 512, 512),
    D("alexnet dense 4096-4096 batch 64",   64, 4096, 4096),
    D("alexnet dense 9216-4096 batch 64",   64, 9216, 4096),
};
/* clang-format on */

static const char *layer_name(int i)
{
    return layers[i].name;
}

struct ctx {
    const struct ew_kernels *k;
    struct ew_conv conv;
    struct ew_unpacked_conv tap_pairs;
    struct ew_unpacked_grads grad;
    struct ew_update update;
    void *scratch;
};

static void tap_pairs(void *p)
{
    const struct ctx *c = p;
    const struct ew_conv_shape *s = &c->tap_pairs.shape;
    c->k->tap_pairs_transpose(&c->tap_pairs, 0, c->k->tap_pairs_transpose_tiles(s));
    c->k->tap_pairs_run(&c->tap_pairs, 0, c->k->tap_pairs_tiles(s), c->scratch);
}

static void tap_pairs_grad(void *p)
{
    const struct ctx *c = p;
    const struct ew_conv_shape *s = &c->grad.filter.shape;
    c->k->tap_pairs_grad_transpose(&c->grad, 0, c->k->tap_pairs_grad_transpose_tiles(s));
    c->k->tap_pairs_grad_run(&c->grad, 0, c->k->tap_pairs_grad_tiles(s), c->scratch);
    c->k->tap_pairs_grad_sum(&c->grad, 0, c->k->tap_pairs_grad_sum_tiles(s));
}

static void winograd_wgrad(void *p)
{
    const struct ctx *c = p;
    const struct ew_conv_shape *s = &c->grad.filter.shape;
    for (int64_t i = 0; i < c->k->winograd_wgrad_phases(s); i++)
        c->k->winograd_wgrad_run(&c->grad.filter, i, 0, c->k->winograd_wgrad_tiles(s, i),
                                 c->scratch);
}

static void winograd_5x5(void *p)
{
    const struct ctx *c = p;
    const struct ew_conv_shape *s = &c->conv.shape;
    c->k->winograd_5x5_pack(s, c->grad.w, c->grad.shared);
    c->k->winograd_5x5_run(&c->conv, 0, c->k->winograd_5x5_tiles(s), c->scratch);
}

static void winograd_5x5_grad(void *p)
{
    const struct ctx *c = p;
    const struct ew_conv_shape *s = &c->grad.filter.shape;
    c->k->winograd_5x5_grad_pack(&c->grad, c->scratch);
    c->k->winograd_5x5_grad_run(&c->grad, 0, c->k->winograd_5x5_grad_tiles(s), c->scratch);
    c->k->winograd_5x5_grad_sum(&c->grad);
}

/* Sets up everything except scratch and the memory shared by threads. */
static struct ctx *setup(const struct ew_kernels *k, const struct ew_conv_shape *s,
                         struct lab_job *out)
{
    static struct ctx c;
    float *x = lab_array((size_t)ref_conv_in_count(s));
    float *w = lab_array((size_t)ref_conv_filter_count(s));
    float *y = lab_array((size_t)ref_conv_out_count(s));
    c.k = k;
    c.tap_pairs = (struct ew_unpacked_conv){.shape = *s, .x = x, .w = w, .y = y};
    c.update.sgd = (struct ew_sgd){
        .rate = 1e-6f, .momentum = 0.9f, .w = w, .m = lab_array((size_t)ref_conv_filter_count(s))};
    c.grad =
        (struct ew_unpacked_grads){.filter = {.shape = *s, .x = x, .dy = y, .update = &c.update},
                                   .w = w,
                                   .dx = lab_array((size_t)ref_conv_in_count(s))};
    *out = (struct lab_job){.ctx = &c, .flops = 2 * ref_conv_macs(s)};
    return &c;
}

/* Flops count all taps, padding included; bytes are those of the filter. */
static void tap_pairs_setup(const struct ew_kernels *k, int i, struct lab_job *out)
{
    const struct ew_conv_shape *s = &layers[i].shape;
    if (!k->tap_pairs_fits(s)) {
        *out = (struct lab_job){0};
        return;
    }
    struct ctx *c = setup(k, s, out);
    c->tap_pairs.transposed = lab_array(k->tap_pairs_transposed(s));
    c->scratch = lab_array(k->tap_pairs_scratch(s) / sizeof(float));
    out->bytes = 4 * (double)ref_conv_filter_count(s);
    out->run = tap_pairs;
}

static void tap_pairs_grad_setup(const struct ew_kernels *k, int i, struct lab_job *out)
{
    const struct ew_conv_shape *s = &layers[i].shape;
    if (!k->tap_pairs_fits(s)) {
        *out = (struct lab_job){0};
        return;
    }
    struct ctx *c = setup(k, s, out);
    c->grad.shared = lab_array(k->tap_pairs_grad_shared(s));
    c->scratch = lab_array(k->tap_pairs_grad_scratch(s) / sizeof(float));
    out->flops *= 2;
    out->bytes = 16 * (double)ref_conv_filter_count(s); /* filter and momentum, read and written */
    out->run = tap_pairs_grad;
}

static void winograd_wgrad_setup(const struct ew_kernels *k, int i, struct lab_job *out)
{
    const struct ew_conv_shape *s = &layers[i].shape;
    if (!k->winograd_wgrad_fits(s)) {
        *out = (struct lab_job){0};
        return;
    }
    struct ctx *c = setup(k, s, out);
    c->grad.filter.partial = lab_array(k->winograd_wgrad_shared(s));
    c->scratch = lab_array(k->winograd_wgrad_scratch(s) / sizeof(float));
    out->run = winograd_wgrad;
}

static void winograd_5x5_setup(const struct ew_kernels *k, int i, struct lab_job *out)
{
    const struct ew_conv_shape *s = &layers[i].shape;
    if (!k->winograd_5x5_fits(s)) {
        *out = (struct lab_job){0};
        return;
    }
    struct ctx *c = setup(k, s, out);
    c->grad.shared = lab_array(k->winograd_5x5_pack_size(s));
    c->conv = (struct ew_conv){.shape = *s,
                               .x = c->tap_pairs.x,
                               .w = c->grad.shared,
                               .y = lab_array((size_t)ref_conv_out_count(s))};
    c->scratch = lab_array(k->winograd_5x5_scratch(s) / sizeof(float));
    out->run = winograd_5x5;
}

static void winograd_5x5_grad_setup(const struct ew_kernels *k, int i, struct lab_job *out)
{
    const struct ew_conv_shape *s = &layers[i].shape;
    if (!k->winograd_5x5_fits(s)) {
        *out = (struct lab_job){0};
        return;
    }
    struct ctx *c = setup(k, s, out);
    c->grad.shared = lab_array(k->winograd_5x5_grad_shared(s));
    c->scratch = lab_array(k->winograd_5x5_grad_scratch(s) / sizeof(float));
    out->flops *= 2;
    out->run = winograd_5x5_grad;
}

const struct lab_experiment lab_train[] = {
    {"tap_pairs", "small feature maps and dense layers, forward", LAYERS, layer_name,
     tap_pairs_setup},
    {"tap_pairs_grad", "both gradients and the update", LAYERS, layer_name, tap_pairs_grad_setup},
    {"winograd_wgrad", "gradient for the filter", LAYERS, layer_name, winograd_wgrad_setup},
    {"winograd_5x5", "few channels by F(5x5, 5x5), forward", LAYERS, layer_name,
     winograd_5x5_setup},
    {"winograd_5x5_grad", "both gradients and the update", LAYERS, layer_name,
     winograd_5x5_grad_setup},
    {0}};
