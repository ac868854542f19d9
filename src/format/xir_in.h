/* SPDX-License-Identifier: Apache-2.0 */
/* An XIR file being read: xir_read.c walks it, xir_nodes.c converts its operators. */
#ifndef EW_FORMAT_XIR_IN_H
#define EW_FORMAT_XIR_IN_H

#include "format/onnx_file.h"
#include "graph/graph.h"
#include "xir.pb-c.h"

struct ew_xir_in {
    struct ew_onnx_file file; /* owns messages, and bounds their memory */
    const Ew__XirGraph *graph;
    struct ew_graph *g;
    struct ew_names names; /* operator names to numbers */
    int *value;            /* by operator: its value */
    bool *read;            /* by operator: has a reader */
    /* the current operator: */
    const Ew__XirOp *op;
};

/* Attributes of in->op; NULL or `def` if absent. */
const Ew__XirAttr *ew_xir_attr(const struct ew_xir_in *in, const char *key);
int64_t ew_xir_get_int(const struct ew_xir_in *in, const char *key, int64_t def);
const char *ew_xir_get_text(const struct ew_xir_in *in, const char *key, const char *def);
/* A required list of `n` numbers >= `least`; n < 0: any length up to EW_MAX_RANK. */
ew_err ew_xir_get_ints(const struct ew_xir_in *in, const char *key, int n, int64_t least,
                       struct ew_ints *out);

/* The values of argument `key` of in->op, at most `most`; *n is 0 if it is absent. */
ew_err ew_xir_args(struct ew_xir_in *in, const char *key, int most, int *values, int *n);
/* The only value of argument `key`. */
ew_err ew_xir_one(struct ew_xir_in *in, const char *key, int *value);

/* Adds the nodes of in->op. */
ew_err ew_xir_get_node(struct ew_xir_in *in, int *value);

#endif
