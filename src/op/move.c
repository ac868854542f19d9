/* SPDX-License-Identifier: Apache-2.0 */
/* Copies between strided boxes.  Adjacent dimensions that are contiguous on both sides are merged
 * first, so that a copy along channels is a few memcpy. */
#include "op/move.h"

#include <string.h>

#include "op/walk.h"

/* The innermost loop, and the walk over the others: pos[0] in the source, pos[1] in the
 * destination. */
struct loops {
    int64_t n, src, dst;
    int64_t outer; /* steps of the walk */
    struct ew_walk w;
};

struct ew_move ew_move_box(const struct ew_shape *box, const struct ew_shape *src,
                           const struct ew_shape *dst)
{
    struct ew_move m = {.box = *box};
    ew_shape_strides(src, src, m.src);
    ew_shape_strides(dst, dst, m.dst);
    return m;
}

static void swap_dims(struct ew_walk *w, int a, int b)
{
    int64_t *const lists[] = {w->shape.dim, w->stride[0], w->stride[1]};
    for (size_t i = 0; i < EW_COUNT(lists); i++) {
        const int64_t v = lists[i][a];
        lists[i][a] = lists[i][b];
        lists[i][b] = v;
    }
}

static struct loops merge(const struct ew_move *m)
{
    struct ew_walk w = {.pos = {m->src_at, m->dst_at}};
    int last = -1;
    for (int i = 0; i < m->box.rank; i++) {
        const int64_t d = m->box.dim[i];
        if (d == 1)
            continue;
        const bool joins =
            last >= 0 && w.stride[0][last] == m->src[i] * d && w.stride[1][last] == m->dst[i] * d;
        if (!joins)
            w.shape.dim[++last] = 1;
        w.shape.dim[last] *= d;
        w.stride[0][last] = m->src[i];
        w.stride[1][last] = m->dst[i];
    }
    const bool contiguous = last >= 0 && w.stride[0][last] == 1 && w.stride[1][last] == 1;
    /* avoids a short inner loop (three channels) */
    if (last > 0 && !contiguous && w.shape.dim[last] < w.shape.dim[last - 1] / 4)
        swap_dims(&w, last - 1, last);
    struct loops l = {.n = 1, .src = 1, .dst = 1};
    if (last >= 0) {
        l.n = w.shape.dim[last];
        l.src = w.stride[0][last];
        l.dst = w.stride[1][last];
    }
    w.shape.rank = last > 0 ? last : 0;
    l.outer = l.n ? ew_shape_count(&w.shape) : 0;
    l.w = w;
    return l;
}

/* Fixed sizes: each copy is one load and one store. */
#define COPY_EACH(size)                                                                            \
    for (int64_t i = 0; i < l->n; i++)                                                             \
        memcpy(to + i * l->dst * (size), from + i * l->src * (size), (size));                      \
    break

static void copy_run(const struct loops *l, char *to, const char *from, size_t size)
{
    if (l->src == 1 && l->dst == 1) {
        memcpy(to, from, (size_t)l->n * size);
        return;
    }
    switch (size) {
    case 1:
        COPY_EACH(1);
    case 2:
        COPY_EACH(2);
    case 4:
        COPY_EACH(4);
    default:
        COPY_EACH(8);
    }
}

void ew_move_copy(const struct ew_move *m, const struct ew_tensor *src, struct ew_tensor *dst)
{
    const int64_t size = (int64_t)ew_dtype_size(src->dtype);
    struct loops l = merge(m);
    for (int64_t i = 0; i < l.outer; i++, ew_walk_next(&l.w))
        copy_run(&l, (char *)dst->data + l.w.pos[1] * size,
                 (const char *)src->data + l.w.pos[0] * size, (size_t)size);
}

#define ADD_EACH(T)                                                                                \
    for (int64_t k = 0; k < l.outer; k++, ew_walk_next(&l.w)) {                                    \
        T *to = (T *)dsrc->data + l.w.pos[0];                                                      \
        const T *from = (const T *)ddst->data + l.w.pos[1];                                        \
        for (int64_t i = 0; i < l.n; i++)                                                          \
            to[i * l.src] += from[i * l.dst];                                                      \
    }

void ew_move_back(const struct ew_move *m, struct ew_tensor *dsrc, const struct ew_tensor *ddst)
{
    struct loops l = merge(m);
    EW_ASSERT(dsrc->dtype == EW_F32 || dsrc->dtype == EW_F64);
    if (dsrc->dtype == EW_F32)
        ADD_EACH(float)
    else
        ADD_EACH(double)
}

void ew_move_either(const struct ew_move *m, const struct ew_call *c, bool back)
{
    if (back)
        ew_move_back(m, c->din[0], c->dout[0]);
    else
        ew_move_copy(m, c->in[0], c->out[0]);
}

void ew_element_copy(const struct ew_tensor *src, int64_t from, struct ew_tensor *dst, int64_t to)
{
    const int64_t size = (int64_t)ew_dtype_size(src->dtype);
    memcpy((char *)dst->data + to * size, (const char *)src->data + from * size, (size_t)size);
}

void ew_element_add(const struct ew_tensor *src, int64_t from, struct ew_tensor *dst, int64_t to)
{
    const double g = ew_tensor_get(src, from);
    ew_tensor_accumulate(dst, to, 1, &g);
}

ew_err ew_view_forward(const struct ew_call *c)
{
    const size_t bytes = ew_tensor_bytes(c->in[0]);
    if (bytes && c->out[0]->data != c->in[0]->data)
        memcpy(c->out[0]->data, c->in[0]->data, bytes);
    return EW_OK;
}

ew_err ew_view_backward(const struct ew_call *c)
{
    if (!c->din[0] || !c->dout[0])
        return EW_OK;
    const struct ew_shape flat = {1, {ew_tensor_count(c->din[0])}};
    const struct ew_move m = ew_move_box(&flat, &flat, &flat);
    ew_move_back(&m, c->din[0], c->dout[0]);
    return EW_OK;
}

void ew_move_cost(const struct ew_call *c, struct ew_cost *out)
{
}
