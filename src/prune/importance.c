/* SPDX-License-Identifier: Apache-2.0 */
/* Importance from weights alone. */
#include "prune/importance.h"

#include <math.h>
#include <stdlib.h>

#include "base/rng.h"

#define PRUNE_STREAM 0x7072756e65 /* of random numbers: "prune" */

const char *const ew_importance_names[] = {"l1", "l2", "bn", "taylor", "random", NULL};

/* Sums and counts by unit. */
struct tally {
    double *sum;
    int *n;
};

static ew_err tally_new(int units, struct tally *out)
{
    out->sum = calloc((size_t)units + 1, sizeof(*out->sum));
    out->n = calloc((size_t)units + 1, sizeof(*out->n));
    EW_CHECK(out->sum && out->n, EW_ERR_MEMORY, "no memory for %d channels", units);
    return EW_OK;
}

static void tally_free(struct tally *t)
{
    free(t->sum);
    free(t->n);
}

/* L1 or L2 norm of filter i along the axis. */
static double filter_norm(const struct ew_tensor *w, int axis, int64_t i, bool squares)
{
    const int64_t inner = ew_shape_span(&w->shape, axis + 1, w->shape.rank);
    const int64_t outer = ew_shape_span(&w->shape, 0, axis), d = w->shape.dim[axis];
    const float *data = w->data;
    double sum = 0;
    for (int64_t o = 0; o < outer; o++)
        for (int64_t k = 0; k < inner; k++) {
            const double v = (double)data[(o * d + i) * inner + k];
            sum += squares ? v * v : fabs(v);
        }
    return squares ? sqrt(sum) : sum;
}

/* Adds the norms of filters relative to their layer's mean, since layers differ in size and scale.
 */
static ew_err add_filters(const struct ew_graph *g, const struct ew_channels *c, bool squares,
                          struct tally *t)
{
    for (int m = 0; m < c->n_producers; m++) {
        const struct ew_channel_producer *k = &c->producers[m];
        const struct ew_tensor *w = &g->values[k->weight].t;
        EW_CHECK(w->data && w->dtype == EW_F32, EW_ERR_TYPE, "%s: has no float32 weights",
                 g->nodes[k->node].name);
        const int64_t n = w->shape.dim[k->axis];
        double mean = 0;
        for (int64_t i = 0; i < n; i++)
            mean += filter_norm(w, k->axis, i, squares) / (double)n;
        for (int64_t i = 0; i < n; i++) {
            const int u = c->of[k->weight][k->axis][i];
            t->sum[u] += mean > 0 ? filter_norm(w, k->axis, i, squares) / mean : 0;
            t->n[u]++;
        }
    }
    return EW_OK;
}

static void add_scales(const struct ew_graph *g, const struct ew_channels *c, struct tally *t)
{
    for (int k = 0; k < g->n_nodes; k++) {
        const struct ew_node *n = &g->nodes[k];
        const int scale = n->op->flags & EW_OP_BATCH_NORM ? n->in[1] : -1;
        if (scale < 0 || !c->of[scale][0] || !g->values[scale].t.data)
            continue;
        for (int64_t i = 0; i < ew_tensor_count(&g->values[scale].t); i++) {
            t->sum[c->of[scale][0][i]] += fabs(ew_tensor_get(&g->values[scale].t, i));
            t->n[c->of[scale][0][i]]++;
        }
    }
}

/* Scores by batch norms; units without one by their filters. */
static ew_err by_scales(const struct ew_graph *g, const struct ew_channels *c, double *scores)
{
    struct tally norms = {0}, filters = {0};
    double mean = 0;
    int n = 0;
    ew_err e = tally_new(c->n_units, &norms);
    if (e == EW_OK)
        e = tally_new(c->n_units, &filters);
    if (e == EW_OK)
        e = add_filters(g, c, false, &filters);
    if (e == EW_OK) {
        add_scales(g, c, &norms);
        for (int u = 0; u < c->n_units; u++) {
            mean += norms.n[u] ? norms.sum[u] / norms.n[u] : 0;
            n += norms.n[u] > 0;
        }
        if (n == 0)
            e = ew_fail(EW_ERR_ARG, "%s: has no batch norm to go by; try --importance l1", g->name);
    }
    for (int u = 0; e == EW_OK && u < c->n_units; u++)
        scores[u] = norms.n[u] ? norms.sum[u] / norms.n[u]
                               : mean / n * filters.sum[u] / fmax(1, filters.n[u]);
    tally_free(&norms);
    tally_free(&filters);
    return e;
}

ew_err ew_importance_of_weights(const struct ew_graph *g, const struct ew_channels *c,
                                enum ew_importance kind, uint64_t seed, double *scores)
{
    struct tally t = {0};
    if (kind == EW_IMPORTANCE_BN)
        return by_scales(g, c, scores);
    ew_err e = tally_new(c->n_units, &t);
    if (e == EW_OK && kind != EW_IMPORTANCE_RANDOM)
        e = add_filters(g, c, kind == EW_IMPORTANCE_L2, &t);
    for (int u = 0; e == EW_OK && u < c->n_units; u++)
        scores[u] = kind == EW_IMPORTANCE_RANDOM ? ew_rng_uniform(seed, PRUNE_STREAM, (uint64_t)u)
                                                 : t.sum[u] / fmax(1, t.n[u]);
    tally_free(&t);
    return e;
}
