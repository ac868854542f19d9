/* SPDX-License-Identifier: Apache-2.0 */
/* Launchers of the CUDA module against plain loops in double: element-wise, reductions, batch norm,
 * loss, data movement, GEMM, updates.  Convolutions and pools are in test_cuda_windows.c. */
#include <math.h>

#include "backend/backend.h"
#include "cuda_buffers.h"
#include "op/epilogue.h"
#include "op/optimizer.h"

static const int types[] = {EW_CUDA_F32, EW_CUDA_F16, EW_CUDA_BF16};
#define TYPES 3

static const struct ew_cuda_act acts[] = {
    {EW_CUDA_ACT_NONE, 0, 0},       {EW_CUDA_ACT_RELU, 0, 0},
    {EW_CUDA_ACT_CLIP, 0, 6},       {EW_CUDA_ACT_LEAKY, 0.1f, 0},
    {EW_CUDA_ACT_HARD_SWISH, 0, 0}, {EW_CUDA_ACT_HARD_SIGMOID, 0.2f, 0.5f},
    {EW_CUDA_ACT_SILU, 0, 0},       {EW_CUDA_ACT_SIGMOID, 0, 0},
    {EW_CUDA_ACT_TANH, 0, 0},
};

_Static_assert((int)EW_CUDA_ACT_GELU == (int)EW_ACT_GELU && EW_ACT_COUNT == 10, "one numbering");

static struct ew_epilogue_attr attr_of(struct ew_cuda_act a)
{
    return (struct ew_epilogue_attr){.act = a.kind, .lo = (double)a.lo, .hi = (double)a.hi};
}

/* ---- Element-wise ---- */

/* y = act((a * b + c)), b broadcast along rows, c along columns. */
static void chains(void)
{
    if (!gpu_open())
        return;
    const int64_t shapes[][2] = {{7, 12}, {5, 9}, {64, 256}, {1000, 33}};
    for (int t = 0; t < TYPES; t++)
        for (int s = 0; s < 4; s++) {
            const int64_t rows = shapes[s][0], cols = shapes[s][1], n = rows * cols;
            const struct ew_cuda_act act = acts[(t + s) % 9];
            const struct ew_epilogue_attr e = attr_of(act);
            struct buf a = buf_new(types[t], n, 1), b = buf_new(types[t], cols, 1),
                       c = buf_new(types[t], rows, 1), y = buf_new(types[t], n, 0);
            const struct ew_cuda_chain p = {.type = types[t],
                                            .n = 3,
                                            .dim = {1, 1, rows, cols},
                                            .a = a.d,
                                            .a_stride = {0, 0, cols, 1},
                                            .link = {{EW_CUDA_OP_MUL, 0, 0, b.d, {0, 0, 0, 1}},
                                                     {EW_CUDA_OP_ADD, 0, 0, c.d, {0, 0, 1, 0}},
                                                     {act.kind, act.lo, act.hi, NULL, {0}}},
                                            .y = y.d};
            EXPECT_LAUNCH(chain(gpu.q, &p));
            double *want = malloc((size_t)n * sizeof(*want));
            for (int64_t i = 0; i < n; i++)
                want[i] = ew_act_apply(&e, (double)a.h[i] * (double)b.h[i % cols] +
                                               (double)c.h[i / cols]);
            EXPECT_BUF(&y, want, 1);
            free(want);
            gpu_end();
        }
}

static void unary_operations(void)
{
    if (!gpu_open())
        return;
    for (int op = EW_CUDA_OP_NEG; op <= EW_CUDA_OP_AFFINE; op++) {
        const bool positive = op == EW_CUDA_OP_LOG || op == EW_CUDA_OP_SQRT;
        struct buf a = buf_new(EW_CUDA_F32, 301, 1), y = buf_new(EW_CUDA_F32, 301, 0);
        for (int i = 0; i < 301; i++)
            a.h[i] = positive ? fabsf(a.h[i]) + 0.1f : a.h[i] + (a.h[i] < 0 ? -0.2f : 0.2f);
        buf_put(&a);
        const struct ew_cuda_chain p = {.n = 1,
                                        .dim = {1, 1, 1, 301},
                                        .a = a.d,
                                        .a_stride = {0, 0, 0, 1},
                                        .link = {{op, 0.7f, 0.3f, NULL, {0}}},
                                        .y = y.d};
        EXPECT_LAUNCH(chain(gpu.q, &p));
        double want[301];
        for (int i = 0; i < 301; i++) {
            const double v = (double)a.h[i], plus = log1p(exp(v));
            const double all[] = {-v,
                                  fabs(v),
                                  exp(v),
                                  log(v),
                                  sqrt(v),
                                  1 / v,
                                  erf(v),
                                  0.5 * v * (1 + erf(v / sqrt(2))),
                                  plus,
                                  v > 0 ? v : 0.7 * expm1(v),
                                  v * tanh(plus),
                                  floor(v),
                                  ceil(v),
                                  v * 0.7 + 0.3};
            want[i] = all[op - EW_CUDA_OP_NEG];
        }
        EXPECT_BUF(&y, want, 1);
        gpu_end();
    }
}

static void slopes(void)
{
    if (!gpu_open())
        return;
    for (int t = 0; t < TYPES; t++)
        for (int k = 1; k < 9; k++) {
            const int64_t n = k % 2 ? 1024 : 777;
            const struct ew_epilogue_attr e = attr_of(acts[k]);
            struct buf x = buf_new(types[t], n, 3), dy = buf_new(types[t], n, 1),
                       dx = buf_new(types[t], n, 1);
            double want[1024];
            for (int64_t i = 0; i < n; i++)
                want[i] = (double)dx.h[i] + (double)dy.h[i] * ew_act_slope(&e, (double)x.h[i]);
            const struct ew_cuda_act_back p = {.type = types[t],
                                               .act = acts[k],
                                               .add = 1,
                                               .n = n,
                                               .x = x.d,
                                               .dy = dy.d,
                                               .dx = dx.d};
            EXPECT_LAUNCH(act_back(gpu.q, &p));
            EXPECT_BUF(&dx, want, 1);
            gpu_end();
        }
}

/* The gradient of a clip from its output: 0.9 is less in half types, and is still the bound. */
static void slopes_of_outputs(void)
{
    if (!gpu_open())
        return;
    const float bound = 0.9f;
    const float *hi = device_bytes(&bound, sizeof(bound));
    for (int t = 0; t < TYPES; t++) {
        struct buf x = buf_new(types[t], 8, 1), dy = buf_new(types[t], 8, 1),
                   dx = buf_new(types[t], 8, 0);
        double want[8];
        for (int i = 0; i < 8; i++) {
            x.h[i] = i % 2 ? bound : 0.5f;
            want[i] = i % 2 ? 0 : (double)dy.h[i];
        }
        buf_put(&x);
        const struct ew_cuda_act_back p = {.type = types[t],
                                           .act = {EW_CUDA_ACT_CLIP, 0, 0},
                                           .bounds = 1,
                                           .hi = hi,
                                           .n = 8,
                                           .x = x.d,
                                           .dy = dy.d,
                                           .dx = dx.d};
        EXPECT_LAUNCH(act_back(gpu.q, &p));
        EXPECT_BUF(&dx, want, 1);
    }
    gpu_end();
}

/* Drops the same elements as op_dropout.c. */
static void drops(void)
{
    if (!gpu_open())
        return;
    const uint64_t key = 0x123456789abcdefu, seed = ew_run_seed(key, 5);
    struct buf x = buf_new(EW_CUDA_F32, 1003, 1), y = buf_new(EW_CUDA_F32, 1003, 0);
    const struct ew_cuda_dropout p = {.n = 1003,
                                      .ratio = 0.3,
                                      .key = device_bytes(&key, sizeof(key)),
                                      .node = 5,
                                      .x = x.d,
                                      .y = y.d};
    EXPECT_LAUNCH(dropout(gpu.q, &p));
    double want[1003];
    for (int i = 0; i < 1003; i++) {
        const struct ew_rng_block b = ew_rng_block(seed, 0, (uint64_t)i / 4);
        want[i] = b.v[i % 4] * 0x1p-32 < 0.3 ? 0 : (double)x.h[i] / 0.7;
    }
    EXPECT_BUF(&y, want, 1);
    gpu_end();
}

static void epilogues_and_casts(void)
{
    if (!gpu_open())
        return;
    for (int t = 0; t < TYPES; t++)
        for (int after = 0; after < 2; after++) {
            const int cols = after ? 24 : 13;
            const int64_t n = 50 * cols;
            const struct ew_epilogue_attr e = attr_of(acts[1 + t]);
            struct buf y = buf_new(types[t], n, 1), r = buf_new(types[t], n, 1),
                       b = buf_new(EW_CUDA_F32, cols, 1), wide = buf_new(EW_CUDA_F32, n, 0);
            double want[1200];
            for (int64_t i = 0; i < n; i++) {
                const double s = (double)y.h[i] + (double)b.h[i % cols], add = (double)r.h[i];
                want[i] = after ? ew_act_apply(&e, s) + add : ew_act_apply(&e, s + add);
            }
            const struct ew_cuda_epilogue p = {.type = types[t],
                                               .act = acts[1 + t],
                                               .add_after = after,
                                               .rows = 50,
                                               .cols = cols,
                                               .bias = b.d,
                                               .residual = r.d,
                                               .y = y.d};
            EXPECT_LAUNCH(epilogue(gpu.q, &p));
            EXPECT_BUF(&y, want, 1);
            EXPECT_LAUNCH(cast(gpu.q, types[t], y.d, EW_CUDA_F32, wide.d, n));
            for (int64_t i = 0; i < n; i++)
                want[i] = (double)y.h[i];
            EXPECT_BUF(&wide, want, 0.1);
            gpu_end();
        }
}

/* ---- Reductions ---- */

static void sums(void)
{
    if (!gpu_open())
        return;
    const int64_t shapes[][3] = {{1, 1000, 64}, {16, 49, 96}, {1, 5, 1},     {1, 100000, 1},
                                 {3, 17, 33},   {300, 8, 5},  {2, 70000, 24}};
    for (int t = 0; t < TYPES; t++)
        for (int s = 0; s < 7; s++) {
            const int64_t outer = shapes[s][0], mid = shapes[s][1], inner = shapes[s][2];
            struct buf a = buf_new(types[t], outer * mid * inner, 1),
                       b = buf_new(types[t], outer * mid * inner, 1),
                       y = buf_new(EW_CUDA_F32, outer * inner, 1);
            double *want = calloc((size_t)(outer * inner), sizeof(*want));
            for (int64_t i = 0; i < outer * inner; i++) {
                for (int64_t m = 0; m < mid; m++) {
                    const int64_t at = (i / inner * mid + m) * inner + i % inner;
                    want[i] += (double)a.h[at] * (s % 2 ? (double)b.h[at] : 1);
                }
                want[i] = (double)y.h[i] + 0.5 * want[i];
            }
            const struct ew_cuda_reduce p = {
                .type = types[t],
                .out_f32 = 1,
                .add = 1,
                .outer = outer,
                .mid = mid,
                .inner = inner,
                .scale = 0.5f,
                .a = a.d,
                .b = s % 2 ? b.d : NULL,
                .out = y.d,
                .scratch = device_bytes(NULL, ew_cuda_reduce_scratch(outer, mid, inner, 1))};
            EXPECT_LAUNCH(reduce(gpu.q, &p));
            EXPECT_BUF(&y, want, 1);
            free(want);
            gpu_end();
        }
}

/* ---- Batch norm ---- */

struct norm_case {
    int64_t pixels;
    int channels, type, act;
    bool residual;
    bool again; /* y is that of a recomputation */
};

struct norm_data {
    struct buf x, r, y, scale, bias, mean, var, kept, dy, dx, dr, dscale, dbias;
};

static void norm_forward(const struct norm_case *k, struct norm_data *d)
{
    const int64_t n = k->pixels * k->channels;
    const int c = k->channels, t = k->type;
    *d = (struct norm_data){.x = buf_new(t, n, 2),
                            .r = buf_new(t, n, 1),
                            .y = buf_new(t, n, 0),
                            .scale = buf_new(EW_CUDA_F32, c, 1),
                            .bias = buf_new(EW_CUDA_F32, c, 1),
                            .mean = buf_new(EW_CUDA_F32, c, 1),
                            .var = buf_new(EW_CUDA_F32, c, 1),
                            .kept = buf_new(EW_CUDA_F32, 2 * c, 0),
                            .dy = buf_new(t, n, 1),
                            .dx = buf_new(t, n, 0),
                            .dr = buf_new(t, n, 1),
                            .dscale = buf_new(EW_CUDA_F32, c, 0),
                            .dbias = buf_new(EW_CUDA_F32, c, 1)};
    for (int64_t i = 0; i < n; i++)
        d->x.h[i] += 5; /* a mean with which the sum of squares would cancel */
    buf_put(&d->x);
    struct ew_cuda_norm p = {.type = t,
                             .pixels = k->pixels,
                             .channels = c,
                             .eps = 1e-3f,
                             .momentum = 0.9f,
                             .batch_stats = 1,
                             .update_running = 1,
                             .act = acts[k->act],
                             .x = d->x.d,
                             .residual = k->residual ? d->r.d : NULL,
                             .y = d->y.d,
                             .scale = d->scale.d,
                             .bias = d->bias.d,
                             .mean = d->mean.d,
                             .var = d->var.d,
                             .kept = d->kept.d,
                             .scratch =
                                 device_bytes(NULL, ew_cuda_reduce_scratch(1, k->pixels, c, 2))};
    EXPECT_LAUNCH(norm(gpu.q, &p));
    if (!k->again)
        return;
    CUDA(fill(gpu.q, d->y.d, 0x7f, (size_t)n * type_bytes(t)));
    p.again = 1;
    EXPECT_LAUNCH(norm(gpu.q, &p));
}

/* Reference for one channel: xhat of all pixels, y and the running statistics. */
static void norm_reference(const struct norm_case *k, struct norm_data *d, double *y, double *stats)
{
    const int64_t pixels = k->pixels;
    const int c = k->channels;
    const struct ew_epilogue_attr e = attr_of(acts[k->act]);
    for (int i = 0; i < c; i++) {
        double mean = 0, var = 0;
        for (int64_t p = 0; p < pixels; p++)
            mean += (double)d->x.h[p * c + i] / (double)pixels;
        for (int64_t p = 0; p < pixels; p++)
            var += pow((double)d->x.h[p * c + i] - mean, 2) / (double)pixels;
        stats[i] = mean;
        stats[c + i] = 1 / sqrt(var + 1e-3);
        stats[2 * c + i] = 0.9 * (double)d->mean.h[i] + 0.1 * mean;
        stats[3 * c + i] =
            0.9 * (double)d->var.h[i] + 0.1 * var * (double)pixels / (double)(pixels - 1);
        for (int64_t p = 0; p < pixels; p++) {
            const int64_t at = p * c + i;
            const double z = ((double)d->x.h[at] - mean) * stats[c + i] * (double)d->scale.h[i] +
                             (double)d->bias.h[i] + (k->residual ? (double)d->r.h[at] : 0);
            y[at] = ew_act_apply(&e, z);
        }
    }
}

static void norm_backward(const struct norm_case *k, struct norm_data *d, const double *stats)
{
    const int64_t pixels = k->pixels, n = pixels * k->channels;
    const int c = k->channels;
    const struct ew_epilogue_attr e = attr_of(acts[k->act]);
    double *want[4];
    for (int i = 0; i < 4; i++)
        want[i] = calloc((size_t)n, sizeof(double));
    for (int i = 0; i < c; i++) {
        double sum = 0, sum_x = 0;
        const double scale = (double)d->scale.h[i], inv = stats[c + i];
        for (int pass = 0; pass < 2; pass++)
            for (int64_t p = 0; p < pixels; p++) {
                const int64_t at = p * c + i;
                const double xhat = ((double)d->x.h[at] - stats[i]) * inv;
                const double z =
                    k->residual ? (double)d->y.h[at] : xhat * scale + (double)d->bias.h[i];
                const double dz = (double)d->dy.h[at] * ew_act_slope(&e, z);
                sum += pass ? 0 : dz;
                sum_x += pass ? 0 : dz * xhat;
                want[0][at] = scale * inv * (dz - (sum + xhat * sum_x) / (double)pixels);
                want[1][at] = (double)d->dr.h[at] + dz;
            }
        want[2][i] = sum_x;
        want[3][i] = (double)d->dbias.h[i] + sum;
    }
    struct ew_cuda_norm_back p = {.type = k->type,
                                  .pixels = pixels,
                                  .channels = c,
                                  .batch_stats = 1,
                                  .act = acts[k->act],
                                  .add_dbias = 1,
                                  .add_dresidual = 1,
                                  .x = d->x.d,
                                  .y = k->residual ? d->y.d : NULL,
                                  .dy = d->dy.d,
                                  .dx = d->dx.d,
                                  .dresidual = k->residual ? d->dr.d : NULL,
                                  .scale = d->scale.d,
                                  .bias = d->bias.d,
                                  .kept = d->kept.d,
                                  .dscale = d->dscale.d,
                                  .dbias = d->dbias.d,
                                  .sums = device_bytes(NULL, (size_t)c * 8),
                                  .scratch =
                                      device_bytes(NULL, ew_cuda_reduce_scratch(1, pixels, c, 2))};
    EXPECT_LAUNCH(norm_back(gpu.q, &p));
    EXPECT_BUF(&d->dx, want[0], 4);
    if (k->residual)
        EXPECT_BUF(&d->dr, want[1], 2);
    EXPECT_BUF(&d->dscale, want[2], 4);
    EXPECT_BUF(&d->dbias, want[3], 4);
    p.dx = d->dy.d;
    p.dresidual = NULL;
    p.dscale = p.dbias = NULL;
    EXPECT_LAUNCH(norm_back(gpu.q, &p));
    EXPECT_BUF(&d->dy, want[0], 4);
    for (int i = 0; i < 4; i++)
        free(want[i]);
}

static void batch_norms(void)
{
    if (!gpu_open())
        return;
    const struct norm_case cases[] = {
        {200, 16, EW_CUDA_F32, 0, false},       {333, 21, EW_CUDA_F32, 4, false},
        {20000, 96, EW_CUDA_F32, 1, true},      {49, 960, EW_CUDA_F32, 2, false},
        {500, 64, EW_CUDA_F16, 1, true},        {500, 40, EW_CUDA_BF16, 4, false},
        {333, 21, EW_CUDA_F32, 4, false, true}, {20000, 96, EW_CUDA_BF16, 1, true, true}};
    for (size_t i = 0; i < EW_COUNT(cases); i++) {
        const struct norm_case *k = &cases[i];
        const int c = k->channels;
        struct norm_data d;
        double *y = malloc((size_t)(k->pixels * c) * sizeof(*y)), *stats = malloc((size_t)c * 32);
        norm_forward(k, &d);
        norm_reference(k, &d, y, stats);
        EXPECT_BUF(&d.y, y, 2);
        EXPECT_BUF(&d.kept, stats, 2);
        EXPECT_BUF(&d.mean, stats + 2 * c, 1);
        EXPECT_BUF(&d.var, stats + 3 * c, 1);
        norm_backward(k, &d, stats);
        free(y);
        free(stats);
        gpu_end();
    }
}

/* ---- Loss and softmax ---- */

static void losses(void)
{
    if (!gpu_open())
        return;
    const int cases[][3] = {{16, 10, 0}, {300, 1000, 1}, {5, 33, 1}};
    for (int k = 0; k < 3; k++) {
        const int64_t samples = cases[k][0];
        const int classes = cases[k][1];
        const double smoothing = cases[k][2] ? 0.1 : 0;
        struct buf x = buf_new(EW_CUDA_F32, samples * classes, 3),
                   dx = buf_new(EW_CUDA_F32, samples * classes, 0),
                   w = buf_new(EW_CUDA_F32, classes, 1), loss = buf_new(EW_CUDA_F32, 1, 0);
        int64_t labels[300];
        double divisor = 0, total = 0;
        for (int i = 0; i < classes; i++)
            w.h[i] = fabsf(w.h[i]);
        buf_put(&w);
        for (int64_t i = 0; i < samples; i++) {
            labels[i] = (i * 7 + 3) % classes;
            divisor += labels[i] == 3 ? 0 : (double)w.h[labels[i]];
        }
        double *want = malloc((size_t)(samples * classes) * sizeof(*want));
        for (int64_t i = 0; i < samples; i++) {
            double sum = 0, targets = 0;
            for (int c = 0; c < classes; c++)
                sum += exp((double)x.h[i * classes + c]);
            for (int pass = 0; pass < 2; pass++)
                for (int c = 0; c < classes; c++) {
                    const double t = (c == labels[i] ? (1 - smoothing) * (double)w.h[c] : 0) +
                                     smoothing / classes * (double)w.h[c];
                    const double p = exp((double)x.h[i * classes + c]) / sum;
                    targets += pass ? 0 : t;
                    total -= pass || labels[i] == 3 ? 0 : t * log(p);
                    want[i * classes + c] = labels[i] == 3 ? 0 : (p * targets - t) / divisor;
                }
        }
        const struct ew_cuda_loss p = {.label_bytes = 8,
                                       .mean = 1,
                                       .samples = samples,
                                       .classes = classes,
                                       .smoothing = (float)smoothing,
                                       .ignore = 3,
                                       .x = x.d,
                                       .labels = device_bytes(labels, sizeof(labels)),
                                       .weights = w.d,
                                       .loss = loss.d,
                                       .dx = dx.d,
                                       .scratch = device_bytes(NULL, (size_t)samples * 4 + 4)};
        EXPECT_LAUNCH(loss(gpu.q, &p));
        total /= divisor;
        EXPECT_BUF(&loss, &total, 1);
        EXPECT_BUF(&dx, want, 1);
        free(want);
        gpu_end();
    }
}

static void softmaxes(void)
{
    if (!gpu_open())
        return;
    for (int t = 0; t < TYPES; t++)
        for (int kind = 0; kind < 2; kind++) {
            const int64_t rows = 37, cols = kind ? 10 : 1000;
            struct buf x = buf_new(types[t], rows * cols, 2), y = buf_new(types[t], rows * cols, 0),
                       dy = buf_new(types[t], rows * cols, 1),
                       dx = buf_new(types[t], rows * cols, 0);
            double *want = malloc((size_t)(rows * cols) * sizeof(*want));
            struct ew_cuda_softmax p = {.type = types[t],
                                        .kind = kind ? EW_CUDA_LOG_SOFTMAX : EW_CUDA_SOFTMAX,
                                        .rows = rows,
                                        .cols = (int)cols,
                                        .x = x.d,
                                        .y = y.d};
            for (int64_t r = 0; r < rows; r++) {
                double sum = 0;
                for (int64_t i = r * cols; i < (r + 1) * cols; i++)
                    sum += exp((double)x.h[i]);
                for (int64_t i = r * cols; i < (r + 1) * cols; i++)
                    want[i] = kind ? (double)x.h[i] - log(sum) : exp((double)x.h[i]) / sum;
            }
            EXPECT_LAUNCH(softmax(gpu.q, &p));
            EXPECT_BUF(&y, want, 1);
            for (int64_t r = 0; r < rows; r++) {
                double sum = 0;
                for (int64_t i = r * cols; i < (r + 1) * cols; i++)
                    sum += (double)dy.h[i] * (kind ? 1 : (double)y.h[i]);
                for (int64_t i = r * cols; i < (r + 1) * cols; i++)
                    want[i] = kind ? (double)dy.h[i] - exp((double)y.h[i]) * sum
                                   : (double)y.h[i] * ((double)dy.h[i] - sum);
            }
            p.x = y.d;
            p.dy = dy.d;
            p.y = dx.d;
            EXPECT_LAUNCH(softmax_back(gpu.q, &p));
            EXPECT_BUF(&dx, want, 2);
            free(want);
            gpu_end();
        }
}

/* ---- Data movement ---- */

struct move_case {
    const char *name;
    int64_t dim[EW_CUDA_COPY_DIMS], xs[EW_CUDA_COPY_DIMS], ys[EW_CUDA_COPY_DIMS];
    int rank;
    int64_t x_count, y_count;
};

static void moves(void)
{
    if (!gpu_open())
        return;
    const struct move_case cases[] = {
        {"to channels first", {3, 5, 35}, {175, 1, 5}, {175, 35, 1}, 3, 525, 525},
        {"to channels last", {2, 49, 64}, {3136, 1, 49}, {3136, 64, 1}, 3, 6272, 6272},
        {"part of a concatenation", {40, 24}, {24, 1}, {64, 1}, 2, 960, 2560},
        {"shuffle", {10, 4, 29}, {116, 1, 4}, {116, 29, 1}, 3, 1160, 1160},
        {"slice with a step", {4, 6, 3}, {60, 6, 2}, {18, 3, 1}, 3, 240, 72},
        {"permute", {2, 3, 4, 5}, {60, 5, 15, 1}, {60, 20, 5, 1}, 4, 120, 120},
    };
    for (size_t k = 0; k < EW_COUNT(cases); k++)
        for (int t = 0; t < 2; t++)
            for (int add = 0; add < 2; add++) {
                const struct move_case *m = &cases[k];
                struct buf x = buf_new(types[t], m->x_count, 1),
                           y = buf_new(types[t], m->y_count, 1);
                struct ew_cuda_copy p = {.bytes = (int)type_bytes(types[t]),
                                         .rank = m->rank,
                                         .add_type = add ? types[t] : -1,
                                         .x = x.d,
                                         .y = y.d};
                memcpy(p.dim, m->dim, sizeof(p.dim));
                memcpy(p.x_stride, m->xs, sizeof(p.dim));
                memcpy(p.y_stride, m->ys, sizeof(p.dim));
                double *want = malloc((size_t)m->y_count * sizeof(*want));
                int64_t n = 1;
                for (int d = 0; d < m->rank; d++)
                    n *= m->dim[d];
                for (int64_t i = 0; i < m->y_count; i++)
                    want[i] = (double)y.h[i];
                for (int64_t i = 0; i < n; i++) {
                    int64_t rest = i, from = 0, to = 0;
                    for (int d = m->rank - 1; d >= 0; d--) {
                        from += rest % m->dim[d] * m->xs[d];
                        to += rest % m->dim[d] * m->ys[d];
                        rest /= m->dim[d];
                    }
                    want[to] = (double)x.h[from] + (add ? want[to] : 0);
                }
                EXPECT_LAUNCH(strided_copy(gpu.q, &p));
                EXPECT_BUF(&y, want, add ? 1 : 1e-6);
                free(want);
                gpu_end();
            }
}

/* ---- GEMM ---- */

static void products(void)
{
    if (!gpu_open())
        return;
    for (int k = 0; k < 24; k++) {
        const int t = types[k % 3], ta = k / 3 % 2, tb = k / 6 % 2, more = k / 12;
        const int64_t m = more ? 784 : 16, n = more ? 96 : 10, depth = more ? 160 : 84;
        if (t != EW_CUDA_F32 && !more && ta)
            continue; /* in half types old libraries need rows of 16 bytes */
        const struct ew_cuda_act act = acts[k % 5];
        const struct ew_epilogue_attr e = attr_of(act);
        struct buf a = buf_new(t, m * depth, 1), b = buf_new(t, n * depth, 1),
                   bias = buf_new(EW_CUDA_F32, n, 3), r = buf_new(t, m * n, 3),
                   y = buf_new(t, m * n, 0);
        double *want = calloc((size_t)(m * n), sizeof(*want));
        for (int64_t i = 0; i < m * n; i++) {
            for (int64_t d = 0; d < depth; d++)
                want[i] += (double)a.h[ta ? d * m + i / n : i / n * depth + d] *
                           (double)b.h[tb ? i % n * depth + d : d * n + i % n];
            want[i] += more ? (double)bias.h[i % n] + (double)r.h[i] : 0;
            want[i] = ew_act_apply(&e, want[i]);
        }
        const struct ew_cuda_gemm p = {.type = t,
                                       .trans_a = ta,
                                       .trans_b = tb,
                                       .m = m,
                                       .n = n,
                                       .k = depth,
                                       .alpha = 1,
                                       .act = act,
                                       .a = a.d,
                                       .b = b.d,
                                       .bias = more ? bias.d : NULL,
                                       .residual = more ? r.d : NULL,
                                       .y = y.d};
        EXPECT_LAUNCH(gemm(gpu.q, &p));
        EXPECT_BUF(&y, want, 2);
        free(want);
        gpu_end();
    }
}

/* ---- Updates ---- */

static void updates(void)
{
    if (!gpu_open())
        return;
    const int64_t sizes[] = {1, 10000, 4096, 77};
    for (int kind = 0; kind < 4; kind++) {
        struct ew_optimizer o = {.kind = (enum ew_optimizer_kind)kind,
                                 .lr = 0.1,
                                 .momentum = 0.9,
                                 .weight_decay = 0.01,
                                 .beta1 = 0.9,
                                 .beta2 = 0.99,
                                 .eps = 1e-8,
                                 .step = 4};
        struct buf b[4][4];
        struct ew_cuda_param params[4];
        int chunk_param[16], chunk_index[16], chunks = 0;
        double *want[4];
        for (int i = 0; i < 4; i++) {
            for (int j = 0; j < 4; j++)
                b[i][j] = buf_new(EW_CUDA_F32, sizes[i], 1);
            for (int64_t k = 0; k < sizes[i]; k++)
                b[i][3].h[k] = fabsf(b[i][3].h[k]);
            buf_put(&b[i][3]);
            params[i] = (struct ew_cuda_param){
                .w = b[i][0].d, .g = b[i][1].d, .state = {b[i][2].d, b[i][3].d}, .n = sizes[i]};
            for (int64_t c = 0; c * EW_CUDA_UPDATE_CHUNK < sizes[i]; c++) {
                chunk_param[chunks] = i;
                chunk_index[chunks++] = (int)c;
            }
        }
        for (int i = 0; i < 4; i++) {
            struct ew_tensor t[4], *in[4];
            for (int j = 0; j < 4; j++) {
                t[j] = (struct ew_tensor){EW_F32, {1, {sizes[i]}}, malloc((size_t)sizes[i] * 4)};
                memcpy(t[j].data, b[i][j].h, (size_t)sizes[i] * 4);
                in[j] = &t[j];
            }
            const struct ew_call c = {.attr = &o, .in = in, .n_in = 2 + ew_optimizer_states(&o)};
            EW_EXPECT_OK(ew_update_run(&c));
            want[i] = malloc((size_t)sizes[i] * sizeof(double));
            for (int64_t k = 0; k < sizes[i]; k++)
                want[i][k] = (double)((float *)t[0].data)[k];
            for (int j = 0; j < 4; j++)
                free(t[j].data);
        }
        const struct ew_cuda_rates rates = {.lr = o.lr,
                                            .momentum = o.momentum,
                                            .weight_decay = o.weight_decay,
                                            .beta1 = o.beta1,
                                            .beta2 = o.beta2,
                                            .eps = o.eps,
                                            .bias1 = 1 - pow(o.beta1, 5),
                                            .bias2 = 1 - pow(o.beta2, 5)};
        const struct ew_cuda_update u = {
            .kind = kind,
            .n_chunks = chunks,
            .params = device_bytes(params, sizeof(params)),
            .chunk_param = device_bytes(chunk_param, sizeof(chunk_param)),
            .chunk_index = device_bytes(chunk_index, sizeof(chunk_index)),
            .rates = device_bytes(&rates, sizeof(rates))};
        EXPECT_LAUNCH(update(gpu.q, &u));
        for (int i = 0; i < 4; i++) {
            EXPECT_BUF(&b[i][0], want[i], 1);
            free(want[i]);
        }
        gpu_end();
    }
}

/* Gradients of a scaled loss are unscaled, and a step that overflows only changes the scale. */
static void scaled_losses(void)
{
    if (!gpu_open())
        return;
    const struct ew_cuda_rates rates = {.lr = 0.5, .scaled = 1};
    struct ew_cuda_scale first = {.scale = 1024, .good = EW_CUDA_SCALE_STEPS - 1}, now;
    struct buf w = buf_new(EW_CUDA_F32, 100, 1), g = buf_new(EW_CUDA_F32, 100, 1024),
               copy = buf_new(EW_CUDA_F16, 100, 0), seed = buf_new(EW_CUDA_F32, 1, 0);
    const struct ew_cuda_param param = {
        .w = w.d, .g = g.d, .n = 100, .copy = copy.d, .copy_type = EW_CUDA_F16};
    const int zero = 0;
    const struct ew_cuda_update u = {.n_chunks = 1,
                                     .params = device_bytes(&param, sizeof(param)),
                                     .chunk_param = device_bytes(&zero, sizeof(zero)),
                                     .chunk_index = device_bytes(&zero, sizeof(zero)),
                                     .rates = device_bytes(&rates, sizeof(rates)),
                                     .scale = device_bytes(&first, sizeof(first))};
    double want[100], loss = 512;
    for (int i = 0; i < 100; i++)
        want[i] = (double)w.h[i] - 0.5 * (double)g.h[i] / 1024;
    EXPECT_LAUNCH(seed(gpu.q, seed.d, 0, 0.5f, u.rates, u.scale));
    EXPECT_BUF(&seed, &loss, 0);
    EXPECT_LAUNCH(update(gpu.q, &u));
    EXPECT_BUF(&w, want, 1);
    EXPECT_BUF(&copy, want, 1);
    g.h[77] = INFINITY;
    buf_put(&g);
    EXPECT_LAUNCH(update(gpu.q, &u));
    EXPECT_BUF(&w, want, 1);
    EXPECT_LAUNCH(copy(gpu.q, &now, u.scale, sizeof(now), EW_CUDA_TO_HOST));
    EXPECT_LAUNCH(queue_wait(gpu.q));
    EW_EXPECT_INT(now.skipped, 1); /* doubled after the good step, halved after the other */
    EW_EXPECT_INT(now.scale, 1024);
    EW_EXPECT_INT(now.overflow, 0);
    gpu_end();
}

/* ---- CUDA graphs ---- */

/* A captured graph runs again with the current contents of memory and gives the same bits. */
static void graphs_repeat(void)
{
    if (!gpu_open())
        return;
    struct buf a = buf_new(EW_CUDA_F32, 70000, 1), y = buf_new(EW_CUDA_F32, 1, 0);
    const struct ew_cuda_reduce p = {
        .outer = 1,
        .mid = 70000,
        .inner = 1,
        .scale = 1,
        .a = a.d,
        .out = y.d,
        .scratch = device_bytes(NULL, ew_cuda_reduce_scratch(1, 70000, 1, 1))};
    void *graph = NULL;
    EXPECT_LAUNCH(capture_begin(gpu.q));
    EXPECT_LAUNCH(reduce(gpu.q, &p));
    EXPECT_LAUNCH(capture_end(gpu.q, &graph));
    float first = 0;
    for (int i = 0; i < 20; i++) {
        EXPECT_LAUNCH(graph_launch(gpu.q, graph));
        const float v = *buf_get(&y);
        first = i ? first : v;
        EW_EXPECT(memcmp(&v, &first, 4) == 0);
    }
    for (int i = 0; i < 70000; i++)
        a.h[i] = 1;
    buf_put(&a);
    EXPECT_LAUNCH(graph_launch(gpu.q, graph));
    EW_EXPECT_NEAR(*buf_get(&y), 70000, 0);
    EXPECT_LAUNCH(graph_free(graph));
    gpu_end();
}

EW_TEST_MAIN(EW_TEST(chains), EW_TEST(unary_operations), EW_TEST(slopes),
             EW_TEST(slopes_of_outputs), EW_TEST(drops), EW_TEST(epilogues_and_casts),
             EW_TEST(sums), EW_TEST(batch_norms), EW_TEST(losses), EW_TEST(softmaxes),
             EW_TEST(moves), EW_TEST(products), EW_TEST(updates), EW_TEST(scaled_losses),
             EW_TEST(graphs_repeat))
