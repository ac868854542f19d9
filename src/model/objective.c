/* SPDX-License-Identifier: Apache-2.0 */
/* The training objective. */
#include "model/objective.h"
#include "graph/ops.h"

/* One-hot labels, the targets of element-wise losses. */
static ew_err one_hot(struct ew_graph *g, int labels, int64_t classes, int *out)
{
    float off_on[] = {0, 1};
    const struct ew_tensor t = {.dtype = EW_F32, .shape = {1, {2}}, .data = off_on};
    int depth, values;
    EW_TRY(ew_graph_const_ints(g, "loss_classes", &classes, 1, &depth));
    EW_TRY(ew_graph_const(g, "loss_off_on", EW_VALUE_CONST, &t, true, &values));
    return ew_graph_add(g, &ew_op_one_hot, "loss_targets", NULL, EW_INPUTS(labels, depth, values),
                        out);
}

/* Adds the target of the loss. */
static ew_err add_target(struct ew_graph *g, const struct ew_loss *loss, int *out)
{
    const struct ew_value *y = &g->values[g->outputs[0]];
    const struct ew_shape s = y->t.shape;
    char text[EW_SHAPE_TEXT];
    if (!loss->of_labels && ew_net_reconstructs(g)) {
        *out = g->inputs[0];
        return EW_OK;
    }
    EW_CHECK(s.rank == 2, EW_ERR_SHAPE,
             "%s: is %s, neither a classifier's output, [N, classes], nor of the input's shape%s",
             y->name, ew_shape_text(&s, text),
             ew_net_reconstructs(g) ? "; --loss mse, l1 or bce compare it with the input" : "");
    EW_TRY(ew_graph_input(g, "labels", EW_S64, &(const struct ew_shape){1, {s.dim[0]}}, out));
    return loss->of_labels ? EW_OK : one_hot(g, *out, s.dim[1], out);
}

ew_err ew_objective_add_loss(struct ew_graph *g, const struct ew_loss *loss)
{
    EW_CHECK(g->n_outputs >= 1, EW_ERR_ARG, "graph %s has no output", g->name);
    const int y = g->outputs[0];
    EW_CHECK(ew_dtype_is_float(g->values[y].t.dtype), EW_ERR_SHAPE, "%s: is %s, not floats",
             g->values[y].name, ew_dtype_name(g->values[y].t.dtype));
    int target, value;
    EW_TRY(add_target(g, loss, &target));
    EW_TRY(loss->add(g, y, target, &value));
    EW_TRY(ew_graph_output(g, value));
    for (int i = g->n_outputs - 1; i > 0; i--)
        g->outputs[i] = g->outputs[i - 1];
    g->outputs[0] = value;
    return EW_OK;
}

ew_err ew_objective_add(struct ew_graph *g)
{
    return ew_objective_add_loss(g, ew_loss_chosen(0, g));
}
