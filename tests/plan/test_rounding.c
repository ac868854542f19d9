/* SPDX-License-Identifier: Apache-2.0 */
/* Training with rounded weights and biases.  Regression: on a device with its own memory steps used
 * unrounded weights, since only the host's were rounded. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "edgewise.h"
#include "ew_test.h"
#include "model/objective.h"
#include "plan/plan.h"
#include "poison_backend.h"

#define BATCH 4
#define STEPS 3

static const char *const names[] = {"conv1.weight", "conv2.weight", "conv2.bias", "fc1.weight",
                                    "fc1.bias",     "fc2.weight",   "fc2.bias"};
#define VALUES 7

struct result {
    float loss[STEPS];
    float *w[VALUES]; /* at the end */
    int64_t n[VALUES];
};

static struct ew_graph *network(void)
{
    const struct ew_model_opts o = {.size = sizeof(o), .batch = BATCH};
    struct ew_graph *g = NULL;
    EW_EXPECT_OK(ew_model_build("lenet5", &o, &g));
    EW_EXPECT_OK(ew_model_init("lenet5", 1, g));
    for (int k = 0; k < VALUES; k++) {
        const struct ew_tensor *t = &g->values[ew_graph_find(g, names[k])].t;
        for (int64_t i = 0; t->shape.rank == 1 && i < ew_tensor_count(t); i++)
            ((float *)t->data)[i] = (float)(i % 7) / 10;
    }
    EW_EXPECT_OK(ew_objective_add(g));
    return g;
}

/* Per channel; with power-of-two scales; per channel with inputs so small that the biases determine
 * the weights' scales. */
static void list_values(const struct ew_graph *g, struct ew_fake_quant_weight *out)
{
    const struct ew_weight_rounding coarse = {.pow2 = true, .position = 2},
                                    channels = {.x_scale = 0.5}, tiny = {.x_scale = 1e-9};
    const struct ew_weight_rounding *const how[VALUES] = {&coarse, &channels, &channels, &coarse,
                                                          &coarse, &tiny,     &tiny};
    for (int i = 0; i < VALUES; i++)
        out[i] = (struct ew_fake_quant_weight){
            .value = ew_graph_find(g, names[i]), .other = -1, .how = *how[i]};
    for (int i = 0; i + 1 < VALUES; i++)
        if (how[i] == how[i + 1] && !how[i]->pow2) {
            out[i].other = out[i + 1].value;
            out[i + 1].other = out[i].value;
            out[i + 1].how.is_bias = true;
        }
}

/* Rounds permanently, as in the final integer network: scales are computed from unrounded
 * values. */
static void round_values(struct ew_graph *g, const struct ew_fake_quant_weight *values)
{
    float *to[VALUES];
    for (int i = 0; i < VALUES; i++) {
        const struct ew_tensor *t = &g->values[values[i].value].t;
        const struct ew_tensor *other = values[i].other < 0 ? NULL : &g->values[values[i].other].t;
        to[i] = malloc(ew_tensor_bytes(t));
        ew_weight_round(t, other, &values[i].how, to[i]);
    }
    for (int i = 0; i < VALUES; i++) {
        const struct ew_tensor *t = &g->values[values[i].value].t;
        memcpy(t->data, to[i], ew_tensor_bytes(t));
        free(to[i]);
    }
}

enum rounds { NEVER, IN_STEPS, BEFORE };

static struct result run(const char *device, double lr, enum rounds rounds)
{
    struct ew_graph *g = network();
    struct ew_fake_quant_weight values[VALUES];
    struct result r = {{0}};
    struct ew_plan *p = NULL;
    list_values(g, values);
    if (rounds == BEFORE)
        round_values(g, values);
    const struct ew_plan_opts o = {
        .mode = EW_PLAN_TRAIN,
        .update = true,
        .optimizer = {.kind = EW_OPTIMIZER_SGD, .lr = lr, .momentum = 0.9},
        .rounded = values,
        .n_rounded = rounds == IN_STEPS ? VALUES : 0,
        .backend = {.device = device, .threads = 1, .reference = strcmp(device, "cpu") == 0}};
    if (!EW_EXPECT_OK(ew_plan_compile(g, &o, &p)))
        return r;
    float *x = ew_plan_input(p, 0)->data;
    for (int64_t i = 0; i < ew_tensor_count(ew_plan_input(p, 0)); i++)
        x[i] = (float)(i * 31 % 97) / 48 - 1;
    for (int i = 0; i < BATCH; i++)
        ((int64_t *)ew_plan_input(p, 1)->data)[i] = i * 3 % 10;
    for (int i = 0; i < STEPS; i++) {
        EW_EXPECT_OK(ew_plan_run(p));
        r.loss[i] = ((const float *)ew_plan_output(p, 0)->data)[0];
    }
    EW_EXPECT_OK(ew_plan_pull(p));
    for (int i = 0; i < VALUES; i++) {
        const struct ew_tensor *t = &g->values[values[i].value].t;
        r.n[i] = ew_tensor_count(t);
        r.w[i] = malloc(ew_tensor_bytes(t));
        memcpy(r.w[i], t->data, ew_tensor_bytes(t));
    }
    ew_plan_free(p);
    ew_graph_free(g);
    return r;
}

static void fini(struct result *r)
{
    for (int i = 0; i < VALUES; i++)
        free(r->w[i]);
}

static double distance(const struct result *a, const struct result *b)
{
    double worst = 0;
    for (int i = 0; i < VALUES; i++)
        for (int64_t k = 0; k < a->n[i]; k++)
            worst = fmax(worst, fabs((double)a->w[i][k] - (double)b->w[i][k]));
    return worst;
}

/* The first loss is that of rounded values; losses and weights equal the CPU's, within the
 * tolerance of other orders of sums. */
static void check(const char *device, double tolerance)
{
    struct result want = run("cpu", 0.02, IN_STEPS), got = run(device, 0.02, IN_STEPS);
    struct result before = run(device, 0.02, BEFORE);
    /* CUDA runs whole networks in other kernels where nothing is rounded in steps. */
    const double same = strcmp(device, "cuda") == 0 ? 1e-6 : 0;
    EW_EXPECT_NEAR(got.loss[0], before.loss[0], same * fabs((double)before.loss[0]));
    for (int i = 0; i < STEPS; i++)
        EW_EXPECT_NEAR(got.loss[i], want.loss[i], tolerance * fabs((double)want.loss[i]));
    EW_EXPECT_NEAR(distance(&got, &want), 0, tolerance);
    fini(&want);
    fini(&got);
    fini(&before);
}

static void steps_see_rounded_weights(void)
{
    struct result plain = run("cpu", 0.02, NEVER), rounded = run("cpu", 0.02, IN_STEPS);
    EW_EXPECT(fabsf(plain.loss[0] - rounded.loss[0]) > 1e-4f);
    EW_EXPECT(rounded.loss[STEPS - 1] < rounded.loss[0]);
    fini(&plain);
    fini(&rounded);
}

static void without_a_change_all_bits_come_back(void)
{
    struct result trained = run("cpu", 0, IN_STEPS), same = run("cpu", 0, NEVER);
    EW_EXPECT_NEAR(distance(&trained, &same), 0, 0);
    EW_EXPECT_NEAR(trained.loss[2], trained.loss[0], 0);
    fini(&trained);
    fini(&same);
}

static void on_devices_with_memory_of_their_own(void)
{
    struct ew_device_found found;
    EW_EXPECT_OK(ew_poison_register());
    check("poison", 1e-6); /* runs the host's fast kernels */
    check("poison:some", 1e-6);
    check("poison:late", 0);
    if (ew_backend_probe("cuda", &found) == EW_OK)
        check("cuda", 1e-4);
}

EW_TEST_MAIN(EW_TEST(steps_see_rounded_weights), EW_TEST(without_a_change_all_bits_come_back),
             EW_TEST(on_devices_with_memory_of_their_own))
