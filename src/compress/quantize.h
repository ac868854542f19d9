/* SPDX-License-Identifier: Apache-2.0 */
/* From a float graph to one in QDQ form, by the ranges of its values.  Where the ranges come from,
 * and which nodes are better left alone, is left to others. */
#ifndef EW_COMPRESS_QUANTIZE_H
#define EW_COMPRESS_QUANTIZE_H

#include "graph/graph.h"

/* Of one value, over all of its elements; lo > hi: not known, the value is not quantised. */
struct ew_range {
    float lo, hi;
};

/* clang-format off */
#define EW_QUANTIZE_MAP(X)                                                                         \
    X(CHANNEL, "channel") /* weights int8 with a scale a channel, biases int32 */                  \
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
    const struct ew_range *ranges; /* one for each value of the graph */
    const bool *keep;              /* one for each node: it stays float32; NULL: none does */
    bool is_signed;                /* activations are int8, else uint8; with POW2 always int8 */
    const int *positions;          /* POW2: one for each value; NULL: those that clip nothing */
    bool learn; /* for training: see compress/fake_quant.h; no node may be kept then */
};

/* True for nodes that only move elements or pick the largest: what they make is as quantised as
 * what they read, with one scale for all. */
bool ew_quantize_moves(const struct ew_node *n);

/* Fails where the network is quantised already: the rounding of the first time would be taken for
 * the network. */
ew_err ew_quantize_check_float(const struct ew_graph *g);

/* What must be done before ranges are measured: batch norms go into convolutions, and what would
 * only hand values on goes. */
ew_err ew_quantize_prepare(struct ew_graph *g);

/* Puts quantize_linear and dequantize_linear round every float32 activation that a quantised node
 * reads or makes, and gives convolutions and dense layers integer weights and biases as the scheme
 * says.  With POW2 what quantised nodes give to the outside is quantised too.  Values that only
 * move, or are put together, share one scale.  relu and clip stay right after what makes their
 * input.  Values are renumbered. */
ew_err ew_quantize(struct ew_graph *g, const struct ew_quantize_opts *o);

#endif
