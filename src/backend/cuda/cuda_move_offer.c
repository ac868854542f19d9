/* SPDX-License-Identifier: Apache-2.0 */
/* Data movement, loss and softmax on CUDA devices. */
#include <string.h>

#include "backend/cuda/cuda_backend.h"
#include "graph/layout.h"
#include "graph/ops.h"
#include "graph/shuffle.h"
#include "op/loss.h"
#include "op/shape_attr.h"
#include "op/softmax.h"

/* ---- Views ---- */

static ew_err run_view(const struct ew_call *c)
{
    const struct ew_cuda *be = ew_cuda(c->be);
    if (c->out[0]->data == c->in[0]->data)
        return EW_OK;
    return ew_cuda_check(be->cu,
                         be->cu->copy(be->q, c->out[0]->data, c->in[0]->data,
                                      ew_tensor_bytes(c->out[0]), EW_CUDA_ON_DEVICE),
                         "copy");
}

/* A contiguous copy of n elements, or an accumulation of them. */
static struct ew_cuda_copy row_copy(const struct ew_tensor *x, const struct ew_tensor *y, int add)
{
    return (struct ew_cuda_copy){.bytes = (int)ew_dtype_size(y->dtype),
                                 .rank = 1,
                                 .add_type = add ? ew_cuda_storage(y) : -1,
                                 .dim = {ew_tensor_count(y)},
                                 .x_stride = {1},
                                 .y_stride = {1},
                                 .x = x->data,
                                 .y = y->data};
}

static ew_err back_view(const struct ew_call *c)
{
    if (!c->din[0] || c->din[0]->data == c->dout[0]->data)
        return EW_OK;
    const struct ew_cuda_copy p = row_copy(c->dout[0], c->din[0], ew_cuda_adds(c, 0));
    EW_CUDA_LAUNCH(c, strided_copy, &p);
    return EW_OK;
}

int ew_cuda_offer_view(const struct ew_kernel_query *query, struct ew_kernel *out)
{
    const bool back = query->phase == EW_PHASE_BACKWARD;
    if (back && (ew_cuda_query_type(query, 0, ~1u) < 0 || !query->op->backward))
        return 0;
    const int n = ew_cuda_one(out, "view", back ? back_view : run_view, 0);
    out->in_place = back;
    return n;
}

/* ---- Moves ---- */

/* A slice of a tensor along an axis: the whole is [outer, whole, inner], the slice [outer, n,
 * inner] and begins at `at`. */
struct part {
    int64_t outer, inner, whole, n, at;
};

static struct part part_of(const struct ew_shape *whole, const struct ew_shape *part, int axis,
                           int64_t at)
{
    return (struct part){.outer = ew_shape_span(whole, 0, axis),
                         .inner = ew_shape_span(whole, axis + 1, whole->rank),
                         .whole = whole->dim[axis],
                         .n = part->dim[axis],
                         .at = at};
}

/* Copies a slice into the whole, or out of it. */
static ew_err move_part(const struct ew_call *c, const struct part *p, const struct ew_tensor *x,
                        const struct ew_tensor *y, int into, int add)
{
    const int64_t whole = p->whole * p->inner, part = p->n * p->inner;
    const size_t bytes = ew_dtype_size(y->dtype), skip = (size_t)(p->at * p->inner) * bytes;
    if (part == 0 || p->outer == 0)
        return EW_OK;
    const struct ew_cuda_copy k = {.bytes = (int)bytes,
                                   .rank = 2,
                                   .add_type = add ? ew_cuda_storage(y) : -1,
                                   .dim = {p->outer, part},
                                   .x_stride = {into ? part : whole, 1},
                                   .y_stride = {into ? whole : part, 1},
                                   .x = (const char *)x->data + (into ? 0 : skip),
                                   .y = (char *)y->data + (into ? skip : 0)};
    EW_CUDA_LAUNCH(c, strided_copy, &k);
    return EW_OK;
}

static ew_err run_concat(const struct ew_call *c)
{
    const struct ew_concat_attr *a = c->attr;
    const int axis = ew_axis_of(a->axis, c->out[0]->shape.rank);
    int64_t at = 0;
    for (int i = 0; i < c->n_in; i++) {
        const struct part p = part_of(&c->out[0]->shape, &c->in[i]->shape, axis, at);
        EW_TRY(move_part(c, &p, c->in[i], c->out[0], 1, 0));
        at += p.n;
    }
    return EW_OK;
}

static ew_err back_concat(const struct ew_call *c)
{
    const struct ew_concat_attr *a = c->attr;
    const int axis = ew_axis_of(a->axis, c->dout[0]->shape.rank);
    int64_t at = 0;
    for (int i = 0; i < c->n_in; i++) {
        const struct part p = part_of(&c->dout[0]->shape, &c->in[i]->shape, axis, at);
        if (c->din[i])
            EW_TRY(move_part(c, &p, c->dout[0], c->din[i], 0, ew_cuda_adds(c, i)));
        at += p.n;
    }
    return EW_OK;
}

/* Offsets follow from the shapes of the outputs, all of which exist. */
static ew_err run_split(const struct ew_call *c)
{
    const struct ew_split_attr *a = c->attr;
    const int axis = ew_axis_of(a->axis, c->in[0]->shape.rank);
    int64_t at = 0;
    for (int i = 0; i < c->n_out; i++) {
        const struct part p = part_of(&c->in[0]->shape, &c->out[i]->shape, axis, at);
        EW_TRY(move_part(c, &p, c->in[0], c->out[i], 0, 0));
        at += p.n;
    }
    return EW_OK;
}

static ew_err back_split(const struct ew_call *c)
{
    const struct ew_split_attr *a = c->attr;
    const struct ew_cuda *be = ew_cuda(c->be);
    const int axis = ew_axis_of(a->axis, c->in[0]->shape.rank);
    int64_t at = 0;
    bool all = true;
    if (!c->din[0])
        return EW_OK;
    for (int i = 0; i < c->n_out; i++)
        all = all && c->dout[i];
    const bool add = ew_cuda_adds(c, 0);
    if (!all && !add)
        EW_TRY(ew_cuda_check(
            be->cu, be->cu->fill(be->q, c->din[0]->data, 0, ew_tensor_bytes(c->din[0])), "fill"));
    for (int i = 0; i < c->n_out; i++) {
        const struct part p = part_of(&c->in[0]->shape, &c->out[i]->shape, axis, at);
        if (c->dout[i])
            EW_TRY(move_part(c, &p, c->dout[i], c->din[0], 1, add));
        at += p.n;
    }
    return EW_OK;
}

/* A permutation as strides over the output. */
static bool walk_of(const struct ew_call *c, struct ew_cuda_copy *p)
{
    const struct ew_shape *in = &c->in[0]->shape;
    int64_t stride[EW_MAX_RANK];
    ew_shape_strides(in, in, stride);
    p->bytes = (int)ew_dtype_size(c->in[0]->dtype);
    p->add_type = -1;
    if (c->op == &ew_op_transpose) {
        const struct ew_transpose_attr *a = c->attr;
        int64_t step = 1;
        if (in->rank > EW_CUDA_COPY_DIMS)
            return false;
        p->rank = in->rank;
        for (int i = in->rank - 1; i >= 0; i--) {
            const int64_t from = a->perm.n ? a->perm.v[i] : in->rank - 1 - i;
            p->dim[i] = in->dim[from];
            p->x_stride[i] = in->dim[from] == 1 ? 0 : stride[from];
            p->y_stride[i] = step;
            step *= p->dim[i];
        }
        return true;
    }
    const struct ew_channel_shuffle_attr *a = c->attr;
    const int64_t channels = in->dim[in->rank - 1], k = channels / a->groups;
    *p = (struct ew_cuda_copy){.bytes = p->bytes,
                               .rank = 3,
                               .add_type = -1,
                               .dim = {ew_shape_span(in, 0, in->rank - 1), k, a->groups},
                               .x_stride = {channels, 1, k},
                               .y_stride = {channels, a->groups, 1}};
    return true;
}

static ew_err run_walk(const struct ew_call *c)
{
    struct ew_cuda_copy p = {0};
    walk_of(c, &p);
    p.x = c->in[0]->data;
    p.y = c->out[0]->data;
    EW_CUDA_LAUNCH(c, strided_copy, &p);
    return EW_OK;
}

/* The inverse permutation, for gradients. */
static ew_err back_walk(const struct ew_call *c)
{
    struct ew_cuda_copy p = {0};
    int64_t stride[EW_CUDA_COPY_DIMS];
    if (!c->din[0])
        return EW_OK;
    walk_of(c, &p);
    memcpy(stride, p.x_stride, sizeof(stride));
    memcpy(p.x_stride, p.y_stride, sizeof(stride));
    memcpy(p.y_stride, stride, sizeof(stride));
    p.add_type = ew_cuda_adds(c, 0) ? ew_cuda_storage(c->din[0]) : -1;
    p.x = c->dout[0]->data;
    p.y = c->din[0]->data;
    EW_CUDA_LAUNCH(c, strided_copy, &p);
    return EW_OK;
}

int ew_cuda_offer_move(const struct ew_kernel_query *query, struct ew_kernel *out)
{
    const struct ew_call *c = query->c;
    const bool back = query->phase == EW_PHASE_BACKWARD;
    struct ew_cuda_copy p = {0};
    for (int i = 1; i < c->n_in; i++) /* a constant may have a wider type than the other inputs */
        if (query->op == &ew_op_concat && c->in[i] && c->in[i]->dtype != c->in[0]->dtype)
            return 0;
    if (ew_tensor_count(c->in[0]) == 0 || c->out[0]->dtype != c->in[0]->dtype ||
        (back && ew_cuda_query_type(query, 0, ~1u) < 0))
        return 0;
    if (query->op == &ew_op_concat)
        return ew_cuda_one(out, "concat", back ? back_concat : run_concat, 0);
    if (query->op == &ew_op_split) {
        for (int i = 0; i < c->n_out; i++)
            if (!c->out[i])
                return 0;
        return ew_cuda_one(out, "split", back ? back_split : run_split, 0);
    }
    return walk_of(c, &p) ? ew_cuda_one(out, "permute", back ? back_walk : run_walk, 0) : 0;
}

/* ---- Loss ---- */

struct ew_cuda_loss ew_cuda_loss_of(const struct ew_call *c)
{
    const struct ew_loss_attr *a = c->attr;
    const struct ew_lanes l = ew_loss_lanes(c);
    return (struct ew_cuda_loss){.type = ew_cuda_storage(c->in[0]),
                                 .label_bytes = (int)ew_dtype_size(c->in[1]->dtype),
                                 .mean = a->reduction == EW_LOSS_MEAN,
                                 .samples = l.outer,
                                 .classes = (int)l.n,
                                 .smoothing = (float)a->smoothing,
                                 .ignore = a->ignore_index,
                                 .x = c->in[0]->data,
                                 .labels = c->in[1]->data,
                                 .weights = ew_cuda_data(ew_call_in(c, 2)),
                                 .scratch = c->scratch};
}

static ew_err run_loss(const struct ew_call *c)
{
    struct ew_cuda_loss p = ew_cuda_loss_of(c);
    p.loss = c->out[0]->data;
    EW_CUDA_LAUNCH(c, loss, &p);
    return EW_OK;
}

static ew_err back_loss(const struct ew_call *c)
{
    struct ew_cuda_loss p = ew_cuda_loss_of(c);
    if (!c->din[0])
        return EW_OK;
    p.dx = c->din[0]->data;
    p.dloss = c->dout[0]->data;
    p.add = ew_cuda_adds(c, 0);
    EW_CUDA_LAUNCH(c, loss, &p);
    return EW_OK;
}

int ew_cuda_offer_loss(const struct ew_kernel_query *query, struct ew_kernel *out)
{
    const struct ew_call *c = query->c;
    const struct ew_loss_attr *a = c->attr;
    const struct ew_lanes l = ew_loss_lanes(c);
    const bool labels = c->in[1]->dtype == EW_S64 || c->in[1]->dtype == EW_S32;
    const enum ew_dtype type = c->in[0]->dtype;
    const struct ew_tensor *weights = ew_call_in(c, 2);
    if ((type != EW_F32 && type != ew_backend_info(query->be)->storage) ||
        c->out[0]->dtype != EW_F32 || (weights && weights->dtype != EW_F32) || !labels ||
        l.inner != 1 || a->reduction == EW_LOSS_NONE || ew_call_out(c, 1) ||
        ew_tensor_count(c->in[0]) == 0)
        return 0;
    return ew_cuda_one(out, "softmax cross-entropy",
                       query->phase == EW_PHASE_FORWARD ? run_loss : back_loss,
                       ((size_t)l.outer + 1) * sizeof(float));
}

/* ---- Softmax ---- */

static ew_err softmax_of(const struct ew_call *c, struct ew_cuda_softmax *p)
{
    struct ew_lanes l;
    EW_TRY(ew_softmax_lanes(c, &c->in[0]->shape, &l));
    *p = (struct ew_cuda_softmax){.type = ew_cuda_storage(c->in[0]),
                                  .kind = c->op == &ew_op_log_softmax ? EW_CUDA_LOG_SOFTMAX
                                                                      : EW_CUDA_SOFTMAX,
                                  .rows = l.outer,
                                  .cols = (int)l.n};
    EW_CHECK(l.inner == 1 && l.n > 0 && l.outer > 0, EW_ERR_UNSUPPORTED, "%s: not over rows",
             c->name);
    return EW_OK;
}

static ew_err run_softmax(const struct ew_call *c)
{
    struct ew_cuda_softmax p;
    EW_TRY(softmax_of(c, &p));
    p.x = c->in[0]->data;
    p.y = c->out[0]->data;
    EW_CUDA_LAUNCH(c, softmax, &p);
    return EW_OK;
}

static ew_err back_softmax(const struct ew_call *c)
{
    struct ew_cuda_softmax p;
    EW_TRY(softmax_of(c, &p));
    if (!c->din[0])
        return EW_OK;
    p.x = c->out[0]->data;
    p.dy = c->dout[0]->data;
    p.y = c->din[0]->data;
    p.add = ew_cuda_adds(c, 0);
    EW_CUDA_LAUNCH(c, softmax_back, &p);
    return EW_OK;
}

int ew_cuda_offer_softmax(const struct ew_kernel_query *query, struct ew_kernel *out)
{
    struct ew_cuda_softmax p;
    if (ew_cuda_query_type(query, 0, 0) < 0 || softmax_of(query->c, &p) != EW_OK)
        return 0;
    return ew_cuda_one(out, query->op->name,
                       query->phase == EW_PHASE_FORWARD ? run_softmax : back_softmax, 0);
}
