/* SPDX-License-Identifier: Apache-2.0 */
/* Small networks in two launches: recognises programs that are a chain of small layers, optionally
 * with loss and backward, and runs them by module/net.cu and net_weights.cu.  Any other program
 * launches its commands one by one. */
#include <stdlib.h>
#include <string.h>

#include "backend/cuda/cuda_backend.h"
#include "backend/cuda/cuda_net.h"
#include "base/mem.h"
#include "graph/layout.h"
#include "graph/ops.h"
#include "op/conv.h"
#include "op/window.h"

#define MOST_MACS     ((int64_t)2 << 20) /* per image; more fill the device in separate launches */
#define MOST_TRAINED  128                /* images; one block sums a weight gradient over all */
#define MOST_RUN      1024
#define MOST_SCRATCH  ((size_t)64 << 20)
#define MOST_COMMANDS 64

struct ew_cuda_net_program {
    struct ew_cuda_net net;
    int end;      /* first command that is not covered */
    void *memory; /* device memory: values, gradients, losses, staged output */
    void *late;   /* final address of a staged output (is_too_soon); else NULL */
    size_t late_bytes;
};

/* State of recognising a chain. */
struct chain_match {
    struct ew_cuda_net net;
    const struct ew_tensor *value; /* output of the last layer */
    int h, w, channels;            /* its size, per image */
    int64_t macs;
    bool shown; /* read by commands outside the chain: only the loss may follow */
    const struct ew_call *loss;
    int layer_of[MOST_COMMANDS]; /* of forward command k; -1: no layer of its own */
    int node_of[MOST_COMMANDS];
    int n_forward;
};

static struct ew_cuda_layer *last_layer(struct chain_match *r)
{
    return &r->net.layers[r->net.n - 1];
}

static int64_t image_count(const struct ew_tensor *t)
{
    return t->shape.rank > 0 && t->shape.dim[0] > 0 ? ew_tensor_count(t) / t->shape.dim[0] : 0;
}

/* ---- Layers ---- */

static bool is_plain_act(int act)
{
    return act == EW_ACT_NONE || act == EW_ACT_RELU || act == EW_ACT_SIGMOID || act == EW_ACT_TANH;
}

static bool read_conv(const struct ew_call *c, struct ew_cuda_layer *l)
{
    const struct ew_conv_attr *a = c->attr;
    const struct ew_tensor *bias = ew_call_in(c, 2);
    struct ew_cuda_window g;
    if (!ew_cuda_conv_window(c, &g) || g.od || g.groups != 1 || g.dh != 1 || g.dw != 1 ||
        ew_call_in(c, 3) || !is_plain_act(a->end.act) || c->in[1]->dtype != EW_F32)
        return false;
    *l = (struct ew_cuda_layer){.kind = EW_CUDA_LAYER_CONV,
                                .act = ew_cuda_act_of(&a->end),
                                .h = g.h,
                                .w = g.w,
                                .c = g.c,
                                .oh = g.oh,
                                .ow = g.ow,
                                .k = g.k,
                                .kh = g.kh,
                                .kw = g.kw,
                                .sh = g.sh,
                                .sw = g.sw,
                                .ph = g.ph,
                                .pw = g.pw,
                                .weights = c->in[1]->data,
                                .bias = ew_cuda_data(bias)};
    return true;
}

static bool read_dense(const struct ew_call *c, struct ew_cuda_layer *l)
{
    struct ew_cuda_dense d;
    if (!ew_cuda_dense_of(c, &d) || d.trans_a || d.alpha < 1 || d.alpha > 1 ||
        !ew_cuda_bias_fits(c, &d) || c->in[1]->dtype != EW_F32 || d.k > INT32_MAX / 4 ||
        d.n > INT32_MAX / 4 || d.m != c->in[0]->shape.dim[0])
        return false;
    *l = (struct ew_cuda_layer){.kind = EW_CUDA_LAYER_DENSE,
                                .h = 1,
                                .w = 1,
                                .c = (int)d.k,
                                .oh = 1,
                                .ow = 1,
                                .k = (int)d.n,
                                .w_turned = !d.trans_b,
                                .weights = c->in[1]->data,
                                .bias = ew_cuda_data(ew_call_in(c, 2))};
    return true;
}

static bool read_pool(const struct ew_call *c, struct ew_cuda_layer *l)
{
    const bool max = c->op == &ew_op_max_pool;
    struct ew_window w;
    if (ew_cuda_pool_window(c, &w) != EW_OK || !ew_cuda_flatten(&w) || ew_call_out(c, 1))
        return false;
    const bool whole = w.out[1] == 1 && w.out[2] == 1;
    if (w.adaptive && !whole)
        return false;
    for (int i = 1; i <= 2; i++) {
        if (w.adaptive)
            w.kernel[i] = w.in[i], w.stride[i] = w.dilation[i] = 1;
        const bool inside = (w.out[i] - 1) * w.stride[i] + w.kernel[i] <= w.in[i] && !w.pad[i];
        if (w.dilation[i] != 1 || (!max && !inside))
            return false;
    }
    *l = (struct ew_cuda_layer){.kind = max ? EW_CUDA_LAYER_MAX : EW_CUDA_LAYER_MEAN,
                                .h = (int)w.in[1],
                                .w = (int)w.in[2],
                                .c = (int)w.channels,
                                .oh = (int)w.out[1],
                                .ow = (int)w.out[2],
                                .k = (int)w.channels,
                                .kh = (int)w.kernel[1],
                                .kw = (int)w.kernel[2],
                                .sh = (int)w.stride[1],
                                .sw = (int)w.stride[2],
                                .ph = (int)w.pad[1],
                                .pw = (int)w.pad[2]};
    return w.kernel[1] * w.kernel[2] <= 255 && w.batch == c->in[0]->shape.dim[0];
}

/* Permutes within images only: the batch dimension is not moved. */
static bool read_transpose(const struct ew_call *c, struct ew_cuda_layer *l)
{
    const struct ew_transpose_attr *a = c->attr;
    const struct ew_shape *s = &c->in[0]->shape;
    if (s->rank != 4 || a->perm.n != 4 || a->perm.v[0] != 0 || image_count(c->in[0]) > INT32_MAX)
        return false;
    *l = (struct ew_cuda_layer){.kind = EW_CUDA_LAYER_TRANSPOSE,
                                .h = (int)s->dim[1],
                                .w = (int)s->dim[2],
                                .c = (int)s->dim[3],
                                .oh = 1,
                                .ow = 1,
                                .k = (int)image_count(c->in[0]),
                                .perm = {(signed char)(a->perm.v[1] - 1),
                                         (signed char)(a->perm.v[2] - 1),
                                         (signed char)(a->perm.v[3] - 1)}};
    return true;
}

static bool read_layer(const struct ew_call *c, struct ew_cuda_layer *l)
{
    const struct ew_op *op = c->op;
    if (op == &ew_op_conv)
        return read_conv(c, l);
    if (op == &ew_op_gemm || op == &ew_op_matmul)
        return read_dense(c, l);
    if (op == &ew_op_max_pool || op == &ew_op_average_pool || op == &ew_op_global_average_pool ||
        op == &ew_op_adaptive_avg_pool)
        return read_pool(c, l);
    return op == &ew_op_transpose && read_transpose(c, l);
}

/* Folds a transpose after a convolution or pool into the layout of that layer's output. */
static bool turn_last(struct chain_match *r, const struct ew_cuda_layer *l)
{
    struct ew_cuda_layer *last = r->net.n ? last_layer(r) : NULL;
    if (!last || l->kind != EW_CUDA_LAYER_TRANSPOSE || ew_cuda_reads_flat(last) ||
        ew_cuda_is_turned(last) || last->oh != l->h || last->ow != l->w || last->k != l->c)
        return false;
    const int dim[3] = {l->h, l->w, l->c};
    int stride[3], step = 1;
    for (int a = 2; a >= 0; a--) {
        stride[l->perm[a]] = step;
        step *= dim[l->perm[a]];
    }
    last->kept =
        (struct ew_cuda_layout){.row = stride[0], .column = stride[1], .channel = stride[2]};
    r->h = r->w = 1;
    r->channels = step;
    return true;
}

/* Whether the layer's input sizes match the chain's current value. */
static bool fits(struct chain_match *r, const struct ew_cuda_layer *l)
{
    if (ew_cuda_reads_flat(l))
        return (int64_t)l->h * l->w * l->c == (int64_t)r->h * r->w * r->channels;
    return r->h == l->h && r->w == l->w && r->channels == l->c &&
           !(r->net.n && ew_cuda_is_turned(last_layer(r)));
}

/* Appends a layer to the chain. */
static bool add_layer(struct chain_match *r, const struct ew_call *c)
{
    struct ew_cuda_net *net = &r->net;
    struct ew_cuda_layer l;
    if (net->n == EW_CUDA_NET_LAYERS || !read_layer(c, &l))
        return false;
    const int64_t inputs = (int64_t)l.h * l.w * l.c, outputs = (int64_t)l.oh * l.ow * l.k;
    if (inputs > EW_CUDA_NET_BYTES || outputs > EW_CUDA_NET_BYTES)
        return false;
    if (net->n == 0) {
        r->h = l.h, r->w = l.w, r->channels = l.c;
        net->images = (int)c->in[0]->shape.dim[0];
        net->x = c->in[0]->data;
    }
    if (!fits(r, &l))
        return false;
    if (turn_last(r, &l))
        return true;
    l.y_at = net->value_floats;
    net->value_floats += (int)outputs;
    l.place_at = net->place_bytes;
    net->place_bytes += l.kind == EW_CUDA_LAYER_MAX ? (int)outputs : 0;
    r->macs += l.kind == EW_CUDA_LAYER_CONV    ? outputs * l.kh * l.kw * l.c
               : l.kind == EW_CUDA_LAYER_DENSE ? inputs * l.k
                                               : 0;
    r->h = l.oh, r->w = l.ow, r->channels = l.k;
    net->layers[net->n++] = l;
    return r->macs <= MOST_MACS;
}

/* Fuses an activation into the last layer. */
static bool add_act(struct chain_match *r, const struct ew_call *c)
{
    const int kind = c->op == &ew_op_relu      ? EW_CUDA_ACT_RELU
                     : c->op == &ew_op_sigmoid ? EW_CUDA_ACT_SIGMOID
                     : c->op == &ew_op_tanh    ? EW_CUDA_ACT_TANH
                                               : EW_CUDA_ACT_NONE;
    if (kind == EW_CUDA_ACT_NONE || r->net.n == 0 || last_layer(r)->act.kind != EW_CUDA_ACT_NONE)
        return false;
    last_layer(r)->act = (struct ew_cuda_act){.kind = kind};
    return true;
}

static bool add_loss(struct chain_match *r, const struct ew_call *c)
{
    if (r->net.n == 0 || last_layer(r)->act.kind != EW_CUDA_ACT_NONE || r->h * r->w != 1 ||
        ew_call_out(c, 1) || r->net.type != EW_CUDA_F32)
        return false;
    r->loss = c;
    r->net.loss = ew_cuda_loss_of(c);
    r->net.loss.loss = c->out[0]->data;
    return r->net.loss.samples == r->net.images && r->net.loss.classes == r->channels;
}

static bool is_view(const struct ew_call *c)
{
    return (c->op->flags & EW_OP_VIEW) && c->in[0]->shape.rank > 0 && c->out[0]->shape.rank > 0 &&
           c->in[0]->shape.dim[0] == c->out[0]->shape.dim[0];
}

/* Whether `in` is the chain's current value, possibly with another shape: views are no commands. */
static bool goes_on(const struct chain_match *r, const struct ew_tensor *in)
{
    return !r->value ||
           (in->data == r->value->data && ew_tensor_bytes(in) == ew_tensor_bytes(r->value) &&
            in->shape.rank > 0 && in->shape.dim[0] == r->net.images);
}

static bool is_stored(const struct chain_match *r, const struct ew_tensor *t)
{
    const int type = r->net.type;
    return t->dtype == (type == EW_CUDA_F16 ? EW_F16 : type == EW_CUDA_BF16 ? EW_BF16 : EW_F32);
}

static bool read_forward(struct chain_match *r, const struct ew_command *k)
{
    const struct ew_call *c = k->call;
    const int layers = r->net.n;
    if (!c->op || c->recompute || r->loss || r->n_forward == MOST_COMMANDS || !c->in[0] ||
        !is_stored(r, c->in[0]) || !goes_on(r, c->in[0]))
        return false;
    if (c->op == &ew_op_softmax_cross_entropy)
        return add_loss(r, c);
    if (r->shown || (!is_view(c) && !add_layer(r, c) && (r->net.n != layers || !add_act(r, c))))
        return false;
    r->node_of[r->n_forward] = k->node;
    r->layer_of[r->n_forward++] = r->net.n > layers ? layers : -1;
    r->value = c->out[0];
    r->shown = k->is_read_later;
    return is_stored(r, r->value);
}

/* ---- Backward ---- */

static void take_gradient(const struct ew_call *c, int i, float **to, int *add)
{
    if (i >= c->n_in || !c->din[i])
        return;
    *to = c->din[i]->data;
    *add = ew_cuda_adds(c, i);
}

static bool is_taken(const struct chain_match *r, const struct ew_cuda_layer *l)
{
    for (int i = 0; i < r->net.n; i++) {
        const struct ew_cuda_layer *o = &r->net.layers[i];
        if (o != l && ((l->dw && l->dw == o->dw) || (l->db && l->db == o->db)))
            return true;
    }
    return false;
}

/* Takes weight gradients; activation gradients stay within the launch. */
static bool read_backward(struct chain_match *r, const struct ew_command *k)
{
    const struct ew_call *c = k->call;
    if (k->kernel->run == ew_cuda_run_seed) {
        r->net.up = 1 / (float)*(const int *)c->attr;
        return r->loss && c->out[0]->dtype == EW_F32;
    }
    if (!c->op || !r->loss)
        return false;
    if (c->op == &ew_op_softmax_cross_entropy || (c->op->flags & EW_OP_VIEW))
        return true;
    int i = 0;
    while (i < r->n_forward && r->node_of[i] != k->node)
        i++;
    if (i == r->n_forward)
        return false;
    const int layer = r->layer_of[i];
    if (layer < 0)
        return true;
    struct ew_cuda_layer *l = &r->net.layers[layer];
    if (layer == 0 && c->din[0])
        return false; /* the network input's gradient is wanted */
    if (!l->weights)
        return true;
    take_gradient(c, 1, &l->dw, &l->add_dw);
    take_gradient(c, 2, &l->db, &l->add_db);
    if ((l->dw || l->db) && layer < r->net.first_back)
        r->net.first_back = layer;
    return !is_taken(r, l);
}

/* ---- The program ---- */

/* Reads all commands up to the updates; false: not such a chain. */
static bool read_all(struct chain_match *r, const struct ew_command *commands, int n, int *end)
{
    int k = 0;
    for (; k < n && commands[k].phase == EW_PHASE_FORWARD; k++)
        if (!read_forward(r, &commands[k]))
            return false;
    r->net.first_back = r->net.n;
    const bool back = k < n && commands[k].phase == EW_PHASE_BACKWARD;
    for (; k < n && commands[k].phase == EW_PHASE_BACKWARD; k++)
        if (!read_backward(r, &commands[k]))
            return false;
    *end = k;
    for (; k < n; k++)
        if (commands[k].phase != EW_PHASE_UPDATE)
            return false;
    return r->net.n > 1 && r->net.images <= (back ? MOST_TRAINED : MOST_RUN) &&
           (!back || r->net.up > 0) && ew_cuda_lay_out(&r->net, back);
}

static bool overlap(const void *a, size_t a_bytes, const void *b, size_t b_bytes)
{
    const uintptr_t x = (uintptr_t)a, y = (uintptr_t)b;
    return x < y + b_bytes && y < x + a_bytes;
}

static size_t element_size(const struct ew_cuda_net *net)
{
    return net->type == EW_CUDA_F32 ? sizeof(float) : 2;
}

/* Blocks process images independently, so an output that aliases the network's input or the labels
 * could overwrite those of another image before they are read. */
static bool is_too_soon(const struct ew_cuda_net *net, size_t bytes)
{
    const struct ew_cuda_layer *l = &net->layers[0];
    const size_t images = (size_t)net->images;
    return net->images > 1 &&
           (overlap(net->y, bytes, net->x,
                    images * (size_t)(l->h * l->w * l->c) * element_size(net)) ||
            (net->loss.samples &&
             overlap(net->y, bytes, net->loss.labels, images * (size_t)net->loss.label_bytes)));
}

static ew_err take_memory(const struct ew_cuda *be, const struct chain_match *r,
                          struct ew_cuda_net_program *w)
{
    struct ew_cuda_net *net = &w->net;
    const size_t images = (size_t)net->images, size = sizeof(float);
    const bool back = net->first_back < net->n;
    const size_t output = images * (size_t)(r->h * r->w * r->channels) * element_size(net);
    const size_t values = back ? ew_align_up(images * (size_t)net->value_floats * size) : 0;
    const size_t losses = r->loss ? ew_align_up(images * size) : 0;
    net->y = r->value->data;
    const size_t late = is_too_soon(net, output) ? output : 0;
    char *at = NULL;
    EW_CUDA_TRY(be->cu, alloc(2 * values + losses + late + 1, &w->memory));
    at = w->memory;
    if (back) {
        net->values = (float *)(void *)at;
        net->grads = (float *)(void *)(at + values);
    }
    at += 2 * values;
    net->loss.scratch = (float *)(void *)at;
    if (late) {
        w->late = net->y;
        w->late_bytes = late;
        net->y = at + losses;
    }
    return EW_OK;
}

ew_err ew_cuda_net_program_new(struct ew_cuda *be, const struct ew_command *commands, int n,
                               struct ew_cuda_net_program **out)
{
    struct chain_match r = {.net.type = be->type};
    int end;
    *out = NULL;
    if (n == 0 || !read_all(&r, commands, n, &end) ||
        (size_t)r.net.images * (size_t)r.net.value_floats * 2 * sizeof(float) > MOST_SCRATCH)
        return EW_OK;
    struct ew_cuda_net_program *w = calloc(1, sizeof(*w));
    EW_CHECK(w, EW_ERR_MEMORY, "no memory for a network");
    *out = w;
    w->net = r.net;
    w->end = end;
    return take_memory(be, &r, w);
}

void ew_cuda_net_program_free(struct ew_cuda *be, struct ew_cuda_net_program *w)
{
    if (w)
        be->cu->release(w->memory);
    free(w);
}

int ew_cuda_net_program_end(const struct ew_cuda_net_program *w)
{
    return w ? w->end : 0;
}

ew_err ew_cuda_net_program_start(const struct ew_cuda *be, const struct ew_cuda_net_program *w)
{
    const struct ew_cuda_api *cu = be->cu;
    EW_CUDA_TRY(cu, net(be->q, &w->net));
    if (w->late)
        EW_CUDA_TRY(cu, copy(be->q, w->late, w->net.y, w->late_bytes, EW_CUDA_ON_DEVICE));
    if (w->net.loss.samples)
        EW_CUDA_TRY(cu, net_weights(be->q, &w->net));
    return EW_OK;
}
