/* SPDX-License-Identifier: Apache-2.0 */
/* Which layers stay float32: each is quantised alone and rated, timed in both precisions, and
 * ranked. */
#include "quant/gate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compress/pass.h"
#include "edgewise.h"
#include "graph/ops.h"
#include "graph/readers.h"

bool ew_quant_is_layer(const struct ew_graph *g, int node)
{
    const struct ew_node *n = &g->nodes[node];
    const struct ew_op *op = n->op;
    return (op == &ew_op_conv || op == &ew_op_gemm || op == &ew_op_matmul) && n->n_in > 1 &&
           ew_pass_is_constant(g, n->in[1]);
}

int ew_quant_node_of(const struct ew_graph *g, const char *name)
{
    for (int k = 0; k < g->n_nodes; k++)
        if (strcmp(g->nodes[k].name, name) == 0)
            return k;
    return -1;
}

/* The activation that is the only reader of a node's output, or -1. */
static int follower(const struct ew_graph *g, const struct ew_readers *r, int node)
{
    const int next = ew_readers_only(r, g->nodes[node].out[0]);
    static const struct ew_op *const acts[] = {
        &ew_op_relu,    &ew_op_clip, &ew_op_leaky_relu,  &ew_op_hard_swish,
        &ew_op_sigmoid, &ew_op_silu, &ew_op_hard_sigmoid};
    for (size_t i = 0; next >= 0 && i < EW_COUNT(acts); i++)
        if (g->nodes[next].op == acts[i])
            return next;
    return -1;
}

/* Sets keep[] of a layer and of the activation after it. */
static void mark(const struct ew_quant_gate *gate, const char *name, bool keep)
{
    const int k = ew_quant_node_of(gate->v->g, name);
    if (k < 0)
        return;
    gate->keep[k] = keep;
    const int next = follower(gate->v->g, gate->readers, k);
    if (next >= 0)
        gate->keep[next] = keep;
}

static ew_err list_layers(struct ew_quant_gate *gate)
{
    const struct ew_graph *g = gate->v->g;
    struct ew_quant_result *r = gate->out;
    r->layers = ew_arena_array(&r->arena, (size_t)g->n_nodes, sizeof(*r->layers));
    EW_CHECK(r->layers, EW_ERR_MEMORY, "no memory for %d layers", g->n_nodes);
    for (int k = 0; k < g->n_nodes; k++) {
        if (!ew_quant_is_layer(g, k))
            continue;
        const int next = follower(g, gate->readers, k);
        const int v = g->nodes[next >= 0 ? next : k].out[0];
        r->layers[r->n_layers++] =
            (struct ew_quant_layer){.name = ew_arena_strdup(&r->arena, g->nodes[k].name),
                                    .op = g->nodes[k].op->name,
                                    .lo = gate->v->ranges[v].lo,
                                    .hi = gate->v->ranges[v].hi,
                                    .float_s = -1,
                                    .int8_s = -1};
    }
    EW_CHECK(r->n_layers > 0, EW_ERR_UNSUPPORTED,
             "%s has no convolution or dense layer to quantise", g->name);
    return EW_OK;
}

static ew_err rate_layers(struct ew_quant_gate *gate)
{
    struct ew_quant_result *r = gate->out;
    struct ew_progress bar;
    ew_progress_begin(&bar, gate->job->talk, "layers", r->n_layers);
    ew_err e = EW_OK;
    for (int i = 0; e == EW_OK && i < r->n_layers; i++) {
        struct ew_graph *q = NULL;
        memset(gate->keep, true, (size_t)gate->v->g->n_nodes);
        mark(gate, r->layers[i].name, false);
        e = ew_quant_build(gate->job, gate->v, gate->keep, &q);
        if (e == EW_OK)
            e = ew_quant_probe_sqnr(gate->probe, q, gate->job->opts.threads, &r->layers[i].sqnr_db);
        ew_graph_free(q);
        ew_progress_update(&bar, i + 1);
    }
    ew_progress_end(&bar);
    memset(gate->keep, false, (size_t)gate->v->g->n_nodes);
    return e;
}

static ew_err time_layers(struct ew_quant_gate *gate)
{
    struct ew_quant_result *r = gate->out;
    const int n = r->n_layers, threads = gate->job->opts.threads;
    struct ew_graph *q = NULL;
    EW_CLEANUP(ew_free_ptr) double *s = calloc(2 * (size_t)n, sizeof(*s));
    EW_CHECK(s, EW_ERR_MEMORY, "no memory for the times of %d layers", n);
    ew_err e = ew_quant_build(gate->job, gate->v, NULL, &q);
    if (e == EW_OK)
        e = ew_quant_time(gate->v->g, threads, r->layers, n, s, &r->float_s);
    if (e == EW_OK)
        e = ew_quant_time(q, threads, r->layers, n, s + n, &r->int8_s);
    for (int i = 0; e == EW_OK && i < n; i++) {
        r->layers[i].float_s = s[i];
        r->layers[i].int8_s = s[n + i];
    }
    ew_graph_free(q);
    return e;
}

static void stay_float(struct ew_quant_gate *gate, struct ew_quant_layer *l, const char *reason)
{
    if (l->is_float)
        return;
    l->is_float = true;
    snprintf(l->reason, sizeof(l->reason), "%s", reason);
    gate->out->n_float++;
    mark(gate, l->name, true);
}

static void decide(struct ew_quant_gate *gate)
{
    struct ew_quant_result *r = gate->out;
    char why[96];
    for (int i = 0; i < r->n_layers; i++) {
        struct ew_quant_layer *l = &r->layers[i];
        snprintf(why, sizeof(why), "alone it leaves the scores with %.1f dB", l->sqnr_db);
        if (l->sqnr_db < gate->job->opts.min_sqnr_db)
            stay_float(gate, l, why);
    }
}

ew_err ew_quant_gate_open(struct ew_quant_gate *gate)
{
    gate->keep = calloc((size_t)gate->v->g->n_nodes + 1, sizeof(*gate->keep));
    EW_CHECK(gate->keep, EW_ERR_MEMORY, "no memory for decisions");
    EW_TRY(ew_readers_new(gate->v->g, &gate->readers));
    EW_TRY(list_layers(gate));
    EW_TRY(rate_layers(gate));
    if (gate->job->opts.time)
        EW_TRY(time_layers(gate));
    decide(gate);
    return gate->job->opts.time ? ew_quant_gate_by_time(gate) : EW_OK;
}

void ew_quant_gate_close(struct ew_quant_gate *gate)
{
    free(gate->keep);
    ew_readers_free(gate->readers);
}

/* Nodes without weights whose inputs are all float32 stay float32 too: int8 would only add
 * conversions. */
static void settle(const struct ew_graph *g, bool *keep)
{
    for (int k = 0; k < g->n_nodes; k++) {
        bool all_float = !ew_quant_is_layer(g, k);
        for (int i = 0; i < g->nodes[k].n_in; i++) {
            const int v = g->nodes[k].in[i];
            if (v >= 0 && g->values[v].producer >= 0 && !keep[g->values[v].producer])
                all_float = false;
        }
        keep[k] |= all_float;
    }
}

ew_err ew_quant_gate_build(const struct ew_quant_gate *gate, struct ew_graph **out)
{
    const struct ew_graph *g = gate->v->g;
    EW_CLEANUP(ew_free_ptr) bool *keep = calloc((size_t)g->n_nodes + 1, sizeof(*keep));
    EW_CHECK(keep, EW_ERR_MEMORY, "no memory for decisions");
    memcpy(keep, gate->keep, (size_t)g->n_nodes * sizeof(*keep));
    settle(g, keep);
    return ew_quant_build(gate->job, gate->v, keep, out);
}

/* By decreasing loss of accuracy. */
static int by_cost(const void *a, const void *b)
{
    const struct ew_quant_layer *x = *(struct ew_quant_layer *const *)a;
    const struct ew_quant_layer *y = *(struct ew_quant_layer *const *)b;
    return x->sqnr_db < y->sqnr_db ? -1 : x->sqnr_db > y->sqnr_db;
}

ew_err ew_quant_gate_order(struct ew_quant_gate *gate, struct ew_quant_layer ***out, int *n)
{
    struct ew_quant_result *r = gate->out;
    *out = ew_arena_array(&r->arena, (size_t)r->n_layers, sizeof(**out));
    EW_CHECK(*out, EW_ERR_MEMORY, "no memory for %d layers", r->n_layers);
    *n = 0;
    for (int i = 0; i < r->n_layers; i++)
        if (!r->layers[i].is_float)
            (*out)[(*n)++] = &r->layers[i];
    qsort(*out, (size_t)*n, sizeof(**out), by_cost);
    return EW_OK;
}

void ew_quant_gate_set(struct ew_quant_gate *gate, struct ew_quant_layer *l, const char *reason)
{
    if (reason) {
        stay_float(gate, l, reason);
    } else if (l->is_float) {
        l->is_float = false;
        l->reason[0] = '\0';
        gate->out->n_float--;
        mark(gate, l->name, false);
    }
}
