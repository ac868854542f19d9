/* SPDX-License-Identifier: Apache-2.0 */
/* Weight initialisation, by the rules of the families' original code.  Random numbers are
 * counter-based (base/rng.h), so that neither order nor threads matter. */
#include "model/init.h"

#include <math.h>
#include <stdlib.h>

#include "base/rng.h"
#include "graph/ops.h"
#include "op/conv.h"

enum shape { UNIFORM, NORMAL };

/* The random stream of a parameter: FNV-1a of its name. */
static uint64_t stream_of(const char *name)
{
    uint64_t h = 1469598103934665603u;
    for (; *name; name++)
        h = (h ^ (unsigned char)*name) * 1099511628211u;
    return h;
}

/* Four numbers from 128 bits: uniform in (-1, 1), or normal by Box-Muller.  In float32, which
 * suffices for weights and takes seconds for 10^8 of them. */
static void draw(struct ew_rng_block r, enum shape shape, double *out)
{
    float u[4];
    for (int i = 0; i < 4; i++)
        u[i] = ((float)(r.v[i] >> 8) + 0.5f) * 0x1p-24f;
    for (int i = 0; i < 4; i += 2) {
        if (shape == UNIFORM) {
            out[i] = (double)(2 * u[i] - 1);
            out[i + 1] = (double)(2 * u[i + 1] - 1);
            continue;
        }
        const float radius = sqrtf(-2 * logf(u[i])), angle = 6.28318531f * u[i + 1];
        out[i] = (double)(radius * cosf(angle));
        out[i + 1] = (double)(radius * sinf(angle));
    }
}

static void fill_random(struct ew_value *v, uint64_t seed, enum shape shape, double scale)
{
    enum { CHUNK = 256 };
    const uint64_t stream = stream_of(v->name);
    const int64_t count = ew_tensor_count(&v->t);
    double x[CHUNK];
    for (int64_t at = 0; at < count; at += CHUNK) {
        const int64_t n = ew_min_i64(CHUNK, count - at);
        for (int64_t i = 0; i < n; i += 4)
            draw(ew_rng_block(seed, stream, (uint64_t)(at + i) / 4), shape, &x[i]);
        for (int64_t i = 0; i < n; i++)
            x[i] *= scale;
        ew_tensor_store(&v->t, at, n, x);
    }
}

static void fill_constant(struct ew_value *v, double x)
{
    for (int64_t i = 0; i < ew_tensor_count(&v->t); i++)
        ew_tensor_store(&v->t, i, 1, &x);
}

/* A filter is [O, k..., I / groups], a dense weight [O, I]; fans as PyTorch computes them. */
static void fill_by_rule(struct ew_value *v, uint64_t seed, enum ew_init_rule rule)
{
    const struct ew_shape *s = &v->t.shape;
    const double in = (double)ew_shape_span(s, 1, s->rank),
                 out = (double)(s->dim[0] * ew_shape_span(s, 1, s->rank - 1));
    switch (rule) {
    case EW_INIT_DEFAULT:
        fill_random(v, seed, UNIFORM, 1 / sqrt(in));
        return;
    case EW_INIT_HE_OUT:
        fill_random(v, seed, NORMAL, sqrt(2 / out));
        return;
    case EW_INIT_HE_IN:
        fill_random(v, seed, NORMAL, sqrt(2 / in));
        return;
    case EW_INIT_HE_UNIFORM:
        fill_random(v, seed, UNIFORM, sqrt(6 / in));
        return;
    case EW_INIT_NORMAL_001:
        fill_random(v, seed, NORMAL, 0.01);
        return;
    }
}

/* ---- Layers ---- */

struct init_pass {
    struct ew_graph *g;
    const struct ew_init *how;
    uint64_t seed;
    bool *todo;    /* by value: without data, not initialised yet */
    int last_conv; /* node, or -1 */
};

/* The value in slot i if it is still to be initialised, else NULL. */
static struct ew_value *take(const struct init_pass *f, const struct ew_node *n, int i)
{
    if (i >= n->n_in || n->in[i] < 0 || !f->todo[n->in[i]])
        return NULL;
    f->todo[n->in[i]] = false;
    return &f->g->values[n->in[i]];
}

static void fill_layer(const struct init_pass *f, const struct ew_node *n, enum ew_init_rule rule,
                       bool zero_bias)
{
    const struct ew_shape *s = &f->g->values[n->in[1]].t.shape;
    struct ew_value *weight = take(f, n, 1), *bias = take(f, n, 2);
    if (weight)
        fill_by_rule(weight, f->seed, rule);
    if (bias && !zero_bias)
        fill_random(bias, f->seed, UNIFORM, 1 / sqrt((double)ew_shape_span(s, 1, s->rank)));
}

/* Filters [I, k..., O / groups] of stride s: an output is a sum of I prod(k / s) products, which is
 * the fan-in of He's rule (normal, variance 2 / i). */
static void fill_transposed(const struct init_pass *f, const struct ew_node *n)
{
    const struct ew_conv_transpose_attr *a = n->attr;
    const struct ew_shape *s = &f->g->values[n->in[1]].t.shape;
    double in = (double)s->dim[0];
    for (int i = 1; i + 1 < s->rank; i++)
        in *= (double)s->dim[i] / (double)(a->win.stride.n ? a->win.stride.v[i - 1] : 1);
    struct ew_value *weight = take(f, n, 1), *bias = take(f, n, 2);
    if (weight)
        fill_random(weight, f->seed, NORMAL, sqrt(2 / in));
    if (bias && !f->how->zero_bias)
        fill_random(bias, f->seed, UNIFORM, 1 / sqrt(in));
}

static void fill_batch_norm(const struct init_pass *f, const struct ew_node *n)
{
    struct ew_value *gain = take(f, n, 1), *variance = take(f, n, 4);
    if (gain)
        fill_constant(gain, f->how->bn_gain > 0 ? f->how->bn_gain : 1);
    if (variance)
        fill_constant(variance, 1);
}

static void fill_node(const struct init_pass *f, int node)
{
    const struct ew_node *n = &f->g->nodes[node];
    const struct ew_init *how = f->how;
    if (n->op->layer == EW_LAYER_CONV)
        fill_layer(f, n, node == f->last_conv ? how->last_conv : how->conv, how->zero_bias);
    else if (n->op->layer == EW_LAYER_DENSE)
        fill_layer(f, n, how->dense, how->zero_bias || how->zero_dense_bias);
    else if (n->op->flags & EW_OP_BATCH_NORM)
        fill_batch_norm(f, n);
    else if (n->op == &ew_op_conv_transpose)
        fill_transposed(f, n);
    else if (n->op == &ew_op_group_norm) {
        struct ew_value *gain = take(f, n, 1);
        if (gain)
            fill_constant(gain, 1);
    }
}

ew_err ew_init_weights(struct ew_graph *g, const struct ew_init *how, uint64_t seed)
{
    EW_CLEANUP(ew_free_ptr) bool *todo = calloc((size_t)g->n_values + 1, sizeof(*todo));
    EW_CHECK(todo, EW_ERR_MEMORY, "no memory to initialise graph %s", g->name);
    for (int i = 0; i < g->n_values; i++) { /* values without a rule start at 0 */
        const struct ew_value *v = &g->values[i];
        todo[i] = !v->t.data && (v->kind == EW_VALUE_PARAM || v->kind == EW_VALUE_STATE);
    }
    EW_TRY(ew_graph_alloc_weights(g));
    struct init_pass f = {g, how, seed, todo, -1};
    for (int k = 0; k < g->n_nodes && how->last_conv != EW_INIT_DEFAULT; k++)
        if (g->nodes[k].op->layer == EW_LAYER_CONV)
            f.last_conv = k;
    for (int k = 0; k < g->n_nodes; k++)
        fill_node(&f, k);
    return EW_OK;
}
