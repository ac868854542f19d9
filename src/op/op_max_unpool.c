/* SPDX-License-Identifier: Apache-2.0 */
/* MaxUnpool: scatters elements to the positions of the maxima of a max pool, zeros elsewhere.
 *
 * in: x, Indices of max_pool (positions in [N, C, d...], whatever the layout in memory), and
 * optionally the output's shape, also in ONNX's order [N, C, d...].  Indices refer to the size that
 * the window implies, even if the output is larger. */
#include <string.h>

#include "op/types.h"
#include "op/window.h"

struct ew_max_unpool_attr {
    struct ew_window_attr win; /* dilation and auto_pad are unused */
};

enum { X, INDICES, SHAPE };

/* clang-format off */
static const struct ew_field attrs[] = {
    EW_WINDOW_INTS(struct ew_max_unpool_attr, win, kernel, 1, "size of the window"),
    EW_WINDOW_INTS(struct ew_max_unpool_attr, win, stride, 1, "step of the window; empty: 1"),
    EW_WINDOW_INTS(struct ew_max_unpool_attr, win, pad, 0, "padding of the pool; empty: none"),
    EW_FIELD_END};
/* clang-format on */

/* w->in: the size that the window implies; w->out: x's. */
static ew_err resolve(const struct ew_call *c, struct ew_window *w)
{
    const struct ew_max_unpool_attr *a = c->attr;
    const struct ew_shape *x = &c->in[X]->shape;
    EW_TRY(ew_spatial_check(c->in[X]));
    EW_CHECK(a->win.kernel.n == x->rank - 2, EW_ERR_SHAPE, "kernel has %d entries, %d are needed",
             (int)a->win.kernel.n, x->rank - 2);
    EW_CHECK(ew_shape_equal(x, &c->in[INDICES]->shape), EW_ERR_SHAPE,
             "x and its indices differ in shape");
    EW_TRY(ew_window_fill(&a->win, x, a->win.kernel.v, w));
    for (int d = EW_WINDOW_DIMS - (x->rank - 2); d < EW_WINDOW_DIMS; d++) {
        w->out[d] = w->in[d];
        int64_t size;
        EW_CHECK(!__builtin_mul_overflow(w->in[d] - 1, w->stride[d], &size) && size < (int64_t)1
                                                                                          << 60,
                 EW_ERR_LIMIT, "stride %lld makes the output too large", (long long)w->stride[d]);
        size += w->kernel[d] - w->pad[d] - w->pad_end[d];
        EW_CHECK(size > 0, EW_ERR_SHAPE, "padding of %lld and %lld leaves nothing of the output",
                 (long long)w->pad[d], (long long)w->pad_end[d]);
        w->in[d] = size;
    }
    return EW_OK;
}

/* Spatial size of the output in three dimensions. */
static ew_err output_size(const struct ew_call *c, const struct ew_window *w, int64_t *size)
{
    const struct ew_shape *x = &c->in[X]->shape;
    const struct ew_tensor *shape = ew_call_in(c, SHAPE);
    const int n = x->rank - 2;
    struct ew_ints list;
    memcpy(size, w->in, sizeof(w->in));
    if (!shape)
        return EW_OK;
    EW_TRY(ew_tensor_ints(shape, "output_shape", &list));
    EW_CHECK(list.n == x->rank && list.v[0] == w->batch && list.v[1] == w->channels, EW_ERR_SHAPE,
             "output_shape does not begin with %lld images of %lld channels", (long long)w->batch,
             (long long)w->channels);
    for (int i = 0; i < n; i++) {
        const int d = EW_WINDOW_DIMS - n + i;
        EW_CHECK(list.v[2 + i] >= w->in[d], EW_ERR_SHAPE,
                 "output_shape has %lld where the window needs %lld", (long long)list.v[2 + i],
                 (long long)w->in[d]);
        size[d] = list.v[2 + i];
    }
    return EW_OK;
}

static ew_err infer(const struct ew_call *c)
{
    struct ew_window w;
    int64_t size[EW_WINDOW_DIMS];
    EW_TRY(ew_types_check(c, INDICES, 1 << EW_S64));
    EW_TRY(resolve(c, &w));
    EW_TRY(output_size(c, &w, size));
    const int rank = c->in[X]->shape.rank;
    c->out[0]->shape = c->in[X]->shape;
    for (int i = 1; i < rank - 1; i++)
        c->out[0]->shape.dim[i] = size[EW_WINDOW_DIMS - (rank - 1) + i];
    return EW_OK;
}

/* Moves each element of x to its position in y, or back. */
static ew_err each(const struct ew_call *c, const struct ew_tensor *from, struct ew_tensor *to,
                   bool back)
{
    struct ew_window w;
    int64_t size[EW_WINDOW_DIMS];
    EW_TRY(resolve(c, &w));
    EW_TRY(output_size(c, &w, size));
    const int64_t area = w.in[0] * w.in[1] * w.in[2], count = ew_tensor_count(c->in[X]);
    const int64_t *indices = c->in[INDICES]->data;
    for (int64_t i = 0; i < count; i++) {
        EW_CHECK(indices[i] >= 0 && indices[i] < w.batch * w.channels * area, EW_ERR_ARG,
                 "index %lld is outside the output", (long long)indices[i]);
        const int64_t pixel = indices[i] % area, plane = indices[i] / area;
        int64_t at = plane / w.channels;
        at = at * size[0] + pixel / w.in[2] / w.in[1];
        at = at * size[1] + pixel / w.in[2] % w.in[1];
        at = at * size[2] + pixel % w.in[2];
        at = at * w.channels + plane % w.channels;
        const double v = ew_tensor_get(from, back ? at : i);
        if (back)
            ew_tensor_accumulate(to, i, 1, &v);
        else
            ew_tensor_store(to, at, 1, &v);
    }
    return EW_OK;
}

static ew_err forward(const struct ew_call *c)
{
    memset(c->out[0]->data, 0, ew_tensor_bytes(c->out[0]));
    return each(c, c->in[X], c->out[0], false);
}

static ew_err backward(const struct ew_call *c)
{
    return c->din[X] && c->dout[0] ? each(c, c->dout[0], c->din[X], true) : EW_OK;
}

static const char *const renames[] = {"kernel", "kernel_shape", "stride", "strides",
                                      "pad",    "pads",         NULL};

/* clang-format off */
#define INDEX(shape, text) {shape, EW_S64, EW_FILL_VALUES, .values = text}
static const struct ew_op_case cases[] = {
    {.name = "2x2", .attrs = "kernel=2x2 stride=2x2",
     .in = {{"1x2x2x2"}, INDEX("1x2x2x2", "5,16,7,19,8,26,15,29")}, .n_in = 2,
     .out_shape = "1x4x4x2"},
    {.name = "larger", .attrs = "kernel=2x2 stride=2x2",
     .in = {{"1x2x2x1"}, INDEX("1x2x2x1", "5,7,13,15"),
            {"4", EW_S64, EW_FILL_VALUES, .values = "1,1,5,5", .constant = true}},
     .n_in = 3, .out_shape = "1x5x5x1"},
    {.name = "1-D, padded", .attrs = "kernel=3 stride=2 pad=1x1",
     .in = {{"2x2x1"}, INDEX("2x2x1", "0,2,3,5")}, .n_in = 2, .out_shape = "2x3x1"},
};
/* clang-format on */

const struct ew_op ew_op_max_unpool = {
    .name = "max_unpool",
    .help = "elements back where a max pool found them",
    .flags = EW_OP_SPATIAL,
    .saves = EW_SAVE_IN1,
    .min_in = 2,
    .max_in = 3,
    .known_in = 1 << SHAPE,
    .spatial_in = 1 << INDICES,
    .attr_size = sizeof(struct ew_max_unpool_attr),
    .attrs = attrs,
    .infer = infer,
    .forward = forward,
    .backward = backward,
    .onnx = {.type = "MaxUnpool", .rename = renames},
    EW_OP_CASES(cases),
};
