/* SPDX-License-Identifier: Apache-2.0 */
/* A 3-D convolutional autoencoder for anomaly detection in clips, with a bottleneck of 49 numbers
 * per clip.  The ENGINE study gives its number of parameters, 332,807, and its arithmetic,
 * 22,434,944, but not its layers: these meet the former exactly and the latter, in
 * multiply-accumulates, within 0.2 %. */
#include "model/model.h"

#define PAIR(t, s) ((const int64_t[]){(t), (s)})

/* With ReLU all units behind the bottleneck die in the first hundred steps, while the decoder still
 * outputs noise, and only the mean clip is learnt. */
static int leaky(struct ew_builder *b, int x)
{
    return ew_b_leaky_relu(b, x, 0.1);
}

static int build(struct ew_builder *b, const struct ew_variant *v, int x)
{
    const int64_t channels = ew_b_channels(b, x);
    const struct ew_win halve_space = ew_win_video(PAIR(3, 3), PAIR(1, 2), PAIR(1, 1));
    const struct ew_win double_all = ew_win_video(PAIR(2, 4), PAIR(2, 2), PAIR(0, 1));
    const struct ew_win double_space = ew_win_video(PAIR(1, 4), PAIR(1, 2), PAIR(0, 1));
    x = leaky(b, ew_b_conv_bias(b, "encoder.conv1", x, ew_b_filters(b, 41), halve_space));
    x = leaky(b, ew_b_conv_bias(b, "encoder.conv2", x, ew_b_filters(b, 8), ew_win(3, 2, 1)));
    const struct ew_shape map = ew_b_shape(b, x);
    const int64_t size = ew_shape_span(&map, 1, map.rank);
    x = ew_b_dense(b, "encoder.fc", ew_b_flatten(b, x), ew_b_filters(b, 49));
    x = leaky(b, ew_b_dense(b, "decoder.fc", x, size));
    x = ew_b_unflatten(b, x, map);
    x = ew_b_conv_transpose(b, "decoder.conv1", x, ew_b_filters(b, 33), double_all);
    return ew_b_conv_transpose(b, "decoder.conv2", leaky(b, x), channels, double_space);
}

static const struct ew_variant variants[] = {
    {"video_autoencoder", "ENGINE", NULL, 28, 28, 3, 1, NULL, 16},
};

const struct ew_family ew_family_video_autoencoder = {
    .name = "video_autoencoder",
    .about = "autoencoder of clips, with ENGINE's count of parameters",
    .widths = "2 convolutions, the code, 1 transposed convolution",
    .variants = variants,
    .n_variants = EW_COUNT(variants),
    .init = {.conv = EW_INIT_HE_IN},
    .build = build,
};
