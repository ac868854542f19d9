/* SPDX-License-Identifier: Apache-2.0 */
/* Residual networks for video as torchvision has them (Tran et al., CVPR 2018): 3-D convolutions
 * throughout (R3D), in the first stage only (MC3), or cut into space and time (R(2+1)D). */
#include "model/model.h"

enum cut { WHOLE, SPACE_ONLY, SPACE_AND_TIME };

struct spec {
    enum cut stem, stage[4];
};

#define PAIR(t, s) ((const int64_t[]){(t), (s)})

/* Filters between the spatial and the temporal convolution of R(2+1)D, for as many weights as the
 * full 3-D convolution. */
static int64_t middle_of(int64_t in, int64_t out)
{
    return in * out * 27 / (in * 9 + 3 * out);
}

/* One convolution of a block: "conv1.0", or factorised "conv1.0.0", "conv1.0.1", "conv1.0.3". */
static int block_conv(struct ew_builder *b, enum cut cut, const char *name, int x,
                      const int64_t out_middle_stride[3])
{
    const int64_t out = out_middle_stride[0], middle = out_middle_stride[1],
                  s = out_middle_stride[2];
    if (cut == WHOLE)
        return ew_b_conv(b, ew_b_name(b, "%s.0", name), x, out, ew_win(3, s, 1));
    const struct ew_win space = ew_win_video(PAIR(1, 3), PAIR(1, s), PAIR(0, 1));
    if (cut == SPACE_ONLY)
        return ew_b_conv(b, ew_b_name(b, "%s.0", name), x, out, space);
    x = ew_b_conv(b, ew_b_name(b, "%s.0.0", name), x, middle, space);
    x = ew_b_bn(b, ew_b_name(b, "%s.0.1", name), x);
    x = ew_b_relu(b, x);
    return ew_b_conv(b, ew_b_name(b, "%s.0.3", name), x, out,
                     ew_win_video(PAIR(3, 1), PAIR(s, 1), PAIR(1, 0)));
}

static int shortcut(struct ew_builder *b, enum cut cut, int x, int64_t out, int64_t stride)
{
    if (stride == 1 && ew_b_channels(b, x) == out)
        return x;
    const int64_t t_stride = cut == SPACE_ONLY ? 1 : stride;
    x = ew_b_conv(b, "downsample.0", x, out,
                  ew_win_video(PAIR(1, 1), PAIR(t_stride, stride), PAIR(0, 0)));
    return ew_b_bn(b, "downsample.1", x);
}

static int block(struct ew_builder *b, enum cut cut, int x, int64_t planes, int64_t stride)
{
    const int64_t first = ew_b_filters(b, planes), second = ew_b_filters(b, planes);
    const int64_t middle = middle_of(ew_b_channels(b, x), second);
    int y = block_conv(b, cut, "conv1", x, (const int64_t[]){first, middle, stride});
    y = ew_b_bn(b, "conv1.1", y);
    y = ew_b_relu(b, y);
    y = block_conv(b, cut, "conv2", y, (const int64_t[]){second, middle, 1});
    y = ew_b_bn(b, "conv2.1", y);
    x = shortcut(b, cut, x, second, stride);
    return ew_b_relu(b, ew_b_add(b, y, x));
}

static int stem(struct ew_builder *b, const struct spec *s, int x)
{
    const int64_t filters = ew_b_filters(b, 64);
    if (s->stem != SPACE_AND_TIME) {
        const int64_t t = s->stem == WHOLE ? 3 : 1;
        x = ew_b_conv(b, "stem.0", x, filters,
                      ew_win_video(PAIR(t, 7), PAIR(1, 2), PAIR(t / 2, 3)));
        x = ew_b_bn(b, "stem.1", x);
        return ew_b_relu(b, x);
    }
    x = ew_b_conv(b, "stem.0", x, ew_b_filters(b, 45),
                  ew_win_video(PAIR(1, 7), PAIR(1, 2), PAIR(0, 3)));
    x = ew_b_bn(b, "stem.1", x);
    x = ew_b_relu(b, x);
    x = ew_b_conv(b, "stem.3", x, filters, ew_win_video(PAIR(3, 1), PAIR(1, 1), PAIR(1, 0)));
    x = ew_b_bn(b, "stem.4", x);
    return ew_b_relu(b, x);
}

static int build(struct ew_builder *b, const struct ew_variant *v, int x)
{
    const struct spec *s = v->spec;
    x = stem(b, s, x);
    for (int stage = 0; stage < 4; stage++)
        for (int i = 0; i < 2; i++) {
            ew_b_scope(b, "layer%d.%d.", stage + 1, i);
            x = block(b, s->stage[stage], x, 64 << stage, stage > 0 && i == 0 ? 2 : 1);
        }
    ew_b_root(b);
    x = ew_b_adaptive_pool(b, x, 1);
    x = ew_b_flatten(b, x);
    return ew_b_dense(b, "fc", x, b->classes);
}

static const struct spec r3d = {WHOLE, {WHOLE, WHOLE, WHOLE, WHOLE}};
static const struct spec mc3 = {WHOLE, {WHOLE, SPACE_ONLY, SPACE_ONLY, SPACE_ONLY}};
static const struct spec r2plus1d = {
    SPACE_AND_TIME, {SPACE_AND_TIME, SPACE_AND_TIME, SPACE_AND_TIME, SPACE_AND_TIME}};
static const struct spec frames = {SPACE_ONLY, {SPACE_ONLY, SPACE_ONLY, SPACE_ONLY, SPACE_ONLY}};

static const struct ew_variant variants[] = {
    {"r3d_18", NULL, NULL, 112, 112, 3, 400, &r3d, 16},
    {"mc3_18", NULL, "MC3-18: 3-D convolutions in the first stage alone", 112, 112, 3, 400, &mc3,
     16},
    {"r2plus1d_18", NULL, "R(2+1)D-18: convolutions cut into space and time", 112, 112, 3, 400,
     &r2plus1d, 16},
    {"resnet18_frames", NULL, "ResNet-18 on each frame, averaged over time", 112, 112, 3, 400,
     &frames, 16},
};

const struct ew_family ew_family_video_resnet = {
    .name = "video_resnet",
    .about = "ResNet-18 for video: R3D (Tran 2018)",
    .widths = "stem (in R(2+1)D also its first half), then both convolutions of each block, free",
    .variants = variants,
    .n_variants = EW_COUNT(variants),
    .init = {.conv = EW_INIT_HE_OUT},
    .build = build,
};
