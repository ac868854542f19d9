/* SPDX-License-Identifier: Apache-2.0 */
/* Clipping of weights that hardly matter.  With one power-of-two scale per layer, a large weight
 * that reads a channel which is always small (or dead, as many in MobileNetV2 are) determines the
 * step of all others.  Instead the scale minimises the error of the outputs, in which a weight's
 * error is weighted by its channel's peak. */
#include <math.h>

#include "compress/pass.h"
#include "compress/pow2.h"
#include "graph/ops.h"
#include "graph/readers.h"
#include "op/conv.h"

#define TRIED 8 /* the coarsest position tried, without clipping, and finer ones */

/* The channel that weight i of filter o reads is first + i % each. */
struct layer {
    const float *w, *peaks;
    int64_t filters, size, each; /* weights per filter; channels per group */
    int64_t group;               /* filters per group */
};

/* Sum over all weights of (peak of the channel x error at this position)^2. */
static double output_error(const struct layer *l, int position)
{
    const float up = ldexpf(1, position), down = ldexpf(1, -position);
    double sum = 0;
    for (int64_t o = 0; o < l->filters; o++) {
        const float *w = l->w + o * l->size, *peaks = l->peaks + o / l->group * l->each;
        for (int64_t i = 0, c = 0; i < l->size; i++, c = c + 1 < l->each ? c + 1 : 0) {
            const float q = rintf(fminf(fmaxf(w[i] * up, -128), 127)) * down;
            const float e = (q - w[i]) * peaks[c];
            sum += (double)(e * e);
        }
    }
    return sum;
}

static int best_position(const struct layer *l)
{
    float lo = 0, hi = 0;
    for (int64_t i = 0; i < l->filters * l->size; i++) {
        lo = fminf(lo, l->w[i]);
        hi = fmaxf(hi, l->w[i]);
    }
    const int first = ew_pow2_first(lo, hi);
    int best = first;
    double least = INFINITY;
    for (int p = first; p < first + TRIED && p <= EW_POW2_MOST; p++) {
        const double error = output_error(l, p);
        if (error < least) {
            least = error;
            best = p;
        }
    }
    return best;
}

static ew_err limit(struct ew_graph *g, const struct ew_node *n, const float *peaks)
{
    const struct ew_conv_attr *a = n->attr;
    struct ew_tensor *t = &g->values[n->in[1]].t;
    const struct ew_shape *s = &t->shape;
    float *w = ew_arena_alloc(&g->arena, ew_tensor_bytes(t));
    EW_CHECK(w, EW_ERR_MEMORY, "%s: no memory for its weights", n->name);
    const struct layer l = {.w = t->data,
                            .peaks = peaks,
                            .filters = s->dim[0],
                            .size = ew_shape_span(s, 1, s->rank),
                            .each = s->dim[s->rank - 1],
                            .group = s->dim[0] / a->groups};
    const float step = ew_pow2_scale(best_position(&l));
    for (int64_t i = 0; i < ew_tensor_count(t); i++)
        w[i] = fmaxf(fminf(l.w[i], 127 * step), -128 * step);
    t->data = w;
    return EW_OK;
}

ew_err ew_pass_clip_weights(struct ew_graph *g, const float *const *peaks)
{
    struct ew_readers *r;
    EW_TRY(ew_readers_new(g, &r));
    ew_err e = EW_OK;
    for (int k = 0; k < g->n_nodes && e == EW_OK; k++) {
        const struct ew_node *n = &g->nodes[k];
        if (n->op == &ew_op_conv && ew_pass_is_floats(g, n->in[1]) && peaks[n->in[0]] &&
            ew_readers_count(r, n->in[1]) == 1)
            e = limit(g, n, peaks[n->in[0]]);
    }
    ew_readers_free(r);
    return e;
}
