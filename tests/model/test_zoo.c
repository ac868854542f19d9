/* SPDX-License-Identifier: Apache-2.0 */
/* The zoo is exact: parameters, names and shapes of every tensor, arithmetic, critical datapath
 * length, widths; and networks that cannot be built give a one-line error. */
#include "graph/facts.h"

#include <stdio.h>
#include <string.h>

#include "ew_test.h"
#include "model/loss_table.h"
#include "model/model.h"

static struct ew_model_opts at(int64_t side, int64_t classes, double scale)
{
    return (struct ew_model_opts){.size = sizeof(struct ew_model_opts),
                                  .height = side,
                                  .width = side,
                                  .classes = classes,
                                  .scale = scale};
}

static bool facts_of(const char *name, const struct ew_model_opts *o, struct ew_facts *f)
{
    struct ew_graph *g = NULL;
    *f = (struct ew_facts){0};
    if (!EW_EXPECT_OK(ew_model_build(name, o, &g)))
        return false;
    const bool ok = EW_EXPECT_OK(ew_graph_check(g)) && EW_EXPECT_OK(ew_graph_facts(g, f));
    ew_graph_free(g);
    return ok;
}

/* ---- torchvision ---- */

/* Counted from torchvision 0.14 at 224x224 and 1000 classes: parameters, MACs of convolutions and
 * dense layers, MACs as counted by thop, and the sum of the FNV-1a hashes of all "name shape" texts
 * (filters as [O, k, k, I]). */
static const struct {
    const char *name;
    int64_t params, macs, thop_macs;
    uint64_t tensors;
} torchvision[] = {
    {"alexnet", 61100840, 714188480, 714206912, 0xdf037a6953daeb13},
    {"vgg11", 132863336, 7609090048, 7609140224, 0xa96d0a655ba9f0d4},
    {"vgg13", 133047848, 11308466176, 11308516352, 0xb47b999290c7e1df},
    {"vgg16", 138357544, 15470264320, 15470314496, 0x45d1ccd9b301260b},
    {"vgg19", 143667240, 19632062464, 19632112640, 0xcf8af82357a0e1ab},
    {"resnet18", 11689512, 1814073344, 1824033792, 0x33fa3fdac6173add},
    {"resnet34", 21797672, 3663761408, 3678739456, 0xcf6632add8ff8345},
    {"resnet50", 25557032, 4089184256, 4133742592, 0x2d945b9f189b1333},
    {"resnet101", 44549160, 7801405440, 7866435584, 0x50e8f5a86e0e61a7},
    {"resnet152", 60192808, 11513626624, 11603945472, 0xa142c1610524f640},
    {"resnext50_32x4d", 25028904, 4230479872, 4288184320, 0x4122885163df873e},
    {"squeezenet1_0", 1248424, 818924576, 819094576, 0xc8fe0f43e2251ed8},
    {"squeezenet1_1", 1235496, 349151936, 349321936, 0x988e87c26b07aabb},
    {"densenet121", 7978856, 2834161664, 2896831488, 0xbacc08684b8b3444},
    {"densenet169", 14149480, 3359843328, 3435935232, 0x9990559f188eb2fc},
    {"densenet201", 20013928, 4291365888, 4390187520, 0x59ecf0fd8daf18d4},
    {"shufflenet_v2_x0_5", 1366792, 40476448, 44572064, 0x1f63307ff6b7aedc},
    {"shufflenet_v2_x1_0", 2278604, 144907992, 152708792, 0xf34b57de6c2f8e86},
    {"shufflenet_v2_x1_5", 3503624, 295759392, 306829472, 0xaf4bde95185eb432},
    {"shufflenet_v2_x2_0", 7393996, 583253464, 598229432, 0x8cbacf04da623567},
    {"mobilenet_v2", 3504872, 300774272, 327486720, 0xd8495a979bf5ba2},
    {"mobilenet_v3_large", 5483032, 216589760, 234838456, 0xe602960f17e5698b},
    {"mobilenet_v3_small", 2542856, 56510400, 62477944, 0x53fabf739cd526bc},
};

/* "layer1.0.conv1.weight 64x3x3x64": independent of the order of tensors. */
static uint64_t hash_tensors(const struct ew_graph *g)
{
    uint64_t sum = 0;
    for (int i = 0; i < g->n_values; i++) {
        const struct ew_value *v = &g->values[i];
        if (v->kind != EW_VALUE_PARAM && v->kind != EW_VALUE_STATE)
            continue;
        char text[512], shape[EW_SHAPE_TEXT];
        snprintf(text, sizeof(text), "%s %s", v->name, ew_shape_text(&v->t.shape, shape));
        uint64_t h = 1469598103934665603u;
        for (const char *c = text; *c; c++)
            h = (h ^ (unsigned char)*c) * 1099511628211u;
        sum += h;
    }
    return sum;
}

static void as_torchvision(void)
{
    for (size_t i = 0; i < EW_COUNT(torchvision); i++) {
        struct ew_facts f;
        struct ew_graph *g = NULL;
        if (!EW_EXPECT_OK(ew_model_build(torchvision[i].name, NULL, &g)))
            continue;
        EW_EXPECT_OK(ew_graph_facts(g, &f));
        if (f.params != torchvision[i].params || f.macs != torchvision[i].macs ||
            f.flops_thop != 2 * torchvision[i].thop_macs)
            EW_FAIL("%s: %lld parameters, %lld MACs, %lld thop MACs", torchvision[i].name,
                    (long long)f.params, (long long)f.macs, (long long)f.flops_thop / 2);
        if (hash_tensors(g) != torchvision[i].tensors)
            EW_FAIL("%s: names or shapes differ from torchvision's", torchvision[i].name);
        ew_graph_free(g);
    }
}

/* ---- The studies' own networks ---- */

static void parameters(void)
{
    struct ew_facts f;
    facts_of("lenet5", NULL, &f);
    EW_EXPECT_INT(f.params, 61706);
    EW_EXPECT_INT(f.weight_bytes, 4 * 61706);
    EW_EXPECT_INT(f.macs, 117600 + 240000 + 48000 + 10080 + 840);
    facts_of("fedavg_cnn", NULL, &f);
    EW_EXPECT_INT(f.params, 1663370); /* as counted in the paper */
    facts_of("c3d_small", NULL, &f);
    EW_EXPECT_INT(f.params, 20333956);
    EW_EXPECT_NEAR((double)f.macs, 116551168, 0.011 * 116551168);
    facts_of("video_autoencoder", NULL, &f);
    EW_EXPECT_INT(f.params, 332807);
    EW_EXPECT_NEAR((double)f.macs, 22434944, 0.002 * 22434944);
    facts_of("video_densenet", NULL, &f);
    EW_EXPECT_INT(f.params, 109386);
    EW_EXPECT_NEAR((double)f.macs, 27681924, 0.0021 * 27681924);
    facts_of("r3d_18", NULL, &f); /* torchvision's */
    EW_EXPECT_INT(f.params, 33371472);
    facts_of("mc3_18", NULL, &f);
    EW_EXPECT_INT(f.params, 11695440);
    facts_of("r2plus1d_18", NULL, &f);
    EW_EXPECT_INT(f.params, 31505325);
    facts_of("vgg11_cifar", NULL, &f);
    EW_EXPECT_INT(f.params, 9231114);
    facts_of("mobilenet_v2_cifar", NULL, &f);
    EW_EXPECT_INT(f.params, 2333410);
    facts_of("preact_resnet18", NULL, &f);
    EW_EXPECT_INT(f.params, 11172170);
    EW_EXPECT_INT(f.macs, 555422720);
    facts_of("preact_resnet18_tiny", NULL, &f);
    EW_EXPECT_INT(f.params, 11273736);
    /* TRAIN: the 42.63 MiB of weights in Table 2 are these parameters. */
    facts_of("resnet18_cifar_gn", NULL, &f);
    EW_EXPECT_INT(f.params, 11173962);
    EW_EXPECT_INT(f.macs, 555422720);
    facts_of("resnet9", NULL, &f);
    EW_EXPECT_INT(f.params, 6573130);
    const struct ew_model_opts o = at(32, 10, 0);
    facts_of("resnet50", &o, &f);
    EW_EXPECT_INT(f.params, 23528522);
    const struct ew_model_opts small = at(32, 1000, 0);
    facts_of("vgg11", &small, &f); /* TRAIN's 506.83 MiB of weights, at 32x32 */
    EW_EXPECT_INT(f.params, 132863336);
}

/* Uniform widths of the SCALE study: parameters and thop MACs (its MFLOPs are twice those / 1e6).
 */
static const struct {
    const char *name;
    int64_t side, classes;
    struct {
        double width;
        int64_t params, thop_macs;
    } points[4];
} uniform[] = {
    {"vgg11_cifar",
     32,
     10,
     {{0.25, 579786, 10032384},
      {0.5, 2311562, 38939136},
      {0.75, 5195338, 86720256},
      {1, 9231114, 153375744}}},
    {"mobilenet_v2_cifar",
     32,
     10,
     {{0.25, 170464, 2753536},
      {0.5, 616182, 8505856},
      {0.75, 1337164, 17256960},
      {1, 2333410, 29006848}}},
    {"mobilenet_v2_tiny",
     64,
     200,
     {{0.25, 231454, 8333184},
      {0.5, 737972, 24279296},
      {0.75, 1519754, 47838336},
      {1, 2576800, 79010304}}},
    {"resnet50",
     32,
     10,
     {{0.25, 1486106, 5897728},
      {0.5, 5902890, 21920768},
      {0.75, 13250362, 48069120},
      {1, 23528522, 84342784}}},
};

static void scaled_uniformly(void)
{
    for (size_t i = 0; i < EW_COUNT(uniform); i++) {
        for (int p = 0; p < 4; p++) {
            struct ew_facts f;
            const struct ew_model_opts o =
                at(uniform[i].side, uniform[i].classes, uniform[i].points[p].width);
            facts_of(uniform[i].name, &o, &f);
            EW_EXPECT_INT(f.params, uniform[i].points[p].params);
            EW_EXPECT_INT(f.flops_thop, 2 * uniform[i].points[p].thop_macs);
        }
    }
}

/* Table 3 of the SCALE study, and its way of counting for other networks. */
static void critical_datapath(void)
{
    static const struct {
        const char *name;
        int64_t side, cdl, nodes; /* nodes 0: unknown */
    } expected[] = {{"vgg11_cifar", 32, 23, 23},    {"mobilenet_v2_cifar", 32, 111, 118},
                    {"resnet50", 32, 118, 122},     {"resnet50", 224, 118, 122},
                    {"preact_resnet18", 32, 53, 0}, {"mobilenet_v2", 224, 100, 100}};
    for (size_t i = 0; i < EW_COUNT(expected); i++) {
        for (int half = 0; half < 2; half++) {
            const struct ew_model_opts o = at(expected[i].side, 10, half ? 0.5 : 1);
            struct ew_facts f;
            facts_of(expected[i].name, &o, &f);
            EW_EXPECT_INT(f.cdl, expected[i].cdl);
            if (expected[i].nodes)
                EW_EXPECT_INT(f.cdl_nodes, expected[i].nodes);
        }
    }
}

/* ---- Widths ---- */

static void expect_filters(const char *name, const struct ew_model_opts *o, const char *list)
{
    int32_t got[EW_MAX_GATES];
    int n = 0;
    char text[2048] = "";
    if (!EW_EXPECT_OK(ew_model_filters(name, o, got, EW_MAX_GATES, &n)))
        return;
    for (int i = 0, used = 0; i < n; i++)
        used += snprintf(text + used, sizeof(text) - (size_t)used, i ? " %d" : "%d", (int)got[i]);
    EW_EXPECT_STR(text, list);
}

static void base_widths(void)
{
    expect_filters("vgg11_cifar", NULL, "64 128 256 256 512 512 512 512");
    expect_filters("preact_resnet18", NULL,
                   "64 64 64 64 64 128 128 128 128 256 256 256 256 512 512 512 512");
    expect_filters("mobilenet_v2_cifar", NULL,
                   "32 16 24 24 32 32 32 64 64 64 64 96 96 96 160 160 160 320 1280");
    const struct ew_model_opts third = at(32, 10, 0.3);
    expect_filters("mobilenet_v2_cifar", &third,
                   "9 4 7 7 9 9 9 19 19 19 19 28 28 28 48 48 48 96 384");
    const struct ew_model_opts half = at(224, 10, 0.3);
    expect_filters("shufflenet_v2_x1_0", &half, "7 34 68 138 307");
    int32_t got[EW_MAX_GATES];
    int n = 0;
    EW_EXPECT_OK(ew_model_filters("resnet50", &third, got, EW_MAX_GATES, &n));
    EW_EXPECT_INT(n, 49);
    EW_EXPECT_INT(got[3], 4 * 19); /* the expansion stays 4, where trunc(0.3 x 256) is 76 too ... */
    EW_EXPECT_INT(got[n - 1], 4 * 153); /* ... but trunc(0.3 x 2048) is 614 */
    EW_EXPECT_ERR(ew_model_filters("resnet50", NULL, got, 48, &n), EW_ERR_LIMIT, "49");
}

/* Filter counts found by the SCALE study's search: some shortcuts need projections. */
static void given_widths(void)
{
    static const int32_t vgg[] = {88, 132, 137, 120, 82, 56, 31, 53};
    struct ew_model_opts o = at(32, 10, 0);
    o.filters = vgg;
    o.n_filters = EW_COUNT(vgg);
    struct ew_facts f;
    facts_of("vgg11_cifar", &o, &f);
    int64_t params = 0, in = 3;
    for (size_t i = 0; i < EW_COUNT(vgg); i++) {
        params += 9 * in * vgg[i] + 3 * vgg[i];
        in = vgg[i];
    }
    EW_EXPECT_INT(f.params, params + in * 10 + 10);
    EW_EXPECT_INT(f.cdl, 23);

    static const int32_t odd[] = {20, 11, 24, 25, 30, 30, 31, 64, 60,  64,
                                  64, 90, 96, 90, 99, 99, 98, 99, 1001};
    o.filters = odd;
    o.n_filters = EW_COUNT(odd);
    facts_of("mobilenet_v2_cifar", &o, &f);
    EW_EXPECT_INT(f.cdl, 111);
    static const int32_t preact[] = {64, 60, 64, 62, 63, 120, 121, 122, 121,
                                     1,  2,  3,  4,  5,  6,   7,   8};
    o.filters = preact;
    o.n_filters = EW_COUNT(preact);
    facts_of("preact_resnet18", &o, &f);
    EW_EXPECT_INT(f.cdl, 53);
}

/* ---- What cannot be built ---- */

static void expect_refused(const char *name, const struct ew_model_opts *o, ew_err code,
                           const char *text)
{
    struct ew_graph *g = NULL;
    EW_EXPECT_ERR(ew_model_build(name, o, &g), code, text);
    EW_EXPECT_SAME(strchr(ew_error_message(), '\n'), NULL);
}

static void bad_options(void)
{
    struct ew_model_opts o = at(0, 0, 0);
    expect_refused("resnet5", &o, EW_ERR_NOT_FOUND, "did you mean resnet");
    expect_refused("", &o, EW_ERR_NOT_FOUND, "no network");
    o = at(16, 10, 0);
    expect_refused("alexnet", &o, EW_ERR_SHAPE, "alexnet at 16x16x3: node features.");
    expect_refused("vgg11_cifar", &o, EW_ERR_SHAPE, "vgg11_cifar at 16x16x3");
    o = at(-1, 10, 0);
    expect_refused("alexnet", &o, EW_ERR_ARG, "height is -1");
    o = at(1 << 20, 10, 0);
    expect_refused("alexnet", &o, EW_ERR_ARG, "height is 1048576");
    o = at(224, -5, 0);
    expect_refused("alexnet", &o, EW_ERR_ARG, "alexnet: the number of classes is -5");
    o = at(224, INT64_MAX, 0);
    expect_refused("alexnet", &o, EW_ERR_ARG, "classes");
    o = at(32, 10, 0.01);
    expect_refused("vgg11_cifar", &o, EW_ERR_ARG, "width 0.01 leaves no filter of 64");
    expect_refused("resnext50_32x4d", &o, EW_ERR_ARG, "width 0.01");
    o = at(32, 10, -1);
    expect_refused("vgg11_cifar", &o, EW_ERR_ARG, "width is -1");
    o = at(32, 10, 1e30);
    expect_refused("vgg11_cifar", &o, EW_ERR_ARG, "width is 1e+30");
    o = at(32, 10, 1000);
    o.batch = 1 << 20;
    o.height = o.width = 1 << 16;
    expect_refused("vgg11_cifar", &o, EW_ERR_LIMIT, "vgg11_cifar at 65536x65536x3");
    o = at(32, 10, 0);
    o.batch = -3;
    expect_refused("lenet5", &o, EW_ERR_ARG, "batch is -3");
    o = at(32, 10, 0);
    o.size = 8;
    expect_refused("lenet5", &o, EW_ERR_ARG, "8 bytes");
}

static void bad_widths(void)
{
    static const int32_t few[] = {6, 16, 120}, many[] = {6, 16, 120, 84, 3}, none[] = {6, 0, 1, 1};
    struct ew_model_opts o = at(28, 10, 0);
    o.filters = few;
    o.n_filters = EW_COUNT(few);
    expect_refused("lenet5", &o, EW_ERR_ARG, "3 widths are given, it has more");
    o.filters = many;
    o.n_filters = EW_COUNT(many);
    expect_refused("lenet5", &o, EW_ERR_ARG, "5 widths are given, it has 4");
    o.filters = none;
    o.n_filters = EW_COUNT(none);
    expect_refused("lenet5", &o, EW_ERR_ARG, "width 1 is 0 filters");
    o.scale = 0.5;
    expect_refused("lenet5", &o, EW_ERR_ARG, "both");
    static const int32_t odd[] = {24, 117, 232, 464, 1024};
    o = at(224, 10, 0);
    o.filters = odd;
    o.n_filters = EW_COUNT(odd);
    expect_refused("shufflenet_v2_x1_0", &o, EW_ERR_ARG,
                   "width 1 is 117 filters, must be a multiple");
}

/* Every network is listed, has the properties that `models` shows, and can change its batch
 * size. */
static void all_build(void)
{
    EW_EXPECT_SAME(ew_model_name(-1), NULL);
    EW_EXPECT_SAME(ew_model_name(ew_model_count()), NULL);
    for (int i = 0; i < ew_model_count(); i++) {
        const struct ew_family *family;
        const struct ew_variant *v;
        struct ew_graph *g = NULL;
        EW_EXPECT_OK(ew_variant_find(ew_model_name(i), &family, &v));
        EW_EXPECT(family->about && family->widths);
        if (!EW_EXPECT_OK(ew_model_build(v->name, NULL, &g)))
            continue;
        EW_EXPECT_OK(ew_graph_set_batch(g, 3));
        const struct ew_shape *y = &g->values[g->outputs[0]].t.shape;
        EW_EXPECT(ew_net_reconstructs(g) ||
                  (y->rank == 2 && y->dim[0] == 3 && y->dim[1] == v->classes));
        EW_EXPECT(g->values[g->inputs[0]].channels_last);
        ew_graph_free(g);
    }
}

/* In file layout no transposes of ours are left: an exported file has the nodes that PyTorch's
 * would have, and images are channels-first.  Converted back the counts are the same. */
static void files_hold_no_transposes(void)
{
    for (int i = 0; i < ew_model_count(); i++) {
        struct ew_graph *g = NULL;
        struct ew_facts before, after;
        EW_EXPECT_OK(ew_model_build(ew_model_name(i), NULL, &g));
        EW_EXPECT_OK(ew_graph_facts(g, &before));
        EW_EXPECT_OK(ew_graph_channels_first(g));
        EW_EXPECT(g->values[g->inputs[0]].t.shape.dim[1] <= 3);
        for (int k = 0; k < g->n_nodes; k++)
            EW_EXPECT(strcmp(g->nodes[k].op->name, "transpose") != 0);
        EW_EXPECT_OK(ew_graph_channels_last(g));
        EW_EXPECT_OK(ew_graph_facts(g, &after));
        EW_EXPECT_INT(after.params, before.params);
        EW_EXPECT_INT(after.weight_bytes, before.weight_bytes);
        EW_EXPECT_INT(after.macs, before.macs);
        EW_EXPECT_INT(after.flops, before.flops);
        EW_EXPECT_INT(after.flops_thop, before.flops_thop);
        EW_EXPECT_INT(after.cdl, before.cdl);
        EW_EXPECT_INT(after.cdl_nodes, before.cdl_nodes);
        ew_graph_free(g);
    }
}

EW_TEST_MAIN(EW_TEST(as_torchvision), EW_TEST(parameters), EW_TEST(scaled_uniformly),
             EW_TEST(critical_datapath), EW_TEST(base_widths), EW_TEST(given_widths),
             EW_TEST(bad_options), EW_TEST(bad_widths), EW_TEST(all_build),
             EW_TEST(files_hold_no_transposes))
