/* SPDX-License-Identifier: Apache-2.0 */
/* Pre-activation ResNet-18 for small images: batch norm and ReLU before each convolution.  Where
 * widths or strides differ the shortcut is a bare 1x1 convolution of the activated input. */
#include "model/model.h"

struct spec {
    int stride; /* of the first stage */
};

static int block(struct ew_builder *b, int x, int planes, int stride)
{
    int y = ew_b_bn(b, "bn1", x);
    y = ew_b_relu(b, y);
    const int64_t inner = ew_b_filters(b, planes), out = ew_b_filters(b, planes);
    if (stride != 1 || ew_b_channels(b, x) != out)
        x = ew_b_conv(b, "shortcut.0", y, out, ew_win(1, stride, 0));
    y = ew_b_conv(b, "conv1", y, inner, ew_win(3, stride, 1));
    y = ew_b_bn(b, "bn2", y);
    y = ew_b_relu(b, y);
    y = ew_b_conv(b, "conv2", y, out, ew_win(3, 1, 1));
    return ew_b_add(b, y, x);
}

static int build(struct ew_builder *b, const struct ew_variant *v, int x)
{
    const struct spec *s = v->spec;
    x = ew_b_conv(b, "conv1", x, ew_b_filters(b, 64), ew_win(3, 1, 1));
    for (int stage = 0; stage < 4; stage++) {
        for (int i = 0; i < 2; i++) {
            ew_b_scope(b, "layer%d.%d.", stage + 1, i);
            x = block(b, x, 64 << stage, i > 0 ? 1 : stage > 0 ? 2 : s->stride);
        }
    }
    ew_b_root(b);
    x = ew_b_bn(b, "bn_out", x); /* no ReLU after it, as in the study's code */
    x = ew_b_global_pool(b, x);
    x = ew_b_flatten(b, x);
    return ew_b_dense(b, "linear", x, b->classes);
}

static const struct spec cifar = {.stride = 1}, tiny = {.stride = 2};

static const struct ew_variant variants[] = {
    {"preact_resnet18", "SCALE", NULL, 32, 32, 3, 10, &cifar},
    {"preact_resnet18_tiny", "SCALE", "the form for tiny ImageNet: stride 2 in the first stage", 64,
     64, 3, 200, &tiny},
};

const struct ew_family ew_family_preact_resnet = {
    .name = "preact_resnet",
    .about = "pre-activation ResNet-18 for 32x32 (He 2016)",
    .widths = "stem, then both convolutions of 8 blocks, free",
    .variants = variants,
    .n_variants = EW_COUNT(variants),
    .init = {.conv = EW_INIT_HE_OUT},
    .build = build,
};
