/* SPDX-License-Identifier: Apache-2.0 */
/* Removing channels: the network computes the same as with these channels set to zero. */
#include "compress/channels.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "ew_test.h"
#include "op/conv.h"
#include "plan/plan.h"
#include "run_graph.h"

static struct ew_graph *build(const char *name)
{
    struct ew_graph *g = ew_small_network(name);
    if (!EW_EXPECT(g))
        return NULL;
    /* Shifts and statistics other than the initial ones, whose zeros would hide errors. */
    for (int v = 0; v < g->n_values; v++) {
        const struct ew_value *s = &g->values[v];
        const bool vector = s->t.shape.rank == 1 && s->t.data && s->t.dtype == EW_F32;
        for (int64_t i = 0; vector && i < ew_tensor_count(&s->t); i++)
            ((float *)s->t.data)[i] += 0.2f * sinf((float)(i + v)) * sinf((float)(i + v));
    }
    return g;
}

/* About a third of every group; at least one channel stays. */
static bool *choose(const struct ew_channels *c, uint64_t seed, int *n)
{
    bool *gone = calloc((size_t)c->n_units + 1, sizeof(*gone));
    struct ew_rng rng = {.seed = seed};
    *n = 0;
    for (int k = 0; k < c->n_groups; k++)
        for (int i = 1; i < c->groups[k].n; i++)
            if (ew_rng_next_uniform(&rng) < 0.33) {
                gone[c->groups[k].units[i]] = true;
                ++*n;
            }
    return gone;
}

/* Sets what produces these channels to zero: filters, biases, scale and shift of norms. */
static void zero(struct ew_graph *g, const struct ew_channels *c, const bool *gone)
{
    for (int v = 0; v < g->n_values; v++) {
        struct ew_tensor *t = &g->values[v].t;
        if (g->values[v].kind != EW_VALUE_PARAM || !c->of[v][0])
            continue;
        const int64_t inner = ew_shape_span(&t->shape, 1, t->shape.rank);
        for (int64_t i = 0; i < t->shape.dim[0]; i++)
            if (gone[c->of[v][0][i]])
                memset((float *)t->data + i * inner, 0, (size_t)inner * sizeof(float));
    }
}

/* By the references, which only add zeros in one of the two: fast kernels of other widths round
 * otherwise. */
static void compare(struct ew_graph *whole, struct ew_graph *pruned)
{
    struct ew_plan *a = ew_run_sine(whole, true), *b = ew_run_sine(pruned, true);
    if (a && b) {
        const struct ew_tensor *x = ew_plan_output(a, 0), *y = ew_plan_output(b, 0);
        double most = 0;
        for (int64_t i = 0; i < ew_tensor_count(x); i++)
            most = fmax(most, fabs(ew_tensor_get(x, i)));
        EW_EXPECT(ew_shape_equal(&x->shape, &y->shape) && most > 0);
        EW_EXPECT_CLOSE((const float *)y->data, (const float *)x->data, (size_t)ew_tensor_count(x),
                        0, 1e-6 * most);
    }
    ew_plan_free(a);
    ew_plan_free(b);
}

static void check_graph(struct ew_graph *g, int least_groups)
{
    struct ew_channels c;
    struct ew_graph *pruned = NULL, *shapes = NULL;
    struct ew_cost before, after, counted;
    int n;
    if (!EW_EXPECT_OK(ew_channels_find(g, &c)))
        return;
    EW_EXPECT(c.n_groups >= least_groups);
    bool *gone = choose(&c, 7, &n);
    EW_EXPECT(n > 0);
    zero(g, &c, gone);
    if (EW_EXPECT_OK(ew_graph_clone(g, &pruned)) &&
        EW_EXPECT_OK(ew_channels_remove(pruned, &c, gone, false))) {
        compare(g, pruned);
        EW_EXPECT_OK(ew_graph_cost(g, &before, NULL));
        EW_EXPECT_OK(ew_graph_cost(pruned, &after, NULL));
        EW_EXPECT(after.macs < before.macs && after.params < before.params);
        EW_EXPECT_OK(ew_graph_clone(g, &shapes));
        EW_EXPECT_OK(ew_channels_remove(shapes, &c, gone, true));
        EW_EXPECT_OK(ew_graph_cost(shapes, &counted, NULL));
        EW_EXPECT_INT(counted.macs, after.macs);
        EW_EXPECT_INT(counted.params, after.params);
    }
    free(gone);
    ew_graph_free(shapes);
    ew_graph_free(pruned);
    ew_channels_fini(&c);
}

static bool is_in(const char *name, const char *const *list)
{
    while (*list && strcmp(name, *list) != 0)
        list++;
    return *list;
}

/* Deeper variants of tested families; in quick tests r3d_18 stands for video networks. */
static bool is_left_out(const char *name)
{
    static const char *const large[] = {
        "densenet169", "densenet201", "resnet101",          "resnet152", "vgg13",
        "vgg16",       "vgg19",       "shufflenet_v2_x2_0", NULL};
    static const char *const slow[] = {"mc3_18", "r2plus1d_18", "resnet18_frames",
                                       "resnext50_32x4d", NULL};
    return is_in(name, large) || (ew_test_quick() && is_in(name, slow));
}

static void zoo(void)
{
    for (int i = 0; i < ew_model_count(); i++) {
        const char *name = ew_model_name(i);
        if (is_left_out(name))
            continue;
        ew_test_begin("%s", name);
        struct ew_graph *g = build(name);
        if (g)
            check_graph(g, 3);
        ew_graph_free(g);
        ew_test_end();
    }
}

/* ---- Small graphs ---- */

static int weight(struct ew_graph *g, const char *name, struct ew_shape s)
{
    struct ew_tensor t = {.dtype = EW_F32, .shape = s};
    float *w = calloc((size_t)ew_shape_count(&s), sizeof(*w));
    int out = -1;
    for (int64_t i = 0; i < ew_shape_count(&s); i++)
        w[i] = sinf((float)i * 1.3f + (float)g->n_values);
    t.data = w;
    EW_EXPECT_OK(ew_graph_const(g, name, EW_VALUE_PARAM, &t, true, &out));
    free(w);
    return out;
}

static int add(struct ew_graph *g, const char *op, const void *attr, const int *in, int n_in)
{
    int out = -1;
    EW_EXPECT_OK(ew_graph_add(g, ew_op_find(op), NULL, attr, ew_inputs(in, n_in), &out));
    return out;
}

static int conv(struct ew_graph *g, int x, int64_t out, int64_t in, int64_t groups)
{
    const struct ew_conv_attr a = {.groups = groups};
    const int w = weight(g, "w", (struct ew_shape){4, {out, 1, 1, in / groups}});
    return add(g, "conv", &a, (const int[]){x, w}, 2);
}

static struct ew_graph *start(int *x)
{
    struct ew_graph *g = NULL;
    EW_EXPECT_OK(ew_graph_new("small", &g));
    EW_EXPECT_OK(ew_graph_input(g, "x", EW_F32, &(struct ew_shape){4, {2, 3, 3, 3}}, x));
    return g;
}

/* x -> conv 8 -> slice [2, 6) -> conv; a constant per channel is added in between. */
static void slices_and_constants(void)
{
    int x, ids[5];
    struct ew_graph *g = start(&x);
    int y = conv(g, x, 8, 3, 1);
    const int by_channel = weight(g, "shift", (struct ew_shape){1, {8}});
    y = add(g, "mul", NULL, (const int[]){y, by_channel}, 2);
    EW_EXPECT_OK(ew_graph_const_ints(g, "starts", (const int64_t[]){2}, 1, &ids[0]));
    EW_EXPECT_OK(ew_graph_const_ints(g, "ends", (const int64_t[]){6}, 1, &ids[1]));
    EW_EXPECT_OK(ew_graph_const_ints(g, "axes", (const int64_t[]){-1}, 1, &ids[2]));
    y = add(g, "slice", NULL, (const int[]){y, ids[0], ids[1], ids[2]}, 4);
    y = conv(g, y, 5, 4, 1);
    y = conv(g, y, 4, 5, 1);
    EW_EXPECT_OK(ew_graph_output(g, y));
    EW_EXPECT_OK(ew_graph_infer(g));
    check_graph(g, 2);
    ew_graph_free(g);
}

/* Groups of a convolution, and the halves of a shuffle, lose the same positions. */
static void groups_stay_alike(void)
{
    int x;
    struct ew_graph *g = start(&x);
    struct ew_channels c;
    int y = conv(g, x, 12, 3, 1);
    y = conv(g, y, 12, 12, 3);
    y = conv(g, y, 4, 12, 1);
    EW_EXPECT_OK(ew_graph_output(g, y));
    EW_EXPECT_OK(ew_graph_infer(g));
    EW_EXPECT_OK(ew_channels_find(g, &c));
    EW_EXPECT_INT(c.n_groups, 2);
    EW_EXPECT_INT(c.groups[0].n, 4); /* positions in a group of 12 / 3 */
    EW_EXPECT_INT(c.groups[1].n, 4);
    ew_channels_fini(&c);
    check_graph(g, 2);
    ew_graph_free(g);
}

/* Weights that also read the graph's input keep what they read, and so what the layer gives. */
static void shared_weights(void)
{
    const struct ew_conv_attr a = {.groups = 1};
    int x;
    struct ew_graph *g = start(&x);
    const int w = weight(g, "w", (struct ew_shape){4, {3, 1, 1, 3}});
    const int scale = weight(g, "scale", (struct ew_shape){1, {3}});
    int y = add(g, "mul", NULL, (const int[]){x, scale}, 2);
    y = add(g, "conv", &a, (const int[]){y, w}, 2);
    y = add(g, "conv", &a, (const int[]){y, w}, 2);
    int z = conv(g, x, 3, 3, 1);
    z = add(g, "mul", NULL, (const int[]){z, scale}, 2);
    z = conv(g, z, 3, 3, 1);
    y = add(g, "add", NULL, (const int[]){y, z}, 2);
    y = conv(g, y, 8, 3, 1);
    y = conv(g, y, 4, 8, 1);
    EW_EXPECT_OK(ew_graph_output(g, y));
    EW_EXPECT_OK(ew_graph_infer(g));
    check_graph(g, 1);
    ew_graph_free(g);
}

/* A number beside a layer of one channel.  Regression: its units were set for axis -1. */
static void one_channel(void)
{
    const float half = 0.5f;
    int x, number;
    struct ew_graph *g = start(&x);
    int y = conv(g, conv(g, x, 6, 3, 1), 1, 6, 1);
    EW_EXPECT_OK(ew_graph_const_float(g, "half", half, &number));
    y = add(g, "mul", NULL, (const int[]){y, number}, 2);
    y = conv(g, conv(g, y, 8, 1, 1), 4, 8, 1);
    EW_EXPECT_OK(ew_graph_output(g, y));
    EW_EXPECT_OK(ew_graph_infer(g));
    check_graph(g, 2);
    ew_graph_free(g);
}

/* Operators that mix channels in an unknown way, graph inputs and outputs keep their channels. */
static void unknown_keeps(void)
{
    int x;
    struct ew_graph *g = start(&x);
    struct ew_channels c;
    int y = conv(g, x, 6, 3, 1);
    y = add(g, "softmax", NULL, &y, 1);
    y = conv(g, y, 4, 6, 1);
    EW_EXPECT_OK(ew_graph_output(g, y));
    EW_EXPECT_OK(ew_graph_infer(g));
    EW_EXPECT_OK(ew_channels_find(g, &c));
    EW_EXPECT_INT(c.n_groups, 0);
    EW_EXPECT_INT(c.n_units, 10);
    for (int u = 0; u < c.n_units; u++)
        EW_EXPECT(c.units[u].is_fixed);
    EW_EXPECT_STR(g->nodes[c.units[0].keeper].op->name, "softmax");
    EW_EXPECT_INT(c.units[9].keeper, -1);
    ew_channels_fini(&c);
    ew_graph_free(g);
}

int main(int argc, char **argv)
{
    static const struct ew_test tests[] = {EW_TEST(slices_and_constants),
                                           EW_TEST(groups_stay_alike), EW_TEST(shared_weights),
                                           EW_TEST(one_channel), EW_TEST(unknown_keeps)};
    zoo();
    const int small = ew_test_main(argc, argv, tests, 5);
    const int all = ew_test_status();
    return small ? small : all;
}
