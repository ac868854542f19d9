/* SPDX-License-Identifier: Apache-2.0 */
/* Quantising a float graph to QDQ form, by the ranges of its values.  Callers measure the ranges
 * and choose the nodes that stay float32. */
#ifndef EW_COMPRESS_QUANTIZE_H
#define EW_COMPRESS_QUANTIZE_H

#include "graph/graph.h"

/* Range of a value over all elements; lo > hi: unknown, the value is not quantised. */
struct ew_range {
    float lo, hi;
};

/* clang-format off */
#define EW_QUANTIZE_MAP(X)                                                                         \
    X(CHANNEL, "channel") /* int8 weights with per-channel scales, int32 biases */                  \
    X(POW2,    "pow2")    /* all int8, scalar power-of-two scales, zero points 0 (pow2.h) */
/* clang-format on */

enum ew_quantize_scheme {
#define EW_QUANTIZE_ENUM(id, name) EW_QUANTIZE_##id,
    EW_QUANTIZE_MAP(EW_QUANTIZE_ENUM)
#undef EW_QUANTIZE_ENUM
        EW_QUANTIZE_N
};

/* The names, NULL-terminated: the `choices` of an option. */
extern const char *const ew_quantize_names[];

struct ew_quantize_opts {
    enum ew_quantize_scheme scheme;
    const struct ew_range *ranges; /* by value */
    const bool *keep;              /* by node: it stays float32; NULL: none */
    bool is_signed;                /* activations are int8, else uint8; with POW2 always int8 */
    const int *positions;          /* POW2, by value; NULL: positions that clip nothing */
    bool learn; /* insert fake_quant for training (compress/fake_quant.h); not with `keep` */
};

/* True for nodes that only move elements or select the largest: input and output have the same
 * scale, and the output needs no quantiser. */
bool ew_quantize_moves(const struct ew_node *n);

/* Fails if the network is quantised already. */
ew_err ew_quantize_check_float(const struct ew_graph *g);

/* Passes to run before ranges are measured: folds batch norms and padding, removes identities. */
ew_err ew_quantize_prepare(struct ew_graph *g);

/* Inserts quantize_linear and dequantize_linear at every float32 activation that a quantised node
 * reads or writes, and gives convolutions and dense layers integer weights and biases by the
 * scheme.  With POW2 outputs of quantised nodes to float nodes are quantised too.  Values that are
 * moved or concatenated share one scale; relu and clip stay right behind the producer of their
 * input.  Values are renumbered. */
ew_err ew_quantize(struct ew_graph *g, const struct ew_quantize_opts *o);

#endif
