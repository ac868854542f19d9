/* SPDX-License-Identifier: Apache-2.0 */
/* Indices that come as data: range checks, and the attribute of operators along one axis. */
#ifndef EW_OP_INDEX_H
#define EW_OP_INDEX_H

#include "graph/op.h"

/* Element i of `index`, which counts from the back where negative, in an axis of n entries. */
static inline ew_err ew_index_get(const struct ew_tensor *index, int64_t i, int64_t n, int64_t *out)
{
    const int64_t at = ew_tensor_get_int(index, i);
    EW_CHECK(at >= -n && at < n, EW_ERR_ARG, "index %lld is outside an axis of %lld", (long long)at,
             (long long)n);
    *out = at < 0 ? at + n : at;
    return EW_OK;
}

/* Position of index tuple `row` of `index` ([..., k]) in a tensor of shape s: the tuple picks from
 * the axes first .. first + k - 1, and what comes before them is added by the caller.  The result
 * is in elements of s from its axis `first` on. */
static inline ew_err ew_index_tuple(const struct ew_tensor *index, int64_t row,
                                    const struct ew_shape *s, int first, int64_t *out)
{
    const int k = (int)index->shape.dim[index->shape.rank - 1];
    *out = 0;
    for (int i = 0; i < k; i++) {
        int64_t at = 0;
        EW_TRY(ew_index_get(index, row * k + i, s->dim[first + i], &at));
        *out += at * ew_shape_span(s, first + i + 1, s->rank);
    }
    return EW_OK;
}

#endif
