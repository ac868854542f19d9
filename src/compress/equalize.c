/* SPDX-License-Identifier: Apache-2.0 */
/* Cross-layer equalisation (Nagel et al. 2019).  If one convolution feeds another through operators
 * with f(s x) = s f(x), channel c of the first may be divided by any s > 0 and the filters that
 * read it multiplied by s.  s is chosen to balance the channel's range against that of the filters
 * that read it, so that a scale per tensor and a scale per filter both waste fewer quantisation
 * steps.  Ranges of activations are used where known.
 *
 * ReLU6 is not scale-equivariant.  Channels that reach 6 on the calibration images are left alone;
 * others may be divided by any s that keeps them below 6. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compress/pass.h"
#include "graph/ops.h"
#include "graph/readers.h"
#include "op/conv.h"

struct pair {
    const struct ew_node *first, *second;
    int between; /* value that the second convolution reads */
    float bound; /* upper bound of a clip between them; INFINITY: none */
    int clipped; /* output of the clip */
};

/* Margin below the bound, since other images exceed the calibration peaks. */
#define NEAR_BOUND 0.98f

static bool scales_with_input(const struct ew_node *n)
{
    static const struct ew_op *const ops[] = {&ew_op_relu, &ew_op_leaky_relu, &ew_op_max_pool,
                                              &ew_op_average_pool, &ew_op_global_average_pool};
    for (size_t i = 0; i < EW_COUNT(ops); i++)
        if (n->op == ops[i])
            return n->n_out == 1;
    return false;
}

/* The upper bound of a clip to [0, bound]; false: no such clip. */
static bool clip_bound(const struct ew_graph *g, int node, float *bound)
{
    struct ew_epilogue_attr act = {0};
    if (g->nodes[node].op != &ew_op_clip || !ew_act_of_node(g, node, &act) ||
        act.act != EW_ACT_CLIP || act.lo < 0 || act.lo > 0)
        return false;
    *bound = (float)act.hi;
    return true;
}

/* True for a convolution whose weights may be replaced. */
static bool is_plain_conv(const struct ew_graph *g, const struct ew_node *n)
{
    if (n->op != &ew_op_conv || n->n_in > 3 || !ew_pass_is_floats(g, n->in[1]))
        return false;
    return n->n_in < 3 || n->in[2] < 0 || ew_pass_is_floats(g, n->in[2]);
}

static bool keeps_scale(const struct ew_conv_attr *a)
{
    return a->end.act == EW_ACT_NONE || a->end.act == EW_ACT_RELU || a->end.act == EW_ACT_LEAKY;
}

/* Finds the convolution that `second` reads through a chain of single uses. */
static bool find_pair(const struct ew_graph *g, const struct ew_readers *r, int second,
                      struct pair *p)
{
    p->second = &g->nodes[second];
    if (!is_plain_conv(g, p->second))
        return false;
    p->between = p->second->in[0];
    p->bound = INFINITY;
    p->clipped = p->between;
    int v = p->between;
    for (;;) {
        const int from = ew_readers_sole_producer(r, v);
        if (from < 0)
            return false;
        p->first = &g->nodes[from];
        if (!isfinite(p->bound) && clip_bound(g, from, &p->bound))
            p->clipped = v;
        else if (!scales_with_input(p->first))
            break;
        v = p->first->in[0];
    }
    return is_plain_conv(g, p->first) && keeps_scale(p->first->attr);
}

static float peak(const float *x, int64_t n)
{
    float most = 0;
    for (int64_t i = 0; i < n; i++)
        most = fmaxf(most, fabsf(x[i]));
    return most;
}

/* Layout of a (grouped) convolution's filters by input channel. */
struct reader {
    int64_t filters, taps, each; /* filters per group; taps; channels per group */
};

static struct reader reader_of(const struct ew_graph *g, const struct ew_node *conv)
{
    const struct ew_conv_attr *a = conv->attr;
    const struct ew_shape *s = &g->values[conv->in[1]].t.shape;
    return (struct reader){.filters = s->dim[0] / a->groups,
                           .taps = ew_shape_span(s, 1, s->rank - 1),
                           .each = s->dim[s->rank - 1]};
}

/* Multiplies the weights that read channel c by `scale`; returns the largest magnitude. */
static float scale_readers(const struct reader *r, float *w, int64_t c, float scale)
{
    const int64_t group = c / r->each, at = c % r->each;
    float most = 0;
    for (int64_t o = group * r->filters; o < (group + 1) * r->filters; o++) {
        for (int64_t t = 0; t < r->taps; t++) {
            float *x = &w[(o * r->taps + t) * r->each + at];
            *x *= scale;
            most = fmaxf(most, fabsf(*x));
        }
    }
    return most;
}

/* True if channel c reaches the bound or is always 0: its factor is 1. */
static bool stays(const struct pair *p, const float *reach, int64_t c)
{
    return isfinite(p->bound) && (reach[c] >= NEAR_BOUND * p->bound || reach[c] <= 0);
}

/* s[c] = sqrt(range of channel c / range of the weights that read it), normalised by the geometric
 * mean over the channels that are left alone, or over all.  `reach`: peaks of the clipped value. */
static void choose(const struct pair *p, const struct ew_graph *g, const float *peaks,
                   const float *reach, float *s)
{
    const struct ew_tensor *w1 = &g->values[p->first->in[1]].t;
    const int64_t n = w1->shape.dim[0], each = ew_tensor_count(w1) / n;
    const struct reader r = reader_of(g, p->second);
    double log_sum[2] = {0};
    int64_t used[2] = {0};
    for (int64_t c = 0; c < n; c++) {
        const float size = peaks ? peaks[c] : peak((const float *)w1->data + c * each, each);
        const float reads = scale_readers(&r, g->values[p->second->in[1]].t.data, c, 1);
        s[c] = size > 0 && reads > 0 ? sqrtf(size / reads) : 0; /* 0: unchanged */
        if (s[c] > 0) {
            const bool fixed = stays(p, reach, c);
            log_sum[fixed] += log((double)s[c]);
            used[fixed]++;
        }
    }
    const int by = used[1] > 0;
    const float mean = used[by] ? expf((float)(log_sum[by] / (double)used[by])) : 1;
    for (int64_t c = 0; c < n; c++) {
        const bool free = s[c] > 0 && !stays(p, reach, c); /* dead channels are unchanged */
        s[c] = free ? fminf(fmaxf(s[c] / mean, 1.0f / 64), 64) : 1;
        if (free && isfinite(p->bound))
            s[c] = fmaxf(s[c], reach[c] / (NEAR_BOUND * p->bound));
    }
}

/* Replaces input `slot` by a copy of the weight, to be changed. */
static ew_err own(struct ew_graph *g, struct ew_readers *r, const struct ew_node *n, int slot)
{
    const int was = n->in[slot];
    const struct ew_tensor old = g->values[was].t;
    int fresh;
    EW_TRY(ew_pass_new_param(g, g->values[was].name, &old.shape, &fresh));
    memcpy(g->values[fresh].t.data, old.data, ew_tensor_bytes(&old));
    g->values[fresh].frozen = g->values[was].frozen;
    return ew_readers_set(r, (int)(n - g->nodes), slot, fresh);
}

static ew_err own_weights(struct ew_graph *g, struct ew_readers *r, const struct pair *p)
{
    EW_TRY(own(g, r, p->first, 1));
    if (p->first->n_in > 2 && p->first->in[2] >= 0)
        EW_TRY(own(g, r, p->first, 2));
    return own(g, r, p->second, 1);
}

static ew_err equalize(struct ew_graph *g, const struct pair *p, const float *peaks, float *reach)
{
    const struct ew_tensor *w1 = &g->values[p->first->in[1]].t;
    float *w2 = g->values[p->second->in[1]].t.data;
    float *b1 =
        p->first->n_in > 2 && p->first->in[2] >= 0 ? g->values[p->first->in[2]].t.data : NULL;
    const int64_t n = w1->shape.dim[0], each = ew_tensor_count(w1) / n;
    EW_CLEANUP(ew_free_ptr) float *s = calloc((size_t)n, sizeof(*s));
    EW_CHECK(s, EW_ERR_MEMORY, "%s: no memory to equalise it", p->first->name);
    choose(p, g, peaks, reach, s);
    const struct reader r = reader_of(g, p->second);
    for (int64_t c = 0; c < n; c++) {
        for (int64_t i = 0; i < each; i++)
            ((float *)w1->data)[c * each + i] /= s[c];
        if (b1)
            b1[c] /= s[c];
        scale_readers(&r, w2, c, s[c]);
        if (isfinite(p->bound))
            reach[c] /= s[c];
    }
    return EW_OK;
}

/* A copy of the peaks of the clipped value, to be scaled with its channels; NULL: unknown. */
static ew_err own_reach(struct ew_graph *g, const struct ew_equalize_opts *o, const struct pair *p,
                        float **reach)
{
    const int v = p->clipped;
    if (!isfinite(p->bound) || *reach || !o->reach || !o->reach[v])
        return EW_OK;
    const size_t n = (size_t)g->values[p->first->in[1]].t.shape.dim[0];
    *reach = ew_arena_array(&g->arena, n, sizeof(**reach));
    EW_CHECK(*reach, EW_ERR_MEMORY, "no memory to equalise %s", p->first->name);
    memcpy(*reach, o->reach[v], n * sizeof(**reach));
    return EW_OK;
}

static ew_err equalize_all(struct ew_graph *g, const struct ew_equalize_opts *o,
                           struct ew_readers *r, float **reach)
{
    for (int round = 0; round < o->rounds; round++)
        for (int k = 0; k < g->n_nodes; k++) {
            struct pair p;
            if (!find_pair(g, r, k, &p))
                continue;
            EW_TRY(own_reach(g, o, &p, &reach[p.clipped]));
            if (isfinite(p.bound) && !reach[p.clipped])
                continue;
            if (round == 0)
                EW_TRY(own_weights(g, r, &p));
            EW_TRY(equalize(g, &p, o->peaks ? o->peaks[p.between] : NULL, reach[p.clipped]));
        }
    return EW_OK;
}

ew_err ew_pass_equalize(struct ew_graph *g, const struct ew_equalize_opts *o)
{
    struct ew_readers *r;
    EW_CLEANUP(ew_free_ptr) float **reach = calloc((size_t)g->n_values + 1, sizeof(*reach));
    EW_CHECK(reach, EW_ERR_MEMORY, "no memory to equalise graph %s", g->name);
    EW_TRY(ew_readers_new(g, &r));
    const ew_err e = equalize_all(g, o, r, reach);
    ew_readers_free(r);
    EW_TRY(e);
    EW_TRY(ew_graph_sweep(g));
    return ew_graph_infer(g);
}
