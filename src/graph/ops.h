/* SPDX-License-Identifier: Apache-2.0 */
/* The descriptors of all operators: ew_op_conv and so on, one for each src/op/op_*.c.  Code that
 * must know a particular operator compares `node->op == &ew_op_conv`, which the compiler checks,
 * and compares names only where they come from a file. */
#ifndef EW_GRAPH_OPS_H
#define EW_GRAPH_OPS_H

#include "graph/op.h"

#define EW_OP(name) extern const struct ew_op ew_op_##name;
#include "op_list.h"
#undef EW_OP

#endif
