/* SPDX-License-Identifier: Apache-2.0 */
/* Fuses a depthwise convolution with the 1x1 convolutions around it, where what lies between them
 * is larger than a core's cache.  An expansion before it goes first: its output is the widest value
 * of an inverted residual. */
#include <string.h>

#include "compress/pass.h"
#include "graph/ops.h"
#include "graph/readers.h"
#include "op/separable.h"

struct fusing {
    struct ew_graph *g;
    struct ew_readers *r;
    int64_t cache_bytes;
    bool *expands; /* by node: the expansion of a depthwise convolution */
};

/* A convolution of an image with constant weights. */
static bool read_conv(const struct fusing *f, int node, struct ew_conv_sizes *s)
{
    const struct ew_node *n = &f->g->nodes[node];
    struct ew_tensor *slots[8];
    struct ew_call c;
    if (n->op != &ew_op_conv || !ew_pass_is_floats(f->g, n->in[1]) ||
        f->g->values[n->in[1]].t.shape.rank != 4 ||
        (n->n_in > 2 && n->in[2] >= 0 && !ew_pass_is_constant(f->g, n->in[2])))
        return false;
    ew_graph_call(f->g, n, slots, &c);
    return ew_conv_resolve(&c, s) == EW_OK;
}

static bool has_residual(const struct ew_node *n)
{
    return n->n_in > 3 && n->in[3] >= 0;
}

/* A 1x1 convolution that reads and writes each pixel once. */
static bool is_pointwise(const struct fusing *f, int node)
{
    struct ew_conv_sizes s;
    if (node < 0 || !read_conv(f, node, &s) || s.groups != 1 || ew_window_taps(&s.w) != 1)
        return false;
    for (int d = 0; d < EW_WINDOW_DIMS; d++)
        if (s.w.in[d] != s.w.out[d] || s.w.stride[d] != 1 || s.w.pad[d] != 0)
            return false;
    return true;
}

static bool is_depthwise(const struct fusing *f, int node)
{
    struct ew_conv_sizes s;
    return read_conv(f, node, &s) && s.groups == s.w.channels && s.filters == s.w.channels &&
           !has_residual(&f->g->nodes[node]) && s.w.in[2] > EW_SEPARABLE_NARROW &&
           s.w.out[2] > EW_SEPARABLE_NARROW;
}

/* True if a value of one image does not fit in the cache. */
static bool is_large(const struct fusing *f, int value)
{
    const struct ew_tensor *t = &f->g->values[value].t;
    const int64_t images = t->shape.dim[0] > 0 ? t->shape.dim[0] : 1;
    return (int64_t)ew_tensor_bytes(t) / images > f->cache_bytes;
}

/* The expansion before a depthwise convolution; -1: none that pays. */
static int expansion_of(const struct fusing *f, int node)
{
    const int x = f->g->nodes[node].in[0], from = ew_readers_sole_producer(f->r, x);
    return is_pointwise(f, from) && !has_residual(&f->g->nodes[from]) && is_large(f, x) ? from : -1;
}

static void set_inputs(const struct ew_node *n, int filters, int *in)
{
    in[filters] = n->in[1];
    in[filters + 1] = n->n_in > 2 ? n->in[2] : -1;
}

/* Fuses into the last node; -1: no such convolution. */
static ew_err fuse(struct fusing *f, int expand, int depthwise, int project)
{
    struct ew_graph *g = f->g;
    const int last = project >= 0 ? project : depthwise;
    int in[EW_SEPARABLE_INPUTS];
    struct ew_separable_attr *a = ew_arena_alloc(&g->arena, sizeof(*a));
    EW_CHECK(a, EW_ERR_MEMORY, "node %s: no memory to fuse it", g->nodes[last].name);
    memset(a, 0, sizeof(*a));
    for (int i = 0; i < EW_SEPARABLE_INPUTS; i++)
        in[i] = -1;
    const struct ew_conv_attr *d = g->nodes[depthwise].attr;
    a->win = d->win;
    a->end[EW_SEPARABLE_DEPTHWISE] = d->end;
    in[EW_SEPARABLE_X] = g->nodes[expand >= 0 ? expand : depthwise].in[0];
    set_inputs(&g->nodes[depthwise], EW_SEPARABLE_DEPTHWISE_W, in);
    if (expand >= 0) {
        a->end[EW_SEPARABLE_EXPAND] = ((const struct ew_conv_attr *)g->nodes[expand].attr)->end;
        set_inputs(&g->nodes[expand], EW_SEPARABLE_EXPAND_W, in);
    }
    if (project >= 0) {
        const struct ew_node *n = &g->nodes[project];
        a->end[EW_SEPARABLE_PROJECT] = ((const struct ew_conv_attr *)n->attr)->end;
        set_inputs(n, EW_SEPARABLE_PROJECT_W, in);
        in[EW_SEPARABLE_RESIDUAL] = has_residual(n) ? n->in[3] : -1;
    }
    int n_in = EW_SEPARABLE_INPUTS;
    while (in[n_in - 1] < 0)
        n_in--;
    EW_TRY(ew_readers_set_all(f->r, last, in, n_in));
    g->nodes[last].op = &ew_op_separable_conv;
    g->nodes[last].attr = a;
    if (expand >= 0)
        ew_readers_detach(f->r, expand);
    if (last != depthwise)
        ew_readers_detach(f->r, depthwise);
    return EW_OK;
}

static ew_err fuse_all(struct fusing *f)
{
    const int n = f->g->n_nodes;
    f->expands = ew_arena_array(&f->g->arena, (size_t)n + 1, sizeof(*f->expands));
    EW_CHECK(f->expands, EW_ERR_MEMORY, "no memory to fuse nodes of graph %s", f->g->name);
    for (int k = 0; k < n; k++)
        f->expands[k] = false;
    for (int k = 0; k < n; k++) {
        const int from = is_depthwise(f, k) ? expansion_of(f, k) : -1;
        if (from >= 0)
            f->expands[from] = true;
    }
    for (int k = 0; k < n; k++) {
        if (!is_depthwise(f, k))
            continue;
        const int y = f->g->nodes[k].out[0], expand = expansion_of(f, k);
        int project = ew_readers_only(f->r, y);
        if (!is_pointwise(f, project) || f->g->nodes[project].in[0] != y || f->expands[project])
            project = -1;
        if (expand >= 0 || (project >= 0 && is_large(f, y)))
            EW_TRY(fuse(f, expand, k, project));
    }
    return EW_OK;
}

ew_err ew_pass_fuse_separable(struct ew_graph *g, int64_t cache_bytes)
{
    EW_CLEANUP(ew_readers_free_ptr) struct ew_readers *r = NULL;
    EW_TRY(ew_readers_new(g, &r));
    struct fusing f = {.g = g, .r = r, .cache_bytes = cache_bytes};
    const ew_err e = fuse_all(&f);
    ew_readers_free(r);
    r = NULL;
    EW_TRY(e);
    EW_TRY(ew_graph_sweep(g));
    return ew_graph_infer(g);
}
