/* SPDX-License-Identifier: Apache-2.0 */
/* Plans on a CUDA device against the operators' references on the CPU: all test cases of all
 * operators forward and backward, and whole networks: inference, gradients, training steps. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backend/backend.h"
#include "base/rng.h"
#include "edgewise.h"
#include "ew_test.h"
#include "model/objective.h"
#include "op_case.h"
#include "plan/plan.h"
#include "quant_graph.h"

#define STEPS 16
#define RUNS  3 /* launched, captured, replayed */

static bool has_device(void)
{
    struct ew_device_found found;
    if (ew_backend_probe("cuda", &found) == EW_OK)
        return true;
    ew_test_skip("%s", ew_error_message());
    return false;
}

static struct ew_backend_opts on(const char *device)
{
    return (struct ew_backend_opts){
        .device = device, .threads = 1, .reference = strcmp(device, "cpu") == 0};
}

/* Largest difference relative to the largest value; infinite if either has a nan. */
static double distance(const struct ew_tensor *a, const struct ew_tensor *b)
{
    double most = 1e-30, worst = 0;
    for (int64_t i = 0; i < ew_tensor_count(a); i++) {
        const double x = ew_tensor_get(a, i), y = ew_tensor_get(b, i);
        const bool same = (isnan(x) && isnan(y)) || (isinf(x) && isinf(y) && (x > 0) == (y > 0));
        if (same)
            continue;
        most = fmax(most, fabs(x));
        worst = fmax(worst, isnan(x - y) ? HUGE_VAL : fabs(x - y));
    }
    return worst / most;
}

/* ---- Operators ---- */

static struct ew_plan *case_plan(struct ew_graph *g, const struct ew_op_case *k, bool train,
                                 const char *device)
{
    struct ew_plan *p = NULL;
    const struct ew_plan_opts o = {
        .mode = train ? EW_PLAN_TRAIN : EW_PLAN_INFER, .seed = 5, .backend = on(device)};
    if (!EW_EXPECT_OK(ew_plan_compile(g, &o, &p)))
        return NULL;
    for (int i = 0; i < g->n_inputs; i++) {
        struct ew_tensor *t = ew_plan_input(p, i);
        const char *name = g->values[g->inputs[i]].name; /* "in3" */
        ew_case_fill(k, atoi(name + 2), t);
    }
    for (int run = 0; run < (strcmp(device, "cpu") == 0 ? 1 : RUNS); run++) {
        ew_plan_set_step(p, 0);
        EW_EXPECT_OK(ew_plan_run(p));
    }
    return p;
}

static void check_forward(const struct ew_op *op, const struct ew_op_case *k, const char *device,
                          double tolerance)
{
    struct ew_graph *g = NULL;
    if (!EW_EXPECT_OK(ew_case_graph(op, k, false, &g)))
        return;
    struct ew_plan *a = case_plan(g, k, false, "cpu"), *b = case_plan(g, k, false, device);
    for (int i = 0; a && b && i < g->n_outputs; i++) {
        const double off = distance(ew_plan_output(a, i), ew_plan_output(b, i));
        if (!(off <= tolerance))
            EW_FAIL("output %d is off by %g", i, off);
    }
    ew_plan_free(a);
    ew_plan_free(b);
    ew_graph_free(g);
}

/* The sum of out[0] times fixed numbers becomes the loss, and float inputs become parameters. */
static ew_err add_loss(struct ew_graph *g, const struct ew_op_case *k)
{
    const int out = g->outputs[0];
    const int64_t n = ew_shape_count(&g->values[out].t.shape);
    float *v = malloc((size_t)n * sizeof(*v) + 1);
    for (int64_t i = 0; i < n; i++)
        v[i] = (float)ew_rng_normal(9, 1, (uint64_t)i);
    const struct ew_tensor t = {EW_F32, g->values[out].t.shape, v};
    int factor = -1, product = -1, loss = -1;
    ew_err e = ew_graph_const(g, "factor", EW_VALUE_CONST, &t, true, &factor);
    free(v);
    EW_TRY(e);
    EW_TRY(ew_graph_add(g, ew_op_find("mul"), "product", NULL, EW_INPUTS(out, factor), &product));
    const struct ew_op *sum = ew_op_find("reduce_sum");
    void *attr = calloc(1, sum->attr_size + 1);
    e = ew_graph_add(g, sum, "loss", attr, EW_INPUTS(product), &loss);
    free(attr);
    EW_TRY(e);
    g->n_outputs = 0;
    EW_TRY(ew_graph_output(g, loss));
    int kept = 0;
    for (int i = 0; i < g->n_inputs; i++) {
        struct ew_value *in = &g->values[g->inputs[i]];
        if (in->t.dtype != EW_F32 || k->in[atoi(in->name + 2)].no_grad) {
            g->inputs[kept++] = g->inputs[i];
            continue;
        }
        EW_TRY(ew_case_shape(k->in[atoi(in->name + 2)].shape, &in->t.shape));
        in->t.data = ew_arena_alloc(&g->arena, ew_tensor_bytes(&in->t));
        EW_CHECK(in->t.data, EW_ERR_MEMORY, "no memory");
        ew_case_fill(k, atoi(in->name + 2), &in->t);
        in->kind = EW_VALUE_PARAM;
    }
    g->n_inputs = kept;
    return EW_OK;
}

static void check_backward(const struct ew_op *op, const struct ew_op_case *k)
{
    struct ew_graph *g = NULL;
    if (!EW_EXPECT_OK(ew_case_graph(op, k, false, &g)))
        return;
    const struct ew_tensor *out = &g->values[g->outputs[0]].t;
    if (out->dtype != EW_F32 || ew_shape_count(&out->shape) == 0 || !EW_EXPECT_OK(add_loss(g, k))) {
        ew_graph_free(g);
        return;
    }
    bool any = false;
    for (int v = 0; v < g->n_values; v++)
        any = any || g->values[v].kind == EW_VALUE_PARAM;
    struct ew_plan *a = any ? case_plan(g, k, true, "cpu") : NULL;
    struct ew_plan *b = a ? case_plan(g, k, true, "cuda") : NULL;
    for (int v = 0; b && v < g->n_values; v++) {
        const struct ew_tensor *x = ew_plan_grad(a, v), *y = ew_plan_grad(b, v);
        if (g->values[v].kind != EW_VALUE_PARAM || !x || !EW_EXPECT(y))
            continue;
        const double off = distance(x, y);
        if (!(off <= 1e-4))
            EW_FAIL("the gradient of %s is off by %g", g->values[v].name, off);
    }
    ew_plan_free(a);
    ew_plan_free(b);
    ew_graph_free(g);
}

static bool is_plain(const struct ew_op_case *k)
{
    for (int i = 0; i < k->n_in; i++)
        if (k->in[i].shape && k->in[i].dtype == EW_F64)
            return false;
    return true;
}

static void walk(bool back)
{
    for (int i = 0; i < ew_op_count(); i++) {
        const struct ew_op *op = ew_op_at(i);
        for (int k = 0; k < op->n_cases; k++) {
            /* The host's fast kernel has no gradients of clip's bounds. */
            const bool none = !op->backward || op->state_in || strcmp(op->name, "clip") == 0;
            if (!is_plain(&op->cases[k]) || (back && none))
                continue;
            ew_test_begin("%s %s, %s", op->name, op->cases[k].name, back ? "backward" : "forward");
            if (back)
                check_backward(op, &op->cases[k]);
            else
                check_forward(op, &op->cases[k], "cuda", 1e-5);
            ew_test_end();
        }
    }
}

/* Operators with kernels for half types; others run on the host in float32. */
static void walk_half(const char *device, double tolerance)
{
    static const char *const names[] = {
        "conv",    "gemm",    "matmul",     "batch_norm",     "max_pool",    "average_pool",
        "relu",    "clip",    "hard_swish", "silu",           "add",         "mul",
        "concat",  "split",   "transpose",  "softmax",        "log_softmax", "global_average_pool",
        "dropout", "reshape", "leaky_relu", "channel_shuffle"};
    for (size_t i = 0; i < EW_COUNT(names); i++) {
        const struct ew_op *op = ew_op_find(names[i]);
        for (int k = 0; EW_EXPECT(op) && k < op->n_cases; k++) {
            bool wide = true;
            for (int j = 0; j < op->cases[k].n_in; j++)
                wide = wide && (!op->cases[k].in[j].shape || (op->cases[k].in[j].dtype != EW_F16 &&
                                                              op->cases[k].in[j].dtype != EW_BF16 &&
                                                              op->cases[k].in[j].dtype != EW_F64));
            if (!wide)
                continue;
            ew_test_begin("%s %s on %s", op->name, op->cases[k].name, device);
            check_forward(op, &op->cases[k], device, tolerance);
            ew_test_end();
        }
    }
}

/* ---- Networks ---- */

struct network {
    const char *name;
    int side;
    bool quick; /* in quick tests too */
};

static struct ew_graph *build(const struct network *n, bool train, int batch)
{
    struct ew_model_opts o = {.size = sizeof(o), .classes = 7, .batch = batch};
    struct ew_graph *g = NULL;
    o.height = o.width = n->side;
    bool ok =
        EW_EXPECT_OK(ew_model_build(n->name, &o, &g)) && EW_EXPECT_OK(ew_model_init(n->name, 3, g));
    ok = ok && (!train || EW_EXPECT_OK(ew_objective_add(g)));
    if (ok)
        return g;
    ew_graph_free(g);
    return NULL;
}

static void fill(struct ew_plan *p, bool train, int batch)
{
    struct ew_tensor *x = ew_plan_input(p, 0);
    for (int64_t i = 0; i < ew_tensor_count(x); i++)
        ((float *)x->data)[i] = sinf((float)i * 0.37f);
    for (int i = 0; train && i < batch; i++)
        ((int64_t *)ew_plan_input(p, 1)->data)[i] = i % 7;
}

static struct ew_plan *network_plan(struct ew_graph *g, bool train, const char *device, int batch)
{
    struct ew_plan *p = NULL;
    const bool cpu = strcmp(device, "cpu") == 0;
    const struct ew_plan_opts o = {.mode = train ? EW_PLAN_TRAIN : EW_PLAN_INFER,
                                   .optimize = !cpu,
                                   .backend = {.device = device, .threads = 0}};
    if (!EW_EXPECT_OK(ew_plan_compile(g, &o, &p)))
        return NULL;
    for (int run = 0; run < (cpu ? 1 : RUNS); run++) {
        fill(p, train, batch);
        ew_plan_set_step(p, 0);
        EW_EXPECT_OK(ew_plan_run(p));
    }
    struct ew_plan_stats s;
    ew_plan_stats(p, &s);
    EW_EXPECT_INT(s.host_steps, 0);
    return p;
}

/* Runs some batches to obtain running statistics like those of a trained network, and copies them
 * into the graph by name: with the initial statistics, activations of deep networks vanish in half
 * types. */
static bool settle(const struct network *n, struct ew_graph *g)
{
    struct ew_graph *trained = build(n, true, 8);
    struct ew_plan *p = NULL;
    const struct ew_plan_opts o = {
        .mode = EW_PLAN_TRAIN, .update = true, .backend = {.device = "cuda"}};
    bool ok = trained && EW_EXPECT_OK(ew_plan_compile(trained, &o, &p));
    for (int i = 0; ok && i < (ew_test_quick() ? 8 : 50); i++) {
        if (i == 0)
            fill(p, true, 8);
        ok = EW_EXPECT_OK(ew_plan_run(p));
    }
    ok = ok && EW_EXPECT_OK(ew_plan_pull(p));
    for (int v = 0; ok && v < g->n_values; v++) {
        const int from = ew_graph_find(trained, g->values[v].name);
        if (g->values[v].kind == EW_VALUE_STATE && EW_EXPECT(from >= 0))
            memcpy(g->values[v].t.data, trained->values[from].t.data,
                   ew_tensor_bytes(&g->values[v].t));
    }
    ew_plan_free(p);
    ew_graph_free(trained);
    return ok;
}

struct device {
    const char *name;
    double tolerance;
};

static void check_inference(const struct network *n)
{
    static const struct device devices[] = {
        {"cuda", 5e-4}, {"cuda:0,tf32", 0.1}, {"cuda:0,fp16", 0.1}, {"cuda:0,bf16", 0.6}};
    struct ew_graph *g = build(n, false, 2);
    struct ew_plan *a = g && settle(n, g) ? network_plan(g, false, "cpu", 2) : NULL;
    for (size_t i = 0; a && i < EW_COUNT(devices); i++) {
        struct ew_plan *b = network_plan(g, false, devices[i].name, 2);
        if (!b)
            continue;
        const double off = distance(ew_plan_output(a, 0), ew_plan_output(b, 0));
        if (!(off <= devices[i].tolerance))
            EW_FAIL("%s on %s is off by %g", n->name, devices[i].name, off);
        ew_plan_free(b);
    }
    ew_plan_free(a);
    ew_graph_free(g);
}

static double norm_of(const struct ew_tensor *x, const struct ew_tensor *less)
{
    double sum = 0;
    for (int64_t i = 0; i < ew_tensor_count(x); i++) {
        const double v = ew_tensor_get(x, i) - (less ? ew_tensor_get(less, i) : 0);
        sum += isnan(v) ? HUGE_VAL : v * v;
    }
    return sqrt(sum);
}

/* Compares norms: single gradients near a kink may differ, and those of a bias before a batch norm
 * are only rounding errors. */
static void check_training(const struct network *n, const struct device *d)
{
    struct ew_graph *g = build(n, true, 8);
    struct ew_plan *a = g ? network_plan(g, true, "cpu", 8) : NULL;
    struct ew_plan *b = a ? network_plan(g, true, d->name, 8) : NULL;
    double largest = 0;
    for (int v = 0; b && v < g->n_values; v++)
        if (g->values[v].kind == EW_VALUE_PARAM && ew_plan_grad(a, v))
            largest = fmax(largest, norm_of(ew_plan_grad(a, v), NULL));
    for (int v = 0; b && v < g->n_values; v++) {
        const struct ew_tensor *x = ew_plan_grad(a, v), *y = ew_plan_grad(b, v);
        if (g->values[v].kind != EW_VALUE_PARAM || !x || !EW_EXPECT(y))
            continue;
        const double size = fmax(norm_of(x, NULL), 1e-3 * largest);
        const double off = norm_of(x, y) / size;
        if (!(off <= d->tolerance))
            EW_FAIL("%s on %s: the gradient of %s is off by %g", n->name, d->name,
                    g->values[v].name, off);
    }
    ew_plan_free(a);
    ew_plan_free(b);
    ew_graph_free(g);
}

/* The loss of a few steps with updates; bits[i] on one device. */
static void train_steps(const struct network *n, const char *device, int kind, float *losses)
{
    struct ew_graph *g = build(n, true, 8);
    struct ew_plan *p = NULL;
    const struct ew_plan_opts o = {.mode = EW_PLAN_TRAIN,
                                   .update = true,
                                   .optimizer = {.kind = (enum ew_optimizer_kind)kind,
                                                 .lr = 0.01,
                                                 .momentum = 0.9,
                                                 .beta1 = 0.9,
                                                 .beta2 = 0.999,
                                                 .eps = 1e-8},
                                   .backend = {.device = device}};
    if (g && EW_EXPECT_OK(ew_plan_compile(g, &o, &p)))
        for (int step = 0; step < STEPS; step++) {
            fill(p, true, 8);
            ew_plan_optimizer(p)->lr = 0.01 / (step + 1);
            EW_EXPECT_OK(ew_plan_run(p));
            losses[step] = (float)ew_tensor_get(ew_plan_output(p, 0), 0);
        }
    ew_plan_free(p);
    ew_graph_free(g);
}

static void check_steps(const struct network *n, int kind)
{
    float cpu[STEPS] = {0}, cuda[2][STEPS] = {{0}};
    train_steps(n, "cpu", kind, cpu);
    train_steps(n, "cuda", kind, cuda[0]);
    train_steps(n, "cuda", kind, cuda[1]);
    EW_EXPECT(memcmp(cuda[0], cuda[1], sizeof(cuda[0])) == 0);
    EW_EXPECT_CLOSE(cuda[0], cpu, 1, 1e-4, 1e-5);
    EW_EXPECT_CLOSE(cuda[0], cpu, 2, 5e-2, 1e-5); /* batch norms over few pixels amplify rounding */
}

/* Mixed precision: the first loss equals float32's up to rounding, training makes progress (float16
 * may skip the first steps until the loss scale fits), and two runs have the same bits. */
static void check_mixed(const struct network *n, const char *device, int kind)
{
    float whole[STEPS] = {0}, half[2][STEPS] = {{0}};
    train_steps(n, "cuda", kind, whole);
    train_steps(n, device, kind, half[0]);
    train_steps(n, device, kind, half[1]);
    EW_EXPECT(memcmp(half[0], half[1], sizeof(half[0])) == 0);
    EW_EXPECT_CLOSE(half[0], whole, 1, 6e-2, 0);
    double least[2] = {HUGE_VAL, HUGE_VAL};
    for (int i = 0; i < STEPS; i++) {
        least[0] = fmin(least[0], (double)whole[i]);
        least[1] = fmin(least[1], isfinite(half[0][i]) ? (double)half[0][i] : HUGE_VAL);
    }
    if (!isfinite(half[0][STEPS - 1]) ||
        least[1] > (double)whole[0] - 0.25 * ((double)whole[0] - least[0]) + 1e-3)
        EW_FAIL("%s on %s: loss from %g to %g, with float32 from %g to %g", n->name, device,
                (double)half[0][0], least[1], (double)whole[0], least[0]);
}

/* The state of loss scaling in checkpoints of float16 training; other precisions have none. */
static void check_scale(void)
{
    const struct ew_loss_scale want = {1024, 7};
    struct ew_loss_scale got;
    for (int i = 0; i < 2; i++) {
        const struct ew_backend_opts o = {.device = i ? "cuda" : "cuda:0,fp16"};
        struct ew_backend *be = NULL;
        if (!EW_EXPECT_OK(ew_backend_open(&o, &be)))
            return;
        EW_EXPECT_OK(ew_backend_set_loss_scale(be, &want));
        EW_EXPECT_OK(ew_backend_loss_scale(be, &got));
        EW_EXPECT_INT((int)got.scale, i ? 0 : 1024);
        EW_EXPECT_INT(got.good, i ? 0 : 7);
        ew_backend_close(be);
    }
}

/* Quantised networks have the CPU's bits, and no step runs on the host. */
static void check_int8(const struct network *n, bool is_signed)
{
    struct ew_graph *g = ew_quant_graph(n->name, n->side, is_signed);
    struct ew_plan *p[2] = {NULL, NULL};
    for (int i = 0; g && i < 2; i++) {
        const struct ew_plan_opts o = {.optimize = true, .backend = {.device = i ? "cuda" : "cpu"}};
        if (!EW_EXPECT_OK(ew_plan_compile(g, &o, &p[i])))
            continue;
        for (int run = 0; run < (i ? RUNS : 1); run++) {
            ew_quant_input(ew_plan_input(p[i], 0), 1);
            EW_EXPECT_OK(ew_plan_run(p[i]));
        }
    }
    if (p[0] && p[1]) {
        const struct ew_tensor *x = ew_plan_output(p[0], 0), *y = ew_plan_output(p[1], 0);
        struct ew_plan_stats s;
        ew_plan_stats(p[1], &s);
        EW_EXPECT_INT(s.host_steps, 0);
        EW_EXPECT(memcmp(x->data, y->data, ew_tensor_bytes(x)) == 0);
    }
    ew_plan_free(p[0]);
    ew_plan_free(p[1]);
    ew_graph_free(g);
}

/* Words of the command line are groups (ops, zoo, int8, train) and names of networks; without any,
 * everything is meant, or in quick tests a few networks. */
static bool is_meant(int argc, char **argv, const char *group, const struct network *n)
{
    bool said = argc == 1 && (!n || n->quick || !ew_test_quick());
    for (int i = 1; i < argc; i++)
        said = said || strcmp(argv[i], group) == 0 || (n && strcmp(argv[i], n->name) == 0);
    return said;
}

int main(int argc, char **argv)
{
    static const struct network zoo[] = {{"lenet5", 28, true},
                                         {"alexnet", 64},
                                         {"resnet18", 40},
                                         {"resnext50_32x4d", 40},
                                         {"vgg11", 32},
                                         {"squeezenet1_1", 64},
                                         {"shufflenet_v2_x1_0", 40},
                                         {"mobilenet_v2", 40},
                                         {"densenet121", 40},
                                         {"mobilenet_v3_small", 40},
                                         {"resnet18_cifar_gn", 32},
                                         {"c3d_small", 0},
                                         {"r2plus1d_18", 32}};
    static const struct network quantised[] = {{"lenet5", 28, true},
                                               {"resnet18", 32},
                                               {"mobilenet_v2", 32},
                                               {"mobilenet_v3_small", 64, true},
                                               {"shufflenet_v2_x1_0", 64, true},
                                               {"squeezenet1_1", 64},
                                               {"densenet121", 32}};
    static const struct network trained[] = {{"lenet5", 28},
                                             {"alexnet", 64},
                                             {"resnet18", 64},
                                             {"squeezenet1_1", 64},
                                             {"mobilenet_v2", 96},
                                             {"mobilenet_v3_small", 96},
                                             {"shufflenet_v2_x1_0", 96},
                                             {"mobilenet_v2_cifar", 32},
                                             {"resnet18_cifar_gn", 32},
                                             {"c3d_small", 0}};
    /* The CPU's own kernels differ from references by up to 4.5e-2 at this size, which is 1e5
     * roundings; in half types, batch norms over few pixels leave little more than the order of
     * magnitude. */
    static const struct device gradients[] = {
        {"cuda", 6e-2}, {"cuda:0,fp16", 2}, {"cuda:0,bf16", 2}};
    ew_test_begin("device");
    const bool there = has_device();
    ew_test_end();
    if (!there)
        return ew_test_status();
    if (is_meant(argc, argv, "ops", NULL)) {
        walk(false);
        walk(true);
        walk_half("cuda:0,fp16", 4e-3);
        walk_half("cuda:0,bf16", 3e-2);
    }
    for (size_t i = 0; i < EW_COUNT(zoo); i++) {
        if (!is_meant(argc, argv, "zoo", &zoo[i]))
            continue;
        ew_test_begin("inference of %s", zoo[i].name);
        check_inference(&zoo[i]);
        ew_test_end();
    }
    ew_test_begin("loss scale");
    check_scale();
    ew_test_end();
    for (size_t i = 0; i < EW_COUNT(quantised); i++) {
        if (!is_meant(argc, argv, "int8", &quantised[i]))
            continue;
        ew_test_begin("8 bits of %s", quantised[i].name);
        check_int8(&quantised[i], i % 2);
        ew_test_end();
    }
    for (size_t i = 0; i < EW_COUNT(trained); i++) {
        if (!is_meant(argc, argv, "train", &trained[i]))
            continue;
        ew_test_begin("training of %s", trained[i].name);
        for (size_t k = 0; k < EW_COUNT(gradients); k++)
            check_training(&trained[i], &gradients[k]);
        check_steps(&trained[i], (int)i % 4);
        check_mixed(&trained[i], "cuda:0,fp16", (int)i % 4);
        check_mixed(&trained[i], "cuda:0,bf16", (int)i % 4);
        ew_test_end();
    }
    return ew_test_status();
}
