/* SPDX-License-Identifier: Apache-2.0 */
/* Common part of the losses over class labels: shapes, class weights, reduction, layout. */
#ifndef EW_OP_LOSS_H
#define EW_OP_LOSS_H

#include "graph/onnx.h"
#include "op/lanes.h"
#include "op/math_attr.h"
#include "op/pointwise.h"

/* in[0]: scores [N, C, d...]; in[1]: labels [N, d...]; in[2]: weights [C], or none.
 * out[0]: the loss: a scalar, or [N, d...] without reduction. */

extern const char *const ew_loss_reductions[];

/* Common rows of their field tables. */
#define EW_LOSS_FIELDS                                                                             \
    {.name = "reduction",                                                                          \
     .type = EW_FIELD_ENUM,                                                                        \
     .offset = offsetof(struct ew_loss_attr, reduction),                                           \
     .def = "mean",                                                                                \
     .choices = ew_loss_reductions,                                                                \
     .help = "what becomes of the samples' losses"},                                               \
        {.name = "ignore_index",                                                                   \
         .type = EW_FIELD_INT,                                                                     \
         .offset = offsetof(struct ew_loss_attr, ignore_index),                                    \
         .def = "-9223372036854775808",                                                            \
         .help = "a label that does not count"},                                                   \
    {                                                                                              \
        .name = "axis", .type = EW_FIELD_INT, .offset = offsetof(struct ew_loss_attr, axis),       \
        .def = "1", .help = "of the classes"                                                       \
    }

ew_err ew_loss_infer(const struct ew_call *c);
/* The lanes of scores, one per sample, in the order of in[1]. */
struct ew_lanes ew_loss_lanes(const struct ew_call *c);

/* Label of a sample, or -1 if ignored; fails outside [0, classes). */
ew_err ew_loss_label(const struct ew_call *c, int64_t sample, int64_t classes, int64_t *out);
/* Class weight; 1 without in[2]. */
double ew_loss_weight(const struct ew_call *c, int64_t label);
/* Divisor of the sum of the samples' losses. */
ew_err ew_loss_divisor(const struct ew_call *c, const struct ew_lanes *l, double *out);
/* Gradient of a sample's loss. */
double ew_loss_gradient(const struct ew_call *c, int64_t sample, double divisor);

ew_err ew_loss_permute(struct ew_graph *g, int node, const int *perm, int *out_perm);
ew_err ew_loss_export(const struct ew_graph *g, int node, struct ew_onnx_node *n);

#endif
