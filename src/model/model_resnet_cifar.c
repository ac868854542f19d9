/* SPDX-License-Identifier: Apache-2.0 */
/* ResNet-18 for small images: a 3x3 stem of stride 1 and no pooling before the first stage. TRAIN's
 * form has group norms of one channel a group where the usual one has batch norms. */
#include "model/model.h"

static int norm(struct ew_builder *b, const char *name, int x)
{
    return ew_b_group_norm(b, name, x, ew_b_channels(b, x));
}

static int block(struct ew_builder *b, int x, int planes, int stride)
{
    const int64_t inner = ew_b_filters(b, planes), out = ew_b_filters(b, planes);
    int y = ew_b_conv(b, "conv1", x, inner, ew_win(3, stride, 1));
    y = norm(b, "bn1", y);
    y = ew_b_relu(b, y);
    y = ew_b_conv(b, "conv2", y, out, ew_win(3, 1, 1));
    y = norm(b, "bn2", y);
    if (stride != 1 || ew_b_channels(b, x) != out) {
        x = ew_b_conv(b, "shortcut.0", x, out, ew_win(1, stride, 0));
        x = norm(b, "shortcut.1", x);
    }
    return ew_b_relu(b, ew_b_add(b, y, x));
}

static int build(struct ew_builder *b, const struct ew_variant *v, int x)
{
    x = ew_b_conv(b, "conv1", x, ew_b_filters(b, 64), ew_win(3, 1, 1));
    x = norm(b, "bn1", x);
    x = ew_b_relu(b, x);
    for (int stage = 0; stage < 4; stage++) {
        for (int i = 0; i < 2; i++) {
            ew_b_scope(b, "layer%d.%d.", stage + 1, i);
            x = block(b, x, 64 << stage, stage > 0 && i == 0 ? 2 : 1);
        }
    }
    ew_b_root(b);
    x = ew_b_global_pool(b, x);
    x = ew_b_flatten(b, x);
    return ew_b_dense(b, "linear", x, b->classes);
}

static const struct ew_variant variants[] = {
    {"resnet18_cifar_gn", "TRAIN", NULL, 32, 32, 3, 10, NULL},
};

const struct ew_family ew_family_resnet_cifar = {
    .name = "resnet_cifar",
    .about = "ResNet-18 for 32x32, a group norm per channel",
    .widths = "stem, then both convolutions of 8 blocks, free",
    .variants = variants,
    .n_variants = EW_COUNT(variants),
    .init = {.conv = EW_INIT_DEFAULT},
    .build = build,
};
