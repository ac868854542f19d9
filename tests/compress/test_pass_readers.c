/* SPDX-License-Identifier: Apache-2.0 */
/* Patterns that passes rewrite, with all combinations of other uses of the inner values.
 *
 * Regression: a pass that folded conv - bn - bn counted the uses of each value once, before it
 * changed any: with another use of the first batch norm's output it folded the second one into a
 * convolution that both read, and the other result was ten times too large.  So every value of a
 * chain has one use, or is also a graph output, or is also read by a node of another kind, or by a
 * copy of its consumer, in every combination; each pass must leave every output unchanged. */
#include <math.h>
#include <string.h>

#include "compress/pass.h"
#include "edgewise.h"
#include "ew_test.h"
#include "graph/layout.h"
#include "op/conv.h"
#include "op/math_attr.h"
#include "op/norm.h"
#include "op/pooling.h"
#include "op/shape_attr.h"
#include "plan/plan.h"
#include "run_graph.h"

#define IMAGES   4 /* required by the rewrite to conv_pool */
#define CHANNELS 3
#define PIXELS   8

enum reading { ALONE, OUTPUT, ANOTHER, TWICE, READINGS };

static ew_err weights(struct ew_graph *g, enum ew_value_kind kind, struct ew_shape shape, int *out)
{
    static float data[4096];
    const struct ew_tensor t = {.dtype = EW_F32, .shape = shape, .data = data};
    for (int64_t i = 0; i < ew_shape_count(&shape); i++)
        data[i] = (kind == EW_VALUE_STATE ? 1.5f : 0.0f) + cosf((float)i + 0.3f * (float)*out);
    return ew_graph_const(g, NULL, kind, &t, true, out);
}

static ew_err add_op(struct ew_graph *g, const char *op, const void *attr, int *x)
{
    return ew_graph_add(g, ew_op_find(op), NULL, attr, ew_inputs(x, 1), x);
}

static ew_err add_conv(struct ew_graph *g, int *x)
{
    const struct ew_conv_attr a = {.win = {.pad = {4, {1, 1, 1, 1}}}, .groups = 1};
    int in[] = {*x, *x, *x + 1};
    EW_TRY(weights(g, EW_VALUE_PARAM, (struct ew_shape){4, {CHANNELS, 3, 3, CHANNELS}}, &in[1]));
    EW_TRY(weights(g, EW_VALUE_PARAM, (struct ew_shape){1, {CHANNELS}}, &in[2]));
    return ew_graph_add(g, ew_op_find("conv"), NULL, &a, ew_inputs(in, 3), x);
}

static ew_err add_norm(struct ew_graph *g, int *x)
{
    int in[] = {*x, *x, *x + 1, *x + 2, *x + 3};
    for (int i = 1; i < 5; i++)
        EW_TRY(weights(g, i < 3 ? EW_VALUE_PARAM : EW_VALUE_STATE, (struct ew_shape){1, {CHANNELS}},
                       &in[i]));
    return ew_graph_add(g, ew_op_find("batch_norm"), NULL, NULL, ew_inputs(in, 5), x);
}

static ew_err add_pad(struct ew_graph *g, int *x)
{
    int in[] = {*x, 0};
    EW_TRY(ew_graph_const_ints(g, NULL, (const int64_t[]){0, 1, 0, 0, 0, 0, 1, 0}, 8, &in[1]));
    return ew_graph_add(g, ew_op_find("pad"), NULL, NULL, ew_inputs(in, 2), x);
}

static ew_err add_gemm(struct ew_graph *g, int *x)
{
    const struct ew_gemm_attr a = {.alpha = 1, .beta = 1, .trans_b = true};
    const int64_t k = g->values[*x].t.shape.dim[1];
    int in[] = {*x, *x};
    EW_TRY(weights(g, EW_VALUE_PARAM, (struct ew_shape){2, {5, k}}, &in[1]));
    return ew_graph_add(g, ew_op_find("gemm"), NULL, &a, ew_inputs(in, 2), x);
}

static ew_err add_add(struct ew_graph *g, int *x)
{
    int in[] = {*x, *x};
    const struct ew_shape *s = &g->values[*x].t.shape;
    EW_TRY(weights(g, EW_VALUE_CONST, *s, &in[1]));
    return ew_graph_add(g, ew_op_find("add"), NULL, NULL, ew_inputs(in, 2), x);
}

static ew_err add_reshape(struct ew_graph *g, const int64_t *shape, int rank, int *x)
{
    int in[] = {*x, *x};
    EW_TRY(ew_graph_const_ints(g, NULL, shape, rank, &in[1]));
    return ew_graph_add(g, ew_op_find("reshape"), NULL, NULL, ew_inputs(in, 2), x);
}

/* One letter of a chain. */
static ew_err add_letter(struct ew_graph *g, char letter, int *x)
{
    const struct ew_pool_attr pool = {
        .win = {.kernel = {2, {2, 2}}, .stride = {2, {2, 2}}, .dilation = {2, {1, 1}}}};
    const struct ew_transpose_attr turn = {.perm = {4, {0, 3, 1, 2}}};
    const struct ew_flatten_attr flat = {.axis = 1}, flat_plane = {.axis = 2};
    switch (letter) {
    case 'c':
        return add_conv(g, x);
    case 'b':
        return add_norm(g, x);
    case 'p':
        return add_pad(g, x);
    case 'g':
        return add_gemm(g, x);
    case '+':
        return add_add(g, x);
    case 'm':
        return add_op(g, "max_pool", &pool, x);
    case 't':
        return add_op(g, "transpose", &turn, x);
    case 'f':
        return add_op(g, "flatten", &flat, x);
    /* after 't' a single channel, flattened behind it; single pixels, whose channels stay */
    case 'q':
        return add_reshape(g, (const int64_t[]){IMAGES, 12, 16, 1}, 4, x);
    case '2':
        return add_op(g, "flatten", &flat_plane, x);
    case 'e':
        return add_reshape(g, (const int64_t[]){IMAGES, 1, 1, 192}, 4, x);
    case '0':
        return add_reshape(g, (const int64_t[]){0, 0}, 2, x);
    case 'i':
        return add_op(g, "identity", NULL, x);
    default:
        return add_op(g, "relu", NULL, x);
    }
}

/* The chain of letters; digit i of `readings` in base READINGS says how value i is used. */
static ew_err build(struct ew_graph *g, const char *chain, int readings)
{
    const struct ew_shape in = {4, {IMAGES, PIXELS, PIXELS, CHANNELS}};
    int x, other;
    EW_TRY(ew_graph_input(g, "x", EW_F32, &in, &x));
    for (; *chain; chain++, readings /= READINGS) {
        EW_TRY(add_letter(g, *chain, &x));
        other = x;
        if (readings % READINGS == ANOTHER)
            EW_TRY(add_op(g, "sigmoid", NULL, &other));
        if (readings % READINGS == TWICE && chain[1])
            EW_TRY(add_letter(g, chain[1], &other));
        if (readings % READINGS != ALONE)
            EW_TRY(ew_graph_output(g, other));
    }
    return ew_graph_output(g, x);
}

/* Folding changes the order of roundings: 1e-4 of the largest output. */
static bool same_outputs(struct ew_plan *want, struct ew_plan *got, int n)
{
    bool ok = true;
    for (int k = 0; k < n; k++) {
        const struct ew_tensor *a = ew_plan_output(want, k), *b = ew_plan_output(got, k);
        ok &= EW_EXPECT(ew_shape_equal(&a->shape, &b->shape));
        double most = 0;
        for (int64_t i = 0; i < ew_tensor_count(a); i++)
            most = fmax(most, fabs(ew_tensor_get(a, i)));
        ok &= EW_EXPECT_CLOSE((const float *)b->data, (const float *)a->data,
                              (size_t)ew_tensor_count(a), 0, 1e-4 * most);
    }
    return ok;
}

static ew_err equalize(struct ew_graph *g)
{
    return ew_pass_equalize(g, &(struct ew_equalize_opts){.rounds = 1});
}

/* The CPU backend's rewrite. */
static ew_err conv_pool(struct ew_graph *g)
{
    struct ew_backend *be = NULL;
    EW_TRY(ew_backend_open(&(struct ew_backend_opts){.device = "cpu", .threads = 1}, &be));
    const ew_err e = ew_backend_rewrite(be, g);
    ew_backend_close(be);
    return e;
}

static const struct {
    const char *name;
    ew_err (*run)(struct ew_graph *g);
} passes[] = {{"drop_identity", ew_pass_drop_identity},
              {"fold_constants", ew_pass_fold_constants},
              {"fold_pad", ew_pass_fold_pad},
              {"fold_batch_norm", ew_pass_fold_batch_norm},
              {"fold_flatten", ew_pass_fold_flatten},
              {"fold_scale", ew_pass_fold_scale},
              {"trim_taps", ew_pass_trim_taps},
              {"fuse_epilogue", ew_pass_fuse_epilogue},
              {"fuse_norm", ew_pass_fuse_norm},
              {"sink_activation", ew_pass_sink_activation},
              {"fuse_relu", ew_pass_fuse_relu},
              {"conv_pool", conv_pool},
              {"equalize", equalize},
              {"all", ew_pass_all}};

/* False: a pass failed, so the case ends. */
static bool check(const char *chain, int readings)
{
    struct ew_graph *g = NULL;
    bool ok = EW_EXPECT_OK(ew_graph_new("chain", &g)) && EW_EXPECT_OK(build(g, chain, readings));
    struct ew_plan *want = ok ? ew_run_sine(g, true) : NULL;
    for (size_t i = 0; want && ok && i < EW_COUNT(passes); i++) {
        struct ew_graph *copy = NULL;
        ok = EW_EXPECT_OK(ew_graph_clone(g, &copy)) && EW_EXPECT_OK(passes[i].run(copy)) &&
             EW_EXPECT_OK(ew_graph_check(copy));
        struct ew_plan *got = ok ? ew_run_sine(copy, true) : NULL;
        ok = ok && got && same_outputs(want, got, g->n_outputs);
        if (!ok)
            EW_FAIL("chain %s, readings %d, pass %s", chain, readings, passes[i].name);
        ew_plan_free(got);
        ew_graph_free(copy);
    }
    ew_plan_free(want);
    ew_graph_free(g);
    return ok;
}

int main(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    static const char *const chains[] = {"cbb", "cbr",  "crc",  "cr+",   "c+r",   "pcb",  "br",
                                         "rm",  "cmr",  "cmrt", "tfg",   "cbtfg", "icib", "iirr",
                                         "cc",  "crmc", "rrmm", "cbb+r", "qt2g",  "et0g"};
    for (size_t i = 0; i < EW_COUNT(chains); i++) {
        ew_test_begin("%s", chains[i]);
        int ways = 1;
        for (const char *c = chains[i]; c[1]; c++)
            ways *= READINGS;
        for (int k = 0; k < ways && check(chains[i], k); k++)
            ;
        ew_test_end();
    }
    return ew_test_status();
}
