/* SPDX-License-Identifier: Apache-2.0 */
/* What a classifier is trained for: softmax cross-entropy against labels. */
#include "model/objective.h"

ew_err ew_objective_add(struct ew_graph *g)
{
    EW_CHECK(g->n_outputs >= 1, EW_ERR_ARG, "graph %s has no output", g->name);
    const int scores = g->outputs[0];
    const struct ew_tensor *t = &g->values[scores].t;
    char text[EW_SHAPE_TEXT];
    EW_CHECK(t->shape.rank == 2 && ew_dtype_is_float(t->dtype), EW_ERR_SHAPE,
             "%s: is %s, a classifier's output is [N, classes]", g->values[scores].name,
             ew_shape_text(&t->shape, text));
    int labels, loss;
    EW_TRY(ew_graph_input(g, "labels", EW_S64, &(const struct ew_shape){1, {t->shape.dim[0]}},
                          &labels));
    EW_TRY(ew_graph_add(g, ew_op_find("softmax_cross_entropy"), "loss", NULL,
                        (const int[]){scores, labels}, 2, &loss, 1));
    EW_TRY(ew_graph_output(g, loss));
    for (int i = g->n_outputs - 1; i > 0; i--)
        g->outputs[i] = g->outputs[i - 1];
    g->outputs[0] = loss;
    return EW_OK;
}
