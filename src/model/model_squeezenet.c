/* SPDX-License-Identifier: Apache-2.0 */
/* SqueezeNet 1.0 and 1.1 as torchvision has them: fire modules and a convolution as classifier. */
#include "model/model.h"

struct fire {
    int squeeze, expand; /* expand: of the 1x1 and of the 3x3; both 0: a pool */
};

struct spec {
    int stem, kernel; /* filters and size of the first convolution */
    struct fire layers[10];
};

static int fire(struct ew_builder *b, int x, struct fire f)
{
    x = ew_b_conv_bias(b, "squeeze", x, ew_b_filters(b, f.squeeze), ew_win(1, 1, 0));
    x = ew_b_relu(b, x);
    int one = ew_b_conv_bias(b, "expand1x1", x, ew_b_filters(b, f.expand), ew_win(1, 1, 0));
    one = ew_b_relu(b, one);
    int three = ew_b_conv_bias(b, "expand3x3", x, ew_b_filters(b, f.expand), ew_win(3, 1, 1));
    three = ew_b_relu(b, three);
    return ew_b_concat(b, one, three);
}

/* ceil_mode: 109 becomes 54, and 54 becomes 27. */
static int max_pool(struct ew_builder *b, int x)
{
    struct ew_win w = ew_win(3, 2, 0);
    w.ceil = true;
    return ew_b_max_pool(b, x, w);
}

static int build(struct ew_builder *b, const struct ew_variant *v, int x)
{
    const struct spec *s = v->spec;
    ew_b_scope(b, "features.");
    x = ew_b_conv_bias(b, "0", x, ew_b_filters(b, s->stem), ew_win(s->kernel, 2, 0));
    x = ew_b_relu(b, x);
    x = max_pool(b, x);
    for (size_t i = 0; i < EW_COUNT(s->layers); i++) {
        ew_b_scope(b, "features.%zu.", i + 3);
        x = s->layers[i].squeeze ? fire(b, x, s->layers[i]) : max_pool(b, x);
    }
    ew_b_scope(b, "classifier.");
    x = ew_b_dropout(b, x, 0.5);
    x = ew_b_conv_bias(b, "1", x, b->classes, ew_win(1, 1, 0));
    x = ew_b_relu(b, x);
    x = ew_b_adaptive_pool(b, x, 1);
    return ew_b_flatten(b, x);
}

/* clang-format off */
static const struct spec v1_0 = {96, 7, {{16, 64}, {16, 64}, {32, 128}, {0, 0}, {32, 128}, {48, 192},
                                         {48, 192}, {64, 256}, {0, 0}, {64, 256}}};
static const struct spec v1_1 = {64, 3, {{16, 64}, {16, 64}, {0, 0}, {32, 128}, {32, 128}, {0, 0},
                                         {48, 192}, {48, 192}, {64, 256}, {64, 256}}};
/* clang-format on */

static const struct ew_variant variants[] = {
    {"squeezenet1_0", NULL, NULL, 224, 224, 3, 1000, &v1_0},
    {"squeezenet1_1", "NX, ENGINE", NULL, 224, 224, 3, 1000, &v1_1},
};

const struct ew_family ew_family_squeezenet = {
    .name = "squeezenet",
    .about = "SqueezeNet (Iandola 2016)",
    .widths = "stem, then squeeze, 1x1 and 3x3 of 8 fire modules",
    .variants = variants,
    .n_variants = EW_COUNT(variants),
    .init = {.conv = EW_INIT_HE_UNIFORM, .last_conv = EW_INIT_NORMAL_001, .zero_bias = true},
    .build = build,
};
