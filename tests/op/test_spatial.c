/* SPDX-License-Identifier: Apache-2.0 */
/* Spatial operators and norms: expected values for cases that ONNX's packaged tests do not cover
 * (torch's window rules, resizing of opset 18 and later, running statistics), and shapes that must
 * be refused. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ew_test.h"
#include "graph/onnx.h"
#include "op/norm.h"
#include "op/resize.h"
#include "op_case.h"

#define MAX_IN 5

/* An operator on constants: out[0] must be `out`, or the error message must contain it. */
struct row {
    const char *op, *attrs;
    struct ew_case_in in[MAX_IN];
    const char *out;
};

/* clang-format off */
#define F32(shape, text) {shape, EW_F32, EW_FILL_VALUES, .values = text, .constant = true}
#define S64(shape, text) {shape, EW_S64, EW_FILL_VALUES, .values = text, .constant = true}
#define NONE {NULL}
#define PLAIN(shape) {shape, .constant = true}

static const struct row values[] = {
    /* Windows [0,3) [2,5) [4,7), and [0,1) [0,2) [1,2) [1,3) [2,3). */
    {"adaptive_avg_pool", "size=3", {F32("1x7x1", "0,1,2,3,4,5,6")}, "1,3,5"},
    {"adaptive_max_pool", "size=3", {F32("1x7x1", "6,1,2,3,4,5,0")}, "6,4,5"},
    {"adaptive_avg_pool", "size=5", {F32("1x3x1", "0,1,2")}, "0,0.5,1,1.5,2"},
    /* torch.nn.AvgPool1d(3, 2, 1, ceil_mode=True): the last window contains one element and one
     * padding element; positions beyond the padding do not count. */
    {"average_pool", "kernel=3 stride=2 pad=1x1 ceil_mode=true count_include_pad=true",
     {F32("1x4x1", "1,2,3,4")}, "1,3,2"},
    {"average_pool", "kernel=3 stride=2 pad=1x1 ceil_mode=true", {F32("1x4x1", "1,2,3,4")},
     "1.5,3,4"},
    {"max_pool", "kernel=3 stride=2 ceil_mode=true", {F32("1x6x1", "6,5,4,3,2,1")}, "6,4,2"},
    /* With ceil_mode the third window would start in the padding. */
    {"max_pool", "kernel=2 stride=2 pad=0x1 ceil_mode=true", {F32("1x4x1", "1,2,3,4")}, "2,4"},
    {"max_pool", "kernel=2", {F32("1x3x1", "1,nan,3")}, "nan,nan"},
    {"average_pool", "kernel=2 dilation=2", {F32("1x4x1", "1,2,3,4")}, "2,3"},
    {"lp_pool", "kernel=2 p=1", {F32("1x3x1", "-1,2,-3")}, "3,5"},
    {"conv", "pad=1x0", {F32("1x3x1", "1,2,3"), F32("1x2x1", "10,1")}, "1,12,23"},
    {"conv", "auto_pad=SAME_LOWER", {F32("1x3x1", "1,2,3"), F32("1x2x1", "10,1")}, "1,12,23"},
    {"conv", "auto_pad=SAME_UPPER", {F32("1x3x1", "1,2,3"), F32("1x2x1", "10,1")}, "12,23,30"},
    {"conv", "groups=2", {F32("1x1x2", "2,3"), F32("2x1x1", "5,7"), F32("2", "1,-1")}, "11,20"},
    {"conv_transpose", "stride=2 output_padding=1",
     {F32("1x2x1", "1,2"), F32("1x2x1", "10,1"), F32("1", "0.5")}, "10.5,1.5,20.5,2.5,0.5"},
    {"conv_transpose", "stride=2 auto_pad=SAME_LOWER", {F32("1x2x1", "1,2"), F32("1x3x1", "1,10,100")},
     "10,102,20,200"},
    {"conv_transpose", "stride=2 auto_pad=SAME_UPPER", {F32("1x2x1", "1,2"), F32("1x3x1", "1,10,100")},
     "1,10,102,20"},

    /* (x - mean) / sqrt(var + eps) with mean 2, var 1 and with mean 5, var 9. */
    {"group_norm", "groups=2 eps=0", {F32("1x1x4", "1,3,2,8"), F32("4", "1,1,2,2"), F32("4", "0,0,0,1")},
     "-1,1,-2,3"},
    {"group_norm", "groups=2 eps=0", {F32("1x1x4", "1,3,2,8"), F32("2", "1,2"), F32("2", "0,1")},
     "-1,1,-1,3"},
    {"instance_norm", "eps=0", {F32("1x2x2", "1,2,3,8"), F32("2", "1,2"), F32("2", "0,1")},
     "-1,-1,1,3"},
    {"layer_norm", "eps=0", {F32("2x2", "1,3,2,8"), F32("2", "1,2"), F32("2", "0,1")}, "-1,3,-1,3"},
    {"lrn", "size=2 alpha=2 beta=1 bias=1", {F32("1x1x3", "1,2,3")}, "0.16666667,0.14285714,0.3"},
    {"lp_normalization", "axis=0", {F32("2x2", "3,0,4,0")}, "0.6,0,0.8,0"},

    /* The examples of ONNX's documentation for Resize of opsets 18 and 19. */
    {"resize", "mode=linear antialias=true",
     {F32("1x4x4x1", "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16"), NONE, F32("4", "1,0.6,0.6,1")},
     "2.875,4.5,9.375,11"},
    {"resize", "mode=cubic antialias=true",
     {F32("1x4x4x1", "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16"), NONE, F32("4", "1,0.6,0.6,1")},
     "2.5180721,4.2858863,9.589329,11.357142"},
    {"resize", "mode=linear coordinate=half_pixel_symmetric",
     {F32("4", "1,2,3,4"), NONE, F32("1", "0.6")}, "1.6666667,3.3333333"},
    {"resize", "mode=linear coordinate=half_pixel_symmetric",
     {F32("2x2", "1,2,3,4"), NONE, F32("2", "2.3,2.94")},
     "1,1.15986395,1.5,1.84013605,2,1.56521738,1.72508133,2.06521738,2.40535343,2.56521738,"
     "2.43478262,2.59464657,2.93478262,3.27491867,3.43478262,3,3.15986395,3.5,3.84013605,4"},
    {"resize", "aspect=not_larger",
     {F32("2x4", "1,2,3,4,5,6,7,8"), NONE, NONE, S64("2", "1,3")}, "1,3"},
    {"resize", "aspect=not_smaller",
     {F32("2x4", "1,2,3,4,5,6,7,8"), NONE, NONE, S64("2", "1,3")}, "1,2,4,5,6,8"},
    {"resize", "axes=1,0 coordinate=asymmetric round=floor",
     {F32("1x2", "1,2"), NONE, NONE, S64("2", "4,2")}, "1,1,2,2,1,1,2,2"},

    /* Scales that float32 rounds up: 1 / 0.33333334 is 3, 1 / 0.1 is 10. */
    {"resize", "coordinate=asymmetric round=floor",
     {F32("12", "0,1,2,3,4,5,6,7,8,9,10,11"), NONE, F32("1", "0.33333334")}, "0,3,6,9"},
    {"resize", "coordinate=asymmetric round=floor",
     {F32("20", "0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19"), NONE, F32("1", "0.1")},
     "0,10"},

    /* 8.5 x 14 / 17 - 0.5 is 6.5, which is rounded to 6: 8.5 / (17 / 14) is slightly more than
     * 7. */
    {"resize", NULL,
     {F32("14", "0,1,2,3,4,5,6,7,8,9,10,11,12,13"), NONE, NONE, S64("1", "17")},
     "0,1,2,2,3,4,5,6,6,7,8,9,10,11,11,12,13"},
    {"affine_grid", NULL, {F32("1x2x3", "1,0,0,0,1,0"), S64("4", "1,1,2,2")},
     "-0.5,-0.5,0.5,-0.5,-0.5,0.5,0.5,0.5"},
    /* For a fractional size (4 x 0.6 = 2.4) ONNX's own tests use all digits, PyTorch and ONNX
     * Runtime use 2: we follow the standard's tests. */
    {"resize", "mode=linear coordinate=align_corners",
     {F32("1x1x4x1", "1,2,3,4"), NONE, F32("4", "1,1,0.6,1")}, "1,3.142857"},
    /* Position 3.3 reads pixels 2, 3, 3, 3: 4 + (2 - 4) w(1.3), with the cubic kernel w for
     * -0.75. */
    {"grid_sample", "mode=cubic padding=border align_corners=true",
     {F32("1x1x4x1", "0,1,2,4"), F32("1x1x1x2", "1.2,0")}, "4.2205"},
    {"grid_sample", "mode=nearest padding=reflection",
     {F32("1x1x3x1", "1,2,3"), F32("1x1x3x2", "-1.5,0,0,0,1.8,0")}, "1,2,2"},
    /* In float32 -0.33333331 is at 0.5, which rounds to 0; with all digits it is behind it. */
    {"grid_sample", "mode=nearest padding=border",
     {F32("1x1x3x1", "1,2,3"), F32("1x1x2x2", "-0.33333331,0,0.33333337,0")}, "1,3"},
    {"roi_align", "mode=max sampling_ratio=1 coordinate=output_half_pixel",
     {F32("1x2x2x1", "1,2,3,4"), F32("1x4", "0,0,1,1"), S64("1", "0")}, "1"},
};

static const struct row errors[] = {
    {"conv", NULL, {PLAIN("1x2x2x1"), PLAIN("1x3x3x1")}, "does not fit an input of 2"},
    {"conv", "groups=2", {PLAIN("1x2x2x3"), PLAIN("2x1x1x1")}, "2 groups do not divide 3 channels"},
    {"conv", NULL, {PLAIN("1x2x2x3"), PLAIN("2x1x1x4")}, "filters take 4 channels"},
    {"conv", "pad=1x1", {PLAIN("1x2x2x3"), PLAIN("2x1x1x3")}, "pad has 2 entries, 4 are needed"},
    {"conv", "kernel=2x2", {PLAIN("1x2x2x3"), PLAIN("2x1x1x3")}, "kernel is 2, the filters have 1"},
    {"conv", NULL, {PLAIN("1x2x2x3"), PLAIN("2x1x1x3"), PLAIN("3")}, "each of 2 filters"},
    {"conv", NULL, {PLAIN("1x3"), PLAIN("2x3")}, "1 to 3 spatial dimensions"},
    {"conv", NULL, {S64("1x1x1", "1"), S64("1x1x1", "1")}, "only float32 and float64"},
    {"conv", "pad=2147483647x2147483647", {PLAIN("1000x1x1"), PLAIN("1000x1x1")}, "2^40"},
    {"conv_transpose", "pad=2x2", {PLAIN("1x1x1"), PLAIN("1x3x1")}, "leaves nothing"},
    {"conv_transpose", "stride=2147483647", {PLAIN("1x1000x1"), PLAIN("1x1x1")}, "2^40"},
    {"max_pool", "kernel=2x2", {PLAIN("1x1x2x1")}, "does not fit an input of 1"},
    {"max_pool", "kernel=2", {PLAIN("1x2x2x1")}, "kernel has 1 entries, 2 are needed"},
    {"max_pool", "kernel=2 pad=2x0", {PLAIN("1x2x1")}, "without an element"},
    {"max_pool", "kernel=2147483647 dilation=2147483647", {PLAIN("1x2x1")}, "does not fit"},
    {"adaptive_avg_pool", "size=2", {PLAIN("1x4x4x1")}, "size has 1 entries, 2 are needed"},
    {"max_unpool", "kernel=2", {PLAIN("1x1x1"), S64("1x1x1", "2")}, "index 2 is outside"},
    {"batch_norm", NULL, {PLAIN("1x2x2"), PLAIN("2"), PLAIN("2"), PLAIN("3"), PLAIN("2")},
     "mean does not have one entry for each of 2 channels"},
    {"group_norm", "groups=3", {PLAIN("1x2x4"), PLAIN("4"), PLAIN("4")}, "3 groups do not divide 4"},
    {"depth_to_space", NULL, {PLAIN("1x1x1x6")}, "blocks of 2 do not divide"},
    {"resize", NULL, {PLAIN("2x2")}, "either scales or sizes"},
    {"resize", NULL, {PLAIN("2x2"), NONE, F32("2", "1,nan")}, "scale 1 is nan"},
    {"resize", NULL, {PLAIN("2x2"), NONE, F32("2", "1,0.1")}, "axis 1 of 2 becomes 0"},
    {"resize", NULL, {PLAIN("2x2"), NONE, F32("2", "1e12,1e12")}, "axis 0 of 2 becomes 0"},
    {"resize", "axes=0,-2", {PLAIN("2x2"), NONE, F32("2", "1,1")}, "axis 0 is named twice"},
    {"resize", "coordinate=tf_crop_and_resize", {PLAIN("2"), NONE, F32("1", "1")}, "needs a roi"},
    {"roi_align", NULL, {PLAIN("1x2x2x1"), F32("1x4", "0,0,1,1"), S64("1", "1")}, "is of image 1"},
    {"roi_align", NULL, {PLAIN("1x2x2x1"), F32("1x4", "0,0,1e9,0.9"), S64("1", "0")}, "span 1x1e+09 pixels"},
    {"grid_sample", NULL, {PLAIN("1x2x2x1"), PLAIN("1x2x2x3")}, "2 coordinates"},
};
/* clang-format on */

static ew_err make(const struct row *r, struct ew_graph **out)
{
    struct ew_op_case k = {.name = r->op, .attrs = r->attrs};
    for (int i = 0; i < MAX_IN; i++) {
        k.in[i] = r->in[i];
        if (r->in[i].shape)
            k.n_in = i + 1;
    }
    return ew_case_graph(ew_op_find(r->op), &k, false, out);
}

static void check_value(const struct row *r)
{
    struct ew_graph *g;
    ew_test_begin("%s %s = %s", r->op, r->attrs ? r->attrs : "", r->out);
    if (EW_EXPECT_OK(make(r, &g))) {
        const struct ew_tensor *t = &g->values[g->nodes[0].out[0]].t;
        const char *at = r->out;
        EW_EXPECT(t->data); /* constants are known at inference */
        for (int64_t i = 0; t->data && i < ew_tensor_count(t); i++) {
            char *end;
            const double want = strtod(at, &end), got = ew_tensor_get(t, i);
            if (EW_EXPECT(end != at) && isnan(want))
                EW_EXPECT(isnan(got));
            else
                EW_EXPECT_NEAR(got, want, 1e-6 * fmax(1, fabs(want)));
            at = *end == ',' ? end + 1 : end;
        }
        EW_EXPECT_STR(at, "");
        ew_graph_free(g);
    }
    ew_test_end();
}

static void check_error(const struct row *r)
{
    struct ew_graph *g = NULL;
    ew_test_begin("%s %s: %s", r->op, r->attrs ? r->attrs : "", r->out);
    const ew_err e = make(r, &g);
    EW_EXPECT(e != EW_OK);
    EW_EXPECT_HAS(ew_error_message(), r->out);
    if (e == EW_OK)
        ew_graph_free(g);
    ew_test_end();
}

/* One channel of 1, 2, 3, 4: mean 2.5, variance 1.25, unbiased 5 / 3.  torch.nn.BatchNorm1d(1) with
 * its momentum of 0.1 (0.9 here) keeps 0.25 and 1.0666667 after one batch. */
static void running_statistics(void)
{
    float x[] = {1, 2, 3, 4}, y[4], scale[] = {2}, bias[] = {1}, mean[] = {0}, var[] = {1};
    struct ew_tensor t[] = {{EW_F32, {2, {4, 1}}, x}, {EW_F32, {1, {1}}, scale},
                            {EW_F32, {1, {1}}, bias}, {EW_F32, {1, {1}}, mean},
                            {EW_F32, {1, {1}}, var},  {EW_F32, {2, {4, 1}}, y}};
    struct ew_tensor *in[] = {&t[0], &t[1], &t[2], &t[3], &t[4]}, *out[] = {&t[5]};
    const struct ew_batch_norm_attr attr = {.eps = 0, .momentum = 0.9};
    float aux[2];
    struct ew_call c = {
        .attr = &attr, .n_in = 5, .n_out = 1, .in = in, .out = out, .aux = aux, .train = true};
    const struct ew_op *op = ew_op_find("batch_norm");
    EW_EXPECT_OK(op->forward(&c));
    const double inv = 1 / sqrt(1.25);
    EW_EXPECT_NEAR(y[0], 1 - 2 * 1.5 * inv, 1e-6);
    EW_EXPECT_NEAR(y[3], 1 + 2 * 1.5 * inv, 1e-6);
    EW_EXPECT_NEAR(aux[0], 2.5, 1e-6);
    EW_EXPECT_NEAR(aux[1], inv, 1e-6);
    EW_EXPECT_NEAR(mean[0], 0.25, 1e-6);
    EW_EXPECT_NEAR(var[0], 0.9 + 0.1 * 5 / 3, 1e-6);
    c.train = false; /* now by the running statistics, which do not change */
    EW_EXPECT_OK(op->forward(&c));
    EW_EXPECT_NEAR(y[0], 1 + 2 * 0.75 / sqrt(0.9 + 0.1 * 5 / 3), 1e-6);
    EW_EXPECT_NEAR(mean[0], 0.25, 1e-6);
}

/* Indices count in [N, C, H, W] although the data is [N, H, W, C]. */
static void pool_indices(void)
{
    static const struct row r = {"max_pool",
                                 "kernel=2x2 stride=2x2",
                                 {F32("1x2x4x2", "1,9,2,8,3,7,4,6,5,5,6,4,7,3,8,2")},
                                 ""};
    struct ew_op_case k = {.attrs = r.attrs, .in = {r.in[0]}, .n_in = 1, .n_out = 2};
    struct ew_graph *g;
    if (!EW_EXPECT_OK(ew_case_graph(ew_op_find(r.op), &k, false, &g)))
        return;
    const struct ew_tensor *t = &g->values[g->nodes[0].out[1]].t;
    static const int64_t want[] = {5, 8, 7, 10}; /* (pixel 0: channel 0, 1), (pixel 1: ...) */
    for (int i = 0; EW_EXPECT(t->data) && i < 4; i++)
        EW_EXPECT_INT(ew_tensor_get_int(t, i), want[i]);
    ew_graph_free(g);
}

/* ---- Older opsets ---- */

/* Imports the node over x [1, 1, 2, 2] = 1, 2, 3, 4 and the given further inputs. */
static ew_err import(struct ew_graph *g, struct ew_onnx_node *n, const struct ew_tensor *more,
                     int n_more, int *out)
{
    float x[] = {1, 2, 3, 4};
    const struct ew_tensor t = {EW_F32, {4, {1, 1, 2, 2}}, x};
    int in[MAX_IN];
    EW_TRY(ew_graph_const(g, "x", EW_VALUE_CONST, &t, true, &in[0]));
    for (int i = 0; i < n_more; i++)
        EW_TRY(ew_graph_const(g, NULL, EW_VALUE_CONST, &more[i], true, &in[1 + i]));
    n->name = "node";
    n->in = in;
    n->n_in = 1 + n_more;
    return ew_onnx_import(g, ew_op_find_onnx(n->type, NULL), n, out);
}

/* Doubling by Upsample of opset 7 (an attribute) and 9, and Resize of opset 10 (an input): nearest
 * rounds down, so each element fills a block; linear starts at the element itself. */
static void older_upsampling(void)
{
    static const float scales[] = {1, 1, 2, 2};
    static const float nearest[] = {1, 1, 2, 2, 1, 1, 2, 2, 3, 3, 4, 4, 3, 3, 4, 4};
    static const float linear[] = {1, 1.5f, 2, 2, 2, 2.5f, 3, 3, 3, 3.5f, 4, 4, 3.0f, 3.5f, 4, 4};
    static const struct {
        const char *type;
        int opset;
        const char *mode;
        const float *want;
    } rows[] = {{"Upsample", 7, "nearest", nearest},
                {"Upsample", 9, "linear", linear},
                {"Resize", 10, "nearest", nearest},
                {"Resize", 10, "linear", linear}};
    float copy[4];
    memcpy(copy, scales, sizeof(copy));
    const struct ew_tensor input = {EW_F32, {1, {4}}, copy};
    for (size_t i = 0; i < EW_COUNT(rows); i++) {
        struct ew_graph *g;
        int y = -1;
        const bool attr = rows[i].opset < 9;
        struct ew_onnx_node n = {.type = rows[i].type, .opset = rows[i].opset, .n_out = 1};
        n.attrs[n.n_attrs++] =
            (struct ew_onnx_attr){.name = "mode", .type = EW_ONNX_STRING, .s = rows[i].mode};
        if (attr)
            n.attrs[n.n_attrs++] = (struct ew_onnx_attr){
                .name = "scales", .type = EW_ONNX_FLOATS, .n = 4, .floats = scales};
        EW_EXPECT_OK(ew_graph_new("g", &g));
        if (EW_EXPECT_OK(import(g, &n, &input, !attr, &y)) && EW_EXPECT(g->values[y].t.data))
            EW_EXPECT_CLOSE((const float *)g->values[y].t.data, rows[i].want, 16, 1e-6, 0);
        ew_graph_free(g);
    }
}

/* Resize of opset 10 rounds nearest up where it shrinks. */
static void older_shrinking(void)
{
    float scales[] = {1, 1, 0.75F, 1}, mixed[] = {1, 1, 0.5F, 2};
    const struct ew_tensor t = {EW_F32, {1, {4}}, scales}, both = {EW_F32, {1, {4}}, mixed};
    struct ew_onnx_node n = {.type = "Resize", .opset = 10, .n_out = 1, .n_attrs = 1};
    n.attrs[0] = (struct ew_onnx_attr){.name = "mode", .type = EW_ONNX_STRING, .s = "nearest"};
    struct ew_graph *g;
    int y = -1;
    EW_EXPECT_OK(ew_graph_new("g", &g));
    if (EW_EXPECT_OK(import(g, &n, &t, 1, &y))) {
        const struct ew_resize_attr *a = g->nodes[g->n_nodes - 1].attr;
        EW_EXPECT_INT(a->round, EW_RESIZE_CEIL);
    }
    EW_EXPECT_ERR(import(g, &n, &both, 1, &y), EW_ERR_UNSUPPORTED, "shrinks another");
    ew_graph_free(g);
}

/* Before opset 9 statistics per element, which we do not support; before 14 five outputs meant
 * batch statistics. */
static void older_batch_norm(void)
{
    float one[] = {1};
    const struct ew_tensor t = {EW_F32, {1, {1}}, one};
    const struct ew_tensor stats[] = {t, t, t, t};
    static const int used[] = {1, 1, 1, 1, 1};
    struct ew_onnx_node n = {.type = "BatchNormalization", .opset = 7, .n_out = 1, .n_attrs = 1};
    n.attrs[0] = (struct ew_onnx_attr){.name = "spatial", .type = EW_ONNX_INT, .i = 0};
    int y[5];
    struct ew_graph *g;
    EW_EXPECT_OK(ew_graph_new("g", &g));
    EW_EXPECT_ERR(import(g, &n, stats, 4, y), EW_ERR_UNSUPPORTED, "spatial = 0");
    n.n_attrs = 0;
    n.n_out = 5;
    n.out_used = used;
    const struct ew_batch_norm_attr *a;
    if (EW_EXPECT_OK(import(g, &n, stats, 4, y))) {
        a = g->nodes[g->n_nodes - 1].attr;
        EW_EXPECT(a->training_mode);
    }
    n.n_out = 1;
    if (EW_EXPECT_OK(import(g, &n, stats, 4, y))) {
        a = g->nodes[g->n_nodes - 1].attr;
        EW_EXPECT(!a->training_mode);
    }
    ew_graph_free(g);
}

int main(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    for (size_t i = 0; i < EW_COUNT(values); i++)
        check_value(&values[i]);
    for (size_t i = 0; i < EW_COUNT(errors); i++)
        check_error(&errors[i]);
    static const struct ew_test more[] = {EW_TEST(running_statistics), EW_TEST(pool_indices),
                                          EW_TEST(older_upsampling), EW_TEST(older_shrinking),
                                          EW_TEST(older_batch_norm)};
    for (size_t i = 0; i < EW_COUNT(more); i++) {
        ew_test_begin("%s", more[i].name);
        more[i].run();
        ew_test_end();
    }
    return ew_test_status();
}
