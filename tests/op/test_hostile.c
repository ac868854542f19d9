/* SPDX-License-Identifier: Apache-2.0 */
/* Every operator's test cases, corrupted in one respect at a time: each input omitted, each
 * dimension of each input 0, each input of every type.  An operator may refuse that with a message,
 * or compute it, and then the fast plan must agree with the reference; it must not crash or read
 * beyond its inputs (also run under sanitizers). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ew_test.h"
#include "op_case.h"
#include "plan/plan.h"
#include "run_graph.h"

#define KEEP (-1)

/* The corruption; KEEP: none of this kind. */
struct spoiled {
    int input;
    bool absent;
    int axis;
    int dtype;
};

static bool is_constant(const struct ew_op *op, const struct ew_op_case *k, int i)
{
    return k->in[i].constant || (i < 32 && (op->known_in >> i & 1));
}

static ew_err add_input(struct ew_graph *g, const struct ew_op *op, const struct ew_op_case *k,
                        int i, const struct spoiled *s, int *out)
{
    struct ew_tensor t = {.dtype = k->in[i].dtype};
    *out = -1;
    if (!k->in[i].shape || (s->input == i && s->absent))
        return EW_OK;
    EW_TRY(ew_case_shape(k->in[i].shape, &t.shape));
    if (s->input == i && s->axis != KEEP)
        t.shape.dim[s->axis] = 0;
    if (s->input == i && s->dtype != KEEP)
        t.dtype = (enum ew_dtype)s->dtype;
    char name[16];
    snprintf(name, sizeof(name), "in%d", i);
    if (!is_constant(op, k, i))
        return ew_graph_input(g, name, t.dtype, &t.shape, out);
    t.data = ew_arena_alloc(&g->arena, ew_tensor_bytes(&t) + 1);
    EW_CHECK(t.data, EW_ERR_MEMORY, "no memory for %s", name);
    ew_case_fill(k, i, &t);
    return ew_graph_const(g, name, EW_VALUE_CONST, &t, false, out);
}

/* The case's only node, corrupted. */
static ew_err build(struct ew_graph *g, const struct ew_op *op, const struct ew_op_case *k,
                    const struct spoiled *s)
{
    EW_CLEANUP(ew_free_ptr) void *attr = calloc(1, op->attr_size + 1);
    int in[EW_CASE_INS], out[EW_CASE_INS];
    const int n_out = k->n_out ? k->n_out : 1;
    char *text = ew_arena_strdup(&g->arena, k->attrs ? k->attrs : ""); /* must live as long as
                                                                        * attr */
    EW_CHECK(attr && text, EW_ERR_MEMORY, "%s: no memory", op->name);
    ew_fields_default(op->attrs, attr, op->attr_size);
    EW_TRY(ew_fields_parse(op->attrs, text, attr));
    for (int i = 0; i < k->n_in; i++)
        EW_TRY(add_input(g, op, k, i, s, &in[i]));
    const struct ew_node n = {op, "node", attr, k->n_in, n_out, in, NULL, false};
    EW_TRY(ew_graph_add_node(g, &n, out));
    for (int i = 0; i < n_out; i++)
        EW_TRY(ew_graph_output(g, out[i]));
    return ew_graph_infer(g);
}

static ew_err run(struct ew_graph *g, const struct ew_op_case *k, bool reference,
                  struct ew_plan **out)
{
    const struct ew_plan_opts o = {.optimize = !reference,
                                   .backend = {.threads = 1, .reference = reference}};
    EW_TRY(ew_plan_compile(g, &o, out));
    for (int i = 0; i < g->n_inputs; i++)
        ew_case_fill(k, (int)strtol(g->values[g->inputs[i]].name + 2, NULL, 10),
                     ew_plan_input(*out, i));
    return ew_plan_run(*out);
}

static bool is_stochastic(const struct ew_op *op)
{
    return op->flags & EW_OP_STOCHASTIC;
}

static void try_one(const struct ew_op *op, const struct ew_op_case *k, const struct spoiled *s)
{
    struct ew_graph *g = NULL;
    struct ew_plan *slow = NULL, *fast = NULL;
    struct ew_cost cost;
    if (!EW_EXPECT_OK(ew_graph_new("hostile", &g)))
        return;
    if (build(g, op, k, s) == EW_OK && EW_EXPECT_OK(ew_graph_cost(g, &cost, NULL))) {
        const ew_err a = run(g, k, true, &slow), b = run(g, k, false, &fast);
        if ((a == EW_OK) != (b == EW_OK))
            EW_FAIL("%s %s: input %d axis %d type %d: reference %d, fast %d: %s", op->name, k->name,
                    s->input, s->axis, s->dtype, (int)a, (int)b, ew_error_message());
        for (int i = 0; a == EW_OK && b == EW_OK && !is_stochastic(op) && i < g->n_outputs; i++)
            if (ew_tensors_agree(ew_plan_output(fast, i), ew_plan_output(slow, i), 1e-3, 1e-4) !=
                EW_OK)
                EW_FAIL("%s %s: input %d axis %d type %d: output %d %s", op->name, k->name,
                        s->input, s->axis, s->dtype, i, ew_error_message());
    } else if (*ew_error_message() == 0) {
        EW_FAIL("%s %s: refused without a word", op->name, k->name);
    }
    ew_plan_free(slow);
    ew_plan_free(fast);
    ew_graph_free(g);
}

static void spoil_case(const struct ew_op *op, const struct ew_op_case *k)
{
    for (int i = 0; i < k->n_in; i++) {
        struct ew_shape shape;
        if (!k->in[i].shape || ew_case_shape(k->in[i].shape, &shape) != EW_OK)
            continue;
        try_one(op, k, &(struct spoiled){i, true, KEEP, KEEP});
        for (int axis = 0; axis < shape.rank; axis++)
            try_one(op, k, &(struct spoiled){i, false, axis, KEEP});
        for (int t = 0; t < EW_DTYPE_COUNT; t++)
            try_one(op, k, &(struct spoiled){i, false, KEEP, t});
    }
}

int main(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    for (int i = 0; i < ew_op_count(); i++) {
        const struct ew_op *op = ew_op_at(i);
        ew_test_begin("%s", op->name);
        for (int k = 0; k < op->n_cases; k++)
            spoil_case(op, &op->cases[k]);
        ew_test_end();
    }
    return ew_test_status();
}
