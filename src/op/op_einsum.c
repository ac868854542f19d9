/* SPDX-License-Identifier: Apache-2.0 */
/* Einsum: sums of products over named axes ("bij,bjk->bik"), for any number of tensors, by plain
 * loops over all axes.  Files' products of two stacks of matrices become MatMul, which is fast. */
#include <ctype.h>
#include <string.h>

#include "graph/graph.h"
#include "graph/layout.h"
#include "graph/onnx.h"
#include "graph/ops.h"
#include "op/types.h"

#define MAX_TENSORS 8
#define LETTERS     52
#define LABELS      (LETTERS + EW_MAX_RANK) /* axes of an ellipsis have labels too */
#define MAX_LOOPS   16

struct attr {
    const char *equation;
};

static const struct ew_field attrs[] = {{.name = "equation",
                                         .type = EW_FIELD_STR,
                                         .offset = offsetof(struct attr, equation),
                                         .help = "axes of the inputs and the output, by letter"},
                                        EW_FIELD_END};

/* ---- The equation ---- */

struct term {
    int n;
    int label[EW_MAX_RANK];
};

struct equation {
    int n_in;
    struct term in[MAX_TENSORS], out;
    int64_t dim[LABELS]; /* -1: not used */
    int uses[LABELS];
    int ellipsis; /* most axes of an ellipsis */
};

static int letter_label(char c)
{
    return c >= 'a' ? c - 'a' + LETTERS / 2 : c - 'A';
}

static ew_err push(struct term *t, int label)
{
    EW_CHECK(t->n < EW_MAX_RANK, EW_ERR_LIMIT, "a term of the equation has more than %d axes",
             EW_MAX_RANK);
    t->label[t->n++] = label;
    return EW_OK;
}

/* Reads a term up to `end`; an ellipsis stands for `dots` axes, aligned at their last. */
static ew_err read_term(const char *p, const char *end, int dots, struct term *out)
{
    bool seen = false;
    *out = (struct term){0};
    for (; p < end; p++) {
        if (*p == ' ')
            continue;
        if (end - p >= 3 && strncmp(p, "...", 3) == 0) {
            EW_CHECK(!seen, EW_ERR_ARG, "a term of the equation has two ellipses");
            seen = true;
            p += 2;
            for (int i = 0; i < dots; i++)
                EW_TRY(push(out, LABELS - dots + i));
            continue;
        }
        EW_CHECK(isalpha((unsigned char)*p), EW_ERR_ARG, "the equation has '%c' in a term", *p);
        EW_TRY(push(out, letter_label(*p)));
    }
    return EW_OK;
}

/* Letters of a term, and whether it has an ellipsis. */
static int count_letters(const char *p, const char *end, bool *dots)
{
    int n = 0;
    *dots = false;
    for (; p < end; p++) {
        n += isalpha((unsigned char)*p) != 0;
        *dots |= *p == '.';
    }
    return n;
}

static ew_err note_dims(struct equation *e, const struct term *t, const struct ew_shape *s)
{
    for (int i = 0; i < t->n; i++) {
        int64_t *d = &e->dim[t->label[i]];
        EW_CHECK(*d <= 1 || s->dim[i] == 1 || *d == s->dim[i], EW_ERR_SHAPE,
                 "an axis of the equation has %lld and %lld elements", (long long)*d,
                 (long long)s->dim[i]);
        *d = *d < 0 || *d == 1 ? s->dim[i] : *d;
        e->uses[t->label[i]]++;
    }
    return EW_OK;
}

static ew_err read_inputs(const struct ew_call *c, const char *p, const char *end,
                          struct equation *e)
{
    for (e->n_in = 0; e->n_in < c->n_in; e->n_in++) {
        const char *comma = memchr(p, ',', (size_t)(end - p));
        const char *stop = comma ? comma : end;
        const struct ew_shape *s = &c->in[e->n_in]->shape;
        bool dots;
        const int letters = count_letters(p, stop, &dots);
        const int rest = s->rank - letters;
        EW_CHECK(rest == 0 || (dots && rest > 0), EW_ERR_SHAPE,
                 "input %d has %d axes, the equation names %d", e->n_in, s->rank, letters);
        EW_TRY(read_term(p, stop, rest, &e->in[e->n_in]));
        EW_TRY(note_dims(e, &e->in[e->n_in], s));
        e->ellipsis = rest > e->ellipsis ? rest : e->ellipsis;
        EW_CHECK((comma != NULL) == (e->n_in + 1 < c->n_in), EW_ERR_ARG,
                 "the equation does not have %d inputs", c->n_in);
        p = comma ? comma + 1 : end;
    }
    return EW_OK;
}

/* Without an arrow: the ellipsis, then the letters that are used once, in order. */
static ew_err implied_output(struct equation *e)
{
    for (int i = LABELS - e->ellipsis; i < LABELS; i++)
        EW_TRY(push(&e->out, i));
    for (int i = 0; i < LETTERS; i++)
        if (e->uses[i] == 1)
            EW_TRY(push(&e->out, i));
    return EW_OK;
}

static ew_err read_equation(const struct ew_call *c, struct equation *e)
{
    const struct attr *a = c->attr;
    EW_CHECK(a->equation, EW_ERR_ARG, "has no equation");
    EW_CHECK(c->n_in <= MAX_TENSORS, EW_ERR_LIMIT, "%d inputs, at most %d are supported", c->n_in,
             MAX_TENSORS);
    *e = (struct equation){0};
    for (int i = 0; i < LABELS; i++)
        e->dim[i] = -1;
    const char *arrow = strstr(a->equation, "->");
    EW_TRY(read_inputs(c, a->equation, arrow ? arrow : a->equation + strlen(a->equation), e));
    if (!arrow)
        return implied_output(e);
    EW_TRY(read_term(arrow + 2, arrow + strlen(arrow), e->ellipsis, &e->out));
    for (int i = 0; i < e->out.n; i++) {
        EW_CHECK(e->dim[e->out.label[i]] >= 0, EW_ERR_ARG,
                 "axis %d of the output is in no input of the equation", i);
        for (int k = 0; k < i; k++)
            EW_CHECK(e->out.label[k] != e->out.label[i], EW_ERR_ARG,
                     "the output of the equation has an axis twice");
    }
    return EW_OK;
}

/* ---- The loops ---- */

/* Axes of the output first, then those that are summed over. */
struct loops {
    int n, n_in;
    int64_t dim[MAX_LOOPS], at[MAX_LOOPS];
    int64_t stride[MAX_TENSORS][MAX_LOOPS];
    int64_t pos[MAX_TENSORS];
    int64_t outer, inner; /* elements of the output, and terms of each sum */
};

static ew_err add_loop(const struct equation *e, int label, struct loops *l)
{
    EW_CHECK(l->n < MAX_LOOPS, EW_ERR_LIMIT, "the equation has more than %d axes", MAX_LOOPS);
    l->dim[l->n++] = e->dim[label];
    return EW_OK;
}

/* Strides of an input: those of an axis that occurs twice add up; broadcast axes have 0. */
static void set_strides(const struct ew_shape *s, const struct term *t, const int *loop,
                        int64_t *stride)
{
    int64_t step = 1;
    for (int k = t->n - 1; k >= 0; k--) {
        stride[loop[t->label[k]]] += s->dim[k] == 1 ? 0 : step;
        step *= s->dim[k];
    }
}

static ew_err make_loops(const struct ew_call *c, const struct equation *e, struct loops *l)
{
    int loop[LABELS];
    for (int i = 0; i < LABELS; i++)
        loop[i] = -1;
    *l = (struct loops){.n_in = e->n_in, .outer = 1, .inner = 1};
    for (int i = 0; i < e->out.n; i++) {
        loop[e->out.label[i]] = l->n;
        EW_TRY(add_loop(e, e->out.label[i], l));
        EW_CHECK(!__builtin_mul_overflow(l->outer, e->dim[e->out.label[i]], &l->outer),
                 EW_ERR_LIMIT, "the output would have too many elements");
    }
    for (int i = 0; i < LABELS; i++) {
        if (e->dim[i] < 0 || loop[i] >= 0)
            continue;
        loop[i] = l->n;
        EW_TRY(add_loop(e, i, l));
        EW_CHECK(!__builtin_mul_overflow(l->inner, e->dim[i], &l->inner), EW_ERR_LIMIT,
                 "the equation sums over too many elements");
    }
    for (int i = 0; i < e->n_in; i++)
        set_strides(&c->in[i]->shape, &e->in[i], loop, l->stride[i]);
    return EW_OK;
}

static void next(struct loops *l)
{
    for (int i = l->n - 1; i >= 0; i--) {
        const bool carry = ++l->at[i] >= l->dim[i];
        for (int t = 0; t < l->n_in; t++)
            l->pos[t] += carry ? (1 - l->at[i]) * l->stride[t][i] : l->stride[t][i];
        if (!carry)
            return;
        l->at[i] = 0;
    }
}

static ew_err prepare(const struct ew_call *c, struct equation *e, struct loops *l)
{
    EW_TRY(read_equation(c, e));
    return make_loops(c, e, l);
}

static ew_err infer(const struct ew_call *c)
{
    struct equation e;
    struct loops l;
    EW_TRY(ew_types_check(c, 0, EW_TYPES_NUMBER));
    for (int i = 1; i < c->n_in; i++) {
        EW_CHECK(c->in[i], EW_ERR_ARG, "input %d is missing", i);
        EW_TRY(ew_types_same(c, i));
    }
    EW_TRY(prepare(c, &e, &l));
    c->out[0]->shape.rank = e.out.n;
    for (int i = 0; i < e.out.n; i++)
        c->out[0]->shape.dim[i] = e.dim[e.out.label[i]];
    return EW_OK;
}

static void cost(const struct ew_call *c, struct ew_cost *out)
{
    struct equation e;
    struct loops l;
    int64_t terms;
    if (prepare(c, &e, &l) != EW_OK || __builtin_mul_overflow(l.outer, l.inner, &terms))
        return;
    out->macs += c->n_in > 1 ? terms : 0;
    out->flops += c->n_in > 1 ? c->n_in * terms : terms;
}

/* The product of all tensors but `but` at the current position. */
static double product(const struct ew_call *c, const struct loops *l, int but)
{
    double v = 1;
    for (int i = 0; i < c->n_in; i++)
        if (i != but)
            v *= ew_tensor_get(c->in[i], l->pos[i]);
    return v;
}

static ew_err forward(const struct ew_call *c)
{
    struct equation e;
    struct loops l;
    EW_TRY(prepare(c, &e, &l));
    for (int64_t o = 0; o < l.outer; o++) {
        double sum = 0;
        for (int64_t i = 0; i < l.inner; i++, next(&l))
            sum += product(c, &l, -1);
        ew_tensor_store(c->out[0], o, 1, &sum);
    }
    return EW_OK;
}

static ew_err backward(const struct ew_call *c)
{
    struct equation e;
    struct loops l;
    if (!c->dout[0])
        return EW_OK;
    EW_TRY(prepare(c, &e, &l));
    for (int64_t o = 0; o < l.outer; o++) {
        const double g = ew_tensor_get(c->dout[0], o);
        for (int64_t i = 0; i < l.inner; i++, next(&l)) {
            for (int t = 0; t < c->n_in; t++) {
                const double d = c->din[t] ? g * product(c, &l, t) : 0;
                if (c->din[t])
                    ew_tensor_accumulate(c->din[t], l.pos[t], 1, &d);
            }
        }
    }
    return EW_OK;
}

/* ---- As a matrix product ---- */

/* The letters of "a,b->out", each at most once in a term. */
struct letters {
    int n[3];
    char at[3][EW_MAX_RANK + 1];
};

static bool read_letters(const char *equation, struct letters *l)
{
    int term = 0;
    *l = (struct letters){0};
    for (const char *p = equation; *p; p++) {
        if (*p == ' ')
            continue;
        if ((*p == ',' && term == 0) || (p[0] == '-' && p[1] == '>' && term == 1)) {
            term++;
            p += *p == '-';
            continue;
        }
        if (!isalpha((unsigned char)*p) || l->n[term] == EW_MAX_RANK || strchr(l->at[term], *p))
            return false;
        l->at[term][l->n[term]++] = *p;
    }
    return term == 2;
}

/* True for [batch..., m, k] times [batch..., n, k], in any order of axes: the output's letters
 * without m and n are the batch; one letter is in both inputs alone. */
static bool is_product(const struct letters *l, char *m, char *n, char *k)
{
    *m = *n = *k = 0;
    for (int t = 0; t < 2; t++)
        for (int i = 0; i < l->n[t]; i++) {
            const char c = l->at[t][i];
            const bool other = strchr(l->at[1 - t], c), out = strchr(l->at[2], c);
            char *one = other ? k : t == 0 ? m : n;
            if (other && out)
                continue; /* batch */
            if (other != !out || (*one && *one != c))
                return false;
            *one = c;
        }
    return *m && *n && *k && l->n[0] == l->n[1] && l->n[2] == l->n[0];
}

/* Transposes a value whose axes are `from` to the order `to`. */
static ew_err reorder(struct ew_graph *g, const char *from, const char *to, int value, int *out)
{
    struct ew_transpose_attr a = {.perm = {.n = (int)strlen(to)}};
    *out = value;
    if (strcmp(from, to) == 0)
        return EW_OK;
    for (int i = 0; i < a.perm.n; i++)
        a.perm.v[i] = strchr(from, to[i]) - from;
    return ew_graph_add(g, &ew_op_transpose, NULL, &a, EW_INPUTS(value), out);
}

/* The batch, then two more axes. */
static void order(const struct letters *l, char m, char n, char row, char column, char *out)
{
    for (const char *p = l->at[2]; *p; p++)
        if (*p != m && *p != n)
            *out++ = *p;
    *out++ = row;
    *out++ = column;
    *out = 0;
}

/* The size of axis `letter` of input i; 0: it has another number of axes. */
static int64_t size_of(const struct ew_graph *g, const struct ew_onnx_node *n,
                       const struct letters *l, int i, char letter)
{
    const struct ew_shape *s = &g->values[n->in[i]].t.shape;
    return s->rank == l->n[i] ? s->dim[strchr(l->at[i], letter) - l->at[i]] : 0;
}

/* MatMul broadcasts the batch, as Einsum does, but not the axis that is summed over. */
static bool becomes_matmul(const struct ew_graph *g, const struct ew_onnx_node *n,
                           struct letters *l, char *m, char *columns, char *k)
{
    if (n->n_in != 2 || n->in[0] < 0 || n->in[1] < 0 ||
        !(EW_TYPES_FLOAT & 1u << g->values[n->in[0]].t.dtype) ||
        !read_letters(ew_onnx_str(n, "equation", ""), l) || !is_product(l, m, columns, k))
        return false;
    const int64_t depth = size_of(g, n, l, 0, *k);
    return depth > 0 && depth == size_of(g, n, l, 1, *k);
}

static ew_err import(struct ew_graph *g, const struct ew_onnx_node *n, int *out)
{
    struct letters l;
    char m, columns, k, a[EW_MAX_RANK + 1], b[EW_MAX_RANK + 1], y[EW_MAX_RANK + 1];
    int in[2];
    if (!becomes_matmul(g, n, &l, &m, &columns, &k))
        return ew_onnx_import_default(g, &ew_op_einsum, n, NULL, out);
    order(&l, m, columns, m, k, a);
    order(&l, m, columns, k, columns, b);
    order(&l, m, columns, m, columns, y);
    EW_TRY(reorder(g, l.at[0], a, n->in[0], &in[0]));
    EW_TRY(reorder(g, l.at[1], b, n->in[1], &in[1]));
    EW_TRY(ew_graph_add(g, &ew_op_matmul, n->name, NULL, ew_inputs(in, 2), out));
    return reorder(g, y, l.at[2], *out, out);
}

/* clang-format off */
static const struct ew_op_case cases[] = {
    {.name = "matmul", .attrs = "equation=ij,jk->ik", .in = {{"2x3"}, {"3x4"}}, .n_in = 2,
     .out_shape = "2x4"},
    {.name = "implied", .attrs = "equation=kj,ji", .in = {{"2x3"}, {"3x4"}}, .n_in = 2,
     .out_shape = "4x2"},
    {.name = "batch under an ellipsis", .attrs = "equation=...ij,...jk->...ik",
     .in = {{"2x1x2x3"}, {"4x3x2"}}, .n_in = 2, .out_shape = "2x4x2x2"},
    {.name = "diagonal", .attrs = "equation=bii->bi", .in = {{"2x3x3"}}, .n_in = 1,
     .out_shape = "2x3"},
    {.name = "three", .attrs = "equation=ab,bc,cd->ad", .in = {{"2x3"}, {"3x2"}, {"2x2"}},
     .n_in = 3, .out_shape = "2x2"},
    {.name = "sum of all", .attrs = "equation=ij->", .in = {{"3x4"}}, .n_in = 1, .out_shape = ""},
    {.name = "int", .attrs = "equation=i,i->", .in = {{"5", EW_S64}, {"5", EW_S64}}, .n_in = 2,
     .out_shape = ""},
};
/* clang-format on */

const struct ew_op ew_op_einsum = {
    .name = "einsum",
    .help = "sums of products over named axes",
    .saves = EW_SAVE_INS,
    .min_in = 1,
    .max_in = -1,
    .attr_size = sizeof(struct attr),
    .attrs = attrs,
    .infer = infer,
    .cost = cost,
    .forward = forward,
    .backward = backward,
    .onnx = {.type = "Einsum", .since = 12, .import = import},
    EW_OP_CASES(cases),
};
