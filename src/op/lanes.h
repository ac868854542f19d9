/* SPDX-License-Identifier: Apache-2.0 */
/* A tensor as lanes along one axis, for operators that process lanes independently (softmax,
 * cumsum, losses). */
#ifndef EW_OP_LANES_H
#define EW_OP_LANES_H

#include <math.h>

#include "op/types.h"

/* Element k of lane (o, i) is at (o * n + k) * inner + i. */
struct ew_lanes {
    int64_t outer, n, inner;
};

static inline struct ew_lanes ew_lanes_of(const struct ew_shape *s, int axis)
{
    return (struct ew_lanes){.outer = ew_shape_span(s, 0, axis),
                             .n = s->dim[axis],
                             .inner = ew_shape_span(s, axis + 1, s->rank)};
}

static inline int64_t ew_lanes_count(const struct ew_lanes *l)
{
    return l->outer * l->inner;
}

/* Offset of a lane; its elements have stride l->inner. */
static inline int64_t ew_lane_start(const struct ew_lanes *l, int64_t lane)
{
    return lane / l->inner * l->n * l->inner + lane % l->inner;
}

/* Copies a lane from or to v[l->n]. */
static inline void ew_lane_load(const struct ew_tensor *t, const struct ew_lanes *l, int64_t lane,
                                double *v)
{
    const int64_t start = ew_lane_start(l, lane);
    if (l->inner == 1)
        ew_tensor_load(t, start, l->n, v);
    for (int64_t k = 0; l->inner != 1 && k < l->n; k++)
        ew_tensor_load(t, start + k * l->inner, 1, v + k);
}

static inline void ew_lane_store(struct ew_tensor *t, const struct ew_lanes *l, int64_t lane,
                                 const double *v)
{
    const int64_t start = ew_lane_start(l, lane);
    if (l->inner == 1)
        ew_tensor_store(t, start, l->n, v);
    for (int64_t k = 0; l->inner != 1 && k < l->n; k++)
        ew_tensor_store(t, start + k * l->inner, 1, v + k);
}

static inline void ew_lane_accumulate(struct ew_tensor *t, const struct ew_lanes *l, int64_t lane,
                                      const double *v)
{
    const int64_t start = ew_lane_start(l, lane);
    if (l->inner == 1)
        ew_tensor_accumulate(t, start, l->n, v);
    for (int64_t k = 0; l->inner != 1 && k < l->n; k++)
        ew_tensor_accumulate(t, start + k * l->inner, 1, v + k);
}

/* Logits to log softmax, in place. */
static inline void ew_lane_log_softmax(double *v, int64_t n)
{
    double most = -INFINITY, sum = 0;
    for (int64_t k = 0; k < n; k++)
        most = fmax(most, v[k]);
    for (int64_t k = 0; k < n; k++)
        sum += exp(v[k] - most);
    const double down = most + log(sum);
    for (int64_t k = 0; k < n; k++)
        v[k] -= down;
}

#endif
