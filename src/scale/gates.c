/* SPDX-License-Identifier: Apache-2.0 */
/* Positions of gates. */
#include "scale/gates.h"
#include "graph/ops.h"

#include <stdio.h>
#include <string.h>

/* Which nodes' outputs are gated. */
struct gate_rule {
    const char *network;        /* prefix of the name */
    const struct ew_op *ops[2]; /* operators that are gated, */
    const char *not_in;         /* except nodes with this in their names */
};

/* VGG-11: batch norms.  MobileNetV2: stem, the sums of 17 blocks, last convolution.  PreAct
 * ResNet-18: both batch norms of each block, which gate the layer before them, and the pooled map.
 */
static const struct gate_rule gate_rules[] = {
    {"vgg11_cifar", {&ew_op_batch_norm, NULL}, NULL},
    {"mobilenet_v2_", {&ew_op_batch_norm, &ew_op_add}, "stage"},
    {"preact_resnet18", {&ew_op_batch_norm, &ew_op_global_average_pool}, "bn_out"},
};

static const struct gate_rule *place_of(const char *network)
{
    for (size_t i = 0; i < EW_COUNT(gate_rules); i++)
        if (strncmp(network, gate_rules[i].network, strlen(gate_rules[i].network)) == 0)
            return &gate_rules[i];
    return NULL;
}

static bool is_gated(const struct gate_rule *p, const struct ew_node *n)
{
    if (n->op == p->ops[0])
        return !p->not_in || !strstr(n->name, p->not_in);
    return n->op == p->ops[1];
}

/* Replaces the node by itself followed by the multiplication with its gate. */
static ew_err gate_node(struct ew_graph *g, int node, int k)
{
    struct ew_node n = g->nodes[node];
    const struct ew_shape *s = &g->values[n.out[0]].t.shape;
    struct ew_tensor t = {.dtype = EW_F32, .shape = {1, {s->dim[s->rank - 1]}}};
    const int first = g->n_nodes;
    char name[32];
    int out, in[2];
    t.data = ew_arena_alloc(&g->arena, ew_tensor_bytes(&t));
    EW_CHECK(t.data, EW_ERR_MEMORY, "no memory for a gate");
    for (int64_t i = 0; i < t.shape.dim[0]; i++)
        ((float *)t.data)[i] = 1;
    snprintf(name, sizeof(name), "gate.%d", k);
    EW_TRY(ew_graph_const(g, name, EW_VALUE_PARAM, &t, false, &in[1]));
    EW_TRY(ew_graph_add_node(g, &n, &in[0]));
    EW_TRY(ew_graph_add(g, &ew_op_mul, NULL, NULL, ew_inputs(in, 2), &out));
    return ew_graph_splice(g, node, first, &out);
}

ew_err ew_gates_insert(struct ew_graph *g, const char *network, int n)
{
    const struct gate_rule *p = place_of(network);
    int k = 0;
    EW_CHECK(p, EW_ERR_UNSUPPORTED,
             "%s: its gates are not known; vgg11_cifar, mobilenet_v2_cifar, mobilenet_v2_tiny, "
             "preact_resnet18 and preact_resnet18_tiny can be searched",
             network);
    for (int i = 0; i < g->n_nodes; i++)
        if (is_gated(p, &g->nodes[i])) {
            EW_TRY(gate_node(g, i, k++));
            i++; /* skip the multiplication */
        }
    EW_CHECK(k == n, EW_ERR_INTERNAL, "%s: %d gates for %d widths", network, k, n);
    return ew_graph_infer(g);
}

int ew_gate_value(const struct ew_graph *g, int k)
{
    char name[32];
    snprintf(name, sizeof(name), "gate.%d", k);
    return ew_graph_find(g, name);
}

ew_err ew_gates_check(const struct ew_scaling *s)
{
    struct ew_graph *g;
    EW_TRY(ew_model_build(s->network, &s->opts, &g));
    const ew_err e = ew_gates_insert(g, s->network, s->n);
    ew_graph_free(g);
    return e;
}
