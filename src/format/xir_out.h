/* SPDX-License-Identifier: Apache-2.0 */
/* An XIR graph on its way to a file: what xir_write.c walks and xir_ops.c makes operators of. */
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
    struct ew_names names; /* of operators that are there */
    /* By value of g. */
    const char **op;        /* the operator that makes it; NULL: none yet */
    struct ew_xir_fix *fix; /* the `fix` it has gone through */
    bool *turned; /* an input [N, C, H, W], or what its quantiser makes of it: [N, H, W, C] here */
};

struct ew_xir_fix {
    bool is;
    int position;
};

/* A new operator with room for attributes and arguments; its name is made fit and unique. */
ew_err ew_xir_op(struct ew_xir_out *x, const char *name, const char *type,
                 const struct ew_shape *shape, Ew__XirOp **out);
/* Attributes; a failed arena is noticed at the end. */
void ew_xir_int(struct ew_xir_out *x, Ew__XirOp *op, const char *key, int64_t v);
void ew_xir_bool(struct ew_xir_out *x, Ew__XirOp *op, const char *key, bool v);
void ew_xir_float(struct ew_xir_out *x, Ew__XirOp *op, const char *key, double v);
void ew_xir_text(struct ew_xir_out *x, Ew__XirOp *op, const char *key, const char *v);
void ew_xir_ints(struct ew_xir_out *x, Ew__XirOp *op, const char *key, const int64_t *v, int n);
/* An argument: operators by name. */
void ew_xir_arg(struct ew_xir_out *x, Ew__XirOp *op, const char *key, const char *const *ops,
                int n);

/* A float32 constant of one element a shape entry; `data` is borrowed. */
ew_err ew_xir_const(struct ew_xir_out *x, const char *name, const struct ew_shape *shape,
                    const float *data, const char **op);
/* `fix` after an operator: to int8 at the position and back. */
ew_err ew_xir_fix(struct ew_xir_out *x, const char *from, const struct ew_shape *shape,
                  int position, const char **op);
/* The operator of a value: that which made it, or a constant with its `fix` where it is
 * dequantised.  `perm`: the order of a constant's axes, NULL: as it is. */
ew_err ew_xir_value(struct ew_xir_out *x, int value, const int *perm, const char **op);

/* Operators of node k of x->g, or the message why there is none. */
ew_err ew_xir_put_node(struct ew_xir_out *x, int node);

#endif
