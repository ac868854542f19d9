/* SPDX-License-Identifier: Apache-2.0 */
/* Operators after a transpose: for each operator that can move transposes and each of its cases,
 * the graph transpose-operator gives the same values before and after the layout pass, and no
 * transpose is left before the operator.  Channel shuffles are recognised, moved and exported. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ew_test.h"
#include "graph/layout.h"
#include "graph/shuffle.h"
#include "op_case.h"

#define MAX_IN  24
#define MAX_OUT 16

/* ---- Every operator ---- */

static int count_op(const struct ew_graph *g, const char *name)
{
    int n = 0;
    for (int k = 0; k < g->n_nodes; k++)
        n += strcmp(g->nodes[k].op->name, name) == 0;
    return n;
}

/* Adds input i of the case as a constant, followed by a transpose by `perm` whose result is the
 * case's input. */
static ew_err add_turned(struct ew_graph *g, const struct ew_graph *plain, int value,
                         const int *perm, int *out)
{
    const struct ew_tensor *t = &plain->values[value].t;
    int back[EW_MAX_RANK], id;
    struct ew_transpose_attr attr = {.perm = {.n = t->shape.rank}};
    for (int i = 0; i < t->shape.rank; i++) {
        back[perm[i]] = i;
        attr.perm.v[i] = perm[i];
    }
    EW_CLEANUP(ew_free_ptr) void *data = NULL;
    EW_TRY(ew_aligned_new(ew_tensor_bytes(t), &data));
    struct ew_tensor turned = {.dtype = t->dtype, .data = data};
    ew_tensor_permute(t, back, &turned);
    EW_TRY(ew_graph_const(g, NULL, EW_VALUE_CONST, &turned, true, &id));
    return ew_graph_add(g, ew_op_find("transpose"), NULL, &attr, EW_INPUTS(id), out);
}

/* The case as a graph of constants, whose full-rank inputs pass through transposes. */
static ew_err turned_graph(const struct ew_graph *plain, const int *perm, struct ew_graph *g)
{
    const struct ew_node *n = &plain->nodes[0];
    const int rank = plain->values[n->in[0]].t.shape.rank;
    int in[MAX_IN], out[MAX_OUT];
    for (int i = 0; i < n->n_in; i++) {
        in[i] = -1;
        if (n->in[i] < 0)
            continue;
        const struct ew_tensor *t = &plain->values[n->in[i]].t;
        if (t->shape.rank == rank && !(n->op->known_in >> i & 1))
            EW_TRY(add_turned(g, plain, n->in[i], perm, &in[i]));
        else
            EW_TRY(ew_graph_const(g, NULL, EW_VALUE_CONST, t, true, &in[i]));
    }
    struct ew_node turned = *n;
    turned.in = in;
    EW_TRY(ew_graph_add_node(g, &turned, out));
    for (int i = 0; i < n->n_out; i++)
        EW_TRY(ew_graph_output(g, out[i]));
    return ew_graph_infer(g);
}

/* Sets data for the inputs of a case's graph, so that its outputs become constants. */
static ew_err bind_inputs(const struct ew_op_case *k, struct ew_graph *g)
{
    const struct ew_node *n = &g->nodes[0];
    for (int i = 0; i < n->n_in; i++) {
        if (n->in[i] < 0 || g->values[n->in[i]].kind != EW_VALUE_INPUT)
            continue;
        struct ew_tensor t = g->values[n->in[i]].t;
        EW_CLEANUP(ew_free_ptr) void *data = NULL;
        EW_TRY(ew_aligned_new(ew_tensor_bytes(&t), &data));
        t.data = data;
        ew_case_fill(k, i, &t);
        EW_TRY(ew_graph_bind(g, n->in[i], &t));
    }
    return ew_graph_infer(g);
}

static bool known_outputs(const struct ew_graph *g)
{
    for (int i = 0; i < g->n_outputs; i++)
        if (!g->values[g->outputs[i]].t.data)
            return false;
    return true;
}

static void expect_same_outputs(const struct ew_graph *a, const struct ew_graph *b)
{
    for (int i = 0; i < a->n_outputs; i++) {
        const struct ew_tensor *x = &a->values[a->outputs[i]].t, *y = &b->values[b->outputs[i]].t;
        if (!EW_EXPECT(ew_shape_equal(&x->shape, &y->shape)) || !EW_EXPECT(y->data))
            return;
        for (int64_t j = 0; j < ew_tensor_count(x); j++) {
            const double u = ew_tensor_get(x, j), v = ew_tensor_get(y, j);
            /* A sum may be computed in another order. */
            if (fabs(u - v) > 1e-5 * fmax(1, fabs(u))) {
                EW_FAIL("output %d, element %lld: %g became %g", i, (long long)j, u, v);
                return;
            }
        }
    }
}

static void check_turned(const struct ew_op_case *k, const struct ew_graph *plain, const int *perm)
{
    struct ew_graph *g = NULL;
    if (!EW_EXPECT_OK(ew_graph_new("turned", &g)))
        return;
    if (EW_EXPECT_OK(turned_graph(plain, perm, g))) {
        expect_same_outputs(plain, g);
        if (EW_EXPECT_OK(ew_graph_channels_last(g)))
            expect_same_outputs(plain, g);
        if (EW_EXPECT_OK(ew_graph_channels_first(g)))
            expect_same_outputs(plain, g);
    }
    ew_graph_free(g);
}

static void check_case(const struct ew_op *op, const struct ew_op_case *k)
{
    static const int perms[][4] = {{0, 2, 3, 1}, {0, 3, 1, 2}, {3, 2, 1, 0}, {1, 0, 2, 3}};
    struct ew_graph *plain = NULL;
    ew_test_begin("%s/%s", op->name, k->name);
    if (EW_EXPECT_OK(ew_case_graph(op, k, false, &plain)) && EW_EXPECT_OK(bind_inputs(k, plain)) &&
        known_outputs(plain)) {
        const int rank = plain->values[plain->nodes[0].in[0]].t.shape.rank;
        for (size_t p = 0; p < EW_COUNT(perms) && rank <= 4 && rank > 1; p++) {
            int perm[EW_MAX_RANK], n = 0;
            for (int i = 0; i < 4; i++)
                if (perms[p][i] < rank)
                    perm[n++] = perms[p][i];
            check_turned(k, plain, perm);
        }
    }
    ew_graph_free(plain);
    ew_test_end();
}

/* ---- Channel shuffle ---- */

enum { N = 2, C = 6, H = 2, W = 3, GROUPS = 3 };

static int add_ints(struct ew_graph *g, const int64_t *v, int n)
{
    int id = -1;
    EW_EXPECT_OK(ew_graph_const_ints(g, NULL, v, n, &id));
    return id;
}

/* The form that exporters write, between two layout-dependent operators. */
static void build_shuffle(struct ew_graph *g, int x)
{
    const int64_t apart[] = {0, GROUPS, C / GROUPS, H, W}, whole[] = {0, -1, H, W};
    const struct ew_transpose_attr turn = {.perm = {5, {0, 2, 1, 3, 4}}};
    struct ew_channel_shuffle_attr two = {.groups = 2};
    struct ew_node n = {.op = ew_op_find("channel_shuffle"),
                        .attr = &two,
                        .n_in = 1,
                        .n_out = 1,
                        .in = &x,
                        .channels_first = true};
    int v[2], out;
    EW_EXPECT_OK(ew_graph_add_node(g, &n, &v[0]));
    v[1] = add_ints(g, apart, 5);
    EW_EXPECT_OK(ew_graph_add(g, ew_op_find("reshape"), NULL, NULL, ew_inputs(v, 2), &out));
    EW_EXPECT_OK(ew_graph_add(g, ew_op_find("transpose"), NULL, &turn, EW_INPUTS(out), &v[0]));
    v[1] = add_ints(g, whole, 4);
    EW_EXPECT_OK(ew_graph_add(g, ew_op_find("reshape"), "shuffled", NULL, ew_inputs(v, 2), &out));
    n.in = &out;
    EW_EXPECT_OK(ew_graph_add_node(g, &n, &v[0]));
    EW_EXPECT_OK(ew_graph_output(g, v[0]));
}

static void check_shuffles(void)
{
    struct ew_graph *g = NULL;
    const struct ew_shape s = {4, {N, C, H, W}};
    int x;
    ew_test_begin("a shuffle is found, moved and written out");
    EW_EXPECT_OK(ew_graph_new("shuffle", &g));
    EW_EXPECT_OK(ew_graph_input(g, "x", EW_F32, &s, &x));
    build_shuffle(g, x);
    EW_EXPECT_OK(ew_graph_find_shuffles(g));
    EW_EXPECT_OK(ew_graph_check(g));
    EW_EXPECT_INT(count_op(g, "channel_shuffle"), 3);
    EW_EXPECT_INT(g->n_nodes, 3);
    EW_EXPECT_OK(ew_graph_channels_last(g));
    EW_EXPECT_INT(count_op(g, "transpose"), 2); /* at the graph's ends */
    EW_EXPECT_INT(g->n_nodes, 5);
    EW_EXPECT_OK(ew_graph_channels_first(g));
    EW_EXPECT_OK(ew_graph_expand(g));
    EW_EXPECT_OK(ew_graph_check(g));
    EW_EXPECT_OK(ew_graph_infer(g));
    EW_EXPECT_INT(g->n_nodes, 9);
    EW_EXPECT_INT(count_op(g, "transpose"), 3);
    EW_EXPECT_OK(ew_graph_set_batch(g, 5));
    EW_EXPECT_INT(g->values[g->outputs[0]].t.shape.dim[0], 5);
    ew_graph_free(g);
    ew_test_end();
}

/* Exporters compute pads from constants by a chain of nodes; a transpose must be moved past it. */
static void check_computed_pads(void)
{
    static const int64_t half[] = {0, 0, 1, 0, 0, 0, 1, 2};
    struct ew_channel_shuffle_attr two = {.groups = 2};
    struct ew_graph *g = NULL;
    const struct ew_shape s = {4, {N, C, H, W}};
    int x, in[2], out;
    struct ew_node n = {.op = ew_op_find("channel_shuffle"),
                        .attr = &two,
                        .n_in = 1,
                        .n_out = 1,
                        .in = &x,
                        .channels_first = true};
    ew_test_begin("a transpose passes pads that are computed");
    EW_EXPECT_OK(ew_graph_new("pads", &g));
    EW_EXPECT_OK(ew_graph_input(g, "x", EW_F32, &s, &x));
    EW_EXPECT_OK(ew_graph_add_node(g, &n, &out));
    in[0] = in[1] = add_ints(g, half, 8);
    EW_EXPECT_OK(ew_graph_add(g, ew_op_find("add"), NULL, NULL, ew_inputs(in, 2), &in[1]));
    in[0] = out;
    EW_EXPECT_OK(ew_graph_add(g, ew_op_find("pad"), NULL, NULL, ew_inputs(in, 2), &x));
    EW_EXPECT_OK(ew_graph_add_node(g, &n, &out));
    EW_EXPECT_OK(ew_graph_output(g, out));
    EW_EXPECT_OK(ew_graph_channels_last(g));
    EW_EXPECT_INT(count_op(g, "transpose"), 2);
    const struct ew_shape want = {4, {N, C, H + 4, W + 4}};
    EW_EXPECT(ew_shape_equal(&g->values[g->outputs[0]].t.shape, &want));
    ew_graph_free(g);
    ew_test_end();
}

/* Values: pixel (h, w) of channel c contains c, so that the result of the shuffle shows each
 * source. */
static void check_shuffle_numbers(void)
{
    struct ew_graph *g = NULL;
    float data[N * C * H * W];
    int x;
    ew_test_begin("a shuffle found computes what was written");
    for (int i = 0; i < N * C * H * W; i++)
        data[i] = (float)i;
    const struct ew_tensor t = {EW_F32, {4, {N, C, H, W}}, data};
    EW_EXPECT_OK(ew_graph_new("shuffle", &g));
    EW_EXPECT_OK(ew_graph_const(g, "x", EW_VALUE_CONST, &t, true, &x));
    build_shuffle(g, x);
    EW_EXPECT_OK(ew_graph_channels_last(g)); /* without recognising shuffles */
    const struct ew_tensor plain = g->values[g->outputs[0]].t;
    float want[N * C * H * W];
    EW_EXPECT(plain.data);
    memcpy(want, plain.data, sizeof(want));
    ew_graph_free(g);

    EW_EXPECT_OK(ew_graph_new("shuffle", &g));
    EW_EXPECT_OK(ew_graph_const(g, "x", EW_VALUE_CONST, &t, true, &x));
    build_shuffle(g, x);
    EW_EXPECT_OK(ew_graph_find_shuffles(g));
    EW_EXPECT_OK(ew_graph_channels_last(g));
    EW_EXPECT_INT(count_op(g, "reshape"), 0);
    EW_EXPECT_CLOSE((const float *)g->values[g->outputs[0]].t.data, want, N * C * H * W, 0, 0);
    EW_EXPECT_OK(ew_graph_channels_first(g));
    EW_EXPECT_OK(ew_graph_expand(g));
    EW_EXPECT_OK(ew_graph_infer(g));
    EW_EXPECT_CLOSE((const float *)g->values[g->outputs[0]].t.data, want, N * C * H * W, 0, 0);
    ew_graph_free(g);
    ew_test_end();
}

int main(int argc, char **argv)
{
    for (int i = 0; i < ew_op_count(); i++) {
        const struct ew_op *op = ew_op_at(i);
        if (!op->permute && !(op->flags & EW_OP_ELEMENTWISE))
            continue;
        if (op->flags & EW_OP_STOCHASTIC)
            continue;
        for (int k = 0; k < op->n_cases; k++)
            if (argc < 2 || strcmp(argv[1], op->name) == 0)
                check_case(op, &op->cases[k]);
    }
    check_shuffles();
    check_computed_pads();
    check_shuffle_numbers();
    return ew_test_status();
}
