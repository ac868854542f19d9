/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs and input data from the operators' test cases. */
#include "op_case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

ew_err ew_case_shape(const char *text, struct ew_shape *out)
{
    struct ew_ints list;
    const struct ew_field f = {.name = "shape", .type = EW_FIELD_INTS};
    EW_TRY(ew_field_parse(&f, text, &list));
    EW_CHECK(list.n <= EW_MAX_RANK, EW_ERR_SHAPE, "%s: too many dimensions", text);
    *out = (struct ew_shape){.rank = list.n};
    memcpy(out->dim, list.v, (size_t)list.n * sizeof(list.v[0]));
    return EW_OK;
}

/* ---- Data ---- */

static double uniform(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(*state >> 11) * 0x1p-53;
}

static double normal(uint64_t *state)
{
    const double u = uniform(state) + 1e-12, v = uniform(state);
    return sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
}

/* Element i of a fixed permutation of 0 .. n - 1. */
static int64_t shuffled(int64_t i, int64_t n)
{
    int64_t step = 7919;
    while (n % step == 0)
        step += 2;
    return (i * step + 3) % n;
}

static double fill_one(const struct ew_case_in *in, int64_t i, int64_t n, uint64_t *state)
{
    double v;
    switch (in->fill) {
    case EW_FILL_POSITIVE:
        return 0.1 + 1.9 * uniform(state);
    case EW_FILL_DISTINCT:
        return 0.1 * (double)(shuffled(i, n) - n / 2);
    case EW_FILL_UNIT:
        return 1.9 * uniform(state) - 0.95;
    case EW_FILL_AWAY:
        v = normal(state);
        return v < 0 ? v - 0.1 : v + 0.1;
    case EW_FILL_CLASSES:
        return floor(uniform(state) * in->arg);
    case EW_FILL_BYTES:
        return floor(uniform(state) * 256) - (in->dtype == EW_S8 ? 128 : 0);
    case EW_FILL_NORMAL:
    case EW_FILL_VALUES:
        break;
    }
    v = normal(state);
    return in->dtype == EW_F32 || in->dtype == EW_F64 ? v : round(4 * v);
}

void ew_case_fill(const struct ew_op_case *k, int index, struct ew_tensor *t)
{
    const struct ew_case_in *in = &k->in[index];
    uint64_t state = 88172645463325252u + (uint64_t)index * 977;
    const char *at = in->values;
    const int64_t n = ew_tensor_count(t);
    for (int64_t i = 0; i < n; i++) {
        double v;
        if (in->fill == EW_FILL_VALUES && at) {
            char *end;
            v = strtod(at, &end);
            const int64_t whole = strtoll(at, NULL, 10); /* doubles do not hold all of them */
            at = *end == ',' ? end + 1 : NULL;
            if (t->dtype == EW_S64) {
                ew_tensor_store_int(t, i, 1, &whole);
                continue;
            }
        } else {
            v = fill_one(in, i, n, &state);
        }
        ew_tensor_store(t, i, 1, &v);
    }
}

/* ---- Graphs ---- */

static ew_err add_input(struct ew_graph *g, const struct ew_op_case *k, int i, bool f64, int *out)
{
    const struct ew_case_in *in = &k->in[i];
    *out = -1;
    if (!in->shape)
        return EW_OK;
    char name[16];
    snprintf(name, sizeof(name), "in%d", i);
    struct ew_tensor t = {.dtype = f64 && in->dtype == EW_F32 ? EW_F64 : in->dtype};
    EW_TRY(ew_case_shape(in->shape, &t.shape));
    if (!in->constant)
        return ew_graph_input(g, name, t.dtype, &t.shape, out);
    EW_CLEANUP(ew_free_ptr) void *data = NULL;
    EW_TRY(ew_aligned_new(ew_tensor_bytes(&t), &data));
    t.data = data;
    ew_case_fill(k, i, &t);
    return ew_graph_const(g, name, EW_VALUE_CONST, &t, true, out);
}

static ew_err fill_graph(struct ew_graph *g, const struct ew_op *op, const struct ew_op_case *k,
                         bool f64)
{
    EW_CLEANUP(ew_free_ptr) void *attr = calloc(1, op->attr_size + 1);
    int in[EW_CASE_INS], out[16];
    const int n_out = k->n_out ? k->n_out : 1;
    char *text = ew_arena_strdup(&g->arena, k->attrs ? k->attrs : ""); /* must live as long as
                                                                        * attr */
    EW_CHECK(attr && text && n_out <= 16, EW_ERR_MEMORY, "%s: no memory", op->name);
    ew_fields_default(op->attrs, attr, op->attr_size);
    EW_TRY(ew_fields_parse(op->attrs, text, attr));
    for (int i = 0; i < k->n_in; i++)
        EW_TRY(add_input(g, k, i, f64, &in[i]));
    const struct ew_node n = {op, "node", attr, k->n_in, n_out, in, NULL, false};
    EW_TRY(ew_graph_add_node(g, &n, out));
    for (int i = 0; i < n_out; i++)
        EW_TRY(ew_graph_output(g, out[i]));
    return ew_graph_infer(g);
}

ew_err ew_case_graph(const struct ew_op *op, const struct ew_op_case *k, bool f64,
                     struct ew_graph **out)
{
    struct ew_graph *g;
    EW_TRY(ew_graph_new(op->name, &g));
    const ew_err e = fill_graph(g, op, k, f64);
    if (e != EW_OK)
        ew_graph_free(g);
    else
        *out = g;
    return e;
}
