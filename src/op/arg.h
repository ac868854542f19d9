/* SPDX-License-Identifier: Apache-2.0 */
/* What argmax and argmin share: all but the comparison. */
#ifndef EW_OP_ARG_H
#define EW_OP_ARG_H

#include "graph/graph.h"
#include "op/math_attr.h"

extern const struct ew_field ew_arg_attrs[];

ew_err ew_arg_infer(const struct ew_call *c);
void ew_arg_cost(const struct ew_call *c, struct ew_cost *out);
/* Room for one lane. */
size_t ew_arg_scratch(const struct ew_call *c);
/* `better(x, best)`: x takes the place of best. */
ew_err ew_arg_forward(const struct ew_call *c, bool (*better)(double x, double best));
ew_err ew_arg_permute(struct ew_graph *g, int node, const int *perm, int *out_perm);

#endif
