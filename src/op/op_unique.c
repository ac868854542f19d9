/* SPDX-License-Identifier: Apache-2.0 */
/* Unique: the distinct elements, or slices along an axis, with first indices, inverse indices and
 * counts.  The input must be known at inference, since the size of the output depends on it. */
#include <stdlib.h>
#include <string.h>

#include "graph/onnx.h"
#include "op/types.h"

extern const struct ew_op ew_op_unique;

struct attr {
    int64_t axis; /* of the slices */
    bool flat;    /* elements instead of slices */
    bool sorted;  /* ascending; else by first occurrence */
};

/* clang-format off */
static const struct ew_field attrs[] = {
    {.name = "axis", .type = EW_FIELD_INT, .offset = offsetof(struct attr, axis),
     .help = "along which slices are compared"},
    {.name = "flat", .type = EW_FIELD_BOOL, .offset = offsetof(struct attr, flat), .def = "true",
     .help = "compare elements; the axis means nothing"},
    {.name = "sorted", .type = EW_FIELD_BOOL, .offset = offsetof(struct attr, sorted),
     .def = "true", .help = "ascending; else in the order in which they come"},
    EW_FIELD_END};
/* clang-format on */

/* The input as [outer, count, inner]: slice i is all of [outer, i, inner]. */
struct slices {
    const struct ew_tensor *t;
    int64_t outer, count, inner;
};

static ew_err slices_of(const struct ew_call *c, struct slices *out)
{
    const struct attr *a = c->attr;
    const struct ew_shape *s = &c->in[0]->shape;
    *out = (struct slices){c->in[0], 1, ew_tensor_count(c->in[0]), 1};
    if (a->flat)
        return EW_OK;
    int axis;
    EW_TRY(ew_shape_axis(a->axis, s->rank, &axis));
    out->outer = ew_shape_span(s, 0, axis);
    out->count = s->dim[axis];
    out->inner = ew_shape_span(s, axis + 1, s->rank);
    return EW_OK;
}

static int compare(const struct slices *s, int64_t a, int64_t b)
{
    const bool whole = !ew_dtype_is_float(s->t->dtype);
    for (int64_t k = 0; k < s->outer * s->inner; k++) {
        const int64_t row = k / s->inner * s->count * s->inner + k % s->inner;
        const int64_t ia = row + a * s->inner, ib = row + b * s->inner;
        if (whole) {
            const int64_t x = ew_tensor_get_int(s->t, ia), y = ew_tensor_get_int(s->t, ib);
            if (x != y)
                return x < y ? -1 : 1;
        } else {
            const double x = ew_tensor_get(s->t, ia), y = ew_tensor_get(s->t, ib);
            if (x < y || x > y)
                return x < y ? -1 : 1;
        }
    }
    return 0;
}

/* Comparison for qsort_r; stable. */
static int in_order(const void *a, const void *b, void *slices)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    const int r = compare(slices, x, y);
    return r ? r : (x > y) - (x < y);
}

static int by_number(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* The distinct slices. */
struct found {
    int64_t n;      /* number of distinct slices */
    int64_t *order; /* [count]: slices in ascending order */
    int64_t *first; /* [n]: first occurrence of each, in output order */
    int64_t *which; /* [count]: first slice equal to each */
};

static ew_err find(const struct attr *a, struct slices *s, struct found *f)
{
    const size_t n = (size_t)ew_max_i64(s->count, 1);
    *f = (struct found){.order = calloc(3 * n, sizeof(int64_t))};
    EW_CHECK(f->order, EW_ERR_MEMORY, "no memory for %lld slices", (long long)s->count);
    f->first = f->order + n;
    f->which = f->first + n;
    for (int64_t i = 0; i < s->count; i++)
        f->order[i] = i;
    qsort_r(f->order, (size_t)s->count, sizeof(int64_t), in_order, s);
    for (int64_t i = 0; i < s->count; i++) {
        const bool fresh = i == 0 || compare(s, f->order[i - 1], f->order[i]) != 0;
        if (fresh)
            f->first[f->n++] = f->order[i];
        f->which[f->order[i]] = f->first[f->n - 1];
    }
    if (!a->sorted)
        qsort(f->first, (size_t)f->n, sizeof(int64_t), by_number);
    return EW_OK;
}

static ew_err infer(const struct ew_call *c)
{
    const struct attr *a = c->attr;
    struct slices s;
    struct found f;
    EW_TRY(slices_of(c, &s));
    EW_TRY(find(a, &s, &f));
    free(f.order);
    for (int i = 0; i < c->n_out; i++) {
        if (!c->out[i])
            continue;
        c->out[i]->dtype = EW_S64;
        c->out[i]->shape = (struct ew_shape){1, {i == 2 ? s.count : f.n}};
    }
    if (!c->out[0])
        return EW_OK;
    c->out[0]->dtype = c->in[0]->dtype;
    if (!a->flat) {
        c->out[0]->shape = c->in[0]->shape;
        c->out[0]->shape.dim[ew_axis_of(a->axis, c->in[0]->shape.rank)] = f.n;
    }
    return EW_OK;
}

static void copy_slices(const struct slices *s, const struct found *f, struct ew_tensor *y)
{
    const size_t bytes = ew_dtype_size(y->dtype) * (size_t)s->inner;
    char *to = y->data;
    const char *from = s->t->data;
    for (int64_t o = 0; o < s->outer; o++)
        for (int64_t i = 0; i < f->n; i++, to += bytes)
            memcpy(to, from + (size_t)(o * s->count + f->first[i]) * bytes, bytes);
}

/* Fills the optional outputs; overwrites f->order with each slice's position in the output. */
static void fill_lists(const struct ew_call *c, const struct slices *s, const struct found *f)
{
    struct ew_tensor *index = ew_call_out(c, 1), *inverse = ew_call_out(c, 2),
                     *counts = ew_call_out(c, 3);
    int64_t *place = f->order;
    for (int64_t i = 0; i < f->n; i++)
        place[f->first[i]] = i;
    if (index && f->n)
        memcpy(index->data, f->first, (size_t)f->n * sizeof(int64_t));
    if (counts)
        memset(counts->data, 0, ew_tensor_bytes(counts));
    for (int64_t i = 0; i < s->count; i++) {
        if (inverse)
            ((int64_t *)inverse->data)[i] = place[f->which[i]];
        if (counts)
            ((int64_t *)counts->data)[place[f->which[i]]]++;
    }
}

static ew_err forward(const struct ew_call *c)
{
    struct slices s;
    struct found f;
    EW_TRY(slices_of(c, &s));
    EW_TRY(find(c->attr, &s, &f));
    if (c->out[0])
        copy_slices(&s, &f, c->out[0]);
    fill_lists(c, &s, &f);
    free(f.order);
    return EW_OK;
}

static ew_err import(struct ew_graph *g, const struct ew_onnx_node *n, int *out)
{
    struct attr a;
    EW_TRY(ew_onnx_fill(&ew_op_unique, n, NULL, &a));
    a.flat = ew_onnx_attr(n, "axis") == NULL;
    return ew_onnx_import_default(g, &ew_op_unique, n, &a, out);
}

static ew_err export_node(const struct ew_graph *g, int node, struct ew_onnx_node *n)
{
    const struct attr *a = g->nodes[node].attr;
    if (a->flat)
        ew_onnx_drop(n, "axis");
    return EW_OK;
}

static const char *const renames[] = {"flat", NULL, NULL};

/* clang-format off */
static const struct ew_op_case cases[] = {
    {.name = "elements",
     .in = {{"2x3", EW_F32, EW_FILL_VALUES, .values = "2,1,1,3,4,3", .constant = true}},
     .n_in = 1, .n_out = 4, .out_shape = "4"},
    {.name = "as they come", .attrs = "sorted=false",
     .in = {{"6", EW_S64, EW_FILL_VALUES, .values = "2,1,1,3,4,3", .constant = true}},
     .n_in = 1, .n_out = 4, .out_shape = "4"},
    {.name = "rows", .attrs = "flat=false",
     .in = {{"3x2", EW_F32, EW_FILL_VALUES, .values = "1,0,1,0,2,3", .constant = true}},
     .n_in = 1, .n_out = 4, .out_shape = "2x2"},
    {.name = "last axis", .attrs = "flat=false axis=-1",
     .in = {{"2x3", EW_S32, EW_FILL_VALUES, .values = "5,5,1,6,6,2", .constant = true}},
     .n_in = 1, .n_out = 3, .out_shape = "2x2"},
    {.name = "none", .in = {{"0", .constant = true}}, .n_in = 1, .n_out = 2, .out_shape = "0"},
};
/* clang-format on */

const struct ew_op ew_op_unique = {
    .name = "unique",
    .help = "the different elements or slices",
    .min_in = 1,
    .max_in = 1,
    .max_out = 4,
    .known_in = 1 << 0,
    .attr_size = sizeof(struct attr),
    .attrs = attrs,
    .infer = infer,
    .forward = forward,
    .onnx =
        {.type = "Unique", .since = 11, .rename = renames, .import = import, .export = export_node},
    EW_OP_CASES(cases),
};
