/* SPDX-License-Identifier: Apache-2.0 */
/* Copies between strided boxes, and their gradients: what the operators that move data and compute
 * nothing come down to. */
#ifndef EW_OP_MOVE_H
#define EW_OP_MOVE_H

#include "graph/op.h"

struct ew_move {
    struct ew_shape box;                        /* the positions that are copied */
    int64_t src[EW_MAX_RANK], dst[EW_MAX_RANK]; /* strides in elements; src: 0 repeats, < 0 turns */
    int64_t src_at, dst_at;                     /* the elements of the first position */
};

/* The box of `box`'s shape at the start of tensors of shapes src and dst (equal rank, row-major).
 */
struct ew_move ew_move_box(const struct ew_shape *box, const struct ew_shape *src,
                           const struct ew_shape *dst);
/* dst[...] = src[...]; same element type, any. */
void ew_move_copy(const struct ew_move *m, const struct ew_tensor *src, struct ew_tensor *dst);
/* Its gradient: dsrc[...] += ddst[...]; float32 or float64. */
void ew_move_back(const struct ew_move *m, struct ew_tensor *dsrc, const struct ew_tensor *ddst);

/* Copies in[0] to out[0], or, backward, adds the gradient of out[0] to that of in[0]. */
void ew_move_either(const struct ew_move *m, const struct ew_call *c, bool back);
/* forward and backward of an operator whose moves, either way, are run(c, back). */
#define EW_MOVE_HOOKS(run)                                                                         \
    static ew_err forward(const struct ew_call *c)                                                 \
    {                                                                                              \
        return run(c, false);                                                                      \
    }                                                                                              \
    static ew_err backward(const struct ew_call *c)                                                \
    {                                                                                              \
        return c->din[0] && c->dout[0] ? run(c, true) : EW_OK;                                     \
    }

/* Slice as a move from in[0] to out[0]; pad by a constant: what it keeps of in[0].  Their inputs
 * beside the first must have the host's data. */
ew_err ew_slice_move(const struct ew_call *c, struct ew_move *out);
ew_err ew_pad_move(const struct ew_call *c, struct ew_move *out);

/* Element `from` of src to element `to` of dst, of the same type. */
void ew_element_copy(const struct ew_tensor *src, int64_t from, struct ew_tensor *dst, int64_t to);
/* dst[to] += src[from]; float32 or float64. */
void ew_element_add(const struct ew_tensor *src, int64_t from, struct ew_tensor *dst, int64_t to);

/* forward and backward of operators that keep the bytes and their order (EW_OP_VIEW). */
ew_err ew_view_forward(const struct ew_call *c);
ew_err ew_view_backward(const struct ew_call *c);

/* cost of operators that move bytes and compute nothing. */
void ew_move_cost(const struct ew_call *c, struct ew_cost *out);

#endif
