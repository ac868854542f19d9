/* SPDX-License-Identifier: Apache-2.0 */
/* Partition of a network into DPU and host parts.  The graph is lowered as plans for the device
 * lower it, so that the table shows what is executed. */
#include "cli/dpu_placement.h"

#include <stdio.h>
#include <string.h>

#include "backend/dpu/dpu_model.h"
#include "compress/pass.h"
#include "compress/quantize.h"
#include "edgewise.h"
#include "graph/ops.h"
#include "report/text_table.h"

struct placement {
    struct ew_graph *g;     /* lowered */
    struct ew_dpu_net asks; /* of the graph before lowering: the hardware's limits */
};

/* Consecutive nodes on the same side. */
struct part {
    bool on_dpu;
    int first, last, nodes, layers;
    int64_t macs;
    const char *why; /* reason for the host: of its first node with arithmetic */
};

/* Depends on constants only: packed weights, shapes. */
static bool is_constant(const struct ew_graph *g, const struct ew_node *n)
{
    for (int i = 0; i < n->n_in; i++)
        if (n->in[i] >= 0 && !g->values[n->in[i]].t.data)
            return false;
    return true;
}

static bool is_conversion(const struct ew_node *n)
{
    return n->op == &ew_op_dpu_input || n->op == &ew_op_quantize_linear ||
           n->op == &ew_op_dequantize_linear;
}

static bool on_dpu(const struct ew_graph *g, const struct ew_node *n)
{
    const bool int8 = g->values[n->out[0]].t.dtype == EW_S8;
    if (!int8 || is_conversion(n))
        return false;
    static const struct ew_op *const own[] = {&ew_op_dpu_conv, &ew_op_dpu_add, &ew_op_dpu_mul,
                                              &ew_op_dpu_average_pool, &ew_op_lookup};
    for (size_t i = 0; i < EW_COUNT(own); i++)
        if (n->op == own[i])
            return true;
    return ew_quantize_moves(n);
}

/* Why a node runs on the host: a limit of the hardware, or how the network is quantised. */
static const char *reason(const struct placement *p, const struct ew_node *n)
{
    for (int k = 0; k < p->asks.n_layers; k++) {
        const struct ew_dpu_layer *l = &p->asks.layers[k];
        if (l->unit == EW_DPU_HOST && l->reason && strcmp(l->name, n->name) == 0)
            return l->reason;
    }
    if (is_conversion(n))
        return "converts between float32 and int8";
    if (p->g->values[n->out[0]].t.dtype != EW_F32)
        return "its scales, bounds or form are not the DPU's";
    return "is float32: no power-of-two quantisers round it";
}

static void extend(const struct placement *p, struct part *to, int node)
{
    const struct ew_node *n = &p->g->nodes[node];
    struct ew_cost cost = {0};
    ew_graph_node_cost(p->g, node, &cost);
    to->last = node;
    to->nodes++;
    to->layers += cost.macs > 0;
    to->macs += cost.macs;
    if (!to->on_dpu && (!to->why || (cost.macs > 0 && to->macs == cost.macs)))
        to->why = reason(p, n);
}

/* The next part, from node *at; false: none. */
static bool next_part(const struct placement *p, int *at, struct part *out)
{
    *out = (struct part){.first = -1};
    for (; *at < p->g->n_nodes; ++*at) {
        const struct ew_node *n = &p->g->nodes[*at];
        if (n->n_out < 1 || n->out[0] < 0 || is_constant(p->g, n))
            continue;
        const bool here = on_dpu(p->g, n);
        if (out->first >= 0 && here != out->on_dpu)
            break;
        if (out->first < 0)
            *out = (struct part){.on_dpu = here, .first = *at};
        extend(p, out, *at);
    }
    return out->first >= 0;
}

static ew_err print_table(const struct placement *p)
{
    static const char *const head[] = {"part", "runs on", "nodes", "layers",
                                       "MACs", "from",    "to",    "because"};
    struct ew_table t;
    struct part part;
    int64_t macs[2] = {0};
    int number = 0;
    ew_table_init(&t, "rlrrrlll");
    for (size_t i = 0; i < EW_COUNT(head); i++)
        ew_table_cell(&t, "%s", head[i]);
    for (int at = 0; next_part(p, &at, &part);) {
        ew_table_cell(&t, "%d", ++number);
        ew_table_cell(&t, "%s", part.on_dpu ? "DPU" : "host");
        ew_table_count(&t, part.nodes);
        ew_table_count(&t, part.layers);
        ew_table_count(&t, part.macs);
        ew_table_cell(&t, "%s", p->g->nodes[part.first].name);
        ew_table_cell(&t, "%s", part.nodes > 1 ? p->g->nodes[part.last].name : "");
        ew_table_cell(&t, "%s", part.why ? part.why : "");
        macs[part.on_dpu] += part.macs;
    }
    EW_TRY(ew_table_print(&t, stdout));
    const int64_t all = macs[0] + macs[1];
    printf("\n%.1f %% of the multiply-accumulates on the DPU\n",
           all ? 100 * (double)macs[1] / (double)all : 0);
    return EW_OK;
}

static void print_json(const struct placement *p, struct ew_json *j)
{
    struct part part;
    ew_json_array(j, "parts");
    for (int at = 0; next_part(p, &at, &part);) {
        ew_json_object(j, NULL);
        ew_json_str(j, "runs_on", part.on_dpu ? "dpu" : "host");
        ew_json_int(j, "nodes", part.nodes);
        ew_json_int(j, "layers", part.layers);
        ew_json_int(j, "macs", part.macs);
        ew_json_str(j, "from", p->g->nodes[part.first].name);
        ew_json_str(j, "to", p->g->nodes[part.last].name);
        if (part.why)
            ew_json_str(j, "because", part.why);
        ew_json_end(j);
    }
    ew_json_end(j);
}

static ew_err place(const struct ew_graph *g, struct placement *p)
{
    EW_TRY(ew_graph_clone(g, &p->g));
    EW_TRY(ew_pass_convert_fake_quant(p->g));
    EW_TRY(ew_dpu_net_init(p->g, &p->asks));
    return ew_pass_lower_dpu(p->g);
}

ew_err ew_dpu_placement(const struct ew_graph *g, struct ew_json *j)
{
    struct placement p = {0};
    ew_err e = place(g, &p);
    if (e == EW_OK && j)
        print_json(&p, j);
    else if (e == EW_OK)
        e = print_table(&p);
    ew_dpu_net_fini(&p.asks);
    ew_graph_free(p.g);
    return e;
}
