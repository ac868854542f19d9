/* SPDX-License-Identifier: Apache-2.0 */
/* Index tensors: range checks and index tuples. */
#ifndef EW_OP_INDEX_H
#define EW_OP_INDEX_H

#include "graph/op.h"

/* Element i of `index`, resolved (negative counts from the end) in an axis of n entries. */
static inline ew_err ew_index_get(const struct ew_tensor *index, int64_t i, int64_t n, int64_t *out)
{
    const int64_t at = ew_tensor_get_int(index, i);
    EW_CHECK(at >= -n && at < n, EW_ERR_ARG, "index %lld is outside an axis of %lld", (long long)at,
             (long long)n);
    *out = at < 0 ? at + n : at;
    return EW_OK;
}

/* Offset of index tuple `row` of `index` ([..., k]) in the axes first .. first + k - 1 of a tensor
 * of shape s, in elements; offsets of leading axes are added by the caller. */
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
