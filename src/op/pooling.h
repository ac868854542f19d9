/* SPDX-License-Identifier: Apache-2.0 */
/* Pools: attributes, and the loops that sliding, global and adaptive pools share. */
#ifndef EW_OP_POOLING_H
#define EW_OP_POOLING_H

#include "op/window.h"

/* max_pool, average_pool and lp_pool. */
struct ew_pool_attr {
    struct ew_window_attr win;
    bool ceil_mode;         /* round the output size up */
    bool count_include_pad; /* average_pool: padding counts as zeros */
    int64_t storage_order;  /* max_pool: 1: Indices run along columns */
    int64_t p;              /* lp_pool: the norm */
};

/* adaptive_avg_pool, adaptive_max_pool. */
struct ew_adaptive_attr {
    struct ew_ints size; /* spatial size of the output */
};

extern const struct ew_field ew_adaptive_fields[];

/* Fails unless x fits and attr is whole; then the window. */
ew_err ew_pool_resolve(const struct ew_call *c, struct ew_window *out);
ew_err ew_adaptive_resolve(const struct ew_call *c, struct ew_window *out);
ew_err ew_global_resolve(const struct ew_call *c, struct ew_window *out);

/* All outputs are like the pooled x. */
void ew_pool_shape(const struct ew_call *c, const struct ew_window *w);
/* One operation per window element and channel. */
void ew_pool_cost(const struct ew_call *c, const struct ew_window *w, struct ew_cost *out);
/* The same, and thop's count for adaptive pools: floor(in / out) elements + 1 an output. */
void ew_adaptive_cost(const struct ew_call *c, const struct ew_window *w, struct ew_cost *out);

/* infer of pools of floating numbers, and cost, by the window of their kind. */
ew_err ew_pool_infer_float(const struct ew_call *c);
ew_err ew_global_infer_float(const struct ew_call *c);
void ew_pool_cost_sliding(const struct ew_call *c, struct ew_cost *out);
void ew_pool_cost_global(const struct ew_call *c, struct ew_cost *out);

/* For pools that have dilation only from opset `since` on. */
ew_err ew_pool_export(const struct ew_graph *g, int node, struct ew_onnx_node *n, int since);
/* ONNX has no adaptive pools: the global one where the output is one pixel, the sliding one where
 * the windows are even, else EW_ERR_UNSUPPORTED. */
ew_err ew_adaptive_export(const struct ew_graph *g, int node, struct ew_onnx_node *n,
                          const char *global, const char *sliding);

/* ---- Maximum ----
 * aux, where there is one, takes the place of each output's maximum in its window (ew_tap.index):
 * a byte where the window is small, else an int64_t.  Backward reads nothing else, so that training
 * need not keep what was pooled. */
#define EW_MAX_POOL_SMALL 256 /* elements of a window */
bool ew_max_pool_small(const struct ew_window *w);
size_t ew_max_pool_aux(const struct ew_window *w); /* bytes */
/* Writes out[1] (Indices) where it is asked for: ONNX's positions in the whole of x as if it were
 * [N, C, d...], whatever the layout in memory. */
ew_err ew_max_pool_forward(const struct ew_call *c, const struct ew_window *w, bool columns);
ew_err ew_max_pool_backward(const struct ew_call *c, const struct ew_window *w);

/* ---- Mean ---- */
ew_err ew_avg_pool_forward(const struct ew_call *c, const struct ew_window *w, bool padded);
ew_err ew_avg_pool_backward(const struct ew_call *c, const struct ew_window *w, bool padded);

/* ---- (sum |x|^p)^(1/p) ---- */
ew_err ew_lp_pool_forward(const struct ew_call *c, const struct ew_window *w, int64_t p);
ew_err ew_lp_pool_backward(const struct ew_call *c, const struct ew_window *w, int64_t p);

#endif
