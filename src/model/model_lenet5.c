/* SPDX-License-Identifier: Apache-2.0 */
/* LeNet-5 as it is trained today: ReLU, max pooling, padding 2 in the first convolution. */
#include "model/model.h"

static int build(struct ew_builder *b, const struct ew_variant *v, int x)
{
    x = ew_b_conv_bias(b, "conv1", x, ew_b_filters(b, 6), ew_win(5, 1, 2));
    x = ew_b_relu(b, x);
    x = ew_b_max_pool(b, x, ew_win(2, 2, 0));
    x = ew_b_conv_bias(b, "conv2", x, ew_b_filters(b, 16), ew_win(5, 1, 0));
    x = ew_b_relu(b, x);
    x = ew_b_max_pool(b, x, ew_win(2, 2, 0));
    x = ew_b_flatten(b, x);
    x = ew_b_dense(b, "fc1", x, ew_b_filters(b, 120));
    x = ew_b_relu(b, x);
    x = ew_b_dense(b, "fc2", x, ew_b_filters(b, 84));
    x = ew_b_relu(b, x);
    return ew_b_dense(b, "fc3", x, b->classes);
}

static const struct ew_variant variants[] = {
    {"lenet5", "TRAIN", NULL, 28, 28, 1, 10, NULL},
};

const struct ew_family ew_family_lenet5 = {
    .name = "lenet5",
    .about = "LeNet-5 with ReLU and max pooling (LeCun 1998)",
    .widths = "2 convolutions, 2 dense layers",
    .variants = variants,
    .n_variants = EW_COUNT(variants),
    .build = build,
};
