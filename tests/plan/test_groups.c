/* SPDX-License-Identifier: Apache-2.0 */
/* Fused groups of the CPU, pattern by pattern: a small network with the pattern is trained with it
 * and without any, and gradients, weights and losses are compared.
 *
 * Fused kernels add in another order than separate ones, so the two agree up to rounding: about
 * 1e-5 after batch norms over a few hundred numbers. */
#include <math.h>
#include <string.h>

#include "backend/backend_type.h"
#include "backend/group.h"
#include "ew_test.h"
#include "model/build.h"
#include "model/init.h"
#include "model/objective.h"
#include "plan/plan.h"

#define BATCH 4
#define SIDE  12
#define STEPS 3

/* ---- A CPU backend that fuses only the wanted patterns ---- */

static const char *const *wanted; /* NULL-terminated */
static int n_found;               /* groups of the first pattern */
static struct ew_backend_type choosy;
static const struct ew_backend_type *cpu;

static bool is_wanted(const char *pattern)
{
    for (const char *const *w = wanted; *w; w++)
        if (strcmp(*w, pattern) == 0)
            return true;
    return false;
}

static ew_err fuse(const struct ew_fuse_query *query, struct ew_group_list *out)
{
    const int before = out->n;
    EW_TRY(cpu->fuse(query, out));
    int n = before;
    for (int i = before; i < out->n; i++) {
        if (!is_wanted(out->groups[i].pattern))
            continue;
        n_found += strcmp(out->groups[i].pattern, wanted[0]) == 0;
        out->groups[n++] = out->groups[i];
    }
    out->n = n;
    return EW_OK;
}

static struct ew_backend *open_choosy(const char *const *patterns)
{
    struct ew_backend *be = NULL;
    if (!EW_EXPECT_OK(
            ew_backend_open(&(struct ew_backend_opts){.device = "cpu", .threads = 2}, &be)))
        return NULL;
    wanted = patterns;
    n_found = 0;
    cpu = be->type;
    choosy = *cpu;
    choosy.fuse = fuse;
    be->type = &choosy;
    return be;
}

/* ---- Networks ---- */

typedef int body_fn(struct ew_builder *b, int x);

static struct ew_graph *build(body_fn *body)
{
    struct ew_builder b = {.classes = 5, .bn_eps = 1e-5, .bn_keep = 0.9, .scale = 1};
    const struct ew_shape shape = {4, {BATCH, SIDE, SIDE, 16}};
    int x = -1;
    bool ok = EW_EXPECT_OK(ew_graph_new("pattern", &b.g)) &&
              EW_EXPECT_OK(ew_graph_input(b.g, "input", EW_F32, &shape, &x));
    if (ok) {
        x = ew_b_global_pool(&b, body(&b, x));
        x = ew_b_dense(&b, "fc", ew_b_flatten(&b, x), b.classes);
        ok = EW_EXPECT_OK(b.err) && EW_EXPECT_OK(ew_graph_output(b.g, x)) &&
             EW_EXPECT_OK(ew_init_weights(b.g, &(struct ew_init){.conv = EW_INIT_HE_IN}, 3)) &&
             EW_EXPECT_OK(ew_objective_add(b.g));
    }
    if (ok)
        return b.g;
    ew_graph_free(b.g);
    return NULL;
}

/* A block of MobileNetV2: the values between its layers are batch norms. */
static int inverted_residual(struct ew_builder *b, int x)
{
    x = ew_b_relu6(b, ew_b_bn(b, "bn1", ew_b_conv(b, "conv1", x, 32, ew_win(1, 1, 0))));
    x = ew_b_conv(b, "conv2", x, 32, ew_win_groups(3, 1, 1, EW_DEPTHWISE));
    x = ew_b_relu6(b, ew_b_bn(b, "bn2", x));
    return ew_b_bn(b, "bn3", ew_b_conv(b, "conv3", x, 16, ew_win(1, 1, 0)));
}

/* A block of MobileNetV3. */
static int excited(struct ew_builder *b, int x)
{
    x = ew_b_relu(b, ew_b_bn(b, "bn1", ew_b_conv(b, "conv1", x, 32, ew_win(1, 1, 0))));
    x = ew_b_conv(b, "conv2", x, 32, ew_win_groups(3, 1, 1, EW_DEPTHWISE));
    x = ew_b_relu(b, ew_b_bn(b, "bn2", x));
    int s = ew_b_global_pool(b, x);
    s = ew_b_relu(b, ew_b_conv_bias(b, "fc1", s, 8, ew_win(1, 1, 0)));
    s = ew_b_hard_sigmoid(b, ew_b_conv_bias(b, "fc2", s, 32, ew_win(1, 1, 0)));
    x = ew_b_mul(b, x, s);
    return ew_b_bn(b, "bn3", ew_b_conv(b, "conv3", x, 16, ew_win(1, 1, 0)));
}

/* A fire module of SqueezeNet, and a pool that propagates a ReLU's zeros. */
static int fire(struct ew_builder *b, int x)
{
    x = ew_b_relu(b, ew_b_conv_bias(b, "squeeze", x, 16, ew_win(1, 1, 0)));
    const int one = ew_b_relu(b, ew_b_conv_bias(b, "expand1", x, 32, ew_win(1, 1, 0)));
    const int three = ew_b_relu(b, ew_b_conv_bias(b, "expand3", x, 32, ew_win(3, 1, 1)));
    x = ew_b_max_pool(b, ew_b_concat(b, one, three), ew_win(3, 2, 0));
    return ew_b_relu(b, ew_b_conv_bias(b, "last", x, 24, ew_win(1, 1, 0)));
}

/* Wide 1x1 layers between batch norms: their inputs are sparse, their gradients are not. */
static int wide_bottleneck(struct ew_builder *b, int x)
{
    x = ew_b_relu(b, ew_b_bn(b, "bn1", ew_b_conv(b, "conv1", x, 128, ew_win(1, 1, 0))));
    x = ew_b_relu(b, ew_b_bn(b, "bn2", ew_b_conv(b, "conv2", x, 160, ew_win(1, 1, 0))));
    x = ew_b_max_pool(b, x, ew_win(3, 2, 0)); /* and few pixels */
    return ew_b_bn(b, "bn3", ew_b_conv(b, "conv3", x, 144, ew_win(1, 1, 0)));
}

/* ---- Training ---- */

static struct ew_plan *train(struct ew_graph *g, struct ew_backend *be, bool update)
{
    struct ew_plan *p = NULL;
    const struct ew_plan_given given = {.backend = be};
    const struct ew_plan_opts o = {.mode = EW_PLAN_TRAIN,
                                   .update = update,
                                   .optimizer = {.lr = 0.05, .momentum = 0.9},
                                   .given = &given};
    if (!EW_EXPECT_OK(ew_plan_compile(g, &o, &p)))
        return NULL;
    struct ew_tensor *x = ew_plan_input(p, 0);
    for (int64_t i = 0; i < ew_tensor_count(x); i++)
        ((float *)x->data)[i] = sinf((float)i * 0.37f);
    for (int i = 0; i < BATCH; i++)
        ((int64_t *)ew_plan_input(p, 1)->data)[i] = i;
    for (int i = 0; i < (update ? STEPS : 1); i++)
        EW_EXPECT_OK(ew_plan_run(p));
    return p;
}

/* Compares gradients, or weights if they are updated, relative to a tensor's largest value. */
static void compare(const struct ew_graph *g, const struct ew_graph *h, struct ew_plan *a,
                    struct ew_plan *b, bool update)
{
    for (int v = 0; v < g->n_values; v++) {
        if (g->values[v].kind != EW_VALUE_PARAM)
            continue;
        const struct ew_tensor *x = update ? &g->values[v].t : ew_plan_grad(a, v);
        const struct ew_tensor *y = update ? &h->values[v].t : ew_plan_grad(b, v);
        if (!EW_EXPECT(x && y))
            continue;
        float most = 0;
        for (int64_t i = 0; i < ew_tensor_count(x); i++)
            most = fmaxf(most, fabsf(((const float *)x->data)[i]));
        EW_EXPECT_CLOSE((const float *)x->data, (const float *)y->data, ew_tensor_count(x), 1e-4,
                        1e-4 * (double)most + 1e-6);
    }
    EW_EXPECT_CLOSE((const float *)ew_plan_output(a, 0)->data,
                    (const float *)ew_plan_output(b, 0)->data, 1, 1e-5, 0);
}

#define NOTHING ((const char *const[]){"nothing", NULL})

/* The fused plan must store fewer bytes. */
static void expect_less(const struct ew_plan *parts, const struct ew_plan *fused)
{
    struct ew_plan_stats s, t;
    ew_plan_stats(parts, &s);
    ew_plan_stats(fused, &t);
    EW_EXPECT(t.unshared_bytes < s.unshared_bytes);
}

/* The network with these patterns, the first of which it must contain, and with none. */
static void check(body_fn *body, const char *const *patterns, bool update, bool less)
{
    struct ew_graph *g = build(body), *h = build(body);
    struct ew_backend *be = g && h ? open_choosy(NOTHING) : NULL;
    struct ew_plan *parts = be ? train(g, be, update) : NULL;
    struct ew_backend *fusing = parts ? open_choosy(patterns) : NULL;
    struct ew_plan *fused = fusing ? train(h, fusing, update) : NULL;
    EW_EXPECT(n_found > 0);
    if (fused)
        compare(g, h, parts, fused, update);
    if (fused && less)
        expect_less(parts, fused);
    ew_plan_free(fused);
    ew_plan_free(parts);
    ew_backend_close(be);
    ew_backend_close(fusing);
    ew_graph_free(g);
    ew_graph_free(h);
}

#define PATTERNS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void norm_into_its_reader(void)
{
    check(inverted_residual, PATTERNS("batch norm into its reader"), false, true);
    check(inverted_residual,
          PATTERNS("sums of a batch norm's backward", "batch norm into its reader"), false, true);
}

static void norm_gradient_into_the_layer_before(void)
{
    check(inverted_residual, PATTERNS("batch norm's gradient into the layer before it"), true,
          false);
}

static void statistics_from_the_layer_before(void)
{
    check(inverted_residual, PATTERNS("batch norm's statistics from the layer before it"), false,
          false);
    /* conv2 skips zeros, and so takes the statistics in a pass of its own. */
    check(wide_bottleneck, PATTERNS("batch norm's statistics from the layer before it"), false,
          false);
}

static void squeeze_and_excite(void)
{
    check(excited, PATTERNS("squeeze-and-excite", "batch norm's gradient into the layer before it"),
          false, false);
}

static void relu_gradient(void)
{
    check(fire, PATTERNS("ReLU's gradient"), false, false);
}

static void concatenation(void)
{
    check(fire, PATTERNS("concatenation"), false, true);
    check(fire, PATTERNS("concatenation", "ReLU's gradient"), true, true);
}

static void optimizer_step(void)
{
    check(fire, PATTERNS("optimiser's step"), true, true);
    check(wide_bottleneck, PATTERNS("optimiser's step"), true, true);
}

/* All patterns at once, and the default set. */
static void together(void)
{
    check(excited,
          PATTERNS("squeeze-and-excite", "batch norm's gradient into the layer before it",
                   "batch norm into its reader", "sums of a batch norm's backward",
                   "batch norm's statistics from the layer before it", "ReLU's gradient",
                   "optimiser's step"),
          true, true);
}

EW_TEST_MAIN(EW_TEST(norm_into_its_reader), EW_TEST(norm_gradient_into_the_layer_before),
             EW_TEST(statistics_from_the_layer_before), EW_TEST(squeeze_and_excite),
             EW_TEST(relu_gradient), EW_TEST(concatenation), EW_TEST(optimizer_step),
             EW_TEST(together))
