/* SPDX-License-Identifier: Apache-2.0 */
/* Dropout: in training, zero with probability `ratio`, the rest scaled by 1 / (1 - ratio); x as it
 * is otherwise.  What is dropped is a function of (call.seed, index), so backward draws it again.
 */
#include "base/rng.h"
#include "graph/onnx.h"
#include "graph/ops.h"
#include "op/math_attr.h"
#include "op/pointwise.h"

static const struct ew_field attrs[] = {
    {.name = "ratio",
     .type = EW_FIELD_FLOAT,
     .offset = offsetof(struct ew_dropout_attr, ratio),
     .def = "0.5",
     .min = 0,
     .max = 1,
     .help = "share that is dropped, unless the second input gives it"},
    EW_FIELD_END,
};

static double ratio_of(const struct ew_call *c)
{
    const struct ew_dropout_attr *a = c->attr;
    const struct ew_tensor *t = ew_call_in(c, 1);
    return t ? ew_tensor_get(t, 0) : a->ratio;
}

static ew_err infer(const struct ew_call *c)
{
    const struct ew_tensor *ratio = ew_call_in(c, 1), *training = ew_call_in(c, 2);
    EW_TRY(ew_types_check(c, 0, EW_TYPES_FLOAT));
    EW_TRY(ew_types_check(c, 1, EW_TYPES_FLOAT));
    EW_TRY(ew_types_check(c, 2, EW_TYPES_BOOL));
    EW_CHECK(!ratio || ew_tensor_count(ratio) == 1, EW_ERR_SHAPE, "ratio is not a single number");
    const double r = ratio_of(c);
    EW_CHECK(r >= 0 && r <= 1, EW_ERR_ARG, "ratio is %g, must be 0 to 1", r);
    if (training) {
        EW_CHECK(ew_tensor_count(training) == 1, EW_ERR_SHAPE, "training_mode is not one value");
        EW_CHECK(r <= 0 || !ew_tensor_get_int(training, 0), EW_ERR_UNSUPPORTED,
                 "training_mode is true: whether to drop is the run's to say, not the file's");
    }
    c->out[0]->dtype = c->in[0]->dtype;
    c->out[0]->shape = c->in[0]->shape;
    struct ew_tensor *mask = ew_call_out(c, 1);
    if (mask) {
        mask->dtype = EW_BOOL;
        mask->shape = c->in[0]->shape;
    }
    return EW_OK;
}

double ew_dropout_ratio(const struct ew_call *c)
{
    return c->train ? ratio_of(c) : 0;
}

/* Factor of element i; a block of random bits serves four elements. */
static double factor(const struct ew_call *c, double ratio, int64_t i)
{
    if (ratio <= 0)
        return 1;
    const struct ew_rng_block b = ew_rng_block(c->seed, 0, (uint64_t)i / 4);
    return b.v[i % 4] * 0x1p-32 < ratio ? 0 : 1 / (1 - ratio);
}

static ew_err forward(const struct ew_call *c)
{
    const double ratio = ew_dropout_ratio(c);
    struct ew_tensor *mask = ew_call_out(c, 1);
    double v[EW_CHUNK], f[EW_CHUNK];
    const int64_t count = ew_tensor_count(c->in[0]);
    for (int64_t at = 0; at < count; at += EW_CHUNK) {
        const int64_t n = ew_min_i64(EW_CHUNK, count - at);
        ew_tensor_load(c->in[0], at, n, v);
        for (int64_t i = 0; i < n; i++) {
            f[i] = factor(c, ratio, at + i);
            v[i] *= f[i];
        }
        if (c->out[0])
            ew_tensor_store(c->out[0], at, n, v);
        if (mask)
            ew_tensor_store(mask, at, n, f);
    }
    return EW_OK;
}

static ew_err backward(const struct ew_call *c)
{
    const double ratio = ew_dropout_ratio(c);
    double g[EW_CHUNK];
    if (!c->din[0] || !c->dout[0])
        return EW_OK;
    const int64_t count = ew_tensor_count(c->din[0]);
    for (int64_t at = 0; at < count; at += EW_CHUNK) {
        const int64_t n = ew_min_i64(EW_CHUNK, count - at);
        ew_tensor_load(c->dout[0], at, n, g);
        for (int64_t i = 0; i < n; i++)
            g[i] *= factor(c, ratio, at + i);
        ew_tensor_accumulate(c->din[0], at, n, g);
    }
    return EW_OK;
}

/* ratio is an attribute up to opset 11, an input since 12; `seed` is ignored. */
static ew_err import(struct ew_graph *g, const struct ew_onnx_node *n, int *out)
{
    static const char *const ignore[] = {"seed", NULL};
    const struct ew_op *op = &ew_op_dropout;
    struct ew_dropout_attr a;
    EW_TRY(ew_onnx_fill(op, n, ignore, &a));
    return ew_onnx_import_default(g, op, n, &a, out);
}

static ew_err export(const struct ew_graph *g, int node, struct ew_onnx_node *n)
{
    const struct ew_dropout_attr *a = g->nodes[node].attr;
    ew_onnx_drop(n, "ratio");
    if (n->n_in > 1 && n->in[1] >= 0)
        return EW_OK;
    float ratio = (float)a->ratio;
    return ew_onnx_set_input(n, 1, &(struct ew_tensor){.dtype = EW_F32, .data = &ratio});
}

static const struct ew_op_case cases[] = {
    {.name = "infer", .in = {{"2x3x5"}}, .n_in = 1, .n_out = 2, .out_shape = "2x3x5"},
    {.name = "train",
     .attrs = "ratio=0.3",
     .in = {{"4x100"}},
     .n_in = 1,
     .n_out = 2,
     .out_shape = "4x100",
     .train = true},
    {.name = "inputs",
     .in = {{"9"},
            {"", EW_F32, EW_FILL_VALUES, .values = "0.25", .constant = true},
            {"", EW_BOOL, EW_FILL_VALUES, .values = "0", .constant = true}},
     .n_in = 3,
     .out_shape = "9",
     .train = true},
    {.name = "all", .attrs = "ratio=1", .in = {{"9"}}, .n_in = 1, .out_shape = "9", .train = true},
};

const struct ew_op ew_op_dropout = {
    .name = "dropout",
    .help = "in training, zero with a given probability, the rest scaled up",
    .flags = EW_OP_INPLACE | EW_OP_ELEMENTWISE | EW_OP_STOCHASTIC | EW_OP_NO_CDL | EW_OP_IDENTITY |
             EW_OP_ZEROS_PASS,
    .min_in = 1,
    .max_in = 3,
    .max_out = 2,
    .known_in = 1 << 1 | 1 << 2,
    .attr_size = sizeof(struct ew_dropout_attr),
    .attrs = attrs,
    .infer = infer,
    .forward = forward,
    .backward = backward,
    .onnx = {.type = "Dropout", .import = import, .export = export},
    EW_OP_CASES(cases),
};
