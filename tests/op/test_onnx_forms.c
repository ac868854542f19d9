/* SPDX-License-Identifier: Apache-2.0 */
/* Import of the forms that ONNX has defined for operators over its opsets: attributes that became
 * inputs, axes that changed their meaning; and the exported form.  Without files. */
#include <math.h>
#include <string.h>

#include "ew_test.h"
#include "graph/onnx.h"
#include "op/math_attr.h"
#include "op/shape_attr.h"

static struct ew_graph *g;
static int x; /* the graph's input */

static void begin(const struct ew_shape *s)
{
    EW_EXPECT_OK(ew_graph_new("forms", &g));
    EW_EXPECT_OK(ew_graph_input(g, "x", EW_F32, s, &x));
}

static void end(void)
{
    ew_graph_free(g);
    g = NULL;
}

/* Imports a node with input x (and `more`, unless it is -1) and returns the last node added. */
static const struct ew_node *import(struct ew_onnx_node n, int more)
{
    const int in[] = {x, more}, used[] = {1, 1};
    int out[2];
    const struct ew_op *op = ew_op_find_onnx(n.type, NULL);
    n.name = "node";
    n.in = in;
    n.n_in = more < 0 ? 1 : 2;
    n.n_out = n.n_out ? n.n_out : 1;
    n.out_used = used;
    if (!EW_EXPECT(op) || !EW_EXPECT_OK(ew_onnx_import(g, op, &n, out)))
        return NULL;
    return &g->nodes[g->n_nodes - 1];
}

static double const_of(const struct ew_node *n, int slot)
{
    if (!EW_EXPECT(slot < n->n_in && n->in[slot] >= 0))
        return (double)NAN;
    const struct ew_tensor *t = &g->values[n->in[slot]].t;
    return EW_EXPECT(t->data) ? ew_tensor_get(t, 0) : (double)NAN;
}

static void clip_had_attributes(void)
{
    begin(&(struct ew_shape){1, {4}});
    const struct ew_node *n =
        import((struct ew_onnx_node){.type = "Clip",
                                     .opset = 7,
                                     .attrs = {{.name = "max", .type = EW_ONNX_FLOAT, .f = 6}},
                                     .n_attrs = 1},
               -1);
    if (EW_EXPECT(n) && EW_EXPECT_INT(n->n_in, 3)) {
        EW_EXPECT_INT(n->in[1], -1);
        EW_EXPECT_NEAR(const_of(n, 2), 6, 0);
    }
    n = import((struct ew_onnx_node){.type = "Clip", .opset = 7}, -1);
    EW_EXPECT(n && n->n_in == 1);
    g->values[x].t.dtype = EW_F16; /* bounds that are inputs must have the type of x */
    n = import((struct ew_onnx_node){.type = "Clip",
                                     .opset = 7,
                                     .attrs = {{.name = "min", .type = EW_ONNX_FLOAT, .f = -0.5F}},
                                     .n_attrs = 1},
               -1);
    if (EW_EXPECT(n) && EW_EXPECT(n->n_in > 1)) {
        EW_EXPECT_INT(g->values[n->in[1]].t.dtype, EW_F16);
        EW_EXPECT_NEAR(const_of(n, 1), -0.5, 0);
    }
    end();
}

static void softmax_once(const struct ew_shape *s, int opset, bool flatten, int64_t axis)
{
    begin(s);
    const struct ew_node *n = import((struct ew_onnx_node){.type = "Softmax", .opset = opset}, -1);
    if (EW_EXPECT(n)) {
        const struct ew_softmax_attr *a = n->attr;
        EW_EXPECT_INT(a->flatten, flatten);
        EW_EXPECT_INT(a->axis, axis);
    }
    end();
}

/* Before opset 13 the default axis is 1 and all axes from it on are one block; if the following
 * sizes are one, that is a single axis. */
static void softmax_had_blocks(void)
{
    softmax_once(&(struct ew_shape){3, {2, 3, 4}}, 11, true, 1);
    softmax_once(&(struct ew_shape){4, {2, 3, 1, 1}}, 11, false, 1);
    softmax_once(&(struct ew_shape){2, {2, 3}}, 11, false, 1);
    softmax_once(&(struct ew_shape){3, {2, 3, 4}}, 13, false, -1);
}

static void reductions_had_axes(void)
{
    static const int64_t axes[] = {2, 3};
    begin(&(struct ew_shape){4, {2, 3, 4, 5}});
    const struct ew_onnx_node attr = {
        .type = "ReduceMean",
        .opset = 13,
        .attrs = {{.name = "axes", .type = EW_ONNX_INTS, .n = 2, .ints = axes},
                  {.name = "keepdims", .type = EW_ONNX_INT, .i = 0}},
        .n_attrs = 2};
    const struct ew_node *n = import(attr, -1);
    if (EW_EXPECT(n))
        EW_EXPECT_INT(g->values[n->out[0]].t.shape.rank, 2);
    int list;
    EW_EXPECT_OK(ew_graph_const_ints(g, "axes", axes, 2, &list));
    n = import((struct ew_onnx_node){.type = "ReduceMean", .opset = 18}, list);
    if (EW_EXPECT(n)) {
        EW_EXPECT_INT(g->values[n->out[0]].t.shape.rank, 4);
        EW_EXPECT_INT(g->values[n->out[0]].t.shape.dim[3], 1);
    }
    end();
}

/* Imports or exports the same node at an older and a newer opset. */
static void reductions_are_written(void)
{
    static const int64_t axes[] = {-1};
    int in[2], out;
    struct ew_arena arena;
    begin(&(struct ew_shape){2, {2, 3}});
    ew_arena_init(&arena);
    in[0] = x;
    EW_EXPECT_OK(ew_graph_const_ints(g, "axes", axes, 1, &in[1]));
    EW_EXPECT_OK(ew_graph_add(g, ew_op_find("reduce_mean"), "old", NULL, ew_inputs(in, 2), &out));
    EW_EXPECT_OK(ew_graph_add(g, ew_op_find("reduce_sum"), "sum", NULL, ew_inputs(in, 2), &out));
    struct ew_onnx_node n = {.opset = 13, .arena = &arena};
    EW_EXPECT_OK(ew_onnx_export(g, 0, &n));
    const struct ew_onnx_attr *a = ew_onnx_attr(&n, "axes");
    EW_EXPECT_INT(n.n_in, 1);
    EW_EXPECT(a && a->n == 1 && a->ints[0] == -1);
    EW_EXPECT(!ew_onnx_attr(&n, "noop_with_empty_axes"));
    n = (struct ew_onnx_node){.opset = 18, .arena = &arena};
    EW_EXPECT_OK(ew_onnx_export(g, 0, &n));
    EW_EXPECT_INT(n.n_in, 2);
    EW_EXPECT(!ew_onnx_attr(&n, "axes"));
    n = (struct ew_onnx_node){.opset = 13, .arena = &arena};
    EW_EXPECT_OK(ew_onnx_export(g, 1, &n));
    EW_EXPECT_INT(n.n_in, 2);
    ew_arena_fini(&arena);
    end();
}

static void top_k_had_an_attribute(void)
{
    begin(&(struct ew_shape){2, {2, 9}});
    const struct ew_node *n =
        import((struct ew_onnx_node){.type = "TopK",
                                     .opset = 9,
                                     .n_out = 2,
                                     .attrs = {{.name = "k", .type = EW_ONNX_INT, .i = 4}},
                                     .n_attrs = 1},
               -1);
    if (EW_EXPECT(n)) {
        EW_EXPECT_INT(g->values[n->out[1]].t.shape.dim[1], 4);
        EW_EXPECT_INT(g->values[n->in[1]].t.shape.rank, 1); /* as it is exported */
    }
    end();
}

/* The ratio was an attribute before opset 12; it is exported as an input. */
static void dropout_had_a_ratio(void)
{
    struct ew_arena arena;
    begin(&(struct ew_shape){1, {4}});
    ew_arena_init(&arena);
    const struct ew_node *n = import(
        (struct ew_onnx_node){.type = "Dropout",
                              .opset = 7,
                              .attrs = {{.name = "ratio", .type = EW_ONNX_FLOAT, .f = 0.25f}},
                              .n_attrs = 1},
        -1);
    if (EW_EXPECT(n)) {
        const struct ew_dropout_attr *a = n->attr;
        EW_EXPECT_NEAR(a->ratio, 0.25, 0);
    }
    n = import((struct ew_onnx_node){.type = "Dropout",
                                     .opset = 12,
                                     .attrs = {{.name = "seed", .type = EW_ONNX_INT, .i = 3}},
                                     .n_attrs = 1},
               -1);
    EW_EXPECT(n);
    struct ew_onnx_node out = {.opset = 13, .arena = &arena};
    EW_EXPECT_OK(ew_onnx_export(g, 0, &out));
    EW_EXPECT_INT(out.n_attrs, 0);
    if (EW_EXPECT_INT(out.n_consts, 1)) {
        EW_EXPECT_INT(out.consts[0].slot, 1);
        EW_EXPECT_NEAR(ew_tensor_get(&out.consts[0].t, 0), 0.25, 0);
    }
    ew_arena_fini(&arena);
    end();
}

/* Regression: from opset 18 on equal parts need their number, or their sizes; a file with neither,
 * raised to that opset by a newer operator, was refused by other programs. */
static void split_says_its_parts(void)
{
    int out[3];
    struct ew_arena arena;
    begin(&(struct ew_shape){2, {3, 6}});
    ew_arena_init(&arena);
    const struct ew_split_attr axis[] = {{.axis = -1}, {.axis = 0}};
    for (int i = 0; i < 2; i++) {
        const struct ew_node node = {.op = ew_op_find("split"),
                                     .name = "node",
                                     .attr = (void *)(uintptr_t)&axis[i],
                                     .in = &x,
                                     .n_in = 1,
                                     .n_out = 3};
        EW_EXPECT_OK(ew_graph_add_node(g, &node, out));
    }
    struct ew_onnx_node n = {.opset = 20, .arena = &arena};
    EW_EXPECT_OK(ew_onnx_export(g, 0, &n));
    EW_EXPECT(n.n_consts == 1 && ew_tensor_get_int(&n.consts[0].t, 2) == 2);
    n = (struct ew_onnx_node){.opset = 20, .arena = &arena};
    EW_EXPECT_OK(ew_onnx_export(g, 1, &n)); /* the batch, which may be open */
    EW_EXPECT(n.n_consts == 0 && ew_onnx_int(&n, "num_outputs", 0) == 3);
    n = (struct ew_onnx_node){.opset = 13, .arena = &arena};
    EW_EXPECT_OK(ew_onnx_export(g, 1, &n));
    EW_EXPECT(n.n_consts == 0 && !ew_onnx_attr(&n, "num_outputs"));
    ew_arena_fini(&arena);
    end();
}

static int input(enum ew_dtype type)
{
    int v = -1;
    EW_EXPECT_OK(ew_graph_input(g, NULL, type, &(struct ew_shape){1, {4}}, &v));
    return v;
}

/* Forms that an older opset lacks raise the file's opset: integers, and squares of single
 * elements. */
static void older_opsets_lack_it(void)
{
    int out;
    struct ew_arena arena;
    begin(&(struct ew_shape){1, {4}});
    ew_arena_init(&arena);
    const struct ew_reduce_attr noop = {.keepdims = true, .noop_with_empty_axes = true};
    const int ints = input(EW_S32);
    EW_EXPECT_OK(ew_graph_add(g, ew_op_find("relu"), "i", NULL, EW_INPUTS(ints), &out));
    EW_EXPECT_OK(ew_graph_add(g, ew_op_find("relu"), "f", NULL, EW_INPUTS(x), &out));
    EW_EXPECT_OK(ew_graph_add(g, ew_op_find("reduce_sum_square"), "s", &noop, EW_INPUTS(x), &out));
    EW_EXPECT_OK(ew_graph_add(g, ew_op_find("reduce_max"), "m", &noop, EW_INPUTS(x), &out));
    const int bytes = input(EW_U8);
    EW_EXPECT_OK(ew_graph_add(g, ew_op_find("add"), "b", NULL, EW_INPUTS(bytes, bytes), &out));
    EW_EXPECT_OK(ew_graph_add(g, ew_op_find("div"), "w", NULL, EW_INPUTS(ints, ints), &out));
    static const int want[] = {14, 13, 18, 13, 14, 13};
    for (int i = 0; i < 6; i++) {
        struct ew_onnx_node n = {.opset = 13, .arena = &arena};
        EW_EXPECT_OK(ew_onnx_export(g, i, &n));
        EW_EXPECT_INT(n.opset, want[i]);
    }
    ew_arena_fini(&arena);
    end();
}

EW_TEST_MAIN(EW_TEST(clip_had_attributes), EW_TEST(softmax_had_blocks),
             EW_TEST(reductions_had_axes), EW_TEST(reductions_are_written),
             EW_TEST(top_k_had_an_attribute), EW_TEST(dropout_had_a_ratio),
             EW_TEST(split_says_its_parts), EW_TEST(older_opsets_lack_it))
