/* SPDX-License-Identifier: Apache-2.0 */
/* Maps a graph, float32 or quantised, to DPU layers as the vendor's compiler does. */
#include <string.h>

#include "backend/dpu/dpu_model.h"
#include "op/dpu.h"
#include "op/pooling.h"

const char *const ew_dpu_unit_names[] = {"conv", "depthwise", "pool", "element-wise", "host", NULL};

struct reading {
    const struct ew_graph *g;
    struct ew_dpu_net *n;
    int *of; /* by value: tensor, or -1 if it is not a feature map */
};

typedef ew_err read_fn(struct reading *r, const struct ew_node *n);

static const struct ew_shape *shape_of(const struct reading *r, int value)
{
    return &r->g->values[value].t.shape;
}

static int new_tensor(struct reading *r, int value, int producer)
{
    const int at = r->n->n_tensors++;
    r->n->tensors[at] = (struct ew_dpu_tensor){
        .bytes = ew_shape_count(shape_of(r, value)), .root = at, .producer = producer};
    return at;
}

/* Height, width and channels; a vector is one pixel. */
static void set_size(const struct ew_shape *s, int64_t *h, int64_t *w, int64_t *c)
{
    *h = s->rank > 3 ? s->dim[1] : 1;
    *w = s->rank > 2 ? s->dim[s->rank - 2] : 1;
    *c = s->rank > 1 ? s->dim[s->rank - 1] : 1;
}

/* Adds a layer for the node; its inputs are those that are feature maps. */
static struct ew_dpu_layer *add_layer(struct reading *r, const struct ew_node *n,
                                      enum ew_dpu_unit unit)
{
    const int at = r->n->n_layers++;
    struct ew_dpu_layer *l = &r->n->layers[at];
    struct ew_cost cost = {0};
    int64_t h, w;
    *l = (struct ew_dpu_layer){.name = n->name,
                               .op = n->op->name,
                               .unit = unit,
                               .kernel_h = 1,
                               .kernel_w = 1,
                               .fused_into = -1};
    for (int i = 0; i < n->n_in && l->n_in < EW_DPU_LAYER_INPUTS; i++) {
        const int t = n->in[i] < 0 ? -1 : r->of[n->in[i]];
        if (t < 0)
            continue;
        l->in_bytes[l->n_in] = ew_shape_count(shape_of(r, n->in[i]));
        l->in[l->n_in++] = t;
        r->n->tensors[t].reads++;
    }
    ew_graph_node_cost(r->g, (int)(n - r->g->nodes), &cost);
    l->macs = cost.macs;
    l->flops = cost.flops;
    if (n->in[0] >= 0)
        set_size(shape_of(r, n->in[0]), &h, &w, &l->in_c);
    set_size(shape_of(r, n->out[0]), &l->out_h, &l->out_w, &l->out_c);
    l->out = r->of[n->out[0]] = new_tensor(r, n->out[0], at);
    for (int i = 1; i < n->n_out; i++)
        if (n->out[i] >= 0)
            r->of[n->out[i]] = l->out;
    return l;
}

static void to_host(struct ew_dpu_layer *l, const char *reason)
{
    if (!reason)
        return;
    l->unit = EW_DPU_HOST;
    l->reason = reason;
}

/* ---- Operators ---- */

static ew_err read_conv(struct reading *r, const struct ew_node *n)
{
    const struct ew_conv_attr *a = n->attr;
    const struct ew_shape *w = shape_of(r, n->in[1]);
    struct ew_conv_sizes s;
    EW_TRY(ew_conv_geometry(&a->win, a->groups, shape_of(r, n->in[0]), w, &s));
    const bool depthwise = s.groups > 1 && s.groups == s.w.channels && s.filters == s.w.channels;
    struct ew_dpu_layer *l = add_layer(r, n, depthwise ? EW_DPU_DEPTHWISE : EW_DPU_CONV);
    l->kernel_h = s.w.kernel[1];
    l->kernel_w = s.w.kernel[2];
    l->weight_bytes = ew_shape_count(w) + s.filters;
    to_host(l, ew_dpu_refuses_conv(&s));
    return EW_OK;
}

/* A 1x1 convolution of one pixel, with all inputs as channels. */
static ew_err read_dense(struct reading *r, const struct ew_node *n)
{
    if (r->of[n->in[1]] >= 0) { /* both operands are feature maps */
        to_host(add_layer(r, n, EW_DPU_HOST), "multiplies two feature maps");
        return EW_OK;
    }
    struct ew_dpu_layer *l = add_layer(r, n, EW_DPU_CONV);
    l->weight_bytes = ew_shape_count(shape_of(r, n->in[1])) + l->out_c;
    to_host(l, ew_dpu_refuses_dense(l->in_c, l->out_c));
    return EW_OK;
}

static ew_err read_pool(struct reading *r, const struct ew_node *n)
{
    const struct ew_pool_attr *a = n->attr;
    struct ew_dpu_layer *l = add_layer(r, n, EW_DPU_POOL);
    if (a->win.kernel.n == 2) {
        l->kernel_h = a->win.kernel.v[0];
        l->kernel_w = a->win.kernel.v[1];
    }
    return EW_OK;
}

/* A node that costs nothing on a DPU: its outputs stand for its input. */
static ew_err read_view(struct reading *r, const struct ew_node *n)
{
    for (int i = 0; i < n->n_out; i++)
        if (n->out[i] >= 0)
            r->of[n->out[i]] = r->of[n->in[0]];
    return EW_OK;
}

/* Global or adaptive average pooling; windows are rounded up to equal size. */
static ew_err read_average(struct reading *r, const struct ew_node *n)
{
    int64_t in_h, in_w, c;
    set_size(shape_of(r, n->in[0]), &in_h, &in_w, &c);
    if (ew_shape_equal(shape_of(r, n->in[0]), shape_of(r, n->out[0])))
        return read_view(r, n);
    struct ew_dpu_layer *l = add_layer(r, n, EW_DPU_POOL);
    l->kernel_h = (in_h + l->out_h - 1) / ew_max_i64(l->out_h, 1);
    l->kernel_w = (in_w + l->out_w - 1) / ew_max_i64(l->out_w, 1);
    return EW_OK;
}

static ew_err read_elementwise(struct reading *r, const struct ew_node *n)
{
    add_layer(r, n, EW_DPU_ELEMENT);
    return EW_OK;
}

/* x * hard_sigmoid(x): an element-wise product; the hard sigmoid is fused into the layer before. */
static ew_err read_hard_swish(struct reading *r, const struct ew_node *n)
{
    struct ew_dpu_layer *l = add_layer(r, n, EW_DPU_ELEMENT);
    l->in[l->n_in] = l->in[0];
    l->in_bytes[l->n_in++] = l->in_bytes[0];
    return EW_OK;
}

/* Folded into a preceding convolution; otherwise a 1x1 depthwise convolution. */
static ew_err read_norm(struct reading *r, const struct ew_node *n)
{
    const struct ew_dpu_tensor *t = &r->n->tensors[r->of[n->in[0]]];
    const int producer = t->producer;
    if (producer >= 0 && t->reads == 0 &&
        (r->n->layers[producer].unit == EW_DPU_CONV ||
         r->n->layers[producer].unit == EW_DPU_DEPTHWISE))
        return read_view(r, n);
    struct ew_dpu_layer *l = add_layer(r, n, EW_DPU_DEPTHWISE);
    l->weight_bytes = 2 * l->out_c;
    return EW_OK;
}

static ew_err read_concat(struct reading *r, const struct ew_node *n)
{
    const int whole = new_tensor(r, n->out[0], -1);
    for (int i = 0; i < n->n_in; i++)
        if (n->in[i] >= 0 && r->of[n->in[i]] >= 0)
            r->n->tensors[r->of[n->in[i]]].root = whole;
    r->of[n->out[0]] = whole;
    return EW_OK;
}

/* Post-processing. */
static ew_err read_post_processing(struct reading *r, const struct ew_node *n)
{
    struct ew_dpu_layer *l = add_layer(r, n, EW_DPU_HOST);
    l->reason = "is post-processing, part of the host's share";
    l->flops = 0;
    return EW_OK;
}

static read_fn *find_reader(const char *op)
{
    static const struct {
        const char *op;
        read_fn *read;
    } known[] = {
        {"conv", read_conv},
        {"gemm", read_dense},
        {"matmul", read_dense},
        {"max_pool", read_pool},
        {"average_pool", read_pool},
        {"global_max_pool", read_average},
        {"global_average_pool", read_average},
        {"adaptive_avg_pool", read_average},
        {"reduce_mean", read_average},
        {"add", read_elementwise},
        {"mul", read_elementwise},
        {"hard_swish", read_hard_swish},
        {"resize", read_elementwise},
        {"channel_shuffle", read_elementwise},
        {"depth_to_space", read_elementwise},
        {"space_to_depth", read_elementwise},
        {"batch_norm", read_norm},
        {"concat", read_concat},
        {"softmax", read_post_processing},
        {"log_softmax", read_post_processing},
        {"argmax", read_post_processing},
    };
    static const char *const views[] = {
        "quantize_linear", "dequantize_linear", "identity",  "dropout", "relu",  "clip",
        "leaky_relu",      "hard_sigmoid",      "transpose", "split",   "slice", "pad"};
    for (size_t i = 0; i < EW_COUNT(known); i++)
        if (strcmp(known[i].op, op) == 0)
            return known[i].read;
    for (size_t i = 0; i < EW_COUNT(views); i++)
        if (strcmp(views[i], op) == 0)
            return read_view;
    return NULL;
}

static ew_err read_node(struct reading *r, const struct ew_node *n)
{
    bool flows = false;
    for (int i = 0; i < n->n_in; i++)
        flows = flows || (n->in[i] >= 0 && r->of[n->in[i]] >= 0);
    if (!flows || n->n_out < 1 || n->out[0] < 0)
        return EW_OK; /* a computation on weights */
    if (n->op->flags & EW_OP_VIEW)
        return read_view(r, n);
    read_fn *read = find_reader(n->op->name);
    if (read && n->in[0] >= 0 && r->of[n->in[0]] >= 0)
        return read(r, n);
    to_host(add_layer(r, n, EW_DPU_HOST), "is no operation of the DPU");
    return EW_OK;
}

/* Fuses an addition into the convolution that computes one of its operands: the adder reads the
 * convolution's results as they are produced. */
static void fuse_additions(struct ew_dpu_net *n)
{
    for (int k = 0; k < n->n_layers; k++) {
        struct ew_dpu_layer *l = &n->layers[k];
        if (l->unit != EW_DPU_ELEMENT || strcmp(l->op, "add") != 0 || l->n_in != 2)
            continue;
        for (int i = 0; i < l->n_in; i++) {
            const struct ew_dpu_tensor *t = &n->tensors[l->in[i]];
            if (t->producer > l->fused_into && t->reads == 1 &&
                n->layers[t->producer].unit == EW_DPU_CONV)
                l->fused_into = t->producer;
        }
    }
}

ew_err ew_dpu_net_init(const struct ew_graph *g, struct ew_dpu_net *out)
{
    *out = (struct ew_dpu_net){0};
    ew_arena_init(&out->arena);
    const size_t layers = (size_t)g->n_nodes + 1, tensors = (size_t)(g->n_nodes + g->n_inputs) + 1;
    struct reading r = {.g = g, .n = out};
    out->layers = ew_arena_array(&out->arena, layers, sizeof(*out->layers));
    out->tensors = ew_arena_array(&out->arena, tensors, sizeof(*out->tensors));
    r.of = ew_arena_array(&out->arena, (size_t)g->n_values + 1, sizeof(*r.of));
    EW_CHECK(!out->arena.failed, EW_ERR_MEMORY, "no memory for the layers of %s", g->name);
    for (int v = 0; v < g->n_values; v++)
        r.of[v] = -1;
    for (int i = 0; i < g->n_inputs; i++) {
        r.of[g->inputs[i]] = new_tensor(&r, g->inputs[i], -1);
        out->tensors[r.of[g->inputs[i]]].is_input = true;
    }
    for (int k = 0; k < g->n_nodes; k++)
        EW_TRY(ew_fail_in(read_node(&r, &g->nodes[k]), "node %s", g->nodes[k].name));
    fuse_additions(out);
    return EW_OK;
}

void ew_dpu_net_fini(struct ew_dpu_net *n)
{
    ew_arena_fini(&n->arena);
    *n = (struct ew_dpu_net){0};
}
