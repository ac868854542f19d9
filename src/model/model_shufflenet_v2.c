/* SPDX-License-Identifier: Apache-2.0 */
/* ShuffleNet V2 as torchvision has it: half of the channels pass a unit untouched, then both halves
 * are shuffled. */
#include "model/model.h"

struct spec {
    int stages[3], last;
};

/* 1x1 convolution, batch norm, ReLU: layers `at` and at + 1 of a branch. */
static int pointwise(struct ew_builder *b, const char *branch, int at, int x, int64_t out)
{
    x = ew_b_conv(b, ew_b_name(b, "%s.%d", branch, at), x, out, ew_win(1, 1, 0));
    x = ew_b_bn(b, ew_b_name(b, "%s.%d", branch, at + 1), x);
    return ew_b_relu(b, x);
}

static int depthwise(struct ew_builder *b, const char *branch, int at, int x, int stride)
{
    x = ew_b_conv(b, ew_b_name(b, "%s.%d", branch, at), x, ew_b_channels(b, x),
                  ew_win_groups(3, stride, 1, EW_DEPTHWISE));
    return ew_b_bn(b, ew_b_name(b, "%s.%d", branch, at + 1), x);
}

static int unit(struct ew_builder *b, int x, int64_t out, int stride)
{
    int left = x, right = x;
    if (stride == 1) {
        ew_b_halves(b, x, &left, &right);
    } else {
        left = depthwise(b, "branch1", 0, left, stride);
        left = pointwise(b, "branch1", 2, left, out / 2);
    }
    right = pointwise(b, "branch2", 0, right, out / 2);
    right = depthwise(b, "branch2", 3, right, stride);
    right = pointwise(b, "branch2", 5, right, out / 2);
    return ew_b_shuffle(b, ew_b_concat(b, left, right), 2);
}

static int build(struct ew_builder *b, const struct ew_variant *v, int x)
{
    static const int repeats[] = {4, 8, 4};
    const struct spec *s = v->spec;
    x = ew_b_conv(b, "conv1.0", x, ew_b_filters(b, 24), ew_win(3, 2, 1));
    x = ew_b_bn(b, "conv1.1", x);
    x = ew_b_relu(b, x);
    x = ew_b_max_pool(b, x, ew_win(3, 2, 1));
    for (int stage = 0; stage < 3; stage++) {
        const int64_t out = ew_b_filters_by(b, s->stages[stage], 2);
        for (int i = 0; i < repeats[stage]; i++) {
            ew_b_scope(b, "stage%d.%d.", stage + 2, i);
            x = unit(b, x, out, i == 0 ? 2 : 1);
        }
    }
    ew_b_root(b);
    x = ew_b_conv(b, "conv5.0", x, ew_b_filters(b, s->last), ew_win(1, 1, 0));
    x = ew_b_bn(b, "conv5.1", x);
    x = ew_b_relu(b, x);
    x = ew_b_global_pool(b, x);
    x = ew_b_flatten(b, x);
    return ew_b_dense(b, "fc", x, b->classes);
}

static const struct spec x0_5 = {{48, 96, 192}, 1024};
static const struct spec x1_0 = {{116, 232, 464}, 1024};
static const struct spec x1_5 = {{176, 352, 704}, 1024};
static const struct spec x2_0 = {{244, 488, 976}, 2048};

static const struct ew_variant variants[] = {
    {"shufflenet_v2_x0_5", NULL, NULL, 224, 224, 3, 1000, &x0_5},
    {"shufflenet_v2_x1_0", "NX, ENGINE", NULL, 224, 224, 3, 1000, &x1_0},
    {"shufflenet_v2_x1_5", NULL, NULL, 224, 224, 3, 1000, &x1_5},
    {"shufflenet_v2_x2_0", NULL, NULL, 224, 224, 3, 1000, &x2_0},
};

const struct ew_family ew_family_shufflenet_v2 = {
    .name = "shufflenet_v2",
    .about = "ShuffleNet V2 (Ma 2018)",
    .widths = "stem, 3 stages (even numbers), last convolution",
    .variants = variants,
    .n_variants = EW_COUNT(variants),
    .build = build,
};
