/* SPDX-License-Identifier: Apache-2.0 */
/* Pooling: attributes, and the common loops of sliding, global and adaptive pools. */
#ifndef EW_OP_POOLING_H
#define EW_OP_POOLING_H

#include "op/window.h"

/* max_pool, average_pool and lp_pool. */
struct ew_pool_attr {
    struct ew_window_attr win;
    bool ceil_mode;         /* round the output size up */
    bool count_include_pad; /* average_pool: padding counts as zeros */
    int64_t storage_order;  /* max_pool: 1: column-major Indices */
    int64_t p;              /* lp_pool: exponent of the norm */
};

/* adaptive_avg_pool, adaptive_max_pool. */
struct ew_adaptive_attr {
    struct ew_ints size; /* spatial size of the output */
};

extern const struct ew_field ew_adaptive_fields[];

/* The window of a sliding pool; fails unless x and the attributes fit. */
ew_err ew_pool_resolve(const struct ew_call *c, struct ew_window *out);
ew_err ew_adaptive_resolve(const struct ew_call *c, struct ew_window *out);
ew_err ew_global_resolve(const struct ew_call *c, struct ew_window *out);

/* Sets type and shape of all outputs. */
void ew_pool_shape(const struct ew_call *c, const struct ew_window *w);
/* One operation per window element and channel. */
void ew_pool_cost(const struct ew_call *c, const struct ew_window *w, struct ew_cost *out);
/* The same, with thop's count of adaptive pools: floor(in / out) elements + 1 per output. */
void ew_adaptive_cost(const struct ew_call *c, const struct ew_window *w, struct ew_cost *out);

/* infer (of floating types) and cost for each kind of pool. */
ew_err ew_pool_infer_float(const struct ew_call *c);
ew_err ew_global_infer_float(const struct ew_call *c);
void ew_pool_cost_sliding(const struct ew_call *c, struct ew_cost *out);
void ew_pool_cost_global(const struct ew_call *c, struct ew_cost *out);

/* Export hook of pools that have dilation since opset `since`. */
ew_err ew_pool_export(const struct ew_graph *g, int node, struct ew_onnx_node *n, int since);
/* Export hook of adaptive pools, which ONNX lacks: `global` if the output is one pixel, `sliding`
 * if the windows are uniform, else EW_ERR_UNSUPPORTED. */
ew_err ew_adaptive_export(const struct ew_graph *g, int node, struct ew_onnx_node *n,
                          const char *global, const char *sliding);

/* ---- Maximum ----
 * aux, where there is one, takes the place of each output's maximum in its window (ew_tap.index):
 * a byte where the window is small, else an int64_t.  Backward reads nothing else, so that training
 * need not keep what was pooled. */
#define EW_MAX_POOL_SMALL 256 /* elements of a window */
bool ew_max_pool_small(const struct ew_window *w);
size_t ew_max_pool_aux(const struct ew_window *w); /* bytes */
/* Writes out[1] (Indices) if wanted: ONNX's flat positions in x as [N, C, d...], whatever the
 * layout in memory. */
ew_err ew_max_pool_forward(const struct ew_call *c, const struct ew_window *w, bool columns);
ew_err ew_max_pool_backward(const struct ew_call *c, const struct ew_window *w);

/* ---- Mean ---- */
ew_err ew_avg_pool_forward(const struct ew_call *c, const struct ew_window *w, bool padded);
ew_err ew_avg_pool_backward(const struct ew_call *c, const struct ew_window *w, bool padded);

/* ---- (sum |x|^p)^(1/p) ---- */
ew_err ew_lp_pool_forward(const struct ew_call *c, const struct ew_window *w, int64_t p);
ew_err ew_lp_pool_backward(const struct ew_call *c, const struct ew_window *w, int64_t p);

#endif
