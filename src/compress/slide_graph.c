/* SPDX-License-Identifier: Apache-2.0 */
/* Builds the step graph of slide_graph.h, node by node. */
#include "compress/slide_graph.h"

#include <string.h>

#include "compress/pass.h"
#include "graph/layout.h"
#include "graph/ops.h"
#include "op/conv.h"
#include "op/pooling.h"
#include "op/qlinear.h"
#include "op/shape_attr.h"
#include "op/types.h"

/* Time structure of a value.  Positions [pure, end) see no padding; [lo, hi) of them were computed
 * in an earlier window. */
struct timed {
    bool is;
    int axis;
    int64_t n, step;
    int64_t pure, end, lo, hi;
};

/* Positions [0, a) and [b, n); a = b: all. */
struct parts {
    int64_t a, b;
};

struct builder {
    const struct ew_graph *g;
    struct ew_slide_graph *out;
    struct timed *timed; /* by value of g */
    int *map;  /* by value of g: value of step (of a timed one, its new positions); -1: none yet */
    int *kept; /* by value of g; -1: none */
    int *full; /* by kept value: value of g */
    int *in, *made; /* inputs and outputs of the current node, in step */
    struct ew_tensor **slots;
};

static int64_t gcd(int64_t a, int64_t b)
{
    while (b) {
        const int64_t r = a % b;
        a = b;
        b = r;
    }
    return a;
}

/* Sets the reusable positions: those of the last window that began a multiple of `step` frames
 * earlier. */
static void find_reused(const struct builder *m, struct timed *t)
{
    const int64_t shift = m->out->hop / gcd(m->out->hop, t->step);
    t->lo = t->pure;
    t->hi = t->end - shift;
}

static bool reuses(const struct timed *t)
{
    return t->is && t->lo < t->hi;
}

static int64_t size_of(const struct timed *t, struct parts p)
{
    return p.a + t->n - p.b;
}

/* ---- Pieces of values ---- */

static ew_err slice(struct builder *m, int value, int axis, const int64_t span[2], int *out)
{
    struct ew_graph *g = m->out->step;
    int in[4];
    EW_TRY(ew_graph_const_ints(g, NULL, &span[0], 1, &in[1]));
    EW_TRY(ew_graph_const_ints(g, NULL, &span[1], 1, &in[2]));
    EW_TRY(ew_graph_const_ints(g, NULL, (const int64_t[]){axis}, 1, &in[3]));
    in[0] = value;
    return ew_graph_add(g, &ew_op_slice, "window", NULL, ew_inputs(in, 4), out);
}

static ew_err join(struct builder *m, int axis, const int *parts, int n, int *out)
{
    const struct ew_concat_attr a = {.axis = axis};
    if (n == 1) {
        *out = parts[0];
        return EW_OK;
    }
    return ew_graph_add(m->out->step, &ew_op_concat, "window", &a, ew_inputs(parts, n), out);
}

/* Adds v to the kept values; its new positions become an output. */
static ew_err keep(struct builder *m, int v, int *out)
{
    struct ew_slide_graph *s = m->out;
    const struct timed *t = &m->timed[v];
    if (m->kept[v] < 0) {
        m->full[s->n_kept] = v;
        s->kept[s->n_kept] = (struct ew_slide_kept){.frames = t->n,
                                                    .step = t->step,
                                                    .unit = gcd(s->hop, t->step),
                                                    .lo = t->lo,
                                                    .hi = t->hi,
                                                    .end = t->end,
                                                    .axis = t->axis};
        m->kept[v] = s->n_kept++;
    }
    *out = m->kept[v];
    return EW_OK;
}

static ew_err band(struct builder *m, int v, int64_t first, int64_t count, int *out)
{
    struct ew_slide_graph *s = m->out;
    const struct ew_tensor *t = &m->g->values[v].t;
    struct ew_shape shape = t->shape;
    int kept;
    EW_TRY(keep(m, v, &kept));
    shape.dim[m->timed[v].axis] = count;
    s->bands[s->n_bands++] = (struct ew_slide_band){
        .kept = kept, .input = s->step->n_inputs, .first = first, .count = count};
    return ew_graph_input(s->step, m->g->values[v].name, t->dtype, &shape, out);
}

/* v at the positions of p, which include its new ones; the others come from a band. */
static ew_err widen(struct builder *m, int v, struct parts p, int *out)
{
    const struct timed *t = &m->timed[v];
    int parts[4], n = 0;
    if (p.a == t->lo && p.b == t->hi) {
        *out = m->map[v];
        return EW_OK;
    }
    if (t->lo > 0)
        EW_TRY(slice(m, m->map[v], t->axis, (const int64_t[]){0, t->lo}, &parts[n++]));
    if (p.a == p.b) {
        EW_TRY(band(m, v, t->lo, t->hi - t->lo, &parts[n++]));
    } else {
        if (p.a > t->lo)
            EW_TRY(band(m, v, t->lo, p.a - t->lo, &parts[n++]));
        if (p.b < t->hi)
            EW_TRY(band(m, v, p.b, t->hi - p.b, &parts[n++]));
    }
    const int64_t rest[2] = {t->lo, size_of(t, (struct parts){t->lo, t->hi})};
    if (t->lo > 0)
        EW_TRY(slice(m, m->map[v], t->axis, rest, &parts[n++]));
    else
        parts[n++] = m->map[v];
    return join(m, t->axis, parts, n, out);
}

/* ---- Nodes ---- */

/* Sets m->in from `first` on; timed inputs at the positions of p, or whole (NULL). */
static ew_err gather_inputs(struct builder *m, const struct ew_node *n, int first,
                            const struct parts *p)
{
    for (int i = first; i < n->n_in; i++) {
        const int v = n->in[i];
        m->in[i] = v < 0 ? -1 : m->map[v];
        const struct parts whole = {v < 0 ? 0 : m->timed[v].n, v < 0 ? 0 : m->timed[v].n};
        if (v >= 0 && m->timed[v].is)
            EW_TRY(widen(m, v, p ? *p : whole, &m->in[i]));
    }
    return EW_OK;
}

/* Copies the node, from m->in to m->made. */
static ew_err copy_node(struct builder *m, const struct ew_node *n)
{
    struct ew_node copy = *n;
    copy.in = m->in;
    return ew_graph_add_node(m->out->step, &copy, m->made);
}

/* Copies a node without time structure: whole inputs. */
static ew_err add_whole(struct builder *m, const struct ew_node *n)
{
    EW_TRY(gather_inputs(m, n, 0, NULL));
    EW_TRY(copy_node(m, n));
    for (int i = 0; i < n->n_out; i++)
        if (n->out[i] >= 0)
            m->map[n->out[i]] = m->made[i];
    return EW_OK;
}

static void note_output(struct builder *m, const struct ew_node *n, const struct timed *t,
                        int value)
{
    m->timed[n->out[0]] = *t;
    m->map[n->out[0]] = value;
}

/* ---- Windows in time ---- */

static bool window_of(const struct builder *m, const struct ew_node *n, struct ew_window *out)
{
    const struct ew_shape *x = &m->g->values[n->in[0]].t.shape;
    const int w = n->op == &ew_op_conv ? 1 : n->op == &ew_op_qlinear_conv ? EW_QCONV_W : -1;
    struct ew_conv_sizes sizes;
    if (x->rank != 5)
        return false;
    if (w >= 0) {
        const struct ew_conv_attr *a = n->attr; /* pooling attributes begin with the same struct */
        const bool is = ew_conv_geometry(&a->win, a->groups, x, &m->g->values[n->in[w]].t.shape,
                                         &sizes) == EW_OK;
        *out = sizes.w;
        return is;
    }
    if (n->op != &ew_op_max_pool && n->op != &ew_op_average_pool)
        return false;
    struct ew_call c;
    ew_graph_call(m->g, n, m->slots, &c);
    return n->n_out == 1 && ew_pool_resolve(&c, out) == EW_OK && !out->adaptive;
}

static int64_t div_up(int64_t a, int64_t b)
{
    return a > 0 ? (a + b - 1) / b : 0;
}

/* The output's time structure, and the input positions that its new ones read; false if these are
 * all. */
static bool cut_window(const struct builder *m, const struct timed *x, const struct ew_window *w,
                       struct timed *y, struct parts *reads)
{
    const int64_t stride = w->stride[0], reach = (w->kernel[0] - 1) * w->dilation[0] + 1;
    *y = (struct timed){.is = true, .axis = x->axis, .n = w->out[0], .step = x->step * stride};
    y->pure = div_up(x->pure + w->pad[0], stride);
    const int64_t last = x->end - reach + w->pad[0];
    y->end = last < 0 ? 0 : last / stride + 1;
    find_reused(m, y);
    if (!reuses(y) || w->pad[0] < 0)
        return false;
    reads->a = y->lo > 0 ? (y->lo - 1) * stride - w->pad[0] + reach : 0;
    reads->b = y->hi * stride - w->pad[0];
    reads->a = reads->a > x->lo ? reads->a : x->lo;
    reads->b = reads->b < x->hi ? reads->b : x->hi;
    while (reads->a < reads->b && (reads->b - reads->a) % stride)
        reads->a++; /* keeps both sides aligned to the stride */
    return reads->a < reads->b;
}

static bool is_constant(const struct builder *m, int v)
{
    return ew_value_is_weight(&m->g->values[v]);
}

/* True if t covers the positions p of y. */
static bool holds(const struct timed *t, const struct timed *y, struct parts p)
{
    return t->is && t->axis == y->axis && t->n == y->n && t->step == y->step && t->lo <= p.a &&
           t->hi >= p.b;
}

/* Runs the operator over both sides, concatenated, and drops the outputs at the seam. */
static ew_err add_window(struct builder *m, const struct ew_node *n, const struct ew_window *w)
{
    const struct timed *x = &m->timed[n->in[0]];
    struct timed y;
    struct parts reads;
    bool fits = x->is && x->axis == 1 && cut_window(m, x, w, &y, &reads);
    const int64_t left_out = fits ? (reads.b - reads.a) / w->stride[0] : 0;
    const struct parts made = {fits ? y.hi - left_out : 0, fits ? y.hi : 0};
    for (int i = 1; fits && i < n->n_in; i++) /* the residual */
        fits = n->in[i] < 0 || is_constant(m, n->in[i]) || holds(&m->timed[n->in[i]], &y, made);
    if (!fits || made.a < y.lo)
        return add_whole(m, n);
    int sides[2];
    EW_TRY(gather_inputs(m, n, 1, &made));
    EW_TRY(widen(m, n->in[0], reads, &m->in[0]));
    EW_TRY(copy_node(m, n));
    int out = m->made[0];
    const int64_t size = size_of(&y, made);
    EW_CHECK(m->out->step->values[out].t.shape.dim[1] == size, EW_ERR_INTERNAL,
             "%s: %lld positions instead of %lld", n->name,
             (long long)m->out->step->values[out].t.shape.dim[1], (long long)size);
    if (made.a > y.lo) {
        int k = 0;
        if (y.lo > 0)
            EW_TRY(slice(m, out, 1, (const int64_t[]){0, y.lo}, &sides[k++]));
        EW_TRY(slice(m, out, 1, (const int64_t[]){made.a, size}, &sides[k++]));
        EW_TRY(join(m, 1, sides, k, &out));
    }
    note_output(m, n, &y, out);
    return EW_OK;
}

/* ---- Framewise operators ---- */

static bool is_framewise(const struct ew_node *n)
{
    static const struct ew_op *const ops[] = {
        &ew_op_batch_norm,        &ew_op_leaky_relu,  &ew_op_quantize_linear,
        &ew_op_dequantize_linear, &ew_op_qlinear_add, &ew_op_lookup,
        &ew_op_transpose,         &ew_op_concat,      &ew_op_channel_shuffle};
    for (size_t i = 0; i < EW_COUNT(ops); i++)
        if (n->op == ops[i])
            return n->n_out == 1;
    return n->op->flags & EW_OP_ELEMENTWISE && n->n_out == 1;
}

/* True if an input without time structure broadcasts over all positions. */
static bool repeats(const struct builder *m, const struct timed *y, int rank, int v)
{
    const struct ew_shape *s = &m->g->values[v].t.shape;
    const int at = y->axis - (rank - s->rank);
    return at < 0 || s->dim[at] == 1;
}

static ew_err add_framewise(struct builder *m, const struct ew_node *n)
{
    struct timed y = {0};
    bool fits = true;
    const int rank = m->g->values[n->out[0]].t.shape.rank;
    for (int i = 0; i < n->n_in; i++) {
        const struct timed *t = n->in[i] < 0 ? NULL : &m->timed[n->in[i]];
        if (!t || !t->is)
            continue;
        fits = fits && m->g->values[n->in[i]].t.shape.rank == rank &&
               (!y.is || (t->axis == y.axis && t->n == y.n && t->step == y.step));
        y = (struct timed){.is = true,
                           .axis = t->axis,
                           .n = t->n,
                           .step = t->step,
                           .pure = ew_max_i64(y.pure, t->pure),
                           .end = y.is ? ew_min_i64(y.end, t->end) : t->end};
    }
    find_reused(m, &y);
    for (int i = 0; fits && i < n->n_in; i++)
        fits = n->in[i] < 0 || m->timed[n->in[i]].is || repeats(m, &y, rank, n->in[i]);
    if (n->op == &ew_op_concat) {
        const int64_t axis = ((const struct ew_concat_attr *)n->attr)->axis;
        fits = fits && (axis < 0 ? axis + rank : axis) != y.axis;
    }
    if (!fits || !reuses(&y))
        return add_whole(m, n);
    EW_TRY(gather_inputs(m, n, 0, &(struct parts){y.lo, y.hi}));
    EW_TRY(copy_node(m, n));
    if (n->op == &ew_op_transpose) {
        const struct ew_ints *perm = &((const struct ew_transpose_attr *)n->attr)->perm;
        for (int i = 0; i < rank; i++)
            if ((perm->n ? perm->v[i] : rank - 1 - i) == m->timed[n->in[0]].axis)
                y.axis = i;
    }
    note_output(m, n, &y, m->made[0]);
    return EW_OK;
}

static ew_err add_node(struct builder *m, const struct ew_node *n)
{
    struct ew_window w;
    bool timed = false;
    for (int i = 0; i < n->n_in; i++)
        timed = timed || (n->in[i] >= 0 && m->timed[n->in[i]].is);
    if (!timed)
        return add_whole(m, n);
    if (n->in[0] >= 0 && window_of(m, n, &w))
        return add_window(m, n, &w);
    return is_framewise(n) ? add_framewise(m, n) : add_whole(m, n);
}

/* ---- The graphs ---- */

static ew_err add_values(struct builder *m)
{
    struct ew_graph *to = m->out->step;
    const struct ew_graph *g = m->g;
    const int x = g->inputs[0];
    struct ew_shape shape = g->values[x].t.shape;
    struct timed *t = &m->timed[x];
    *t = (struct timed){
        .is = true, .axis = m->out->axis, .n = m->out->frames, .step = 1, .end = m->out->frames};
    find_reused(m, t);
    shape.dim[m->out->axis] = m->out->hop;
    EW_TRY(ew_graph_input(to, g->values[x].name, g->values[x].t.dtype, &shape, &m->map[x]));
    to->values[m->map[x]].channels_last = g->values[x].channels_last;
    for (int v = 0; v < g->n_values; v++) {
        const struct ew_value *a = &g->values[v];
        if (ew_value_is_weight(a))
            EW_TRY(ew_graph_const(to, a->name, a->kind, &a->t, false, &m->map[v]));
    }
    return EW_OK;
}

/* Sets the outputs of both graphs: the network's, then the kept values. */
static ew_err add_outputs(struct builder *m)
{
    struct ew_slide_graph *s = m->out;
    for (int i = 0; i < m->g->n_outputs; i++) {
        const int v = m->g->outputs[i];
        int out = m->map[v];
        if (m->timed[v].is)
            EW_TRY(widen(m, v, (struct parts){m->timed[v].n, m->timed[v].n}, &out));
        EW_TRY(ew_graph_output(s->step, out));
    }
    for (int i = 0; i < s->n_kept; i++) {
        s->kept[i].part = s->step->n_outputs;
        s->kept[i].full = s->full->n_outputs;
        EW_TRY(ew_graph_output(s->step, m->map[m->full[i]]));
        EW_TRY(ew_graph_output(s->full, m->full[i]));
    }
    return EW_OK;
}

static ew_err make(struct builder *m)
{
    struct ew_slide_graph *s = m->out;
    const struct ew_graph *g = m->g;
    EW_TRY(ew_graph_new(g->name, &s->step));
    EW_TRY(add_values(m));
    for (int i = 0; i < g->n_nodes; i++)
        EW_TRY(add_node(m, &g->nodes[i]));
    EW_TRY(add_outputs(m));
    EW_TRY(ew_graph_infer(s->step));
    return ew_graph_infer(s->full);
}

static ew_err allocate(struct builder *m)
{
    struct ew_slide_graph *s = m->out;
    const size_t n = (size_t)m->g->n_values;
    m->timed = ew_arena_array(&s->arena, n, sizeof(*m->timed));
    m->map = ew_arena_array(&s->arena, n, sizeof(*m->map));
    m->kept = ew_arena_array(&s->arena, n, sizeof(*m->kept));
    m->full = ew_arena_array(&s->arena, n, sizeof(*m->full));
    s->kept = ew_arena_array(&s->arena, n, sizeof(*s->kept));
    /* a reader makes at most two bands of a value */
    size_t reads = (size_t)m->g->n_outputs, most = 1;
    for (int i = 0; i < m->g->n_nodes; i++) {
        const struct ew_node *node = &m->g->nodes[i];
        reads += (size_t)node->n_in;
        if ((size_t)(node->n_in + node->n_out) > most)
            most = (size_t)(node->n_in + node->n_out);
    }
    m->in = ew_arena_array(&s->arena, most, sizeof(*m->in));
    m->made = ew_arena_array(&s->arena, most, sizeof(*m->made));
    m->slots = ew_arena_array(&s->arena, most, sizeof(struct ew_tensor *));
    s->bands = ew_arena_array(&s->arena, 2 * reads, sizeof(*s->bands));
    EW_CHECK(m->timed && m->map && m->kept && m->full && s->kept && s->bands && m->in && m->made &&
                 m->slots,
             EW_ERR_MEMORY, "no memory for a sliding window");
    memset(m->timed, 0, n * sizeof(*m->timed));
    for (size_t i = 0; i < n; i++)
        m->map[i] = m->kept[i] = -1;
    return EW_OK;
}

ew_err ew_slide_graph_new(const struct ew_graph *g, int64_t hop, bool optimize,
                          struct ew_slide_graph *out)
{
    *out = (struct ew_slide_graph){.hop = hop};
    ew_arena_init(&out->arena);
    EW_TRY(ew_graph_clone(g, &out->full));
    if (optimize)
        EW_TRY(ew_pass_all(out->full));
    EW_TRY(ew_graph_infer(out->full));
    const struct ew_value *x = &out->full->values[out->full->inputs[0]];
    EW_CHECK(out->full->n_inputs == 1 && x->t.shape.rank == 5 && x->t.shape.dim[0] == 1,
             EW_ERR_USAGE, "%s: takes no clips, one at a time", g->name);
    out->axis = x->channels_last ? 1 : 2;
    out->frames = x->t.shape.dim[out->axis];
    EW_CHECK(hop > 0, EW_ERR_ARG, "a window moves by %lld frames", (long long)hop);
    if (hop >= out->frames)
        return EW_OK;
    struct builder m = {.g = out->full, .out = out};
    EW_TRY(allocate(&m));
    EW_TRY(make(&m));
    if (out->n_kept == 0) {
        ew_graph_free(out->step);
        out->step = NULL;
    }
    return EW_OK;
}

void ew_slide_graph_free(struct ew_slide_graph *s)
{
    ew_graph_free(s->step);
    ew_graph_free(s->full);
    ew_arena_fini(&s->arena);
    *s = (struct ew_slide_graph){0};
}
