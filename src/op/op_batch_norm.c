/* SPDX-License-Identifier: Apache-2.0 */
/* BatchNormalization: normalises each channel to mean 0 and variance 1, then scale and bias.
 *
 * Batch statistics are used in training (call.train) and with ONNX's training_mode; otherwise the
 * running ones.  In training the running statistics in[3] and in[4] are updated in place as in
 * PyTorch, with the unbiased variance.  With training_mode outside of training they are unchanged,
 * and out[1], out[2] get the updated ones by ONNX's rule, with the biased variance. */
#include "op/norm.h"

#include <math.h>
#include <string.h>

#include "graph/onnx.h"
#include "graph/ops.h"
#include "op/types.h"

#define CHUNK 256 /* channels at a time */

enum { X, SCALE, BIAS, MEAN, VAR, ADD };

/* clang-format off */
static const struct ew_field attrs[] = {
    {.name = "eps", .type = EW_FIELD_FLOAT, .offset = offsetof(struct ew_batch_norm_attr, eps),
     .def = "1e-5", .help = "added to the variance"},
    {.name = "momentum", .type = EW_FIELD_FLOAT,
     .offset = offsetof(struct ew_batch_norm_attr, momentum), .def = "0.9",
     .help = "share of the old running statistics that is kept (1 - torch's momentum)"},
    {.name = "training_mode", .type = EW_FIELD_BOOL,
     .offset = offsetof(struct ew_batch_norm_attr, training_mode),
     .help = "batch statistics even outside training"},
    {.name = "added", .type = EW_FIELD_BOOL, .offset = offsetof(struct ew_batch_norm_attr, added),
     .help = "the last input is added before the activation"},
    EW_EPILOGUE_FIELDS(struct ew_batch_norm_attr, end),
    EW_FIELD_END};
/* clang-format on */

static int64_t channels_of(const struct ew_call *c)
{
    return c->in[X]->shape.dim[c->in[X]->shape.rank - 1];
}

static int64_t pixels_of(const struct ew_call *c)
{
    return ew_shape_span(&c->in[X]->shape, 0, c->in[X]->shape.rank - 1);
}

static bool by_batch(const struct ew_call *c)
{
    const struct ew_batch_norm_attr *a = c->attr;
    return c->train || a->training_mode;
}

/* The residual, or NULL. */
static struct ew_tensor *added(const struct ew_call *c)
{
    const struct ew_batch_norm_attr *a = c->attr;
    return a->added ? ew_call_in(c, ADD) : NULL;
}

static ew_err check_added(const struct ew_call *c)
{
    const struct ew_batch_norm_attr *a = c->attr;
    const struct ew_tensor *t = added(c);
    EW_CHECK(a->added == (c->n_in > ADD) && a->added == (t != NULL), EW_ERR_SHAPE,
             "there are %d inputs", c->n_in);
    EW_CHECK(!t || (ew_shape_equal(&t->shape, &c->in[X]->shape) && t->dtype == c->in[X]->dtype),
             EW_ERR_SHAPE, "the residual's shape or type differs from the input's");
    EW_CHECK(!t || a->end.act == EW_ACT_NONE || a->end.act == EW_ACT_RELU, EW_ERR_UNSUPPORTED,
             "only relu can follow an addition in the same step");
    return EW_OK;
}

static ew_err infer(const struct ew_call *c)
{
    static const char *const names[] = {"input", "scale", "bias", "mean", "variance"};
    const struct ew_batch_norm_attr *a = c->attr;
    for (int i = 0; i < c->n_in; i++)
        EW_TRY(ew_types_check(c, i, EW_TYPES_FLOAT));
    EW_TRY(check_added(c));
    EW_CHECK(c->in[X]->shape.rank >= 2, EW_ERR_SHAPE,
             "the input has %d dimensions: it needs a batch and channels", c->in[X]->shape.rank);
    const int64_t channels = channels_of(c);
    for (int i = SCALE; i <= VAR; i++)
        EW_CHECK(c->in[i]->shape.rank == 1 && c->in[i]->shape.dim[0] == channels, EW_ERR_SHAPE,
                 "%s does not have one entry for each of %lld channels", names[i],
                 (long long)channels);
    EW_CHECK(a->training_mode || c->n_out == 1, EW_ERR_UNSUPPORTED,
             "running statistics are outputs only with training_mode");
    c->out[0]->shape = c->in[X]->shape;
    for (int i = 1; i < c->n_out; i++) {
        if (!c->out[i])
            continue;
        c->out[i]->dtype = c->in[MEAN]->dtype;
        c->out[i]->shape = c->in[MEAN]->shape;
    }
    return EW_OK;
}

static void cost(const struct ew_call *c, struct ew_cost *out)
{
    const int64_t n = ew_tensor_count(c->in[X]);
    out->flops += 2 * n; /* folded to one multiplication and one addition */
    out->thop_macs += 4 * n;
}

/* aux: mean, then 1 / std, in x's type; two more numbers per channel for kernels. */
static size_t aux(const struct ew_call *c)
{
    return 4 * (size_t)channels_of(c) * ew_dtype_size(c->in[X]->dtype);
}

static struct ew_tensor aux_tensor(const struct ew_call *c)
{
    return (struct ew_tensor){c->in[X]->dtype, {1, {2 * channels_of(c)}}, c->aux};
}

/* Channels [at, at + n). */
struct stats {
    int64_t at, n;
    double mean[CHUNK], var[CHUNK];
};

/* Mean and biased variance over the batch. */
static void batch_stats(const struct ew_call *c, struct stats *s)
{
    const int64_t channels = channels_of(c), pixels = pixels_of(c);
    double v[CHUNK];
    memset(s->mean, 0, sizeof(s->mean));
    memset(s->var, 0, sizeof(s->var));
    for (int64_t p = 0; p < pixels; p++) {
        ew_tensor_load(c->in[X], p * channels + s->at, s->n, v);
        for (int64_t i = 0; i < s->n; i++)
            s->mean[i] += v[i];
    }
    for (int64_t i = 0; i < s->n; i++)
        s->mean[i] /= (double)pixels;
    for (int64_t p = 0; p < pixels; p++) {
        ew_tensor_load(c->in[X], p * channels + s->at, s->n, v);
        for (int64_t i = 0; i < s->n; i++)
            s->var[i] += (v[i] - s->mean[i]) * (v[i] - s->mean[i]);
    }
    for (int64_t i = 0; i < s->n; i++)
        s->var[i] /= (double)pixels;
}

/* to = momentum * old + (1 - momentum) * factor * batch */
static void run_stat(const struct ew_call *c, int slot, struct ew_tensor *to, const struct stats *s,
                     double factor)
{
    const struct ew_batch_norm_attr *a = c->attr;
    const double *batch = slot == MEAN ? s->mean : s->var;
    double v[CHUNK];
    ew_tensor_load(c->in[slot], s->at, s->n, v);
    for (int64_t i = 0; i < s->n; i++)
        v[i] = a->momentum * v[i] + (1 - a->momentum) * factor * batch[i];
    ew_tensor_store(to, s->at, s->n, v);
}

static void update_running(const struct ew_call *c, const struct stats *s)
{
    const double pixels = (double)pixels_of(c);
    if (c->train && !c->recompute) {
        run_stat(c, MEAN, c->in[MEAN], s, 1);
        run_stat(c, VAR, c->in[VAR], s, pixels > 1 ? pixels / (pixels - 1) : 1);
    }
    for (int k = 1; k < c->n_out; k++) {
        const int slot = k == 1 ? MEAN : VAR;
        if (c->out[k] && c->train)
            memcpy(c->out[k]->data, c->in[slot]->data, ew_tensor_bytes(c->out[k]));
        else if (c->out[k])
            run_stat(c, slot, c->out[k], s, 1);
    }
}

static void normalise(const struct ew_call *c, const struct stats *s)
{
    const struct ew_batch_norm_attr *a = c->attr;
    const int64_t channels = channels_of(c), pixels = pixels_of(c);
    struct ew_tensor kept = aux_tensor(c);
    double inv[CHUNK], scale[CHUNK], bias[CHUNK], v[CHUNK];
    ew_tensor_load(c->in[SCALE], s->at, s->n, scale);
    ew_tensor_load(c->in[BIAS], s->at, s->n, bias);
    for (int64_t i = 0; i < s->n; i++)
        inv[i] = 1 / sqrt(s->var[i] + a->eps);
    if (c->aux) {
        ew_tensor_store(&kept, s->at, s->n, s->mean);
        ew_tensor_store(&kept, channels + s->at, s->n, inv);
    }
    for (int64_t p = 0; p < pixels; p++) {
        ew_tensor_load(c->in[X], p * channels + s->at, s->n, v);
        for (int64_t i = 0; i < s->n; i++)
            v[i] = (v[i] - s->mean[i]) * inv[i] * scale[i] + bias[i];
        ew_tensor_store(c->out[0], p * channels + s->at, s->n, v);
    }
}

static ew_err forward(const struct ew_call *c)
{
    const int64_t channels = channels_of(c);
    struct stats s;
    for (s.at = 0; s.at < channels && pixels_of(c) > 0; s.at += CHUNK) {
        s.n = ew_min_i64(CHUNK, channels - s.at);
        if (by_batch(c)) {
            batch_stats(c, &s);
            update_running(c, &s);
        } else {
            ew_tensor_load(c->in[MEAN], s.at, s.n, s.mean);
            ew_tensor_load(c->in[VAR], s.at, s.n, s.var);
        }
        normalise(c, &s);
    }
    ew_epilogue_run(&((const struct ew_batch_norm_attr *)c->attr)->end, added(c), c->out[0]);
    return EW_OK;
}

/* Per channel: sums of dy and of dy * xhat over the batch. */
struct sums {
    double mean[CHUNK], inv[CHUNK]; /* xhat = (x - mean) * inv */
    double scale[CHUNK], bias[CHUNK];
    double dy[CHUNK], dyx[CHUNK];
};

/* xhat of a pixel's channels [at, at + n), and the gradient before the activation, whose derivative
 * is taken from the output if there is a residual. */
static void backward_pixel(const struct ew_call *c, const struct sums *s, int64_t at, int64_t n,
                           double *x, double *g)
{
    const struct ew_epilogue_attr *end = &((const struct ew_batch_norm_attr *)c->attr)->end;
    double y[CHUNK];
    ew_tensor_load(c->in[X], at, n, x);
    ew_tensor_load(c->dout[0], at, n, g);
    if (added(c) && end->act != EW_ACT_NONE)
        ew_tensor_load(c->out[0], at, n, y);
    for (int64_t i = 0; i < n; i++) {
        x[i] = (x[i] - s->mean[i]) * s->inv[i];
        if (end->act != EW_ACT_NONE)
            g[i] *= ew_act_slope(end, added(c) ? y[i] : x[i] * s->scale[i] + s->bias[i]);
    }
}

static void backward_sums(const struct ew_call *c, int64_t at, int64_t n, struct sums *s)
{
    const int64_t channels = channels_of(c), pixels = pixels_of(c);
    const struct ew_tensor kept = aux_tensor(c);
    double x[CHUNK], g[CHUNK];
    ew_tensor_load(&kept, at, n, s->mean);
    ew_tensor_load(&kept, channels + at, n, s->inv);
    ew_tensor_load(c->in[SCALE], at, n, s->scale);
    ew_tensor_load(c->in[BIAS], at, n, s->bias);
    memset(s->dy, 0, sizeof(s->dy));
    memset(s->dyx, 0, sizeof(s->dyx));
    for (int64_t p = 0; p < pixels; p++) {
        backward_pixel(c, s, p * channels + at, n, x, g);
        for (int64_t i = 0; i < n; i++) {
            s->dy[i] += g[i];
            s->dyx[i] += g[i] * x[i];
        }
    }
}

/* dx = scale / std * (dy - mean(dy) - xhat * mean(dy * xhat)); with running statistics, which do
 * not depend on x, dx = scale / std * dy. */
static void backward_x(const struct ew_call *c, int64_t at, int64_t n, const struct sums *s)
{
    const int64_t channels = channels_of(c), pixels = pixels_of(c);
    const double share = by_batch(c) ? 1.0 / (double)pixels : 0;
    double x[CHUNK], g[CHUNK];
    for (int64_t p = 0; p < pixels; p++) {
        backward_pixel(c, s, p * channels + at, n, x, g);
        for (int64_t i = 0; i < n; i++)
            g[i] = s->scale[i] * s->inv[i] * (g[i] - share * (s->dy[i] + x[i] * s->dyx[i]));
        ew_tensor_accumulate(c->din[X], p * channels + at, n, g);
    }
}

static void backward_added(const struct ew_call *c, int64_t at, int64_t n, const struct sums *s)
{
    const int64_t channels = channels_of(c), pixels = pixels_of(c);
    double x[CHUNK], g[CHUNK];
    for (int64_t p = 0; p < pixels; p++) {
        backward_pixel(c, s, p * channels + at, n, x, g);
        ew_tensor_accumulate(c->din[ADD], p * channels + at, n, g);
    }
}

static ew_err backward(const struct ew_call *c)
{
    const int64_t channels = channels_of(c);
    struct sums s;
    if (!c->dout[0])
        return EW_OK;
    for (int64_t at = 0; at < channels; at += CHUNK) {
        const int64_t n = ew_min_i64(CHUNK, channels - at);
        backward_sums(c, at, n, &s);
        if (c->din[X])
            backward_x(c, at, n, &s);
        if (added(c) && c->din[ADD])
            backward_added(c, at, n, &s);
        if (c->din[SCALE])
            ew_tensor_accumulate(c->din[SCALE], at, n, s.dyx);
        if (c->din[BIAS])
            ew_tensor_accumulate(c->din[BIAS], at, n, s.dy);
    }
    return EW_OK;
}

static const char *const renames[] = {"eps", "epsilon", "added", NULL, EW_EPILOGUE_RENAMES, NULL};

/* Relu's output, if its input cannot be recomputed from x. */
static unsigned saves_too(const void *attr)
{
    const struct ew_batch_norm_attr *a = attr;
    return a->added && a->end.act != EW_ACT_NONE ? EW_SAVE_OUT : 0;
}

/* Opset 7 allows statistics per element (spatial = 0).  Before 14 five outputs meant batch
 * statistics; the last two were the device's own and are not read. */
static ew_err import(struct ew_graph *g, const struct ew_onnx_node *n, int *out)
{
    static const char *const ignore[] = {"spatial", "is_test", "consumed_inputs", NULL};
    const struct ew_op *op = &ew_op_batch_norm;
    struct ew_batch_norm_attr a;
    EW_CHECK(ew_onnx_int(n, "spatial", 1) == 1, EW_ERR_UNSUPPORTED, "spatial = 0 is not supported");
    EW_TRY(ew_onnx_fill(op, n, ignore, &a));
    if (n->opset < 14) {
        struct ew_onnx_node old = *n;
        for (int i = 1; i < n->n_out; i++)
            a.training_mode |= n->out_used[i];
        old.n_out = a.training_mode && n->n_out > 3 ? 3 : 1;
        return ew_onnx_import_default(g, op, &old, &a, out);
    }
    return ew_onnx_import_default(g, op, n, &a, out);
}

/* training_mode needs opset 14, and is not written before.  A fused node has no ONNX form. */
static ew_err export(const struct ew_graph *g, int node, struct ew_onnx_node *n)
{
    const struct ew_batch_norm_attr *a = g->nodes[node].attr;
    EW_CHECK(a->end.act == EW_ACT_NONE && !a->added, EW_ERR_UNSUPPORTED,
             "node %s: fused with what follows it", g->nodes[node].name);
    if (!a->training_mode)
        ew_onnx_drop(n, "training_mode");
    else if (n->opset < 14)
        n->opset = 14;
    return EW_OK;
}

/* clang-format off */
#define STATS {"4"}, {"4"}, {"4", .no_grad = true}, {"4", .fill = EW_FILL_POSITIVE, .no_grad = true}
static const struct ew_op_case cases[] = {
    {.name = "running statistics", .in = {{"2x3x5x4"}, STATS}, .n_in = 5, .out_shape = "2x3x5x4"},
    {.name = "training", .train = true, .attrs = "momentum=0.8 eps=1e-3",
     .in = {{"3x3x2x4"}, STATS}, .n_in = 5, .out_shape = "3x3x2x4"},
    {.name = "fused relu", .attrs = "act=relu",
     .in = {{"2x3x5x4", .no_grad = true}, {"4", .no_grad = true}, {"4", .no_grad = true},
            {"4", .no_grad = true}, {"4", .fill = EW_FILL_POSITIVE, .no_grad = true}},
     .n_in = 5, .out_shape = "2x3x5x4"},
    {.name = "training, fused hard_swish", .train = true, .attrs = "act=hard_swish",
     .in = {{"3x3x2x4"}, STATS}, .n_in = 5, .out_shape = "3x3x2x4"},
    {.name = "training, fused clip", .train = true, .attrs = "act=clip act_lo=-0.5 act_hi=1.5",
     .in = {{"2x3x3x5"}, {"5"}, {"5"}, {"5", .no_grad = true},
            {"5", .fill = EW_FILL_POSITIVE, .no_grad = true}},
     .n_in = 5, .out_shape = "2x3x3x5"},
    {.name = "training, fused addition and relu", .train = true, .attrs = "added=true act=relu",
     .in = {{"3x3x2x4"}, STATS, {"3x3x2x4"}}, .n_in = 6, .out_shape = "3x3x2x4"},
    {.name = "training, fused addition", .train = true, .attrs = "added=true",
     .in = {{"2x3x5x4"}, STATS, {"2x3x5x4"}}, .n_in = 6, .out_shape = "2x3x5x4"},
    {.name = "training_mode", .attrs = "training_mode=true",
     .in = {{"3x5x4", .no_grad = true}, STATS}, .n_in = 5, .n_out = 3, .out_shape = "3x5x4"},
    {.name = "training, no pixels", .train = true,
     .in = {{"5x4"}, STATS}, .n_in = 5, .out_shape = "5x4"},
    {.name = "3-D", .train = true, .in = {{"2x2x2x3x4"}, STATS}, .n_in = 5,
     .out_shape = "2x2x2x3x4"},
};
/* clang-format on */

const struct ew_op ew_op_batch_norm = {
    .name = "batch_norm",
    .help = "each channel to mean 0 and variance 1, then scale and bias",
    .flags = EW_OP_SPATIAL | EW_OP_INPLACE | EW_OP_BATCH_NORM,
    .saves = EW_SAVE_IN0 | EW_SAVE_AUX,
    .saves_too = saves_too,
    .min_in = 5,
    .max_in = 6,
    .max_out = 3,
    .param_in = 1 << SCALE | 1 << BIAS,
    .state_in = 1 << MEAN | 1 << VAR,
    .attr_size = sizeof(struct ew_batch_norm_attr),
    .attrs = attrs,
    .infer = infer,
    .cost = cost,
    .aux = aux,
    .forward = forward,
    .backward = backward,
    .onnx = {.type = "BatchNormalization", .rename = renames, .import = import, .export = export},
    EW_OP_CASES(cases),
};
