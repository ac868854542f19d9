/* SPDX-License-Identifier: Apache-2.0 */
/* DenseNet-BC as in torchvision.  Features are concatenated one layer at a time, which gives the
 * same tensors as concatenating all before each layer, with fewer edges. */
#include "model/model.h"

struct spec {
    int layers[4];
};

static int dense_layer(struct ew_builder *b, int x)
{
    const int64_t growth = ew_b_filters(b, 32);
    int y = ew_b_bn(b, "norm1", x);
    y = ew_b_relu(b, y);
    y = ew_b_conv(b, "conv1", y, 4 * growth, ew_win(1, 1, 0));
    y = ew_b_bn(b, "norm2", y);
    y = ew_b_relu(b, y);
    y = ew_b_conv(b, "conv2", y, growth, ew_win(3, 1, 1));
    return ew_b_concat(b, x, y);
}

static int transition(struct ew_builder *b, int x)
{
    const int64_t half = ew_b_channels(b, x) / 2;
    x = ew_b_bn(b, "norm", x);
    x = ew_b_relu(b, x);
    x = ew_b_conv(b, "conv", x, half, ew_win(1, 1, 0));
    return ew_b_avg_pool(b, x, ew_win(2, 2, 0));
}

static int build(struct ew_builder *b, const struct ew_variant *v, int x)
{
    const struct spec *s = v->spec;
    ew_b_scope(b, "features.");
    x = ew_b_conv(b, "conv0", x, ew_b_filters(b, 64), ew_win(7, 2, 3));
    x = ew_b_bn(b, "norm0", x);
    x = ew_b_relu(b, x);
    x = ew_b_max_pool(b, x, ew_win(3, 2, 1));
    for (int block = 1; block <= 4; block++) {
        for (int i = 1; i <= s->layers[block - 1]; i++) {
            ew_b_scope(b, "features.denseblock%d.denselayer%d.", block, i);
            x = dense_layer(b, x);
        }
        ew_b_scope(b, "features.transition%d.", block);
        if (block < 4)
            x = transition(b, x);
    }
    ew_b_scope(b, "features.");
    x = ew_b_bn(b, "norm5", x);
    x = ew_b_relu(b, x);
    ew_b_root(b);
    x = ew_b_global_pool(b, x);
    x = ew_b_flatten(b, x);
    return ew_b_dense(b, "classifier", x, b->classes);
}

static const struct spec d121 = {{6, 12, 24, 16}};
static const struct spec d169 = {{6, 12, 32, 32}};
static const struct spec d201 = {{6, 12, 48, 32}};

static const struct ew_variant variants[] = {
    {"densenet121", "ENGINE", NULL, 224, 224, 3, 1000, &d121},
    {"densenet169", NULL, NULL, 224, 224, 3, 1000, &d169},
    {"densenet201", NULL, NULL, 224, 224, 3, 1000, &d201},
};

const struct ew_family ew_family_densenet = {
    .name = "densenet",
    .about = "DenseNet (Huang 2017)",
    .widths = "stem, then what each layer adds; 1x1 layers and transitions follow",
    .variants = variants,
    .n_variants = EW_COUNT(variants),
    .init = {.conv = EW_INIT_HE_IN, .zero_dense_bias = true},
    .build = build,
};
