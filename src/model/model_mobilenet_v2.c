/* SPDX-License-Identifier: Apache-2.0 */
/* MobileNetV2 as torchvision has it.  The CIFAR form differs in nearly every layer and is
 * model_mobilenet_v2_cifar.c. */
#include "model/model.h"

static const struct {
    int expand, filters, repeats, stride;
} stages[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
              {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};

static int conv_bn_relu6(struct ew_builder *b, const char *name, int x, int64_t out,
                         struct ew_win w)
{
    x = ew_b_conv(b, ew_b_name(b, "%s.0", name), x, out, w);
    x = ew_b_bn(b, ew_b_name(b, "%s.1", name), x);
    return ew_b_relu6(b, x);
}

/* An inverted residual; it has a shortcut at stride 1 and equal widths. */
static int block(struct ew_builder *b, int x, int64_t out, int expand, int stride)
{
    const int64_t in = ew_b_channels(b, x);
    int y = x, at = 0;
    if (expand > 1)
        y = conv_bn_relu6(b, ew_b_name(b, "conv.%d", at++), y, in * expand, ew_win(1, 1, 0));
    y = conv_bn_relu6(b, ew_b_name(b, "conv.%d", at++), y, in * expand,
                      ew_win_groups(3, stride, 1, EW_DEPTHWISE));
    y = ew_b_conv(b, ew_b_name(b, "conv.%d", at), y, out, ew_win(1, 1, 0));
    y = ew_b_bn(b, ew_b_name(b, "conv.%d", at + 1), y);
    return stride == 1 && in == out ? ew_b_add(b, x, y) : y;
}

static int build(struct ew_builder *b, const struct ew_variant *v, int x)
{
    x = conv_bn_relu6(b, "features.0", x, ew_b_filters(b, 32), ew_win(3, 2, 1));
    int at = 1;
    for (size_t s = 0; s < EW_COUNT(stages); s++) {
        for (int i = 0; i < stages[s].repeats; i++) {
            ew_b_scope(b, "features.%d.", at++);
            x = block(b, x, ew_b_filters(b, stages[s].filters), stages[s].expand,
                      i == 0 ? stages[s].stride : 1);
        }
    }
    ew_b_root(b);
    x = conv_bn_relu6(b, "features.18", x, ew_b_filters(b, 1280), ew_win(1, 1, 0));
    x = ew_b_global_pool(b, x);
    x = ew_b_flatten(b, x);
    x = ew_b_dropout(b, x, 0.2);
    return ew_b_dense(b, "classifier.1", x, b->classes);
}

static const struct ew_variant variants[] = {
    {"mobilenet_v2", "NX, ENGINE", NULL, 224, 224, 3, 1000, NULL},
};

const struct ew_family ew_family_mobilenet_v2 = {
    .name = "mobilenet_v2",
    .about = "MobileNetV2 (Sandler 2018)",
    .widths = "stem, 17 block outputs, last convolution; expansions follow",
    .variants = variants,
    .n_variants = EW_COUNT(variants),
    .init = {.conv = EW_INIT_HE_OUT, .dense = EW_INIT_NORMAL_001, .zero_bias = true},
    .build = build,
};
