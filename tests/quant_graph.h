/* SPDX-License-Identifier: Apache-2.0 */
/* QDQ networks for tests: built, initialised, calibrated on one batch, quantised. */
#ifndef EW_QUANT_GRAPH_H
#define EW_QUANT_GRAPH_H

#include "graph/graph.h"

/* size: of the square input; 0: the network's default.  NULL after a failed check. */
struct ew_graph *ew_quant_graph(const char *model, int size, bool is_signed);
/* The same with power-of-two scales. */
struct ew_graph *ew_quant_graph_pow2(const char *model, int size);

/* which 0: the calibration input; else another one. */
void ew_quant_input(struct ew_tensor *x, int which);

#endif
