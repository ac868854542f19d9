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

/* A lane to be compared.  64-bit integers stay as they are, because doubles do not hold them all.
 */
struct ew_lane_order {
    bool largest; /* the largest is the best, else the smallest */
    bool whole;
    union {
        double *real;
        int64_t *whole; /* unsigned ones with the upper bit turned */
    } v;
};

enum { EW_LANE_ORDER_BYTES = 8 }; /* an element */

/* `room`: EW_LANE_ORDER_BYTES for each element. */
static inline struct ew_lane_order ew_lane_order_load(const struct ew_tensor *t,
                                                      const struct ew_lanes *l, int64_t lane,
                                                      bool largest, void *room)
{
    struct ew_lane_order o = {largest, t->dtype == EW_S64 || t->dtype == EW_U64, {.real = room}};
    if (!o.whole) {
        ew_lane_load(t, l, lane, o.v.real);
        return o;
    }
    o.v.whole = room;
    const int64_t start = ew_lane_start(l, lane);
    const uint64_t turn = t->dtype == EW_U64 ? (uint64_t)1 << 63 : 0;
    for (int64_t k = 0; k < l->n; k++)
        o.v.whole[k] = (int64_t)((uint64_t)ew_tensor_get_int(t, start + k * l->inner) ^ turn);
    return o;
}

/* True if element i is better than element j. */
static inline bool ew_lane_better(const struct ew_lane_order *o, int64_t i, int64_t j)
{
    const int64_t high = o->largest ? i : j, low = o->largest ? j : i;
    return o->whole ? o->v.whole[high] > o->v.whole[low] : o->v.real[high] > o->v.real[low];
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
