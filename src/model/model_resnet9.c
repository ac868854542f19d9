/* SPDX-License-Identifier: Apache-2.0 */
/* ResNet-9 for small images: four convolutions that widen and halve, two residual blocks of two.
 * Not one of the studies' networks: the one that learns CIFAR-10 soonest for its arithmetic, so the
 * recipes use it. */
#include "model/model.h"

static int conv(struct ew_builder *b, const char *name, int x, int64_t out)
{
    x = ew_b_conv(b, ew_b_name(b, "%s.conv", name), x, out, ew_win(3, 1, 1));
    x = ew_b_bn(b, ew_b_name(b, "%s.bn", name), x);
    return ew_b_relu(b, x);
}

static int halve(struct ew_builder *b, const char *name, int x, int64_t out)
{
    return ew_b_max_pool(b, conv(b, name, x, out), ew_win(2, 2, 0));
}

static int residual(struct ew_builder *b, const char *name, int x, int64_t inner)
{
    int y = conv(b, ew_b_name(b, "%s.0", name), x, inner);
    y = conv(b, ew_b_name(b, "%s.1", name), y, ew_b_channels(b, x));
    return ew_b_add(b, x, y);
}

static int build(struct ew_builder *b, const struct ew_variant *v, int x)
{
    x = conv(b, "prep", x, ew_b_filters(b, 64));
    x = halve(b, "layer1", x, ew_b_filters(b, 128));
    x = residual(b, "residual1", x, ew_b_filters(b, 128));
    x = halve(b, "layer2", x, ew_b_filters(b, 256));
    x = halve(b, "layer3", x, ew_b_filters(b, 512));
    x = residual(b, "residual3", x, ew_b_filters(b, 512));
    x = ew_b_max_pool(b, x, ew_win(4, 4, 0));
    return ew_b_dense(b, "linear", ew_b_flatten(b, x), b->classes);
}

static const struct ew_variant variants[] = {
    {"resnet9", "recipes", NULL, 32, 32, 3, 10, NULL},
};

const struct ew_family ew_family_resnet9 = {
    .name = "resnet9",
    .about = "ResNet-9 for 32x32: CIFAR-10 in minutes",
    .widths = "stem, three widening convolutions, the inner one of both residual blocks",
    .variants = variants,
    .n_variants = EW_COUNT(variants),
    .init = {.conv = EW_INIT_HE_OUT},
    .build = build,
};
