/* SPDX-License-Identifier: Apache-2.0 */
/* Bias correction (Nagel et al. 2019): rounding a layer's weights shifts the mean of its output by
 * sum over its inputs of (rounded weight - weight) x mean of the input, which is subtracted from
 * the bias.  Padding is neglected. */
#include <math.h>
#include <string.h>

#include "compress/pass.h"
#include "compress/pow2.h"
#include "op/conv.h"
#include "op/math_attr.h"

/* Filter o's weights: n of them, `step` apart; weight i reads channel channel0 + i % channels. */
struct filter {
    const float *w;
    int64_t n, step;
    int64_t channel0, channels;
};

struct layer {
    int weights;     /* value */
    int64_t filters; /* outputs */
    bool is_conv, transposed;
    int64_t groups;
};

static bool layer_of(const struct ew_graph *g, const struct ew_node *n, struct layer *l)
{
    if (n->n_in < 2 || n->n_in > 3 || !ew_pass_is_floats(g, n->in[1]) ||
        (n->n_in > 2 && n->in[2] >= 0 && !ew_pass_is_floats(g, n->in[2])))
        return false;
    const struct ew_shape *w = &g->values[n->in[1]].t.shape;
    *l = (struct layer){.weights = n->in[1], .groups = 1};
    if (n->op->layer == EW_LAYER_CONV) {
        l->is_conv = true;
        l->groups = ((const struct ew_conv_attr *)n->attr)->groups;
        l->filters = w->dim[0];
        return true;
    }
    if (n->op->layer != EW_LAYER_DENSE || w->rank != 2)
        return false;
    const struct ew_gemm_attr *a = n->attr;
    l->transposed = a->trans_b;
    l->filters = w->dim[a->trans_b ? 0 : 1];
    /* other alpha and beta do not occur in practice */
    return !a->trans_a && fabs(a->alpha - 1) < 1e-9 && fabs(a->beta - 1) < 1e-9;
}

static struct filter filter_of(const struct ew_graph *g, const struct layer *l, int64_t o)
{
    const struct ew_tensor *t = &g->values[l->weights].t;
    const int64_t n = ew_tensor_count(t) / l->filters;
    const float *w = t->data;
    if (l->is_conv) {
        const int64_t channels = t->shape.dim[t->shape.rank - 1];
        return (struct filter){.w = w + o * n,
                               .n = n,
                               .step = 1,
                               .channel0 = o / (l->filters / l->groups) * channels,
                               .channels = channels};
    }
    if (l->transposed)
        return (struct filter){.w = w + o * n, .n = n, .step = 1, .channels = n};
    return (struct filter){.w = w + o, .n = n, .step = l->filters, .channels = n};
}

static float own_scale(const struct filter *f)
{
    float most = 0;
    for (int64_t i = 0; i < f->n; i++)
        most = fmaxf(most, fabsf(f->w[i * f->step]));
    return most / 127;
}

/* Shift of the output's mean from rounding filter f to 8 bits at this scale. */
static double shift_of(const struct filter *f, float scale, const float *mean)
{
    double shift = 0;
    for (int64_t i = 0; scale > 0 && i < f->n; i++) {
        const float w = f->w[i * f->step];
        const float q = fmaxf(fminf(rintf(w / scale), 127), -128);
        shift += (double)(q * scale - w) * (double)mean[f->channel0 + i % f->channels];
    }
    return shift;
}

/* Gives the layer a bias of its own: a copy, or zeros. */
static ew_err own_bias(struct ew_graph *g, struct ew_node *n, int64_t filters, float **out)
{
    const bool has = n->n_in > 2 && n->in[2] >= 0;
    const struct ew_shape shape = {1, {filters}};
    int fresh;
    EW_TRY(ew_pass_new_param(g, has ? g->values[n->in[2]].name : n->name, &shape, &fresh));
    *out = g->values[fresh].t.data;
    g->values[fresh].frozen = g->values[n->in[has ? 2 : 1]].frozen;
    if (has)
        memcpy(*out, g->values[n->in[2]].t.data, (size_t)filters * sizeof(float));
    int *in = ew_arena_array(&g->arena, 3, sizeof(*in));
    EW_CHECK(in, EW_ERR_MEMORY, "%s: no memory to correct its bias", n->name);
    memcpy(in, n->in, 2 * sizeof(*in));
    in[2] = fresh;
    n->in = in;
    n->n_in = 3;
    return EW_OK;
}

ew_err ew_pass_correct_bias(struct ew_graph *g, const float *const *means, bool pow2)
{
    for (int k = 0; k < g->n_nodes; k++) {
        struct ew_node *n = &g->nodes[k];
        struct layer l;
        if (!layer_of(g, n, &l) || !means[n->in[0]])
            continue;
        const float *mean = means[n->in[0]];
        if (n->n_in > 2 && n->in[2] >= 0 && ew_tensor_count(&g->values[n->in[2]].t) != l.filters)
            continue;
        float *bias;
        EW_TRY(own_bias(g, n, l.filters, &bias));
        const struct ew_tensor *w = &g->values[l.weights].t;
        const float one = pow2 ? ew_pow2_scale(ew_pow2_best(w->data, ew_tensor_count(w))) : 0;
        for (int64_t o = 0; o < l.filters; o++) {
            const struct filter f = filter_of(g, &l, o);
            bias[o] -= (float)shift_of(&f, pow2 ? one : own_scale(&f), mean);
        }
    }
    EW_TRY(ew_graph_sweep(g));
    return ew_graph_infer(g);
}
