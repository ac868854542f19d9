/* SPDX-License-Identifier: Apache-2.0 */
/* Gates of a training plan: a batch norm whose output is averaged over each image, and multiplied
 * by a factor that is made of the averages (squeeze and excite).
 *
 * Where what is before the norm makes the norm's gradient as it reads it (defer.c), the gradient of
 * the norm's output needs no memory either: it is the product's, times the factor, and the
 * average's.  The product's backward takes all sums in one pass and reads the norm's input instead
 * of its output, which is then not kept; the average's has nothing to do. */
#include "plan/plan_impl.h"

#define CHAIN 8 /* nodes between average and factor, at most */

static bool is(const struct ew_plan *p, int node, enum ew_op_flag flag)
{
    return p->g->nodes[node].op->flags & flag;
}

/* Finds the two readers of the value; false: there are others. */
static bool find_readers(const struct ew_plan *p, int value, struct ew_gate *out)
{
    out->product = out->average = -1;
    if (p->reading[value].count != 2 || p->reading[value].first < 0)
        return false;
    for (int k = p->reading[value].first, found = 0; k < p->g->n_nodes && found < 2; k++)
        for (int i = 0; p->needed[k] && i < p->g->nodes[k].n_in; i++) {
            if (p->g->nodes[k].in[i] != value)
                continue;
            found++;
            if (is(p, k, EW_OP_PRODUCT) && out->product < 0) {
                out->product = k;
                out->full = i;
            } else if (is(p, k, EW_OP_MEAN) && out->average < 0) {
                out->average = k;
            } else {
                return false;
            }
        }
    return out->product >= 0 && out->average >= 0;
}

static int factor_of(const struct ew_plan *p, const struct ew_gate *gate)
{
    return p->g->nodes[gate->product].in[1 - gate->full];
}

/* True where the factor is made of the averages alone, one for each channel of an image. */
static bool follows(const struct ew_plan *p, const struct ew_gate *gate, int value)
{
    const struct ew_graph *g = p->g;
    const struct ew_shape *full = &g->values[value].t.shape;
    int v = factor_of(p, gate);
    const struct ew_shape *small = &g->values[v].t.shape;
    const int averages = g->nodes[gate->average].out[0];
    if (!p->needs_grad[v] || full->rank < 3 || small->rank != full->rank ||
        small->dim[0] != full->dim[0] || small->dim[full->rank - 1] != full->dim[full->rank - 1] ||
        ew_shape_count(small) != full->dim[0] * full->dim[full->rank - 1] ||
        ew_tensor_count(&g->values[averages].t) != ew_shape_count(small))
        return false;
    for (int i = 0; i < CHAIN && v >= 0 && v != averages; i++) {
        const int from = g->values[v].producer;
        v = from >= 0 && g->nodes[from].n_in > 0 ? g->nodes[from].in[0] : -1;
    }
    return v == averages;
}

/* True where all kernels know how. */
static ew_err can(struct ew_plan *p, int norm, const struct ew_gate *gate, bool *out)
{
    struct ew_call behind, product;
    struct ew_kernel before;
    EW_TRY(ew_plan_shape_call(p, norm, &behind));
    EW_TRY(ew_plan_shape_call(p, gate->product, &product));
    EW_TRY(ew_plan_late_kernel(p, p->g->nodes[norm].in[0], &behind, &before));
    *out = before.gates && ew_plan_preferred(p, &product, EW_PHASE_BACKWARD).gates &&
           ew_plan_preferred(p, &behind, EW_PHASE_FORWARD).gates;
    return EW_OK;
}

ew_err ew_plan_find_gates(struct ew_plan *p)
{
    for (int k = 0; k < p->g->n_nodes; k++) {
        const struct ew_node *n = &p->g->nodes[k];
        struct ew_gate gate = {.sums = -1};
        bool all = false;
        if (!p->needed[k] || !is(p, k, EW_OP_BATCH_NORM) || p->late[n->in[0]] != k ||
            !find_readers(p, n->out[0], &gate) || !follows(p, &gate, n->out[0]))
            continue;
        EW_TRY(can(p, k, &gate, &all));
        if (!all)
            continue;
        p->gate[n->out[0]] = gate;
        p->grads[n->out[0]].bare = true;
    }
    return EW_OK;
}

struct ew_gate *ew_plan_gate_norm(const struct ew_plan *p, int node)
{
    const int value = p->g->nodes[node].out[0];
    const bool norm = value >= 0 && p->gate[value].product >= 0;
    return norm ? &p->gate[value] : NULL;
}

struct ew_gate *ew_plan_gate_product(const struct ew_plan *p, int node)
{
    const struct ew_node *n = &p->g->nodes[node];
    for (int i = 0; i < n->n_in; i++)
        if (n->in[i] >= 0 && p->gate[n->in[i]].product == node)
            return &p->gate[n->in[i]];
    return NULL;
}

struct ew_gate *ew_plan_gate_average(const struct ew_plan *p, int node)
{
    const struct ew_node *n = &p->g->nodes[node];
    const int value = n->n_in > 0 ? n->in[0] : -1;
    const bool average =
        value >= 0 && p->gate[value].product >= 0 && p->gate[value].average == node;
    return average ? &p->gate[value] : NULL;
}

/* The batch norm. */
static int norm_of(const struct ew_plan *p, const struct ew_gate *gate)
{
    return p->g->values[p->g->nodes[gate->product].in[gate->full]].producer;
}

ew_err ew_plan_gate_call(struct ew_plan *p, struct ew_gate *gate, struct ew_call **norm)
{
    const int node = norm_of(p, gate);
    struct ew_slot *x;
    EW_TRY(ew_plan_saved_slot(p, p->g->nodes[node].in[0], &x));
    EW_TRY(ew_plan_saved_slot(p, factor_of(p, gate), &gate->factor));
    EW_TRY(ew_plan_call_of(p, node, x, norm));
    gate->gated = (struct ew_gated){.product = &p->grads[p->g->nodes[gate->product].out[0]].t,
                                    .factor = &gate->factor->t,
                                    .average = &p->grads[p->g->nodes[gate->average].out[0]].t};
    return EW_OK;
}

ew_err ew_plan_take_product(struct ew_plan *p, struct ew_gate *gate, struct ew_call *norm)
{
    const int step = p->n_steps - 1, node = norm_of(p, gate);
    const int x = p->g->nodes[node].in[0];
    struct ew_step *s = &p->steps[step];
    s->norm = norm;
    s->call.norm = norm;
    s->norm_aux = p->node_aux[node];
    p->buffers[s->norm_aux].last = step;
    ew_plan_touch(p->again[x].first >= 0 ? &p->again[x] : &p->values[x], step);
    EW_TRY(ew_plan_buffer_new(p, 4 * ew_tensor_bytes(&gate->factor->t), step, step, &gate->sums));
    s->gated_sums = gate->sums;
    return EW_OK;
}

void ew_plan_touch_gate(struct ew_plan *p, struct ew_gate *gate)
{
    const int step = p->n_steps - 1;
    ew_plan_touch(gate->factor, step);
    ew_plan_touch(&p->grads[p->g->nodes[gate->product].out[0]], step);
    ew_plan_touch(&p->grads[p->g->nodes[gate->average].out[0]], step);
    p->buffers[gate->sums].last = step;
}
