/* SPDX-License-Identifier: Apache-2.0 */
/* Gelu: x times the probability that a standard normal variable is below x, exactly or by the usual
 * approximation with tanh (Hendrycks and Gimpel, 2016). */
#include <string.h>

#include "graph/onnx.h"
#include "graph/ops.h"
#include "op/math_attr.h"
#include "op/pointwise.h"

extern const struct ew_op ew_op_gelu;

static const char *const choices[] = {"none", "tanh", NULL};

static const struct ew_field attrs[] = {
    {.name = "approximate",
     .type = EW_FIELD_ENUM,
     .offset = offsetof(struct ew_gelu_attr, approximate),
     .def = "none",
     .choices = choices,
     .help = "how the normal distribution is computed"},
    EW_FIELD_END,
};

#define SQRT_2_PI 0.7978845608028654 /* sqrt(2 / pi) */
#define CUBIC     0.044715           /* of the paper's approximation */

static double f(double x, const void *attr)
{
    const struct ew_gelu_attr *a = attr;
    if (a->approximate == EW_GELU_TANH)
        return 0.5 * x * (1 + tanh(SQRT_2_PI * (x + CUBIC * x * x * x)));
    return 0.5 * x * erfc(-x * M_SQRT1_2);
}

static double df(double x, double y, const void *attr)
{
    const struct ew_gelu_attr *a = attr;
    if (a->approximate == EW_GELU_TANH) {
        const double t = tanh(SQRT_2_PI * (x + CUBIC * x * x * x));
        return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * SQRT_2_PI * (1 + 3 * CUBIC * x * x);
    }
    return 0.5 * erfc(-x * M_SQRT1_2) + 0.5 * SQRT_2_PI * x * exp(-0.5 * x * x);
}

EW_UNARY_FORWARD(f)
EW_UNARY_BACKWARD(df)

static void cost(const struct ew_call *c, struct ew_cost *out)
{
    out->flops += 8 * ew_tensor_count(c->out[0]);
}

/* ONNX Runtime's Gelu, BiasGelu and FastGelu (with an optional bias). */
static ew_err import(struct ew_graph *g, const struct ew_onnx_node *n, int *out)
{
    struct ew_gelu_attr attr;
    EW_TRY(ew_onnx_fill(&ew_op_gelu, n, NULL, &attr));
    EW_CHECK(*n->domain || n->opset >= 20, EW_ERR_UNSUPPORTED,
             "operator Gelu of opset %d is not supported, only 20 and later", n->opset);
    if (strcmp(n->type, "FastGelu") == 0)
        attr.approximate = EW_GELU_TANH;
    const bool biased = n->n_in > 1 && n->in[1] >= 0;
    EW_CHECK(!biased || strcmp(n->type, "Gelu") != 0, EW_ERR_FORMAT, "has more than one input");
    EW_CHECK(n->n_in > 0, EW_ERR_FORMAT, "has no input");
    int x = n->in[0];
    if (biased)
        EW_TRY(ew_graph_add(g, &ew_op_add, NULL, NULL, ew_inputs(n->in, 2), &x));
    return ew_graph_add(g, &ew_op_gelu, n->name, &attr, EW_INPUTS(x), out);
}

static const char *const also[] = {"com.microsoft:Gelu", "com.microsoft:BiasGelu",
                                   "com.microsoft:FastGelu", NULL};

static const struct ew_op_case cases[] = {
    {.name = "exact", .in = {{"2x3x5"}}, .n_in = 1, .out_shape = "2x3x5"},
    {.name = "tanh",
     .attrs = "approximate=tanh",
     .in = {{"2x3x5"}},
     .n_in = 1,
     .out_shape = "2x3x5"},
};

const struct ew_op ew_op_gelu = {
    .name = "gelu",
    .help = "x times the normal distribution function of x",
    .saves = EW_SAVE_IN0,
    .attr_size = sizeof(struct ew_gelu_attr),
    .attrs = attrs,
    .cost = cost,
    EW_UNARY_OP(.type = "Gelu", .since = 20, .also = also, .import = import),
    EW_OP_CASES(cases),
};
