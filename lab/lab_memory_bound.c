/* SPDX-License-Identifier: Apache-2.0 */
/* Memory-bound kernels, on sizes of training steps: GB/s of compulsory traffic. */
#include <stdlib.h>

#include "lab.h"

enum { ROWS = 16 * 28 * 28, CHANNELS = 128, COUNT = ROWS * CHANNELS, SMALL = 64 * 1024 };

struct memory_ctx {
    const struct ew_kernels *k;
    struct ew_batch_norm norm;
    struct ew_pooling pool;
    struct ew_sgd sgd;
    struct ew_adam adam;
    struct ew_act_map act;
    struct ew_add_map add;
    struct ew_softmax softmax;
    struct ew_transpose transpose;
    float *x, *y;
};

static void norm_forward(void *ctx)
{
    const struct memory_ctx *r = ctx;
    r->k->batch_stats(&r->norm, 0, r->k->batch_splits(ROWS));
    r->k->batch_finish(&r->norm);
    r->k->batch_apply(&r->norm, 0, ROWS);
}

static void norm_backward(void *ctx)
{
    const struct memory_ctx *r = ctx;
    r->k->batch_back_stats(&r->norm, 0, r->k->batch_splits(ROWS));
    r->k->batch_back_finish(&r->norm);
    r->k->batch_back_apply(&r->norm, 0, ROWS);
}

static void pool_forward(void *ctx)
{
    const struct memory_ctx *r = ctx;
    r->k->pool_run(&r->pool, 0, r->k->pool_tiles(&r->pool.shape));
}

static void pool_backward(void *ctx)
{
    const struct memory_ctx *r = ctx;
    r->k->pool_back_run(&r->pool, 0, r->k->pool_back_tiles(&r->pool.shape));
}

static void sgd(void *ctx)
{
    const struct memory_ctx *r = ctx;
    r->k->sgd_run(&r->sgd, 0, COUNT);
}

static void adam(void *ctx)
{
    const struct memory_ctx *r = ctx;
    r->k->adam_run(&r->adam, 0, COUNT);
}

static void exponential(void *ctx)
{
    const struct memory_ctx *r = ctx;
    r->k->exp_run(r->x, r->y, 0, SMALL);
}

static void silu(void *ctx)
{
    const struct memory_ctx *r = ctx;
    r->k->act_run(&r->act, 0, SMALL);
}

static void add_relu(void *ctx)
{
    const struct memory_ctx *r = ctx;
    r->k->add_run(&r->add, 0, COUNT);
}

static void softmax(void *ctx)
{
    const struct memory_ctx *r = ctx;
    r->k->softmax_run(&r->softmax, 0, 64);
}

static void transpose(void *ctx)
{
    const struct memory_ctx *r = ctx;
    r->k->transpose_run(&r->transpose, 0, r->k->transpose_tiles(&r->transpose));
}

/* clang-format off */
static const struct {
    const char *name;
    void (*run)(void *ctx);
    double floats; /* read and written */
} jobs[] = {
    {"batch norm + relu, 128 @28 batch 16", norm_forward, 3.0 * COUNT},
    {"batch norm + relu, backward", norm_backward, 5.0 * COUNT},
    {"max pool 3x3 s2, 128 @28 batch 16", pool_forward, 1.25 * COUNT},
    {"max pool 3x3 s2, backward", pool_backward, 2.25 * COUNT},
    {"sgd with momentum, 1.6 M", sgd, 5.0 * COUNT},
    {"adam, 1.6 M", adam, 7.0 * COUNT},
    {"add + relu, 1.6 M", add_relu, 3.0 * COUNT},
    {"exp, 64 K", exponential, 2.0 * SMALL},
    {"silu, 64 K", silu, 2.0 * SMALL},
    {"softmax + loss + gradient, 64 x 1000", softmax, 2.0 * 64000},
    {"transpose 16 x 128 x 784", transpose, 2.0 * COUNT},
};
/* clang-format on */

static const char *job_name(int i)
{
    return jobs[i].name;
}

static void setup(const struct ew_kernels *k, int i, struct lab_job *out)
{
    static struct memory_ctx r;
    static int64_t labels[64];
    float *x = lab_array(COUNT), *y = lab_array(COUNT), *z = lab_array(COUNT);
    float *small = lab_array(12 * CHANNELS);
    r = (struct memory_ctx){.k = k, .x = x, .y = y};
    r.norm = (struct ew_batch_norm){.rows = ROWS,
                                    .channels = CHANNELS,
                                    .x = x,
                                    .scale = small,
                                    .bias = small + CHANNELS,
                                    .act = EW_ACT_RELU,
                                    .eps = 1e-5f,
                                    .momentum = 0.1f,
                                    .y = y,
                                    .mean = small + 2 * CHANNELS,
                                    .rstd = small + 3 * CHANNELS,
                                    .dy = z,
                                    .dx = y,
                                    .dscale = small + 4 * CHANNELS,
                                    .dbias = small + 5 * CHANNELS,
                                    .sums = small + 6 * CHANNELS};
    r.norm.partial = lab_array(k->batch_partial(ROWS, CHANNELS));
    r.pool = (struct ew_pooling){.max = true, .x = x, .y = y, .dy = y, .dx = z};
    r.pool.shape =
        (struct ew_conv_shape){16,
                               CHANNELS,
                               CHANNELS,
                               CHANNELS,
                               {{1, 1, 1, 1, 1, 0}, {28, 14, 3, 2, 1, 1}, {28, 14, 3, 2, 1, 1}}};
    r.sgd =
        (struct ew_sgd){.rate = 1e-3f, .momentum = 0.9f, .decay = 1e-4f, .w = x, .m = y, .g = z};
    r.adam = (struct ew_adam){.rate = 1e-3f,
                              .beta1 = 0.9f,
                              .beta2 = 0.999f,
                              .eps = 1e-8f,
                              .c1 = 0.5f,
                              .c2 = 0.5f,
                              .w = x,
                              .m = y,
                              .v = lab_array(COUNT),
                              .g = z};
    r.act = (struct ew_act_map){.act = EW_ACT_SILU, .x = x, .y = y};
    r.add = (struct ew_add_map){.act = EW_ACT_RELU, .a = x, .b = z, .y = y};
    r.softmax = (struct ew_softmax){.classes = 1000,
                                    .x = x,
                                    .label = labels,
                                    .loss = small + 9 * CHANNELS,
                                    .dx = y,
                                    .grad = 1.0f / 64};
    r.transpose =
        (struct ew_transpose){.batch = 16, .rows = CHANNELS, .columns = 784, .in = x, .out = y};
    *out = (struct lab_job){.run = jobs[i].run, .ctx = &r, .bytes = jobs[i].floats * 4};
}

const struct lab_experiment lab_memory_bound[] = {
    {"memory", "memory-bound kernels", (int)(sizeof(jobs) / sizeof(jobs[0])), job_name, setup},
    {0}};
