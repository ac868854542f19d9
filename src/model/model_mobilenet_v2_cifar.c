/* SPDX-License-Identifier: Apache-2.0 */
/* MobileNetV2 for small images, as the SCALE study scales it: stem of stride 1, biased
 * convolutions, a shortcut in every block (1x1 convolution and batch norm where widths or strides
 * differ), and a convolution as classifier. */
#include "model/model.h"

struct spec {
    int stride5; /* of stage 5: 1, or 2 for Tiny ImageNet */
};

static const struct {
    int filters, repeats, stride;
} stages[] = {{16, 1, 1}, {24, 2, 2}, {32, 3, 2}, {64, 4, 2}, {96, 3, 1}, {160, 3, 2}, {320, 1, 1}};

static int conv_bn(struct ew_builder *b, const char *conv, const char *bn, int x, int64_t out,
                   struct ew_win w)
{
    return ew_b_bn(b, bn, ew_b_conv_bias(b, conv, x, out, w));
}

/* The study's functional relu6 is exported as Relu and Clip; its critical datapath length of 111
 * counts both. */
static int functional_relu6(struct ew_builder *b, int x)
{
    return ew_b_relu6(b, ew_b_relu(b, x));
}

static int block(struct ew_builder *b, int x, int64_t out, int expand, int stride)
{
    const int64_t in = ew_b_channels(b, x);
    int y = conv_bn(b, "residual.0", "residual.1", x, in * expand, ew_win(1, 1, 0));
    y = ew_b_relu6(b, y);
    y = conv_bn(b, "residual.3", "residual.4", y, in * expand,
                ew_win_groups(3, stride, 1, EW_DEPTHWISE));
    y = ew_b_relu6(b, y);
    y = conv_bn(b, "residual.6", "residual.7", y, out, ew_win(1, 1, 0));
    if (stride != 1 || in != out)
        x = conv_bn(b, "shortcut.0", "shortcut.1", x, out, ew_win(1, stride, 0));
    return ew_b_add(b, y, x);
}

static int build(struct ew_builder *b, const struct ew_variant *v, int x)
{
    const struct spec *spec = v->spec;
    x = conv_bn(b, "pre.0", "pre.1", x, ew_b_filters(b, 32), ew_win(3, 1, 1));
    x = functional_relu6(b, x);
    for (int s = 0; s < (int)EW_COUNT(stages); s++) {
        const int stride = s == 4 ? spec->stride5 : stages[s].stride;
        for (int i = 0; i < stages[s].repeats; i++) {
            ew_b_scope(b, stages[s].repeats > 1 ? "stage%d.%d." : "stage%d.", s + 1, i);
            x = block(b, x, ew_b_filters(b, stages[s].filters), s == 0 ? 1 : 6, i ? 1 : stride);
        }
    }
    ew_b_root(b);
    x = conv_bn(b, "conv1.0", "conv1.1", x, ew_b_filters(b, 1280), ew_win(1, 1, 0));
    x = functional_relu6(b, x);
    x = ew_b_global_pool(b, x);
    x = ew_b_conv_bias(b, "conv2", x, b->classes, ew_win(1, 1, 0));
    return ew_b_flatten(b, x);
}

static const struct spec cifar = {.stride5 = 1}, tiny = {.stride5 = 2};

static const struct ew_variant variants[] = {
    {"mobilenet_v2_cifar", "SCALE", NULL, 32, 32, 3, 10, &cifar},
    {"mobilenet_v2_tiny", "SCALE", "the form for tiny ImageNet: stride 2 in stage 5", 64, 64, 3,
     200, &tiny},
};

const struct ew_family ew_family_mobilenet_v2_cifar = {
    .name = "mobilenet_v2_cifar",
    .about = "MobileNetV2 for 32x32",
    .widths = "stem, 17 block outputs, last convolution, free; expansions follow",
    .variants = variants,
    .n_variants = EW_COUNT(variants),
    .build = build,
};
