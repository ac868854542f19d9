/* SPDX-License-Identifier: Apache-2.0 */
/* Fuses a convolution with the max pool and the ReLU after it, for training, into one conv_pool
 * node, which does not store the convolution's output.  Tiles are images, as in most steps, so
 * threads keep the images in their caches.  Three cases:
 *
 *   - a network's first convolution with 2x2 windows: only one output in four has a gradient;
 *   - a first convolution of stride 2 with 3x3 windows, whose output is the largest tensor of the
 *     network (SqueezeNet);
 *   - an inner 5x5 convolution of few channels whose pooled output is flattened, together with
 *     the transpose to channels first (the second one of LeNet-5 and of FedAvg's CNN).
 *
 * Nodes and values keep their numbers, as in compress/fuse_norm.c: the pool and the ReLU stay as
 * identities whose outputs nobody reads. */
#include <string.h>

#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/fuse/fuse.h"
#include "graph/layout.h"
#include "graph/ops.h"
#include "graph/readers.h"
#include "op/conv.h"
#include "op/pooling.h"

#define FEW_CHANNELS 4 /* beyond, implicit GEMM is as fast */
#define IMAGES       4 /* smallest batch: threads divide the images */

/* Inner convolutions: F(5x5, 5x5) is faster on every instruction set
 * (kernel/winograd/winograd_5x5.h). */
#define INNER_TAPS     5
#define INNER_CHANNELS 32 /* and at least 3 */
#define INNER_FILTERS  64 /* and at least 8 */
#define INNER_PIXELS   40 /* of a line of the convolution's output, and at least 8 */

/* With 3x3 windows. */
#define LARGE         (2 << 20) /* elements of the convolution's output, at least */
#define LARGE_FILTERS 16        /* at least */

#define MOST_FUSED 3 /* pool, activation, transpose */

/* A convolution and the nodes after it that are fused into it. */
struct layer {
    int conv, after[MOST_FUSED], n;
    int pool; /* the window's size */
    bool relu, channels_first;
};

/* True if all elements are `value`, also of an empty list. */
static bool all_are(const struct ew_ints *list, int64_t value)
{
    for (int i = 0; i < list->n; i++)
        if (list->v[i] != value)
            return false;
    return true;
}

static bool is_between(int64_t n, int64_t least, int64_t most)
{
    return n >= least && n <= most;
}

static bool is_supported_conv(const struct ew_graph *g, const struct ew_node *n)
{
    if (n->op->layer != EW_LAYER_CONV || n->n_in > 3 || n->channels_first)
        return false;
    const struct ew_conv_attr *a = n->attr;
    const struct ew_value *x = &g->values[n->in[0]], *w = &g->values[n->in[1]];
    const struct ew_shape *shape = &x->t.shape;
    return w->kind == EW_VALUE_PARAM && !w->frozen && x->t.dtype == EW_F32 && shape->rank == 4 &&
           shape->dim[0] >= IMAGES && a->groups == 1 && a->end.act == EW_ACT_NONE &&
           all_are(&a->win.dilation, 1);
}

/* The network's input, also if fake-quantised: no gradient is wanted. */
static bool is_input(const struct ew_graph *g, int value)
{
    const int from = g->values[value].producer;
    if (from >= 0 && g->nodes[from].op == &ew_op_fake_quant)
        value = g->nodes[from].in[0];
    return g->values[value].kind == EW_VALUE_INPUT;
}

static bool is_first(const struct ew_graph *g, const struct ew_node *conv)
{
    return is_input(g, conv->in[0]) && g->values[conv->in[0]].t.shape.dim[3] <= FEW_CHANNELS;
}

static bool is_inner(const struct ew_graph *g, const struct ew_node *conv)
{
    const struct ew_shape *w = &g->values[conv->in[1]].t.shape;
    const struct ew_shape *y = &g->values[conv->out[0]].t.shape;
    return w->dim[1] == INNER_TAPS && w->dim[2] == INNER_TAPS &&
           is_between(w->dim[3], 3, INNER_CHANNELS) && is_between(w->dim[0], 8, INNER_FILTERS) &&
           is_between(y->dim[1], 8, INNER_PIXELS) && is_between(y->dim[2], 8, INNER_PIXELS);
}

/* A pool of that size with stride 2, without padding or partial windows. */
static bool is_supported_pool(const struct ew_graph *g, const struct ew_node *n, int size)
{
    if (n->op != &ew_op_max_pool || n->n_out != 1 || n->channels_first)
        return false;
    const struct ew_pool_attr *a = n->attr;
    const struct ew_shape *x = &g->values[n->in[0]].t.shape;
    const bool even = (x->dim[1] - size) % 2 == 0 && (x->dim[2] - size) % 2 == 0;
    return (!a->ceil_mode || even) && a->win.kernel.n == 2 && all_are(&a->win.kernel, size) &&
           a->win.stride.n == 2 && all_are(&a->win.stride, 2) && all_are(&a->win.pad, 0) &&
           all_are(&a->win.dilation, 1) &&
           (a->win.auto_pad == EW_AUTO_PAD_NOTSET || a->win.auto_pad == EW_AUTO_PAD_VALID);
}

/* A convolution of few MACs whose output exceeds the caches. */
static bool is_large(const struct ew_graph *g, const struct ew_node *conv)
{
    const struct ew_conv_attr *a = conv->attr;
    const struct ew_shape *w = &g->values[conv->in[1]].t.shape;
    const struct ew_tensor *y = &g->values[conv->out[0]].t;
    return w->dim[1] == 3 && w->dim[2] == 3 && a->win.stride.n == 2 && all_are(&a->win.stride, 2) &&
           w->dim[0] >= LARGE_FILTERS && ew_tensor_count(y) >= LARGE;
}

/* The window size if convolution and pool can be fused; 0: they cannot. */
static int window_of(const struct ew_graph *g, const struct ew_node *conv,
                     const struct ew_node *pool)
{
    const struct ew_conv_attr *a = conv->attr;
    if (all_are(&a->win.stride, 1))
        return is_supported_pool(g, pool, 2) ? 2 : 0;
    return is_first(g, conv) && is_large(g, conv) && is_supported_pool(g, pool, 3) ? 3 : 0;
}

/* The only reader of the node's output, or -1. */
static int reader_of(const struct ew_graph *g, const struct ew_readers *r, int node)
{
    return ew_readers_only(r, g->nodes[node].out[0]);
}

static bool is_relu(const struct ew_graph *g, int node)
{
    struct ew_epilogue_attr end = {0};
    return node >= 0 && g->nodes[node].n_out == 1 && ew_act_of_node(g, node, &end) &&
           end.act == EW_ACT_RELU;
}

/* [N, d, d, O] to [N, O, d, d]. */
static bool is_to_channels_first(const struct ew_graph *g, int node)
{
    if (node < 0 || g->nodes[node].op != &ew_op_transpose)
        return false;
    const struct ew_ints *p = &((const struct ew_transpose_attr *)g->nodes[node].attr)->perm;
    return p->n == 4 && p->v[0] == 0 && p->v[1] == 3 && p->v[2] == 1 && p->v[3] == 2;
}

static bool find_layer(const struct ew_graph *g, const struct ew_readers *r, int node,
                       struct layer *out)
{
    *out = (struct layer){.conv = node};
    if (!is_supported_conv(g, &g->nodes[node]))
        return false;
    int last = reader_of(g, r, node);
    out->pool = last < 0 ? 0 : window_of(g, &g->nodes[node], &g->nodes[last]);
    if (out->pool == 0)
        return false;
    out->after[out->n++] = last;
    const int act = reader_of(g, r, last);
    if (is_relu(g, act)) {
        out->relu = true;
        out->after[out->n++] = last = act;
    }
    if (is_first(g, &g->nodes[node]))
        return true;
    const int turn = reader_of(g, r, last);
    out->channels_first = is_inner(g, &g->nodes[node]) && is_to_channels_first(g, turn);
    if (out->channels_first)
        out->after[out->n++] = turn;
    return out->channels_first;
}

/* Makes the node an identity from value `from` to value `to`. */
static ew_err make_identity(struct ew_graph *g, struct ew_readers *r, int node, int from, int to)
{
    struct ew_node *n = &g->nodes[node];
    n->op = &ew_op_identity;
    n->attr = NULL;
    n->out[0] = to;
    g->values[to].producer = node;
    g->values[to].t.shape = g->values[from].t.shape;
    return ew_readers_set_all(r, node, &from, 1);
}

/* The convolution now produces the last node's output; the others become a chain of identities that
 * produce the values between. */
static ew_err fuse(struct ew_graph *g, struct ew_readers *r, const struct layer *l)
{
    struct ew_node *conv = &g->nodes[l->conv];
    struct ew_conv_attr *a = ew_arena_alloc(&g->arena, sizeof(*a));
    EW_CHECK(a, EW_ERR_MEMORY, "%s: no memory to fuse it", conv->name);
    memcpy(a, conv->attr, sizeof(*a));
    a->end.act = l->relu ? EW_ACT_RELU : EW_ACT_NONE;
    a->turned = l->channels_first;
    a->pool = l->pool;
    int before = conv->out[0], from = g->nodes[l->after[l->n - 1]].out[0];
    conv->attr = a;
    conv->op = &ew_op_conv_pool;
    conv->out[0] = from;
    g->values[from].producer = l->conv;
    for (int i = 0; i < l->n; i++) {
        const int made = g->nodes[l->after[i]].out[0];
        EW_TRY(make_identity(g, r, l->after[i], from, before));
        from = before;
        before = made;
    }
    return EW_OK;
}

ew_err ew_cpu_rewrite(const struct ew_backend *be, struct ew_graph *g)
{
    EW_CLEANUP(ew_readers_free_ptr) struct ew_readers *r = NULL;
    if (!ew_cpu(be)->isa)
        return EW_OK;
    EW_TRY(ew_readers_new(g, &r));
    for (int k = 0; k < g->n_nodes; k++) {
        struct layer l;
        if (find_layer(g, r, k, &l))
            EW_TRY(fuse(g, r, &l));
    }
    return EW_OK;
}
