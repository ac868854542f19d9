/* SPDX-License-Identifier: Apache-2.0 */
/* Converting a whole graph between ONNX's layout and channels-last.
 *
 * One forward pass copies the graph node by node, eliminating transposes lazily.  A transpose is
 * not copied: its output is recorded as a permuted view of its input, and a real transpose (or, for
 * a constant, permuted data) is made only where the permuted value itself is needed.  SPATIAL nodes
 * read and write the target layout; element-wise nodes and those with a permute hook work on the
 * unpermuted values and pass the view on; everything else gets real values. */
#include "graph/layout.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena_move.h"
#include "graph/ops.h"

/* A value of the old graph as a permuted view of a value of the new graph: axis i of the old is
 * axis perm[i] of the new. */
struct view {
    int value; /* of the new graph; -1: none yet (constants are copied at first use) */
    int rank;
    int perm[EW_MAX_RANK];
    int wide, wide_rank; /* a constant with leading ones, once it has been needed; rank 0: none */
};

/* A materialised view: value `to` is value `from` of the new graph, permuted by `perm`. */
struct permuted {
    int from, to;
    int perm[EW_MAX_RANK];
    int next; /* next with the same `from`, or -1 */
};

struct layout_pass {
    struct ew_graph *old, *new;
    bool to_last;
    struct view *views; /* by value of the old graph */
    int n_views, cap_views;
    struct permuted *permuted;
    int n_permuted, cap_permuted;
    int *first_permuted; /* by value of the new graph */
    int cap_first;
    bool leaves_dead; /* permute_dequantised has left dead nodes */
    int *uses;        /* by value that the old graph had at the start */
    int n_uses;
};

static bool is_identity(const int *perm, int rank)
{
    for (int i = 0; i < rank; i++)
        if (perm[i] != i)
            return false;
    return true;
}

/* [N, C, d...] to [N, d..., C], or back; the identity below rank 3. */
static void channel_perm(int rank, bool to_last, int *perm)
{
    perm[0] = 0;
    for (int i = 1; i < rank; i++)
        perm[i] = to_last ? (i == rank - 1 ? 1 : i + 1) : (i == 1 ? rank - 1 : i - 1);
    if (rank < 3)
        for (int i = 0; i < rank; i++)
            perm[i] = i;
}

static void inverse(const int *perm, int rank, int *out)
{
    for (int i = 0; i < rank; i++)
        out[perm[i]] = i;
}

/* out = the view `b` of the view `a`. */
static void compose(const int *a, const int *b, int rank, int *out)
{
    int r[EW_MAX_RANK];
    for (int i = 0; i < rank; i++)
        r[i] = a[b[i]];
    memcpy(out, r, sizeof(r));
}

void ew_tensor_permute(const struct ew_tensor *in, const int *perm, struct ew_tensor *out)
{
    const int rank = in->shape.rank;
    const size_t size = ew_dtype_size(in->dtype);
    int64_t in_stride[EW_MAX_RANK], step[EW_MAX_RANK], at[EW_MAX_RANK] = {0};
    ew_shape_strides(&in->shape, &in->shape, in_stride);
    for (int i = 0; i < rank; i++) {
        out->shape.dim[i] = in->shape.dim[perm[i]];
        step[i] = in_stride[perm[i]];
    }
    out->shape.rank = rank;
    const int64_t count = ew_tensor_count(in);
    int64_t from = 0;
    EW_ASSERT(out->data || !in->data);
    for (int64_t to = 0; to < count && in->data; to++) {
        memcpy((char *)out->data + (size_t)to * size, (const char *)in->data + (size_t)from * size,
               size);
        for (int i = rank - 1; i >= 0; i--) {
            from += step[i];
            if (++at[i] < out->shape.dim[i])
                break;
            from -= at[i] * step[i];
            at[i] = 0;
        }
    }
}

/* ---- Making values of the new graph ---- */

static bool is_constant(const struct layout_pass *s, int value)
{
    return ew_value_is_weight(&s->new->values[value]);
}

static ew_err permute_constant(struct layout_pass *s, int from, const int *perm, int *out)
{
    const struct ew_value v = s->new->values[from];
    struct ew_tensor t = v.t;
    if (v.t.data) {
        t.data = ew_arena_alloc(&s->new->arena, ew_tensor_bytes(&v.t));
        EW_CHECK(t.data, EW_ERR_MEMORY, "%s: no memory to permute it", v.name);
    }
    ew_tensor_permute(&v.t, perm, &t);
    EW_TRY(ew_graph_const(s->new, v.name, v.kind, &t, false, out));
    s->new->values[*out].frozen = v.frozen;
    /* Weights are found by name, and the original usually has no readers left. */
    return ew_graph_claim_name(s->new, *out, v.name);
}

/* True for the output of a NO_FOLD node (dequantize_linear) of constants: quantised weights, which
 * are permuted as integers. */
static bool is_dequantised(const struct layout_pass *s, int value)
{
    const int from = s->new->values[value].producer;
    if (from < 0)
        return false;
    const struct ew_node *n = &s->new->nodes[from];
    for (int i = 0; i < n->n_in; i++)
        if (n->in[i] >= 0 && !is_constant(s, n->in[i]))
            return false;
    return (n->op->flags & EW_OP_NO_FOLD) && n->op->permute;
}

static ew_err materialise(struct layout_pass *s, int from, int rank, const int *perm, int *out);

/* Adds the same node on a permuted constant; the original is left to the final sweep. */
static ew_err permute_dequantised(struct layout_pass *s, int from, const int *perm, int *out)
{
    struct ew_node n = s->new->nodes[s->new->values[from].producer];
    int in[EW_MAX_RANK], out_perm[EW_MAX_RANK];
    const int rank = s->new->values[from].t.shape.rank;
    memcpy(in, n.in, (size_t)n.n_in * sizeof(int));
    memcpy(out_perm, perm, sizeof(out_perm));
    n.in = in;
    s->leaves_dead = true;
    EW_TRY(ew_graph_add_node(s->new, &n, out));
    const int node = s->new->n_nodes - 1;
    EW_TRY(n.op->permute(s->new, node, perm, out_perm));
    for (int i = 0; i < n.n_in; i++) { /* scales and zero points of blocks are permuted too */
        if (in[i] >= 0 && s->new->values[in[i]].t.shape.rank == rank)
            EW_TRY(materialise(s, in[i], rank, perm, &in[i]));
        s->new->nodes[node].in[i] = in[i];
    }
    return ew_graph_infer_node(s->new, node);
}

static ew_err add_permuted(struct layout_pass *s, int from, const int *perm, int to)
{
    const int cap = s->cap_first;
    EW_TRY(ew_grow((void **)&s->first_permuted, &s->cap_first, s->new->n_values, sizeof(int)));
    for (int i = cap; i < s->cap_first; i++)
        s->first_permuted[i] = -1;
    EW_TRY(
        ew_grow((void **)&s->permuted, &s->cap_permuted, s->n_permuted + 1, sizeof(*s->permuted)));
    struct permuted m = {.from = from, .to = to, .next = s->first_permuted[from]};
    memcpy(m.perm, perm, sizeof(m.perm));
    s->first_permuted[from] = s->n_permuted;
    s->permuted[s->n_permuted++] = m;
    return EW_OK;
}

/* The value that is `from` permuted by `perm`, if it has been made; -1: none. */
static int find_permuted(const struct layout_pass *s, int from, int rank, const int *perm)
{
    for (int m = from < s->cap_first ? s->first_permuted[from] : -1; m >= 0;
         m = s->permuted[m].next)
        if (memcmp(s->permuted[m].perm, perm, (size_t)rank * sizeof(int)) == 0)
            return s->permuted[m].to;
    return -1;
}

/* Materialises the view `perm` of value `from`. */
static ew_err materialise(struct layout_pass *s, int from, int rank, const int *perm, int *out)
{
    if (is_identity(perm, rank)) {
        *out = from;
        return EW_OK;
    }
    *out = find_permuted(s, from, rank, perm);
    if (*out >= 0)
        return EW_OK;
    if (is_constant(s, from)) {
        EW_TRY(permute_constant(s, from, perm, out));
    } else if (is_dequantised(s, from)) {
        EW_TRY(permute_dequantised(s, from, perm, out));
    } else {
        struct ew_transpose_attr attr = {.perm = {.n = rank}};
        for (int i = 0; i < rank; i++)
            attr.perm.v[i] = perm[i];
        EW_TRY(ew_graph_add(s->new, &ew_op_transpose, NULL, &attr, EW_INPUTS(from), out));
    }
    return add_permuted(s, from, perm, *out);
}

/* The view of an old value; copies constants into the new graph at first use. */
static ew_err view_of(struct layout_pass *s, int old, struct view *out)
{
    struct view *l = &s->views[old];
    if (l->value < 0) {
        const struct ew_value *v = &s->old->values[old];
        EW_TRY(ew_graph_const(s->new, v->name, v->kind, &v->t, false, &l->value));
        s->new->values[l->value].frozen = v->frozen;
        l->rank = v->t.shape.rank;
        for (int i = 0; i < EW_MAX_RANK; i++)
            l->perm[i] = i;
    }
    *out = *l;
    return EW_OK;
}

/* Materialises an old value, permuted by `perm` if not NULL. */
static ew_err get_value(struct layout_pass *s, int old, const int *perm, int *out)
{
    struct view l;
    EW_TRY(view_of(s, old, &l));
    if (perm)
        compose(l.perm, perm, l.rank, l.perm);
    return materialise(s, l.value, l.rank, l.perm, out);
}

static void set_view(struct layout_pass *s, int old, int value, const int *perm)
{
    struct view *l = &s->views[old];
    l->value = value;
    l->rank = s->new->values[value].t.shape.rank;
    for (int i = 0; i < EW_MAX_RANK; i++)
        l->perm[i] = perm && i < l->rank ? perm[i] : i;
}

/* Room for the views of values that were added to the old graph. */
static ew_err grow_views(struct layout_pass *s)
{
    EW_TRY(ew_grow((void **)&s->views, &s->cap_views, s->old->n_values, sizeof(*s->views)));
    for (; s->n_views < s->old->n_values; s->n_views++)
        s->views[s->n_views] = (struct view){.value = -1};
    return EW_OK;
}

/* ---- Copying nodes ---- */

/* Copies a node, with inputs `in`, to the new graph.  Outputs of rank `rank` are views through
 * `perm` (NULL: plain). */
static ew_err emit(struct layout_pass *s, const struct ew_node *n, const int *in, const int *perm,
                   int rank)
{
    EW_CLEANUP(ew_free_ptr) int *in_copy = calloc((size_t)n->n_in + 1, sizeof(int));
    EW_CLEANUP(ew_free_ptr) int *out = calloc((size_t)n->n_out + 1, sizeof(int));
    EW_CHECK(in_copy && out, EW_ERR_MEMORY, "%s: no memory", n->name);
    memcpy(in_copy, in, (size_t)n->n_in * sizeof(int));
    struct ew_node copy = *n;
    copy.in = in_copy;
    EW_TRY(ew_graph_add_node(s->new, &copy, out));
    for (int i = 0; i < n->n_out; i++) {
        if (n->out[i] < 0)
            continue;
        const bool permuted = perm && s->new->values[out[i]].t.shape.rank == rank;
        set_view(s, n->out[i], out[i], permuted ? perm : NULL);
        EW_TRY(ew_graph_rename(s->new, out[i], s->old->values[n->out[i]].name));
    }
    return EW_OK;
}

static ew_err copy_plain(struct layout_pass *s, const struct ew_node *n, int *in)
{
    for (int i = 0; i < n->n_in; i++) {
        in[i] = -1;
        if (n->in[i] >= 0)
            EW_TRY(get_value(s, n->in[i], NULL, &in[i]));
    }
    return emit(s, n, in, NULL, 0);
}

/* Frees the data of a weight that only the current node uses and whose permuted copy is `made`, so
 * that weights are not in memory twice. */
static void release_original(struct layout_pass *s, int old, int made)
{
    struct ew_value *v = &s->old->values[old];
    const int first = s->views[old].value;
    const size_t bytes = ew_tensor_bytes(&v->t);
    if (!v->t.data || !ew_value_is_weight(v) || made == first || !is_constant(s, made) ||
        old >= s->n_uses || s->uses[old] != 1 ||
        !ew_arena_is_alone(&s->old->arena, v->t.data, bytes))
        return;
    for (int i = 0; i < s->old->n_values; i++)
        if (i != old && s->old->values[i].t.data == v->t.data)
            return;
    if (ew_arena_release(&s->old->arena, v->t.data, bytes))
        v->t.data = s->new->values[first].t.data = NULL;
}

static ew_err copy_spatial(struct layout_pass *s, const struct ew_node *n, int *in)
{
    const int rank = s->old->values[n->in[0]].t.shape.rank;
    int perm[EW_MAX_RANK], back[EW_MAX_RANK];
    for (int i = 0; i < n->n_in; i++) {
        in[i] = -1;
        if (n->in[i] < 0)
            continue;
        const bool moves = i == 0 || (i < 32 && ((n->op->spatial_in | n->op->filter_in) >> i & 1));
        channel_perm(s->old->values[n->in[i]].t.shape.rank, s->to_last, perm);
        EW_TRY(get_value(s, n->in[i], moves ? perm : NULL, &in[i]));
        if (i > 0 && moves && s->to_last)
            release_original(s, n->in[i], in[i]);
    }
    struct ew_node moved = *n;
    moved.channels_first = !s->to_last;
    channel_perm(rank, !s->to_last, back);
    return emit(s, &moved, in, back, rank);
}

/* True for lists such as pads and axes, which permute hooks rewrite. */
static bool is_list_input(const struct ew_node *n, int i)
{
    return i < 32 && (n->op->known_in >> i & 1) && !(n->op->flags & EW_OP_ELEMENTWISE);
}

/* True if the node can read the value through `perm` without a new transpose. */
static bool is_readable(const struct layout_pass *s, const struct view *l, const int *perm)
{
    int seen[EW_MAX_RANK];
    inverse(perm, l->rank, seen);
    compose(l->perm, seen, l->rank, seen);
    return is_identity(seen, l->rank) ||
           (l->value >= 0 && find_permuted(s, l->value, l->rank, seen) >= 0);
}

/* Number of transposes that the node's inputs of full rank need to be read through `perm`; -1:
 * impossible. */
static int transposes_needed(struct layout_pass *s, const struct ew_node *n, int rank,
                             const int *perm)
{
    int transposes = 0;
    for (int i = 0; i < n->n_in; i++) {
        if (n->in[i] < 0)
            continue;
        const struct ew_value *v = &s->old->values[n->in[i]];
        const bool constant = v->kind == EW_VALUE_CONST || v->kind == EW_VALUE_PARAM;
        if (constant || ew_tensor_count(&v->t) == 1 || is_list_input(n, i))
            continue;
        if (v->t.shape.rank != rank)
            return is_identity(perm, rank) ? transposes : -1;
        transposes += !is_readable(s, &s->views[n->in[i]], perm);
    }
    return transposes;
}

/* Sets `perm` to the permutation of the first permuted input of full rank; true if propagating it
 * costs no more transposes than undoing it. */
static bool should_propagate(struct layout_pass *s, const struct ew_node *n, int rank, int *perm)
{
    int identity[EW_MAX_RANK];
    for (int i = 0; i < EW_MAX_RANK; i++)
        identity[i] = i;
    for (int i = 0; i < n->n_in; i++) {
        if (n->in[i] < 0)
            continue;
        const struct view *l = &s->views[n->in[i]];
        if (l->value < 0 || l->rank != rank || is_identity(l->perm, rank))
            continue;
        memcpy(perm, l->perm, sizeof(l->perm));
        const int cost = transposes_needed(s, n, rank, perm);
        return cost >= 0 && cost <= transposes_needed(s, n, rank, identity);
    }
    return false;
}

/* A constant (or single element) of any rank, reshaped to `rank` with leading ones, then permuted.
 */
static ew_err get_broadcast(struct layout_pass *s, int old, int rank, const int *perm, int *out)
{
    const struct ew_value *v = &s->old->values[old];
    if (v->t.shape.rank == rank)
        return get_value(s, old, perm, out);
    if (ew_tensor_count(&v->t) == 1)
        return get_value(s, old, NULL, out);
    struct view *l = &s->views[old];
    if (l->wide_rank == rank)
        return materialise(s, l->wide, rank, perm, out);
    struct ew_tensor wide = v->t;
    const int shift = rank - v->t.shape.rank;
    for (int i = 0; i < rank; i++)
        wide.shape.dim[i] = i < shift ? 1 : v->t.shape.dim[i - shift];
    wide.shape.rank = rank;
    int id;
    EW_TRY(ew_graph_const(s->new, v->name, v->kind, &wide, false, &id));
    s->new->values[id].frozen = v->frozen;
    if (!l->wide_rank) {
        l->wide = id;
        l->wide_rank = rank;
    }
    return materialise(s, id, rank, perm, out);
}

static ew_err copy_elementwise(struct layout_pass *s, const struct ew_node *n, int *in,
                               const int *perm)
{
    const int rank = s->old->values[n->out[0]].t.shape.rank;
    int back[EW_MAX_RANK];
    inverse(perm, rank, back);
    for (int i = 0; i < n->n_in; i++) {
        in[i] = -1;
        if (n->in[i] >= 0)
            EW_TRY(get_broadcast(s, n->in[i], rank, back, &in[i]));
    }
    return emit(s, n, in, perm, rank);
}

/* Copies a node with a permute hook; *done stays false if the hook declines. */
static ew_err copy_permuted(struct layout_pass *s, int node, int *in, const int *perm, bool *done)
{
    const struct ew_node *n = &s->old->nodes[node];
    const int rank = s->old->values[n->in[0]].t.shape.rank;
    int back[EW_MAX_RANK], out_back[EW_MAX_RANK], out_perm[EW_MAX_RANK];
    inverse(perm, rank, back);
    memcpy(out_back, back, sizeof(back));
    bool moves[EW_MAX_INTS * 4] = {false};
    if (n->n_in > (int)EW_COUNT(moves))
        return EW_OK;
    for (int i = 0; i < n->n_in; i++)
        moves[i] = n->in[i] >= 0 && s->old->values[n->in[i]].t.shape.rank == rank &&
                   (i >= 32 || !(n->op->known_in >> i & 1));
    const ew_err e = n->op->permute(s->old, node, back, out_back);
    if (e == EW_ERR_UNSUPPORTED)
        return EW_OK;
    EW_TRY(e);
    *done = true;
    EW_TRY(grow_views(s)); /* the hook may have added constants */
    n = &s->old->nodes[node];
    for (int i = 0; i < n->n_in; i++) {
        in[i] = -1;
        if (n->in[i] >= 0)
            EW_TRY(get_value(s, n->in[i], moves[i] ? back : NULL, &in[i]));
    }
    const int out_rank = s->old->values[n->out[0]].t.shape.rank;
    inverse(out_back, out_rank, out_perm);
    return emit(s, n, in, out_perm, out_rank);
}

/* A transpose becomes a view. */
static ew_err pass_transpose(struct layout_pass *s, const struct ew_node *n)
{
    struct view l;
    EW_TRY(view_of(s, n->in[0], &l));
    const struct ew_transpose_attr *attr = n->attr;
    int perm[EW_MAX_RANK];
    for (int i = 0; i < l.rank; i++)
        perm[i] = attr->perm.n ? (int)attr->perm.v[i] : l.rank - 1 - i;
    compose(l.perm, perm, l.rank, l.perm);
    s->views[n->out[0]] = l;
    return EW_OK;
}

static ew_err copy_node(struct layout_pass *s, int node, int *in)
{
    const struct ew_node *n = &s->old->nodes[node];
    if (n->op == &ew_op_transpose)
        return pass_transpose(s, n);
    if (n->op->flags & EW_OP_SPATIAL)
        return copy_spatial(s, n, in);
    int perm[EW_MAX_RANK];
    const int in_rank = n->n_in && n->in[0] >= 0 ? s->old->values[n->in[0]].t.shape.rank : 0;
    const int out_rank = n->out[0] >= 0 ? s->old->values[n->out[0]].t.shape.rank : 0;
    if ((n->op->flags & EW_OP_ELEMENTWISE) && should_propagate(s, n, out_rank, perm))
        return copy_elementwise(s, n, in, perm);
    if (n->op->permute && should_propagate(s, n, in_rank, perm)) {
        bool done = false;
        EW_TRY(copy_permuted(s, node, in, perm, &done));
        if (done)
            return EW_OK;
    }
    return copy_plain(s, n, in);
}

/* ---- The whole graph ---- */

static ew_err copy_input(struct layout_pass *s, int input)
{
    const struct ew_value *v = &s->old->values[input];
    struct ew_tensor moved = {.shape = v->t.shape};
    int to_first[EW_MAX_RANK], to_last[EW_MAX_RANK];
    const bool move = v->channels_last && !s->to_last;
    channel_perm(v->t.shape.rank, false, to_first);
    channel_perm(v->t.shape.rank, true, to_last);
    if (move)
        ew_tensor_permute(&v->t, to_first, &moved);
    int id;
    EW_TRY(ew_graph_input(s->new, v->name, v->t.dtype, &moved.shape, &id));
    s->new->values[id].dynamic = v->dynamic;
    s->new->values[id].channels_last = v->channels_last && !move;
    set_view(s, input, id, move ? to_last : NULL);
    return EW_OK;
}

/* An output of the same shape as the input image (an autoencoder's) is converted with it. */
static bool output_moves(const struct layout_pass *s, int output)
{
    const struct ew_value *x = s->old->n_inputs ? &s->old->values[s->old->inputs[0]] : NULL;
    return x && x->channels_last && !s->to_last &&
           ew_shape_equal(&x->t.shape, &s->old->values[output].t.shape);
}

static ew_err copy_graph(struct layout_pass *s)
{
    const struct ew_graph *old = s->old;
    int most = EW_MAX_RANK; /* room for inputs that a permute hook appends */
    for (int k = 0; k < old->n_nodes; k++)
        most = old->nodes[k].n_in > most ? old->nodes[k].n_in : most;
    EW_CLEANUP(ew_free_ptr) int *in = calloc((size_t)most, sizeof(int));
    EW_CHECK(in, EW_ERR_MEMORY, "no memory for the layout of graph %s", old->name);
    EW_TRY(grow_views(s));
    for (int i = 0; i < old->n_inputs; i++)
        EW_TRY(copy_input(s, old->inputs[i]));
    for (int k = 0; k < old->n_nodes; k++)
        EW_TRY(copy_node(s, k, in));
    for (int i = 0; i < old->n_outputs; i++) {
        int id, to_first[EW_MAX_RANK];
        const bool moves = output_moves(s, old->outputs[i]);
        if (moves)
            channel_perm(old->values[old->outputs[i]].t.shape.rank, false, to_first);
        EW_TRY(get_value(s, old->outputs[i], moves ? to_first : NULL, &id));
        if (s->new->values[id].kind == EW_VALUE_ACT)
            EW_TRY(ew_graph_claim_name(s->new, id, old->values[old->outputs[i]].name));
        EW_TRY(ew_graph_output(s->new, id));
    }
    return EW_OK;
}

static ew_err count_uses(struct layout_pass *s)
{
    const struct ew_graph *g = s->old;
    s->uses = calloc((size_t)g->n_values + 1, sizeof(*s->uses));
    EW_CHECK(s->uses, EW_ERR_MEMORY, "no memory for the layout of graph %s", g->name);
    s->n_uses = g->n_values;
    ew_graph_count_uses(g, s->uses);
    return EW_OK;
}

/* Infers at a batch of 2 where it is 1 and may change: dimensions that follow it are then not taken
 * for dimensions of size 1, which may be moved past others without moving a byte.  *batch gets the
 * batch to go back to; 0: unchanged, also if the network cannot have another one. */
static ew_err infer_at_two(struct ew_graph *g, int64_t *batch)
{
    int64_t now = 0;
    bool varies = false;
    *batch = 0;
    for (int i = 0; i < g->n_inputs; i++)
        varies |= (g->values[g->inputs[i]].dynamic & 1) != 0;
    if (!varies || ew_graph_batch(g, &now) != EW_OK || now != 1)
        return ew_graph_infer(g);
    if (ew_graph_set_batch(g, 2) != EW_OK)
        return ew_graph_set_batch(g, 1);
    *batch = 1;
    return EW_OK;
}

static ew_err relayout(struct ew_graph *g, bool to_last)
{
    int64_t batch = 0;
    struct layout_pass s = {.old = g, .to_last = to_last};
    EW_TRY(ew_graph_new(g->name, &s.new));
    ew_err e = infer_at_two(g, &batch);
    if (e == EW_OK)
        e = count_uses(&s);
    if (e == EW_OK)
        e = copy_graph(&s);
    free(s.uses);
    free(s.views);
    free(s.permuted);
    free(s.first_permuted);
    /* Constants still lie in the old graph's arena. */
    ew_arena_join(&s.new->arena, &g->arena);
    s.new->notes = g->notes;
    struct ew_graph swap = *g;
    *g = *s.new;
    *s.new = swap;
    ew_graph_free(s.new);
    EW_TRY(e);
    if (s.leaves_dead)
        EW_TRY(ew_graph_sweep(g));
    return batch ? ew_graph_set_batch(g, batch) : ew_graph_infer(g);
}

ew_err ew_graph_channels_last(struct ew_graph *g)
{
    return relayout(g, true);
}

ew_err ew_graph_channels_first(struct ew_graph *g)
{
    return relayout(g, false);
}
