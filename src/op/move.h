/* SPDX-License-Identifier: Apache-2.0 */
/* Copies between strided boxes, and their gradients: the basis of all data-movement operators. */
#ifndef EW_OP_MOVE_H
#define EW_OP_MOVE_H

#include "graph/op.h"

struct ew_move {
    struct ew_shape box; /* shape of the copy */
    int64_t src[EW_MAX_RANK],
        dst[EW_MAX_RANK];   /* strides in elements; src: 0 broadcasts, < 0 reverses */
    int64_t src_at, dst_at; /* offsets of the first element */
};

/* A copy of shape `box` at the origin of row-major tensors of shapes src and dst (equal rank). */
struct ew_move ew_move_box(const struct ew_shape *box, const struct ew_shape *src,
                           const struct ew_shape *dst);
/* dst[...] = src[...]; same element type, any. */
void ew_move_copy(const struct ew_move *m, const struct ew_tensor *src, struct ew_tensor *dst);
/* Its gradient: dsrc[...] += ddst[...]; float32 or float64. */
void ew_move_back(const struct ew_move *m, struct ew_tensor *dsrc, const struct ew_tensor *ddst);

/* Copies in[0] to out[0], or, if `back`, adds the gradient of out[0] to that of in[0]. */
void ew_move_either(const struct ew_move *m, const struct ew_call *c, bool back);
/* forward and backward of an operator implemented as run(c, back). */
#define EW_MOVE_HOOKS(run)                                                                         \
    static ew_err forward(const struct ew_call *c)                                                 \
    {                                                                                              \
        return run(c, false);                                                                      \
    }                                                                                              \
    static ew_err backward(const struct ew_call *c)                                                \
    {                                                                                              \
        return c->din[0] && c->dout[0] ? run(c, true) : EW_OK;                                     \
    }

/* Slice as a move from in[0] to out[0]; constant pad: the part of in[0] that it keeps.  Their other
 * inputs must have data. */
ew_err ew_slice_move(const struct ew_call *c, struct ew_move *out);
ew_err ew_pad_move(const struct ew_call *c, struct ew_move *out);

/* dst[to] = src[from]; same element type. */
void ew_element_copy(const struct ew_tensor *src, int64_t from, struct ew_tensor *dst, int64_t to);
/* dst[to] += src[from]; float32 or float64. */
void ew_element_add(const struct ew_tensor *src, int64_t from, struct ew_tensor *dst, int64_t to);

/* forward and backward of views (EW_OP_VIEW). */
ew_err ew_view_forward(const struct ew_call *c);
ew_err ew_view_backward(const struct ew_call *c);

/* cost of data-movement operators: no arithmetic. */
void ew_move_cost(const struct ew_call *c, struct ew_cost *out);

#endif
