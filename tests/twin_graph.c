/* SPDX-License-Identifier: Apache-2.0 */
/* Builds graphs twice, in two layouts. */
#include "twin_graph.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "graph/layout.h"

ew_err ew_twin_const(struct ew_twin *t, enum ew_value_kind kind, const struct ew_tensor *x,
                     struct ew_pair *out)
{
    EW_TRY(ew_graph_const(t->file, NULL, kind, x, true, &out->file));
    return ew_graph_const(t->plain, NULL, kind, x, true, &out->plain);
}

ew_err ew_twin_ints(struct ew_twin *t, const int64_t *v, int n, struct ew_pair *out)
{
    EW_TRY(ew_graph_const_ints(t->file, NULL, v, n, &out->file));
    return ew_graph_const_ints(t->plain, NULL, v, n, &out->plain);
}

ew_err ew_twin_node(struct ew_twin *t, const char *op, const void *attr, const struct ew_pair *in,
                    int n_in, struct ew_pair *out, int n_out)
{
    int a[8], b[8], x[8], y[8];
    for (int i = 0; i < n_in; i++) {
        a[i] = in[i].file;
        b[i] = in[i].plain;
    }
    struct ew_node n = {.op = ew_op_find(op), .n_in = n_in, .n_out = n_out, .in = a};
    if (attr) {
        n.attr = ew_arena_alloc(&t->file->arena, n.op->attr_size);
        EW_CHECK(n.attr, EW_ERR_MEMORY, "%s: no memory", op);
        memcpy(n.attr, attr, n.op->attr_size);
    }
    EW_TRY(ew_graph_add_node(t->file, &n, x));
    n.in = b;
    EW_TRY(ew_graph_add_node(t->plain, &n, y));
    for (int i = 0; i < n_out; i++)
        out[i] = (struct ew_pair){x[i], y[i]};
    return EW_OK;
}

/* Permutation from [N, C, d...] to [N, d..., C] (`last`), or back. */
static struct ew_transpose_attr turn(int rank, bool last)
{
    struct ew_transpose_attr a = {.perm = {.n = rank}};
    for (int i = 1; i < rank; i++)
        a.perm.v[i] = last ? i % (rank - 1) + 1 : i == 1 ? rank - 1 : i - 1;
    return a;
}

ew_err ew_twin_spatial(struct ew_twin *t, const char *op, const void *attr,
                       const struct ew_pair *in, int n_in, struct ew_pair *out)
{
    int a[8], b[8];
    for (int i = 0; i < n_in; i++) {
        a[i] = in[i].file;
        b[i] = in[i].plain;
    }
    const struct ew_node fresh = {.op = ew_op_find(op),
                                  .attr = (void *)(uintptr_t)attr,
                                  .in = a,
                                  .n_in = n_in,
                                  .n_out = 1,
                                  .channels_first = true};
    EW_TRY(ew_graph_add_node(t->file, &fresh, &out->file));
    const int rank = t->plain->values[in[0].plain].t.shape.rank;
    const struct ew_transpose_attr to = turn(rank, true), back = turn(rank, false);
    const struct ew_op *transpose = ew_op_find("transpose");
    EW_TRY(ew_graph_add(t->plain, transpose, NULL, &to, ew_inputs(b, 1), b));
    EW_TRY(ew_graph_add(t->plain, fresh.op, NULL, attr, ew_inputs(b, n_in), b));
    return ew_graph_add(t->plain, transpose, NULL, &back, ew_inputs(b, 1), &out->plain);
}

ew_err ew_twin_filters(struct ew_twin *t, enum ew_value_kind kind, const struct ew_tensor *x,
                       struct ew_pair *out)
{
    int perm[EW_MAX_RANK];
    const struct ew_transpose_attr to = turn(x->shape.rank, true);
    for (int i = 0; i < x->shape.rank; i++)
        perm[i] = (int)to.perm.v[i];
    EW_CLEANUP(ew_free_ptr) void *data = malloc(ew_tensor_bytes(x) + 1);
    EW_CHECK(data, EW_ERR_MEMORY, "no memory for weights");
    struct ew_tensor turned = {.dtype = x->dtype, .data = data};
    ew_tensor_permute(x, perm, &turned);
    EW_TRY(ew_graph_const(t->file, NULL, kind, x, true, &out->file));
    return ew_graph_const(t->plain, NULL, kind, &turned, true, &out->plain);
}
