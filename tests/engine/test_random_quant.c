/* SPDX-License-Identifier: Apache-2.0 */
/* Single integer layers with unusual parameters, in all configurations, against the float
 * computation that they represent (random_seeds.h): zero points at the ends of the range, negative
 * scales, biases with the shape of a row, weights with zero points, padding.  Inputs are integers,
 * so nothing is rounded before the layer. */
#include <stdlib.h>

#include "all_configs.h"
#include "base/rng.h"
#include "ew_test.h"
#include "graph/layout.h"
#include "op/conv.h"
#include "op/math_attr.h"
#include "op/pooling.h"
#include "op/quant.h"
#include "op/shape_attr.h"
#include "random_graph.h"
#include "random_seeds.h"

#define GRAPHS 240
/* Of rounded results, which have hundreds of steps between minimum and maximum. */
#define STEP 0.01f

/* Other orders of sums, and biases rounded to integers; rounded results may differ by a step or
 * two. */
#define TOLERANCE       2e-3
#define ROUND_TOLERANCE 0.05

struct builder {
    struct ew_graph *g;
    struct ew_rng rng;
};

static int64_t draw(struct builder *m, int64_t least, int64_t most)
{
    return least + (int64_t)ew_rng_next_below(&m->rng, (uint64_t)(most - least + 1));
}

static bool chance(struct builder *m, int one_in)
{
    return draw(m, 1, one_in) == 1;
}

/* ---- Constants ---- */

static ew_err floats(struct builder *m, struct ew_shape s, double least, double most, int *out)
{
    float data[512];
    const int64_t n = ew_shape_count(&s);
    EW_CHECK(n <= (int64_t)EW_COUNT(data), EW_ERR_LIMIT, "too many constants");
    for (int64_t i = 0; i < n; i++)
        data[i] = (float)(least + (most - least) * (double)draw(m, 0, 1000) / 1000);
    const struct ew_tensor t = {.dtype = EW_F32, .shape = s, .data = data};
    return ew_graph_const(m->g, NULL, EW_VALUE_CONST, &t, true, out);
}

/* `count` integers from `least` to `most`; a scalar if the shape has no axes. */
static ew_err bytes(struct builder *m, enum ew_dtype dtype, struct ew_shape s,
                    const int64_t ends[2], int *out)
{
    uint8_t data[4096];
    struct ew_tensor t = {.dtype = dtype, .shape = s, .data = data};
    const int64_t n = ew_shape_count(&s);
    EW_CHECK(n <= (int64_t)sizeof(data), EW_ERR_LIMIT, "too many weights");
    for (int64_t i = 0; i < n; i++) {
        const int64_t v = draw(m, ends[0], ends[1]);
        ew_tensor_store_int(&t, i, 1, &v);
    }
    return ew_graph_const(m->g, NULL, EW_VALUE_CONST, &t, true, out);
}

/* Zero points are anywhere, often at an end of the range. */
static ew_err zero_point(struct builder *m, enum ew_dtype dtype, int *out)
{
    const int64_t lo = dtype == EW_U8 ? 0 : -128, hi = lo + 255;
    const int64_t z = chance(m, 3) ? lo : chance(m, 3) ? hi : draw(m, lo, hi);
    return bytes(m, dtype, (struct ew_shape){0}, (const int64_t[]){z, z}, out);
}

/* ---- Conversion between integers and floats ---- */

static ew_err add_input(struct builder *m, const char *name, const struct ew_shape *s, int *out)
{
    const enum ew_dtype dtype = chance(m, 2) ? EW_U8 : EW_S8;
    int in[3];
    EW_TRY(ew_graph_input(m->g, name, dtype, s, &in[0]));
    m->g->values[in[0]].dynamic = 0; /* a bias may have as many rows */
    const float scale = (chance(m, 6) ? -1.0f : 1.0f) * (float)draw(m, 5, 40) / 1000;
    EW_TRY(ew_graph_const_float(m->g, NULL, scale, &in[1]));
    EW_TRY(zero_point(m, dtype, &in[2]));
    return ew_graph_add(m->g, ew_op_find("dequantize_linear"), NULL, NULL, ew_inputs(in, 3), out);
}

static ew_err add_rounding(struct builder *m, int *value)
{
    const enum ew_dtype dtype = chance(m, 2) ? EW_U8 : EW_S8;
    const struct ew_quant_attr a = {.axis = 1, .dtype = (int)dtype};
    int in[3] = {*value};
    const int64_t middle = (dtype == EW_U8 ? 128 : 0) + draw(m, -60, 60); /* leaves room on both
                                                                           * sides */
    EW_TRY(ew_graph_const_float(m->g, NULL, STEP, &in[1]));
    EW_TRY(bytes(m, dtype, (struct ew_shape){0}, (const int64_t[]){middle, middle}, &in[2]));
    EW_TRY(ew_graph_add(m->g, ew_op_find("quantize_linear"), NULL, &a, ew_inputs(in, 3), in));
    return ew_graph_add(m->g, ew_op_find("dequantize_linear"), NULL, NULL, ew_inputs(in, 3), value);
}

/* Weights with one scale, or one per entry of the axis; sometimes with zero points. */
static ew_err add_weights(struct builder *m, struct ew_shape s, int axis, int *out)
{
    const struct ew_shape each = {chance(m, 2), {s.dim[axis]}};
    const struct ew_quant_attr a = {.axis = axis, .dtype = EW_S8};
    const int64_t odd = chance(m, 4) ? draw(m, -9, 9) : 0;
    int in[3];
    EW_TRY(bytes(m, EW_S8, s, (const int64_t[]){-127, 127}, &in[0]));
    EW_TRY(floats(m, each, 0.002, 0.01, &in[1]));
    EW_TRY(bytes(m, EW_S8, each, (const int64_t[]){odd, odd}, &in[2]));
    return ew_graph_add(m->g, ew_op_find("dequantize_linear"), NULL, &a, ew_inputs(in, 3), out);
}

/* ---- Layers ---- */

static ew_err add_gemm(struct builder *m, int *out)
{
    const int64_t rows = draw(m, 1, 5), k = draw(m, 1, 20),
                  n = chance(m, 2) ? rows : draw(m, 1, 19);
    const struct ew_shape biases[] = {{1, {n}}, {2, {1, n}}, {2, {rows, 1}}, {2, {rows, n}}, {0}};
    const struct ew_gemm_attr a = {.alpha = 1, .beta = 1, .trans_b = chance(m, 2)};
    int in[3];
    EW_TRY(add_input(m, "x", &(struct ew_shape){2, {rows, k}}, &in[0]));
    const struct ew_shape w = {2, {a.trans_b ? n : k, a.trans_b ? k : n}};
    EW_TRY(add_weights(m, w, a.trans_b ? 0 : 1, &in[1]));
    EW_TRY(floats(m, biases[draw(m, 0, (int64_t)EW_COUNT(biases) - 1)], -1, 1, &in[2]));
    return ew_graph_add(m->g, ew_op_find("gemm"), NULL, &a, ew_inputs(in, chance(m, 4) ? 2 : 3),
                        out);
}

static ew_err add_image(struct builder *m, const char *name, int64_t channels, int *out)
{
    const struct ew_shape s = {4, {draw(m, 1, 2), draw(m, 3, 7), draw(m, 3, 7), channels}};
    return add_input(m, name, &s, out);
}

static ew_err add_conv(struct builder *m, int *out)
{
    const int64_t c = draw(m, 1, 9), k = draw(m, 1, 3);
    const bool depthwise = chance(m, 3);
    const int64_t filters = depthwise ? c : draw(m, 1, 19);
    struct ew_conv_attr a = {
        .win = {.stride = {2, {draw(m, 1, 2), draw(m, 1, 2)}}, .pad = {.n = 4}},
        .groups = depthwise ? c : 1};
    int in[3];
    for (int i = 0; i < 4; i++)
        a.win.pad.v[i] = draw(m, 0, k - 1);
    EW_TRY(add_image(m, "x", c, &in[0]));
    EW_TRY(add_weights(m, (struct ew_shape){4, {filters, k, k, c / a.groups}}, 0, &in[1]));
    EW_TRY(floats(m, (struct ew_shape){1, {filters}}, -1, 1, &in[2]));
    return ew_graph_add(m->g, ew_op_find("conv"), NULL, &a, ew_inputs(in, chance(m, 3) ? 2 : 3),
                        out);
}

static ew_err add_pool(struct builder *m, int *out)
{
    static const char *const names[] = {"max_pool", "average_pool", "global_average_pool"};
    const int kind = (int)draw(m, 0, 2);
    struct ew_pool_attr a = {.win = {.kernel = {2, {draw(m, 1, 3), draw(m, 1, 3)}},
                                     .stride = {2, {draw(m, 1, 2), draw(m, 1, 2)}},
                                     .pad = {.n = 4},
                                     .dilation = {2, {1, 1}}},
                             .count_include_pad = chance(m, 2)};
    int x;
    for (int i = 0; i < 4; i++)
        a.win.pad.v[i] = draw(m, 0, a.win.kernel.v[i % 2] - 1);
    EW_TRY(add_image(m, "x", draw(m, 1, 9), &x));
    return ew_graph_add(m->g, ew_op_find(names[kind]), NULL, kind == 2 ? NULL : &a, EW_INPUTS(x),
                        out);
}

static ew_err add_pair(struct builder *m, int *out)
{
    static const char *const names[] = {"add", "mul", "sub", "concat"};
    const struct ew_shape s = {3, {draw(m, 1, 2), draw(m, 1, 7), draw(m, 1, 9)}};
    const struct ew_concat_attr a = {.axis = -1};
    const int kind = (int)draw(m, 0, 3);
    int in[2];
    EW_TRY(add_input(m, "x", &s, &in[0]));
    EW_TRY(add_input(m, "y", &s, &in[1]));
    return ew_graph_add(m->g, ew_op_find(names[kind]), NULL, kind == 3 ? &a : NULL,
                        ew_inputs(in, 2), out);
}

static ew_err add_function(struct builder *m, int *out)
{
    static const char *const names[] = {"sigmoid", "hard_swish", "tanh", "leaky_relu"};
    const struct ew_shape s = {2, {draw(m, 1, 3), draw(m, 1, 40)}};
    int x;
    EW_TRY(add_input(m, "x", &s, &x));
    return ew_graph_add(m->g, ew_op_find(names[draw(m, 0, 3)]), NULL, NULL, EW_INPUTS(x), out);
}

/* ---- Graph ---- */

static ew_err make(struct builder *m, bool *rounds)
{
    static ew_err (*const layers[])(struct builder *, int *) = {
        add_gemm, add_gemm, add_conv, add_conv, add_pool, add_pair, add_function};
    int y, in[3];
    EW_TRY(layers[draw(m, 0, (int64_t)EW_COUNT(layers) - 1)](m, &y));
    if (chance(m, 3))
        EW_TRY(ew_graph_add(m->g, ew_op_find("relu"), NULL, NULL, EW_INPUTS(y), &y));
    else if (chance(m, 3)) {
        in[0] = y;
        EW_TRY(ew_graph_const_float(m->g, NULL, -0.4f, &in[1]));
        EW_TRY(ew_graph_const_float(m->g, NULL, 0.9f, &in[2]));
        EW_TRY(ew_graph_add(m->g, ew_op_find("clip"), NULL, NULL, ew_inputs(in, 3), &y));
    }
    *rounds = chance(m, 2);
    if (*rounds)
        EW_TRY(add_rounding(m, &y));
    EW_TRY(ew_graph_output(m->g, y));
    return ew_graph_infer(m->g);
}

static ew_err check(uint64_t seed, int nodes, bool print)
{
    struct builder m = {.rng = {.seed = seed}};
    bool rounds = false;
    EW_TRY(ew_graph_new("random", &m.g));
    ew_err e = make(&m, &rounds);
    const struct ew_all_configs o = {.seed = seed,
                                     .tolerance = rounds ? ROUND_TOLERANCE : TOLERANCE,
                                     .files = true,
                                     .any_byte = true,
                                     .must_run = true};
    if (e == EW_OK)
        e = ew_run_all_configs(m.g, &o);
    if (e != EW_OK && print)
        ew_random_graph_print(m.g, stderr);
    ew_graph_free(m.g);
    return e;
}

static void results_agree(void)
{
    ew_random_seeds(check, GRAPHS, 0);
}

EW_TEST_MAIN(EW_TEST(results_agree))
