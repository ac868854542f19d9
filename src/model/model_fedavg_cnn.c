/* SPDX-License-Identifier: Apache-2.0 */
/* The CNN of federated averaging: McMahan et al., AISTATS 2017, section 3. */
#include "model/model.h"

static int build(struct ew_builder *b, const struct ew_variant *v, int x)
{
    x = ew_b_conv_bias(b, "conv1", x, ew_b_filters(b, 32), ew_win(5, 1, 2));
    x = ew_b_relu(b, x);
    x = ew_b_max_pool(b, x, ew_win(2, 2, 0));
    x = ew_b_conv_bias(b, "conv2", x, ew_b_filters(b, 64), ew_win(5, 1, 2));
    x = ew_b_relu(b, x);
    x = ew_b_max_pool(b, x, ew_win(2, 2, 0));
    x = ew_b_flatten(b, x);
    x = ew_b_dense(b, "fc1", x, ew_b_filters(b, 512));
    x = ew_b_relu(b, x);
    return ew_b_dense(b, "fc2", x, b->classes);
}

static const struct ew_variant variants[] = {
    {"fedavg_cnn", NULL, NULL, 28, 28, 1, 10, NULL},
};

const struct ew_family ew_family_fedavg_cnn = {
    .name = "fedavg_cnn",
    .about = "FedAvg's network for MNIST (McMahan 2017)",
    .widths = "2 convolutions, 1 dense layer",
    .variants = variants,
    .n_variants = EW_COUNT(variants),
    .build = build,
};
