/* SPDX-License-Identifier: Apache-2.0 */
/* The builder's calls.  Attributes are passed to operators as text, in the syntax of their field
 * tables. */
#include "model/build.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- Names and widths ---- */

void ew_b_scope(struct ew_builder *b, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(b->prefix, sizeof(b->prefix), fmt, ap);
    va_end(ap);
}

void ew_b_root(struct ew_builder *b)
{
    b->prefix[0] = 0;
}

const char *ew_b_name(struct ew_builder *b, const char *fmt, ...)
{
    char buf[96];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(buf, sizeof(buf), fmt, ap);
    va_end(ap);
    const char *name = ew_arena_strdup(&b->g->arena, buf);
    return name ? name : ""; /* the arena records the failure, and the next call fails */
}

/* Records a failure whose message has been set. */
static int fail(struct ew_builder *b, ew_err e)
{
    if (b->err == EW_OK)
        b->err = e;
    return -1;
}

static int64_t given_filters(struct ew_builder *b, int64_t step)
{
    const int i = b->n_gates;
    if (i >= b->n_given)
        return fail(b, ew_fail(EW_ERR_ARG, "%d widths are given, it has more", b->n_given));
    if (b->given[i] < 1)
        return fail(b, ew_fail(EW_ERR_ARG, "width %d is %d filters", i, (int)b->given[i]));
    if (b->given[i] % step)
        return fail(b, ew_fail(EW_ERR_ARG, "width %d is %d filters, must be a multiple of %d", i,
                               (int)b->given[i], (int)step));
    return b->given[i];
}

static int64_t scaled_filters(struct ew_builder *b, int64_t base, int64_t step)
{
    const double wide = (double)base * b->scale;
    if (wide >= 1 << 24)
        return fail(b, ew_fail(EW_ERR_LIMIT, "width %g makes %.0f filters of %lld, over %d",
                               b->scale, wide, (long long)base, 1 << 24));
    const int64_t n = (int64_t)wide / step * step;
    if (n < 1)
        return fail(
            b, ew_fail(EW_ERR_ARG, "width %g leaves no filter of %lld", b->scale, (long long)base));
    return n;
}

/* Records the count of a gate; after a failure 1, which is safe in later arithmetic. */
static int64_t gate(struct ew_builder *b, int64_t n)
{
    if (b->err == EW_OK && b->n_gates == EW_MAX_GATES)
        n = fail(b, ew_fail(EW_ERR_LIMIT, "more than %d widths", EW_MAX_GATES));
    if (b->err != EW_OK)
        return 1;
    b->gates[b->n_gates++] = (int32_t)n;
    return n;
}

int64_t ew_b_filters_by(struct ew_builder *b, int64_t base, int64_t step)
{
    if (b->err != EW_OK)
        return 1;
    return gate(b, b->given ? given_filters(b, step) : scaled_filters(b, base, step));
}

int64_t ew_b_filters(struct ew_builder *b, int64_t base)
{
    return ew_b_filters_by(b, base, 1);
}

int64_t ew_b_filters_of(struct ew_builder *b, int64_t base, int64_t times)
{
    if (b->err != EW_OK)
        return 1;
    return gate(b, b->given ? given_filters(b, 1) : times * scaled_filters(b, base, 1));
}

struct ew_shape ew_b_shape(const struct ew_builder *b, int x)
{
    return b->err == EW_OK && x >= 0 ? b->g->values[x].t.shape : (struct ew_shape){0};
}

int64_t ew_b_channels(const struct ew_builder *b, int x)
{
    const struct ew_shape s = ew_b_shape(b, x);
    return s.rank ? s.dim[s.rank - 1] : 1;
}

/* ---- Nodes ---- */

/* A unique name for a node and its value: "layer1.0.relu", then "layer1.0.relu_2", ... */
static void free_name(const struct ew_builder *b, const char *name, char *out, size_t size)
{
    snprintf(out, size, "%s%s", b->prefix, name);
    for (int i = 2; ew_graph_find(b->g, out) >= 0; i++)
        snprintf(out, size, "%s%s_%d", b->prefix, name, i);
}

/* Adds a node with `n_out` outputs and calls it `name`, or after its operator where that is NULL.
 */
static ew_err add_node(struct ew_builder *b, struct ew_node *n, const char *name, char *attrs,
                       int *out)
{
    EW_CHECK(attrs, EW_ERR_MEMORY, "no memory for graph %s", b->g->name);
    EW_CLEANUP(ew_free_ptr) void *attr = calloc(1, n->op->attr_size + 1);
    EW_CHECK(attr, EW_ERR_MEMORY, "no memory for graph %s", b->g->name);
    ew_fields_default(n->op->attrs, attr, n->op->attr_size);
    char full[256];
    free_name(b, name ? name : n->op->name, full, sizeof(full));
    const ew_err e = ew_fields_parse(n->op->attrs, attrs, attr);
    if (e != EW_OK)
        return ew_fail_in(e, "node %s (%s)", full, n->op->name);
    struct ew_node whole = *n;
    whole.name = full;
    whole.attr = attr;
    return ew_graph_add_node(b->g, &whole, out);
}

struct step {
    const char *op, *name;
    int in[5], n_in, n_out;
};

/* Adds a node, with attributes as formatted text; out[0] is -1 after a failure. */
static void put(struct ew_builder *b, struct step s, int *out, const char *attrs, ...)
    __attribute__((format(printf, 4, 5)));

static void put(struct ew_builder *b, struct step s, int *out, const char *attrs, ...)
{
    for (int i = 0; i < s.n_out; i++)
        out[i] = -1;
    if (b->err != EW_OK)
        return;
    char text[256];
    va_list ap;
    va_start(ap, attrs);
    vsnprintf(text, sizeof(text), attrs, ap);
    va_end(ap);
    struct ew_node n = {
        .op = ew_op_find(s.op), .in = s.in, .n_in = s.n_in, .n_out = s.n_out ? s.n_out : 1};
    const ew_err e = n.op ? add_node(b, &n, s.name, ew_arena_strdup(&b->g->arena, text), out)
                          : ew_fail(EW_ERR_INTERNAL, "no operator is called %s", s.op);
    if (e != EW_OK) {
        out[0] = -1;
        fail(b, e);
    }
}

/* Adds a parameter or running statistic. */
static int weight(struct ew_builder *b, const char *layer, const char *part,
                  enum ew_value_kind kind, struct ew_shape shape)
{
    if (b->err != EW_OK)
        return -1;
    char name[256];
    snprintf(name, sizeof(name), "%s%s.%s", b->prefix, layer, part);
    if (ew_graph_find(b->g, name) >= 0)
        return fail(b, ew_fail(EW_ERR_INTERNAL, "two parameters are called %s", name));
    const struct ew_tensor t = {.dtype = EW_F32, .shape = shape};
    int out = -1;
    const ew_err e = ew_graph_const(b->g, name, kind, &t, false, &out);
    return e == EW_OK ? out : fail(b, e);
}

static struct ew_shape vector(int64_t n)
{
    return (struct ew_shape){1, {n}};
}

/* ---- Layers with weights ---- */

/* One window attribute as text: along time, for video, and in space. */
static const char *sides(int rank, int64_t t, int64_t side, char text[64])
{
    if (rank == 5)
        snprintf(text, 64, "%lldx%lldx%lld", (long long)t, (long long)side, (long long)side);
    else
        snprintf(text, 64, "%lldx%lld", (long long)side, (long long)side);
    return text;
}

/* Stride and padding as text. */
static const char *steps(int rank, const struct ew_win *w, char text[224])
{
    char stride[64], pad[64];
    sides(rank, w->t_k ? w->t_stride : w->stride, w->stride, stride);
    sides(rank, w->t_k ? w->t_pad : w->pad, w->pad, pad);
    snprintf(text, 224, "stride=%s pad=%sx%s", stride, pad, pad);
    return text;
}

static int conv(struct ew_builder *b, const char *name, const int *xb, int64_t out, struct ew_win w)
{
    const int64_t channels = ew_b_channels(b, xb[0]);
    const long long groups = w.groups == EW_DEPTHWISE ? channels : w.groups;
    const int rank = ew_b_shape(b, xb[0]).rank;
    char text[224];
    if (b->err == EW_OK && (channels % groups || out % groups))
        return fail(b, ew_fail(EW_ERR_SHAPE, "%s%s: %lld groups do not divide %lld and %lld",
                               b->prefix, name, groups, (long long)channels, (long long)out));
    const struct ew_shape shape =
        rank == 5 ? (struct ew_shape){5, {out, w.t_k ? w.t_k : w.k, w.k, w.k, channels / groups}}
                  : (struct ew_shape){4, {out, w.k, w.k, channels / groups}};
    struct step step = {"conv", name, {xb[0], -1, -1}, xb[1] ? 3 : 2, 1};
    step.in[1] = weight(b, name, "weight", EW_VALUE_PARAM, shape);
    if (xb[1])
        step.in[2] = weight(b, name, "bias", EW_VALUE_PARAM, vector(out));
    int y;
    put(b, step, &y, "%s groups=%lld", steps(rank, &w, text), groups);
    return y;
}

int ew_b_conv(struct ew_builder *b, const char *name, int x, int64_t out, struct ew_win w)
{
    return conv(b, name, (const int[]){x, false}, out, w);
}

int ew_b_conv_bias(struct ew_builder *b, const char *name, int x, int64_t out, struct ew_win w)
{
    return conv(b, name, (const int[]){x, true}, out, w);
}

int ew_b_conv_transpose(struct ew_builder *b, const char *name, int x, int64_t out, struct ew_win w)
{
    const int64_t channels = ew_b_channels(b, x);
    const int rank = ew_b_shape(b, x).rank;
    const struct ew_shape shape =
        rank == 5 ? (struct ew_shape){5, {channels, w.t_k ? w.t_k : w.k, w.k, w.k, out}}
                  : (struct ew_shape){4, {channels, w.k, w.k, out}};
    struct step step = {"conv_transpose", name, {x, -1, -1}, 3, 1};
    char text[224];
    int y;
    step.in[1] = weight(b, name, "weight", EW_VALUE_PARAM, shape);
    step.in[2] = weight(b, name, "bias", EW_VALUE_PARAM, vector(out));
    put(b, step, &y, "%s", steps(rank, &w, text));
    return y;
}

int ew_b_bn(struct ew_builder *b, const char *name, int x)
{
    const struct ew_shape c = vector(ew_b_channels(b, x));
    struct step step = {"batch_norm", name, {x}, 5, 1};
    step.in[1] = weight(b, name, "weight", EW_VALUE_PARAM, c);
    step.in[2] = weight(b, name, "bias", EW_VALUE_PARAM, c);
    step.in[3] = weight(b, name, "running_mean", EW_VALUE_STATE, c);
    step.in[4] = weight(b, name, "running_var", EW_VALUE_STATE, c);
    int y;
    put(b, step, &y, "eps=%.9g momentum=%.9g", b->bn_eps, b->bn_keep);
    return y;
}

int ew_b_group_norm(struct ew_builder *b, const char *name, int x, int64_t groups)
{
    const struct ew_shape c = vector(ew_b_channels(b, x));
    struct step step = {"group_norm", name, {x}, 3, 1};
    step.in[1] = weight(b, name, "weight", EW_VALUE_PARAM, c);
    step.in[2] = weight(b, name, "bias", EW_VALUE_PARAM, c);
    int y;
    put(b, step, &y, "groups=%lld", (long long)groups);
    return y;
}

int ew_b_dense(struct ew_builder *b, const char *name, int x, int64_t out)
{
    struct step step = {"gemm", name, {x}, 3, 1};
    step.in[1] =
        weight(b, name, "weight", EW_VALUE_PARAM, (struct ew_shape){2, {out, ew_b_channels(b, x)}});
    step.in[2] = weight(b, name, "bias", EW_VALUE_PARAM, vector(out));
    int y;
    put(b, step, &y, "trans_b=true");
    return y;
}

/* ---- Layers without weights ---- */

static int unary(struct ew_builder *b, const char *op, int x)
{
    int y;
    put(b, (struct step){op, NULL, {x}, 1, 1}, &y, " ");
    return y;
}

static int binary(struct ew_builder *b, const char *op, int x0, int x1)
{
    int y;
    put(b, (struct step){op, NULL, {x0, x1}, 2, 1}, &y, " ");
    return y;
}

int ew_b_relu(struct ew_builder *b, int x)
{
    return unary(b, "relu", x);
}

int ew_b_leaky_relu(struct ew_builder *b, int x, double slope)
{
    int y;
    put(b, (struct step){"leaky_relu", NULL, {x}, 1, 1}, &y, "alpha=%g", slope);
    return y;
}

/* A constant bound, shared by all clips of the graph. */
static int bound(struct ew_builder *b, const char *name, float v)
{
    int out = ew_graph_find(b->g, name);
    if (b->err != EW_OK || out >= 0)
        return out;
    const ew_err e = ew_graph_const_float(b->g, name, v, &out);
    return e == EW_OK ? out : fail(b, e);
}

int ew_b_relu6(struct ew_builder *b, int x)
{
    const int low = bound(b, "relu6.min", 0), high = bound(b, "relu6.max", 6);
    int y;
    put(b, (struct step){"clip", "relu6", {x, low, high}, 3, 1}, &y, " ");
    return y;
}

int ew_b_hard_swish(struct ew_builder *b, int x)
{
    return unary(b, "hard_swish", x);
}

int ew_b_hard_sigmoid(struct ew_builder *b, int x)
{
    int y;
    put(b, (struct step){"hard_sigmoid", NULL, {x}, 1, 1}, &y, "alpha=%.17g beta=0.5", 1.0 / 6);
    return y;
}

int ew_b_add(struct ew_builder *b, int x, int y)
{
    return binary(b, "add", x, y);
}

int ew_b_mul(struct ew_builder *b, int x, int y)
{
    return binary(b, "mul", x, y);
}

int ew_b_dropout(struct ew_builder *b, int x, double ratio)
{
    int y;
    put(b, (struct step){"dropout", NULL, {x}, 1, 1}, &y, "ratio=%.9g", ratio);
    return y;
}

static int pool(struct ew_builder *b, const char *op, int x, struct ew_win w)
{
    const int rank = ew_b_shape(b, x).rank;
    char kernel[64], text[224];
    int y;
    put(b, (struct step){op, NULL, {x}, 1, 1}, &y, "kernel=%s %s ceil_mode=%s",
        sides(rank, w.t_k ? w.t_k : w.k, w.k, kernel), steps(rank, &w, text),
        w.ceil ? "true" : "false");
    return y;
}

int ew_b_max_pool(struct ew_builder *b, int x, struct ew_win w)
{
    return pool(b, "max_pool", x, w);
}

int ew_b_avg_pool(struct ew_builder *b, int x, struct ew_win w)
{
    return pool(b, "average_pool", x, w);
}

int ew_b_adaptive_pool(struct ew_builder *b, int x, int64_t side)
{
    int y;
    const long long n = side;
    if (ew_b_shape(b, x).rank == 5)
        put(b, (struct step){"adaptive_avg_pool", NULL, {x}, 1, 1}, &y, "size=%lldx%lldx%lld", n, n,
            n);
    else
        put(b, (struct step){"adaptive_avg_pool", NULL, {x}, 1, 1}, &y, "size=%lldx%lld", n, n);
    return y;
}

int ew_b_global_pool(struct ew_builder *b, int x)
{
    return unary(b, "global_average_pool", x);
}

int ew_b_flatten(struct ew_builder *b, int x)
{
    const struct ew_shape s = ew_b_shape(b, x);
    if (s.rank == 4 && s.dim[1] * s.dim[2] > 1)
        put(b, (struct step){"transpose", NULL, {x}, 1, 1}, &x, "perm=0,3,1,2");
    if (s.rank == 5 && s.dim[1] * s.dim[2] * s.dim[3] > 1)
        put(b, (struct step){"transpose", NULL, {x}, 1, 1}, &x, "perm=0,4,1,2,3");
    return unary(b, "flatten", x);
}

int ew_b_unflatten(struct ew_builder *b, int x, struct ew_shape like)
{
    int y, shape = -1;
    if (b->err != EW_OK) /* then there is no shape either */
        return -1;
    int64_t dims[EW_MAX_RANK] = {0, like.dim[like.rank - 1]}; /* 0: copy the batch */
    for (int i = 1; i + 1 < like.rank; i++)
        dims[i + 1] = like.dim[i];
    const ew_err e =
        ew_graph_const_ints(b->g, ew_b_name(b, "shape_%d", x), dims, like.rank, &shape);
    if (e != EW_OK)
        return fail(b, e);
    put(b, (struct step){"reshape", NULL, {x, shape}, 2, 1}, &y, "%s", "");
    put(b, (struct step){"transpose", NULL, {y}, 1, 1}, &y, "perm=%s",
        like.rank == 5 ? "0,2,3,4,1" : "0,2,3,1");
    return y;
}

int ew_b_concat(struct ew_builder *b, int x, int y)
{
    int z;
    put(b, (struct step){"concat", NULL, {x, y}, 2, 1}, &z, "axis=%d", ew_b_shape(b, x).rank - 1);
    return z;
}

void ew_b_halves(struct ew_builder *b, int x, int *first, int *second)
{
    int half[2];
    put(b, (struct step){"split", NULL, {x}, 1, 2}, half, "axis=%d", ew_b_shape(b, x).rank - 1);
    *first = half[0];
    *second = half[1];
}

int ew_b_shuffle(struct ew_builder *b, int x, int64_t groups)
{
    int y;
    put(b, (struct step){"channel_shuffle", NULL, {x}, 1, 1}, &y, "groups=%lld", (long long)groups);
    return y;
}
