/* SPDX-License-Identifier: Apache-2.0 */
/* Operators on CUDA devices whose geometry is given by inputs: slice, pad, expand, resize,
 * reductions over axes.  Such inputs are constants in host memory (known_in of graph/op.h). */
#include <stdlib.h>
#include <string.h>

#include "backend/cuda/cuda_backend.h"
#include "base/mem.h"
#include "graph/ops.h"
#include "op/move.h"
#include "op/reduce.h"
#include "op/resize.h"
#include "op/shape_attr.h"

/* ---- Strided copies ---- */

/* The move as a strided copy; false: too many dimensions. */
static bool copy_of(const struct ew_move *m, enum ew_dtype type, struct ew_cuda_copy *out)
{
    *out = (struct ew_cuda_copy){.bytes = (int)ew_dtype_size(type), .add_type = -1};
    for (int d = 0; d < m->box.rank; d++) {
        if (m->box.dim[d] == 1)
            continue;
        if (out->rank == EW_CUDA_COPY_DIMS)
            return false;
        out->dim[out->rank] = m->box.dim[d];
        out->x_stride[out->rank] = m->src[d];
        out->y_stride[out->rank++] = m->dst[d];
    }
    if (out->rank == 0)
        out->dim[out->rank++] = 1;
    return true;
}

static ew_err expand_move(const struct ew_call *c, struct ew_move *out)
{
    *out = ew_move_box(&c->out[0]->shape, &c->out[0]->shape, &c->out[0]->shape);
    ew_shape_strides(&c->in[0]->shape, &c->out[0]->shape, out->src);
    return EW_OK;
}

static ew_err move_of(const struct ew_call *c, struct ew_move *out)
{
    return c->op == &ew_op_slice ? ew_slice_move(c, out)
           : c->op == &ew_op_pad ? ew_pad_move(c, out)
                                 : expand_move(c, out);
}

static ew_err clear(const struct ew_call *c, const struct ew_tensor *t)
{
    const struct ew_cuda *be = ew_cuda(c->be);
    return ew_cuda_check(be->cu, be->cu->fill(be->q, t->data, 0, ew_tensor_bytes(t)), "fill");
}

static ew_err run_move(const struct ew_call *c)
{
    struct ew_move m;
    struct ew_cuda_copy p;
    EW_TRY(move_of(c, &m));
    copy_of(&m, c->out[0]->dtype, &p);
    p.x = (const char *)c->in[0]->data + m.src_at * p.bytes;
    p.y = (char *)c->out[0]->data + m.dst_at * p.bytes;
    if (c->op == &ew_op_pad)
        EW_TRY(clear(c, c->out[0]));
    EW_CUDA_LAUNCH(c, strided_copy, &p);
    return EW_OK;
}

/* Gradient: the inverse copy; the rest of din is cleared. */
static ew_err back_move(const struct ew_call *c)
{
    struct ew_move m;
    struct ew_cuda_copy p;
    int64_t stride[EW_CUDA_COPY_DIMS];
    if (!c->din[0])
        return EW_OK;
    EW_TRY(move_of(c, &m));
    copy_of(&m, c->dout[0]->dtype, &p);
    memcpy(stride, p.x_stride, sizeof(stride));
    memcpy(p.x_stride, p.y_stride, sizeof(stride));
    memcpy(p.y_stride, stride, sizeof(stride));
    p.add_type = ew_cuda_storage(c->din[0]);
    p.x = (const char *)c->dout[0]->data + m.dst_at * p.bytes;
    p.y = (char *)c->din[0]->data + m.src_at * p.bytes;
    if (!ew_cuda_adds(c, 0))
        EW_TRY(clear(c, c->din[0]));
    EW_CUDA_LAUNCH(c, strided_copy, &p);
    return EW_OK;
}

static int offer_move(const struct ew_kernel_query *query, struct ew_kernel *out)
{
    const struct ew_call *c = query->c;
    const bool back = query->phase == EW_PHASE_BACKWARD;
    struct ew_move m;
    struct ew_cuda_copy p;
    if (ew_tensor_count(c->in[0]) == 0 || ew_tensor_count(c->out[0]) == 0 ||
        c->out[0]->dtype != c->in[0]->dtype || (back && ew_cuda_query_type(query, 0, ~1u) < 0) ||
        move_of(c, &m) != EW_OK || ew_shape_count(&m.box) == 0 ||
        !copy_of(&m, c->out[0]->dtype, &p))
        return 0;
    return ew_cuda_one(out, query->op->name, back ? back_move : run_move, 0);
}

int ew_cuda_offer_slice(const struct ew_kernel_query *query, struct ew_kernel *out)
{
    return offer_move(query, out);
}

/* Zero padding only, whose value needs no gradient. */
int ew_cuda_offer_pad(const struct ew_kernel_query *query, struct ew_kernel *out)
{
    enum { VALUE = 2 };
    const struct ew_call *c = query->c;
    const struct ew_pad_attr *a = c->attr;
    const struct ew_tensor *value = ew_call_in(c, VALUE);
    const bool zero = !value || (value->data && memcmp(value->data, (char[8]){0},
                                                       ew_dtype_size(value->dtype)) == 0);
    const bool learnt = c->din && c->n_in > VALUE && c->din[VALUE];
    return a->mode == EW_PAD_CONSTANT && zero && !learnt ? offer_move(query, out) : 0;
}

/* Forward only: the gradient is a sum, which the host computes. */
int ew_cuda_offer_expand(const struct ew_kernel_query *query, struct ew_kernel *out)
{
    return query->phase == EW_PHASE_FORWARD ? offer_move(query, out) : 0;
}

/* ---- Resampling ---- */

/* Packed: for height, then width, the positions at [rows, taps] as int32, then the weights as
 * float32. */
struct tables {
    int64_t taps[2], out[2];
};

static bool tables_of(const struct ew_call *c, struct ew_resize_axis *axes, struct tables *t)
{
    const struct ew_resize_attr *a = c->attr;
    if (c->in[0]->shape.rank != 4 || a->coordinate == EW_RESIZE_TF_CROP_AND_RESIZE ||
        ew_resize_resolve(c, axes) != EW_OK || !axes[0].same || !axes[3].same)
        return false;
    for (int i = 0; i < 2; i++) {
        t->taps[i] = axes[1 + i].taps;
        t->out[i] = axes[1 + i].out;
    }
    return true;
}

static size_t table_bytes(const struct tables *t, int i)
{
    return ew_align_up((size_t)(t->taps[i] * t->out[i]) * (sizeof(int) + sizeof(float)));
}

static void fill_table(const struct ew_call *c, const struct ew_resize_axis *axis, char *to,
                       struct ew_resize_tap *taps)
{
    int *at = (void *)to;
    float *weight = (float *)(at + axis->taps * axis->out);
    for (int64_t o = 0; o < axis->out; o++) {
        ew_resize_taps(c->attr, axis, o, taps);
        for (int64_t i = 0; i < axis->taps; i++) {
            const bool used = taps[i].weight > 0 || taps[i].weight < 0;
            *at++ = used ? (int)taps[i].at : 0;
            *weight++ = used ? (float)taps[i].weight : 0;
        }
    }
}

static ew_err pack_resize(const struct ew_call *c)
{
    const struct ew_cuda *be = ew_cuda(c->be);
    struct ew_resize_axis axes[EW_MAX_RANK];
    struct tables t;
    EW_CHECK(tables_of(c, axes, &t), EW_ERR_INTERNAL, "%s: is no resampling of images", c->name);
    const size_t bytes = table_bytes(&t, 0) + table_bytes(&t, 1);
    const int64_t most = t.taps[0] > t.taps[1] ? t.taps[0] : t.taps[1];
    EW_CLEANUP(ew_free_ptr) char *host = calloc(1, bytes);
    EW_CLEANUP(ew_free_ptr) struct ew_resize_tap *taps = calloc((size_t)most, sizeof(*taps));
    EW_CHECK(host && taps, EW_ERR_MEMORY, "%s: no memory for its tables", c->name);
    fill_table(c, &axes[1], host, taps);
    fill_table(c, &axes[2], host + table_bytes(&t, 0), taps);
    EW_CUDA_TRY(be->cu, copy(be->q, c->packed, host, bytes, EW_CUDA_TO_DEVICE));
    EW_CUDA_TRY(be->cu, queue_wait(be->q));
    return EW_OK;
}

static ew_err run_resize(const struct ew_call *c)
{
    struct ew_resize_axis axes[EW_MAX_RANK];
    struct tables t;
    EW_CHECK(tables_of(c, axes, &t), EW_ERR_INTERNAL, "%s: is no resampling of images", c->name);
    const struct ew_shape *x = &c->in[0]->shape;
    const char *const high = c->packed, *const wide = high + table_bytes(&t, 0);
    const size_t rows = (size_t)(t.taps[0] * t.out[0]), cols = (size_t)(t.taps[1] * t.out[1]);
    const struct ew_cuda_resize p = {.type = ew_cuda_storage(c->in[0]),
                                     .n = (int)x->dim[0],
                                     .h = (int)x->dim[1],
                                     .w = (int)x->dim[2],
                                     .c = (int)x->dim[3],
                                     .oh = (int)t.out[0],
                                     .ow = (int)t.out[1],
                                     .taps_h = (int)t.taps[0],
                                     .taps_w = (int)t.taps[1],
                                     .at_h = (const void *)high,
                                     .at_w = (const void *)wide,
                                     .weight_h = (const void *)(high + rows * sizeof(int)),
                                     .weight_w = (const void *)(wide + cols * sizeof(int)),
                                     .x = c->in[0]->data,
                                     .y = c->out[0]->data};
    EW_CUDA_LAUNCH(c, resize, &p);
    return EW_OK;
}

int ew_cuda_offer_resize(const struct ew_kernel_query *query, struct ew_kernel *out)
{
    const struct ew_call *c = query->c;
    struct ew_resize_axis axes[EW_MAX_RANK];
    struct tables t;
    if (query->phase == EW_PHASE_BACKWARD || ew_cuda_query_type(query, 0, ~1u) < 0 ||
        ew_tensor_count(c->out[0]) == 0 || ew_tensor_count(c->out[0]) >= INT32_MAX ||
        !tables_of(c, axes, &t))
        return 0;
    const int n = ew_cuda_one(out, "resize", run_resize, 0);
    out->packed = table_bytes(&t, 0) + table_bytes(&t, 1);
    out->pack = pack_resize;
    return n;
}

/* ---- Reductions over axes ---- */

/* x as [outer, mid, inner], reduced over mid; false: the axes are not adjacent. */
static bool sums_of(const struct ew_call *c, struct ew_cuda_reduce *r)
{
    struct ew_groups g;
    if (ew_groups_of(c, &g) != EW_OK || g.noop || g.count == 0 || g.size == 0)
        return false;
    const int64_t last = g.n_reduced ? g.reduced_stride[g.n_reduced - 1] : 1;
    int64_t span = last;
    for (int i = g.n_reduced - 1; i >= 0; i--) {
        if (g.reduced_dim[i] > 1 && g.reduced_stride[i] != span)
            return false;
        span *= g.reduced_dim[i];
    }
    r->inner = last;
    r->mid = g.size;
    r->outer = g.count / last;
    r->scale = c->op == &ew_op_reduce_mean ? 1 / (float)g.size : 1;
    return r->outer < 65536 && r->inner < INT32_MAX;
}

static ew_err run_sums(const struct ew_call *c)
{
    const bool squares = c->op == &ew_op_reduce_sum_square;
    struct ew_cuda_reduce r = {.type = ew_cuda_storage(c->in[0]),
                               .out_f32 = c->out[0]->dtype == EW_F32,
                               .a = c->in[0]->data,
                               .b = squares ? c->in[0]->data : NULL,
                               .out = c->out[0]->data,
                               .scratch = c->scratch};
    sums_of(c, &r);
    return ew_cuda_sum_rows(c, &r);
}

static ew_err back_sums(const struct ew_call *c)
{
    struct ew_cuda_reduce r = {0};
    if (!c->din[0])
        return EW_OK;
    sums_of(c, &r);
    const struct ew_cuda_chain p = {.type = ew_cuda_storage(c->din[0]),
                                    .n = 1,
                                    .add = ew_cuda_adds(c, 0),
                                    .a_f32 = c->dout[0]->dtype == EW_F32,
                                    .dim = {1, r.outer, r.mid, r.inner},
                                    .a = c->dout[0]->data,
                                    .a_stride = {0, r.inner, 0, 1},
                                    .link = {{.op = EW_CUDA_OP_AFFINE, .lo = r.scale}},
                                    .y = c->din[0]->data};
    EW_CUDA_LAUNCH(c, chain, &p);
    return EW_OK;
}

/* The loss of a training graph may be such a sum; it is float32 on every device. */
int ew_cuda_offer_reduce(const struct ew_kernel_query *query, struct ew_kernel *out)
{
    const struct ew_call *c = query->c;
    const bool back = query->phase == EW_PHASE_BACKWARD;
    const enum ew_dtype type = c->in[0]->dtype;
    struct ew_cuda_reduce r = {0};
    if ((type != EW_F32 && type != ew_backend_info(query->be)->storage) ||
        (c->out[0]->dtype != type && c->out[0]->dtype != EW_F32) || !sums_of(c, &r) ||
        (back && query->op == &ew_op_reduce_sum_square))
        return 0;
    return ew_cuda_one(out, "sum", back ? back_sums : run_sums,
                       back ? 0 : ew_cuda_reduce_scratch(r.outer, r.mid, r.inner, 1));
}
