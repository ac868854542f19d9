/* SPDX-License-Identifier: Apache-2.0 */
/* A small 3-D convolutional network (after C3D, Tran et al., ICCV 2015).  The ENGINE study gives
 * the count of parameters of its own, 20,333,956, and its arithmetic, 116,551,168, but not its
 * layers: these meet the count exactly and the arithmetic, in multiply-accumulates, within 1.1 %.
 */
#include "model/model.h"

static int build(struct ew_builder *b, const struct ew_variant *v, int x)
{
    const struct ew_win in_space =
        ew_win_video((const int64_t[]){1, 2}, (const int64_t[]){1, 2}, (const int64_t[]){0, 0});
    x = ew_b_relu(b, ew_b_conv_bias(b, "conv1", x, ew_b_filters(b, 16), ew_win(3, 1, 1)));
    x = ew_b_max_pool(b, x, in_space);
    x = ew_b_relu(b, ew_b_conv_bias(b, "conv2", x, ew_b_filters(b, 24), ew_win(3, 1, 1)));
    x = ew_b_max_pool(b, x, ew_win(2, 2, 0));
    x = ew_b_relu(b, ew_b_conv_bias(b, "conv3", x, ew_b_filters(b, 192), ew_win(3, 1, 1)));
    x = ew_b_max_pool(b, x, ew_win(2, 2, 0));
    x = ew_b_flatten(b, x);
    x = ew_b_relu(b, ew_b_dense(b, "fc1", x, ew_b_filters(b, 2920)));
    return ew_b_dense(b, "fc2", x, b->classes);
}

static const struct ew_variant variants[] = {
    {"c3d_small", "ENGINE", NULL, 28, 28, 3, 4, NULL, 16},
};

const struct ew_family ew_family_c3d_small = {
    .name = "c3d_small",
    .about = "small 3-D CNN for video, with ENGINE's count of parameters",
    .widths = "3 convolutions, 1 dense layer",
    .variants = variants,
    .n_variants = EW_COUNT(variants),
    .build = build,
};
