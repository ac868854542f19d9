/* SPDX-License-Identifier: Apache-2.0 */
/* MobileNetV3, large and small, as torchvision has them. */
#include "model/model.h"

enum act { RE, HS };

struct block {
    int kernel, expand, filters;
    bool squeeze;
    enum act act;
    int stride;
};

struct spec {
    const struct block *blocks;
    int n_blocks, last, hidden; /* filters of the last convolution, width of the dense layer */
};

static int activate(struct ew_builder *b, int x, enum act act)
{
    return act == HS ? ew_b_hard_swish(b, x) : ew_b_relu(b, x);
}

static int conv_bn(struct ew_builder *b, const char *name, int x, int64_t out, struct ew_win w)
{
    x = ew_b_conv(b, ew_b_name(b, "%s.0", name), x, out, w);
    return ew_b_bn(b, ew_b_name(b, "%s.1", name), x);
}

/* A quarter of the channels, to the nearest 8 but never below nine tenths (as the paper's code). */
static int64_t squeezed(int64_t channels)
{
    const int64_t quarter = channels / 4, near = (quarter + 4) / 8 * 8, n = near > 8 ? near : 8;
    return 10 * n < 9 * quarter ? n + 8 : n;
}

static int squeeze_excite(struct ew_builder *b, const char *name, int x)
{
    const int64_t channels = ew_b_channels(b, x);
    int y = ew_b_adaptive_pool(b, x, 1);
    y = ew_b_conv_bias(b, ew_b_name(b, "%s.fc1", name), y, squeezed(channels), ew_win(1, 1, 0));
    y = ew_b_relu(b, y);
    y = ew_b_conv_bias(b, ew_b_name(b, "%s.fc2", name), y, channels, ew_win(1, 1, 0));
    y = ew_b_hard_sigmoid(b, y);
    return ew_b_mul(b, y, x);
}

/* A block without expansion has no free width for it. */
static int block(struct ew_builder *b, int x, const struct block *k)
{
    const int64_t in = ew_b_channels(b, x);
    int y = x, at = 0;
    if (k->expand > 1) {
        y = conv_bn(b, ew_b_name(b, "block.%d", at++), y, ew_b_filters(b, k->expand),
                    ew_win(1, 1, 0));
        y = activate(b, y, k->act);
    }
    y = conv_bn(b, ew_b_name(b, "block.%d", at++), y, ew_b_channels(b, y),
                ew_win_groups(k->kernel, k->stride, k->kernel / 2, EW_DEPTHWISE));
    y = activate(b, y, k->act);
    if (k->squeeze)
        y = squeeze_excite(b, ew_b_name(b, "block.%d", at++), y);
    const int64_t out = ew_b_filters(b, k->filters);
    y = conv_bn(b, ew_b_name(b, "block.%d", at), y, out, ew_win(1, 1, 0));
    return k->stride == 1 && in == out ? ew_b_add(b, y, x) : y;
}

static int build(struct ew_builder *b, const struct ew_variant *v, int x)
{
    const struct spec *s = v->spec;
    b->bn_eps = 0.001;
    b->bn_keep = 0.99;
    x = conv_bn(b, "features.0", x, ew_b_filters(b, 16), ew_win(3, 2, 1));
    x = ew_b_hard_swish(b, x);
    for (int i = 0; i < s->n_blocks; i++) {
        ew_b_scope(b, "features.%d.", i + 1);
        x = block(b, x, &s->blocks[i]);
    }
    ew_b_scope(b, "features.");
    x = conv_bn(b, ew_b_name(b, "%d", s->n_blocks + 1), x, ew_b_filters(b, s->last),
                ew_win(1, 1, 0));
    x = ew_b_hard_swish(b, x);
    ew_b_root(b);
    x = ew_b_adaptive_pool(b, x, 1);
    x = ew_b_flatten(b, x);
    x = ew_b_dense(b, "classifier.0", x, ew_b_filters(b, s->hidden));
    x = ew_b_hard_swish(b, x);
    x = ew_b_dropout(b, x, 0.2);
    return ew_b_dense(b, "classifier.3", x, b->classes);
}

/* Tables 1 and 2 of the paper; expand 1: none. */
static const struct block large[] = {
    {3, 1, 16, false, RE, 1},   {3, 64, 24, false, RE, 2},  {3, 72, 24, false, RE, 1},
    {5, 72, 40, true, RE, 2},   {5, 120, 40, true, RE, 1},  {5, 120, 40, true, RE, 1},
    {3, 240, 80, false, HS, 2}, {3, 200, 80, false, HS, 1}, {3, 184, 80, false, HS, 1},
    {3, 184, 80, false, HS, 1}, {3, 480, 112, true, HS, 1}, {3, 672, 112, true, HS, 1},
    {5, 672, 160, true, HS, 2}, {5, 960, 160, true, HS, 1}, {5, 960, 160, true, HS, 1}};
static const struct block small[] = {
    {3, 1, 16, true, RE, 2},   {3, 72, 24, false, RE, 2}, {3, 88, 24, false, RE, 1},
    {5, 96, 40, true, HS, 2},  {5, 240, 40, true, HS, 1}, {5, 240, 40, true, HS, 1},
    {5, 120, 48, true, HS, 1}, {5, 144, 48, true, HS, 1}, {5, 288, 96, true, HS, 2},
    {5, 576, 96, true, HS, 1}, {5, 576, 96, true, HS, 1}};

static const struct spec v3_large = {large, EW_COUNT(large), 960, 1280};
static const struct spec v3_small = {small, EW_COUNT(small), 576, 1024};

static const struct ew_variant variants[] = {
    {"mobilenet_v3_large", "TRAIN", NULL, 224, 224, 3, 1000, &v3_large},
    {"mobilenet_v3_small", NULL, NULL, 224, 224, 3, 1000, &v3_small},
};

const struct ew_family ew_family_mobilenet_v3 = {
    .name = "mobilenet_v3",
    .about = "MobileNetV3 (Howard 2019)",
    .widths = "stem, expansion and output of each block, last convolution, dense layer",
    .variants = variants,
    .n_variants = EW_COUNT(variants),
    .init = {.conv = EW_INIT_HE_OUT, .dense = EW_INIT_NORMAL_001, .zero_bias = true},
    .build = build,
};
