/* SPDX-License-Identifier: Apache-2.0 */
/* Batch norm after a convolution: y = (w x + b - mean) s + shift with s = scale / sqrt(var + eps)
 * is a convolution with filters w s and bias (b - mean) s + shift. */
#include <math.h>

#include "compress/pass.h"
#include "graph/ops.h"
#include "graph/readers.h"
#include "op/conv.h"
#include "op/norm.h"

enum { X, SCALE, SHIFT, MEAN, VAR }; /* inputs of batch norm */

static bool can_fold(const struct ew_graph *g, const struct ew_readers *r, const struct ew_node *bn)
{
    const struct ew_batch_norm_attr *a = bn->attr;
    const int from = ew_readers_sole_producer(r, bn->in[X]);
    if (from < 0 || g->nodes[from].op != &ew_op_conv || a->training_mode ||
        a->end.act != EW_ACT_NONE || bn->n_out != 1)
        return false;
    const struct ew_node *conv = &g->nodes[from];
    const struct ew_conv_attr *c = conv->attr;
    bool ok = c->end.act == EW_ACT_NONE && conv->n_in <= 3 && ew_pass_is_floats(g, conv->in[1]);
    if (conv->n_in > 2 && conv->in[2] >= 0)
        ok &= ew_pass_is_constant(g, conv->in[2]);
    for (int i = SCALE; i <= VAR; i++)
        ok &= ew_pass_is_floats(g, bn->in[i]);
    return ok;
}

static const float *floats(const struct ew_graph *g, int value)
{
    return value < 0 ? NULL : g->values[value].t.data;
}

static void fold_weights(const struct ew_graph *g, const struct ew_node *conv,
                         const struct ew_node *bn, float *w, float *b)
{
    const struct ew_batch_norm_attr *a = bn->attr;
    const float *scale = floats(g, bn->in[SCALE]), *shift = floats(g, bn->in[SHIFT]);
    const float *mean = floats(g, bn->in[MEAN]), *var = floats(g, bn->in[VAR]);
    const float *old_w = floats(g, conv->in[1]);
    const float *old_b = conv->n_in > 2 ? floats(g, conv->in[2]) : NULL;
    const struct ew_shape *s = &g->values[conv->in[1]].t.shape;
    const int64_t each = ew_shape_span(s, 1, s->rank);
    for (int64_t o = 0; o < s->dim[0]; o++) {
        const double f = (double)scale[o] / sqrt((double)var[o] + a->eps);
        const double bias = old_b ? (double)old_b[o] : 0;
        for (int64_t i = 0; i < each; i++)
            w[o * each + i] = (float)((double)old_w[o * each + i] * f);
        b[o] = (float)((bias - (double)mean[o]) * f + (double)shift[o]);
    }
}

/* True if all weights involved are frozen, so that the folded ones are frozen too. */
static bool all_frozen(const struct ew_graph *g, const struct ew_node *conv,
                       const struct ew_node *bn, bool filters)
{
    const int made_of[] = {filters ? conv->in[1] : -1, bn->in[SCALE], filters ? -1 : bn->in[SHIFT],
                           !filters && conv->n_in > 2 ? conv->in[2] : -1};
    int learn = 0, frozen = 0;
    for (size_t i = 0; i < EW_COUNT(made_of); i++)
        if (made_of[i] >= 0 && g->values[made_of[i]].kind == EW_VALUE_PARAM)
            (*(g->values[made_of[i]].frozen ? &frozen : &learn))++;
    return frozen > 0 && learn == 0;
}

/* `only_own`: folds in place, and leaves alone filters that the graph does not own exclusively. */
static ew_err fold(struct ew_graph *g, struct ew_readers *r, int node, void *only_own)
{
    const bool own = *(const bool *)only_own;
    const struct ew_node *bn = &g->nodes[node];
    if (bn->op != &ew_op_batch_norm || !can_fold(g, r, bn))
        return EW_OK;
    const int at = g->values[bn->in[X]].producer;
    const struct ew_node *conv = &g->nodes[at];
    const struct ew_shape ws = g->values[conv->in[1]].t.shape;
    const struct ew_shape bs = {1, {ws.dim[0]}};
    int w = conv->in[1], b;
    if (own && !ew_pass_owns(g, r, w))
        return EW_OK;
    if (!own)
        EW_TRY(ew_pass_new_param(g, g->values[w].name, &ws, &w));
    EW_TRY(ew_pass_new_param(g, g->values[bn->in[SHIFT]].name, &bs, &b));
    fold_weights(g, conv, bn, g->values[w].t.data, g->values[b].t.data);
    g->values[w].frozen = all_frozen(g, conv, bn, true);
    g->values[b].frozen = all_frozen(g, conv, bn, false);
    EW_TRY(ew_readers_set_all(r, at, (const int[]){conv->in[0], w, b}, 3));
    ew_readers_detach(r, node);
    return ew_readers_replace(r, bn->out[0], conv->out[0]);
}

ew_err ew_pass_fold_batch_norm(struct ew_graph *g)
{
    return ew_pass_each_node(g, fold, &(bool){false});
}

ew_err ew_pass_fold_batch_norm_own(struct ew_graph *g)
{
    return ew_pass_each_node(g, fold, &(bool){true});
}
