/* SPDX-License-Identifier: Apache-2.0 */
/* Generates random graphs in two layouts.  A choice that does not fit the drawn value adds
 * nothing. */
#include "random_layout.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "graph/layout.h"
#include "op/blocks.h"
#include "op/conv.h"
#include "op/math_attr.h"
#include "op/norm.h"
#include "op/pooling.h"
#include "op/quant.h"
#include "op/shape_attr.h"
#include "twin_graph.h"

#define MOST_VALUES   48
#define MOST_ELEMENTS 6000 /* per value, since the references are slow */
#define MOST_RANK     5
#define CLASSES       5

static const struct ew_pair absent = {-1, -1};

struct builder {
    struct ew_twin t;
    struct ew_rng rng;
    const struct ew_random_layout *o;
    struct ew_pair values[MOST_VALUES]; /* float32, candidates for inputs */
    int n_values;
    struct ew_pair filters[MOST_VALUES]; /* of convolutions, candidates for sharing */
    int n_filters;
};

/* ---- Random choices ---- */

static int64_t draw(struct builder *m, int64_t least, int64_t most)
{
    return least + (int64_t)ew_rng_next_below(&m->rng, (uint64_t)(most - least + 1));
}

static bool chance(struct builder *m, int one_in)
{
    return draw(m, 1, one_in) == 1;
}

static struct ew_pair pick(struct builder *m)
{
    const int64_t back = chance(m, 3) ? draw(m, 0, m->n_values - 1) : draw(m, 0, m->n_values > 2);
    return m->values[m->n_values - 1 - (int)back];
}

/* A copy, since adding values moves the array. */
static struct ew_shape shape_of(const struct builder *m, struct ew_pair v)
{
    return m->t.plain->values[v.plain].t.shape;
}

/* The first axis that nodes may change. */
static int first_axis(const struct builder *m)
{
    return m->o->any_batch ? 1 : 0;
}

/* A random axis as written in files, sometimes negative; returns its size, or -1 if there is
 * none. */
static int64_t draw_axis(struct builder *m, const struct ew_shape *s, int *axis)
{
    if (s->rank <= first_axis(m))
        return -1;
    *axis = (int)draw(m, first_axis(m), s->rank - 1);
    return s->dim[*axis];
}

static int64_t written_axis(struct builder *m, const struct ew_shape *s, int axis)
{
    return chance(m, 3) ? axis - s->rank : axis;
}

static bool quantises(const struct builder *m)
{
    return m->o->seed % 8 > 5 && !m->o->trainable;
}

/* ---- Both graphs at once ---- */

static ew_err keep(struct builder *m, struct ew_pair v)
{
    const struct ew_shape s = shape_of(m, v);
    if (ew_shape_count(&s) > MOST_ELEMENTS || s.rank > MOST_RANK)
        return EW_OK;
    if (m->n_values == MOST_VALUES) {
        m->n_values--;
        memmove(&m->values[1], &m->values[2], (MOST_VALUES - 2) * sizeof(m->values[0]));
    }
    m->values[m->n_values++] = v;
    return EW_OK;
}

/* A layout-dependent node. */
static ew_err spatial(struct builder *m, const char *op, const void *attr, const struct ew_pair *in,
                      int n)
{
    struct ew_pair out;
    EW_TRY(ew_twin_spatial(&m->t, op, attr, in, n, &out));
    return keep(m, out);
}

static ew_err add(struct builder *m, const char *op, const void *attr, const struct ew_pair *in,
                  int n)
{
    struct ew_pair out;
    EW_TRY(ew_twin_node(&m->t, op, attr, in, n, &out, 1));
    return keep(m, out);
}

/* Normally distributed values times `scale`, plus `shift`. */
static ew_err numbers(struct builder *m, enum ew_value_kind kind, struct ew_shape shape,
                      double scale, double shift, struct ew_pair *out)
{
    const int64_t n = ew_shape_count(&shape);
    EW_CLEANUP(ew_free_ptr) float *data = calloc((size_t)n + 1, sizeof(*data));
    EW_CHECK(data, EW_ERR_MEMORY, "no memory for weights");
    for (int64_t i = 0; i < n; i++) {
        data[i] = (float)(scale * ew_rng_next_normal(&m->rng) + shift);
        if (kind == EW_VALUE_STATE)
            data[i] = fabsf(data[i]) + (float)scale / 2;
    }
    const struct ew_tensor t = {.dtype = EW_F32, .shape = shape, .data = data};
    return ew_twin_const(&m->t, kind, &t, out);
}

/* ---- Layout-dependent nodes ---- */

static ew_err filters(struct builder *m, const struct ew_shape *s, struct ew_pair *out)
{
    for (int i = 0; i < m->n_filters && chance(m, 2); i++)
        if (ew_shape_equal(&m->t.file->values[m->filters[i].file].t.shape, s)) {
            *out = m->filters[i];
            return EW_OK;
        }
    const int64_t n = ew_shape_count(s);
    const double scale = 1 / sqrt((double)ew_shape_span(s, 1, s->rank) + 1);
    EW_CLEANUP(ew_free_ptr) float *data = calloc((size_t)n + 1, sizeof(*data));
    EW_CHECK(data, EW_ERR_MEMORY, "no memory for weights");
    for (int64_t i = 0; i < n; i++)
        data[i] = (float)(scale * ew_rng_next_normal(&m->rng));
    const struct ew_tensor t = {.dtype = EW_F32, .shape = *s, .data = data};
    EW_TRY(ew_twin_filters(&m->t, EW_VALUE_PARAM, &t, out));
    if (m->n_filters < MOST_VALUES)
        m->filters[m->n_filters++] = *out;
    return EW_OK;
}

/* 8-bit filters with a scale per output channel, dequantised. */
static ew_err quantised_filters(struct builder *m, const struct ew_shape *s, struct ew_pair *out)
{
    struct ew_pair in[2];
    const int64_t n = ew_shape_count(s);
    EW_CLEANUP(ew_free_ptr) int8_t *data = calloc((size_t)n + 1, 1);
    EW_CHECK(data, EW_ERR_MEMORY, "no memory for weights");
    for (int64_t i = 0; i < n; i++)
        data[i] = (int8_t)draw(m, -127, 127);
    const struct ew_tensor t = {.dtype = EW_S8, .shape = *s, .data = data};
    const struct ew_quant_attr a = {.axis = 0, .dtype = EW_S8};
    EW_TRY(ew_twin_filters(&m->t, EW_VALUE_CONST, &t, &in[0]));
    EW_TRY(numbers(m, EW_VALUE_STATE, (struct ew_shape){1, {s->dim[0]}}, 0.002, 0, &in[1]));
    return ew_twin_node(&m->t, "dequantize_linear", &a, in, 2, out, 1);
}

static bool is_image(const struct ew_shape *s)
{
    return s->rank >= 3 && ew_shape_count(s) > 0;
}

static ew_err add_conv(struct builder *m)
{
    struct ew_pair in[3] = {pick(m), absent, absent};
    const struct ew_shape shape = shape_of(m, in[0]), *s = &shape;
    if (!is_image(s))
        return EW_OK;
    const int dims = s->rank - 2;
    struct ew_conv_attr a = {.win = {.stride = {.n = dims}, .pad = {.n = 2 * dims}}, .groups = 1};
    struct ew_shape w = {s->rank, {draw(m, 1, chance(m, 2) ? 4 : 17), s->dim[1]}};
    if (chance(m, 3)) {
        a.groups = s->dim[1];
        w.dim[0] = s->dim[1] * draw(m, 1, 2);
        w.dim[1] = 1;
    }
    for (int i = 0; i < dims; i++) {
        const int64_t k = w.dim[2 + i] = chance(m, 3) ? 1 : draw(m, 1, 3);
        a.win.stride.v[i] = chance(m, 3) ? 2 : 1;
        a.win.pad.v[i] = a.win.pad.v[i + dims] = chance(m, 4) ? 0 : k / 2;
        if (s->dim[2 + i] + 2 * a.win.pad.v[i] < k)
            return EW_OK;
    }
    if (quantises(m) && !chance(m, 4))
        EW_TRY(quantised_filters(m, &w, &in[1]));
    else
        EW_TRY(filters(m, &w, &in[1]));
    if (chance(m, 2))
        EW_TRY(numbers(m, EW_VALUE_PARAM, (struct ew_shape){1, {w.dim[0]}}, 0.3, 0, &in[2]));
    return spatial(m, "conv", &a, in, in[2].file < 0 ? 2 : 3);
}

static ew_err add_conv_transpose(struct builder *m)
{
    struct ew_pair in[3] = {pick(m), absent, absent};
    const struct ew_shape shape = shape_of(m, in[0]), *s = &shape;
    if (!is_image(s))
        return EW_OK;
    const int dims = s->rank - 2;
    struct ew_conv_transpose_attr a = {.win = {.stride = {.n = dims}}, .groups = 1};
    struct ew_shape w = {s->rank, {s->dim[1], draw(m, 1, 9)}};
    if (chance(m, 3)) {
        a.groups = s->dim[1];
        w.dim[1] = 1;
    }
    for (int i = 0; i < dims; i++) {
        w.dim[2 + i] = draw(m, 1, 3);
        a.win.stride.v[i] = draw(m, 1, 2);
    }
    EW_TRY(filters(m, &w, &in[1]));
    if (chance(m, 2))
        EW_TRY(numbers(m, EW_VALUE_PARAM, (struct ew_shape){1, {w.dim[1] * a.groups}}, 0.3, 0,
                       &in[2]));
    return spatial(m, "conv_transpose", &a, in, in[2].file < 0 ? 2 : 3);
}

static ew_err add_norm(struct builder *m)
{
    struct ew_pair in[5] = {pick(m)};
    const struct ew_shape shape = shape_of(m, in[0]), *s = &shape, each = {1, {s->dim[1]}};
    if (!is_image(s))
        return EW_OK;
    for (int i = 1; i < 5; i++)
        EW_TRY(numbers(m, i < 3 ? EW_VALUE_PARAM : EW_VALUE_STATE, each, 0.2, i == 1 || i == 4,
                       &in[i]));
    return spatial(m, "batch_norm", NULL, in, 5);
}

static ew_err add_instance_norm(struct builder *m)
{
    struct ew_pair in[3] = {pick(m), absent, absent};
    const struct ew_shape shape = shape_of(m, in[0]), *s = &shape, each = {1, {s->dim[1]}};
    /* Normalising a channel of one element, or of equal ones, amplifies rounding errors. */
    if (!is_image(s) || ew_shape_span(s, 2, s->rank) < 4)
        return EW_OK;
    EW_TRY(numbers(m, EW_VALUE_PARAM, each, 0.2, 1, &in[1]));
    EW_TRY(numbers(m, EW_VALUE_PARAM, each, 0.2, 0, &in[2]));
    const struct ew_group_norm_attr a = {.eps = 0.1};
    return spatial(m, "instance_norm", &a, in, 3);
}

static ew_err add_pool(struct builder *m)
{
    static const char *const global[] = {"global_average_pool", "global_max_pool"};
    const struct ew_pair x = pick(m);
    const struct ew_shape shape = shape_of(m, x), *s = &shape;
    if (!is_image(s))
        return EW_OK;
    if (chance(m, 4))
        return spatial(m, global[draw(m, 0, 1)], NULL, &x, 1);
    const int dims = s->rank - 2;
    struct ew_pool_attr a = {.win = {.kernel = {.n = dims}, .stride = {.n = dims}}};
    for (int i = 0; i < dims; i++) {
        a.win.kernel.v[i] = draw(m, 1, 3);
        a.win.stride.v[i] = draw(m, 1, 2);
        if (s->dim[2 + i] < a.win.kernel.v[i])
            return EW_OK;
    }
    return spatial(m, chance(m, 2) ? "max_pool" : "average_pool", &a, &x, 1);
}

static ew_err add_blocks(struct builder *m)
{
    const struct ew_pair x = pick(m);
    const struct ew_shape shape = shape_of(m, x), *s = &shape;
    const struct ew_blocks_attr a = {.size = 2, .mode = (int)draw(m, 0, 1)}, down = {.size = 2};
    if (!is_image(s) || s->rank != 4)
        return EW_OK;
    if (s->dim[1] % 4 == 0)
        return spatial(m, "depth_to_space", &a, &x, 1);
    if (s->dim[2] % 2 == 0 && s->dim[3] % 2 == 0)
        return spatial(m, "space_to_depth", &down, &x, 1);
    return EW_OK;
}

/* ---- Element-wise nodes ---- */

static ew_err add_unary(struct builder *m)
{
    static const char *const names[] = {"relu", "relu",     "leaky_relu", "sigmoid", "hard_swish",
                                        "tanh", "identity", "neg",        "abs",     "silu"};
    const struct ew_pair x = pick(m);
    return add(m, names[draw(m, 0, (int64_t)EW_COUNT(names) - 1)], NULL, &x, 1);
}

/* A constant that broadcasts with a value: fewer axes, or ones. */
static ew_err partner(struct builder *m, struct ew_pair to, struct ew_pair *out)
{
    const struct ew_shape shape = shape_of(m, to), *s = &shape;
    struct ew_shape t = *s;
    const int gone = (int)draw(m, 0, s->rank);
    t.rank -= gone;
    for (int i = 0; i < t.rank; i++) {
        t.dim[i] = s->dim[i + gone];
        if (chance(m, 3) || (m->o->any_batch && i + gone == 0))
            t.dim[i] = 1;
    }
    return numbers(m, EW_VALUE_CONST, t, 0.5, 0.2, out);
}

static bool combine(const struct builder *m, struct ew_pair a, struct ew_pair b)
{
    const struct ew_shape shape = shape_of(m, a), *s = &shape, other = shape_of(m, b), *t = &other;
    for (int i = 1; i <= s->rank && i <= t->rank; i++) {
        const int64_t x = s->dim[s->rank - i], y = t->dim[t->rank - i];
        if (x != y && x != 1 && y != 1)
            return false;
    }
    /* The batch must stay the first axis. */
    return !m->o->any_batch || s->rank == t->rank;
}

static ew_err add_pair(struct builder *m)
{
    static const char *const names[] = {"add", "add", "mul", "sub", "max", "min"};
    struct ew_pair in[2] = {pick(m), absent};
    for (int tries = 0; tries < 12 && in[1].file < 0; tries++) {
        const struct ew_pair y = m->values[draw(m, 0, m->n_values - 1)];
        if (combine(m, in[0], y))
            in[1] = y;
    }
    if (in[1].file < 0 || chance(m, 3))
        EW_TRY(partner(m, in[0], &in[1]));
    if (chance(m, 2)) {
        const struct ew_pair other = in[0];
        in[0] = in[1];
        in[1] = other;
    }
    return add(m, names[draw(m, 0, (int64_t)EW_COUNT(names) - 1)], NULL, in, 2);
}

static ew_err add_where(struct builder *m)
{
    struct ew_pair in[3] = {absent, pick(m), absent}, less[2];
    EW_TRY(partner(m, in[1], &in[2]));
    EW_TRY(partner(m, in[1], &less[0]));
    EW_TRY(partner(m, in[1], &less[1]));
    EW_TRY(ew_twin_node(&m->t, "less", NULL, less, 2, &in[0], 1));
    return add(m, "where", NULL, in, 3);
}

/* ---- Along axes ---- */

static ew_err add_softmax(struct builder *m)
{
    int axis;
    const struct ew_pair x = pick(m);
    const struct ew_shape shape = shape_of(m, x), *s = &shape;
    if (draw_axis(m, s, &axis) <= 0)
        return EW_OK;
    const struct ew_softmax_attr a = {.axis = written_axis(m, s, axis)};
    return add(m, "softmax", &a, &x, 1);
}

static ew_err add_reduce(struct builder *m)
{
    static const char *const names[] = {"reduce_mean", "reduce_sum", "reduce_max", "reduce_l2"};
    struct ew_pair in[2] = {pick(m), absent};
    const struct ew_shape shape = shape_of(m, in[0]), *s = &shape;
    int64_t axes[EW_MAX_RANK];
    int n = 0;
    for (int i = first_axis(m); i < s->rank; i++)
        if (chance(m, 2))
            axes[n++] = written_axis(m, s, i);
    if (n == 0 || ew_shape_count(s) == 0)
        return EW_OK;
    EW_TRY(ew_twin_ints(&m->t, axes, n, &in[1]));
    const struct ew_reduce_attr a = {.keepdims = chance(m, 2)};
    return add(m, names[draw(m, 0, (int64_t)EW_COUNT(names) - 1)], &a, in, 2);
}

static ew_err add_concat(struct builder *m)
{
    int axis, n = 1;
    struct ew_pair in[4] = {pick(m)};
    const struct ew_shape shape = shape_of(m, in[0]), *s = &shape;
    if (draw_axis(m, s, &axis) < 0)
        return EW_OK;
    for (int tries = 0; tries < 12 && n < 4; tries++) {
        const struct ew_pair y = m->values[draw(m, 0, m->n_values - 1)];
        struct ew_shape t = shape_of(m, y);
        if (t.rank == s->rank)
            t.dim[axis] = s->dim[axis];
        if (ew_shape_equal(s, &t) && chance(m, 2))
            in[n++] = y;
    }
    const struct ew_concat_attr a = {.axis = written_axis(m, s, axis)};
    return add(m, "concat", &a, in, n);
}

static ew_err add_split(struct builder *m)
{
    int axis;
    struct ew_pair in[2] = {pick(m), absent}, out[3];
    const struct ew_shape shape = shape_of(m, in[0]), *s = &shape;
    const int64_t size = draw_axis(m, s, &axis);
    if (size < 2)
        return EW_OK;
    const int n = size > 2 ? (int)draw(m, 2, 3) : 2;
    const int64_t first = draw(m, 1, size - n + 1),
                  second = n == 2 ? size - first : draw(m, 1, size - first - 1),
                  sizes[] = {first, second, size - first - second};
    EW_TRY(ew_twin_ints(&m->t, sizes, n, &in[1]));
    const struct ew_split_attr a = {.axis = written_axis(m, s, axis)};
    EW_TRY(ew_twin_node(&m->t, "split", &a, in, 2, out, n));
    for (int i = 0; i < n; i++)
        if (!chance(m, 4))
            EW_TRY(keep(m, out[i]));
    return EW_OK;
}

static ew_err add_slice(struct builder *m)
{
    int axis;
    struct ew_pair in[5] = {pick(m)};
    const struct ew_shape shape = shape_of(m, in[0]), *s = &shape;
    const int64_t size = draw_axis(m, s, &axis);
    if (size < 1)
        return EW_OK;
    const bool back = chance(m, 4), empty = chance(m, 24);
    const int64_t start = back ? size - 1 : draw(m, 0, size - 1),
                  end = empty  ? start
                        : back ? -size - 1
                               : draw(m, start + 1, size + 1),
                  step = back ? -draw(m, 1, 2) : draw(m, 1, 2), at = written_axis(m, s, axis);
    EW_TRY(ew_twin_ints(&m->t, &start, 1, &in[1]));
    EW_TRY(ew_twin_ints(&m->t, &end, 1, &in[2]));
    EW_TRY(ew_twin_ints(&m->t, &at, 1, &in[3]));
    EW_TRY(ew_twin_ints(&m->t, &step, 1, &in[4]));
    return add(m, "slice", NULL, in, 5);
}

static ew_err add_gather(struct builder *m)
{
    int axis;
    struct ew_pair in[2] = {pick(m), absent};
    const struct ew_shape shape = shape_of(m, in[0]), *s = &shape;
    const int64_t size = draw_axis(m, s, &axis);
    int64_t list[4] = {0};
    if (size < 1)
        return EW_OK;
    struct ew_tensor t = {.dtype = EW_S64, .data = list};
    if (!chance(m, 3)) /* else a scalar index, which removes the axis */
        t.shape = (struct ew_shape){1, {draw(m, 1, 4)}};
    for (int i = 0; i < 4; i++)
        list[i] = draw(m, -size, size - 1);
    EW_TRY(ew_twin_const(&m->t, EW_VALUE_CONST, &t, &in[1]));
    const struct ew_gather_attr a = {.axis = written_axis(m, s, axis)};
    return add(m, "gather", &a, in, 2);
}

/* ---- Shapes ---- */

static ew_err add_transpose(struct builder *m)
{
    const struct ew_pair x = pick(m);
    const int rank = shape_of(m, x).rank, first = first_axis(m);
    struct ew_transpose_attr a = {.perm = {.n = rank}};
    for (int i = 0; i < rank; i++)
        a.perm.v[i] = i;
    for (int i = rank - 1; i > first; i--) {
        const int k = (int)draw(m, first, i);
        const int64_t other = a.perm.v[i];
        a.perm.v[i] = a.perm.v[k];
        a.perm.v[k] = other;
    }
    return rank > first ? add(m, "transpose", &a, &x, 1) : EW_OK;
}

/* Merges adjacent axes, or splits one. */
static ew_err add_reshape(struct builder *m)
{
    struct ew_pair in[2] = {pick(m), absent};
    const struct ew_shape shape = shape_of(m, in[0]), *s = &shape;
    int axis, n = 0;
    int64_t to[EW_MAX_RANK + 1];
    const int64_t size = draw_axis(m, s, &axis);
    if (size < 1 || ew_shape_count(s) == 0)
        return EW_OK;
    int64_t d = draw(m, 1, size);
    d = size % d == 0 ? d : 1;
    const bool join = chance(m, 2) && axis + 1 < s->rank;
    for (int i = 0; i < s->rank; i++) {
        if (i == axis && join) {
            to[n++] = size * s->dim[++i];
        } else if (i == axis) {
            to[n++] = d;
            to[n++] = size / d;
        } else {
            to[n++] = i == 0 && m->o->any_batch ? 0 : s->dim[i];
        }
    }
    if (n > 1 && chance(m, 3) && (to[0] == 0 || !m->o->any_batch))
        to[n - 1] = -1;
    EW_TRY(ew_twin_ints(&m->t, to, n, &in[1]));
    return add(m, "reshape", NULL, in, 2);
}

static ew_err add_axis_of_one(struct builder *m)
{
    struct ew_pair in[2] = {pick(m), absent};
    const struct ew_shape shape = shape_of(m, in[0]), *s = &shape;
    for (int64_t i = first_axis(m); i < s->rank; i++)
        if (s->dim[i] == 1 && chance(m, 2)) {
            EW_TRY(ew_twin_ints(&m->t, &i, 1, &in[1]));
            return add(m, "squeeze", NULL, in, 2);
        }
    EW_TRY(ew_twin_ints(&m->t, &(int64_t){draw(m, first_axis(m), s->rank)}, 1, &in[1]));
    return s->rank < MOST_RANK ? add(m, "unsqueeze", NULL, in, 2) : EW_OK;
}

static ew_err add_pad(struct builder *m)
{
    struct ew_pair in[2] = {pick(m), absent};
    const struct ew_shape shape = shape_of(m, in[0]), *s = &shape;
    int64_t pads[2 * EW_MAX_RANK] = {0};
    for (int i = first_axis(m); i < s->rank; i++) {
        pads[i] = chance(m, 3) ? draw(m, 0, 2) : 0;
        pads[i + s->rank] = chance(m, 3) ? draw(m, s->dim[i] > 2 ? -1 : 0, 2) : 0;
    }
    EW_TRY(ew_twin_ints(&m->t, pads, 2 * s->rank, &in[1]));
    const struct ew_pad_attr a = {.mode = chance(m, 3) && ew_shape_count(s) ? EW_PAD_EDGE
                                                                            : EW_PAD_CONSTANT};
    return s->rank ? add(m, "pad", &a, in, 2) : EW_OK;
}

static ew_err add_tile(struct builder *m)
{
    struct ew_pair in[2] = {pick(m), absent};
    const struct ew_shape shape = shape_of(m, in[0]), *s = &shape;
    int64_t times[EW_MAX_RANK];
    for (int i = 0; i < s->rank; i++)
        times[i] = i >= first_axis(m) && chance(m, 3) ? 2 : 1;
    EW_TRY(ew_twin_ints(&m->t, times, s->rank, &in[1]));
    return s->rank ? add(m, "tile", NULL, in, 2) : EW_OK;
}

static ew_err add_expand(struct builder *m)
{
    struct ew_pair in[2] = {pick(m), absent};
    const struct ew_shape shape = shape_of(m, in[0]), *s = &shape;
    int64_t to[EW_MAX_RANK];
    for (int i = 0; i < s->rank; i++)
        to[i] = s->dim[i] == 1 && i >= first_axis(m) && chance(m, 2) ? draw(m, 1, 3) : 1;
    EW_TRY(ew_twin_ints(&m->t, to, s->rank, &in[1]));
    return add(m, "expand", NULL, in, 2);
}

/* ---- Matrices ---- */

static ew_err add_matmul(struct builder *m)
{
    struct ew_pair in[2] = {pick(m), absent};
    const struct ew_shape shape = shape_of(m, in[0]), *s = &shape;
    if (s->rank < 1 + first_axis(m) || ew_shape_count(s) == 0)
        return EW_OK;
    const int64_t k = s->dim[s->rank - 1];
    EW_TRY(numbers(m, EW_VALUE_PARAM, (struct ew_shape){2, {k, draw(m, 1, 9)}},
                   1 / sqrt((double)k + 1), 0, &in[1]));
    return add(m, "matmul", NULL, in, 2);
}

/* ---- Eight bits ---- */

/* Quantises, moves, pools, dequantises; sometimes dequantised twice. */
static ew_err add_quantised(struct builder *m)
{
    struct ew_pair in[3] = {pick(m), absent, absent}, one;
    const struct ew_shape shape = shape_of(m, in[0]), *s = &shape;
    const bool bytes = chance(m, 2);
    const int64_t zero = bytes ? draw(m, 96, 160) : draw(m, -32, 32);
    float scale = 0.03f;
    uint8_t byte = 0;
    struct ew_tensor z = {.dtype = bytes ? EW_U8 : EW_S8, .data = &byte},
                     f = {.dtype = EW_F32, .data = &scale};
    ew_tensor_store_int(&z, 0, 1, &zero);
    const struct ew_quant_attr a = {.axis = 1, .dtype = (int)z.dtype};
    EW_TRY(ew_twin_const(&m->t, EW_VALUE_CONST, &f, &in[1]));
    EW_TRY(ew_twin_const(&m->t, EW_VALUE_CONST, &z, &in[2]));
    EW_TRY(ew_twin_node(&m->t, "quantize_linear", &a, in, 3, &in[0], 1));
    if (s->rank > 1 && chance(m, 2)) {
        struct ew_transpose_attr t = {.perm = {.n = s->rank}};
        for (int i = 0; i < s->rank; i++)
            t.perm.v[i] = i + 2 < s->rank || s->rank - 2 < first_axis(m) ? i : 2 * s->rank - 3 - i;
        EW_TRY(ew_twin_node(&m->t, "transpose", &t, in, 1, &in[0], 1));
    }
    if (chance(m, 2)) {
        EW_TRY(ew_twin_node(&m->t, "dequantize_linear", &a, in, 3, &one, 1));
        EW_TRY(keep(m, one));
    }
    if (chance(m, 3))
        EW_TRY(ew_twin_node(&m->t, "identity", NULL, in, 1, &in[0], 1));
    return add(m, "dequantize_linear", &a, in, 3);
}

/* ---- Graph ---- */

static ew_err add_something(struct builder *m)
{
    static ew_err (*const kinds[])(struct builder *) = {
        add_conv_transpose, add_instance_norm, add_pad,     add_tile,        add_conv,
        add_conv,           add_conv,          add_norm,    add_pool,        add_unary,
        add_unary,          add_pair,          add_pair,    add_where,       add_softmax,
        add_reduce,         add_concat,        add_split,   add_slice,       add_slice,
        add_gather,         add_transpose,     add_reshape, add_axis_of_one, add_expand,
        add_matmul,         add_blocks};
    if (quantises(m) && chance(m, 4))
        return add_quantised(m);
    return kinds[draw(m, 0, (int64_t)EW_COUNT(kinds) - 1)](m);
}

static ew_err output(struct builder *m, struct ew_pair v)
{
    for (int i = 0; i < m->t.file->n_outputs; i++)
        if (m->t.file->outputs[i] == v.file)
            return EW_OK;
    EW_TRY(ew_graph_output(m->t.file, v.file));
    return ew_graph_output(m->t.plain, v.plain);
}

/* Turns the last non-empty value into scores [N, classes]. */
static ew_err add_scores(struct builder *m)
{
    struct ew_pair in[2];
    const struct ew_flatten_attr flat = {.axis = 1};
    int last = m->n_values;
    struct ew_shape s;
    do
        s = shape_of(m, m->values[--last]);
    while (ew_shape_count(&s) == 0);
    EW_TRY(ew_twin_node(&m->t, "flatten", &flat, &m->values[last], 1, &in[0], 1));
    const int64_t k = shape_of(m, in[0]).dim[1];
    EW_TRY(numbers(m, EW_VALUE_PARAM, (struct ew_shape){2, {k, CLASSES}}, 1 / sqrt((double)k + 1),
                   0, &in[1]));
    EW_TRY(ew_twin_node(&m->t, "matmul", NULL, in, 2, &in[0], 1));
    return output(m, in[0]);
}

/* Outputs: the last value, and some inner values, inputs and constants. */
static ew_err add_outputs(struct builder *m)
{
    struct ew_pair extra;
    if (m->o->trainable)
        return add_scores(m);
    EW_TRY(output(m, m->values[m->n_values - 1]));
    for (int i = (int)draw(m, 0, 3); i > 0; i--)
        EW_TRY(output(m, pick(m)));
    if (chance(m, 8))
        EW_TRY(output(m, m->values[0]));
    if (!chance(m, 8))
        return EW_OK;
    EW_TRY(numbers(m, EW_VALUE_CONST, (struct ew_shape){2, {2, 3}}, 1, 0, &extra));
    return output(m, extra);
}

static ew_err input(struct builder *m, const char *name, const struct ew_shape *s)
{
    struct ew_pair x;
    EW_TRY(ew_graph_input(m->t.file, name, EW_F32, s, &x.file));
    EW_TRY(ew_graph_input(m->t.plain, name, EW_F32, s, &x.plain));
    m->t.file->values[x.file].dynamic = m->t.plain->values[x.plain].dynamic = m->o->any_batch;
    return keep(m, x);
}

static ew_err make(struct builder *m)
{
    const int nodes = m->o->nodes ? m->o->nodes : (int)draw(m, 1, 24);
    struct ew_shape s = {4, {draw(m, 1, 3), draw(m, 1, 12), draw(m, 1, 9), draw(m, 1, 9)}};
    if (chance(m, 4))
        s = (struct ew_shape){5, {s.dim[0], draw(m, 1, 6), draw(m, 1, 4), s.dim[2] / 2 + 1, 4}};
    if (chance(m, 6))
        s.rank = 3;
    EW_TRY(input(m, "x", &s));
    if (chance(m, 4))
        EW_TRY(input(m, "z", &s));
    while (m->t.file->n_nodes < nodes)
        EW_TRY(add_something(m));
    EW_TRY(add_outputs(m));
    /* as in the importer */
    EW_TRY(ew_graph_keep_known(m->t.file));
    EW_TRY(ew_graph_sweep(m->t.file));
    EW_TRY(ew_graph_find_shuffles(m->t.file));
    EW_TRY(ew_graph_channels_last(m->t.file));
    EW_TRY(ew_graph_sweep(m->t.file));
    EW_TRY(ew_graph_infer(m->t.file));
    return ew_graph_infer(m->t.plain);
}

ew_err ew_random_layout(const struct ew_random_layout *o, struct ew_graph **file,
                        struct ew_graph **plain)
{
    struct builder m = {.o = o, .rng = {.seed = o->seed}};
    ew_err e = ew_graph_new("file", &m.t.file);
    if (e == EW_OK)
        e = ew_graph_new("plain", &m.t.plain);
    if (e == EW_OK)
        e = make(&m);
    if (e == EW_OK) {
        *file = m.t.file;
        *plain = m.t.plain;
        return EW_OK;
    }
    ew_graph_free(m.t.file);
    ew_graph_free(m.t.plain);
    return e;
}
