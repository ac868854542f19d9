/* SPDX-License-Identifier: Apache-2.0 */
/* Element-wise operators on CUDA devices: activations, binary operators with broadcasting,
 * dropout. */
#include <string.h>

#include "backend/cuda/cuda_backend.h"
#include "base/mem.h"
#include "graph/ops.h"
#include "op/math_attr.h"

/* ---- One operand ---- */

static const struct {
    const struct ew_op *from;
    int op;
} unary[] = {
    {&ew_op_neg, EW_CUDA_OP_NEG},           {&ew_op_abs, EW_CUDA_OP_ABS},
    {&ew_op_exp, EW_CUDA_OP_EXP},           {&ew_op_log, EW_CUDA_OP_LOG},
    {&ew_op_sqrt, EW_CUDA_OP_SQRT},         {&ew_op_reciprocal, EW_CUDA_OP_RECIPROCAL},
    {&ew_op_erf, EW_CUDA_OP_ERF},           {&ew_op_mish, EW_CUDA_OP_MISH},
    {&ew_op_softplus, EW_CUDA_OP_SOFTPLUS}, {&ew_op_elu, EW_CUDA_OP_ELU},
    {&ew_op_ceil, EW_CUDA_OP_CEIL},         {&ew_op_floor, EW_CUDA_OP_FLOOR},
};

static bool is_clip(const struct ew_call *c)
{
    return c->op == &ew_op_clip;
}

/* The call's operation, without a clip's bounds, which are in device memory. */
static struct ew_cuda_link link_of(const struct ew_call *c)
{
    const struct ew_scale_attr *s = c->attr;
    for (size_t i = 0; i < EW_COUNT(unary); i++)
        if (unary[i].from == c->op)
            return (struct ew_cuda_link){.op = unary[i].op,
                                         .lo = unary[i].op == EW_CUDA_OP_ELU ? (float)s->alpha : 0};
    struct ew_epilogue_attr e = {0};
    if (!is_clip(c))
        ew_act_of_call(c, &e);
    return (struct ew_cuda_link){
        .op = is_clip(c) ? EW_ACT_CLIP : e.act, .lo = (float)e.lo, .hi = (float)e.hi};
}

static ew_err run_act(const struct ew_call *c)
{
    struct ew_cuda_chain p = {.type = ew_cuda_storage(c->in[0]),
                              .n = 1,
                              .dim = {1, 1, 1, ew_tensor_count(c->in[0])},
                              .a = c->in[0]->data,
                              .a_stride = {0, 0, 0, 1},
                              .link = {link_of(c)},
                              .y = c->out[0]->data};
    if (is_clip(c)) {
        p.n = 0;
        if (ew_call_in(c, 1))
            p.link[p.n++] =
                (struct ew_cuda_link){.op = EW_CUDA_OP_AT_LEAST, .b = c->in[1]->data, .b_f32 = 1};
        if (ew_call_in(c, 2))
            p.link[p.n++] =
                (struct ew_cuda_link){.op = EW_CUDA_OP_AT_MOST, .b = c->in[2]->data, .b_f32 = 1};
    }
    EW_CUDA_LAUNCH(c, chain, &p);
    return EW_OK;
}

static ew_err back_act(const struct ew_call *c)
{
    const struct ew_cuda_link l = link_of(c);
    const bool by_output = c->op->saves & EW_SAVE_OUT;
    if (!c->din[0])
        return EW_OK;
    const struct ew_cuda_act_back p = {.type = ew_cuda_storage(c->dout[0]),
                                       .act = {l.op, l.lo, l.hi},
                                       .bounds = is_clip(c),
                                       .lo = is_clip(c) ? ew_cuda_data(ew_call_in(c, 1)) : NULL,
                                       .hi = is_clip(c) ? ew_cuda_data(ew_call_in(c, 2)) : NULL,
                                       .by_output = by_output,
                                       .add = ew_cuda_adds(c, 0),
                                       .n = ew_tensor_count(c->dout[0]),
                                       .x = by_output ? c->out[0]->data : c->in[0]->data,
                                       .dy = c->dout[0]->data,
                                       .dx = c->din[0]->data};
    EW_CUDA_LAUNCH(c, act_back, &p);
    return EW_OK;
}

int ew_cuda_offer_act(const struct ew_kernel_query *query, struct ew_kernel *out)
{
    const struct ew_call *c = query->c;
    const bool back = query->phase == EW_PHASE_BACKWARD;
    /* Gradients with respect to clip's bounds run on the host. */
    const unsigned bounds = is_clip(c) ? 1 << 1 | 1 << 2 : 0;
    bool learnt = false;
    for (int i = 1; is_clip(c) && c->din && i < c->n_in; i++)
        learnt = learnt || c->din[i];
    if (ew_cuda_query_type(query, bounds, 0) < 0 || ew_tensor_count(c->in[0]) == 0 ||
        (learnt && back))
        return 0;
    if (back && link_of(c).op >= EW_CUDA_OP_NEG)
        return 0;
    const int n = ew_cuda_one(out, "element-wise", back ? back_act : run_act, 0);
    out->in_place = back;
    return n;
}

/* ---- Two operands ---- */

bool ew_cuda_pair_of(const struct ew_shape *a, const struct ew_shape *b, const struct ew_shape *s,
                     struct ew_cuda_pair *out)
{
    int64_t stride[2][EW_MAX_RANK], dim[EW_MAX_RANK], kept[2][EW_MAX_RANK];
    int n = 0;
    ew_shape_strides(a, s, stride[0]);
    ew_shape_strides(b, s, stride[1]);
    for (int d = 0; d < s->rank; d++) {
        if (s->dim[d] == 1)
            continue;
        const bool joins = n > 0 && kept[0][n - 1] == stride[0][d] * s->dim[d] &&
                           kept[1][n - 1] == stride[1][d] * s->dim[d];
        n += !joins;
        dim[n - 1] = joins ? dim[n - 1] * s->dim[d] : s->dim[d];
        kept[0][n - 1] = stride[0][d];
        kept[1][n - 1] = stride[1][d];
    }
    if (n > EW_CUDA_DIMS)
        return false;
    for (int d = 0; d < EW_CUDA_DIMS; d++) {
        const int from = d - (EW_CUDA_DIMS - n);
        out->dim[d] = from < 0 ? 1 : dim[from];
        for (int i = 0; i < 2; i++)
            out->stride[i][d] = from < 0 ? 0 : kept[i][from];
    }
    return true;
}

static bool pair_of(const struct ew_call *c, struct ew_cuda_pair *out)
{
    return ew_cuda_pair_of(&c->in[0]->shape, &c->in[1]->shape, &c->out[0]->shape, out);
}

static int op_of(const struct ew_call *c)
{
    return c->op == &ew_op_add   ? EW_CUDA_OP_ADD
           : c->op == &ew_op_sub ? EW_CUDA_OP_SUB
           : c->op == &ew_op_mul ? EW_CUDA_OP_MUL
           : c->op == &ew_op_div ? EW_CUDA_OP_DIV
                                 : EW_CUDA_OP_POW;
}

static ew_err run_pair(const struct ew_call *c)
{
    struct ew_cuda_pair s;
    pair_of(c, &s);
    const enum ew_dtype type = c->out[0]->dtype;
    struct ew_cuda_chain p = {
        .type = ew_cuda_storage(c->out[0]),
        .n = 1,
        .a_f32 = c->in[0]->dtype != type,
        .a = c->in[0]->data,
        .link = {{.op = op_of(c), .b = c->in[1]->data, .b_f32 = c->in[1]->dtype != type}},
        .y = c->out[0]->data};
    memcpy(p.dim, s.dim, sizeof(p.dim));
    memcpy(p.a_stride, s.stride[0], sizeof(p.dim));
    memcpy(p.link[0].stride, s.stride[1], sizeof(p.dim));
    EW_CUDA_LAUNCH(c, chain, &p);
    return EW_OK;
}

static bool is_whole(const struct ew_call *c, int i)
{
    return ew_tensor_count(c->in[i]) == ew_tensor_count(c->out[0]);
}

/* True if operand i broadcasts along adjacent dimensions only: out is [outer, mid, inner], the
 * operand [outer, inner]. */
static bool repeats(const struct ew_call *c, int i, int64_t *outer, int64_t *mid)
{
    const struct ew_shape *s = &c->out[0]->shape;
    int64_t stride[EW_MAX_RANK];
    ew_shape_strides(&c->in[i]->shape, s, stride);
    int d = 0;
    *outer = *mid = 1;
    while (d < s->rank && (stride[d] != 0 || s->dim[d] == 1))
        *outer *= s->dim[d++];
    while (d < s->rank && (stride[d] == 0 || s->dim[d] == 1))
        *mid *= s->dim[d++];
    while (d < s->rank && (stride[d] != 0 || s->dim[d] == 1))
        d++;
    return d == s->rank && *outer < 65536;
}

/* Gradient of operand i, which has the output's shape. */
static ew_err back_whole(const struct ew_call *c, int i)
{
    struct ew_cuda_pair s;
    const int op = op_of(c);
    pair_of(c, &s);
    struct ew_cuda_chain p = {.type = ew_cuda_storage(c->dout[0]),
                              .n = 0,
                              .add = ew_cuda_adds(c, i),
                              .a = c->dout[0]->data,
                              .y = c->din[i]->data};
    int64_t step = 1;
    for (int d = EW_CUDA_DIMS - 1; d >= 0; d--) {
        p.dim[d] = s.dim[d];
        p.a_stride[d] = step;
        step *= s.dim[d];
    }
    if (op == EW_CUDA_OP_MUL) {
        p.link[p.n] = (struct ew_cuda_link){.op = EW_CUDA_OP_MUL, .b = c->in[1 - i]->data};
        memcpy(p.link[p.n++].stride, s.stride[1 - i], sizeof(p.dim));
    }
    if (op == EW_CUDA_OP_SUB && i == 1)
        p.link[p.n++] = (struct ew_cuda_link){.op = EW_CUDA_OP_NEG};
    if (p.n == 0 && !p.add && p.y == p.a)
        return EW_OK;
    EW_CUDA_LAUNCH(c, chain, &p);
    return EW_OK;
}

static ew_err back_repeated(const struct ew_call *c, int i)
{
    const int op = op_of(c);
    struct ew_cuda_reduce r = {.type = ew_cuda_storage(c->dout[0]),
                               .add = ew_cuda_adds(c, i),
                               .scale = op == EW_CUDA_OP_SUB && i == 1 ? -1 : 1,
                               .a = c->dout[0]->data,
                               .b = op == EW_CUDA_OP_MUL ? c->in[1 - i]->data : NULL,
                               .out = c->din[i]->data,
                               .scratch = c->scratch};
    repeats(c, i, &r.outer, &r.mid);
    r.inner = ew_tensor_count(c->in[i]) / r.outer;
    return ew_cuda_sum_rows(c, &r);
}

static ew_err back_pair(const struct ew_call *c)
{
    /* Reductions first: the gradient of a full-size operand may overwrite dout in place. */
    for (int pass = 0; pass < 2; pass++)
        for (int i = 1; i >= 0; i--)
            if (c->din[i] && is_whole(c, i) == (pass == 1))
                EW_TRY(pass ? back_whole(c, i) : back_repeated(c, i));
    return EW_OK;
}

/* Forward, one operand may be a float32 constant while the other has a half type. */
static bool types_fit(const struct ew_kernel_query *query)
{
    const struct ew_call *c = query->c;
    const enum ew_dtype type = c->out[0]->dtype;
    if (type == EW_F32 || query->phase == EW_PHASE_BACKWARD)
        return ew_cuda_query_type(query, 0, 0) >= 0;
    for (int i = 0; i < 2; i++)
        if (c->in[i]->dtype != type && c->in[i]->dtype != EW_F32)
            return false;
    return type == ew_backend_info(query->be)->storage;
}

int ew_cuda_offer_pair(const struct ew_kernel_query *query, struct ew_kernel *out)
{
    const struct ew_call *c = query->c;
    struct ew_cuda_pair s;
    size_t scratch = 0;
    if (!types_fit(query) || !pair_of(c, &s) || ew_tensor_count(c->out[0]) == 0)
        return 0;
    if (query->phase == EW_PHASE_FORWARD)
        return ew_cuda_one(out, "element-wise", run_pair, 0);
    const int op = op_of(c);
    if (op != EW_CUDA_OP_ADD && op != EW_CUDA_OP_SUB && op != EW_CUDA_OP_MUL)
        return 0;
    for (int i = 0; i < 2; i++) {
        int64_t outer, mid;
        if (is_whole(c, i))
            continue;
        if (!repeats(c, i, &outer, &mid) || (op == EW_CUDA_OP_MUL && !is_whole(c, 1 - i)))
            return 0;
        const size_t need =
            ew_cuda_reduce_scratch(outer, mid, ew_tensor_count(c->in[i]) / outer, 1);
        scratch = need > scratch ? need : scratch;
    }
    return ew_cuda_one(out, "element-wise", back_pair, scratch);
}

/* ---- Dropout ---- */

static ew_err run_dropout(const struct ew_call *c, const void *x, void *y, int add)
{
    const struct ew_cuda *be = ew_cuda(c->be);
    const struct ew_dropout_attr *a = c->attr;
    const struct ew_cuda_dropout p = {.type = ew_cuda_storage(c->in[0]),
                                      .add = add,
                                      .n = ew_tensor_count(c->in[0]),
                                      .ratio = c->train ? a->ratio : 0,
                                      .key = &be->rates->key,
                                      .node = be->node,
                                      .x = x,
                                      .y = y};
    EW_CUDA_LAUNCH(c, dropout, &p);
    return EW_OK;
}

static ew_err dropout_forward(const struct ew_call *c)
{
    return run_dropout(c, c->in[0]->data, c->out[0]->data, 0);
}

static ew_err dropout_backward(const struct ew_call *c)
{
    return c->din[0] ? run_dropout(c, c->dout[0]->data, c->din[0]->data, ew_cuda_adds(c, 0))
                     : EW_OK;
}

int ew_cuda_offer_dropout(const struct ew_kernel_query *query, struct ew_kernel *out)
{
    const struct ew_call *c = query->c;
    if (ew_cuda_query_type(query, 0, 1 << 1 | 1 << 2) < 0 || ew_call_in(c, 1) ||
        ew_call_out(c, 1) || ew_tensor_count(c->in[0]) == 0)
        return 0;
    const bool back = query->phase == EW_PHASE_BACKWARD;
    const int n = ew_cuda_one(out, "dropout", back ? dropout_backward : dropout_forward, 0);
    out->in_place = back;
    return n;
}
