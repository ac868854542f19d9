/* SPDX-License-Identifier: Apache-2.0 */
/* Modelled DPU times against published ones: speeds of five networks on two boards (Vitis AI 3.0,
 * one and several threads), and ResNet-50's DDR traffic; prints a table of errors. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "backend/dpu/dpu_model.h"
#include "edgewise.h"
#include "ew_test.h"
#include "op/conv.h"
#include "op/pooling.h"

/* ---- Networks of the table, in their frameworks' versions ---- */

struct net {
    struct ew_graph *g;
    int at; /* the last value */
};

static bool begin(struct net *n)
{
    const struct ew_shape s = {4, {1, 224, 224, 3}};
    return EW_EXPECT_OK(ew_graph_new("net", &n->g)) &&
           EW_EXPECT_OK(ew_graph_input(n->g, "x", EW_F32, &s, &n->at));
}

static int channels(const struct net *n, int value)
{
    return (int)n->g->values[value].t.shape.dim[3];
}

static int conv(struct net *n, int x, int filters, int size, int stride, bool depthwise)
{
    const int in = channels(n, x), pad = size / 2;
    const struct ew_shape s = {4, {filters, size, size, depthwise ? 1 : in}};
    const struct ew_tensor w = {.dtype = EW_F32, .shape = s};
    const struct ew_conv_attr a = {
        .win = {.stride = {2, {stride, stride}}, .pad = {4, {pad, pad, pad, pad}}},
        .groups = depthwise ? in : 1};
    int slots[2] = {x}, out = -1;
    EW_EXPECT_OK(ew_graph_const(n->g, NULL, EW_VALUE_PARAM, &w, false, &slots[1]));
    EW_EXPECT_OK(ew_graph_add(n->g, ew_op_find("conv"), NULL, &a, ew_inputs(slots, 2), &out));
    return out;
}

static int add(struct net *n, int a, int b)
{
    int out = -1;
    EW_EXPECT_OK(ew_graph_add(n->g, ew_op_find("add"), NULL, NULL, EW_INPUTS(a, b), &out));
    return out;
}

static int max_pool(struct net *n, int x, int size, int stride, int pad)
{
    const struct ew_pool_attr a = {.win = {.kernel = {2, {size, size}},
                                           .stride = {2, {stride, stride}},
                                           .pad = {4, {pad, pad, pad, pad}}}};
    int out = -1;
    EW_EXPECT_OK(ew_graph_add(n->g, ew_op_find("max_pool"), NULL, &a, EW_INPUTS(x), &out));
    return out;
}

static void finish(struct net *n, int x, int classes)
{
    int out = -1;
    EW_EXPECT_OK(
        ew_graph_add(n->g, ew_op_find("global_average_pool"), NULL, NULL, EW_INPUTS(x), &out));
    n->at = conv(n, out, classes, 1, 1, false);
    EW_EXPECT_OK(ew_graph_output(n->g, n->at));
}

/* `late`: the stride is at the 3x3 convolution (PyTorch), else at the first 1x1. */
static struct ew_graph *resnet50(bool late)
{
    static const int widths[] = {64, 128, 256, 512}, blocks[] = {3, 4, 6, 3};
    struct net n;
    if (!begin(&n))
        return NULL;
    int x = max_pool(&n, conv(&n, n.at, 64, 7, 2, false), 3, 2, 1);
    for (int i = 0; i < 4; i++)
        for (int b = 0; b < blocks[i]; b++) {
            const int stride = b == 0 && i > 0 ? 2 : 1;
            int y = conv(&n, x, widths[i], 1, late ? 1 : stride, false);
            y = conv(&n, y, widths[i], 3, late ? stride : 1, false);
            y = conv(&n, y, 4 * widths[i], 1, 1, false);
            x = add(&n, y, b == 0 ? conv(&n, x, 4 * widths[i], 1, stride, false) : x);
        }
    finish(&n, x, 1000);
    return n.g;
}

static struct ew_graph *mobilenet_v1(void)
{
    static const int widths[] = {64, 128, 128, 256, 256, 512, 512, 512, 512, 512, 512, 1024, 1024};
    struct net n;
    if (!begin(&n))
        return NULL;
    int x = conv(&n, n.at, 32, 3, 2, false);
    for (size_t i = 0; i < EW_COUNT(widths); i++) {
        const bool halves = i == 1 || i == 3 || i == 5 || i == 11;
        x = conv(&n, x, channels(&n, x), 3, halves ? 2 : 1, true);
        x = conv(&n, x, widths[i], 1, 1, false);
    }
    finish(&n, x, 1001);
    return n.g;
}

static struct ew_graph *zoo(const char *name)
{
    struct ew_graph *g = NULL;
    EW_EXPECT_OK(ew_model_build(name, NULL, &g));
    return g;
}

/* ---- Speeds ---- */

struct row {
    const char *name;
    double kv260_one, kv260_all, zcu104_one, zcu104_all; /* images/s */
};

static const struct row rows[] = {{"resnet50 8.2G", 85.51, 89.34, 84.7396, 161.922},
                                  {"mobilenet_v1", 356.72, 431.28, 346.873, 806.064},
                                  {"mobilenet_v2", 290.01, 338.08, 284.711, 621.037},
                                  {"resnet50 6.97G", 96.63, 101.53, 95.976, 183.322},
                                  {"vgg16", 21.79, 22.02, 21.8436, 38.4335}};

static struct ew_graph *build(size_t i)
{
    return i == 0   ? resnet50(true)
           : i == 1 ? mobilenet_v1()
           : i == 2 ? zoo("mobilenet_v2")
           : i == 3 ? resnet50(false)
                    : zoo("vgg16");
}

static void time_on(struct ew_dpu_net *n, const char *device, struct ew_dpu_times *t)
{
    struct ew_dpu_config c;
    if (EW_EXPECT_OK(ew_dpu_config_parse(device, &c)))
        ew_dpu_time(n, &c, t);
}

static double error(double modelled, double published)
{
    return modelled / published - 1;
}

static void speeds_are_close(void)
{
    double sum[4] = {0}, worst = 0;
    for (size_t i = 0; i < EW_COUNT(rows); i++) {
        struct ew_graph *g = build(i);
        struct ew_dpu_net n = {0};
        struct ew_dpu_times kv = {0}, zcu = {0};
        if (g && EW_EXPECT_OK(ew_dpu_net_init(g, &n))) {
            time_on(&n, "kv260", &kv);
            time_on(&n, "zcu104", &zcu);
        }
        const double e[4] = {
            error(1 / kv.latency_s, rows[i].kv260_one), error(kv.images_s, rows[i].kv260_all),
            error(1 / zcu.latency_s, rows[i].zcu104_one), error(zcu.images_s, rows[i].zcu104_all)};
        for (int k = 0; k < 4; k++) {
            sum[k] += fabs(e[k]);
            worst = fmax(worst, fabs(e[k]));
        }
        printf("# %-15s kv260 %+.1f %% one thread, %+.1f %% several; zcu104 %+.1f %%, %+.1f %%\n",
               rows[i].name, 100 * e[0], 100 * e[1], 100 * e[2], 100 * e[3]);
        ew_dpu_net_fini(&n);
        ew_graph_free(g);
    }
    printf("# mean %.1f %%, %.1f %%; %.1f %%, %.1f %%; worst %.1f %%\n", 20 * sum[0], 20 * sum[1],
           20 * sum[2], 20 * sum[3], 100 * worst);
    for (int k = 0; k < 4; k++)
        EW_EXPECT(sum[k] / EW_COUNT(rows) < 0.05);
    EW_EXPECT(worst < 0.1);
}

/* ---- Networks outside the fit ---- */

/* Images per second, with one thread and with several: AMD's tables of Vitis AI 2.5 (ZCU104), and
 * of its AI SDK 2.0.4 for other sizes (Ultra96, one B1600 at 287 MHz; with another host, so 0 for
 * one thread). */
static const struct elsewhere {
    const char *name, *device;
    double width, one, all;
} elsewhere[] = {
    {"vgg19", "zcu104", 1, 18.54, 32.69},
    {"resnet18", "zcu104", 1, 218.02, 437.32},
    {"squeezenet1_1", "zcu104", 1, 599.88, 1315.93},
    {"mobilenet_v3_small", "zcu104", 1, 363.63, 819.63},
    {"mobilenet_v2", "zcu104", 1.4, 203.20, 413.59},
    {"resnet18", "B1600,cores=1,clock=287", 1, 0, 77.82},
};

#define NETS (EW_COUNT(rows) + EW_COUNT(elsewhere))
/* Grid of the fit: 10 to 30 us of start-up per layer of the other units, 60 to 90 % of the ports'
 * bandwidth, 0 to 3 cycles between sets of weights. */
#define STARTS 11
#define SHARES 16
#define SWAPS  7
#define GRID   (STARTS * SHARES * SWAPS)

static struct ew_dpu_constants constants_at(int i)
{
    struct ew_dpu_constants k = ew_dpu_fitted;
    k.other_s = (10 + 2 * (i % STARTS)) * 1e-6;
    k.port_share = 0.6 + 0.02 * (i / STARTS % SHARES);
    k.swap = 0.5 * (i / (STARTS * SHARES));
    return k;
}

static struct ew_graph *build_any(size_t i, const char **device, double *published)
{
    struct ew_graph *g = NULL;
    if (i < EW_COUNT(rows)) {
        *device = "kv260";
        *published = rows[i].kv260_all;
        return build(i);
    }
    const struct elsewhere *e = &elsewhere[i - EW_COUNT(rows)];
    const struct ew_model_opts o = {.size = sizeof(o), .scale = e->width};
    *device = e->device;
    *published = e->all;
    EW_EXPECT_OK(ew_model_build(e->name, &o, &g));
    return g;
}

/* Errors of every network for every choice of constants, with several threads. */
static bool fill_errors(double (*e)[NETS])
{
    bool ok = true;
    for (size_t i = 0; ok && i < NETS; i++) {
        struct ew_dpu_config c;
        const char *device;
        double published;
        struct ew_graph *g = build_any(i, &device, &published);
        struct ew_dpu_net n = {0};
        ok = g && EW_EXPECT_OK(ew_dpu_config_parse(device, &c)) &&
             EW_EXPECT_OK(ew_dpu_net_init(g, &n));
        for (int k = 0; ok && k < GRID; k++) {
            const struct ew_dpu_constants by = constants_at(k);
            struct ew_dpu_times t;
            ew_dpu_time_by(&n, &c, &by, &t);
            e[k][i] = error(t.images_s, published);
        }
        ew_dpu_net_fini(&n);
        ew_graph_free(g);
    }
    return ok;
}

/* The constants with the least squared error over all networks except one. */
static int fit_without(double (*e)[NETS], size_t left_out)
{
    int best = 0;
    double least = INFINITY;
    for (int k = 0; k < GRID; k++) {
        double sum = 0;
        for (size_t i = 0; i < NETS; i++)
            sum += i == left_out ? 0 : e[k][i] * e[k][i];
        if (sum < least) {
            least = sum;
            best = k;
        }
    }
    return best;
}

/* Leave-one-out: start-up, port efficiency and weight switch are fitted on all networks except one,
 * which is then predicted. */
static void each_is_predicted_from_the_others(void)
{
    static double e[GRID][NETS];
    double sum = 0, worst = 0;
    if (!fill_errors(e))
        return;
    for (size_t i = 0; i < NETS; i++) {
        const int k = fit_without(e, i);
        const struct ew_dpu_constants by = constants_at(k);
        printf("# without %-20s %+.1f %%, by %.0f us, %.0f %%, %g\n",
               i < EW_COUNT(rows) ? rows[i].name : elsewhere[i - EW_COUNT(rows)].name,
               100 * e[k][i], 1e6 * by.other_s, 100 * by.port_share, by.swap);
        sum += fabs(e[k][i]);
        worst = fmax(worst, fabs(e[k][i]));
    }
    printf("# mean %.1f %%, worst %.1f %%\n", 100 * sum / (double)NETS, 100 * worst);
    EW_EXPECT(sum / (double)NETS < 0.05);
    EW_EXPECT(worst < 0.1);
}

static void networks_elsewhere(void)
{
    double sum = 0, worst = 0;
    int n_errors = 0;
    for (size_t i = 0; i < EW_COUNT(elsewhere); i++) {
        const struct elsewhere *e = &elsewhere[i];
        const struct ew_model_opts o = {.size = sizeof(o), .scale = e->width};
        struct ew_graph *g = NULL;
        struct ew_dpu_net n = {0};
        struct ew_dpu_times t = {0};
        if (!EW_EXPECT_OK(ew_model_build(e->name, &o, &g)) || !EW_EXPECT_OK(ew_dpu_net_init(g, &n)))
            return;
        time_on(&n, e->device, &t);
        const double errors[] = {e->one > 0 ? error(1 / t.latency_s, e->one) : 0,
                                 error(t.images_s, e->all)};
        printf("# %-20s %-24s %+5.1f %% %+5.1f %%\n", e->name, e->device, 100 * errors[0],
               100 * errors[1]);
        for (int k = e->one > 0 ? 0 : 1; k < 2; k++, n_errors++) {
            sum += fabs(errors[k]);
            worst = fmax(worst, fabs(errors[k]));
        }
        ew_dpu_net_fini(&n);
        ew_graph_free(g);
    }
    printf("# elsewhere: mean %.1f %%, worst %.1f %%\n", 100 * sum / n_errors, 100 * worst);
    EW_EXPECT(sum / n_errors < 0.06);
    EW_EXPECT(worst < 0.16);
}

/* As counted by AMD's profiler on ResNet-50 of 6.97 GOP, in MiB. */
static void traffic_is_close(void)
{
    struct ew_graph *g = resnet50(false);
    struct ew_dpu_net n = {0};
    struct ew_dpu_times t = {0};
    if (g && EW_EXPECT_OK(ew_dpu_net_init(g, &n)))
        time_on(&n, "kv260", &t);
    EW_EXPECT_NEAR((double)t.weight_bytes / 0x1p20, 24.348, 0.05);
    EW_EXPECT_NEAR((double)(t.load_bytes - t.weight_bytes) / 0x1p20, 6.345, 0.05 * 6.345);
    EW_EXPECT_NEAR((double)t.store_bytes / 0x1p20, 4.020, 0.05 * 4.020);
    EW_EXPECT_NEAR(1e3 * t.core_s, 9.798, 0.06 * 9.798);
    ew_dpu_net_fini(&n);
    ew_graph_free(g);
}

/* ---- Layers ---- */

static void ticks_follow_the_formula(void)
{
    struct ew_graph *g = zoo("resnet50");
    struct ew_dpu_net n = {0};
    struct ew_dpu_times t;
    if (g && EW_EXPECT_OK(ew_dpu_net_init(g, &n))) {
        time_on(&n, "B4096", &t);
        /* 7x7 with 3 channels: 21 columns take two groups of 16; 112 rows in groups of 8. */
        EW_EXPECT_INT(n.layers[0].ticks, 14 * 112 * 4 * 2 * 7);
        EW_EXPECT_INT(n.layers[1].unit, EW_DPU_POOL);
        EW_EXPECT_INT(n.layers[1].ticks, 14 * 56 * 4 * 9);
        time_on(&n, "B512", &t);
        EW_EXPECT_INT(n.layers[1].ticks, 28 * 56 * 8 * 9);
    }
    ew_dpu_net_fini(&n);
    ew_graph_free(g);
}

static void groups_go_to_the_host(void)
{
    struct ew_graph *g = zoo("resnext50_32x4d");
    struct ew_dpu_net n = {0};
    struct ew_dpu_times t;
    if (g && EW_EXPECT_OK(ew_dpu_net_init(g, &n))) {
        time_on(&n, "", &t);
        EW_EXPECT_INT(t.host_layers, 16);
        for (int k = 0; k < n.n_layers; k++)
            if (n.layers[k].unit == EW_DPU_HOST)
                EW_EXPECT_HAS(n.layers[k].reason, "grouped");
        EW_EXPECT(t.layers_host_s > 0 && t.latency_s > t.core_s + t.layers_host_s);
    }
    ew_dpu_net_fini(&n);
    ew_graph_free(g);
}

/* Monotonic: more of anything is never slower; a larger DPU never needs more cycles. */
static void more_is_not_slower(void)
{
    struct ew_graph *g = zoo("mobilenet_v2");
    struct ew_dpu_net n = {0};
    struct ew_dpu_times a, b;
    if (g && EW_EXPECT_OK(ew_dpu_net_init(g, &n))) {
        time_on(&n, "B1152,cores=1,clock=200,ddr=5", &a);
        static const char *const better[] = {
            "B4096,cores=1,clock=200,ddr=5", "B1152,cores=2,clock=200,ddr=5",
            "B1152,cores=1,clock=300,ddr=5", "B1152,cores=1,clock=200,ddr=10"};
        for (size_t i = 0; i < EW_COUNT(better); i++) {
            time_on(&n, better[i], &b);
            EW_EXPECT(b.images_s >= a.images_s);
            EW_EXPECT(b.latency_s <= a.latency_s);
            EW_EXPECT(b.ticks <= a.ticks);
        }
    }
    ew_dpu_net_fini(&n);
    ew_graph_free(g);
}

EW_TEST_MAIN(EW_TEST(speeds_are_close), EW_TEST(each_is_predicted_from_the_others),
             EW_TEST(networks_elsewhere), EW_TEST(traffic_is_close),
             EW_TEST(ticks_follow_the_formula), EW_TEST(groups_go_to_the_host),
             EW_TEST(more_is_not_slower))
