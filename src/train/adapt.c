/* SPDX-License-Identifier: Apache-2.0 */
/* Preparing networks for training.  Splitting off the frozen part is in cut.c. */
#include "train/adapt.h"

#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "compress/pass.h"
#include "graph/layout.h"
#include "graph/ops.h"
#include "op/norm.h"
#include "op/resize.h"
#include "op/shape_attr.h"

#define HEAD_STREAM 0x68656164 /* random stream "head" */

/* ---- Images ---- */

/* Replaces the input [N, C, d...] by [N, d..., C] and a transpose. */
static ew_err transpose_input(struct ew_graph *g)
{
    const int old = g->inputs[0];
    const struct ew_value v = g->values[old];
    const struct ew_shape *s = &v.t.shape;
    const int rank = s->rank;
    struct ew_shape last = *s;
    struct ew_transpose_attr attr = {.perm = {rank, {0, rank - 1}}};
    for (int i = 2; i < rank; i++) {
        last.dim[i - 1] = s->dim[i];
        attr.perm.v[i] = i - 1;
    }
    last.dim[rank - 1] = s->dim[1];
    const char *name = ew_arena_strdup(&g->arena, v.name);
    int fresh, made;
    EW_CHECK(name, EW_ERR_MEMORY, "no memory");
    EW_TRY(ew_graph_rename(g, old, ""));
    EW_TRY(ew_graph_input(g, name, v.t.dtype, &last, &fresh));
    g->inputs[0] = fresh;
    g->n_inputs--;
    g->values[fresh].dynamic = v.dynamic & 1;
    g->values[fresh].channels_last = true;
    EW_TRY(ew_graph_add(g, &ew_op_transpose, "images", &attr, EW_INPUTS(fresh), &made));
    /* the transpose was added last and belongs first */
    const struct ew_node n = g->nodes[g->n_nodes - 1];
    memmove(g->nodes + 1, g->nodes, (size_t)(g->n_nodes - 1) * sizeof(*g->nodes));
    g->nodes[0] = n;
    g->nodes[0].out[0] = old;
    for (int i = 0; i < g->n_values; i++)
        g->values[i].producer += g->values[i].producer >= 0;
    g->values[old].kind = EW_VALUE_ACT;
    g->values[old].producer = 0;
    g->values[made].producer = -1;
    return ew_graph_sweep(g);
}

/* An output in the input's former layout (an autoencoder's) is transposed likewise. */
static ew_err transpose_output(struct ew_graph *g, const struct ew_shape *first)
{
    const int old = g->outputs[0];
    if (!ew_shape_equal(&g->values[old].t.shape, first))
        return EW_OK;
    const int rank = first->rank;
    struct ew_transpose_attr attr = {.perm = {rank, {0}}};
    for (int i = 1; i < rank; i++)
        attr.perm.v[i] = i + 1 < rank ? i + 1 : 1;
    EW_TRY(ew_graph_add(g, &ew_op_transpose, "reconstruction", &attr, EW_INPUTS(old), g->outputs));
    return ew_graph_claim_name(g, g->outputs[0], g->values[old].name);
}

static bool follows_batch(struct ew_graph *g, int64_t batch)
{
    const int out = g->outputs[0];
    return ew_graph_set_batch(g, batch) == EW_OK && g->values[out].t.shape.rank > 0 &&
           g->values[out].t.shape.dim[0] == batch;
}

/* Makes a constant reshape to [batch, ...] keep its first dimension (0) instead. */
static ew_err open_reshape(struct ew_graph *g, struct ew_node *n, int64_t batch)
{
    const struct ew_value *from = &g->values[n->in[0]], *to = &g->values[n->in[1]];
    struct ew_ints shape;
    if (from->kind != EW_VALUE_ACT || from->t.shape.rank == 0 || from->t.shape.dim[0] != batch ||
        to->kind != EW_VALUE_CONST || ((const struct ew_reshape_attr *)n->attr)->allowzero)
        return EW_OK;
    EW_TRY(ew_tensor_ints(&to->t, "shape", &shape));
    if (shape.n == 0 || shape.v[0] != batch)
        return EW_OK;
    shape.v[0] = 0;
    return ew_graph_const_ints(g, NULL, shape.v, shape.n, &n->in[1]);
}

/* Takes the batch out of the constant sizes of a resize that does not change it. */
static ew_err open_resize(struct ew_graph *g, struct ew_node *n, int64_t batch)
{
    struct ew_resize_attr *a = n->attr;
    const int rank = g->values[n->in[EW_RESIZE_X]].t.shape.rank;
    const int by = n->n_in > EW_RESIZE_SIZES ? n->in[EW_RESIZE_SIZES] : -1;
    struct ew_ints sizes, axes = {.n = 0}, kept = {.n = 0};
    if (by < 0 || g->values[by].kind != EW_VALUE_CONST || n->in[EW_RESIZE_ROI] >= 0 ||
        a->aspect != EW_RESIZE_STRETCH || rank == 0 ||
        g->values[n->in[EW_RESIZE_X]].t.shape.dim[0] != batch)
        return EW_OK;
    EW_TRY(ew_tensor_ints(&g->values[by].t, "sizes", &sizes));
    for (int i = 0; i < sizes.n; i++) {
        int axis = i;
        if (a->axes.n)
            EW_TRY(ew_shape_axis(a->axes.v[i], rank, &axis));
        if (axis == 0 && sizes.v[i] != batch)
            return EW_OK;
        if (axis == 0)
            continue;
        axes.v[axes.n++] = axis;
        kept.v[kept.n++] = sizes.v[i];
    }
    a->axes = axes;
    return ew_graph_const_ints(g, NULL, kept.v, kept.n, &n->in[EW_RESIZE_SIZES]);
}

/* Many files have a fixed batch of 1, on which only constant shapes and sizes depend, as in the
 * reshape before a dense layer: makes it dynamic. */
static ew_err open_batch(struct ew_graph *g)
{
    struct ew_value *v = &g->values[g->inputs[0]];
    const int64_t batch = v->t.shape.dim[0];
    if (v->dynamic & 1)
        return EW_OK;
    v->dynamic |= 1;
    if (!follows_batch(g, batch + 1)) {
        EW_TRY(ew_graph_set_batch(g, batch));
        for (int k = 0; k < g->n_nodes; k++) {
            if (g->nodes[k].op == &ew_op_reshape)
                EW_TRY(open_reshape(g, &g->nodes[k], batch));
            else if (g->nodes[k].op == &ew_op_resize)
                EW_TRY(open_resize(g, &g->nodes[k], batch));
        }
        EW_CHECK(follows_batch(g, batch + 1), EW_ERR_UNSUPPORTED, "%s: its batch is fixed at %lld",
                 g->name, (long long)batch);
    }
    return ew_graph_set_batch(g, batch);
}

/* Files exported for training say that batch norms use batch statistics in any run.  Whether they
 * do is the run's to say; those whose new running statistics are read stay as they are. */
static ew_err use_running_statistics(struct ew_graph *g)
{
    EW_CLEANUP(ew_free_ptr) int *uses = calloc((size_t)g->n_values + 1, sizeof(*uses));
    EW_CHECK(uses, EW_ERR_MEMORY, "no memory for graph %s", g->name);
    ew_graph_count_uses(g, uses);
    for (int k = 0; k < g->n_nodes; k++) {
        struct ew_node *n = &g->nodes[k];
        bool read = n->op != &ew_op_batch_norm;
        for (int i = 1; !read && i < n->n_out; i++)
            read = n->out[i] >= 0 && uses[n->out[i]];
        if (read)
            continue;
        ((struct ew_batch_norm_attr *)n->attr)->training_mode = false;
        for (int i = 1; i < n->n_out; i++)
            if (n->out[i] >= 0)
                g->values[n->out[i]].producer = -1;
        n->n_out = 1;
    }
    return ew_graph_sweep(g);
}

/* Files written by TensorFlow's converters have images as [N, H, W, C]. */
static bool is_channels_last(const struct ew_shape *s)
{
    const int64_t first = s->dim[1], last = s->dim[s->rank - 1];
    return first != 1 && first != 3 && (last == 1 || last == 3);
}

static ew_err check_images(const struct ew_graph *g)
{
    EW_CHECK(g->n_inputs == 1, EW_ERR_SHAPE, "%s: has %d inputs; an image classifier has one",
             g->name, g->n_inputs);
    const struct ew_value *v = &g->values[g->inputs[0]];
    char text[EW_SHAPE_TEXT];
    EW_CHECK((v->t.shape.rank == 4 || v->t.shape.rank == 5) && v->t.dtype == EW_F32, EW_ERR_SHAPE,
             "%s: input %s is %s of %s, not float32 images or clips", g->name, v->name,
             ew_shape_text(&v->t.shape, text), ew_dtype_name(v->t.dtype));
    EW_CHECK(g->n_outputs >= 1, EW_ERR_ARG, "%s: has no output", g->name);
    return EW_OK;
}

ew_err ew_adapt_check(const struct ew_graph *g)
{
    EW_TRY(check_images(g));
    const struct ew_value *v = &g->values[g->inputs[0]];
    char text[EW_SHAPE_TEXT];
    EW_CHECK(v->channels_last || is_channels_last(&v->t.shape), EW_ERR_SHAPE,
             "%s: input %s is %s, not images [N, H, W, C] as ew_network_graph gives them", g->name,
             v->name, ew_shape_text(&v->t.shape, text));
    return EW_OK;
}

ew_err ew_adapt_images(struct ew_graph *g)
{
    EW_TRY(check_images(g));
    EW_TRY(use_running_statistics(g));
    EW_TRY(open_batch(g));
    struct ew_value *input = &g->values[g->inputs[0]];
    input->channels_last = input->channels_last || is_channels_last(&input->t.shape);
    if (!input->channels_last) {
        /* through ONNX's layout, so that the conversion back cancels the transposes */
        EW_TRY(ew_graph_channels_first(g));
        const struct ew_shape first = g->values[g->inputs[0]].t.shape;
        EW_TRY(transpose_input(g));
        EW_TRY(ew_graph_infer(g));
        EW_TRY(transpose_output(g, &first));
        EW_TRY(ew_graph_channels_last(g));
        EW_TRY(ew_graph_sweep(g));
    }
    return ew_pass_fold_pad(g); /* since Pad has no backward kernel */
}

/* ---- The head ---- */

static bool is_weight(const struct ew_graph *g, const struct ew_node *n, int i)
{
    return i < n->n_in && n->in[i] >= 0 && ew_value_is_weight(&g->values[n->in[i]]);
}

/* The input of `n` that is an activation. */
static int data_input(const struct ew_graph *g, const struct ew_node *n)
{
    int found = -1, count = 0;
    for (int i = 0; i < n->n_in; i++)
        if (n->in[i] >= 0 && !is_weight(g, n, i)) {
            found = i;
            count++;
        }
    return count == 1 ? found : -1;
}

ew_err ew_adapt_scores(struct ew_graph *g)
{
    EW_CHECK(g->n_outputs >= 1, EW_ERR_ARG, "%s: has no output", g->name);
    g->n_outputs = 1;
    const int last = g->values[g->outputs[0]].producer;
    if (last >= 0 &&
        (g->nodes[last].op == &ew_op_softmax || g->nodes[last].op == &ew_op_log_softmax))
        g->outputs[0] = g->nodes[last].in[0];
    return ew_graph_sweep(g);
}

/* The last layer with weights, and the Add of its bias, if separate. */
struct head {
    int node;
    int add, add_slot; /* -1: none */
};

static ew_err find_head(const struct ew_graph *g, struct head *out)
{
    *out = (struct head){-1, -1, -1};
    for (int v = g->outputs[0]; v >= 0 && g->values[v].producer >= 0;) {
        const int k = g->values[v].producer;
        const struct ew_node *n = &g->nodes[k];
        const bool layer = n->op->layer != EW_LAYER_NONE;
        if (layer && is_weight(g, n, 1) && !is_weight(g, n, 0)) {
            out->node = k;
            return EW_OK;
        }
        const int data = data_input(g, n);
        if (data < 0)
            break;
        if (n->op == &ew_op_add && n->n_in == 2) {
            out->add = k;
            out->add_slot = 1 - data;
        }
        v = n->in[data];
    }
    return ew_fail(EW_ERR_UNSUPPORTED, "%s: its output follows no single last layer with weights",
                   g->name);
}

/* The weight's output dimension. */
static int class_axis(const struct ew_node *n, const struct ew_shape *s)
{
    if (n->op->layer == EW_LAYER_CONV)
        return 0;
    const struct ew_field *f = ew_field_find(n->op->attrs, "trans_b");
    const bool turned = f && *(const bool *)((const char *)n->attr + f->offset);
    return turned ? 0 : s->rank - 1;
}

/* Replaces the weight in the slot by one with `classes` along `axis`, uniform in [-bound, bound].
 */
static ew_err fresh_weight(struct ew_graph *g, int *slot, int axis, int64_t classes,
                           const struct ew_rng *seed, double bound)
{
    const char *name = ew_arena_strdup(&g->arena, g->values[*slot].name);
    struct ew_tensor t = {.dtype = EW_F32, .shape = g->values[*slot].t.shape};
    int made;
    t.shape.dim[axis] = classes;
    EW_CHECK(name, EW_ERR_MEMORY, "no memory");
    EW_TRY(ew_shape_check(&t.shape, name));
    t.data = ew_arena_alloc(&g->arena, ew_tensor_bytes(&t));
    EW_CHECK(t.data, EW_ERR_MEMORY, "%s: no memory for %lld classes", name, (long long)classes);
    for (int64_t i = 0; i < ew_tensor_count(&t); i++)
        ((float *)t.data)[i] =
            (float)(bound * (2 * ew_rng_uniform(seed->seed, seed->stream, (uint64_t)i) - 1));
    EW_TRY(ew_graph_const(g, "head", EW_VALUE_PARAM, &t, false, &made));
    *slot = made;
    return ew_graph_claim_name(g, made, name);
}

static ew_err check_scores(const struct ew_graph *g, int64_t classes)
{
    char text[EW_SHAPE_TEXT];
    const struct ew_shape *s = &g->values[g->outputs[0]].t.shape;
    EW_CHECK(s->rank == 2 && s->dim[1] == classes, EW_ERR_SHAPE,
             "%s: its output is %s with a head of %lld classes", g->name, ew_shape_text(s, text),
             (long long)classes);
    return EW_OK;
}

ew_err ew_adapt_head(struct ew_graph *g, int64_t classes, uint64_t seed, bool anyway)
{
    struct head h;
    const struct ew_shape *out = &g->values[g->outputs[0]].t.shape;
    if (!anyway && out->rank == 2 && out->dim[1] == classes)
        return EW_OK;
    EW_TRY(find_head(g, &h));
    struct ew_node *n = &g->nodes[h.node];
    const struct ew_shape w = g->values[n->in[1]].t.shape;
    const int axis = class_axis(n, &w);
    double fan_in = 1;
    for (int i = 0; i < w.rank; i++)
        fan_in *= i == axis ? 1 : (double)w.dim[i];
    const double bound = 1 / sqrt(fan_in); /* PyTorch's default */
    const struct ew_rng weight = {.seed = seed, .stream = HEAD_STREAM};
    const struct ew_rng bias = {.seed = seed, .stream = HEAD_STREAM + 1};
    EW_TRY(fresh_weight(g, &n->in[1], axis, classes, &weight, bound));
    if (is_weight(g, n, 2) && n->op->layer != EW_LAYER_MATMUL)
        EW_TRY(fresh_weight(g, &n->in[2], g->values[n->in[2]].t.shape.rank - 1, classes, &bias,
                            bound));
    if (h.add >= 0) {
        int *slot = &g->nodes[h.add].in[h.add_slot];
        EW_TRY(fresh_weight(g, slot, g->values[*slot].t.shape.rank - 1, classes, &bias, bound));
    }
    EW_TRY(ew_graph_sweep(g));
    EW_TRY(ew_graph_infer(g));
    return check_scores(g, classes);
}

/* ---- Weights ---- */

static bool name_fits(const char *patterns, const char *name)
{
    char one[256];
    for (const char *p = patterns; *p;) {
        const size_t n = strcspn(p, ",");
        if (n < sizeof(one)) {
            memcpy(one, p, n);
            one[n] = '\0';
            if (fnmatch(one, name, 0) == 0)
                return true;
        }
        p += n + (p[n] == ',');
    }
    return false;
}

ew_err ew_adapt_freeze(struct ew_graph *g, const char *what, int *n)
{
    const bool backbone = strcmp(what, "backbone") == 0;
    struct head h = {-1, -1, -1};
    *n = 0;
    if (backbone)
        EW_TRY(find_head(g, &h));
    for (int i = 0; i < g->n_values; i++) {
        struct ew_value *v = &g->values[i];
        if (v->kind != EW_VALUE_PARAM)
            continue;
        bool freeze = backbone || name_fits(what, v->name);
        for (int k = 1; h.node >= 0 && k < g->nodes[h.node].n_in; k++)
            freeze &= g->nodes[h.node].in[k] != i;
        if (h.add >= 0)
            freeze &= g->nodes[h.add].in[h.add_slot] != i;
        v->frozen = freeze;
        *n += freeze;
    }
    EW_CHECK(*n > 0 || !backbone, EW_ERR_USAGE,
             "--freeze backbone: %s has no weights besides those of its last layer", g->name);
    EW_CHECK(*n > 0, EW_ERR_USAGE, "--freeze: no weight of %s is called '%s'", g->name, what);
    return EW_OK;
}

ew_err ew_adapt_copy(struct ew_graph *g, const struct ew_graph *from, int *n)
{
    *n = 0;
    for (int i = 0; i < g->n_values; i++) {
        struct ew_value *v = &g->values[i];
        if (v->kind != EW_VALUE_PARAM && v->kind != EW_VALUE_STATE)
            continue;
        const int k = ew_graph_find(from, v->name);
        const struct ew_tensor *t = k >= 0 ? &from->values[k].t : NULL;
        if (!t || !t->data || !v->t.data || t->dtype != v->t.dtype ||
            !ew_shape_equal(&t->shape, &v->t.shape))
            continue;
        memcpy(v->t.data, t->data, ew_tensor_bytes(t));
        ++*n;
    }
    EW_CHECK(*n > 0, EW_ERR_ARG, "%s has no weight with a name and shape of %s", from->name,
             g->name);
    return EW_OK;
}
