/* SPDX-License-Identifier: Apache-2.0 */
/* The builder of networks:
 *
 *   x = ew_b_conv(b, "conv1", x, ew_b_filters(b, 64), ew_win(7, 2, 3));
 *   x = ew_b_bn(b, "bn1", x);
 *   x = ew_b_relu(b, x);
 *
 * Calls return value numbers.  The first failure sticks: later calls do nothing and return -1, and
 * whoever opened the builder reports it.  Feature maps are [N, H, W, C], of video [N, T, H, W, C];
 * parameters get names and shapes but no data.  Names are torchvision's, so that weights can be
 * copied by name. */
#ifndef EW_MODEL_BUILD_H
#define EW_MODEL_BUILD_H

#include <stdbool.h>
#include <stdint.h>

#include "graph/graph.h"

#define EW_MAX_GATES 256

struct ew_builder {
    struct ew_graph *g;
    ew_err err;      /* the first failure */
    char prefix[96]; /* prefix of every name: "layer1.0." */
    int64_t classes; /* outputs of the last layer */
    double bn_eps;   /* of subsequent batch norms */
    double bn_keep;  /* of subsequent batch norms: share of the running statistics kept per step
                      * (ONNX's momentum) */
    double scale;    /* of all filter counts, if `given` is NULL */
    const int32_t *given; /* filter counts by gate, in the order of ew_b_filters calls */
    int n_given;
    int32_t gates[EW_MAX_GATES]; /* filter counts in use */
    int n_gates;
};

/* ---- Names and widths ---- */

/* Sets, or resets, the prefix of subsequent names ("layer1.0."). */
void ew_b_scope(struct ew_builder *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void ew_b_root(struct ew_builder *b);
/* A formatted name; lives as long as the graph. */
const char *ew_b_name(struct ew_builder *b, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* The filter count of the next free width ("gate"): trunc(base x scale), or the next given one;
 * fails if none is left. */
int64_t ew_b_filters(struct ew_builder *b, int64_t base);
/* The same in multiples of `step`: rounded down; a given count must be a multiple. */
int64_t ew_b_filters_by(struct ew_builder *b, int64_t base, int64_t step);
/* trunc(base x scale) x times; a given count is used unchanged. */
int64_t ew_b_filters_of(struct ew_builder *b, int64_t base, int64_t times);

/* Channels of a feature map, and its shape; zeros after a failure. */
int64_t ew_b_channels(const struct ew_builder *b, int x);
struct ew_shape ew_b_shape(const struct ew_builder *b, int x);

/* ---- Layers with weights ---- */

#define EW_DEPTHWISE (-1) /* one group per channel */

struct ew_win {
    int64_t k, stride, pad, groups; /* kernel k x k, symmetric padding */
    bool ceil;                      /* pooling: ceil_mode */
    int64_t t_k, t_stride, t_pad;   /* of video, along time; t_k 0: as in space */
};

static inline struct ew_win ew_win(int64_t k, int64_t stride, int64_t pad)
{
    return (struct ew_win){.k = k, .stride = stride, .pad = pad, .groups = 1};
}

static inline struct ew_win ew_win_groups(int64_t k, int64_t stride, int64_t pad, int64_t groups)
{
    return (struct ew_win){.k = k, .stride = stride, .pad = pad, .groups = groups};
}

/* Of video: (frames, side) for kernel, stride and padding. */
static inline struct ew_win ew_win_video(const int64_t k[2], const int64_t stride[2],
                                         const int64_t pad[2])
{
    return (struct ew_win){.k = k[1],
                           .stride = stride[1],
                           .pad = pad[1],
                           .groups = 1,
                           .t_k = k[0],
                           .t_stride = stride[0],
                           .t_pad = pad[0]};
}

/* name.weight [out, k, k, in / groups], and optionally name.bias [out]. */
int ew_b_conv(struct ew_builder *b, const char *name, int x, int64_t out, struct ew_win w);
int ew_b_conv_bias(struct ew_builder *b, const char *name, int x, int64_t out, struct ew_win w);
/* name.weight [in, k, k, out] and name.bias [out]; upsamples by the stride. */
int ew_b_conv_transpose(struct ew_builder *b, const char *name, int x, int64_t out,
                        struct ew_win w);
/* weight, bias, running_mean, running_var: [C]. */
int ew_b_bn(struct ew_builder *b, const char *name, int x);
/* weight, bias: [C]. */
int ew_b_group_norm(struct ew_builder *b, const char *name, int x, int64_t groups);
/* [N, in] to [N, out] with bias; name.weight is [out, in]. */
int ew_b_dense(struct ew_builder *b, const char *name, int x, int64_t out);

/* ---- Layers without weights ---- */

int ew_b_relu(struct ew_builder *b, int x);
/* slope x below 0. */
int ew_b_leaky_relu(struct ew_builder *b, int x, double slope);
int ew_b_relu6(struct ew_builder *b, int x);
int ew_b_hard_swish(struct ew_builder *b, int x);
int ew_b_hard_sigmoid(struct ew_builder *b, int x);
int ew_b_add(struct ew_builder *b, int x, int y);
int ew_b_mul(struct ew_builder *b, int x, int y);
int ew_b_dropout(struct ew_builder *b, int x, double ratio);
int ew_b_max_pool(struct ew_builder *b, int x, struct ew_win w);
int ew_b_avg_pool(struct ew_builder *b, int x, struct ew_win w);
/* Adaptive average pooling to side x side, as a module (counted by thop). */
int ew_b_adaptive_pool(struct ew_builder *b, int x, int64_t side);
/* Global average pooling as a function call (not counted by thop). */
int ew_b_global_pool(struct ew_builder *b, int x);
/* [N, H, W, C] to [N, C * H * W], of video [N, C * T * H * W], in torchvision's channels-first
 * order. */
int ew_b_flatten(struct ew_builder *b, int x);
/* The inverse: [N, C * H * W] to a feature map of the shape `like`, except its batch. */
int ew_b_unflatten(struct ew_builder *b, int x, struct ew_shape like);
/* Along the channels. */
int ew_b_concat(struct ew_builder *b, int x, int y);
void ew_b_halves(struct ew_builder *b, int x, int *first, int *second);
int ew_b_shuffle(struct ew_builder *b, int x, int64_t groups);

#endif
