/* SPDX-License-Identifier: Apache-2.0 */
/* Separate nodes for the activations in ONNX Runtime's fused operators. */
#include "op/act_node.h"

#include <string.h>

#include "graph/onnx.h"
#include "graph/ops.h"
#include "op/math_attr.h"

/* Clip has its bounds as inputs. */
static ew_err add_clip(struct ew_graph *g, const struct ew_act_params *act, int value, int *out)
{
    int in[3] = {value};
    EW_CHECK(act->n == 2, EW_ERR_FORMAT, "Clip has %d parameters, must be 2", act->n);
    for (int i = 0; i < 2; i++)
        EW_TRY(ew_onnx_scalar(g, g->values[value].t.dtype, (double)act->v[i], &in[1 + i]));
    return ew_graph_add(g, &ew_op_clip, NULL, NULL, ew_inputs(in, 3), out);
}

ew_err ew_act_add_node(struct ew_graph *g, const struct ew_act_params *act, int value, int *out)
{
    static const char *const plain[] = {"Relu", "Tanh", "Sigmoid", "HardSwish", "Softplus", NULL};
    static const char *const scaled[] = {"LeakyRelu", "HardSigmoid", "Elu", NULL};
    const struct ew_op *op = ew_op_find_onnx(act->type, NULL);
    for (const char *const *p = plain; *p; p++)
        if (op && strcmp(*p, act->type) == 0)
            return ew_graph_add(g, op, NULL, NULL, EW_INPUTS(value), out);
    if (strcmp(act->type, "Clip") == 0)
        return add_clip(g, act, value, out);
    bool known = false;
    for (const char *const *p = scaled; *p; p++)
        known |= strcmp(*p, act->type) == 0;
    EW_CHECK(known && op, EW_ERR_UNSUPPORTED, "activation \"%.40s\" is not supported", act->type);
    struct ew_scale_attr attr;
    ew_fields_default(op->attrs, &attr, sizeof(attr));
    attr.alpha = act->n > 0 ? (double)act->v[0] : attr.alpha;
    attr.beta = act->n > 1 ? (double)act->v[1] : attr.beta;
    return ew_graph_add(g, op, NULL, &attr, EW_INPUTS(value), out);
}
