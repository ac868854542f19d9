/* SPDX-License-Identifier: Apache-2.0 */
/* The loop of recurrent layers over directions, sequences and time. */
#include "op/recurrent.h"

#include <math.h>
#include <string.h>
#include <strings.h>

#include "op/window.h"

#define CHUNK 256

const char *const ew_rnn_directions[] = {"forward", "reverse", "bidirectional", NULL};

static void sizes(const struct ew_call *c, int gates, struct ew_rnn *out)
{
    const struct ew_rnn_attr *a = c->attr;
    const int64_t *x = c->in[EW_RNN_X]->shape.dim;
    *out = (struct ew_rnn){.c = c,
                           .a = a,
                           .gates = gates,
                           .steps = x[a->layout ? 1 : 0],
                           .batch = x[a->layout ? 0 : 1],
                           .inputs = x[2],
                           .hidden = c->in[EW_RNN_R]->shape.dim[2],
                           .directions = a->direction == EW_RNN_BOTH ? 2 : 1};
}

/* Checks that in[slot], if present, has this shape. */
static ew_err check_shape(const struct ew_call *c, int slot, struct ew_shape want)
{
    const struct ew_tensor *t = ew_call_in(c, slot);
    char a[EW_SHAPE_TEXT], b[EW_SHAPE_TEXT];
    EW_CHECK(!t || ew_shape_equal(&t->shape, &want), EW_ERR_SHAPE, "input %d is %s, must be %s",
             slot, ew_shape_text(&t->shape, a), ew_shape_text(&want, b));
    return EW_OK;
}

/* [D, B, H], or [B, D, H]. */
static struct ew_shape state_shape(const struct ew_rnn *r)
{
    if (r->a->layout)
        return (struct ew_shape){3, {r->batch, r->directions, r->hidden}};
    return (struct ew_shape){3, {r->directions, r->batch, r->hidden}};
}

static ew_err check_inputs(const struct ew_call *c, const struct ew_rnn *r)
{
    const int64_t d = r->directions, h = r->hidden, rows = r->gates * h;
    EW_CHECK(r->a->hidden_size == 0 || r->a->hidden_size == h, EW_ERR_SHAPE,
             "hidden_size is %lld, the weights have %lld", (long long)r->a->hidden_size,
             (long long)h);
    EW_TRY(check_shape(c, EW_RNN_W, (struct ew_shape){3, {d, rows, r->inputs}}));
    EW_TRY(check_shape(c, EW_RNN_R, (struct ew_shape){3, {d, rows, h}}));
    EW_TRY(check_shape(c, EW_RNN_BIAS, (struct ew_shape){2, {d, 2 * rows}}));
    EW_TRY(check_shape(c, EW_RNN_LENGTHS, (struct ew_shape){1, {r->batch}}));
    EW_TRY(check_shape(c, EW_RNN_H, state_shape(r)));
    EW_TRY(check_shape(c, EW_RNN_C, state_shape(r)));
    return check_shape(c, EW_RNN_PEEPHOLES, (struct ew_shape){2, {d, 3 * h}});
}

ew_err ew_rnn_infer(const struct ew_call *c, int gates)
{
    struct ew_rnn r;
    for (int i = 0; i < c->n_in; i++)
        EW_TRY(i == EW_RNN_LENGTHS ? ew_types_check(c, i, EW_TYPES_INDEX) : ew_types_same(c, i));
    EW_TRY(ew_types_check(c, EW_RNN_X, EW_TYPES_FLOAT));
    for (int i = EW_RNN_X; i <= EW_RNN_R; i++)
        EW_CHECK(c->in[i]->shape.rank == 3, EW_ERR_SHAPE, "input %d has %d dimensions, must be 3",
                 i, c->in[i]->shape.rank);
    sizes(c, gates, &r);
    EW_CHECK(r.hidden <= INT32_MAX && r.inputs <= INT32_MAX, EW_ERR_LIMIT, "%lld hidden elements",
             (long long)r.hidden);
    EW_TRY(check_inputs(c, &r));
    for (int i = 0; i < c->n_out; i++) {
        if (!c->out[i])
            continue;
        c->out[i]->dtype = c->in[EW_RNN_X]->dtype;
        c->out[i]->shape = state_shape(&r);
    }
    struct ew_tensor *y = ew_call_out(c, 0);
    if (y && r.a->layout)
        y->shape = (struct ew_shape){4, {r.batch, r.steps, r.directions, r.hidden}};
    else if (y)
        y->shape = (struct ew_shape){4, {r.steps, r.directions, r.batch, r.hidden}};
    return EW_OK;
}

size_t ew_rnn_scratch(const struct ew_call *c, int gates)
{
    struct ew_rnn r;
    sizes(c, gates, &r);
    return sizeof(double) * (size_t)(r.inputs + (3 + 2 * gates) * r.hidden);
}

void ew_rnn_cost(const struct ew_call *c, int gates, struct ew_cost *out)
{
    struct ew_rnn r;
    sizes(c, gates, &r);
    const int64_t rows = ew_cost_mul(r.steps * r.directions, r.batch * gates * r.hidden);
    const int64_t macs = ew_cost_mul(rows, r.inputs + r.hidden);
    out->macs += macs;
    out->flops += 2 * macs;
}

/* ---- One step ---- */

static double dot(const struct ew_tensor *t, int64_t at, const double *v, int64_t count)
{
    double sum = 0, row[CHUNK];
    for (int64_t i = 0; i < count; i += CHUNK) {
        const int64_t n = ew_min_i64(CHUNK, count - i);
        ew_tensor_load(t, at + i, n, row);
        for (int64_t k = 0; k < n; k++)
            sum += row[k] * v[i + k];
    }
    return sum;
}

/* Row k of W (half 0) or R (half 1) with its bias, times v. */
static double row_of(const struct ew_rnn *r, int half, int64_t k, const double *v)
{
    const int64_t rows = r->gates * r->hidden, n = half ? r->hidden : r->inputs;
    const struct ew_tensor *bias = ew_call_in(r->c, EW_RNN_BIAS);
    const double b = bias ? ew_tensor_get(bias, (2 * r->direction + half) * rows + k) : 0;
    return b + dot(r->c->in[half ? EW_RNN_R : EW_RNN_W], (r->direction * rows + k) * n, v, n);
}

void ew_rnn_recur(const struct ew_rnn *r, int gate, const double *v, double *out)
{
    for (int64_t k = 0; k < r->hidden; k++)
        out[k] = row_of(r, 1, gate * r->hidden + k, v);
}

static double clipped(const struct ew_rnn *r, double v)
{
    return r->a->clip > 0 ? fmin(fmax(v, -r->a->clip), r->a->clip) : v;
}

double ew_rnn_sigmoid(const struct ew_rnn *r, double v)
{
    return 1 / (1 + exp(-clipped(r, v)));
}

double ew_rnn_tanh(const struct ew_rnn *r, double v)
{
    return tanh(clipped(r, v));
}

/* ---- All steps ---- */

/* Offset of the state of sequence b. */
static int64_t state_at(const struct ew_rnn *r, int64_t b)
{
    const int64_t at =
        r->a->layout ? b * r->directions + r->direction : r->direction * r->batch + b;
    return at * r->hidden;
}

static void store_step(const struct ew_rnn *r, int64_t b, int64_t t)
{
    struct ew_tensor *y = ew_call_out(r->c, 0);
    const int64_t at = r->a->layout ? (b * r->steps + t) * r->directions + r->direction
                                    : (t * r->directions + r->direction) * r->batch + b;
    if (y)
        ew_tensor_store(y, at * r->hidden, r->hidden, r->h);
}

static void load_state(const struct ew_rnn *r, int slot, int64_t b, double *to)
{
    const struct ew_tensor *t = ew_call_in(r->c, slot);
    memset(to, 0, (size_t)r->hidden * sizeof(*to));
    if (t)
        ew_tensor_load(t, state_at(r, b), r->hidden, to);
}

static ew_err run_sequence(struct ew_rnn *r, int64_t b, ew_rnn_step_fn *step)
{
    const struct ew_tensor *lengths = ew_call_in(r->c, EW_RNN_LENGTHS);
    const int64_t length = lengths ? ew_tensor_get_int(lengths, b) : r->steps;
    const bool back = r->a->direction == EW_RNN_REVERSE || r->direction == 1;
    EW_CHECK(length >= 0 && length <= r->steps, EW_ERR_ARG, "sequence %lld has %lld of %lld steps",
             (long long)b, (long long)length, (long long)r->steps);
    load_state(r, EW_RNN_H, b, r->h);
    load_state(r, EW_RNN_C, b, r->cell);
    for (int64_t i = 0; i < length; i++) {
        const int64_t t = back ? length - 1 - i : i;
        const int64_t at = r->a->layout ? b * r->steps + t : t * r->batch + b;
        ew_tensor_load(r->c->in[EW_RNN_X], at * r->inputs, r->inputs, r->x);
        for (int64_t k = 0; k < r->gates * r->hidden; k++)
            r->from_x[k] = row_of(r, 0, k, r->x);
        for (int g = 0; g < r->gates; g++)
            ew_rnn_recur(r, g, r->h, r->from_h + g * r->hidden);
        step(r);
        store_step(r, b, t);
    }
    struct ew_tensor *h = ew_call_out(r->c, 1), *cell = ew_call_out(r->c, 2);
    if (h)
        ew_tensor_store(h, state_at(r, b), r->hidden, r->h);
    if (cell)
        ew_tensor_store(cell, state_at(r, b), r->hidden, r->cell);
    return EW_OK;
}

ew_err ew_rnn_forward(const struct ew_call *c, int gates, ew_rnn_step_fn *step)
{
    struct ew_rnn r;
    sizes(c, gates, &r);
    double *room = c->scratch;
    r.x = room;
    r.h = r.x + r.inputs;
    r.cell = r.h + r.hidden;
    r.tmp = r.cell + r.hidden;
    r.from_x = r.tmp + r.hidden;
    r.from_h = r.from_x + gates * r.hidden;
    if (ew_call_out(c, 0)) /* steps after the end of a sequence are zero */
        memset(c->out[0]->data, 0, ew_tensor_bytes(c->out[0]));
    for (r.direction = 0; r.direction < r.directions; r.direction++)
        for (int64_t b = 0; b < r.batch; b++)
            EW_TRY(run_sequence(&r, b, step));
    return EW_OK;
}

/* ---- ONNX ---- */

ew_err ew_rnn_import(struct ew_graph *g, const struct ew_op *op, const struct ew_onnx_node *n,
                     const char *usual, int *out)
{
    static const char *const ignore[] = {"activations", "activation_alpha", "activation_beta",
                                         "output_sequence", NULL};
    const char *given = ew_onnx_str(n, "activations", usual);
    const size_t k = strlen(usual);
    struct ew_rnn_attr attr;
    EW_TRY(ew_onnx_fill(op, n, ignore, &attr));
    const bool once = strcasecmp(given, usual) == 0;
    const bool twice = strlen(given) == 2 * k + 1 && strncasecmp(given, usual, k) == 0 &&
                       given[k] == ',' && strcasecmp(given + k + 1, usual) == 0;
    EW_CHECK(once || twice, EW_ERR_UNSUPPORTED, "activations %.60s are not supported, only %s",
             given, usual);
    return ew_onnx_import_default(g, op, n, &attr, out);
}

ew_err ew_rnn_export(const struct ew_graph *g, int node, struct ew_onnx_node *n)
{
    const struct ew_rnn_attr *a = g->nodes[node].attr;
    const struct ew_shape *r = &g->values[g->nodes[node].in[EW_RNN_R]].t.shape;
    if (!(a->clip > 0))
        ew_onnx_drop(n, "clip");
    if (a->layout == 0)
        ew_onnx_drop(n, "layout");
    else
        n->opset = n->opset < 14 ? 14 : n->opset;
    return ew_onnx_set_int(n, "hidden_size", r->dim[2]);
}
