/* SPDX-License-Identifier: Apache-2.0 */
/* Scaled dot-product attention (Vaswani et al. 2017) as standard nodes:
 *
 *   softmax(q k^T * scale + mask + bias) v,    q, k, v: [batch, heads, tokens, head size] */
#include "op/attention.h"

#include <math.h>
#include <string.h>

#include "graph/layout.h"
#include "graph/ops.h"
#include "op/math_attr.h"
#include "op/shape_attr.h"

#define MOST_TOKENS 4096 /* of a causal mask, which is a constant */

struct attention {
    struct ew_graph *g;
    const struct ew_onnx_node *n;
    int64_t heads;
    bool causal;
    bool split;  /* inputs and output are [batch, heads, tokens, size] */
    int q, k, v; /* initially [batch, tokens, heads * size], unless `split` */
};

static int input(const struct ew_onnx_node *n, int i)
{
    return i < n->n_in ? n->in[i] : -1;
}

static ew_err join(struct ew_graph *g, const struct ew_op *op, int a, int b, int *out)
{
    return ew_graph_add(g, op, NULL, NULL, EW_INPUTS(a, b), out);
}

/* Splits into parts for q, k and v along the last axis; sizes NULL: equal ones. */
static ew_err split(const struct attention *a, int value, const int64_t *sizes, int out[3])
{
    struct ew_split_attr along = {.axis = -1};
    int in[] = {value, -1};
    if (sizes)
        EW_TRY(ew_graph_const_ints(a->g, a->n->name, sizes, 3, &in[1]));
    const struct ew_node n = {
        .op = &ew_op_split, .attr = &along, .in = in, .n_in = sizes ? 2 : 1, .n_out = 3};
    return ew_graph_add_node(a->g, &n, out);
}

static ew_err reshape(struct ew_graph *g, const char *name, const int64_t *dims, int rank,
                      int *value)
{
    int shape;
    EW_TRY(ew_graph_const_ints(g, name, dims, rank, &shape));
    return join(g, &ew_op_reshape, *value, shape, value);
}

static ew_err transpose(struct ew_graph *g, const int perm[4], int *value)
{
    const struct ew_transpose_attr attr = {.perm = {4, {perm[0], perm[1], perm[2], perm[3]}}};
    const int from = *value;
    return ew_graph_add(g, &ew_op_transpose, NULL, &attr, EW_INPUTS(from), value);
}

/* Reshapes [batch, tokens, heads * size] to [batch, heads, tokens, size], keys to [..., size,
 * tokens]. */
static ew_err split_heads(const struct attention *a, bool keys, int *value)
{
    const struct ew_shape *s = &a->g->values[*value].t.shape;
    if (a->split)
        return keys ? transpose(a->g, (const int[]){0, 1, 3, 2}, value) : EW_OK;
    EW_CHECK(s->rank == 3 && s->dim[2] % a->heads == 0, EW_ERR_UNSUPPORTED,
             "queries, keys and values must be [batch, tokens, %lld heads]", (long long)a->heads);
    const int64_t dims[] = {0, 0, a->heads, s->dim[2] / a->heads};
    EW_TRY(reshape(a->g, a->n->name, dims, 4, value));
    return transpose(a->g, (const int[]){0, 2, keys ? 3 : 1, keys ? 1 : 3}, value);
}

/* ---- Masks and bias ---- */

/* Key mask [batch, tokens] of 1 (visible) and 0: adds (1 - mask) * filter for all heads and
 * queries. */
static ew_err add_mask(const struct attention *a, int mask, int *scores)
{
    const enum ew_dtype dtype = a->g->values[*scores].t.dtype;
    const struct ew_cast_attr to = {.to = (int)dtype};
    const int64_t dims[] = {0, 1, 1, -1};
    int one, filter, seen;
    EW_CHECK(a->g->values[mask].t.shape.rank == 2, EW_ERR_UNSUPPORTED,
             "a mask that is not [batch, tokens]");
    EW_TRY(ew_graph_add(a->g, &ew_op_cast, NULL, &to, EW_INPUTS(mask), &seen));
    EW_TRY(ew_onnx_scalar(a->g, dtype, 1, &one));
    EW_TRY(ew_onnx_scalar(a->g, dtype, ew_onnx_float(a->n, "mask_filter_value", -10000), &filter));
    EW_TRY(join(a->g, &ew_op_sub, one, seen, &seen));
    EW_TRY(join(a->g, &ew_op_mul, seen, filter, &seen));
    EW_TRY(reshape(a->g, a->n->name, dims, 4, &seen));
    return join(a->g, &ew_op_add, *scores, seen, scores);
}

/* Causal mask: a token does not see later ones. */
static ew_err add_causal(const struct attention *a, int *scores)
{
    const struct ew_tensor *s = &a->g->values[*scores].t;
    const int64_t rows = s->shape.dim[2], columns = s->shape.dim[3];
    struct ew_tensor t = {.dtype = s->dtype, .shape = {2, {rows, columns}}};
    int mask;
    EW_CHECK(rows <= MOST_TOKENS && columns <= MOST_TOKENS, EW_ERR_LIMIT,
             "%lld tokens, at most %d are supported", (long long)columns, MOST_TOKENS);
    t.data = ew_arena_alloc(&a->g->arena, ew_tensor_bytes(&t));
    EW_CHECK(t.data, EW_ERR_MEMORY, "no memory for a mask");
    for (int64_t i = 0; i < rows * columns; i++)
        ew_tensor_store(&t, i, 1,
                        &(double){i % columns > i / columns + columns - rows ? -HUGE_VAL : 0});
    EW_TRY(ew_graph_const(a->g, a->n->name, EW_VALUE_CONST, &t, false, &mask));
    return join(a->g, &ew_op_add, *scores, mask, scores);
}

/* ---- Attention ---- */

static ew_err attend(struct attention *a, int mask, int bias, int *out)
{
    struct ew_graph *g = a->g;
    const struct ew_softmax_attr last = {.axis = -1};
    int scale, scores;
    EW_TRY(split_heads(a, false, &a->q));
    EW_TRY(split_heads(a, true, &a->k));
    EW_TRY(split_heads(a, false, &a->v));
    const double size = (double)g->values[a->q].t.shape.dim[3];
    const double given = ew_onnx_float(a->n, "scale", 0);
    EW_TRY(ew_onnx_scalar(g, g->values[a->q].t.dtype, given > 0 ? given : 1 / sqrt(size), &scale));
    EW_TRY(join(g, &ew_op_matmul, a->q, a->k, &scores));
    EW_TRY(join(g, &ew_op_mul, scores, scale, &scores));
    if (mask >= 0)
        EW_TRY(add_mask(a, mask, &scores));
    if (a->causal)
        EW_TRY(add_causal(a, &scores));
    if (bias >= 0)
        EW_TRY(join(g, &ew_op_add, scores, bias, &scores));
    const int from = scores;
    EW_TRY(ew_graph_add(g, &ew_op_softmax, a->n->name, &last, EW_INPUTS(from), &scores));
    EW_TRY(join(g, &ew_op_matmul, scores, a->v, out));
    if (a->split)
        return EW_OK;
    EW_TRY(transpose(g, (const int[]){0, 2, 1, 3}, out));
    return reshape(g, a->n->name, (const int64_t[]){0, 0, -1}, 3, out);
}

/* Attention: one projection for q, k and v, with weights [size, sum of their sizes] and a bias. */
static ew_err project(struct attention *a)
{
    enum { X, WEIGHTS, BIAS };
    const struct ew_onnx_attr *sizes = ew_onnx_attr(a->n, "qkv_hidden_sizes");
    int all, parts[3];
    EW_CHECK(input(a->n, WEIGHTS) >= 0, EW_ERR_FORMAT, "needs weights");
    EW_CHECK(!ew_onnx_int(a->n, "do_rotary", 0), EW_ERR_UNSUPPORTED, "rotary embeddings");
    EW_CHECK(!sizes || (sizes->type == EW_ONNX_INTS && sizes->n == 3), EW_ERR_FORMAT,
             "qkv_hidden_sizes must be three sizes");
    EW_TRY(join(a->g, &ew_op_matmul, a->n->in[X], a->n->in[WEIGHTS], &all));
    if (input(a->n, BIAS) >= 0)
        EW_TRY(join(a->g, &ew_op_add, all, a->n->in[BIAS], &all));
    EW_TRY(split(a, all, sizes ? sizes->ints : NULL, parts));
    a->q = parts[0];
    a->k = parts[1];
    a->v = parts[2];
    return EW_OK;
}

static int64_t last_dim(const struct ew_graph *g, int value)
{
    const struct ew_shape *s = &g->values[value].t.shape;
    return s->rank > 0 ? s->dim[s->rank - 1] : 0;
}

/* MultiHeadAttention: q, k and v are inputs, with a joint bias. */
static ew_err take_three(struct attention *a)
{
    enum { QUERY, KEY, VALUE, BIAS };
    int parts[3];
    EW_CHECK(input(a->n, KEY) >= 0 && input(a->n, VALUE) >= 0, EW_ERR_UNSUPPORTED,
             "queries, keys and values in one tensor");
    a->q = a->n->in[QUERY];
    a->k = a->n->in[KEY];
    a->v = a->n->in[VALUE];
    if (input(a->n, BIAS) < 0)
        return EW_OK;
    const int64_t sizes[] = {last_dim(a->g, a->q), last_dim(a->g, a->k), last_dim(a->g, a->v)};
    EW_TRY(split(a, a->n->in[BIAS], sizes, parts));
    EW_TRY(join(a->g, &ew_op_add, a->q, parts[0], &a->q));
    EW_TRY(join(a->g, &ew_op_add, a->k, parts[1], &a->k));
    return join(a->g, &ew_op_add, a->v, parts[2], &a->v);
}

/* ---- ONNX's own ---- */

/* Turns a boolean mask (true: visible) into a bias of the scores. */
static ew_err mask_as_bias(struct ew_graph *g, enum ew_dtype dtype, int *mask)
{
    int zero, never;
    if (*mask < 0 || g->values[*mask].t.dtype != EW_BOOL)
        return EW_OK;
    EW_TRY(ew_onnx_scalar(g, dtype, 0, &zero));
    EW_TRY(ew_onnx_scalar(g, dtype, -HUGE_VAL, &never));
    const int in[] = {*mask, zero, never};
    return ew_graph_add(g, &ew_op_where, NULL, NULL, ew_inputs(in, 3), mask);
}

/* q, k and v are [batch, heads, tokens, size], or [batch, tokens, heads * size] with the number of
 * heads as an attribute. */
static ew_err import_standard(struct attention *a, int *out)
{
    enum { QUERY, KEY, VALUE, MASK };
    const struct ew_onnx_node *n = a->n;
    EW_CHECK(input(n, KEY) >= 0 && input(n, VALUE) >= 0, EW_ERR_FORMAT, "needs three inputs");
    for (int i = MASK + 1; i < n->n_in; i++)
        EW_CHECK(n->in[i] < 0, EW_ERR_UNSUPPORTED, "keys and values of earlier tokens");
    for (int i = 1; i < n->n_out; i++)
        EW_CHECK(!n->out_used[i], EW_ERR_UNSUPPORTED, "more than one output");
    EW_CHECK(!(ew_onnx_float(n, "softcap", 0) > 0), EW_ERR_UNSUPPORTED, "softcap is set");
    a->q = n->in[QUERY];
    a->k = n->in[KEY];
    a->v = n->in[VALUE];
    const struct ew_shape *q = &a->g->values[a->q].t.shape, *k = &a->g->values[a->k].t.shape;
    a->split = q->rank == 4;
    a->heads = a->split ? q->dim[1] : ew_onnx_int(n, "q_num_heads", 0);
    const int64_t kept =
        a->split ? (k->rank == 4 ? k->dim[1] : 0) : ew_onnx_int(n, "kv_num_heads", 0);
    EW_CHECK(a->heads > 0, EW_ERR_FORMAT, "queries have %lld heads", (long long)a->heads);
    EW_CHECK(kept == a->heads, EW_ERR_UNSUPPORTED, "%lld heads of keys for %lld of queries",
             (long long)kept, (long long)a->heads);
    a->causal = ew_onnx_int(n, "is_causal", 0) != 0;
    const int tokens = a->split ? 2 : 1;
    EW_CHECK(!a->causal || q->dim[tokens] == k->dim[tokens], EW_ERR_UNSUPPORTED,
             "is_causal with %lld keys for %lld queries", (long long)k->dim[tokens],
             (long long)q->dim[tokens]);
    int bias = input(n, MASK);
    EW_TRY(mask_as_bias(a->g, a->g->values[a->q].t.dtype, &bias));
    return attend(a, -1, bias, out);
}

ew_err ew_attention_import(struct ew_graph *g, const struct ew_onnx_node *n, int *out)
{
    const bool one = strcmp(n->type, "Attention") == 0;
    struct attention a = {.g = g,
                          .n = n,
                          .heads = ew_onnx_int(n, "num_heads", 0),
                          .causal = ew_onnx_int(n, "unidirectional", 0) != 0};
    if (!*n->domain)
        return import_standard(&a, out);
    EW_CHECK(a.heads > 0, EW_ERR_FORMAT, "num_heads is %lld", (long long)a.heads);
    for (int i = 1; i < n->n_out; i++)
        EW_CHECK(!n->out_used[i], EW_ERR_UNSUPPORTED, "keys and values as outputs");
    for (int i = one ? 4 : 6; i < n->n_in; i++) /* 5 of Attention is the bias of the scores */
        EW_CHECK((one && i == 5) || n->in[i] < 0, EW_ERR_UNSUPPORTED,
                 "keys and values of earlier tokens");
    EW_TRY(one ? project(&a) : take_three(&a));
    return attend(&a, input(n, one ? 3 : 4), input(n, 5), out);
}
