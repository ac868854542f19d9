/* SPDX-License-Identifier: Apache-2.0 */
/* The epilogue of a convolution or batch norm: an activation and the addition of another tensor,
 * before the result is stored.  Set by fusion passes only; files have separate nodes. */
#ifndef EW_OP_EPILOGUE_H
#define EW_OP_EPILOGUE_H

#include "graph/op.h"
#include "op/activation.h"

extern const char *const ew_act_names[]; /* NULL-terminated: names of the operators */

struct ew_epilogue_attr {
    int act;        /* enum ew_act */
    double lo, hi;  /* the activation's parameters */
    bool add_after; /* y = act(sum) + add instead of act(sum + add) */
};

/* clang-format off */
/* The rows of a field table for `part`, a struct ew_epilogue_attr in struct `owner`. */
#define EW_EPILOGUE_FIELDS(owner, part)                                                            \
    {.name = "act", .type = EW_FIELD_ENUM, .offset = offsetof(owner, part.act),                    \
     .choices = ew_act_names, .help = "activation in the epilogue"},                 \
    {.name = "act_lo", .type = EW_FIELD_FLOAT, .offset = offsetof(owner, part.lo),                 \
     .help = "the activation's first parameter"},                                                  \
    {.name = "act_hi", .type = EW_FIELD_FLOAT, .offset = offsetof(owner, part.hi),                 \
     .help = "the activation's second parameter"},                                                 \
    {.name = "add_after", .type = EW_FIELD_BOOL, .offset = offsetof(owner, part.add_after),        \
     .help = "add the last input after the activation, not before it"}
/* clang-format on */

/* Renames to NULL: these fields are not exchanged with ONNX. */
#define EW_EPILOGUE_RENAMES "act", NULL, "act_lo", NULL, "act_hi", NULL, "add_after", NULL

/* The activation of one number. */
double ew_act_apply(const struct ew_epilogue_attr *e, double x);

/* Its derivative; at a kink that of the constant side. */
double ew_act_slope(const struct ew_epilogue_attr *e, double x);

/* y = act(y + add), or act(y) + add; `add` NULL: none. */
void ew_epilogue_run(const struct ew_epilogue_attr *e, const struct ew_tensor *add,
                     struct ew_tensor *y);

/* If the call is of one of these activations with known parameters: fills act, lo and hi. */
bool ew_act_of_call(const struct ew_call *c, struct ew_epilogue_attr *out);
/* The same for a node. */
struct ew_graph;
bool ew_act_of_node(const struct ew_graph *g, int node, struct ew_epilogue_attr *out);

/* Fails if backward is not supported: only relu's derivative follows from the output, which is what
 * training saves. */
ew_err ew_epilogue_check_back(const struct ew_epilogue_attr *e, const struct ew_tensor *add);
/* dx = dy * act'(.), derived from the activation's output y. */
void ew_epilogue_back(const struct ew_epilogue_attr *e, const struct ew_tensor *y,
                      const struct ew_tensor *dy, struct ew_tensor *dx);

#endif
