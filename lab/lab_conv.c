/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions and dense layers of common networks, batch 1 unless the name says otherwise. */
#include <stdlib.h>

#include "lab.h"
#include "ref_conv.h"

/* clang-format off */
#define A1            {1, 1, 1, 1, 1, 0}
#define SQ(in, k, s, p) {in, (in + 2 * (p) - (k)) / (s) + 1, k, s, 1, p}
#define L(name, n, g, ci, co, in, k, s, p) {name, {n, g, ci, co, {A1, SQ(in, k, s, p), SQ(in, k, s, p)}}}
#define D(name, n, ci, co) {name, {n, 1, ci, co, {A1, A1, A1}}}

const struct lab_layer lab_layers[LAB_LAYERS] = {
    L("resnet stem 7x7 s2 3-64 @224",   1, 1, 3, 64, 224, 7, 2, 3),
    L("resnet 3x3 64-64 @56",           1, 1, 64, 64, 56, 3, 1, 1),
    L("resnet 3x3 128-128 @28",         1, 1, 128, 128, 28, 3, 1, 1),
    L("resnet 3x3 256-256 @14",         1, 1, 256, 256, 14, 3, 1, 1),
    L("resnet 3x3 512-512 @7",          1, 1, 512, 512, 7, 3, 1, 1),
    L("resnet 3x3 s2 128-128 @56",      1, 1, 128, 128, 56, 3, 2, 1),
    L("resnet 3x3 s2 512-512 @14",      1, 1, 512, 512, 14, 3, 2, 1),
    L("resnet50 1x1 64-64 @56",         1, 1, 64, 64, 56, 1, 1, 0),
    L("resnet50 1x1 64-256 @56",        1, 1, 64, 256, 56, 1, 1, 0),
    L("resnet50 1x1 256-64 @56",        1, 1, 256, 64, 56, 1, 1, 0),
    L("resnet50 1x1 s2 256-512 @56",    1, 1, 256, 512, 56, 1, 2, 0),
    L("resnet50 1x1 512-128 @28",       1, 1, 512, 128, 28, 1, 1, 0),
    L("resnet50 1x1 128-512 @28",       1, 1, 128, 512, 28, 1, 1, 0),
    L("resnet50 1x1 1024-256 @14",      1, 1, 1024, 256, 14, 1, 1, 0),
    L("resnet50 1x1 256-1024 @14",      1, 1, 256, 1024, 14, 1, 1, 0),
    L("resnet50 1x1 2048-512 @7",       1, 1, 2048, 512, 7, 1, 1, 0),
    L("resnet50 1x1 512-2048 @7",       1, 1, 512, 2048, 7, 1, 1, 0),
    L("vgg 3x3 3-64 @224",              1, 1, 3, 64, 224, 3, 1, 1),
    L("vgg 3x3 64-128 @112",            1, 1, 64, 128, 112, 3, 1, 1),
    L("vgg 3x3 256-256 @56",            1, 1, 256, 256, 56, 3, 1, 1),
    L("vgg 3x3 512-512 @28",            1, 1, 512, 512, 28, 3, 1, 1),
    L("mobilenet 3x3 s2 3-32 @224",     1, 1, 3, 32, 224, 3, 2, 1),
    L("mobilenet_v1 1x1 32-64 @112",    1, 1, 32, 64, 112, 1, 1, 0),
    L("mobilenet_v1 1x1 64-128 @56",    1, 1, 64, 128, 56, 1, 1, 0),
    L("mobilenet_v1 1x1 128-128 @56",   1, 1, 128, 128, 56, 1, 1, 0),
    L("mobilenet_v1 1x1 256-256 @28",   1, 1, 256, 256, 28, 1, 1, 0),
    L("mobilenet_v1 1x1 512-512 @14",   1, 1, 512, 512, 14, 1, 1, 0),
    L("mobilenet_v1 1x1 1024-1024 @7",  1, 1, 1024, 1024, 7, 1, 1, 0),
    L("mobilenet 1x1 32-16 @112",       1, 1, 32, 16, 112, 1, 1, 0),
    L("mobilenet 1x1 16-96 @112",       1, 1, 16, 96, 112, 1, 1, 0),
    L("mobilenet 1x1 96-24 @56",        1, 1, 96, 24, 56, 1, 1, 0),
    L("mobilenet 1x1 24-144 @56",       1, 1, 24, 144, 56, 1, 1, 0),
    L("mobilenet 1x1 144-32 @28",       1, 1, 144, 32, 28, 1, 1, 0),
    L("mobilenet 1x1 384-64 @14",       1, 1, 384, 64, 14, 1, 1, 0),
    L("mobilenet 1x1 64-384 @14",       1, 1, 64, 384, 14, 1, 1, 0),
    L("mobilenet 1x1 160-960 @7",       1, 1, 160, 960, 7, 1, 1, 0),
    L("mobilenet 1x1 960-160 @7",       1, 1, 960, 160, 7, 1, 1, 0),
    L("mobilenet 1x1 320-1280 @7",      1, 1, 320, 1280, 7, 1, 1, 0),
    L("squeezenet 1x1 64-16 @55",       1, 1, 64, 16, 55, 1, 1, 0),
    L("squeezenet 3x3 16-64 @55",       1, 1, 16, 64, 55, 3, 1, 1),
    L("alexnet 11x11 s4 3-64 @224",     1, 1, 3, 64, 224, 11, 4, 2),
    L("alexnet 5x5 64-192 @27",         1, 1, 64, 192, 27, 5, 1, 2),
    L("alexnet 11x11 s4 3-64 @224 batch 32", 32, 1, 3, 64, 224, 11, 4, 2),
    L("alexnet 5x5 64-192 @27 batch 32", 32, 1, 64, 192, 27, 5, 1, 2),
    L("alexnet 3x3 384-256 @13 batch 32", 32, 1, 384, 256, 13, 3, 1, 1),
    L("resnext 3x3 32g 128-128 @56",    1, 32, 128, 128, 56, 3, 1, 1),
    L("resnext 3x3 32g 512-512 @14",    1, 32, 512, 512, 14, 3, 1, 1),
    L("lenet 5x5 1-6 @28 batch 16",     16, 1, 1, 6, 28, 5, 1, 2),
    L("lenet 5x5 6-16 @14 batch 16",    16, 1, 6, 16, 14, 5, 1, 0),
    D("lenet dense 400-120 batch 16",   16, 400, 120),
    D("alexnet dense 9216-4096",        1, 9216, 4096),
    D("alexnet dense 9216-4096 batch 64", 64, 9216, 4096),
    D("resnet dense 2048-1000",         1, 2048, 1000),
    D("square 512 batch 512",           512, 512, 512),
};
/* clang-format on */

const char *lab_layer_name(int i)
{
    return lab_layers[i].name;
}

struct conv_ctx {
    const struct ew_kernels *k;
    struct ew_conv conv, grad;
    struct ew_conv_wgrad filter;
    const float *w;
    double *want;
    int64_t tiles, sums;
    void *scratch;
};

static void forward(void *ctx)
{
    const struct conv_ctx *c = ctx;
    c->k->conv_run(&c->conv, 0, c->tiles, c->scratch);
}

static void reference(void *ctx)
{
    const struct conv_ctx *c = ctx;
    ref_conv(&c->conv.shape, c->conv.x, c->w, c->want);
}

static void depthwise(void *ctx)
{
    const struct conv_ctx *c = ctx;
    c->k->depthwise_run(&c->conv, 0, c->tiles, c->scratch);
}

static void setup(const struct ew_kernels *k, const struct ew_conv_shape *s, struct lab_job *out)
{
    static struct conv_ctx c;
    float *packed = lab_array(k->conv_pack_size(s));
    c.k = k;
    c.w = lab_array((size_t)ref_conv_filter_count(s));
    k->conv_pack(s, c.w, packed, 0, k->conv_pack_tiles(s));
    c.conv = (struct ew_conv){.shape = *s,
                              .x = lab_array((size_t)ref_conv_in_count(s)),
                              .w = packed,
                              .y = lab_array((size_t)ref_conv_out_count(s)),
                              .end = {.bias = lab_array((size_t)s->cout), .act = EW_ACT_RELU}};
    c.want = calloc((size_t)ref_conv_out_count(s), sizeof(double));
    c.tiles = k->conv_tiles(s);
    c.scratch = lab_array(k->conv_scratch(s) / sizeof(float));
    *out = (struct lab_job){.run = forward,
                            .reference = reference,
                            .ctx = &c,
                            .flops = 2 * ref_conv_macs(s),
                            .bytes = 0};
}

static void conv_setup(const struct ew_kernels *k, int i, struct lab_job *out)
{
    setup(k, &lab_layers[i].shape, out);
}

static void winograd(void *ctx)
{
    const struct conv_ctx *c = ctx;
    c->k->winograd_run(&c->conv, 0, c->tiles, c->scratch);
}

static void data_gradient(void *ctx)
{
    const struct conv_ctx *c = ctx;
    c->k->conv_dgrad_run(&c->grad, 0, c->tiles, c->scratch);
}

static void data_setup(const struct ew_kernels *k, int i, struct lab_job *out)
{
    const struct ew_conv_shape *s = &lab_layers[i].shape;
    conv_setup(k, i, out);
    struct conv_ctx *c = out->ctx;
    float *packed = lab_array(k->conv_dgrad_pack_size(s));
    k->conv_dgrad_pack(s, c->w, packed, 0, k->conv_dgrad_pack_tiles(s));
    c->grad = (struct ew_conv){
        .shape = *s, .x = c->conv.y, .w = packed, .y = lab_array((size_t)ref_conv_in_count(s))};
    c->tiles = k->conv_dgrad_tiles(s);
    out->run = data_gradient;
}

static void filter_gradient(void *ctx)
{
    const struct conv_ctx *c = ctx;
    c->k->conv_wgrad_run(&c->filter, 0, c->tiles, c->scratch);
    c->k->conv_wgrad_sum(&c->filter, 0, c->sums);
}

static void filter_setup(const struct ew_kernels *k, int i, struct lab_job *out)
{
    const struct ew_conv_shape *s = &lab_layers[i].shape;
    conv_setup(k, i, out);
    struct conv_ctx *c = out->ctx;
    c->filter = (struct ew_conv_wgrad){.shape = *s,
                                       .x = c->conv.x,
                                       .dy = c->conv.y,
                                       .dw = lab_array((size_t)ref_conv_filter_count(s)),
                                       .partial = lab_array(k->conv_wgrad_partial(s))};
    c->tiles = k->conv_wgrad_tiles(s);
    c->sums = k->conv_wgrad_sum_tiles(s);
    c->scratch = lab_array(k->conv_wgrad_scratch(s) / sizeof(float));
    out->run = filter_gradient;
}

/* Flops are counted as for the direct algorithm. */
static void winograd_setup(const struct ew_kernels *k, int i, struct lab_job *out)
{
    const struct ew_conv_shape *s = &lab_layers[i].shape;
    conv_setup(k, i, out);
    struct conv_ctx *c = out->ctx;
    if (!k->winograd_fits(s)) {
        out->run = NULL;
        return;
    }
    float *packed = lab_array(k->winograd_pack_size(s));
    k->winograd_pack(s, c->w, false, packed, 0, k->winograd_pack_tiles(s));
    c->conv.w = packed;
    c->tiles = k->winograd_tiles(s);
    c->scratch = lab_array(k->winograd_scratch(s) / sizeof(float));
    out->run = winograd;
}

const struct lab_layer lab_depthwise[LAB_DEPTHWISE] = {
    L("mobilenet 3x3 32 @112", 1, 32, 32, 32, 112, 3, 1, 1),
    L("mobilenet 3x3 s2 96 @112", 1, 96, 96, 96, 112, 3, 2, 1),
    L("mobilenet 3x3 144 @56", 1, 144, 144, 144, 56, 3, 1, 1),
    L("mobilenet 3x3 s2 144 @56", 1, 144, 144, 144, 56, 3, 2, 1),
    L("mobilenet 3x3 192 @28", 1, 192, 192, 192, 28, 3, 1, 1),
    L("mobilenet 3x3 384 @14", 1, 384, 384, 384, 14, 3, 1, 1),
    L("mobilenet 3x3 960 @7", 1, 960, 960, 960, 7, 3, 1, 1),
    L("mobilenet_v3 5x5 120 @28", 1, 120, 120, 120, 28, 5, 1, 2),
    L("mobilenet_v3 5x5 s2 672 @14", 1, 672, 672, 672, 14, 5, 2, 2),
};

const char *lab_depthwise_name(int i)
{
    return lab_depthwise[i].name;
}

static void depthwise_setup(const struct ew_kernels *k, int i, struct lab_job *out)
{
    const struct ew_conv_shape *s = &lab_depthwise[i].shape;
    setup(k, s, out);
    struct conv_ctx *c = out->ctx;
    float *packed = lab_array(k->depthwise_pack_size(s));
    k->depthwise_pack(s, c->w, packed);
    c->conv.w = packed;
    c->tiles = k->depthwise_tiles(s);
    c->scratch = lab_array(k->depthwise_scratch(s) / sizeof(float));
    out->run = depthwise;
    out->bytes = 4 * (double)(ref_conv_in_count(s) + ref_conv_out_count(s));
}

static void depthwise_dgrad(void *ctx)
{
    const struct conv_ctx *c = ctx;
    c->k->depthwise_dgrad_run(&c->grad, 0, c->tiles, c->scratch);
}

static void depthwise_dgrad_setup(const struct ew_kernels *k, int i, struct lab_job *out)
{
    const struct ew_conv_shape *s = &lab_depthwise[i].shape;
    depthwise_setup(k, i, out);
    struct conv_ctx *c = out->ctx;
    float *packed = lab_array(k->depthwise_pack_size(s));
    k->depthwise_dgrad_pack(s, c->w, packed);
    c->grad = (struct ew_conv){
        .shape = *s, .x = c->conv.y, .w = packed, .y = lab_array((size_t)ref_conv_in_count(s))};
    c->tiles = k->depthwise_dgrad_tiles(s);
    c->scratch = lab_array(k->depthwise_dgrad_scratch(s) / sizeof(float));
    out->run = depthwise_dgrad;
}

static void depthwise_wgrad(void *ctx)
{
    const struct conv_ctx *c = ctx;
    c->k->depthwise_wgrad_run(&c->filter, 0, c->tiles, c->scratch);
    c->k->depthwise_wgrad_sum(&c->filter, 0, c->sums);
}

static void depthwise_wgrad_setup(const struct ew_kernels *k, int i, struct lab_job *out)
{
    const struct ew_conv_shape *s = &lab_depthwise[i].shape;
    depthwise_setup(k, i, out);
    struct conv_ctx *c = out->ctx;
    c->filter = (struct ew_conv_wgrad){.shape = *s,
                                       .x = c->conv.x,
                                       .dy = c->conv.y,
                                       .dw = lab_array((size_t)ref_conv_filter_count(s)),
                                       .partial = lab_array(k->depthwise_wgrad_partial(s))};
    c->tiles = k->depthwise_wgrad_tiles(s);
    c->sums = k->depthwise_wgrad_sum_tiles(s);
    c->scratch = lab_array(k->depthwise_wgrad_scratch(s) / sizeof(float));
    out->run = depthwise_wgrad;
}

/* clang-format off */
const struct lab_experiment lab_conv[] = {
    {"conv", "implicit GEMM, forward", LAB_LAYERS, lab_layer_name, conv_setup},
    {"winograd", "F(4x4, 3x3), F(2x2, 3x3), F(2x2, 5x5), forward", LAB_LAYERS, lab_layer_name, winograd_setup},
    {"data", "implicit GEMM, gradient for the data", LAB_LAYERS, lab_layer_name, data_setup},
    {"filter", "implicit GEMM, gradient for the filter", LAB_LAYERS, lab_layer_name, filter_setup},
    {"depthwise", "depthwise, forward", LAB_DEPTHWISE, lab_depthwise_name, depthwise_setup},
    {"depthwise_dgrad", "gradient for the data", LAB_DEPTHWISE, lab_depthwise_name, depthwise_dgrad_setup},
    {"depthwise_wgrad", "gradient for the filter", LAB_DEPTHWISE, lab_depthwise_name, depthwise_wgrad_setup},
    {0}};
/* clang-format on */
