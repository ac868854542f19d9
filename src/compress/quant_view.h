/* SPDX-License-Identifier: Apache-2.0 */
/* Reading graphs in QDQ form, and putting nodes in the place of others, for the passes that lower
 * them. */
#ifndef EW_COMPRESS_QUANT_VIEW_H
#define EW_COMPRESS_QUANT_VIEW_H

#include "compress/pass.h"
#include "op/epilogue.h"
#include "op/quant.h"

/* An 8-bit value and what it stands for: (q - zero) * scale. */
struct ew_qview {
    int q;           /* the value; -1 for an output that is to be made */
    int scale, zero; /* constants with one element */
};

/* True where `value` is dequantize_linear of an 8-bit value with one scale. */
bool ew_qview_of(const struct ew_graph *g, int value, struct ew_qview *out);
/* The same of a constant, whose scales may be one a channel of `axis`. */
bool ew_qview_weights(const struct ew_graph *g, int value, int axis, struct ew_qview *out);
/* True where node k quantises to 8 bits with one scale: its parameters. */
bool ew_qview_quantizer(const struct ew_graph *g, int node, struct ew_qview *out);

double ew_qview_scale(const struct ew_graph *g, const struct ew_qview *v);
int64_t ew_qview_zero(const struct ew_graph *g, const struct ew_qview *v);
enum ew_dtype ew_qview_dtype(const struct ew_graph *g, const struct ew_qview *v);
bool ew_qview_same(const struct ew_graph *g, const struct ew_qview *a, const struct ew_qview *b);
/* A real number as v's integer. */
int64_t ew_qview_round(const struct ew_graph *g, const struct ew_qview *v, double real);

/* The node that makes `value`, where that is read once alone; -1: none.  While the graph is being
 * rewritten. */
int ew_qview_sole(const struct ew_graph *g, int value);
bool ew_qview_is(const struct ew_graph *g, int node, const struct ew_op *op);

/* Where `value` is relu or clip of something that nothing else reads: steps over it and narrows
 * `clamp`, of numbers that are quantised as `to`. */
int ew_qview_peel_clamp(const struct ew_graph *g, int value, const struct ew_qview *to,
                        struct ew_quant_clamp *clamp);

/* A constant of the graph's own, zeroed. */
ew_err ew_qview_const(struct ew_graph *g, const char *name, enum ew_dtype dtype,
                      const struct ew_shape *shape, int *out);

#endif
