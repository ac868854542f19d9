/* SPDX-License-Identifier: Apache-2.0 */
/* Axis attributes under permuted inputs: shared permute hooks and their helpers.
 * perm is as in ew_op.permute: axis i of the permuted tensor is axis perm[i] of the old. */
#ifndef EW_OP_AXIS_H
#define EW_OP_AXIS_H

#include "graph/graph.h"

/* The new position of an axis. */
int ew_axis_moved(int axis, const int *perm, int rank);

/* The hook of operators that have one axis (the attribute "axis") and keep the rank. */
ew_err ew_axis_permute(struct ew_graph *g, int node, const int *perm, int *out_perm);

/* For operators whose input `slot` lists axes (absent: the first `n`, or all if n < 0): replaces it
 * by a constant with the permuted axes, or drops it if these are the first ones in order.  The node
 * must have room for `slot`.  EW_ERR_UNSUPPORTED if the list is not constant. */
ew_err ew_axes_input_permute(struct ew_graph *g, int node, int slot, int n, const int *perm);

/* The hook of operators whose input 1 has one entry per axis (tile's repeats, expand's shape):
 * replaces it by a permuted constant.  EW_ERR_UNSUPPORTED if it is not constant. */
ew_err ew_list_permute(struct ew_graph *g, int node, const int *perm, int *out_perm);

/* Reads a known list of axes, resolved and without duplicates; NULL: the first n. */
ew_err ew_axes_read(const struct ew_tensor *t, int rank, int n, struct ew_ints *out);

/* Guard of a view whose input was permuted under the condition that the axes in `unit` have size 1:
 * fails if they no longer have, since the bytes would be in the wrong order. */
ew_err ew_axis_check_unit(const struct ew_shape *s, int64_t unit);

/* The hook of views, whose attribute "unit" holds such a mask. */
ew_err ew_view_permute(struct ew_graph *g, int node, const int *perm, int *out_perm);

#endif
