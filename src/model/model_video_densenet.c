/* SPDX-License-Identifier: Apache-2.0 */
/* A small DenseNet of 3-D convolutions (after Huang et al., CVPR 2017).  The ENGINE study gives the
 * count of parameters of its own, 109,386, and its arithmetic, 27,681,924, but not its layers:
 * these meet the count exactly and the arithmetic, in multiply-accumulates, within 0.2 %. */
#include "model/model.h"

#define BLOCKS 4

static int dense_layer(struct ew_builder *b, int x)
{
    const int64_t growth = ew_b_filters(b, 8);
    int y = ew_b_relu(b, ew_b_bn(b, "norm1", x));
    y = ew_b_conv(b, "conv1", y, 2 * growth, ew_win(1, 1, 0));
    y = ew_b_relu(b, ew_b_bn(b, "norm2", y));
    return ew_b_concat(b, x, ew_b_conv(b, "conv2", y, growth, ew_win(3, 1, 1)));
}

static int transition(struct ew_builder *b, int x)
{
    const int64_t channels = ew_b_channels(b, x);
    x = ew_b_relu(b, ew_b_bn(b, "norm", x));
    x = ew_b_conv(b, "conv", x, channels, ew_win(1, 1, 0));
    return ew_b_avg_pool(b, x, ew_win(2, 2, 0));
}

static int build(struct ew_builder *b, const struct ew_variant *v, int x)
{
    static const int layers[BLOCKS] = {2, 4, 2, 8};
    ew_b_scope(b, "features.");
    x = ew_b_conv(b, "conv0", x, ew_b_filters(b, 38), ew_win(3, 2, 1));
    x = ew_b_relu(b, ew_b_bn(b, "norm0", x));
    for (int block = 1; block <= BLOCKS; block++) {
        for (int i = 1; i <= layers[block - 1]; i++) {
            ew_b_scope(b, "features.denseblock%d.denselayer%d.", block, i);
            x = dense_layer(b, x);
        }
        ew_b_scope(b, "features.transition%d.", block);
        if (block < BLOCKS)
            x = transition(b, x);
    }
    ew_b_scope(b, "features.");
    x = ew_b_relu(b, ew_b_bn(b, "norm5", x));
    ew_b_root(b);
    x = ew_b_flatten(b, ew_b_global_pool(b, x));
    return ew_b_dense(b, "classifier", x, b->classes);
}

static const struct ew_variant variants[] = {
    {"video_densenet", "ENGINE", NULL, 28, 28, 3, 4, NULL, 16},
};

const struct ew_family ew_family_video_densenet = {
    .name = "video_densenet",
    .about = "small DenseNet for video, with ENGINE's count of parameters",
    .widths = "stem, then what each layer adds; 1x1x1 layers and transitions follow",
    .variants = variants,
    .n_variants = EW_COUNT(variants),
    .init = {.conv = EW_INIT_HE_IN, .zero_dense_bias = true},
    .build = build,
};
