/* SPDX-License-Identifier: Apache-2.0 */
/* Axes of operators when their input is permuted: shared permute hooks and what they are made of.
 * perm is as in ew_op.permute: axis i of the permuted tensor is axis perm[i] of the old. */
#ifndef EW_OP_AXIS_H
#define EW_OP_AXIS_H

#include "graph/graph.h"

/* Where the old axis has gone. */
int ew_axis_moved(int axis, const int *perm, int rank);

/* The hook of operators that have one axis (the attribute "axis") and keep the rank. */
ew_err ew_axis_permute(struct ew_graph *g, int node, const int *perm, int *out_perm);

/* For operators whose input `slot` lists axes (absent: the first `n`, or all of them where n < 0):
 * replaces that input by a constant with the moved axes, or drops it where these are again the
 * first ones in order.  The node must have room for `slot`.  EW_ERR_UNSUPPORTED where the list is
 * not a constant. */
ew_err ew_axes_input_permute(struct ew_graph *g, int node, int slot, int n, const int *perm);

/* The hook of operators whose input 1 has one entry for each axis (tile's repeats, expand's shape):
 * replaces that by a constant in the new order.  EW_ERR_UNSUPPORTED where it is not a constant. */
ew_err ew_list_permute(struct ew_graph *g, int node, const int *perm, int *out_perm);

/* The axes in a list of known value, resolved and free of doubles; absent (NULL): the first n. */
ew_err ew_axes_read(const struct ew_tensor *t, int rank, int n, struct ew_ints *out);

/* The guard of a view whose input was permuted that way: the shape must still have one element in
 * each axis of `unit`, else the layout does not fit and the bytes would be in the wrong order. */
ew_err ew_axis_check_unit(const struct ew_shape *s, int64_t unit);

/* The hook of views with an attribute "unit" that holds such a mask. */
ew_err ew_view_permute(struct ew_graph *g, int node, const int *perm, int *out_perm);

#endif
