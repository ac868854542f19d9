/* SPDX-License-Identifier: Apache-2.0 */
/* Networks in QDQ form for tests: built, given weights, ranges measured on one batch, quantised. */
#ifndef EW_QUANT_GRAPH_H
#define EW_QUANT_GRAPH_H

#include "graph/graph.h"

/* `size`: of the square input, 0: the network's own.  NULL after a failed expectation. */
struct ew_graph *ew_quant_graph(const char *model, int size, bool is_signed);
/* The same with power-of-two scales. */
struct ew_graph *ew_quant_graph_pow2(const char *model, int size);

/* The input that ranges are measured with, and another one like it. */
void ew_quant_input(struct ew_tensor *x, int which);

#endif
