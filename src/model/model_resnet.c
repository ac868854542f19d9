/* SPDX-License-Identifier: Apache-2.0 */
/* ResNet and ResNeXt as torchvision has them (stride on the 3x3 of a bottleneck).  The width of
 * every block is free: where a block's input and output differ its shortcut is a 1x1 convolution.
 */
#include "model/model.h"

struct spec {
    int blocks[4];
    bool bottleneck;
    int groups, group_width; /* of the bottleneck's 3x3: 1 x 64, or ResNeXt's 32 x 4 */
};

static int shortcut(struct ew_builder *b, int x, int64_t out, int64_t stride)
{
    if (stride == 1 && ew_b_channels(b, x) == out)
        return x;
    x = ew_b_conv(b, "downsample.0", x, out, ew_win(1, stride, 0));
    return ew_b_bn(b, "downsample.1", x);
}

static int basic(struct ew_builder *b, int x, int planes, int stride)
{
    int y = ew_b_conv(b, "conv1", x, ew_b_filters(b, planes), ew_win(3, stride, 1));
    y = ew_b_bn(b, "bn1", y);
    y = ew_b_relu(b, y);
    y = ew_b_conv(b, "conv2", y, ew_b_filters(b, planes), ew_win(3, 1, 1));
    y = ew_b_bn(b, "bn2", y);
    x = shortcut(b, x, ew_b_channels(b, y), stride);
    return ew_b_relu(b, ew_b_add(b, y, x));
}

/* With groups both inner widths are multiples of the number of groups. */
static int bottleneck(struct ew_builder *b, const struct spec *s, int x, int planes, int stride)
{
    const int inner = planes * s->group_width / 64 * s->groups;
    int y = ew_b_conv(b, "conv1", x, ew_b_filters_by(b, inner, s->groups), ew_win(1, 1, 0));
    y = ew_b_bn(b, "bn1", y);
    y = ew_b_relu(b, y);
    y = ew_b_conv(b, "conv2", y, ew_b_filters_by(b, inner, s->groups),
                  ew_win_groups(3, stride, 1, s->groups));
    y = ew_b_bn(b, "bn2", y);
    y = ew_b_relu(b, y);
    y = ew_b_conv(b, "conv3", y, ew_b_filters_of(b, planes, 4), ew_win(1, 1, 0));
    y = ew_b_bn(b, "bn3", y);
    x = shortcut(b, x, ew_b_channels(b, y), stride);
    return ew_b_relu(b, ew_b_add(b, y, x));
}

static int build(struct ew_builder *b, const struct ew_variant *v, int x)
{
    const struct spec *s = v->spec;
    x = ew_b_conv(b, "conv1", x, ew_b_filters(b, 64), ew_win(7, 2, 3));
    x = ew_b_bn(b, "bn1", x);
    x = ew_b_relu(b, x);
    x = ew_b_max_pool(b, x, ew_win(3, 2, 1));
    for (int stage = 0; stage < 4; stage++) {
        for (int i = 0; i < s->blocks[stage]; i++) {
            const int planes = 64 << stage, stride = stage > 0 && i == 0 ? 2 : 1;
            ew_b_scope(b, "layer%d.%d.", stage + 1, i);
            x = s->bottleneck ? bottleneck(b, s, x, planes, stride) : basic(b, x, planes, stride);
        }
    }
    ew_b_root(b);
    x = ew_b_adaptive_pool(b, x, 1);
    x = ew_b_flatten(b, x);
    return ew_b_dense(b, "fc", x, b->classes);
}

static const struct spec r18 = {{2, 2, 2, 2}, false, 1, 64};
static const struct spec r34 = {{3, 4, 6, 3}, false, 1, 64};
static const struct spec r50 = {{3, 4, 6, 3}, true, 1, 64};
static const struct spec r101 = {{3, 4, 23, 3}, true, 1, 64};
static const struct spec r152 = {{3, 8, 36, 3}, true, 1, 64};
static const struct spec x50 = {{3, 4, 6, 3}, true, 32, 4};

static const struct ew_variant variants[] = {
    {"resnet18", NULL, NULL, 224, 224, 3, 1000, &r18},
    {"resnet34", NULL, NULL, 224, 224, 3, 1000, &r34},
    {"resnet50", "NX, ENGINE, SCALE", NULL, 224, 224, 3, 1000, &r50},
    {"resnet101", NULL, NULL, 224, 224, 3, 1000, &r101},
    {"resnet152", NULL, NULL, 224, 224, 3, 1000, &r152},
    {"resnext50_32x4d", "ENGINE", "ResNeXt-50, 32 groups of 4 (Xie 2017)", 224, 224, 3, 1000, &x50},
};

const struct ew_family ew_family_resnet = {
    .name = "resnet",
    .about = "ResNet (He 2016)",
    .widths =
        "stem, then every convolution of each block, free; 4 x the planes after a bottleneck, "
        "groups whole",
    .variants = variants,
    .n_variants = EW_COUNT(variants),
    .init = {.conv = EW_INIT_HE_OUT},
    .build = build,
};
