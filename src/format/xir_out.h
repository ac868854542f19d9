/* SPDX-License-Identifier: Apache-2.0 */
/* An XIR graph to be written: xir_write.c walks it, xir_ops.c converts nodes to operators. */
#ifndef EW_FORMAT_XIR_OUT_H
#define EW_FORMAT_XIR_OUT_H

#include "format/names.h"
#include "graph/graph.h"
#include "xir.pb-c.h"

struct ew_xir_out {
    struct ew_arena arena; /* messages */
    struct ew_graph *g;    /* a copy, expanded */
    Ew__XirGraph graph;
    int cap_ops;
    struct ew_names names; /* of operators so far */
    /* By value of g. */
    const char **op;        /* its operator; NULL: none yet */
    struct ew_xir_fix *fix; /* the `fix` after it */
    bool *turned; /* [N, C, H, W] in the graph, [N, H, W, C] in the file: an input, or its quantised
                   * value */
};

struct ew_xir_fix {
    bool is;
    int position;
};

/* Adds an operator with room for attributes and arguments; its name is made valid and unique. */
ew_err ew_xir_op(struct ew_xir_out *x, const char *name, const char *type,
                 const struct ew_shape *shape, Ew__XirOp **out);
/* Adds an attribute; a failed arena is reported at the end. */
void ew_xir_int(struct ew_xir_out *x, Ew__XirOp *op, const char *key, int64_t v);
void ew_xir_bool(struct ew_xir_out *x, Ew__XirOp *op, const char *key, bool v);
void ew_xir_float(struct ew_xir_out *x, Ew__XirOp *op, const char *key, double v);
void ew_xir_text(struct ew_xir_out *x, Ew__XirOp *op, const char *key, const char *v);
void ew_xir_ints(struct ew_xir_out *x, Ew__XirOp *op, const char *key, const int64_t *v, int n);
/* Adds an argument: names of operators. */
void ew_xir_arg(struct ew_xir_out *x, Ew__XirOp *op, const char *key, const char *const *ops,
                int n);

/* Adds a float32 constant; `data` is borrowed. */
ew_err ew_xir_const(struct ew_xir_out *x, const char *name, const struct ew_shape *shape,
                    const float *data, const char **op);
/* Adds a `fix` after an operator, which rounds to int8 at the position. */
ew_err ew_xir_fix(struct ew_xir_out *x, const char *from, const struct ew_shape *shape,
                  int position, const char **op);
/* The operator of a value; adds that of a constant, with its `fix` if it is dequantised.  `perm`
 * permutes a constant's axes; NULL: none. */
ew_err ew_xir_value(struct ew_xir_out *x, int value, const int *perm, const char **op);

/* Adds the operators of a node, or fails with the reason. */
ew_err ew_xir_put_node(struct ew_xir_out *x, int node);

#endif
