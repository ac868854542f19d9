/* SPDX-License-Identifier: Apache-2.0 */
/* VGG-11 for small images: batch norm after each convolution and a single dense layer.  The network
 * of the SCALE study, whose code starts batch norms at gain 0.5. */
#include "model/model.h"

static const struct {
    int filters;
    bool pool; /* 2x2 max pooling after it */
} layers[] = {{64, true},   {128, true}, {256, false}, {256, true},
              {512, false}, {512, true}, {512, false}, {512, true}};

static int build(struct ew_builder *b, const struct ew_variant *v, int x)
{
    ew_b_scope(b, "features.");
    int at = 0; /* activations and pools count */
    for (size_t i = 0; i < EW_COUNT(layers); i++) {
        const int64_t out = ew_b_filters(b, layers[i].filters);
        x = ew_b_conv_bias(b, ew_b_name(b, "%d", at), x, out, ew_win(3, 1, 1));
        x = ew_b_bn(b, ew_b_name(b, "%d", at + 1), x);
        x = ew_b_relu(b, x);
        if (layers[i].pool)
            x = ew_b_max_pool(b, x, ew_win(2, 2, 0));
        at += layers[i].pool ? 4 : 3;
    }
    ew_b_root(b);
    return ew_b_dense(b, "classifier", ew_b_flatten(b, x), b->classes);
}

static const struct ew_variant variants[] = {
    {"vgg11_cifar", "TRAIN, SCALE", NULL, 32, 32, 3, 10, NULL},
};

const struct ew_family ew_family_vgg_cifar = {
    .name = "vgg_cifar",
    .about = "VGG-11 for 32x32: batch norm, one dense layer",
    .widths = "8 convolutions",
    .variants = variants,
    .n_variants = EW_COUNT(variants),
    .init = {.conv = EW_INIT_HE_OUT,
             .dense = EW_INIT_NORMAL_001,
             .zero_bias = true,
             .bn_gain = 0.5},
    .build = build,
};
