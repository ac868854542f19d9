/* SPDX-License-Identifier: Apache-2.0 */
/* Updates that go to elements of a copy of the data, and their gradients. */
#include "op/scatter.h"

#include <math.h>
#include <string.h>

#include "op/move.h"

const char *const ew_scatter_choices[] = {"none", "add", "mul", "max", "min", NULL};

static double reduce(int how, double a, double b)
{
    switch (how) {
    case EW_SCATTER_ADD:
        return a + b;
    case EW_SCATTER_MUL:
        return a * b;
    case EW_SCATTER_MAX:
        return a > b || isnan(a) ? a : b;
    case EW_SCATTER_MIN:
        return a < b || isnan(a) ? a : b;
    default:
        return b;
    }
}

static int64_t reduce_int(int how, int64_t a, int64_t b)
{
    switch (how) {
    case EW_SCATTER_ADD:
        return (int64_t)((uint64_t)a + (uint64_t)b);
    case EW_SCATTER_MUL:
        return (int64_t)((uint64_t)a * (uint64_t)b);
    case EW_SCATTER_MAX:
        return ew_max_i64(a, b);
    case EW_SCATTER_MIN:
        return ew_min_i64(a, b);
    default:
        return b;
    }
}

static void update(int how, const struct ew_tensor *from, int64_t j, struct ew_tensor *to,
                   int64_t i)
{
    if (how == EW_SCATTER_NONE) {
        ew_element_copy(from, j, to, i);
    } else if (ew_dtype_is_float(to->dtype)) {
        const double v = reduce(how, ew_tensor_get(to, i), ew_tensor_get(from, j));
        ew_tensor_store(to, i, 1, &v);
    } else {
        const int64_t v = reduce_int(how, ew_tensor_get_int(to, i), ew_tensor_get_int(from, j));
        ew_tensor_store_int(to, i, 1, &v);
    }
}

ew_err ew_scatter_forward(const struct ew_call *c, ew_scatter_target target)
{
    const struct ew_scatter_attr *a = c->attr;
    const struct ew_tensor *updates = c->in[EW_SCATTER_UPDATES];
    EW_TRY(ew_view_forward(c)); /* the data as it is */
    for (int64_t j = 0; j < ew_tensor_count(updates); j++) {
        int64_t i = 0;
        EW_TRY(target(c, j, &i));
        update(a->reduction, updates, j, c->out[0], i);
    }
    return EW_OK;
}

size_t ew_scatter_scratch(const struct ew_call *c)
{
    return (size_t)ew_tensor_count(c->in[EW_SCATTER_DATA]);
}

ew_err ew_scatter_backward(const struct ew_call *c, ew_scatter_target target)
{
    const struct ew_scatter_attr *a = c->attr;
    struct ew_tensor *ddata = c->din[EW_SCATTER_DATA], *dupdates = c->din[EW_SCATTER_UPDATES];
    const struct ew_tensor *dy = c->dout[0];
    EW_CHECK(a->reduction <= EW_SCATTER_ADD, EW_ERR_UNSUPPORTED,
             "%s: scatter by '%s' cannot be trained through", c->name,
             ew_scatter_choices[a->reduction]);
    if (!dy)
        return EW_OK;
    /* Backwards, since without reduction only the last update of an element shows. */
    unsigned char *written = c->scratch;
    memset(written, 0, ew_scatter_scratch(c));
    for (int64_t j = ew_tensor_count(c->in[EW_SCATTER_UPDATES]) - 1; j >= 0; j--) {
        int64_t i = 0;
        EW_TRY(target(c, j, &i));
        if (dupdates && !written[i])
            ew_element_add(dy, i, dupdates, j);
        written[i] = a->reduction == EW_SCATTER_NONE;
    }
    for (int64_t i = 0; ddata && i < ew_tensor_count(dy); i++)
        if (!written[i])
            ew_element_add(dy, i, ddata, i);
    return EW_OK;
}

ew_err ew_scatter_export(const struct ew_graph *g, int node, struct ew_onnx_node *n)
{
    const struct ew_scatter_attr *a = g->nodes[node].attr;
    const int since = a->reduction >= EW_SCATTER_MAX ? 18 : 16;
    if (a->reduction == EW_SCATTER_NONE)
        ew_onnx_drop(n, "reduction");
    else
        n->opset = n->opset < since ? since : n->opset;
    return EW_OK;
}
