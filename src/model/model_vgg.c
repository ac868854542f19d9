/* SPDX-License-Identifier: Apache-2.0 */
/* VGG without batch norm, as torchvision has it.  The CIFAR form is model_vgg_cifar.c. */
#include "model/model.h"

#define POOL 0 /* entry in a list of filters, which END terminates */
#define END  (-1)

/* Numbers layers as torchvision does: activations and pools count. */
static int features(struct ew_builder *b, const int *filters, int x)
{
    ew_b_scope(b, "features.");
    int at = 0;
    for (const int *f = filters; *f != END; f++) {
        if (*f == POOL) {
            x = ew_b_max_pool(b, x, ew_win(2, 2, 0));
            at++;
            continue;
        }
        x = ew_b_conv_bias(b, ew_b_name(b, "%d", at), x, ew_b_filters(b, *f), ew_win(3, 1, 1));
        x = ew_b_relu(b, x);
        at += 2;
    }
    return x;
}

static int classifier(struct ew_builder *b, int x)
{
    x = ew_b_adaptive_pool(b, x, 7);
    x = ew_b_flatten(b, x);
    ew_b_scope(b, "classifier.");
    x = ew_b_dense(b, "0", x, ew_b_filters(b, 4096));
    x = ew_b_relu(b, x);
    x = ew_b_dropout(b, x, 0.5);
    x = ew_b_dense(b, "3", x, ew_b_filters(b, 4096));
    x = ew_b_relu(b, x);
    x = ew_b_dropout(b, x, 0.5);
    return ew_b_dense(b, "6", x, b->classes);
}

static int build(struct ew_builder *b, const struct ew_variant *v, int x)
{
    return classifier(b, features(b, v->spec, x));
}

/* clang-format off */
static const int vgg11[] = {64, POOL, 128, POOL, 256, 256, POOL, 512, 512, POOL, 512, 512, POOL, END};
static const int vgg13[] = {64, 64, POOL, 128, 128, POOL, 256, 256, POOL, 512, 512, POOL,
                            512, 512, POOL, END};
static const int vgg16[] = {64, 64, POOL, 128, 128, POOL, 256, 256, 256, POOL, 512, 512, 512, POOL,
                            512, 512, 512, POOL, END};
static const int vgg19[] = {64, 64, POOL, 128, 128, POOL, 256, 256, 256, 256, POOL,
                            512, 512, 512, 512, POOL, 512, 512, 512, 512, POOL, END};
/* clang-format on */

static const struct ew_variant variants[] = {
    {"vgg11", "NX, TRAIN", NULL, 224, 224, 3, 1000, vgg11},
    {"vgg13", NULL, NULL, 224, 224, 3, 1000, vgg13},
    {"vgg16", NULL, NULL, 224, 224, 3, 1000, vgg16},
    {"vgg19", "NX, ENGINE", NULL, 224, 224, 3, 1000, vgg19},
};

const struct ew_family ew_family_vgg = {
    .name = "vgg",
    .about = "VGG without batch norm (Simonyan 2015)",
    .widths = "every convolution, 2 dense layers",
    .variants = variants,
    .n_variants = EW_COUNT(variants),
    .init = {.conv = EW_INIT_HE_OUT, .dense = EW_INIT_NORMAL_001, .zero_bias = true},
    .build = build,
};
