/* SPDX-License-Identifier: Apache-2.0 */
/* Matching in graphs in QDQ form, for the passes that lower them. */
#ifndef EW_COMPRESS_QUANT_VIEW_H
#define EW_COMPRESS_QUANT_VIEW_H

#include "compress/pass.h"
#include "op/epilogue.h"
#include "op/quant.h"

/* An 8-bit value with its parameters: real = (q - zero) * scale. */
struct ew_qview {
    int q;           /* value; -1: an output to be added */
    int scale, zero; /* constants with one element */
};

/* True if `value` is dequantize_linear of an 8-bit value with a scalar scale. */
bool ew_qview_of(const struct ew_graph *g, int value, struct ew_qview *out);
/* The same for a constant, with a scalar scale or one per channel of `axis`. */
bool ew_qview_weights(const struct ew_graph *g, int value, int axis, struct ew_qview *out);
/* True if the node is quantize_linear to 8 bits with a scalar scale. */
bool ew_qview_quantizer(const struct ew_graph *g, int node, struct ew_qview *out);

double ew_qview_scale(const struct ew_graph *g, const struct ew_qview *v);
int64_t ew_qview_zero(const struct ew_graph *g, const struct ew_qview *v);
enum ew_dtype ew_qview_dtype(const struct ew_graph *g, const struct ew_qview *v);
bool ew_qview_same(const struct ew_graph *g, const struct ew_qview *a, const struct ew_qview *b);
/* Quantises a real number with v's parameters. */
int64_t ew_qview_round(const struct ew_graph *g, const struct ew_qview *v, double real);

/* The producer of `value`, if that has one use; -1: none.  During a rewrite. */
int ew_qview_sole(const struct ew_graph *g, int value);
bool ew_qview_is(const struct ew_graph *g, int node, const struct ew_op *op);

/* If `value` is relu or clip of a value with one use, returns that value and narrows `clamp`, which
 * is in integers quantised as `to`; else returns `value`. */
int ew_qview_peel_clamp(const struct ew_graph *g, int value, const struct ew_qview *to,
                        struct ew_quant_clamp *clamp);

/* Adds a zeroed constant. */
ew_err ew_qview_const(struct ew_graph *g, const char *name, enum ew_dtype dtype,
                      const struct ew_shape *shape, int *out);

#endif
