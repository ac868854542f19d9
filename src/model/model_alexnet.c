/* SPDX-License-Identifier: Apache-2.0 */
/* AlexNet, the one-column form of torchvision. */
#include "model/model.h"

static int classifier(struct ew_builder *b, int x)
{
    x = ew_b_adaptive_pool(b, x, 6);
    x = ew_b_flatten(b, x);
    ew_b_scope(b, "classifier.");
    x = ew_b_dropout(b, x, 0.5);
    x = ew_b_dense(b, "1", x, ew_b_filters(b, 4096));
    x = ew_b_relu(b, x);
    x = ew_b_dropout(b, x, 0.5);
    x = ew_b_dense(b, "4", x, ew_b_filters(b, 4096));
    x = ew_b_relu(b, x);
    return ew_b_dense(b, "6", x, b->classes);
}

static int build(struct ew_builder *b, const struct ew_variant *v, int x)
{
    ew_b_scope(b, "features.");
    x = ew_b_conv_bias(b, "0", x, ew_b_filters(b, 64), ew_win(11, 4, 2));
    x = ew_b_relu(b, x);
    x = ew_b_max_pool(b, x, ew_win(3, 2, 0));
    x = ew_b_conv_bias(b, "3", x, ew_b_filters(b, 192), ew_win(5, 1, 2));
    x = ew_b_relu(b, x);
    x = ew_b_max_pool(b, x, ew_win(3, 2, 0));
    x = ew_b_conv_bias(b, "6", x, ew_b_filters(b, 384), ew_win(3, 1, 1));
    x = ew_b_relu(b, x);
    x = ew_b_conv_bias(b, "8", x, ew_b_filters(b, 256), ew_win(3, 1, 1));
    x = ew_b_relu(b, x);
    x = ew_b_conv_bias(b, "10", x, ew_b_filters(b, 256), ew_win(3, 1, 1));
    x = ew_b_relu(b, x);
    x = ew_b_max_pool(b, x, ew_win(3, 2, 0));
    return classifier(b, x);
}

static const struct ew_variant variants[] = {
    {"alexnet", "NX, ENGINE", NULL, 224, 224, 3, 1000, NULL},
};

const struct ew_family ew_family_alexnet = {
    .name = "alexnet",
    .about = "AlexNet in one column (Krizhevsky 2014)",
    .widths = "5 convolutions, 2 dense layers",
    .variants = variants,
    .n_variants = EW_COUNT(variants),
    .build = build,
};
